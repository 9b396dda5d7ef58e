/* isolate_wire.h: what a process and its workers say to each other. Inside decode.
 *
 * Messages of one kind each way, over sockets that keep their borders; every request but
 * ISOLATE_ABORT has one answer. The answers themselves lie in the shared memory, in its board; so
 * what a worker had finished is known of one that died. Behind the board lie rows, without gaps,
 * those of one file after those of the other. */
#ifndef CLPIPE_DECODE_ISOLATE_WIRE_H
#define CLPIPE_DECODE_ISOLATE_WIRE_H

#include "decode/decode.h"
#include <stdatomic.h>
#include <sys/types.h>

enum isolate_op {
    /* With the descriptors of `count` files: their headers, one after the other, and, if the
     * request has `rows`, all rows of each small picture, as long as they fit. The first file that
     * is not finished by that remains open, and is the last one answered. */
    ISOLATE_BEGIN = 1,
    ISOLATE_ROWS, /* the next `rows`; after the last one the worker ends the file, too */
    ISOLATE_WIDE, /* one row that the shared memory cannot hold: its first bytes */
    ISOLATE_MORE, /* the bytes of that row from `offset` on */
    ISOLATE_ABORT,
};

struct isolate_file {
    uint64_t offset, bytes, file_bytes; /* as in struct blob */
    int64_t mtime_ns;
    char name[32]; /* the end of it: only what it promises matters */
};

struct isolate_request {
    uint32_t op, rows, count;
    uint32_t for_people; /* of ISOLATE_BEGIN: as decode_for_people was told */
    uint64_t offset;
    struct isolate_file file[DECODE_AHEAD_MAX];
};

struct isolate_answer {
    struct failure failure; /* REASON_NONE: done */
    struct image_info info; /* of ISOLATE_BEGIN */
    /* For ISOLATE_BEGIN: the header was good, and the rows have been decoded ahead: all are in the
     * shared memory, or `failure` is theirs. */
    uint32_t ahead;
    uint64_t bytes_read, digest[2];
};

struct isolate_board {
    _Atomic uint32_t answered; /* set to 0 with each request */
    struct isolate_answer answer[DECODE_AHEAD_MAX];
};
/* Where the rows begin. */
#define ISOLATE_BOARD ((sizeof(struct isolate_board) + 4095) / 4096 * 4096)

/* To the template. */
enum template_op { TEMPLATE_FORK = 1, TEMPLATE_END };

struct template_request {
    uint32_t op;
    pid_t pid; /* TEMPLATE_END: this one, unless it has ended by itself */
};

struct template_answer {
    pid_t pid;        /* of a fork; below 0: it failed, with error_number */
    int error_number; /* or the status of wait() */
};

/* How a worker ends that the system gave no memory: no file is to blame. */
#define WORKER_STARVED 75

#define ISOLATE_FDS 2 /* with TEMPLATE_FORK: the worker's socket, its shared memory */

/* Sends one message with up to DECODE_AHEAD_MAX descriptors; 0 or errno. */
int wire_send(int socket, const void *message, size_t size, const int *fds, unsigned fd_count);
/* Receives one of exactly `size` bytes; 0, or errno: EPIPE where the other end is gone, EPROTO
 * where it said something else. Descriptors that did not come are -1; fds may be NULL. */
int wire_receive(int socket, void *message, size_t size, int *fds, unsigned fd_count);

#endif

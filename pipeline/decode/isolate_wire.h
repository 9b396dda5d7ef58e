/* isolate_wire.h: messages between a process and its workers. Internal to decode.
 *
 * One message type in each direction, over sockets that keep message boundaries; every request but
 * ISOLATE_ABORT has one reply. Answers are in the board at the start of the shared memory, so those
 * of a worker that died are not lost. After the board come the rows of the files, contiguous. */
#ifndef CLPIPE_DECODE_ISOLATE_WIRE_H
#define CLPIPE_DECODE_ISOLATE_WIRE_H

#include "decode/decode.h"
#include <sys/types.h>

enum isolate_op {
    /* With the descriptors of `count` files: reads their headers in order and, if the request has
     * `rows`, decodes all rows of small pictures while they fit. The first file not finished by
     * that stays open and is the last one answered. */
    ISOLATE_BEGIN = 1,
    ISOLATE_ROWS, /* the next `rows`; the last one also ends the file */
    ISOLATE_WIDE, /* bytes from `offset` on of one row that exceeds the shared memory; 0: the next */
    ISOLATE_ABORT,
};

struct isolate_file {
    uint64_t offset, bytes, file_bytes; /* as in struct blob */
    int64_t mtime_ns;
    char name[32]; /* its end: only the extension matters */
};

struct isolate_request {
    uint32_t op, rows, count;
    uint32_t display_scale; /* with ISOLATE_BEGIN: the scale given to decode_for_display */
    uint64_t offset;
    struct isolate_file file[DECODE_AHEAD_MAX];
};

struct isolate_answer {
    struct failure failure; /* REASON_NONE: done */
    struct image_info info; /* with ISOLATE_BEGIN */
    /* With ISOLATE_BEGIN: the header was good and rows were decoded ahead: all are in the shared
     * memory, or `failure` is their result. */
    uint32_t ahead;
    uint64_t bytes_read, digest[2];
};

struct isolate_board {
    _Atomic uint32_t answered; /* number of answers; reset by each request */
    struct isolate_answer answer[DECODE_AHEAD_MAX];
};
/* Offset of the rows. */
#define ISOLATE_BOARD ((sizeof(struct isolate_board) + 4095) / 4096 * 4096)

/* To the template. */
enum template_op { TEMPLATE_FORK = 1, TEMPLATE_END };

struct template_request {
    uint32_t op;
    pid_t pid; /* with TEMPLATE_END: the process to kill, unless it has ended */
};

struct template_answer {
    pid_t pid;        /* of a fork; negative: failed, see error_number */
    int error_number; /* errno, or the status of wait() */
};

/* Exit status of a worker for which the system had no memory; the file is not at fault. */
#define WORKER_STARVED 75

#define ISOLATE_FDS 2 /* with TEMPLATE_FORK: the worker's socket, its shared memory */

/* Sends one message with up to DECODE_AHEAD_MAX descriptors; 0 or errno. */
int wire_send(int socket, const void *message, size_t size, const int *fds, unsigned fd_count);
/* Receives a message of exactly `size` bytes. Returns 0 or errno: EPIPE if the other end is closed,
 * EPROTO for another size. Missing descriptors are -1; fds may be NULL. */
int wire_receive(int socket, void *message, size_t size, int *fds, unsigned fd_count);

#endif

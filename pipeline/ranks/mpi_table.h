/* mpi_table.h: the MPI functions used by clpipe, as a table.
 *
 * MPI libraries have different ABIs, so a separate module is compiled for each (mpi_module.c). It
 * is loaded only if a launcher has started this process. The module does not depend on clpipe, and
 * clpipe includes no MPI header.
 *
 * All functions are called by one thread. Functions returning int return 0, or a code for
 * `explain`; sizes may exceed int. Group functions are collective (called by all processes in the
 * same order), except begin_send, probe, receive and send. */
#ifndef CLPIPE_RANKS_MPI_TABLE_H
#define CLPIPE_RANKS_MPI_TABLE_H

#include <stddef.h>
#include <stdint.h>

/* Increased when the table changes. */
#define MPI_TABLE_VERSION 3u

/* The symbol exported by a module. */
#define MPI_TABLE_SYMBOL "clpipe_mpi_table"

/* A message found by probe. */
struct mpi_message {
    int found, tag;
    size_t bytes;
};

struct mpi_place {
    uint32_t rank, size;             /* of all processes */
    uint32_t local_rank, local_size; /* on this host */
    void *world, *local;             /* groups */
};

struct mpi_table {
    unsigned version;
    /* The library's name and version, possibly several lines. May be called before `open`. */
    const char *(*library)(void);
    void (*explain)(char *text, size_t size, int code);
    /* ready: 0 if the caller lacks memory. Fails on all processes if any lacks threads or
     * memory. */
    int (*open)(struct mpi_place *place, int ready);
    /* More ranks than CPUs: waiting yields the CPU. Must be equal on all processes. */
    void (*set_crowded)(int crowded);
    int (*close)(void);
    void (*abort)(int code); /* ends all processes; does not return */

    /* new_group: an empty group, or NULL. first_ranks fills it with the first `count` processes of
     * another group; processes outside call it with NULL. Release groups, except `world`. */
    void *(*new_group)(uint32_t count);
    int (*first_ranks)(void *out, void *group, uint32_t count);
    void (*release)(void *group);

    /* Nonblocking: complete when `test` says so, which frees the request. Buffers must stay valid
     * until then. */
    int (*begin_maximum)(void **request, void *group, int64_t *value);
    int (*begin_send)(void **request, void *group, const void *data, size_t bytes, uint32_t to,
                      int tag);
    int (*test)(int *done, void **request);

    /* Blocking, except probe. */
    int (*probe)(struct mpi_message *message, void *group, uint32_t from);
    int (*receive)(void *group, void *data, size_t bytes, uint32_t from, int tag);
    int (*send)(void *group, const void *data, size_t bytes, uint32_t to, int tag);
    int (*sum)(void *group, int64_t *values, size_t count);
    int (*broadcast)(void *group, void *data, size_t bytes, uint32_t root);
    /* Process r has bytes ends[r - 1] (0 for the first) to ends[r]; all processes get all bytes. */
    int (*gather)(void *group, void *all, const size_t *ends);
};

#endif

/* mpi_table.h: what clpipe calls of MPI, as a table of functions.
 *
 * The binary interfaces of MPI libraries differ, so what calls them is a module of its own for each
 * (mpi_module.c), which is loaded only where a launcher has started this process. The module knows
 * nothing of clpipe, and clpipe includes no header of MPI.
 *
 * All functions are called by one thread. Those that return int return 0, or a code for `explain`;
 * sizes may be larger than MPI's int. Functions of a group are called by all of its processes in the
 * same order, except for begin_send, probe, receive and send. */
#ifndef CLPIPE_MPI_MPI_TABLE_H
#define CLPIPE_MPI_MPI_TABLE_H

#include <stddef.h>
#include <stdint.h>

/* Changes with the table. */
#define MPI_TABLE_VERSION 3u

/* The one symbol of a module. */
#define MPI_TABLE_SYMBOL "clpipe_mpi_table"

/* Message that probe has found. */
struct mpi_message {
    int found, tag;
    size_t bytes;
};

struct mpi_place {
    uint32_t rank, size;             /* of all processes */
    uint32_t local_rank, local_size; /* of those on this host */
    void *world, *local;             /* groups */
};

struct mpi_table {
    unsigned version;
    /* The library's own name and version, in several lines maybe. Before `open`, too. */
    const char *(*library)(void);
    void (*explain)(char *text, size_t size, int code);
    /* Fails on all of them where one lacks threads or memory, also of its own: ready is 0. */
    int (*open)(struct mpi_place *place, int ready);
    /* There are fewer CPUs than ranks: waiting makes way for the others. The same on all of them. */
    void (*set_crowded)(int crowded);
    int (*close)(void);
    void (*abort)(int code); /* ends all processes; does not return */

    /* A group that has no processes yet, or NULL; one that first_ranks fills with the first `count` of
     * another's, called with NULL by those that do not belong to it. To be released, which `world` need
     * not be. */
    void *(*new_group)(uint32_t count);
    int (*first_ranks)(void *out, void *group, uint32_t count);
    void (*release)(void *group);

    /* Begun, and over once `test` says so, which then frees it. What is read and written stays until
     * then. */
    int (*begin_maximum)(void **request, void *group, int64_t *value);
    int (*begin_send)(void **request, void *group, const void *data, size_t bytes, uint32_t to,
                      int tag);
    int (*test)(int *done, void **request);

    /* Wait. */
    int (*probe)(struct mpi_message *message, void *group, uint32_t from); /* does not */
    int (*receive)(void *group, void *data, size_t bytes, uint32_t from, int tag);
    int (*send)(void *group, const void *data, size_t bytes, uint32_t to, int tag);
    int (*sum)(void *group, int64_t *values, size_t count);
    int (*broadcast)(void *group, void *data, size_t bytes, uint32_t root);
    /* Process r has the bytes from ends[r - 1] (the first: 0) to ends[r]; all get all. */
    int (*gather)(void *group, void *all, const size_t *ends);
};

#endif

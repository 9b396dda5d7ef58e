/* mpi_module.c: the table of mpi_table.h for the MPI library that it is compiled with. */
#include "ranks/mpi_table.h"
#include <limits.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

/* Bytes per call; counts are int. */
#define PIECE ((size_t)1 << 30)

/* In addition to MPI's own codes, which are positive. */
enum { NO_THREADS = -2, NO_MEMORY };

struct group {
    MPI_Comm comm;
    int rank, size;
    int *counts; /* for gather, 2 per rank: count and offset */
};

static struct group world, local;
static int crowded;

static MPI_Comm comm_of(void *group)
{
    return ((struct group *)group)->comm;
}

static int open_group(struct group *group, MPI_Comm comm)
{
    group->comm = comm;
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    const int code = MPI_Comm_rank(comm, &group->rank);
    return code == MPI_SUCCESS ? MPI_Comm_size(comm, &group->size) : code;
}

static const char *library(void)
{
    static char text[MPI_MAX_LIBRARY_VERSION_STRING + 1];
    int length;
    if (MPI_Get_library_version(text, &length) != MPI_SUCCESS)
        snprintf(text, sizeof text, "MPI");
    return text;
}

static void explain(char *text, size_t size, int code)
{
    char whole[MPI_MAX_ERROR_STRING + 1] = "";
    int length;
    if (code == NO_THREADS)
        snprintf(whole, sizeof whole, "its MPI_Init_thread does not provide MPI_THREAD_FUNNELED");
    else if (code == NO_MEMORY)
        snprintf(whole, sizeof whole, "one of the processes is out of memory");
    else if (MPI_Error_string(code, whole, &length) != MPI_SUCCESS)
        snprintf(whole, sizeof whole, "error %d", code);
    snprintf(text, size, "%s", whole);
}

/* Gives the first rank time to report the error: when a rank exits, the launcher kills the
 * others. */
static void end_together(void)
{
    MPI_Barrier(world.comm);
    MPI_Finalize();
}

/* Do all ranks have what they need? Otherwise all fail. */
static int agree(int provided, int ready)
{
    const size_t bytes = 2 * (size_t)world.size * sizeof *world.counts;
    world.counts = malloc(bytes);
    local.counts = malloc(bytes);
    int least[2] = {provided, ready && world.counts && local.counts};
    const int code = MPI_Allreduce(MPI_IN_PLACE, least, 2, MPI_INT, MPI_MIN, world.comm);
    if (code != MPI_SUCCESS)
        return code;
    if (least[0] >= MPI_THREAD_FUNNELED && least[1])
        return MPI_SUCCESS;
    atexit(end_together);
    return least[1] ? NO_THREADS : NO_MEMORY;
}

static int open_all(struct mpi_place *place, int ready)
{
    int provided, code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm here = MPI_COMM_NULL;
    if (code == MPI_SUCCESS)
        code = open_group(&world, MPI_COMM_WORLD);
    if (code == MPI_SUCCESS)
        code = agree(provided, ready);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, world.rank, MPI_INFO_NULL,
                                   &here);
    if (code == MPI_SUCCESS)
        code = open_group(&local, here);
    *place = (struct mpi_place){(uint32_t)world.rank,
                                (uint32_t)world.size,
                                (uint32_t)local.rank,
                                (uint32_t)local.size,
                                &world,
                                &local};
    return code;
}

static int close_all(void)
{
    if (local.comm != MPI_COMM_NULL)
        MPI_Comm_free(&local.comm);
    free(world.counts);
    free(local.counts);
    return MPI_Finalize();
}

static void abort_all(int code)
{
    MPI_Abort(MPI_COMM_WORLD, code);
}

static void *new_group(uint32_t count)
{
    struct group *part = malloc(sizeof *part);
    if (!part)
        return NULL;
    *part = (struct group){MPI_COMM_NULL, 0, 0, malloc(2 * (size_t)count * sizeof *part->counts)};
    if (part->counts)
        return part;
    free(part);
    return NULL;
}

static int first_ranks(void *out, void *group, uint32_t count)
{
    const struct group *from = group;
    MPI_Comm comm = MPI_COMM_NULL;
    const int code = MPI_Comm_split(from->comm, (uint32_t)from->rank < count ? 0 : MPI_UNDEFINED,
                                    from->rank, &comm);
    return code == MPI_SUCCESS && out ? open_group(out, comm) : code;
}

static void release(void *group)
{
    struct group *part = group;
    if (part == &world)
        return;
    if (part->comm != MPI_COMM_NULL)
        MPI_Comm_free(&part->comm);
    free(part->counts);
    free(part);
}

/* --- nonblocking operations ------------------------------------------------------------------ */

static int begin(MPI_Request **request, void **out)
{
    *out = *request = malloc(sizeof **request);
    return *request ? MPI_SUCCESS : NO_MEMORY;
}

static int begin_maximum(void **out, void *group, int64_t *value)
{
    MPI_Request *request;
    const int code = begin(&request, out);
    return code == MPI_SUCCESS ? MPI_Iallreduce(MPI_IN_PLACE, value, 1, MPI_INT64_T, MPI_MAX,
                                                comm_of(group), request)
                               : code;
}

static int begin_send(void **out, void *group, const void *data, size_t bytes, uint32_t to, int tag)
{
    MPI_Request *request;
    if (bytes > INT_MAX)
        return MPI_ERR_COUNT;
    const int code = begin(&request, out);
    return code == MPI_SUCCESS
               ? MPI_Isend(data, (int)bytes, MPI_BYTE, (int)to, tag, comm_of(group), request)
               : code;
}

static int test(int *done, void **request)
{
    const int code = MPI_Test(*request, done, MPI_STATUS_IGNORE);
    if (*done || code != MPI_SUCCESS) {
        free(*request);
        *request = NULL;
    }
    return code;
}

/* --- waiting --------------------------------------------------------------------------------- */

/* Waits for an operation started with `code` by polling: MPI's own wait may busy-wait. */
static int finish(int code, MPI_Request *request)
{
    int done = 0;
    while (code == MPI_SUCCESS && !done) {
        code = MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (!done)
            sched_yield();
    }
    return code;
}

static void set_crowded(int now)
{
    crowded = now;
}

static int probe(struct mpi_message *message, void *group, uint32_t from)
{
    MPI_Status status;
    int bytes = 0;
    int code = MPI_Iprobe((int)from, MPI_ANY_TAG, comm_of(group), &message->found, &status);
    if (code != MPI_SUCCESS || !message->found)
        return code;
    code = MPI_Get_count(&status, MPI_BYTE, &bytes);
    message->tag = status.MPI_TAG;
    message->bytes = (size_t)bytes;
    return code;
}

static int receive(void *group, void *data, size_t bytes, uint32_t from, int tag)
{
    MPI_Request request;
    int code = MPI_SUCCESS;
    size_t at = 0;
    do {
        const int piece = (int)(bytes - at < PIECE ? bytes - at : PIECE);
        code = finish(
            MPI_Irecv((char *)data + at, piece, MPI_BYTE, (int)from, tag, comm_of(group), &request),
            &request);
        at += (size_t)piece;
    } while (at < bytes && code == MPI_SUCCESS);
    return code;
}

static int send(void *group, const void *data, size_t bytes, uint32_t to, int tag)
{
    MPI_Request request;
    int code = MPI_SUCCESS;
    size_t at = 0;
    do {
        const int piece = (int)(bytes - at < PIECE ? bytes - at : PIECE);
        code = finish(MPI_Isend((const char *)data + at, piece, MPI_BYTE, (int)to, tag,
                                comm_of(group), &request),
                      &request);
        at += (size_t)piece;
    } while (at < bytes && code == MPI_SUCCESS);
    return code;
}

static int sum(void *group, int64_t *values, size_t count)
{
    MPI_Request request;
    MPI_Comm comm = comm_of(group);
    const size_t most = PIECE / sizeof *values;
    int code = MPI_SUCCESS;
    for (size_t at = 0; at < count && code == MPI_SUCCESS; at += most) {
        const int piece = (int)(count - at < most ? count - at : most);
        code = crowded
                   ? finish(MPI_Iallreduce(MPI_IN_PLACE, values + at, piece, MPI_INT64_T, MPI_SUM,
                                           comm, &request),
                            &request)
                   : MPI_Allreduce(MPI_IN_PLACE, values + at, piece, MPI_INT64_T, MPI_SUM, comm);
    }
    return code;
}

static int broadcast(void *group, void *data, size_t bytes, uint32_t root)
{
    MPI_Request request;
    MPI_Comm comm = comm_of(group);
    int code = MPI_SUCCESS;
    for (size_t at = 0; at < bytes && code == MPI_SUCCESS; at += PIECE) {
        char *piece = (char *)data + at;
        const int count = (int)(bytes - at < PIECE ? bytes - at : PIECE);
        code = crowded
                   ? finish(MPI_Ibcast(piece, count, MPI_BYTE, (int)root, comm, &request), &request)
                   : MPI_Bcast(piece, count, MPI_BYTE, (int)root, comm);
    }
    return code;
}

/* One call if offsets fit int, else one per rank. */
static int gather(void *group, void *all, const size_t *ends)
{
    const int size = ((struct group *)group)->size;
    int *counts = ((struct group *)group)->counts;
    if (ends[size - 1] > INT_MAX) {
        int code = MPI_SUCCESS;
        for (int rank = 0; rank < size && code == MPI_SUCCESS; rank++) {
            const size_t begin = rank > 0 ? ends[rank - 1] : 0;
            code = broadcast(group, (char *)all + begin, ends[rank] - begin, (uint32_t)rank);
        }
        return code;
    }
    for (int rank = 0; rank < size; rank++) {
        const size_t begin = rank > 0 ? ends[rank - 1] : 0;
        counts[rank] = (int)(ends[rank] - begin);
        counts[size + rank] = (int)begin;
    }
    MPI_Request request;
    MPI_Comm comm = comm_of(group);
    return crowded ? finish(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, counts,
                                            counts + size, MPI_BYTE, comm, &request),
                            &request)
                   : MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, counts, counts + size,
                                    MPI_BYTE, comm);
}

extern const struct mpi_table clpipe_mpi_table;
const struct mpi_table clpipe_mpi_table = {
    .version = MPI_TABLE_VERSION,
    .library = library,
    .explain = explain,
    .open = open_all,
    .set_crowded = set_crowded,
    .close = close_all,
    .abort = abort_all,
    .new_group = new_group,
    .first_ranks = first_ranks,
    .release = release,
    .begin_maximum = begin_maximum,
    .begin_send = begin_send,
    .test = test,
    .probe = probe,
    .receive = receive,
    .send = send,
    .sum = sum,
    .broadcast = broadcast,
    .gather = gather,
};

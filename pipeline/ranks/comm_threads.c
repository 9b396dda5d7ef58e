/* comm_threads.c: collective calls between threads, by barriers around reads of each other's
 * memory.
 *
 * A call publishes where its data is, waits for all ranks, reads or combines, and waits again, so
 * that no data is freed while another rank reads it. Between the two waits ranks run nothing else:
 * a rank fails before the first wait of a call or after the second, never in between. */
#include "ranks/comm_threads.h"
#include "base/clock.h"
#include "base/held.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* How long a rank spins before it sleeps: the others usually arrive sooner, and waking up takes a
 * good part of an iteration. */
#define SPIN_NS 200000

struct parcel {
    void *data; /* NULL: none pending */
    size_t bytes;
};

struct post {
    const void *in;
    void *out;
};

struct team {
    uint32_t size;
    enum status (*main)(void *context, struct comm *comm, struct error *err);
    void *context;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Guarded by `lock`: */
    uint32_t arrived;
    _Atomic uint64_t generation; /* of the barrier; also read without `lock` */
    uint32_t failed_rank;
    struct error error;     /* of the first rank that failed */
    struct parcel *parcels; /* one per receiver */
    /* Written by each rank before a barrier, read by others until the next one. */
    struct post *posts;
    const void **given; /* the same for visits */
};

struct member {
    struct comm comm;
    struct team *team;
    pthread_t thread;
    struct error err;
};

static struct team *team_of(struct comm *comm)
{
    return ((struct member *)comm)->team;
}

/* Waits until something has changed, or fails if a rank has failed. Requires `lock`. */
static enum status wait_for_change(struct team *team, struct error *err)
{
    if (team->error.status == STATUS_OK) {
        pthread_cond_wait(&team->changed, &team->lock);
        return STATUS_OK;
    }
    *err = team->error;
    return err->status;
}

/* Spins until all ranks have arrived, or for a while; yields if cores are few. */
static void spin(struct team *team, uint64_t generation)
{
    const int64_t end = clock_now() + SPIN_NS;
    while (atomic_load_explicit(&team->generation, memory_order_relaxed) == generation &&
           clock_now() < end)
        sched_yield();
}

static enum status wait_for_all(struct team *team, struct error *err)
{
    enum status status = STATUS_OK;
    pthread_mutex_lock(&team->lock);
    const uint64_t generation = team->generation;
    if (team->error.status == STATUS_OK && ++team->arrived == team->size) {
        team->arrived = 0;
        team->generation++;
        pthread_cond_broadcast(&team->changed);
    }
    pthread_mutex_unlock(&team->lock);
    spin(team, generation);
    pthread_mutex_lock(&team->lock);
    while (team->generation == generation && status == STATUS_OK)
        status = wait_for_change(team, err);
    pthread_mutex_unlock(&team->lock);
    return status;
}

static enum status post(struct comm *comm, const void *in, void *out, struct error *err)
{
    struct team *team = team_of(comm);
    team->posts[comm->rank] = (struct post){in, out};
    return wait_for_all(team, err);
}

/* Each rank sums its part of the values, for all. */
static enum status sum(struct comm *comm, int64_t *sums, const int64_t *values, size_t count,
                       struct error *err)
{
    const struct team *team = team_of(comm);
    if (post(comm, values, sums, err) != STATUS_OK)
        return err->status;
    uint64_t begin, end;
    comm_part(&begin, &end, comm, comm->rank, count);
    for (uint64_t i = begin; i < end; i++) {
        int64_t total = 0;
        for (uint32_t rank = 0; rank < team->size; rank++)
            total += ((const int64_t *)team->posts[rank].in)[i];
        for (uint32_t rank = 0; rank < team->size; rank++)
            ((int64_t *)team->posts[rank].out)[i] = total;
    }
    return wait_for_all(team_of(comm), err);
}

static enum status gather(struct comm *comm, void *all, const size_t *ends, struct error *err)
{
    const struct team *team = team_of(comm);
    enum status status = post(comm, all, NULL, err);
    for (uint32_t rank = 0; rank < team->size && status == STATUS_OK; rank++) {
        const size_t begin = rank > 0 ? ends[rank - 1] : 0;
        if (rank != comm->rank && ends[rank] > begin)
            memcpy((char *)all + begin, (const char *)team->posts[rank].in + begin,
                   ends[rank] - begin);
    }
    return status == STATUS_OK ? wait_for_all(team_of(comm), err) : status;
}

static enum status collect(struct comm *comm, void *all, const void *own, const size_t *ends,
                           struct error *err)
{
    const struct team *team = team_of(comm);
    const size_t begin = comm->rank > 0 ? ends[comm->rank - 1] : 0;
    if (post(comm, own, all, err) != STATUS_OK)
        return err->status;
    char *to = (char *)team->posts[0].out + begin;
    if (to != own && ends[comm->rank] > begin)
        memcpy(to, own, ends[comm->rank] - begin);
    return wait_for_all(team_of(comm), err);
}

static enum status broadcast(struct comm *comm, void *data, size_t bytes, uint32_t root,
                             struct error *err)
{
    const struct team *team = team_of(comm);
    enum status status = post(comm, data, NULL, err);
    if (status == STATUS_OK && comm->rank != root && bytes > 0)
        memcpy(data, team->posts[root].in, bytes);
    return status == STATUS_OK ? wait_for_all(team_of(comm), err) : status;
}

static enum status visit(struct comm *comm, const void *own,
                         enum status (*take)(void *context, const void *const *all,
                                             struct error *err),
                         void *context, struct error *err)
{
    struct team *team = team_of(comm);
    struct error ignored = ERROR_INIT;
    team->given[comm->rank] = own;
    enum status status = wait_for_all(team, err);
    if (status != STATUS_OK)
        return status;
    status = take(context, team->given, err);
    const enum status waited = wait_for_all(team, status == STATUS_OK ? err : &ignored);
    return status == STATUS_OK ? waited : status;
}

static enum status send_next(struct comm *comm, const void *data, size_t bytes, struct error *err)
{
    struct team *team = team_of(comm);
    struct parcel *parcel = &team->parcels[comm->rank + 1];
    enum status status = STATUS_OK;
    void *copy = malloc(bytes ? bytes : 1);
    if (!copy)
        return error_memory(err, bytes, "ranks");
    memcpy(copy, data, bytes);
    pthread_mutex_lock(&team->lock);
    while (parcel->data && status == STATUS_OK)
        status = wait_for_change(team, err);
    if (status == STATUS_OK) {
        *parcel = (struct parcel){copy, bytes};
        pthread_cond_broadcast(&team->changed);
    }
    pthread_mutex_unlock(&team->lock);
    if (status != STATUS_OK)
        free(copy);
    return status;
}

static enum status receive_previous(struct comm *comm, void *data, size_t bytes, struct error *err)
{
    struct team *team = team_of(comm);
    struct parcel *parcel = &team->parcels[comm->rank];
    enum status status = STATUS_OK;
    pthread_mutex_lock(&team->lock);
    while (!parcel->data && status == STATUS_OK)
        status = wait_for_change(team, err);
    if (status == STATUS_OK) {
        memcpy(data, parcel->data, bytes);
        free(parcel->data);
        parcel->data = NULL;
        pthread_cond_broadcast(&team->changed);
    }
    pthread_mutex_unlock(&team->lock);
    return status;
}

static void fail(struct comm *comm, const struct error *err)
{
    struct team *team = team_of(comm);
    pthread_mutex_lock(&team->lock);
    if (team->error.status == STATUS_OK) {
        team->error = *err;
        team->failed_rank = comm->rank;
    }
    pthread_cond_broadcast(&team->changed);
    pthread_mutex_unlock(&team->lock);
}

static const struct comm_ops ops = {.sum = sum,
                                    .gather = gather,
                                    .collect = collect,
                                    .broadcast = broadcast,
                                    .send = send_next,
                                    .receive = receive_previous,
                                    .fail = fail,
                                    .visit = visit};

static void *run_member(void *argument)
{
    struct member *member = argument;
    struct team *team = member->team;
    if (team->main(team->context, &member->comm, &member->err) != STATUS_OK)
        comm_fail(&member->comm, &member->err);
    return NULL;
}

enum status comm_run_threads(uint32_t *failed, uint32_t ranks,
                             enum status (*main)(void *context, struct comm *comm,
                                                 struct error *err),
                             void *context, struct error *err)
{
    struct team team = {.size = ranks, .main = main, .context = context, .error = ERROR_INIT};
    SCOPED_HELD held = {0};
    struct member *members = held_array(&held, ranks, sizeof *members);
    uint32_t started = 1;
    *failed = 0;
    team.parcels = held_array(&held, ranks, sizeof *team.parcels);
    team.posts = held_array(&held, ranks, sizeof *team.posts);
    team.given = held_array(&held, ranks, sizeof *team.given);
    enum status status = held_check(&held, "ranks", err);
    if (status != STATUS_OK)
        return status;
    pthread_mutex_init(&team.lock, NULL);
    pthread_cond_init(&team.changed, NULL);
    for (uint32_t rank = 0; rank < ranks; rank++)
        members[rank] =
            (struct member){.comm = {rank, ranks, &ops, false}, .team = &team, .err = ERROR_INIT};
    for (; started < ranks; started++) {
        const int error =
            pthread_create(&members[started].thread, NULL, run_member, &members[started]);
        if (error) {
            error_errno(&members[0].err, STATUS_FAILED, error, "pthread_create",
                        "cannot start a thread for each device");
            comm_fail(&members[0].comm, &members[0].err);
            break;
        }
    }
    if (started == ranks)
        run_member(&members[0]);
    for (uint32_t rank = 1; rank < started; rank++)
        pthread_join(members[rank].thread, NULL);
    for (uint32_t rank = 0; rank < ranks; rank++)
        free(team.parcels[rank].data);
    pthread_cond_destroy(&team.changed);
    pthread_mutex_destroy(&team.lock);
    *failed = team.failed_rank;
    const struct error *first = members[0].err.status != STATUS_OK ? &members[0].err : &team.error;
    status = first->status;
    if (status != STATUS_OK)
        *err = *first;
    return status;
}

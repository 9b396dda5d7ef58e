/* comm_processes.c: collective calls between processes.
 *
 * Each call begins with a gate, where all ranks meet and learn whether one of them has failed. What
 * follows the gate cannot fail on some ranks only, so no rank waits there for another that does not
 * come. A rank that fails goes to the next gate and says why. Another rank may instead be waiting
 * for a message from it: it sends one that says so.
 *
 * MPI's own waiting keeps a whole core busy. Ranks wait for each other in gates, which poll, yield
 * and sleep; what follows takes no longer than its data.
 *
 * When ranks work independently for hours (an ingest), the busy ones take part in gates that let no
 * rank through: comm_processes_watch begins one, checks later whether all have joined, and begins
 * the next. A rank at a real gate repeats it until all others have come there, too. So a failure or
 * a stop request reaches all ranks without a message that might cross another. */
#include "ranks/comm_processes.h"
#include "base/clock.h"
#include <assert.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* How long a wait polls without sleeping, and the longest sleep after that. */
#define SPIN_NS      1000000
#define SLEEP_MAX_NS 1000000

enum { TAG_DATA = 1, TAG_NONE, TAG_COUNT };

/* What a rank brings to a gate; the maximum holds for all: arrived, working elsewhere, asked to
 * stop (plus the cause), or failed: lower ranks bring more. */
enum { GATE_ARRIVED, GATE_WORKING, GATE_STOPPING, GATE_FAILED = GATE_STOPPING + STOP_ERROR };

struct sending {
    struct sending *next;
    void *request;
    char data[];
};

struct process {
    struct comm comm;
    const struct mpi_table *mpi;
    void *group;
    struct error error; /* what ended all calls */
    bool lost;          /* MPI has failed */
    bool told;          /* by the previous rank, that it has failed */
    uint64_t sent, received;
    struct sending *sendings; /* to the next rank, possibly not yet received */
    struct stop *stop;        /* from comm_processes_share_stop, or NULL */
    bool stopping;            /* all ranks know of it */
    void *watching;           /* the gate begun while working, or NULL; it reads and writes: */
    int64_t brought;
};

static struct process *process_of(struct comm *comm)
{
    return (struct process *)comm;
}

/* Ends all exchange: this rank cannot do what the others are waiting for, or MPI has failed, which
 * leaves its state undefined. */
static enum status lose(struct process *process, const struct error *err)
{
    process->error = *err;
    process->lost = true;
    return err->status;
}

static enum status check(struct process *process, int code, struct error *err)
{
    char why[512];
    if (code == 0)
        return STATUS_OK;
    process->mpi->explain(why, sizeof why, code);
    error_set(err, STATUS_FAILED, "the ranks can no longer reach each other: %s", why);
    return lose(process, err);
}

enum status comm_processes_check(struct comm *comm, int code, struct error *err)
{
    return check(process_of(comm), code, err);
}

/* --- waiting --------------------------------------------------------------------------------- */

struct patience {
    int64_t since;
    long sleep;
};

static void wait_a_little(struct patience *patience)
{
    const int64_t now = clock_now();
    if (patience->since == 0)
        *patience = (struct patience){now, 20000};
    if (now - patience->since < SPIN_NS) {
        sched_yield();
        return;
    }
    nanosleep(&(struct timespec){0, patience->sleep}, NULL);
    if (patience->sleep < SLEEP_MAX_NS)
        patience->sleep *= 2;
}

static enum status wait_request(struct process *process, void *request, struct error *err)
{
    struct patience patience = {0};
    int done = 0;
    while (!done) {
        if (check(process, process->mpi->test(&done, &request), err) != STATUS_OK)
            return err->status;
        if (!done)
            wait_a_little(&patience);
    }
    return STATUS_OK;
}

/* Begins a gate that takes the maximum of what ranks bring, in process->brought. */
static enum status begin_gate(struct process *process, int64_t own, struct error *err)
{
    const enum stop_cause cause =
        process->stop && !process->stopping ? stop_requested(process->stop) : STOP_NONE;
    const bool stops = cause != STOP_NONE && cause != STOP_ERROR && own < GATE_STOPPING;
    process->brought = stops ? GATE_STOPPING + (int64_t)cause : own;
    return check(process,
                 process->mpi->begin_maximum(&process->watching, process->group, &process->brought),
                 err);
}

/* Waits for the gate that was begun to end. */
static enum status end_gate(struct process *process, struct error *err)
{
    void *request = process->watching;
    process->watching = NULL;
    return wait_request(process, request, err);
}

/* --- failing --------------------------------------------------------------------------------- */

static enum status begin_send(struct process *process, const void *data, size_t bytes, int tag,
                              struct error *err)
{
    struct sending *sending = malloc(sizeof *sending + bytes);
    if (!sending)
        return error_memory(err, bytes, "ranks");
    if (bytes > 0)
        memcpy(sending->data, data, bytes);
    sending->next = process->sendings;
    process->sendings = sending;
    process->sent++;
    return check(process,
                 process->mpi->begin_send(&sending->request, process->group, sending->data, bytes,
                                          process->comm.rank + 1, tag),
                 err);
}

/* Frees completed sends; all: waits for the rest. */
static enum status settle(struct process *process, bool all, struct error *err)
{
    for (struct sending **at = &process->sendings, *sending; (sending = *at);) {
        int done = 1;
        if (all && wait_request(process, sending->request, err) != STATUS_OK)
            return err->status;
        if (!all && check(process, process->mpi->test(&done, &sending->request), err) != STATUS_OK)
            return err->status;
        if (done) {
            *at = sending->next;
            free(sending);
        } else {
            at = &sending->next;
        }
    }
    return STATUS_OK;
}

static enum status find_message(struct process *process, struct mpi_message *message, uint32_t from,
                                struct error *err)
{
    struct patience patience = {0};
    for (;;) {
        if (check(process, process->mpi->probe(message, process->group, from), err) != STATUS_OK)
            return err->status;
        if (message->found)
            return STATUS_OK;
        wait_a_little(&patience);
    }
}

/* Receives messages that were sent but are no longer wanted. */
static enum status drain(struct process *process, struct error *err)
{
    const struct comm *comm = &process->comm;
    uint64_t sent = process->sent;
    bool told = comm->rank == 0;
    if (comm->rank + 1 < comm->size &&
        begin_send(process, &sent, sizeof sent, TAG_COUNT, err) != STATUS_OK)
        return err->status;
    sent = process->received;
    while (!told || process->received < sent) {
        struct mpi_message message;
        if (find_message(process, &message, comm->rank - 1, err) != STATUS_OK)
            return err->status;
        char *data = malloc(message.bytes + sizeof sent);
        if (!data)
            return error_memory(err, message.bytes, "ranks");
        enum status status = check(
            process,
            process->mpi->receive(process->group, data, message.bytes, comm->rank - 1, message.tag),
            err);
        if (status == STATUS_OK && message.tag == TAG_COUNT) {
            memcpy(&sent, data, sizeof sent);
            told = true;
        } else {
            process->received++;
        }
        free(data);
        if (status != STATUS_OK)
            return status;
    }
    return settle(process, true, err);
}

static void name_rank(struct error *err, uint32_t rank)
{
    char host[64] = "", subject[sizeof err->subject + 100];
    gethostname(host, sizeof host - 1);
    snprintf(subject, sizeof subject, "rank %u on %s%s%s", rank, host, err->subject[0] ? ", " : "",
             err->subject);
    error_subject(err, subject);
}

/* Ends all ranks' calls: the first of the failed ranks provides the error. */
static enum status take_failure(struct process *process, const struct error *own, struct error *err)
{
    const struct comm *comm = &process->comm;
    const uint32_t teller = comm->size - (uint32_t)(process->brought - GATE_FAILED) - 1;
    struct error all = own ? *own : (struct error)ERROR_INIT;
    if (comm->rank == teller && teller > 0)
        name_rank(&all, teller);
    if (check(process, process->mpi->broadcast(process->group, &all, sizeof all, teller), err) !=
            STATUS_OK ||
        drain(process, err) != STATUS_OK)
        return lose(process, err);
    *err = process->error = all;
    return err->status;
}

/* Handles a completed gate, for a rank that failed with `own`, or for others. */
static enum status take_gate(struct process *process, const struct error *own, struct error *err)
{
    if (process->brought >= GATE_FAILED)
        return take_failure(process, own, err);
    if (process->brought >= GATE_STOPPING) {
        process->stopping = true;
        if (process->stop)
            stop_request(process->stop, (enum stop_cause)(process->brought - GATE_STOPPING));
    }
    return STATUS_OK;
}

/* own: this rank's failure; NULL: it has not failed, or only knows that another one has. */
static enum status gate(struct process *process, const struct error *own, struct error *err)
{
    const struct comm *comm = &process->comm;
    if (process->error.status != STATUS_OK) {
        *err = process->error;
        return err->status;
    }
    if (process->watching &&
        (end_gate(process, err) != STATUS_OK || take_gate(process, NULL, err) != STATUS_OK))
        return err->status;
    do {
        if (begin_gate(process, own ? GATE_FAILED + comm->size - comm->rank - 1 : GATE_ARRIVED,
                       err) != STATUS_OK ||
            end_gate(process, err) != STATUS_OK || take_gate(process, own, err) != STATUS_OK)
            return err->status;
    } while (process->brought != GATE_ARRIVED && process->brought < GATE_FAILED);
    return STATUS_OK;
}

enum status comm_processes_watch(struct comm *comm, struct error *err)
{
    struct process *process = process_of(comm);
    int done = 0;
    if (process->error.status != STATUS_OK)
        return comm_processes_error(comm, err);
    if (!process->watching)
        return begin_gate(process, GATE_WORKING, err);
    if (check(process, process->mpi->test(&done, &process->watching), err) != STATUS_OK)
        return err->status;
    return done ? take_gate(process, NULL, err) : STATUS_OK;
}

void comm_processes_share_stop(struct comm *comm, struct stop *stop)
{
    process_of(comm)->stop = stop;
}

void comm_processes_fail(struct comm *comm, const struct error *err)
{
    struct process *process = process_of(comm);
    struct error ignored = ERROR_INIT;
    if (process->error.status != STATUS_OK)
        return;
    if (comm->rank + 1 < comm->size &&
        begin_send(process, NULL, 0, TAG_NONE, &ignored) != STATUS_OK) {
        lose(process, err);
        return;
    }
    gate(process, process->told ? NULL : err, &ignored);
}

/* --- calls ----------------------------------------------------------------------------------- */

static enum status sum(struct comm *comm, int64_t *sums, const int64_t *values, size_t count,
                       struct error *err)
{
    struct process *process = process_of(comm);
    if (gate(process, NULL, err) != STATUS_OK)
        return err->status;
    if (sums != values)
        memcpy(sums, values, count * sizeof *sums);
    return check(process, process->mpi->sum(process->group, sums, count), err);
}

static enum status gather(struct comm *comm, void *all, const size_t *ends, struct error *err)
{
    struct process *process = process_of(comm);
    if (gate(process, NULL, err) != STATUS_OK)
        return err->status;
    return check(process, process->mpi->gather(process->group, all, ends), err);
}

static enum status broadcast(struct comm *comm, void *data, size_t bytes, uint32_t root,
                             struct error *err)
{
    struct process *process = process_of(comm);
    if (gate(process, NULL, err) != STATUS_OK)
        return err->status;
    return check(process, process->mpi->broadcast(process->group, data, bytes, root), err);
}

static enum status collect(struct comm *comm, void *all, const void *own, const size_t *ends,
                           struct error *err)
{
    struct process *process = process_of(comm);
    const struct mpi_table *mpi = process->mpi;
    const size_t begin = comm->rank > 0 ? ends[comm->rank - 1] : 0;
    enum status status = gate(process, NULL, err);
    if (status != STATUS_OK)
        return status;
    if (comm->rank > 0)
        return check(process, mpi->send(process->group, own, ends[comm->rank] - begin, 0, TAG_DATA),
                     err);
    if (own != all)
        memcpy(all, own, ends[0]);
    for (uint32_t rank = 1; rank < comm->size && status == STATUS_OK; rank++)
        status = check(process,
                       mpi->receive(process->group, (char *)all + ends[rank - 1],
                                    ends[rank] - ends[rank - 1], rank, TAG_DATA),
                       err);
    return status;
}

/* Does not wait for the receiver. */
static enum status send_next(struct comm *comm, const void *data, size_t bytes, struct error *err)
{
    struct process *process = process_of(comm);
    if (process->error.status != STATUS_OK)
        return comm_processes_error(comm, err);
    if (settle(process, false, err) != STATUS_OK)
        return err->status;
    return begin_send(process, data, bytes, TAG_DATA, err);
}

static enum status receive_previous(struct comm *comm, void *data, size_t bytes, struct error *err)
{
    struct process *process = process_of(comm);
    struct mpi_message message;
    if (process->error.status != STATUS_OK)
        return comm_processes_error(comm, err);
    if (find_message(process, &message, comm->rank - 1, err) != STATUS_OK ||
        check(process,
              process->mpi->receive(process->group, data, message.tag == TAG_DATA ? bytes : 0,
                                    comm->rank - 1, message.tag),
              err) != STATUS_OK)
        return err->status;
    process->received++;
    if (message.tag == TAG_DATA)
        return STATUS_OK;
    process->told = true;
    return error_set(err, STATUS_FAILED, "the previous rank has failed");
}

enum status comm_processes_give(struct comm *comm, uint32_t to, const void *data, size_t bytes,
                                struct error *err)
{
    struct process *process = process_of(comm);
    return check(
        process,
        process->mpi->send(process->group, data, bytes, to, bytes > 0 ? TAG_DATA : TAG_NONE), err);
}

enum status comm_processes_take(struct comm *comm, void *data, size_t bytes, struct error *err)
{
    struct process *process = process_of(comm);
    struct mpi_message message;
    if (find_message(process, &message, 0, err) != STATUS_OK)
        return err->status;
    void *dropped = data ? NULL : malloc(message.bytes + 1);
    if (!data && !dropped) {
        error_memory(err, message.bytes, "ranks");
        return lose(process, err);
    }
    assert(!data || message.tag == TAG_NONE || message.bytes == bytes);
    const int code =
        process->mpi->receive(process->group, data ? data : dropped, message.bytes, 0, message.tag);
    free(dropped);
    if (check(process, code, err) != STATUS_OK)
        return err->status;
    return message.tag == TAG_NONE ? STATUS_END : STATUS_OK;
}

static const struct comm_ops ops = {.sum = sum,
                                    .gather = gather,
                                    .broadcast = broadcast,
                                    .collect = collect,
                                    .send = send_next,
                                    .receive = receive_previous,
                                    .fail = comm_processes_fail};

/* --- opening --------------------------------------------------------------------------------- */

struct comm *comm_processes_reserve(void)
{
    return calloc(1, sizeof(struct process));
}

void comm_processes_open(struct comm *reserved, const struct mpi_table *mpi, void *group,
                         uint32_t rank, uint32_t size)
{
    *process_of(reserved) = (struct process){
        .comm = {rank, size, &ops, true}, .mpi = mpi, .group = group, .error = ERROR_INIT};
}

void comm_processes_close(struct comm **comm)
{
    struct process *process = comm && *comm ? process_of(*comm) : NULL;
    struct error ignored = ERROR_INIT;
    if (!process)
        return;
    *comm = NULL;
    /* Buffers that MPI still reads are not freed. */
    if (process->lost || settle(process, true, &ignored) != STATUS_OK)
        return;
    if (process->group)
        process->mpi->release(process->group);
    free(process);
}

enum status comm_processes_error(const struct comm *comm, struct error *err)
{
    const struct process *process = (const struct process *)comm;
    if (process->error.status != STATUS_OK)
        *err = process->error;
    return process->error.status;
}

bool comm_processes_lost(const struct comm *comm)
{
    return ((const struct process *)comm)->lost;
}

void comm_processes_lose(struct comm *comm, const struct error *err)
{
    lose(process_of(comm), err);
}

enum status comm_processes_meet(struct comm *comm, struct error *err)
{
    return gate(process_of(comm), NULL, err);
}

/* test_comm.c: communication between ranks in threads, and how all ranks end if one of them
 * fails. */
#include "runner.h"

#include "ranks/comm_threads.h"

#include <string.h>

#define RANKS  5
#define VALUES 37
#define ROUNDS 200

static enum status run(enum status (*main)(void *context, struct comm *comm, struct error *err),
                       uint32_t ranks, uint32_t *failed, struct error *err)
{
    *err = (struct error)ERROR_INIT;
    return comm_run_threads(failed, ranks, main, NULL, err);
}

/* Only the main thread may use cmocka's assertions, so ranks return an error. */
static enum status expect(bool right, const char *what, struct error *err)
{
    return right ? STATUS_OK : error_set(err, STATUS_FAILED, "%s", what);
}

static enum status add_up(struct comm *comm, int64_t round, struct error *err)
{
    int64_t values[VALUES], sums[VALUES];
    bool right = true;
    for (int64_t i = 0; i < VALUES; i++)
        values[i] = (comm->rank + 1) * (i + round) * (comm->rank % 2 ? -1 : 1);
    if (comm_sum(comm, sums, values, VALUES, err) != STATUS_OK)
        return err->status;
    for (int64_t i = 0; i < VALUES; i++) {
        int64_t sum = 0;
        for (uint32_t rank = 0; rank < comm->size; rank++)
            sum += (rank + 1) * (i + round) * (rank % 2 ? -1 : 1);
        right = right && sums[i] == sum;
    }
    return expect(right, "sums are wrong", err);
}

/* Rank r contributes r values. */
static enum status gather_and_broadcast(struct comm *comm, uint32_t round, struct error *err)
{
    uint32_t all[RANKS * RANKS] = {0}, count = 0, root = round % comm->size;
    size_t ends[RANKS];
    bool right = true;
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        for (uint32_t i = 0; i < rank; i++, count++)
            all[count] = rank == comm->rank ? 100 * rank + i : UINT32_MAX;
        ends[rank] = count * sizeof *all;
    }
    if (comm_gather(comm, all, ends, err) != STATUS_OK)
        return err->status;
    count = 0;
    for (uint32_t rank = 0; rank < comm->size; rank++)
        for (uint32_t i = 0; i < rank; i++, count++)
            right = right && all[count] == 100 * rank + i;
    uint32_t own[RANKS], collected[RANKS * RANKS] = {0};
    for (uint32_t i = 0; i < comm->rank; i++)
        own[i] = 100 * comm->rank + i;
    if (comm_collect(comm, comm->rank == 0 ? collected : NULL, own, ends, err) != STATUS_OK)
        return err->status;
    right = right && (comm->rank > 0 || memcmp(collected, all, ends[comm->size - 1]) == 0);
    uint32_t told = comm->rank + round;
    if (comm_broadcast(comm, &told, sizeof told, root, err) != STATUS_OK)
        return err->status;
    return expect(right && told == root + round, "the gathered or broadcast values are wrong", err);
}

/* The float64 sum depends on the order. */
static void add_own(void *context, double *sums)
{
    const struct comm *comm = context;
    sums[0] = sums[0] * 3 + comm->rank;
    sums[1] += 1;
}

static enum status fold_in_order(struct comm *comm, struct error *err)
{
    double sums[2] = {1, 0}, expected = 1, earlier = 0, before;
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        earlier = rank == comm->rank ? expected : earlier;
        expected = expected * 3 + rank;
    }
    if (comm_fold(comm, sums, 2, &before, add_own, comm, err) != STATUS_OK)
        return err->status;
    return expect(sums[0] == expected && sums[1] == comm->size && before == earlier,
                  "the values were not folded in rank order", err);
}

struct visit {
    uint32_t ranks, *sum;
    bool fails;
};

static enum status add_all(void *context, const void *const *all, struct error *err)
{
    const struct visit *visit = context;
    for (uint32_t rank = 0; rank < visit->ranks; rank++)
        *visit->sum += *(const uint32_t *)all[rank];
    return visit->fails ? error_set(err, STATUS_FAILED, "a visit has failed") : STATUS_OK;
}

static enum status visit_all(struct comm *comm, uint32_t round, struct error *err)
{
    uint32_t own = comm->rank + round, sum = 0;
    const struct visit visit = {comm->size, &sum, false};
    const enum status status = comm_visit(comm, &own, add_all, (void *)(uintptr_t)&visit, err);
    own = UINT32_MAX; /* the value is no longer needed */
    return status == STATUS_OK
               ? expect(sum == comm->size * (comm->size - 1) / 2 + comm->size * round,
                        "the visited values are wrong", err)
               : status;
}

static enum status exchange(void *context, struct comm *comm, struct error *err)
{
    (void)context;
    for (uint32_t round = 0; round < ROUNDS; round++)
        if (add_up(comm, round, err) != STATUS_OK ||
            gather_and_broadcast(comm, round, err) != STATUS_OK ||
            fold_in_order(comm, err) != STATUS_OK || visit_all(comm, round, err) != STATUS_OK)
            return err->status;
    return STATUS_OK;
}

static void ranks_exchange(void **state)
{
    (void)state;
    for (uint32_t ranks = 1; ranks <= RANKS; ranks++) {
        struct error err;
        uint32_t failed;
        if (run(exchange, ranks, &failed, &err) != STATUS_OK)
            fail_msg("%u ranks: %s", ranks, err.sentence);
    }
}

static enum status one_fails(void *context, struct comm *comm, struct error *err)
{
    (void)context;
    int64_t value = 1;
    if (comm_sum(comm, &value, &value, 1, err) != STATUS_OK)
        return err->status;
    if (comm->rank == 2)
        return error_set(err, STATUS_INTERRUPTED, "rank 2 was stopped");
    for (;;)
        if (comm_sum(comm, &value, &value, 1, err) != STATUS_OK)
            return err->status;
}

static enum status one_never_sends(void *context, struct comm *comm, struct error *err)
{
    (void)context;
    double sums[2] = {0};
    if (comm->rank == 0)
        return error_set(err, STATUS_FAILED, "rank 0 has failed");
    return comm_fold(comm, sums, 2, NULL, add_own, comm, err);
}

static enum status one_visit_fails(void *context, struct comm *comm, struct error *err)
{
    (void)context;
    uint32_t own = 1, sum = 0;
    const struct visit visit = {comm->size, &sum, comm->rank == 1};
    for (;;)
        if (comm_visit(comm, &own, add_all, (void *)(uintptr_t)&visit, err) != STATUS_OK)
            return err->status;
}

static void failure_ends_all(void **state)
{
    (void)state;
    struct error err;
    uint32_t failed;
    assert_int_equal(run(one_fails, RANKS, &failed, &err), STATUS_INTERRUPTED);
    assert_int_equal(failed, 2);
    assert_string_equal(err.sentence, "rank 2 was stopped");
    assert_int_equal(run(one_never_sends, RANKS, &failed, &err), STATUS_FAILED);
    assert_int_equal(failed, 0);
    assert_string_equal(err.sentence, "rank 0 has failed");
    assert_int_equal(run(one_visit_fails, RANKS, &failed, &err), STATUS_FAILED);
    assert_int_equal(failed, 1);
    assert_string_equal(err.sentence, "a visit has failed");
}

static void parts_are_disjoint_and_complete(void **state)
{
    (void)state;
    for (uint32_t size = 1; size <= 7; size++)
        for (uint64_t count = 0; count < 30; count++) {
            struct comm comm = {.size = size};
            uint64_t begin, end, before = 0;
            for (uint32_t rank = 0; rank < size; rank++, before = end) {
                comm_part(&begin, &end, &comm, rank, count);
                assert_int_equal(begin, before);
                assert_true(end - begin <= count / size + 1);
            }
            assert_int_equal(end, count);
        }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(ranks_exchange),
    cmocka_unit_test(failure_ends_all),
    cmocka_unit_test(parts_are_disjoint_and_complete),
};
TEST_GROUP(comm, NULL, NULL)

/* budget.c: grants bytes in the order of the requests.
 *
 * Strictly first come, first served, even if a later, smaller request would fit at once: otherwise
 * a stream of small images would keep a large one waiting forever. */
#include "base/budget.h"
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct budget {
    uint64_t total;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Under the lock: */
    uint64_t taken;
    uint64_t next_ticket; /* of the next thread that asks */
    uint64_t serving;     /* the ticket whose turn it is */
    bool aborted;
};

enum status budget_open(struct budget **out, uint64_t bytes, struct error *err)
{
    *out = NULL;
    struct budget *budget = calloc(1, sizeof *budget);
    if (!budget)
        return error_memory(err, sizeof *budget, "a budget");
    budget->total = bytes;
    pthread_mutex_init(&budget->lock, NULL);
    pthread_cond_init(&budget->changed, NULL);
    *out = budget;
    return STATUS_OK;
}

static bool fits(const struct budget *budget, uint64_t bytes)
{
    return budget->taken == 0 ||
           (budget->taken <= budget->total && bytes <= budget->total - budget->taken);
}

bool budget_take(struct budget *budget, uint64_t bytes)
{
    pthread_mutex_lock(&budget->lock);
    if (bytes > 0) {
        uint64_t ticket = budget->next_ticket++;
        while (!budget->aborted && (ticket != budget->serving || !fits(budget, bytes)))
            pthread_cond_wait(&budget->changed, &budget->lock);
        if (!budget->aborted) {
            budget->taken += bytes;
            budget->serving++;
            /* The next request may fit, too. */
            if (budget->serving != budget->next_ticket)
                pthread_cond_broadcast(&budget->changed);
        }
    }
    bool admitted = !budget->aborted;
    pthread_mutex_unlock(&budget->lock);
    return admitted;
}

void budget_give(struct budget *budget, uint64_t bytes)
{
    pthread_mutex_lock(&budget->lock);
    assert(bytes <= budget->taken);
    budget->taken -= bytes;
    pthread_cond_broadcast(&budget->changed);
    pthread_mutex_unlock(&budget->lock);
}

void budget_abort(struct budget *budget)
{
    pthread_mutex_lock(&budget->lock);
    budget->aborted = true;
    pthread_cond_broadcast(&budget->changed);
    pthread_mutex_unlock(&budget->lock);
}

void budget_close(struct budget **budget)
{
    if (!budget || !*budget)
        return;
    pthread_cond_destroy(&(*budget)->changed);
    pthread_mutex_destroy(&(*budget)->lock);
    free(*budget);
    *budget = NULL;
}

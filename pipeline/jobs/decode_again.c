/* decode_again.c: a decoder per thread, and a memory budget. */
#include "jobs/decode_again.h"

#include "base/budget.h"
#include "base/minmax.h"
#include "result/parameters.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A thread's decoder and buffers, allocated when needed. */
struct bench {
    struct decode *decode;
    struct bench *next;
};

struct decode_again {
    struct reopen *reopen;
    struct budget *budget;
    struct decode_options options;
    const struct decode_again_use *use;
    pthread_mutex_t lock;
    struct bench *idle; /* free list, under the lock */
};

static struct bench *take_bench(struct decode_again *again)
{
    pthread_mutex_lock(&again->lock);
    struct bench *bench = again->idle;
    if (bench)
        again->idle = bench->next;
    pthread_mutex_unlock(&again->lock);
    return bench ? bench : calloc(1, sizeof *bench);
}

static void give_bench(struct decode_again *again, struct bench *bench)
{
    pthread_mutex_lock(&again->lock);
    bench->next = again->idle;
    again->idle = bench;
    pthread_mutex_unlock(&again->lock);
}

static void decode_picture(void *context, const struct reopened *picture)
{
    struct decode_again *again = context;
    const struct decode_again_use *use = again->use;
    struct bench *bench = take_bench(again);
    if (!bench)
        return;
    struct decode **decode = &bench->decode;
    struct failure failure = {.reason = REASON_NONE};
    struct image_info info;
    const bool open = *decode || decode_open(decode, &again->options, NULL) == STATUS_OK;
    if (open && use->side > 0)
        decode_for_people(*decode, decode_scale_for(picture->width, picture->height, use->side));
    if (open &&
        decode_begin(*decode, picture->blob, picture->path, &info, &failure) == REASON_NONE) {
        const uint64_t memory = info.memory +
                                max_u64(DECODE_AGAIN_STRIP, (uint64_t)info.out_width * 3) +
                                (use->memory ? use->memory(use->context, &info) : 0);
        const bool taken = budget_take(again->budget, memory);
        if (!taken || !use->picture(use->context, picture->index, *decode, &info))
            decode_abort(*decode);
        if (taken)
            budget_give(again->budget, memory);
    }
    give_bench(again, bench);
}

static enum status pass_progress(void *context, uint64_t done, struct error *err)
{
    const struct decode_again_use *use = ((struct decode_again *)context)->use;
    return use->progress ? use->progress(use->context, done, err) : STATUS_OK;
}

enum status decode_again_rows(struct decode_again *again, const uint64_t *rows, uint64_t count,
                              const struct decode_again_use *use, struct error *err)
{
    const struct reopen_use opened = {
        .picture = decode_picture, .progress = pass_progress, .context = again};
    again->use = use;
    return reopen_rows(again->reopen, rows, count, &opened, err);
}

enum status decode_again_options(struct decode_options *out, const struct result *result,
                                 struct error *err)
{
    struct parameters *parameters;
    decode_options_default(out);
    if (parameters_open(&parameters, result->parameters, err) != STATUS_OK)
        return STATUS_FAILED;
    const char *alpha = parameters_member(parameters, "alpha");
    const char *icc = parameters_member(parameters, "icc");
    if (alpha)
        out->alpha = strcmp(alpha, "black") == 0  ? ALPHA_BLACK
                     : strcmp(alpha, "drop") == 0 ? ALPHA_DROP
                                                  : ALPHA_WHITE;
    out->icc = icc && strcmp(icc, "apply") == 0;
    parameters_integer(parameters, "max_pixels", &out->max_pixels);
    out->max_scans = parameters_number(parameters, "max_scans", out->max_scans);
    out->scale = parameters_number(parameters, "decode_scale", 1);
    parameters_close(&parameters);
    return STATUS_OK;
}

enum status decode_again_open(struct decode_again **out, const struct reopen_config *config,
                              struct error *err)
{
    struct decode_again *again = *out = calloc(1, sizeof *again);
    if (!again)
        return error_memory(err, sizeof *again, "pictures");
    pthread_mutex_init(&again->lock, NULL);
    enum status status = decode_again_options(&again->options, config->result, err);
    again->options.icc = again->options.icc && decode_icc_library();
    again->options.max_pixels = UINT64_MAX;
    again->options.max_scans = UINT32_MAX;
    again->options.scale = 1;
    again->options.stop = config->stop;
    if (status == STATUS_OK)
        status = budget_open(&again->budget, config->memory, err);
    if (status == STATUS_OK)
        status = reopen_open(&again->reopen, config, err);
    if (status != STATUS_OK)
        decode_again_close(out);
    return status;
}

void decode_again_close(struct decode_again **out)
{
    struct decode_again *again = out ? *out : NULL;
    if (!again)
        return;
    reopen_close(&again->reopen);
    for (struct bench *bench = again->idle, *next; bench; bench = next) {
        next = bench->next;
        decode_close(&bench->decode);
        free(bench);
    }
    budget_close(&again->budget);
    pthread_mutex_destroy(&again->lock);
    free(again);
    *out = NULL;
}

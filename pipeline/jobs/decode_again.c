/* decode_again.c: a decoder per thread, and a memory budget. */
#include "jobs/decode_again.h"

#include "base/budget.h"
#include "base/minmax.h"
#include "result/parameters.h"

#include <stdlib.h>
#include <string.h>

struct decode_again {
    struct reopen *reopen;
    struct workers *workers;
    struct budget *budget;
    struct decode_options options;
    const struct decode_again_use *use;
    struct decode **decode; /* one per thread, opened when it is needed */
};

static void decode_picture(void *context, const struct reopened *picture)
{
    struct decode_again *again = context;
    const struct decode_again_use *use = again->use;
    struct decode **decode = &again->decode[workers_number()];
    struct failure failure = {.reason = REASON_NONE};
    struct image_info info;
    const bool open = *decode || decode_open(decode, &again->options, NULL) == STATUS_OK;
    if (open && use->side > 0)
        decode_for_display(*decode, decode_scale_for(picture->width, picture->height, use->side));
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
}

enum status decode_again_rows(struct decode_again *again, const uint64_t *rows, uint64_t count,
                              const struct decode_again_use *use, struct error *err)
{
    const struct reopen_use opened = {
        .picture = decode_picture, .context = again, .phase = use->phase, .failed = use->failed};
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
    again->workers = config->workers;
    again->decode = calloc(workers_count(config->workers), sizeof(struct decode *));
    enum status status = again->decode ? STATUS_OK : error_memory(err, 64, "pictures");
    if (status == STATUS_OK)
        status = decode_again_options(&again->options, config->result, err);
    again->options.icc = again->options.icc && decode_icc_library();
    again->options.max_pixels = UINT64_MAX;
    again->options.max_scans = UINT32_MAX;
    again->options.scale = 1;
    again->options.stop = config->watch.stop;
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
    for (unsigned i = 0; again->decode && i < workers_count(again->workers); i++)
        decode_close(&again->decode[i]);
    free(again->decode);
    budget_close(&again->budget);
    free(again);
    *out = NULL;
}

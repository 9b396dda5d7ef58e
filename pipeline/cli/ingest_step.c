/* ingest_step.c: options into a configuration of the pipeline. */
#include "cli/ingest_step.h"
#include "base/json.h"
#include "base/path.h"
#include "cli/report_json.h"
#include "cli/signals.h"
#include "cli/summary.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static enum status read_features(struct ingest_plan *plan, const struct options *options,
                                 struct error *err)
{
    const struct option *row = option_find(options->command, "feature", 7);
    const char *const *spec = options->features.text;
    unsigned count = options->features.count;
    if (count == 0) {
        spec = &row->initial;
        count = 1;
    }
    for (unsigned i = 0; i < count; i++) {
        enum status status = feature_set_add(&plan->features, spec[i],
                                             (enum feature_normalize)options->normalize, err);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

/* A missing source is a mistyped command line, found before a device is woken up. What else may be
 * wrong with one, the walk says. */
static enum status look_for_sources(const struct options *options, struct error *err)
{
    bool standard_input = false;
    for (unsigned i = 0; i < options->operand_count; i++) {
        const char *source = options->operand[i];
        char shown[256];
        struct stat st;
        path_for_message(shown, sizeof shown, source);
        if (strcmp(source, "-") == 0) {
            if (standard_input)
                return misuse(err, options->command, "SOURCE - can be given once");
            standard_input = true;
            continue;
        }
        const char *path = source[0] == '@' ? source + 1 : source;
        if (stat(path, &st) != 0 && (errno == ENOENT || errno == ENOTDIR))
            return error_set(err, STATUS_USAGE, "there is no %s %s: check the name%s",
                             source[0] == '@' ? "list" : "file or directory",
                             source[0] == '@' ? shown + 1 : shown,
                             source[0] == '@' ? " (./@... is a directory or file of that name)"
                                              : "");
    }
    return STATUS_OK;
}

static void json_list(struct json *json, const char *key, const struct text_list *list)
{
    json_open_array(json, key);
    for (unsigned i = 0; i < list->count; i++)
        report_bytes(json, NULL, list->text[i]);
    json_close_array(json);
}

/* The order of the keys is part of the file's identity. */
static enum status write_parameters(struct ingest_plan *plan, const struct options *options,
                                    struct error *err)
{
    struct json json;
    char word[32];
    json_init(&json, true);
    json_open_object(&json, NULL);
    json_open_array(&json, "features");
    for (unsigned i = 0; i < plan->features.count; i++) {
        const struct feature *feature = &plan->features.feature[i];
        char text[sizeof feature->name + sizeof feature->spec];
        snprintf(text, sizeof text, "%s=%s", feature->name, feature->spec);
        json_string(&json, NULL, text);
    }
    json_close_array(&json);
    json_string(&json, "alpha", option_choice(word, sizeof word, options, "alpha"));
    json_uint(&json, "max_pixels", options->max_pixels);
    json_uint(&json, "max_scans", options->max_scans);
    json_uint(&json, "decode_scale", 1u << options->decode_scale);
    json_bool(&json, "follow_symlinks", options->follow_symlinks);
    json_bool(&json, "hidden", options->hidden);
    json_list(&json, "include", &options->include);
    json_list(&json, "exclude", &options->exclude);
    json_uint(&json, "limit", options->limit);
    json_close_object(&json);
    const char *text = json_finish(&json);
    plan->parameters = text ? strdup(text) : NULL;
    json_clear(&json);
    return plan->parameters ? STATUS_OK : error_memory(err, 1024, "the parameters");
}

enum status ingest_plan_open(struct ingest_plan *out, const struct options *options,
                             struct error *err)
{
    memset(out, 0, sizeof *out);
    if (!options->output && !options->dry_run)
        return misuse(err, options->command, "the file to write is missing: give -o F.h5");
    enum status status = read_features(out, options, err);
    if (status == STATUS_OK)
        status = look_for_sources(options, err);
    if (status == STATUS_OK)
        status = write_parameters(out, options, err);
    return status;
}

void ingest_plan_close(struct ingest_plan *plan)
{
    free(plan->parameters);
    memset(plan, 0, sizeof *plan);
}

struct finding {
    struct compute *compute;
    const struct options *options;
};

static enum status find_devices(void *context, struct ingest_devices *found, struct error *err)
{
    struct finding *finding = context;
    enum status status = compute_find_devices(finding->compute, finding->options, err);
    *found = (struct ingest_devices){&finding->compute->devices, finding->compute->chosen,
                                     finding->compute->count};
    return status;
}

enum status ingest_step(struct ingest_report *report, const struct ingest_plan *plan,
                        const struct options *options, struct compute *compute,
                        struct progress *progress, struct error *err)
{
    struct ingest_config config = {
        .sources = options->operand,
        .source_count = options->operand_count,
        .include = options->include.text,
        .include_count = options->include.count,
        .exclude = options->exclude.text,
        .exclude_count = options->exclude.count,
        .follow_symlinks = options->follow_symlinks,
        .hidden = options->hidden,
        .limit = options->limit,
        .features = plan->features,
        .parameters = plan->parameters,
        .output = options->output,
        .fresh = options->fresh,
        .retry_failed = options->retry_failed,
        .strict = options->strict,
        .dry_run = options->dry_run,
        .find_devices = find_devices,
        .find_devices_context = &(struct finding){compute, options},
        .trace = compute->trace,
        .threads = compute->threads,
        .memory = options->memory,
        .device_memory = options->device_memory,
        .slot_bytes = options->slot_size,
        .slot_count = (unsigned)options->slots,
        .stop = signals_stop(),
        .progress = progress_ingest,
        .progress_context = progress,
        .command_line = options->command_line,
    };
    decode_options_default(&config.decode);
    config.decode.alpha = (enum alpha_mode)options->alpha;
    config.decode.max_pixels = options->max_pixels;
    config.decode.max_scans = (uint32_t)options->max_scans;
    config.decode.scale = 1u << options->decode_scale;
    memset(report, 0, sizeof *report);
    enum status status = pipeline_ingest(report, &config, err);
    progress_end(progress);
    return status;
}

enum status ingest_verdict(const struct ingest_report *report, const struct options *options)
{
    if (options->dry_run)
        return report->images_failed ? STATUS_PARTIAL : STATUS_OK;
    if (report->summary.unchanged)
        return STATUS_OK;
    return failures_counted(report->summary.by_reason) ? STATUS_PARTIAL : STATUS_OK;
}

/* ingest_step.c: turns options into a configuration of the pipeline. */
#include "cli/ingest_step.h"
#include "base/cpus.h"
#include "base/json.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/source_name.h"
#include "cli/compute.h"
#include "cli/ingest_ranks.h"
#include "cli/report_json.h"
#include "cli/signals.h"
#include "cli/stored_options.h"
#include "cli/summary.h"
#include "decode/isolate.h"
#include "features/kind.h"
#include "features/preset.h"
#include "ingest/bounds.h"
#include "ingest/codebook_job.h"
#include "net/runtime.h"
#include "result/parameters.h"
#include "sources/walk.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A missing source is probably a typing mistake, so it is reported before devices are opened. The
 * walk reports other problems. */
enum status ingest_look_for_sources(const struct options *options, struct error *err)
{
    bool standard_input = false;
    for (unsigned i = 0; i < options->operand_count; i++) {
        const char *source = options->operand[i];
        const char *shown = PATH_TEXT(source);
        struct stat st;
        if (strcmp(source, "-") == 0 || source_is_stream(source)) {
            if (standard_input)
                return misuse(err, "SOURCE - can be given only once");
            standard_input = true;
            continue;
        }
        if (source[0] != '@' && walk_knows_name(source))
            continue;
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

/* The file's own limit: its contents stay, whatever the limit of a later run is. */
static uint64_t stored_limit(const struct takeover *t)
{
    const uint64_t limit = t->options.image.limit;
    if (!t->file)
        return limit;
    if (!t->limit || !limit)
        return 0;
    return t->limit > limit ? t->limit : limit;
}

static enum status write_parameters(char **parameters, const struct feature_set *features,
                                    const struct takeover *t, struct error *err)
{
    struct json json;
    json_init(&json, true);
    json_open_object(&json, NULL);
    json_open_array(&json, "features");
    for (unsigned i = 0; i < features->count; i++) {
        /* The specifications as given, without digests of codebooks. */
        const struct feature *feature = &features->feature[i];
        char asked[sizeof feature->spec], text[sizeof feature->name + sizeof asked];
        codebooks_spec_asked(asked, sizeof asked, feature->spec);
        snprintf(text, sizeof text, "%s=%s", feature->name, asked);
        json_string(&json, NULL, text);
    }
    json_close_array(&json);
    stored_write(&json, &t->options.image.common);
    json_uint(&json, "limit", stored_limit(t));
    json_close_object(&json);
    *parameters = json_take(&json);
    return *parameters ? STATUS_OK : error_memory(err, 1024, "the parameters");
}

/* `option` concerns all images, so all sources are walked and must exist, unless `optional`. */
static enum status walk_all(struct ingest_plan *plan, const char *option, bool optional,
                            struct error *err)
{
    struct places *places = &plan->takeover.places;
    for (unsigned i = 0; i < places->count; i++) {
        if (places->walked[i])
            continue;
        const char *source = places->path[i], *path = source + (source[0] == '@');
        struct stat st;
        const bool stream = source_is_stream(source), list = stream || strcmp(source, "-") == 0;
        const bool there = !list && (walk_knows_name(path) || stat(path, &st) == 0);
        if (!there && optional)
            continue;
        if (list)
            return error_set(
                err, STATUS_USAGE,
                "%s is for all sources, but the %s of source %s is not given: give %s as well, or "
                "remove its images with --drop-source %s",
                option, stream ? "stream" : "list", source, source, source);
        if (!there)
            return error_set(err, STATUS_USAGE,
                             "%s is for all sources, but the source %s does not exist: give its "
                             "new path, or remove its images with --drop-source",
                             option, PATH_TEXT(places->stored[i]));
        places->walked[i] = source;
        places->unread--;
    }
    return STATUS_OK;
}

/* Whether some of the features have codebooks. */
static bool has_codebooks(const struct feature_set *features)
{
    for (unsigned i = 0; i < features->count; i++)
        if (features->feature[i].kind->descriptor)
            return true;
    return false;
}

/* Whether the file has the features of that preset (NULL: no preset). */
static bool has_preset(const struct takeover *t, const struct preset *preset)
{
    char name[32] = "";
    if (t->old.preset)
        parameters_text(name, sizeof name, t->old.preset, "name");
    return t->file && preset && strcmp(name, preset->name) == 0;
}

/* Whether --quality adds a feature that the file lacks. Those of an unfinished run are not taken over if the command
 * gives features. */
static bool lacks_quality(const struct takeover *t, bool given)
{
    for (unsigned i = 0; i < t->old.features.count; i++)
        if ((t->file || (t->unfinished && !given)) &&
            t->old.features.feature[i].kind == &feature_quality)
            return false;
    return t->options.quality;
}

static enum status check_quality(const struct ingest_plan *plan, struct error *err)
{
    const int scale = plan->takeover.options.image.decode_scale;
    for (unsigned i = 0; i < plan->features.count; i++)
        if (plan->features.feature[i].kind == &feature_quality && scale != 0)
            return misuse(err,
                          "--decode-scale %u: quality is measured on the whole picture, at scale 1",
                          1u << scale);
    return STATUS_OK;
}

/* The features of the new file, from SPECs or the preset (set in *out), and how they are joined. */
static enum status choose_features(struct ingest_plan *plan, const struct preset **out,
                                   struct error *err)
{
    struct takeover *t = &plan->takeover;
    const struct ingest_options *ingest = &t->options;
    const char *specs[FEATURE_MAX + 1];
    const char *const *spec = ingest->features.text;
    unsigned count = ingest->features.count;
    const struct preset *preset = ingest->preset >= 0 ? &presets[ingest->preset] : NULL;
    if (preset && count > 0)
        return misuse(err, "--preset and --feature cannot be combined");
    if (!preset && count == 0 && !t->file && !t->unfinished) {
        preset = preset_find(PRESET_DEFAULT);
        if (ingest->blur)
            return misuse(err,
                          "--blur needs --feature: the default features, preset %s, have no blur",
                          preset->name);
    }
    *out = preset;
    plan->keeps_few = preset && has_preset(t, preset->few) && !ingest->add;
    if (preset && !has_preset(t, preset) && !plan->keeps_few) {
        count = preset_count(preset);
        for (unsigned i = 0; i < count; i++)
            specs[i] = preset->feature[i].spec;
        spec = specs;
    }
    const bool joined = preset && count > 0;
    if (lacks_quality(t, count > 0) && count < FEATURE_MAX) {
        for (unsigned i = 0; i < count; i++)
            specs[i] = spec[i];
        specs[count++] = feature_quality.name;
        spec = specs;
    }
    enum status status = takeover_features(&plan->features, plan->first, t, spec, count, err);
    if (status == STATUS_OK)
        status = check_quality(plan, err);
    for (unsigned i = 0; i < plan->features.count && status == STATUS_OK; i++)
        status = feature_bind_model(&plan->features.feature[i], err);
    if (status != STATUS_OK)
        return status;
    plan->preset = joined ? preset_json(preset) : t->old.preset ? strdup(t->old.preset) : NULL;
    return plan->preset || (!joined && !t->old.preset) ? STATUS_OK
                                                       : error_memory(err, 1024, "the preset");
}

/* The features for collections of few images, as plan->few. */
static enum status plan_few(struct ingest_plan *plan, const struct preset *few, struct error *err)
{
    const struct ingest_options *ingest = &plan->takeover.options;
    struct feature_set *features = &plan->few.features;
    char *parameters = NULL;
    enum status status = STATUS_OK;
    features->store = (enum feature_store)ingest->store;
    for (unsigned i = 0; i < preset_count(few) && status == STATUS_OK; i++)
        status = feature_set_add(features, few->feature[i].spec,
                                 (enum feature_normalize)ingest->normalize, err);
    if (status == STATUS_OK && ingest->quality)
        status = feature_set_add(features, feature_quality.name, NORMALIZE_L1, err);
    if (status == STATUS_OK)
        status = write_parameters(&parameters, features, &plan->takeover, err);
    if (status != STATUS_OK)
        return status;
    plan->few.parameters = parameters;
    plan->few.preset = preset_json(few);
    plan->has_few = plan->few.preset != NULL;
    return plan->has_few ? STATUS_OK : error_memory(err, 1024, "the preset");
}

/* The file's features, options and sources, completed and checked by those of the command. */
static enum status plan_update(struct ingest_plan *plan, struct error *err)
{
    struct takeover *t = &plan->takeover;
    const struct options *options = &t->options.image.common;
    const struct preset *preset = NULL;
    enum status status = choose_features(plan, &preset, err);
    if (status == STATUS_OK && preset && preset->few && !t->file && t->share.count <= 1)
        status = plan_few(plan, preset->few, err);
    if (status != STATUS_OK || !t->file)
        return status;
    status = takeover_check(t, err);
    if (status != STATUS_OK)
        return status;
    const bool added = plan->features.count > t->old.features.count;
    plan->redo = added || t->options.retrain;
    if (t->options.retrain && !has_codebooks(&plan->features))
        return error_set(err, STATUS_USAGE, "--retrain: %s has no codebooks",
                         PATH_TEXT(options->output));
    if (plan->redo || t->options.add_codes)
        return walk_all(plan,
                        added        ? "--add"
                        : plan->redo ? "--retrain"
                                     : "--add-codes",
                        false, err);
    /* The share of a shard depends on all sources. */
    if (t->share.count > 0)
        return walk_all(plan, "a shard", false, err);
    if (t->options.sidecar)
        return walk_all(plan, "--sidecar", false, err);
    if (takeover_raises_limits(t))
        return walk_all(plan, "a raised limit", true, err);
    return options_given(options, "thumbnails") ? walk_all(plan, "--thumbnails", true, err)
                                                : STATUS_OK;
}

/* --codebook for features that need none is a mistake. */
static enum status check_codebook_used(const struct ingest_plan *plan, struct error *err)
{
    return plan->takeover.options.codebook && !has_codebooks(&plan->features)
               ? misuse(err, "--codebook: no feature needs one")
               : STATUS_OK;
}

/* Neither are --normalize, --blur and --store if every feature says otherwise. */
static enum status check_defaults_used(const struct ingest_plan *plan, struct error *err)
{
    const struct ingest_options *ingest = &plan->takeover.options;
    const struct options *options = &ingest->image.common;
    static const char *const names[] = {"normalize", "blur", "store"};
    bool used[3] = {false};
    for (unsigned i = 0; i < plan->features.count; i++) {
        const struct feature *feature = &plan->features.feature[i];
        if (feature->kind == &feature_quality)
            continue;
        used[0] |= feature->normalize == (enum feature_normalize)ingest->normalize;
        used[1] |= (feature->image.blur > 0) == (ingest->blur > 0);
        used[2] |= feature->store == (enum feature_store)ingest->store;
    }
    for (int i = 0; i < 3; i++)
        if (options_given(options, names[i]) && !used[i])
            return misuse(err, "--%s %s: every feature has another of its own", names[i],
                          CHOICE_WORD(options, names[i]));
    return STATUS_OK;
}

/* Shards that learned their own codebooks would have features that cannot be compared. */
static enum status check_shard_codebooks(const struct ingest_plan *plan, struct error *err)
{
    const struct ingest_options *ingest = &plan->takeover.options;
    char preset[32] = "";
    if (plan->takeover.share.count <= 1 || ingest->image.common.dry_run)
        return STATUS_OK;
    if (plan->preset && ingest->features.count == 0)
        parameters_text(preset, sizeof preset, plan->preset, "name");
    for (unsigned i = 0; i < plan->features.count; i++) {
        const struct feature *feature = &plan->features.feature[i];
        if (!feature->kind->descriptor || feature->codebook)
            continue;
        if (*preset)
            return error_set(
                err, STATUS_USAGE,
                "--shard: all shards need the same codebooks, and the preset %s learns "
                "some: learn them once with clpipe codebook SOURCE... --preset %s "
                "-o C.h5, and give --codebook C.h5; or take --preset color",
                preset, preset);
        return error_set(
            err, STATUS_USAGE,
            "--shard: all shards need the same codebook of %s: learn it once with "
            "clpipe codebook SOURCE... --feature %s=%s -o C.h5, and give --codebook C.h5",
            feature->name, feature->name, feature->spec);
    }
    return STATUS_OK;
}

enum status ingest_plan_open(struct ingest_plan *out, const struct ingest_options *ingest,
                             struct error *err)
{
    const struct options *options = &ingest->image.common;
    memset(out, 0, sizeof *out);
    runtime_configure(&(struct runtime_config){.library = ingest->onnxruntime,
                                               .threads = compute_threads(options),
                                               .isolate = ingest->image.isolate});
    if (!options->output && !options->dry_run)
        return misuse(err, "the output is missing: give -o F.h5");
    if (ingest->image.icc && !decode_icc_library())
        return error_set(err, STATUS_FAILED,
                         "this build cannot apply ICC profiles: install liblcms2-dev and build "
                         "again, or leave out --icc apply");
    enum status status =
        compute_variant(&out->variant, "histogram-variant", ingest->histogram_variant, err);
    if (status != STATUS_OK)
        goto out;
    status = ingest_look_for_sources(options, err);
    if (status != STATUS_OK)
        goto out;
    if (ingest->strict && options_given(options, "allow-failures"))
        status = misuse(err, "--strict and --allow-failures cannot be combined");
    else if (ingest->add && ingest->fresh)
        status = misuse(err, "--add and --fresh cannot be combined");
    else if (ingest->add && ingest->features.count == 0 && ingest->preset < 0 && !ingest->quality)
        status = misuse(err, "--add requires --feature, --preset or --quality");
    if (status == STATUS_OK)
        status = takeover_open(&out->takeover, ingest, err);
    if (status != STATUS_OK)
        goto out;
    if ((status = plan_update(out, err)) || (status = check_codebook_used(out, err)) ||
        (status = check_defaults_used(out, err)) || (status = check_shard_codebooks(out, err)))
        goto out;
    status = write_parameters(&out->parameters, &out->features, &out->takeover, err);
out:
    if (status != STATUS_OK)
        ingest_plan_close(out);
    return status;
}

void ingest_plan_close(struct ingest_plan *plan)
{
    free(plan->parameters);
    free(plan->preset);
    free((char *)(uintptr_t)plan->few.parameters);
    free((char *)(uintptr_t)plan->few.preset);
    takeover_close(&plan->takeover);
    memset(plan, 0, sizeof *plan);
}

static void read_decode(struct decode_options *out, const struct image_options *image)
{
    decode_options_default(out);
    out->alpha = (enum alpha_mode)image->alpha;
    out->max_pixels = image->max_pixels;
    out->max_scans = (uint32_t)image->max_scans;
    out->scale = 1u << image->decode_scale;
    out->icc = image->icc != 0;
}

static uint64_t memory_of(const struct options *options, bool streams)
{
    return options_given(options, "memory")
               ? options->memory
               : bounds_default(options->memory, compute_threads(options), streams,
                                memory_available());
}

enum status ingest_isolate(struct isolate **out, const struct image_options *image,
                           struct error *err)
{
    const struct options *options = &image->common;
    struct isolate_config config = {
        .slot_bytes = bounds_isolate_slot(memory_of(options, false), compute_threads(options)),
        .max_seconds = image->max_decode_seconds,
        .headers_only = options->dry_run,
        .stop = signals_stop()};
    *out = NULL;
    if (!image->isolate && image->max_decode_seconds > 0)
        return misuse(err, "--max-decode-seconds requires --isolate: only a decoder in a separate "
                           "process can be stopped");
    if (!image->isolate)
        return STATUS_OK;
    read_decode(&config.options, image);
    return isolate_open(out, &config, err);
}

struct walk_options ingest_walk_options(const struct options *options,
                                        const struct walk_given *given)
{
    return (struct walk_options){.sources = options->operand,
                                 .source_count = options->operand_count,
                                 .include = given->include.text,
                                 .include_count = given->include.count,
                                 .exclude = given->exclude.text,
                                 .exclude_count = given->exclude.count,
                                 .follow_symlinks = given->follow_symlinks,
                                 .archives = given->archives,
                                 .hidden = given->hidden};
}

/* The content of the file to be written, with its sources and its share. */
static struct walk_options walk_of(const struct takeover *t)
{
    const struct image_options *image = &t->options.image;
    struct walk_options out = ingest_walk_options(&image->common, &image->walk);
    out.sources = t->places.walked;
    out.directories = t->places.directory;
    out.source_count = t->places.count;
    out.shard_index = t->share.index;
    out.shard_count = t->share.count;
    out.limit = image->limit;
    return out;
}

void ingest_tell_passed(struct walk_passed passed)
{
    if (passed.links > 0)
        log_message(LOG_NOTICE, "%llu symbolic link%s not followed (use --follow-symlinks)",
                    (unsigned long long)passed.links,
                    passed.links == 1 ? " to a directory was" : "s to directories were");
    if (passed.archives > 0)
        log_message(LOG_NOTICE, "%llu archive%s not opened (use --archives)",
                    (unsigned long long)passed.archives,
                    passed.archives == 1 ? " in a directory was" : "s in directories were");
    if (passed.repeated > 0)
        log_message(LOG_NOTICE,
                    "notice: a path that is listed more than once counts once: %s left out",
                    NUMBER_OF(passed.repeated, "repetition"));
}

/* Checks that need the number of files: too many clusters, or learned features for a file that began with
 * too few images. */
static enum status check_count(void *context, uint64_t files, struct error *err)
{
    const struct ingest_plan *plan = context;
    const struct takeover *t = &plan->takeover;
    if (plan->most_clusters > files && files > 0)
        return error_set(err, STATUS_FAILED, "k is %llu, but there %s only %s; choose a smaller k",
                         (unsigned long long)plan->most_clusters, files == 1 ? "is" : "are",
                         NUMBER_OF(files, "file"));
    if (!plan->keeps_few)
        return STATUS_OK;
    const char *preset = CHOICE_WORD(&t->options.image.common, "preset");
    const char *shown = PATH_TEXT(t->options.image.common.output);
    if (files < INGEST_FEW || t->too_alike) {
        log_message(LOG_NOTICE,
                    "notice: %s keeps the features for few images; --add adds those of preset %s",
                    shown, preset);
        return STATUS_OK;
    }
    error_set(err, STATUS_USAGE, "%s has the features for few images, not those of preset %s",
              shown, preset);
    takeover_advise_add(err, t);
    return STATUS_USAGE;
}

enum status ingest_step(struct ingest_report *report, const struct ingest_plan *plan,
                        struct isolate *isolate, struct ingest_ranks *ranks, struct error *err)
{
    const struct takeover *takeover = &plan->takeover;
    const struct ingest_options *ingest = &takeover->options;
    const struct options *options = &ingest->image.common;
    const struct compute *compute = &options->call->compute;
    const uint64_t memory = memory_of(options, false);
    uint64_t shared =
        isolate ? bounds_isolate_slot(memory, compute_threads(options)) * compute->threads : 0;
    struct ingest_config config = {
        .walk = walk_of(takeover),
        .features = plan->features,
        .few = plan->has_few ? &plan->few : NULL,
        .store = {.output = options->output,
                  .content = {.parameters = plan->parameters,
                              .preset = plan->preset,
                              .share = takeover->share,
                              .sources = takeover->places.stored,
                              .directories = takeover->places.directory,
                              .source_count = takeover->places.count},
                  .old = takeover->file ? &takeover->old.content : NULL,
                  .source_before = takeover->file ? takeover->places.source_before : NULL,
                  .redo = plan->redo,
                  .remade = plan->remade,
                  .compress = ingest->compress,
                  .fresh = ingest->fresh,
                  .retry_failed = ingest->retry_failed,
                  .retry_limited = takeover_raises_limits(takeover),
                  .require_codes = ingest->add_codes},
        .sidecars = ingest->sidecar,
        .checksum = ingest->checksum,
        .strict = ingest->strict,
        .allow_removal = ingest->allow_removal,
        .thumbnails = options_given(options, "thumbnails") ? THUMBNAILS_WANTED
                      : plan->thumbnails                   ? THUMBNAILS_NEW_FILES
                                                           : THUMBNAILS_KEPT,
        .thumbnail_size = (uint32_t)ingest->thumbnails,
        .dry_run = options->dry_run,
        .find_devices = compute_selection,
        .find_devices_context = (void *)(uintptr_t)options,
        .isolate = isolate,
        .trace = compute->trace,
        .threads = compute->threads,
        .memory = memory - shared,
        .memory_streams = memory_of(options, true) - shared,
        .device_memory = options->device_memory,
        .slot_bytes = ingest->slot_size,
        .slot_count = (unsigned)ingest->slots,
        .variant = plan->variant,
        .jpeg = (enum plan_jpeg)ingest->jpeg_pixels,
        .stop = signals_stop(),
        .progress = progress_ingest,
        .progress_context = &options->call->progress,
        .command_line = options->command_line,
        .check_count = takeover->share.count > 1 ? NULL : check_count,
        .check_context = (void *)(uintptr_t)plan,
    };
    if (options->memory < INGEST_MEMORY_MIN)
        log_message(LOG_NOTICE, "notice: --memory is less than an ingest needs; 16M is used");
    read_decode(&config.decode, &ingest->image);
    if (ranks)
        ingest_ranks_configure(&config, ranks);
    memset(report, 0, sizeof *report);
    enum status status = ingest_run(report, &config, err);
    report->memory += shared;
    progress_end(&options->call->progress);
    if (status == STATUS_OK)
        takeover_tell(takeover);
    else if (status == STATUS_USAGE)
        report_refused(report->removed);
    ingest_tell_passed(report->passed);
    return status;
}

enum status ingest_learn(struct codebooks *codebooks, struct feature_set *features,
                         uint32_t *pictures, uint32_t *unread, const struct feature_set *given,
                         uint32_t sample, const struct image_options *image,
                         struct isolate *isolate, struct error *err)
{
    const struct options *options = &image->common;
    enum status status = ingest_look_for_sources(options, err);
    if (status != STATUS_OK)
        return status;
    struct ingest_config config = {
        .walk = ingest_walk_options(options, &image->walk),
        .features = *given,
        .find_devices = compute_selection,
        .find_devices_context = (void *)(uintptr_t)options,
        .isolate = isolate,
        .trace = options->call->compute.trace,
        .threads = options->call->compute.threads,
        .memory = options->memory,
        .stop = signals_stop(),
        .progress = progress_ingest,
        .progress_context = &options->call->progress,
    };
    config.walk.limit = image->limit;
    read_decode(&config.decode, image);
    status = codebook_job_run(codebooks, features, pictures, unread, &config, sample, err);
    progress_end(&options->call->progress);
    return status;
}

enum status ingest_verdict(const struct ingest_report *report, const struct ingest_options *options)
{
    const bool dry = options->image.common.dry_run;
    const uint64_t failed = failures_counted(dry ? report->by_reason : report->summary.by_reason),
                   images = dry ? report->images_ok : report->summary.images;
    return share_covers(&options->allow_failures, failed, images + failed) ? STATUS_OK
                                                                           : STATUS_PARTIAL;
}

/* cmd_tune.c: clpipe tune: finds the fastest kernels on this machine for later ingests. */
#include "base/log.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/compute.h"
#include "cli/option_rows.h"
#include "cli/report_json.h"
#include "cli/signals.h"
#include "device/tuner.h"
#include "ingest/bounds.h"

/* The options of the command. */
struct tune_options {
    struct options common;
    struct text_list features;
    uint64_t bytes, rounds;
    bool show, forget;
};

#define OWN struct tune_options

struct table {
    struct transcript to;
    unsigned wrong; /* trials that miscounted */
};

/* --- lines ----------------------------------------------------------------------------------- */

static void show_head(struct table *table, const char *last)
{
    sink_printf(&table->to.sink, "%-18s %-10s %10s %6s %11s %s\n", "feature", "variant",
                "work-group", "copies", "tile pixels", last);
}

static void show_choice(struct table *table, const char *feature,
                        const struct histogram_choice *choice)
{
    const char *variant = histogram_variant_name(choice->variant);
    sink_printf(&table->to.sink, "%-18s %-10s %10u %6u %11u ", feature, variant,
                choice->shape.group, choice->shape.copies, choice->shape.tile_pixels);
    json_string(table->to.json, "feature", feature);
    json_string(table->to.json, "variant", variant);
    json_uint(table->to.json, "group", choice->shape.group);
    json_uint(table->to.json, "copies", choice->shape.copies);
    json_uint(table->to.json, "tile_pixels", choice->shape.tile_pixels);
}

static void show_trial(void *context, const struct tuner_trial *trial)
{
    static const char *const outcome[] = {"measured", "slow", "unusable", "wrong"};
    struct table *table = context;
    json_open_object(table->to.json, NULL);
    show_choice(table, trial->spec, &trial->choice);
    json_string(table->to.json, "outcome", outcome[trial->outcome]);
    if (trial->outcome == TUNER_MEASURED)
        json_double(table->to.json, "bytes_per_second", trial->rate);
    if (trial->outcome == TUNER_UNUSABLE)
        report_bytes(table->to.json, "reason", trial->reason);
    json_close_object(table->to.json);
    table->wrong += trial->outcome == TUNER_WRONG;
    if (trial->outcome == TUNER_MEASURED) {
        sink_printf(&table->to.sink, "%8.2f\n", trial->rate * 1e-9);
    } else if (trial->outcome == TUNER_UNUSABLE) {
        sink_line(&table->to.sink, " skipped: %s", trial->reason);
    } else {
        sink_text(&table->to.sink, trial->outcome == TUNER_SLOW ? "    slow\n" : "   WRONG\n");
    }
    sink_flush(&table->to.sink); /* the next one takes a while */
}

/* As in an ingest with the same --memory. */
static uint64_t slot_bytes(const struct ocl_device *device, const struct options *options)
{
    return staging_slot_bytes(device, bounds_slots(options->memory));
}

/* The kernels that an ingest uses for each class of features. */
static enum status show_tuning(struct table *table, const struct tuning *tuning,
                               const struct ocl_device *device, const struct options *options,
                               struct error *err)
{
    show_head(table, "   speed");
    json_open_array(table->to.json, "tuned");
    enum status status = STATUS_OK;
    for (unsigned c = 0; c < TUNING_CLASSES && status == STATUS_OK; c++) {
        struct feature_set one = {0};
        status = feature_set_add(&one, tuning_class_spec(c), NORMALIZE_NONE, err);
        if (status != STATUS_OK)
            break;
        struct histogram_choice choice = tuning_choice(tuning, &one.feature[0], device);
        const unsigned gain = choice.tuned ? tuning->entry[c].gain : 0;
        if (choice.shape.group == 0)
            choice.shape = histogram_variant_shape(choice.variant, one.feature[0].cell_bins,
                                                   slot_bytes(device, options), device);
        json_open_object(table->to.json, NULL);
        show_choice(table, tuning_class_name(c), &choice);
        json_bool(table->to.json, "measured", choice.tuned);
        if (gain)
            json_double(table->to.json, "gain", gain * 1e-3);
        json_close_object(table->to.json);
        if (gain)
            sink_printf(&table->to.sink, "%8.2f x usual\n", gain * 1e-3);
        else
            sink_text(&table->to.sink, choice.tuned ? "the usual one fails\n" : "not measured\n");
    }
    json_close_array(table->to.json);
    return status;
}

/* --- measuring ------------------------------------------------------------------------------- */

static enum status measure(struct table *table, struct tuning *tuning,
                           const struct ocl_device *device, const struct tune_options *own,
                           struct error *err)
{
    struct ocl_context *context = NULL;
    struct tuner tuner = {
        .device = device, .stop = signals_stop(), .tried = show_trial, .context = table};
    const struct bench_config config = {
        .bytes = own->bytes ? own->bytes : slot_bytes(device, &own->common),
        .device_memory = own->common.device_memory,
        .rounds = (unsigned)own->rounds,
    };
    /* Before a minute of measuring, checks that results can be stored. */
    enum status status = tuning_save(tuning, device, err);
    if (status == STATUS_OK)
        status = ocl_context_open(&context, device, own->common.call->compute.trace, err);
    if (status == STATUS_OK)
        status = bench_open(&tuner.bench, context, &config, err);
    show_head(table, "    GB/s");
    json_open_array(table->to.json, "tried");
    const struct text_list *specs = &own->features;
    const unsigned count = specs->count ? specs->count : TUNING_CLASSES;
    for (unsigned i = 0; i < count && status == STATUS_OK; i++) {
        status =
            tuner_run(tuning, &tuner, specs->count ? specs->text[i] : tuning_class_spec(i), err);
        /* Stores each result as it is found, so that an interrupted tune keeps its work. */
        if (status == STATUS_OK)
            status = tuning_save(tuning, device, err);
    }
    json_close_array(table->to.json);
    bench_close(&tuner.bench);
    ocl_context_close(&context);
    return status;
}

static enum status tune_device(struct table *table, const struct ocl_device *device,
                               const struct tune_options *own, struct error *err)
{
    struct tuning tuning;
    bool found = false;
    enum status status = STATUS_OK;
    struct sink *sink = &table->to.sink;
    sink_line(sink, "%s, driver %s", device->name, device->driver);
    json_open_object(table->to.json, NULL);
    report_bytes(table->to.json, "device", device->name);
    report_bytes(table->to.json, "driver", device->driver);
    if (own->forget) {
        status = tuning_forget(&found, device, err);
        if (status == STATUS_OK)
            sink_text(sink, found ? "discarded\n" : "nothing was stored\n");
        json_bool(table->to.json, "forgotten", found);
    } else {
        tuning_load(&tuning, device);
        if (!own->show)
            status = measure(table, &tuning, device, own, err);
        if (!own->show && status == STATUS_OK)
            sink_text(sink, "kept:\n");
        if (status == STATUS_OK)
            status = show_tuning(table, &tuning, device, &own->common, err);
    }
    json_close_object(table->to.json);
    return status;
}

/* --- the command ----------------------------------------------------------------------------- */

static enum status check_options(const struct options *options, struct error *err)
{
    const struct tune_options *own = (const struct tune_options *)options;
    const bool measures = options_given(options, "feature") || options_given(options, "bytes") ||
                          options_given(options, "rounds");
    if (own->show && own->forget)
        return misuse(err, "--show and --forget cannot be combined");
    if (measures && (own->show || own->forget))
        return misuse(err, "--%s cannot be combined with --feature, --bytes or --rounds",
                      own->show ? "show" : "forget");
    return compute_check_specs(own->features.text, own->features.count, err);
}

static enum status run_tune(const struct options *options, struct error *err)
{
    const struct compute *compute = &options->call->compute;
    struct table table = {.wrong = 0};
    signals_install(0);
    enum status status = check_options(options, err);
    if (status == STATUS_OK)
        status = compute_open(options, true, err);
    if (status == STATUS_OK)
        status = transcript_open(&table.to, options, err);
    if (status != STATUS_OK)
        return status;
    json_open_array(table.to.json, NULL);
    for (unsigned i = 0; status == STATUS_OK && i < compute->count; i++)
        status = tune_device(&table, &compute->devices.device[compute->chosen[i]],
                             (const struct tune_options *)options, err);
    json_close_array(table.to.json);
    status = sink_end(&table.to.sink, status, err);
    if (status == STATUS_OK && table.wrong > 0) {
        log_message(LOG_ERROR, "%s miscounted and will not be used",
                    NUMBER_OF(table.wrong, "kernel"));
        status = STATUS_PARTIAL;
    }
    return status;
}

static const struct option rows[] = {
    LIST("feature", features, "SPEC",
         "feature to measure, repeatable; the result applies to all features of its kind",
         .note = "one of each kind"),
    SIZE("bytes", bytes, "SIZE", "size of the pixels in one launch", .note = "the size of a slot"),
    NUMBER("rounds", rounds, "N",
           "number of launches, of which the median counts; limited to 2 seconds, but at least 3",
           .initial = "9", .min = 1, .max = 1000),
    FLAG("show", show, "print the kernels that ingest uses on the device; measure nothing"),
    FLAG("forget", forget, "discard the stored results of the device; measure nothing"),
    {.name = NULL}};

const struct command command_tune = {
    .name = "tune",
    .goal = GOAL_MACHINE,
    .arguments = "[OPTIONS]",
    .summary = "find the fastest histogram kernels of a device",
    .about = "Computes histograms of synthetic images (constant, natural and random; large and "
             "small) with every variant that the device supports, with several numbers of "
             "work-groups and private copies and several tile sizes. The fastest for each kind of "
             "feature is stored until the driver or clpipe's kernels change; run and ingest use "
             "it unless --histogram-variant selects another. This affects speed, never results. A "
             "variant that miscounts is never used, and the exit status is 1.",
    .examples = "  clpipe tune --device all\n"
                "  clpipe tune --feature rgb:bins=8x8x8\n"
                "  clpipe tune --show",
    .operand_name = "",
    .computes = true,
    .ranks_apart = true,
    .group = {{"What to measure", rows}},
    .size = sizeof(OWN),
    .run = run_tune};

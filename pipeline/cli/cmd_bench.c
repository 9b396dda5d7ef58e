/* cmd_bench.c: clpipe bench: speed of histogram kernels, compared with that of memory. */
#include "base/text.h"
#include "cli/commands.h"
#include "cli/compute.h"
#include "cli/option_rows.h"
#include "cli/report_json.h"
#include "cli/signals.h"
#include "device/bench.h"
#include <stdio.h>
#include <string.h>

/* The options of the command. */
struct bench_options {
    struct options common;
    struct text_list features;
    const char *variant, *fill, *shape;
    uint64_t bytes, rounds;
};

#define OWN struct bench_options

/* The requested values, as masks over the enumerations. */
struct selection {
    const char *const *specs;
    unsigned spec_count, fills, shapes;
    enum histogram_variant variant; /* HISTOGRAM_VARIANTS: all that the device supports */
    bool insist;                    /* on that variant with those specs */
};

struct table {
    struct transcript to;
    uint64_t wrong;
};

/* --- what to measure ------------------------------------------------------------------------- */

/* The mask for a name in an enumeration; "all" sets every bit. */
static enum status parse_names(unsigned *mask, const char *text, const char *option,
                               const char *(*name_of)(unsigned), struct error *err)
{
    char names[128] = "all";
    unsigned found = 0;
    for (unsigned i = 0; name_of(i); i++) {
        if (strcmp(text, "all") == 0 || strcmp(text, name_of(i)) == 0)
            found |= 1u << i;
        text_add_name(names, sizeof names, name_of(i));
    }
    if (!found)
        return misuse(err, "--%s %s is unknown; choose one of %s", option, text, names);
    *mask = found;
    return STATUS_OK;
}

static enum status select_work(struct selection *out, const struct bench_options *own,
                               struct error *err)
{
    static const char *const usual[] = {"rgb:bins=256", "gray:bins=256", "rgb:bins=8x8x8", "hsv"};
    *out = (struct selection){
        .specs = own->features.count ? own->features.text : (const char *const *)usual,
        .spec_count = own->features.count ? own->features.count : sizeof usual / sizeof *usual,
        .fills = 1u << BENCH_CONSTANT | 1u << BENCH_NATURAL | 1u << BENCH_RANDOM,
        .shapes = 1u << BENCH_LARGE,
        .variant = HISTOGRAM_VARIANTS,
        .insist = own->variant && own->features.count > 0,
    };
    enum status status = compute_check_specs(out->specs, out->spec_count, err);
    if (status == STATUS_OK && own->fill)
        status = parse_names(&out->fills, own->fill, "fill", bench_fill_name, err);
    if (status == STATUS_OK && own->shape)
        status = parse_names(&out->shapes, own->shape, "shape", bench_shape_name, err);
    if (status == STATUS_OK && own->variant)
        status = compute_variant(&out->variant, "variant", own->variant, err);
    return status;
}

/* --- lines ----------------------------------------------------------------------------------- */

static double rate_of(const struct bench_result *result)
{
    return result->seconds > 0 ? (double)result->bytes / result->seconds : 0;
}

static void show(struct table *table, const char *what, const char *feature, const char *shape,
                 const char *fill, const struct bench_result *result, double read)
{
    const double rate = rate_of(result);
    struct sink *sink = &table->to.sink;
    sink_printf(sink, "%-10s %-18s %-8s %-9s %7.1f %10.3f %8.2f", what, feature, shape, fill,
                (double)result->bytes * 1e-6, result->seconds * 1e3, rate * 1e-9);
    if (read > 0)
        sink_printf(sink, " %5.1f %%", rate / read * 100);
    if (result->plain_ratio > 0)
        sink_printf(sink, " %8.2f", result->plain_ratio);
    if (result->wrong)
        sink_printf(sink, "  WRONG: %llu counters", (unsigned long long)result->wrong);
    sink_text(sink, "\n");
    sink_flush(sink); /* the next one takes a while */
    json_open_object(table->to.json, NULL);
    json_string(table->to.json, "what", what);
    json_string(table->to.json, "feature", feature);
    json_string(table->to.json, "shape", shape);
    json_string(table->to.json, "fill", fill);
    json_uint(table->to.json, "bytes", result->bytes);
    json_uint(table->to.json, "pictures", result->pictures);
    json_double(table->to.json, "seconds", result->seconds);
    json_double(table->to.json, "bytes_per_second", rate);
    if (read > 0)
        json_double(table->to.json, "share_of_read", rate / read);
    if (result->plain_ratio > 0)
        json_double(table->to.json, "plain_ratio", result->plain_ratio);
    json_uint(table->to.json, "wrong", result->wrong);
    json_close_object(table->to.json);
    table->wrong += result->wrong;
}

/* --- measuring ------------------------------------------------------------------------------- */

/* Variants unsuited to the device are measured only on request. */
static bool suits(enum histogram_variant variant, const struct selection *selection,
                  const struct ocl_device *device)
{
    if (selection->variant != HISTOGRAM_VARIANTS)
        return variant == selection->variant;
    return variant != HISTOGRAM_AUTO && histogram_variant_suits(variant, device);
}

static enum status measure_variants(struct table *table, struct bench *bench,
                                    const struct selection *selection,
                                    const struct ocl_device *device, const char *shape,
                                    const char *fill, double read, bool first, struct error *err)
{
    for (unsigned f = 0; f < selection->spec_count; f++) {
        for (int v = 0; v < HISTOGRAM_VARIANTS; v++) {
            enum histogram_variant variant = (enum histogram_variant)v;
            struct bench_result result;
            if (!suits(variant, selection, device))
                continue;
            if (stop_requested(signals_stop()) != STOP_NONE)
                return error_set(err, STATUS_INTERRUPTED, "interrupted");
            struct feature_set one = {0};
            char reason[128];
            enum status status = feature_set_add(&one, selection->specs[f], NORMALIZE_NONE, err);
            if (status == STATUS_OK && !selection->insist &&
                !histogram_variant_takes(reason, sizeof reason, variant, &one.feature[0], device)) {
                if (first) /* once, not for every fill and shape */
                    sink_printf(&table->to.sink, "%-10s %-18s passed over: %s\n",
                                histogram_variant_name(variant), selection->specs[f], reason);
                continue;
            }
            if (status == STATUS_OK)
                status = bench_histogram(&result, bench, variant, NULL, selection->specs[f], err);
            if (status != STATUS_OK)
                return status;
            show(table, histogram_variant_name(variant), selection->specs[f], shape, fill, &result,
                 read);
        }
    }
    return STATUS_OK;
}

/* Measures one fill of one shape: reading, uploading, the plain loop, then every variant. */
static enum status measure_fill(struct table *table, struct bench *bench,
                                const struct selection *selection, const struct ocl_device *device,
                                unsigned shape, unsigned fill, bool first, struct error *err)
{
    const char *shape_name = bench_shape_name(shape), *fill_name = bench_fill_name(fill);
    struct bench_result result;
    enum status status = bench_fill(bench, (enum bench_shape)shape, (enum bench_fill)fill, err);
    if (status != STATUS_OK)
        return status;
    status = bench_read(&result, bench, err);
    if (status != STATUS_OK)
        return status;
    const double read = rate_of(&result);
    show(table, "read only", "-", shape_name, fill_name, &result, 0);
    status = bench_upload(&result, bench, err);
    if (status != STATUS_OK)
        return status;
    if (result.bytes)
        show(table, "upload", "-", shape_name, fill_name, &result, 0);
    if (device->type & CL_DEVICE_TYPE_CPU) {
        status = bench_plain(&result, bench, err);
        if (status != STATUS_OK)
            return status;
        show(table, "plain C", "rgb:bins=256", shape_name, fill_name, &result, read);
    }
    return measure_variants(table, bench, selection, device, shape_name, fill_name, read, first,
                            err);
}

static enum status measure_device(struct table *table, const struct ocl_device *device,
                                  const struct selection *selection,
                                  const struct bench_options *own, struct error *err)
{
    struct ocl_context *context = NULL;
    struct bench *bench = NULL;
    const bool cpu = device->type & CL_DEVICE_TYPE_CPU;
    struct bench_config config = {
        .bytes = own->bytes,
        .device_memory = own->common.device_memory,
        .rounds = (unsigned)own->rounds,
        .threads = device->compute_units > 0 ? device->compute_units : 1,
    };
    struct sink *sink = &table->to.sink;
    sink_line(sink, "%s, driver %s", device->name, device->driver);
    sink_line(sink, "%-10s %-18s %-8s %-9s %7s %10s %8s %7s%s", "what", "feature", "shape", "fill",
              "MB", "median ms", "GB/s", "of read", cpu ? "  x plain" : "");
    sink_flush(sink);
    json_open_object(table->to.json, NULL);
    report_bytes(table->to.json, "device", device->name);
    report_bytes(table->to.json, "driver", device->driver);
    json_open_array(table->to.json, "measured");
    enum status status = ocl_context_open(&context, device, own->common.call->compute.trace, err);
    if (status == STATUS_OK)
        status = bench_open(&bench, context, &config, err);
    bool first = true;
    for (unsigned shape = 0; shape < BENCH_SHAPES && status == STATUS_OK; shape++) {
        for (unsigned fill = 0; fill < BENCH_FILLS && status == STATUS_OK; fill++) {
            if (!(selection->shapes >> shape & 1 && selection->fills >> fill & 1))
                continue;
            status = measure_fill(table, bench, selection, device, shape, fill, first, err);
            first = false;
        }
    }
    json_close_array(table->to.json);
    json_close_object(table->to.json);
    bench_close(&bench);
    ocl_context_close(&context);
    return status;
}

static enum status run_bench(const struct options *options, struct error *err)
{
    const struct bench_options *own = (const struct bench_options *)options;
    const struct compute *compute = &options->call->compute;
    struct selection selection;
    struct table table = {.wrong = 0};
    signals_install(0);
    enum status status = select_work(&selection, own, err);
    if (status == STATUS_OK)
        status = compute_open(options, true, err);
    if (status == STATUS_OK)
        status = transcript_open(&table.to, options, err);
    if (status != STATUS_OK)
        return status;
    json_open_array(table.to.json, NULL);
    for (unsigned i = 0; status == STATUS_OK && i < compute->count; i++)
        status = measure_device(&table, &compute->devices.device[compute->chosen[i]], &selection,
                                own, err);
    json_close_array(table.to.json);
    status = sink_end(&table.to.sink, status, err);
    return status == STATUS_OK ? compute_verdict(table.wrong, "wrong counter") : status;
}

static const struct option rows[] = {
    LIST("feature", features, "SPEC", "feature to compute, repeatable",
         .note = "rgb:bins=256, gray:bins=256, rgb:bins=8x8x8, hsv"),
    TEXT("variant", variant, "NAME",
         "measure only this kernel (" VARIANTS "); auto: the one that ingest uses",
         .note = "all that the device supports"),
    TEXT("fill", fill, "constant|two|natural|random|sorted|all", "content of the synthetic images",
         .note = "constant, natural and random"),
    TEXT("shape", shape, "large|512x384|224x224|all",
         "size of the synthetic images; large: one that fills the buffer", .note = "large"),
    SIZE("bytes", bytes, "SIZE", "size of the pixels in one launch",
         .note = "64M on CPU devices, 1G on others"),
    NUMBER("rounds", rounds, "N",
           "number of launches, of which the median is shown; limited to 2 seconds, but at least 3",
           .initial = "9", .min = 1, .max = 1000),
    {.name = NULL}};

const struct command command_bench = {
    .name = "bench",
    .goal = GOAL_MACHINE,
    .arguments = "[OPTIONS]",
    .summary = "measure how fast a device computes histograms",
    .about =
        "Computes histograms of synthetic images with every variant, and compares the time on the "
        "device's clock with that of a kernel that only reads the pixels; on CPU devices also "
        "with a plain C loop on the same number of threads. All counts are checked against plain "
        "C. Exits with 1 if one differs. To measure whole ingests, use tools/bench.",
    .examples = "  clpipe bench\n"
                "  clpipe bench --device gpu --feature rgb:bins=256 --fill all --shape all",
    .operand_name = "",
    .computes = true,
    .ranks_apart = true,
    .group = {{"What to measure", rows}},
    .size = sizeof(OWN),
    .run = run_bench};

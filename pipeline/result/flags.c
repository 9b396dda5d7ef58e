/* flags.c: thresholds. */
#include "result/flags.h"

#include "base/compare.h"
#include "base/minmax.h"
#include "base/path.h"
#include "result/graph.h"
#include "result/h5.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum flag {
    FLAG_DARK,
    FLAG_LIGHT,
    FLAG_LOW_CONTRAST,
    FLAG_LOW_INFORMATION,
    FLAG_BLURRY,
    FLAG_GREY,
    FLAG_BORDERED,
    FLAG_ODD_ASPECT,
    FLAG_ODD_SIZE,
    FLAG_OUTLIER,
};

const char *const flag_names[FLAGS] = {"dark",     "light",  "low-contrast", "low-information",
                                       "blurry",   "grey",   "bordered",     "odd-aspect",
                                       "odd-size", "outlier"};

#define OF_PIXELS ((1u << FLAG_ODD_ASPECT) - 1)
#define BLOCK     4096u

/* Sets flags from values computed from pixels. */
static uint32_t flags_of_values(const uint32_t *v)
{
    const bool sides = min_u32(v[QUALITY_LEFT], v[QUALITY_RIGHT]) >= 12;
    const bool ends = min_u32(v[QUALITY_TOP], v[QUALITY_BOTTOM]) >= 12;
    const uint32_t sharpness = v[QUALITY_SHARPNESS];
    return (uint32_t)(v[QUALITY_P99] < 84) << FLAG_DARK |
           (uint32_t)(v[QUALITY_P5] > 238) << FLAG_LIGHT |
           (uint32_t)(v[QUALITY_P95] - v[QUALITY_P5] < 40) << FLAG_LOW_CONTRAST |
           (uint32_t)(v[QUALITY_DETAIL] < 3000) << FLAG_LOW_INFORMATION |
           (uint32_t)(sharpness > 0 && sharpness < 400) << FLAG_BLURRY |
           (uint32_t)(v[QUALITY_COLOURED] < 5 && v[QUALITY_SATURATION] < 400) << FLAG_GREY |
           (uint32_t)(sides || ends) << FLAG_BORDERED;
}

/* The first and the third quartile; reorders `values`. */
static void quartiles(double *first, double *third, double *values, uint64_t count)
{
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    *first = count ? values[(count - 1) / 4] : 0;
    *third = count ? values[(count - 1) - (count - 1) / 4] : 0;
}

/* --- reading ------------------------------------------------------------------------------------ */

static enum status read_values(struct flags *out, struct result *result, struct error *err)
{
    const uint64_t images = result_images(result);
    for (unsigned i = 0; i < result->feature_count && !out->feature; i++) {
        const struct result_feature *feature = &result->features[i];
        if (result_feature_describes(feature) && feature->dimension == QUALITY_VALUES &&
            !feature->is_float)
            out->feature = feature;
    }
    if (!out->feature)
        return STATUS_OK;
    out->known |= OF_PIXELS;
    uint32_t *values = malloc(BLOCK * QUALITY_VALUES * sizeof *values);
    enum status status =
        values ? STATUS_OK : error_memory(err, BLOCK * QUALITY_VALUES * 4, "flags");
    for (uint64_t at = 0; at < images && status == STATUS_OK; at += BLOCK) {
        const uint64_t block = min_u64(BLOCK, images - at);
        status = result_feature_read_counts(out->feature, at, block, values, err);
        for (uint64_t i = 0; i < block && status == STATUS_OK; i++)
            out->of[at + i] |= flags_of_values(values + i * QUALITY_VALUES);
    }
    free(values);
    return status;
}

/* A side is the square root of an image's pixels. With r the ratio of the third quartile to the first,
 * sides below the first / (2 r) or above the third * 2 r are odd. */
static enum status compare_sizes(struct flags *out, struct result *result, double *side,
                                 double *sorted, struct error *err)
{
    const uint64_t images = result_images(result);
    struct result_image image;
    double first, third;
    for (uint64_t i = 0; i < images; i++) {
        const enum status status = result_image_at(result, i, &image, err);
        if (status != STATUS_OK)
            return status;
        const uint64_t most = max_u32(image.width, image.height),
                       least = min_u32(image.width, image.height);
        out->of[i] |= (uint32_t)(100 * least < 35 * most) << FLAG_ODD_ASPECT;
        side[i] = sorted[i] = sqrt((double)most * (double)least);
    }
    quartiles(&first, &third, sorted, images);
    const double times = first > 0 ? 2 * third / first : 2;
    for (uint64_t i = 0; i < images; i++)
        out->of[i] |= (uint32_t)(side[i] * times < first || side[i] > third * times)
                      << FLAG_ODD_SIZE;
    out->known |= 1u << FLAG_ODD_ASPECT | 1u << FLAG_ODD_SIZE;
    return STATUS_OK;
}

/* Distances to the nearest neighbour: those that exceed the third quartile by more than three times
 * the difference between the quartiles are outliers. */
static enum status compare_neighbours(struct flags *out, struct graph *graph, double *nearest,
                                      double *sorted, struct error *err)
{
    uint64_t count = 0;
    double first, third;
    float *squared = malloc((size_t)BLOCK * graph->n * sizeof *squared);
    enum status status =
        squared ? STATUS_OK : error_memory(err, BLOCK * 4 * (size_t)graph->n, "neighbours");
    for (uint64_t at = 0; at < graph->rows && status == STATUS_OK; at += BLOCK) {
        const uint64_t block = min_u64(BLOCK, graph->rows - at);
        status = h5_read_rows(graph->distances_dataset, VALUE_F32, at, block, squared, err);
        for (uint64_t i = 0; i < block && status == STATUS_OK; i++) {
            nearest[at + i] = sqrt((double)squared[i * graph->n]);
            if (!isnan(nearest[at + i]))
                sorted[count++] = nearest[at + i];
        }
    }
    free(squared);
    if (status != STATUS_OK)
        return status;
    quartiles(&first, &third, sorted, count);
    for (uint64_t i = 0; i < graph->rows; i++)
        out->of[i] |= (uint32_t)(nearest[i] > third + 3 * (third - first)) << FLAG_OUTLIER;
    out->known |= 1u << FLAG_OUTLIER;
    return STATUS_OK;
}

/* From the first feature with neighbours. */
static enum status read_neighbours(struct flags *out, struct result *result, double *nearest,
                                   double *sorted, struct error *err)
{
    const unsigned features = result->feature_count;
    for (unsigned i = 0; i <= features; i++) {
        struct graph graph = {0};
        const char *name = i == 0 ? RESULT_PRESET : result->features[i - 1].name;
        enum status status = graph_open(&graph, result, name, NULL);
        if (status == STATUS_OK && graph.rows == result_images(result) && graph.n > 0)
            status = compare_neighbours(out, &graph, nearest, sorted, err);
        else if (status == STATUS_OK)
            status = STATUS_END;
        graph_close(&graph);
        if (status == STATUS_OK || (err && err->status != STATUS_OK))
            return status;
    }
    return STATUS_OK;
}

enum status flags_read(struct flags *out, struct result *result, struct error *err)
{
    const uint64_t images = result_images(result);
    *out = (struct flags){.feature = NULL};
    if (images == 0 || result->named)
        return STATUS_OK;
    double *numbers = malloc((size_t)images * 2 * sizeof *numbers);
    out->of = calloc((size_t)images, sizeof *out->of);
    enum status status = numbers && out->of ? STATUS_OK : error_memory(err, images * 20, "flags");
    if (status == STATUS_OK)
        status = read_values(out, result, err);
    if (status == STATUS_OK)
        status = compare_sizes(out, result, numbers, numbers + images, err);
    if (status == STATUS_OK)
        status = read_neighbours(out, result, numbers, numbers + images, err);
    for (uint64_t i = 0; i < images && status == STATUS_OK; i++)
        for (unsigned k = 0; k < FLAGS; k++)
            out->count[k] += out->of[i] >> k & 1;
    free(numbers);
    return status;
}

void flags_clear(struct flags *flags)
{
    free(flags->of);
    *flags = (struct flags){.feature = NULL};
}

/* --- names -------------------------------------------------------------------------------------- */

char *flags_text(char text[FLAGS_TEXT], uint32_t flags, char sign)
{
    const char separator[] = {sign, '\0'};
    *text = '\0';
    for (unsigned k = 0; k < FLAGS; k++)
        if (flags >> k & 1)
            text_add(text, FLAGS_TEXT, separator, "%s", flag_names[k]);
    return text;
}

enum status flags_parse(uint32_t *out, const char *names, struct error *err)
{
    char all[FLAGS_TEXT];
    *out = 0;
    for (const char *at = names; *at || at == names; at += *at == ',') {
        const size_t length = strcspn(at, ",");
        unsigned k = 0;
        while (k < FLAGS &&
               (strlen(flag_names[k]) != length || strncmp(flag_names[k], at, length) != 0))
            k++;
        if (k == FLAGS)
            return error_set(err, STATUS_USAGE, "'%s' has an unknown flag; the flags are %s",
                             PATH_TEXT_IN(128, names), flags_text(all, (1u << FLAGS) - 1, ','));
        *out |= 1u << k;
        at += length;
    }
    return STATUS_OK;
}

enum status flags_check(const struct flags *flags, uint32_t wanted, const struct result *result,
                        struct error *err)
{
    char names[FLAGS_TEXT];
    const uint32_t unknown = wanted & ~flags->known;
    if (unknown == 0)
        return STATUS_OK;
    const char *shown = PATH_TEXT(result->path);
    if (unknown == 1u << FLAG_OUTLIER)
        return error_set(err, STATUS_USAGE,
                         "%s has no stored neighbours, by which outliers are found: clpipe similar "
                         "--all stores them",
                         shown);
    return error_set(err, STATUS_USAGE,
                     "%s has no values that tell which images are %s: clpipe ingest SOURCE... -o "
                     "FILE --add --quality adds them",
                     shown, flags_text(names, unknown, ','));
}

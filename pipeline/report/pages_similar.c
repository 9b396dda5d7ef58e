/* pages_similar.c: the pictures most similar to each, and the map: both from the exact neighbours
 * of all rows. A report without them is complete, and says why they are missing. */
#include "base/held.h"
#include "base/log.h"
#include "base/minmax.h"
#include "jobs/diffusing.h"
#include "matrix/projected.h"
#include "neighbours/comparable.h"
#include "neighbours/layout.h"
#include "neighbours/ranked.h"
#include "ocl/ocl.h"
#include "report/pages_data.h"
#include "result/feature_matrix.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Neighbours shown. */
#define SHOWN 12u
/* Maximum work, in products of values over all pairs of rows, without a GPU (an OpenCL CPU device
 * does not count): some minutes on two cores, 150,000 rows of 512 values. */
#define MOST_PRODUCTS 6e12
/* With fewer, opening a device is not worthwhile. */
#define DEVICE_PRODUCTS 2e10
/* Range of the integer positions along the map's wider axis. */
#define MAP_AXIS 65535

struct similar {
    struct pages *pages;
    struct matrix_source matrix;
    enum cluster_metric metric;
    struct neighbours found;
};

/* Opens the clustering's feature, else the first one, in the clustering's space. */
static enum status open_feature(struct similar *similar, struct error *err)
{
    struct pages *pages = similar->pages;
    const struct result_clusters *clusters = pages->clusters;
    struct result_feature about;
    const char *name = clusters ? clusters->feature : pages->result->preset ? RESULT_PRESET : NULL;
    const char *metric = !clusters               ? ""
                         : clusters->columns > 0 ? clusters->space
                                                 : clusters->metric;
    /* Imported features may lack rows. */
    for (unsigned i = 0; !name && i < pages->result->feature_count; i++)
        if (!result_feature_imported(&pages->result->features[i]) &&
            !result_feature_describes(&pages->result->features[i]))
            name = pages->result->features[i].name;
    for (unsigned i = 0; !name && i < pages->result->feature_count; i++)
        if (!result_feature_describes(&pages->result->features[i]))
            name = pages->result->features[i].name;
    if (!name)
        return error_set(err, STATUS_USAGE,
                         "the file has only quality, which is not used to compare images");
    enum status status = feature_matrix_open(&similar->matrix, &about, pages->result, name, err);
    if (status != STATUS_OK)
        return status;
    const struct matrix_source rows = similar->matrix;
    status = ranked_open(&similar->matrix, &rows, pages->result, &about,
                         pages->config->machine.threads, pages->config->machine.watch.stop, err);
    if (status != STATUS_OK)
        return status;
    snprintf(pages->similar_feature, sizeof pages->similar_feature, "%s", about.name);
    similar->metric = matrix_input_usual_metric(&about);
    enum projection_space space;
    if (clusters && projection_space(&space, metric))
        similar->metric = (enum cluster_metric)space;
    return STATUS_OK;
}

static double products_of(uint64_t rows, uint32_t dimension)
{
    return 0.5 * (double)rows * (double)rows * dimension;
}

bool pages_compare_rows(uint64_t rows, uint32_t dimension, const struct cluster_devices *devices)
{
    bool gpu = false;
    for (uint32_t i = 0; i < devices->count; i++)
        gpu |= ocl_context_device(devices->contexts[i])->type != CL_DEVICE_TYPE_CPU;
    return gpu || products_of(rows, dimension) <= MOST_PRODUCTS;
}

static enum status find_neighbours(struct similar *similar, struct error *err)
{
    const struct clustering_machine *machine = &similar->pages->config->machine;
    struct neighbours_config search = clustering_search(machine, similar->metric, 0);
    struct clustering_contexts contexts = {.devices.count = 0};
    struct error ignored = ERROR_INIT;
    const uint64_t rows = similar->matrix.rows;
    const uint32_t dimension = similar->matrix.dimension;
    struct comparable comparable = {0};
    enum status status = STATUS_OK;
    if (products_of(rows, dimension) > DEVICE_PRODUCTS &&
        clustering_contexts_open(&contexts, machine, CLUSTERING_DEVICES, &ignored) == STATUS_OK)
        search.devices = contexts.devices;
    if (!pages_compare_rows(rows, dimension, &search.devices))
        status = error_set(err, STATUS_FAILED,
                           "comparing %llu rows with each other would take too long without a GPU",
                           (unsigned long long)rows);
    if (status == STATUS_OK)
        status = comparable_open(&comparable, &similar->matrix, search.metric, search.threads,
                                 search.watch.stop, err);
    if (status == STATUS_OK)
        comparable_tell(&comparable, similar->pages->similar_feature);
    if (status == STATUS_OK && comparable.source.rows < 2)
        status = error_set(err, STATUS_FAILED, "fewer than two pictures have values of %s",
                           similar->pages->similar_feature);
    if (status == STATUS_OK) {
        search.n = (uint32_t)min_u64(LAYOUT_NEIGHBOURS, comparable.source.rows - 1);
        status = comparable_find_neighbours(&similar->found, &comparable, NULL, &search, err);
    }
    comparable_close(&comparable);
    clustering_contexts_close(&contexts);
    return status;
}

/* data/similar-N.js: for each picture [[number, distance]...], nearest first. */
static enum status write_similar(const struct similar *similar, struct error *err)
{
    struct pages *pages = similar->pages;
    const uint64_t n = pages->album.count;
    const uint32_t each = similar->found.n;
    for (uint64_t first = 0; first < n; first += PAGES_CHUNK) {
        struct json json;
        script_begin(&json);
        json_open_array(&json, NULL);
        for (uint64_t i = first; i < min_u64(n, first + PAGES_CHUNK); i++) {
            const size_t at = (size_t)pages->album.order[i] * each;
            json_open_array(&json, NULL);
            for (uint32_t j = 0; j < min_u32(each, SHOWN) && similar->found.rows[at + j] >= 0;
                 j++) {
                json_open_array(&json, NULL);
                json_uint(&json, NULL, pages->album.number[similar->found.rows[at + j]]);
                script_number(&json, NULL, (double)(float)sqrt(similar->found.squared[at + j]), 4);
                json_close_array(&json);
            }
            json_close_array(&json);
        }
        json_close_array(&json);
        enum status status =
            script_write(&json, "similar", (int64_t)(first / PAGES_CHUNK), pages, err);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

/* data/map.js: x and y of each picture, starting at 0, and their ranges. */
static enum status write_map(struct pages *pages, const float *xy, struct error *err)
{
    const struct album *album = &pages->album;
    float low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    struct json json;
    for (uint64_t i = 0; i < 2 * album->count; i++) {
        low[i % 2] = fminf(low[i % 2], xy[i]);
        high[i % 2] = fmaxf(high[i % 2], xy[i]);
    }
    const float widest = fmaxf(fmaxf(high[0] - low[0], high[1] - low[1]), 1e-6f);
    script_begin(&json);
    json_open_object(&json, NULL);
    for (int axis = 0; axis < 2; axis++) {
        json_uint(&json, axis ? "height" : "width",
                  (uint64_t)lroundf((high[axis] - low[axis]) / widest * MAP_AXIS));
        json_open_array(&json, axis ? "y" : "x");
        for (uint64_t i = 0; i < album->count; i++)
            json_uint(&json, NULL,
                      (uint64_t)lroundf((xy[2 * album->order[i] + (unsigned)axis] - low[axis]) /
                                        widest * MAP_AXIS));
        json_close_array(&json);
    }
    json_close_object(&json);
    pages->has_map = true;
    return script_write(&json, "map", -1, pages, err);
}

static enum status make_map(const struct similar *similar, struct error *err)
{
    struct pages *pages = similar->pages;
    const size_t n = (size_t)pages->album.count;
    const struct neighbours_config config =
        clustering_search(&pages->config->machine, similar->metric, 0);
    SCOPED_HELD held = {0};
    float *initial = held_array(&held, 2 * n, sizeof *initial),
          *xy = held_array(&held, 2 * n, sizeof *xy);
    enum status status = held_check(&held, "the map", err);
    if (status == STATUS_OK)
        status = layout_principal(initial, &similar->matrix, &config, err);
    if (status == STATUS_OK)
        status = layout_map(xy, &similar->found, initial, &config, err);
    if (status == STATUS_OK)
        status = write_map(pages, xy, err);
    return status;
}

/* Leaves out what cannot be compared; the page states the reason, unless that names a file. */
static void leave_out(struct pages *pages, const struct error *why)
{
    snprintf(pages->similar_note, sizeof pages->similar_note,
             "Similar pictures and the map: %.400s.",
             strchr(why->sentence, '/') ? "they could not be computed" : why->sentence);
    log_message(LOG_NOTICE, "notice: the report has no similar pictures and no map: %s",
                why->sentence);
}

enum status pages_make_similar(struct pages *pages, struct error *err)
{
    struct similar similar = {.pages = pages};
    struct error why = ERROR_INIT;
    if (pages->album.count < 2 || pages->result->feature_count == 0)
        return STATUS_OK;
    enum status status = open_feature(&similar, &why);
    if (status == STATUS_OK)
        status = stored_neighbours(&similar.found, &similar.matrix, similar.metric,
                                   (uint32_t)min_u64(LAYOUT_NEIGHBOURS, similar.matrix.rows - 1),
                                   pages->result, pages->similar_feature, &why);
    if (status == STATUS_END)
        status = find_neighbours(&similar, &why);
    if (status == STATUS_INTERRUPTED) {
        *err = why;
        goto out;
    }
    if (status != STATUS_OK) {
        leave_out(pages, &why);
        status = STATUS_OK;
        goto out;
    }
    status = write_similar(&similar, err);
    if (status == STATUS_OK)
        pages->has_similar = true;
    if (status == STATUS_OK && pages->album.count >= 3)
        status = make_map(&similar, err);
out:
    neighbours_clear(&similar.found);
    matrix_close(&similar.matrix);
    return status;
}

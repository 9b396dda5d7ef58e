/* words.c: computes means of clusters and their class scores, and finds the classes that
 * distinguish a cluster. */
#include "result/words.h"
#include "base/held.h"
#include "base/minmax.h"
#include "base/text.h"
#include "result/class_layer.h"
#include "result/feature_matrix.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Maximum number of rows, evenly spaced, for a mean; of all clusters together. */
#define MEMBERS   200u
#define ROWS_MOST 131072u
#define BLOCK     8u

/* Minimum share of a class for a word; the higher one applies if few values respond, as for noise
 * and textures. The spread of a row is the sum of its magnitudes divided by its length and the root
 * of their number. */
#define LEAST_SHARE  0.05
#define LEAST_SPREAD 0.35
#define SURE_SHARE   0.8

#define SUBJECT           "words for clusters" /* of errors */
#define FOLDERS_MOST      1000u
#define LEAST_FOLDER      0.2
#define LEAST_FOLDER_GAIN 2

struct words {
    struct held held;         /* the arrays below */
    struct class_layer layer; /* count 0: words are folders */
    struct matrix_source rows;
    uint32_t k;
    uint64_t *sizes, rows_labelled;
    double *means, *spreads, *total; /* k x columns, k, columns: of rows of unit length */
    float *row, *scores; /* room: BLOCK rows, and scores of BLOCK or of a cluster and the others */
    uint32_t folders;
    char **folder;    /* names */
    uint64_t *counts; /* k x folders */
};

/* --- classes ----------------------------------------------------------------------------------- */

/* Divides a row by its length; returns its spread, or 0 if the row has no information. */
static double normalise(float *row, uint32_t columns)
{
    double squares = 0, sum = 0;
    for (uint32_t i = 0; i < columns; i++) {
        squares += (double)row[i] * row[i];
        sum += fabs((double)row[i]);
    }
    if (!(squares > 0) || !isfinite(squares))
        return 0;
    for (uint32_t i = 0; i < columns; i++)
        row[i] = (float)(row[i] / sqrt(squares));
    return sum / sqrt(squares * columns);
}

static enum status find_means(struct words *w, const int32_t *labels, struct error *err)
{
    const uint32_t columns = w->layer.columns;
    const uint64_t most = min_u64(MEMBERS, ROWS_MOST / w->k + 1);
    uint64_t *seen = held_array(&w->held, w->k, sizeof *seen);
    uint64_t *taken = held_array(&w->held, w->k, sizeof *taken);
    w->means = held_array(&w->held, (uint64_t)w->k * columns, sizeof *w->means);
    w->spreads = held_array(&w->held, w->k, sizeof *w->spreads);
    w->total = held_array(&w->held, columns, sizeof *w->total);
    enum status status = held_check(&w->held, SUBJECT, err);
    for (uint64_t i = 0; i < w->rows.rows && status == STATUS_OK; i++) {
        const uint32_t k = (uint32_t)labels[i];
        if (k >= w->k || seen[k]++ % ((w->sizes[k] + most - 1) / most) != 0)
            continue;
        status = matrix_read(&w->rows, i, 1, w->row, err);
        const double spread = status == STATUS_OK ? normalise(w->row, columns) : 0;
        for (uint32_t j = 0; spread > 0 && j < columns; j++)
            w->means[(size_t)k * columns + j] += w->row[j];
        w->spreads[k] += spread;
        taken[k] += spread > 0;
    }
    for (uint32_t k = 0; k < w->k && status == STATUS_OK; k++) {
        w->spreads[k] /= taken[k] ? (double)taken[k] : 1;
        for (uint32_t j = 0; j < columns; j++) {
            double *mean = &w->means[(size_t)k * columns + j];
            *mean /= taken[k] ? (double)taken[k] : 1;
            w->total[j] += *mean * (double)w->sizes[k];
        }
    }
    return status;
}

/* The shares of classes, by softmax, for rows of the usual length in the direction of w->row. */
static void find_shares(struct words *w, uint64_t count)
{
    const uint32_t classes = w->layer.count;
    for (size_t i = 0; i < (size_t)count * w->layer.columns; i++)
        w->row[i] *= (float)w->layer.length;
    class_layer_scores(w->scores, &w->layer, w->row, count);
    for (float *scores = w->scores; scores < w->scores + count * classes; scores += classes) {
        float most = -INFINITY;
        double sum = 0;
        for (uint32_t c = 0; c < classes; c++)
            most = fmaxf(most, scores[c]);
        for (uint32_t c = 0; c < classes; c++)
            sum += exp((double)(scores[c] - most));
        for (uint32_t c = 0; c < classes; c++)
            scores[c] = (float)(exp((double)(scores[c] - most)) / sum);
    }
}

/* Keeps the words with the best gains, in order; returns their number. */
static unsigned add_word(struct word out[WORDS_MOST], unsigned count, struct word word)
{
    unsigned at = count;
    while (at > 0 && out[at - 1].gain < word.gain)
        at--;
    if (at == WORDS_MOST)
        return count;
    count = min_u32(count + 1, WORDS_MOST);
    memmove(out + at + 1, out + at, (count - 1 - at) * sizeof *out);
    out[at] = word;
    return count;
}

/* others: the shares to compare with, or NULL. */
static unsigned choose_classes(struct word out[WORDS_MOST], const struct words *w,
                               const float *shares, const float *others, double spread)
{
    const double least = spread < LEAST_SPREAD ? SURE_SHARE : LEAST_SHARE;
    unsigned count = 0;
    for (uint32_t c = 0; c < w->layer.count; c++) {
        const double share = (double)shares[c];
        const double gain = others ? share * log(share / fmax((double)others[c], 1e-30)) : share;
        if (share >= least && gain > 0)
            count = add_word(out, count, (struct word){w->layer.name[c], share, gain});
    }
    return count;
}

static unsigned classes_of_cluster(struct word out[WORDS_MOST], struct words *w, uint32_t cluster)
{
    const uint32_t columns = w->layer.columns;
    const double *mean = w->means + (size_t)cluster * columns, size = (double)w->sizes[cluster];
    const bool alone = w->sizes[cluster] == w->rows_labelled;
    for (uint32_t j = 0; j < columns; j++) {
        w->row[j] = (float)mean[j];
        w->row[columns + j] =
            (float)((w->total[j] - mean[j] * size) / fmax((double)w->rows_labelled - size, 1));
    }
    if (normalise(w->row, columns) == 0)
        return 0;
    const bool others = normalise(w->row + columns, columns) > 0 && !alone;
    find_shares(w, 2);
    return choose_classes(out, w, w->scores, others ? w->scores + w->layer.count : NULL,
                          w->spreads[cluster]);
}

enum status words_of_pictures(struct word (*out)[WORDS_MOST], struct words *w, const uint64_t *rows,
                              uint64_t count, struct error *err)
{
    double spread[BLOCK];
    memset(out, 0, (size_t)count * sizeof *out);
    for (uint64_t done = 0; w && w->layer.count && done < count; done += BLOCK) {
        const uint64_t some = min_u64(BLOCK, count - done);
        for (uint64_t i = 0; i < some; i++) {
            float *row = w->row + i * w->layer.columns;
            if (matrix_read(&w->rows, rows[done + i], 1, row, err))
                return STATUS_FAILED;
            spread[i] = normalise(row, w->layer.columns);
        }
        find_shares(w, some);
        for (uint64_t i = 0; i < some; i++)
            if (spread[i] > 0)
                choose_classes(out[done + i], w, w->scores + i * w->layer.count, NULL, spread[i]);
    }
    return STATUS_OK;
}

/* --- folders ----------------------------------------------------------------------------------- */

/* The number of the folder's name, the last but one component of a path; UINT32_MAX: none. */
static enum status number_folder(uint32_t *number, struct words *w, const char *path,
                                 struct error *err)
{
    const char *end = strrchr(path, '/'), *start = end;
    while (start && start > path && start[-1] != '/')
        start--;
    *number = UINT32_MAX;
    if (!end || end == start)
        return STATUS_OK;
    const size_t length = (size_t)(end - start);
    for (uint32_t i = w->folders; i-- > 0 && *number == UINT32_MAX;)
        if (strncmp(w->folder[i], start, length) == 0 && w->folder[i][length] == '\0')
            *number = i;
    if (*number != UINT32_MAX || w->folders > FOLDERS_MOST)
        return STATUS_OK;
    w->folder[w->folders] = strndup(start, length);
    *number = w->folders++;
    return w->folder[*number] ? STATUS_OK : error_memory(err, length, SUBJECT);
}

/* Counts the images of each folder in each cluster. A single folder, or too many, yield no
 * words. */
static enum status count_folders(struct words *w, struct result *result, const int32_t *labels,
                                 struct error *err)
{
    const uint64_t n = result_images(result);
    uint32_t *of_row = malloc((size_t)n * sizeof *of_row + 1);
    w->folder = held_array(&w->held, FOLDERS_MOST + 1, sizeof *w->folder);
    enum status status = of_row ? held_check(&w->held, SUBJECT, err)
                                : error_memory(err, n * sizeof *of_row, SUBJECT);
    for (uint64_t i = 0; i < n && status == STATUS_OK && w->folders <= FOLDERS_MOST; i++) {
        struct result_image image;
        status = result_image_at(result, i, &image, err);
        if (status == STATUS_OK)
            status = number_folder(&of_row[i], w, image.path, err);
    }
    if (w->folders > FOLDERS_MOST || w->folders < 2)
        w->k = 0;
    w->counts = held_array(&w->held, (uint64_t)w->k * w->folders, sizeof *w->counts);
    if (status == STATUS_OK)
        status = held_check(&w->held, SUBJECT, err);
    for (uint64_t i = 0; i < n && status == STATUS_OK && w->k; i++)
        if ((uint32_t)labels[i] < w->k && of_row[i] != UINT32_MAX)
            w->counts[(size_t)labels[i] * w->folders + of_row[i]]++;
    free(of_row);
    return status;
}

static unsigned folders_of_cluster(struct word out[WORDS_MOST], const struct words *w,
                                   uint32_t cluster)
{
    const double size = (double)w->sizes[cluster], rest = (double)w->rows_labelled - size;
    unsigned count = 0;
    for (uint32_t f = 0; f < w->folders && size > 0; f++) {
        uint64_t all = 0;
        for (uint32_t k = 0; k < w->k; k++)
            all += w->counts[(size_t)k * w->folders + f];
        const double own = (double)w->counts[(size_t)cluster * w->folders + f], share = own / size;
        const double others = fmax((double)all - own, 0.5) / fmax(rest, 1);
        if (share >= LEAST_FOLDER && share >= LEAST_FOLDER_GAIN * others)
            count = add_word(out, count,
                             (struct word){w->folder[f], share, share * log(share / others)});
    }
    return count;
}

/* --- both -------------------------------------------------------------------------------------- */

static enum status open_classes(struct words *w, struct result *result, struct error *err)
{
    struct result_feature about;
    enum status status = class_layer_read(&w->layer, result, NULL, err);
    if (status == STATUS_END)
        return STATUS_OK;
    if (status == STATUS_OK)
        status = feature_matrix_open(&w->rows, &about, result, w->layer.feature, err);
    if (status != STATUS_OK)
        return status;
    w->row = held_array(&w->held, (uint64_t)BLOCK * w->layer.columns, sizeof *w->row);
    w->scores = held_array(&w->held, (uint64_t)BLOCK * w->layer.count, sizeof *w->scores);
    return held_check(&w->held, SUBJECT, err);
}

static enum status open_clusters(struct words *w, struct result *result,
                                 const struct result_clusters *clusters, struct error *err)
{
    int32_t *labels = malloc((size_t)clusters->rows * sizeof *labels + 1);
    w->k = clusters->k;
    w->sizes = held_array(&w->held, w->k, sizeof *w->sizes);
    enum status status = labels ? held_check(&w->held, SUBJECT, err)
                                : error_memory(err, clusters->rows * sizeof *labels, SUBJECT);
    if (status == STATUS_OK)
        status = result_part_read(labels, clusters, PART_LABELS, err);
    for (uint64_t i = 0; i < clusters->rows && status == STATUS_OK; i++)
        if ((uint32_t)labels[i] < w->k) {
            w->sizes[labels[i]]++;
            w->rows_labelled++;
        }
    if (status == STATUS_OK)
        status =
            w->layer.count ? find_means(w, labels, err) : count_folders(w, result, labels, err);
    free(labels);
    return status;
}

enum status words_open(struct words **out, struct result *result,
                       const struct result_clusters *clusters, struct error *err)
{
    *out = NULL;
    if (!result || (clusters && clusters->rows != result_images(result)))
        return STATUS_OK;
    struct words *w = calloc(1, sizeof *w);
    if (!w)
        return error_memory(err, sizeof *w, SUBJECT);
    enum status status = open_classes(w, result, err);
    if (status == STATUS_OK && clusters)
        status = open_clusters(w, result, clusters, err);
    *out = w;
    if (status != STATUS_OK)
        words_close(out);
    return status;
}

void words_close(struct words **words)
{
    struct words *w = *words;
    if (!w)
        return;
    for (uint32_t i = 0; i < w->folders; i++)
        free(w->folder[i]);
    held_free(&w->held);
    matrix_close(&w->rows);
    class_layer_clear(&w->layer);
    free(w);
    *words = NULL;
}

bool words_have_classes(const struct words *w)
{
    return w && w->layer.count > 0;
}

unsigned words_of_cluster(struct word out[WORDS_MOST], struct words *w, uint32_t cluster)
{
    if (!w || cluster >= w->k || w->sizes[cluster] == 0)
        return 0;
    return w->layer.count ? classes_of_cluster(out, w, cluster)
                          : folders_of_cluster(out, w, cluster);
}

char *words_text(char *text, size_t size, const struct word *word, unsigned count)
{
    *text = '\0';
    for (unsigned i = 0; i < count; i++)
        text_add(text, size, ", ", "%s %.0f %%", word[i].text, 100 * word[i].share);
    return text;
}

static int by_size(const void *a, const void *b, void *sizes)
{
    const uint64_t *size_of = sizes;
    const uint32_t one = *(const uint32_t *)a, two = *(const uint32_t *)b;
    if (size_of[one] != size_of[two])
        return size_of[one] > size_of[two] ? -1 : 1;
    return one < two ? -1 : one > two;
}

uint32_t *clusters_by_size(const uint64_t *sizes, uint32_t k)
{
    uint32_t *order = malloc(k * sizeof *order);
    for (uint32_t i = 0; order && i < k; i++)
        order[i] = i;
    if (order)
        qsort_r(order, k, sizeof *order, by_size, (void *)(uintptr_t)sizes);
    return order;
}

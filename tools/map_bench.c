/* map_bench.c: how many neighbours a map keeps, compared with the principal components, and its
 * time.
 *
 *     map_bench FILE.npy euclidean|cosine|hellinger [THREADS [OUT]]
 *
 * Finds the nearest rows of all rows of FILE.npy (on the host), then their principal components and
 * their map, as a report does. Kept: the share of the 10 nearest rows of each row that are among
 * the 10 nearest in two dimensions. Prints a line of JSON; OUT gets the positions of the map, raw
 * float32, and OUT.rows the neighbours, raw int64, rows x 15. tools/bench-map compares it with
 * others. */
#include "base/clock.h"
#include "matrix/npy.h"
#include "neighbours/layout.h"
#include "neighbours/neighbours.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT   10u
#define MEMORY (2ull << 30)

static int fail(const struct error *err)
{
    char line[1200];
    fprintf(stderr, "map_bench: %s\n", error_line(line, sizeof line, err));
    return 3;
}

static enum status read_positions(void *context, uint64_t first, uint64_t count, float *rows,
                                  struct error *err)
{
    (void)err;
    memcpy(rows, (const float *)context + 2 * first, 2 * count * sizeof *rows);
    return STATUS_OK;
}

/* -1 after an error. */
static double kept(const struct neighbours *wanted, float *xy, unsigned threads, struct error *err)
{
    const struct matrix_source source = {
        .rows = wanted->queries, .dimension = 2, .read = read_positions, .context = xy};
    const struct neighbours_config config = {
        .metric = METRIC_EUCLIDEAN, .n = KEPT, .threads = threads, .memory = MEMORY};
    struct neighbours found;
    uint64_t same = 0;
    if (neighbours_find(&found, &source, NULL, &config, err) != STATUS_OK)
        return -1;
    for (uint64_t i = 0; i < found.queries; i++)
        for (unsigned a = 0; a < KEPT; a++)
            for (unsigned b = 0; b < KEPT; b++)
                same += wanted->rows[i * wanted->n + a] == found.rows[i * KEPT + b];
    neighbours_clear(&found);
    return (double)same / (double)(KEPT * wanted->queries);
}

static void store(const char *path, const void *data, size_t size, size_t count)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, size, count, file) != count || fclose(file) != 0)
        perror(path);
}

int main(int argc, char **argv)
{
    static const char *const metrics[] = {"euclidean", "cosine", "hellinger"};
    struct error err = ERROR_INIT;
    struct matrix_source file;
    struct neighbours found;
    unsigned metric = 0;
    while (argc > 2 && metric < 3 && strcmp(argv[2], metrics[metric]) != 0)
        metric++;
    if (argc < 3 || metric == 3) {
        fprintf(stderr, "usage: map_bench FILE.npy euclidean|cosine|hellinger [THREADS [OUT]]\n");
        return 2;
    }
    const unsigned threads = argc > 3 ? (unsigned)atoi(argv[3]) : 2;
    if (npy_open(&file, argv[1], false, &err) != STATUS_OK)
        return fail(&err);
    const struct neighbours_config search = {.metric = (enum cluster_metric)metric,
                                             .n = LAYOUT_NEIGHBOURS,
                                             .threads = threads,
                                             .memory = MEMORY};
    int64_t begun = clock_now();
    if (neighbours_find(&found, &file, NULL, &search, &err) != STATUS_OK)
        return fail(&err);
    const double searched = clock_seconds_since(begun);
    float *initial = malloc(2 * file.rows * sizeof *initial);
    float *xy = malloc(2 * file.rows * sizeof *xy);
    if (!initial || !xy)
        return 3;
    begun = clock_now();
    if (layout_principal(initial, &file, &search, &err) != STATUS_OK)
        return fail(&err);
    const double components = clock_seconds_since(begun);
    begun = clock_now();
    if (layout_map(xy, &found, initial, &search, &err) != STATUS_OK)
        return fail(&err);
    const double mapped = clock_seconds_since(begun);
    const double before = kept(&found, initial, threads, &err);
    const double after = before < 0 ? -1 : kept(&found, xy, threads, &err);
    if (after < 0)
        return fail(&err);
    printf(
        "{\"rows\": %llu, \"kept_principal\": %.4f, \"kept_map\": %.4f, \"seconds_search\": %.2f, "
        "\"seconds_principal\": %.2f, \"seconds_map\": %.2f}\n",
        (unsigned long long)file.rows, before, after, searched, components, mapped);
    if (argc > 4) {
        char path[1024];
        snprintf(path, sizeof path, "%s.rows", argv[4]);
        store(argv[4], xy, sizeof *xy, 2 * file.rows);
        store(path, found.rows, sizeof *found.rows, found.queries * found.n);
    }
    neighbours_clear(&found);
    matrix_close(&file);
    free(initial);
    free(xy);
    return 0;
}

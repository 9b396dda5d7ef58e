/* search_bench.c: the time from rows in host memory to the stored neighbours of every row.
 *
 *     search_bench FILE.npy N ROUNDS OUT [THREADS [MEMORY [DEVICE [kernels]]]]
 *
 * Reads FILE.npy (float32) once, then finds the N nearest rows of every row ROUNDS times and writes
 * OUT.rows (int64) and OUT.squared (float32), rows x N, raw. MEMORY is in bytes (default 8 GiB);
 * DEVICE is as for clpipe --device, or "host" (default) for the threads alone. Prints a line of
 * JSON for each round; with "kernels" it waits for each kernel, and the line has their seconds on
 * the device. tools/bench-similar compares it with others.
 */
#include "base/clock.h"
#include "matrix/npy.h"
#include "neighbours/choice.h"
#include "neighbours/neighbours.h"
#include "ocl/ocl.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float *values;
static uint32_t dimension;

static enum status read_values(void *context, uint64_t first, uint64_t count, float *rows,
                               struct error *err)
{
    (void)context;
    (void)err;
    memcpy(rows, values + first * dimension, (size_t)count * dimension * sizeof *rows);
    return STATUS_OK;
}

static int fail(const struct error *err)
{
    char line[1200];
    fprintf(stderr, "search_bench: %s\n", error_line(line, sizeof line, err));
    return 3;
}

static int store(const char *out, const char *suffix, const void *bytes, size_t size, size_t count)
{
    char path[1024];
    snprintf(path, sizeof path, "%s.%s", out, suffix);
    FILE *file = fopen(path, "wb");
    const int wrong = !file || fwrite(bytes, size, count, file) != count;
    if (wrong || fclose(file) != 0) {
        perror(path);
        return 3;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct error err = ERROR_INIT;
    struct matrix_source file;
    struct ocl_devices devices = {0};
    struct ocl_context *context = NULL;
    if (argc < 5) {
        fprintf(stderr, "usage: search_bench FILE.npy N ROUNDS OUT [THREADS [MEMORY [DEVICE]]]\n");
        return 2;
    }
    struct neighbours_config config = {
        .n = (uint32_t)atoi(argv[2]),
        .threads = argc > 5 ? (unsigned)atoi(argv[5]) : 2,
        .memory = argc > 6 ? strtoull(argv[6], NULL, 10) : 8ull << 30,
    };
    const char *device = argc > 7 ? argv[7] : "host";
    double kernels[6] = {0};
    const struct neighbours_choice choice = {.kernel_seconds = kernels};
    config.choice = argc > 8 && strcmp(argv[8], "kernels") == 0 ? &choice : NULL;
    if (strcmp(device, "host") != 0) {
        unsigned chosen[1], count;
        if (ocl_devices_open(&devices, config.threads, &err) != STATUS_OK ||
            ocl_devices_select(chosen, &count, 1, &devices, device, &err) != STATUS_OK ||
            ocl_context_open(&context, &devices.device[chosen[0]], NULL, &err) != STATUS_OK)
            return fail(&err);
        config.devices = (struct cluster_devices){&context, 1};
    }
    if (npy_open(&file, argv[1], false, &err) != STATUS_OK)
        return fail(&err);
    dimension = file.dimension;
    values = malloc((size_t)file.rows * dimension * sizeof *values);
    if (!values || matrix_read(&file, 0, file.rows, values, &err) != STATUS_OK)
        return fail(&err);
    const struct matrix_source source = {
        .rows = file.rows, .dimension = dimension, .read = read_values, .concurrent = true};
    for (int round = 0; round < atoi(argv[3]); round++) {
        struct neighbours found;
        const int64_t begun = clock_now();
        if (neighbours_find(&found, &source, NULL, &config, &err) != STATUS_OK)
            return fail(&err);
        const size_t count = (size_t)found.queries * found.n;
        float *squared = malloc(count * sizeof *squared);
        for (size_t i = 0; i < count && squared; i++)
            squared[i] = (float)found.squared[i];
        if (!squared || store(argv[4], "rows", found.rows, sizeof *found.rows, count) ||
            store(argv[4], "squared", squared, sizeof *squared, count))
            return 3;
        printf("{\"seconds\": %.4f, \"seconds_read\": %.4f, \"seconds_build\": %.4f, "
               "\"seconds_search\": %.4f, \"compared\": %llu",
               (double)(clock_now() - begun) * 1e-9, found.seconds_read, found.seconds_build,
               found.seconds_search, (unsigned long long)found.compared);
        if (config.choice)
            printf(", \"encode_rows\": %.4f, \"bound_spans\": %.4f, \"filter_pairs\": %.4f, "
                   "\"shrink_lists\": %.4f, \"decide_lists\": %.4f, \"bound_reaches\": %.4f",
                   kernels[0], kernels[1], kernels[2], kernels[3], kernels[4], kernels[5]);
        memset(kernels, 0, sizeof kernels);
        printf("}\n");
        fflush(stdout);
        free(squared);
        neighbours_clear(&found);
    }
    matrix_close(&file);
    free(values);
    ocl_context_close(&context);
    ocl_devices_close(&devices);
    return 0;
}

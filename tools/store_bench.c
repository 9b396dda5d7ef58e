/* store_bench.c: the time from finished images to the finished file, without real images or
 * devices.
 *
 *     store_bench [--compress] FILE.h5 ROWS THREADS SPEC...
 *
 * THREADS threads put ROWS made-up images with the features of SPEC... into the store, as the store
 * threads of an ingest do; features that learn get a made-up codebook. Then the file is built.
 * Prints a line of JSON: the bytes of a row, seconds and processor seconds of both parts. FILE.h5
 * is started anew and kept. */
#include "base/clock.h"
#include "features/codebook.h"
#include "features/descriptor.h"
#include "features/kind.h"
#include "result/store.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define THREADS_MOST 64
#define PATTERNS     16 /* different images */

struct bench {
    struct store *store;
    uint32_t *counters[PATTERNS];
    uint64_t rows;
    _Atomic uint64_t next;
    _Atomic bool failed;
};

static int fail(const struct error *err)
{
    char line[1200];
    fprintf(stderr, "store_bench: %s\n", error_line(line, sizeof line, err));
    return 3;
}

static double processor_seconds(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static void *put_rows(void *context)
{
    struct bench *bench = context;
    struct error err = ERROR_INIT;
    uint64_t row;
    while (!atomic_load(&bench->failed) &&
           (row = atomic_fetch_add(&bench->next, 1)) < bench->rows) {
        char path[32];
        const int length = snprintf(path, sizeof path, "%012llu.jpg", (unsigned long long)row);
        const struct store_record record = {.sequence = row,
                                            .path = path,
                                            .path_length = (uint32_t)length,
                                            .image.bytes = 100000,
                                            .image.format = "jpeg",
                                            .image.width = 640,
                                            .image.height = 480,
                                            .image.orientation = 1,
                                            .image.channels = 3,
                                            .image.digest = {row, ~row},
                                            .counters = bench->counters[row % PATTERNS]};
        if (store_put(bench->store, &record, &err) != STATUS_OK) {
            atomic_store(&bench->failed, true);
            fail(&err);
        }
    }
    return NULL;
}

/* Words with as many significant bits as a count of pixels or a sum of descriptors. */
static bool make_counters(struct bench *bench, const struct feature_set *features)
{
    uint32_t state = 1;
    for (int p = 0; p < PATTERNS; p++) {
        uint32_t *words = malloc(features->counters * sizeof *words);
        if (!words)
            return false;
        for (uint32_t i = 0; i < features->counters; i++) {
            state = state * 1664525 + 1013904223;
            words[i] = state >> 22;
        }
        bench->counters[p] = words;
    }
    return true;
}

static enum status bind_codebook(struct feature *feature, struct feature_codebook *codebook,
                                 struct error *err)
{
    const struct descriptor *descriptor = feature->kind->descriptor;
    if (feature_codebook_allocate(codebook, descriptor->name, descriptor->columns,
                                  descriptor->projected, feature->codebook_words, err))
        return STATUS_FAILED;
    for (uint32_t i = 0; i < codebook->words * codebook->projected; i++) {
        codebook->mean[i] = (double)(i % 7);
        codebook->deviation[i] = 1 + (double)(i % 5);
    }
    for (uint32_t i = 0; i < codebook->words; i++)
        codebook->share[i] = 1.0 / codebook->words;
    return feature_bind_codebook(feature, codebook, err);
}

static enum status run(const char *output, const struct feature_set *features, struct bench *bench,
                       unsigned threads, bool compress, struct error *err)
{
    const char *source = "made-up";
    const struct store_config config = {.output = output,
                                        .fresh = true,
                                        .threads = threads,
                                        .compress = compress,
                                        .content = {.sources = &source,
                                                    .source_count = 1,
                                                    .features = features,
                                                    .decode_scale = 1,
                                                    .parameters = "{}"}};
    const struct store_run about = {"", "{}", "", "", "", 0};
    struct store_summary summary;
    pthread_t thread[THREADS_MOST];
    unsigned started = 0;
    enum status status = store_open(&bench->store, &config, err);
    if (status)
        return status;
    const double cpu = processor_seconds();
    const int64_t start = clock_now();
    while (started < threads && pthread_create(&thread[started], NULL, put_rows, bench) == 0)
        started++;
    for (unsigned i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    const int64_t middle = clock_now();
    const double cpu_middle = processor_seconds();
    if (started == 0 || atomic_load(&bench->failed))
        status = error_set(err, STATUS_FAILED, "rows could not be put");
    else
        status = store_finish(bench->store, &about, &summary, err);
    if (!status)
        printf("{\"rows\": %llu, \"row_bytes\": %u, \"put_seconds\": %.4f, "
               "\"put_processor_seconds\": %.4f, \"finish_seconds\": %.4f, "
               "\"finish_processor_seconds\": %.4f}\n",
               (unsigned long long)bench->rows, 4 * features->values,
               1e-9 * (double)(middle - start), cpu_middle - cpu, clock_seconds_since(middle),
               processor_seconds() - cpu_middle);
    store_close(&bench->store);
    return status;
}

int main(int argc, char **argv)
{
    struct error err = ERROR_INIT;
    static struct feature_set features;
    static struct feature_codebook codebook[FEATURE_MAX];
    static struct bench bench;
    const bool compress = argc > 1 && strcmp(argv[1], "--compress") == 0;
    argc -= compress;
    argv += compress;
    const int threads = argc > 4 ? atoi(argv[3]) : 0;
    if (threads < 1 || threads > THREADS_MOST) {
        fprintf(stderr, "usage: store_bench [--compress] FILE.h5 ROWS THREADS SPEC...\n");
        return 2;
    }
    enum status status = STATUS_OK;
    for (int i = 4; i < argc && !status; i++)
        status = feature_set_add(&features, argv[i], NORMALIZE_L1, &err);
    for (unsigned i = 0; i < features.count && !status; i++)
        if (feature_lacks_codebook(&features.feature[i]))
            status = bind_codebook(&features.feature[i], &codebook[i], &err);
    bench.rows = strtoull(argv[2], NULL, 10);
    if (!status && !make_counters(&bench, &features))
        status = error_memory(&err, features.counters, "made-up images");
    if (!status)
        status = run(argv[1], &features, &bench, (unsigned)threads, compress, &err);
    for (unsigned i = 0; i < features.count; i++)
        feature_codebook_clear(&codebook[i]);
    for (int p = 0; p < PATTERNS; p++)
        free(bench.counters[p]);
    return status ? fail(&err) : 0;
}

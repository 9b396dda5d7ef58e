/* test_store_common.h: records that are generated from their numbers, and a directory for the files
 * of a test. */
#ifndef TEST_STORE_COMMON_H
#define TEST_STORE_COMMON_H

#include "runner.h"

#include "base/log.h"
#include "features/feature.h"
#include "result/feature_matrix.h"
#include "result/identity.h"
#include "result/journal.h"
#include "result/prior.h"
#include "result/result.h"
#include "result/store.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SOURCES_MAX 4

/* The directory of a test, and the command whose store is tested. */
struct fixture {
    char directory[256], output[320], work[336];
    char log[384]; /* set by get_log; put_log writes to this path */
    struct feature_set features;
    const char *sources[SOURCES_MAX];
    struct store_config config;
};

#define assert_ok(call)                                                                            \
    do {                                                                                           \
        struct error *err_ = &error;                                                               \
        *err_ = (struct error)ERROR_INIT;                                                          \
        enum status got_ = (call);                                                                 \
        if (got_) {                                                                                \
            char line_[1200];                                                                      \
            print_error("%s: %s\n", #call, error_line(line_, sizeof line_, err_));                 \
        }                                                                                          \
        assert_int_equal(got_, STATUS_OK);                                                         \
    } while (0)

static inline int remove_tree(const char *path)
{
    char command[400];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    return system(command);
}

static inline int fixture_open(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    /* In memory if possible, because these tests call fsync often. */
    const char *base = getenv("TMPDIR");
    if (!base && access("/dev/shm", W_OK) == 0)
        base = "/dev/shm";
    struct error error = ERROR_INIT;
    setenv("SOURCE_DATE_EPOCH", "1700000000", 1);
    log_set_level(LOG_QUIET);
    snprintf(f->directory, sizeof f->directory, "%s/clpipe-store-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(f->directory))
        return -1;
    snprintf(f->output, sizeof f->output, "%s/out.h5", f->directory);
    snprintf(f->work, sizeof f->work, "%s.partial", f->output);
    snprintf(f->log, sizeof f->log, "%s/log-0123456789abcdef", f->work);
    if (feature_set_add(&f->features, "rgb:bins=8", NORMALIZE_L1, &error) ||
        feature_set_add(&f->features, "gray:bins=16,normalize=none", NORMALIZE_L1, &error) ||
        feature_set_add(&f->features, "joint=rgb:bins=2x3x4,grid=2x2", NORMALIZE_HELLINGER, &error))
        return -1;
    f->sources[0] = "photos";
    f->config = (struct store_config){
        .output = f->output,
        .threads = 2,
        .content = {.sources = f->sources,
                    .source_count = 1,
                    .features = &f->features,
                    .decode_scale = 1,
                    .parameters = "{\"alpha\":\"white\",\"max_pixels\":100}"}};
    *state = f;
    return 0;
}

static inline int fixture_close(void **state)
{
    struct fixture *f = *state;
    remove_tree(f->directory);
    free(f);
    return 0;
}

/* Derives a pseudorandom number from a number. */
static inline uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Makes the record of item `id`, with its own path: an image, or a failure for every seventh.
 * `version` changes its content and time. */
struct made {
    struct store_record record;
    char path[64];
    uint32_t counters[8 * 3 + 16 + 24 * 4];
    uint8_t thumbnail[64];
};

/* Adds a code and a thumbnail for `size` (0: none) to an image; some images get no thumbnail. */
static inline void add_extras(struct made *made, bool code, uint16_t size)
{
    struct store_record *r = &made->record;
    if (r->failure.reason != REASON_NONE)
        return;
    r->image.has_code = code;
    for (unsigned i = 0; code && i < sizeof r->image.code; i++)
        r->image.code[i] = (uint8_t)(r->image.digest[0] >> i % 8);
    r->thumbnail_size = size;
    if (size == 0 || r->image.bytes % 5 == 2)
        return;
    r->thumbnail_length = (uint32_t)(4 + r->image.digest[1] % 60);
    for (uint32_t i = 0; i < r->thumbnail_length; i++)
        made->thumbnail[i] = (uint8_t)(size + r->image.digest[0] + i);
    memcpy(made->thumbnail, "\xff\xd8", 2);
    memcpy(made->thumbnail + r->thumbnail_length - 2, "\xff\xd9", 2);
    r->thumbnail = made->thumbnail;
}

static inline void distribute(uint32_t *bins, uint32_t count, uint32_t pixels, uint64_t seed)
{
    memset(bins, 0, count * sizeof *bins);
    for (uint32_t i = 0; i < pixels; i++)
        bins[mix(seed + i) % count]++;
}

static inline void make_record(struct made *made, uint64_t id, uint64_t version)
{
    struct store_record *r = &made->record;
    memset(made, 0, sizeof *made);
    r->path = made->path;
    r->path_length = (uint32_t)snprintf(made->path, sizeof made->path, "d%03u/item_%06llu.jpg",
                                        (unsigned)(id / 100), (unsigned long long)id);
    if (id % 11 == 4) /* the path is not UTF-8 */
        memcpy(made->path + r->path_length - 3, "\xff\xe9m", 3);
    r->image.bytes = 1000 + id;
    r->image.mtime_ns = (int64_t)(1600000000000000000u + id + version * 1000000000u);
    if (id % 7 == 3 || id % 7 == 5) {
        failure_set(&r->failure, id % 7 == 3 ? REASON_CORRUPT : REASON_NOT_AN_IMAGE,
                    "item %llu is broken in version %llu", (unsigned long long)id,
                    (unsigned long long)version);
        r->failure.error_number = id % 7 == 3 ? 5 : 0;
        return;
    }
    uint64_t seed = mix(id * 1000 + version);
    r->image.width = 2 + (uint32_t)(seed % 9);
    r->image.height = 2 + (uint32_t)(seed / 16 % 9);
    r->image.orientation = 1 + (uint8_t)(seed / 256 % 8);
    r->image.channels = 3;
    memcpy(r->image.format, "jpeg", 5);
    r->image.digest[0] = mix(seed);
    r->image.digest[1] = mix(seed + 1);
    r->counters = made->counters;
    uint32_t pixels = r->image.width * r->image.height;
    for (int c = 0; c < 3; c++)
        distribute(made->counters + 8 * c, 8, pixels, seed + (uint64_t)c);
    distribute(made->counters + 24, 16, pixels, seed + 3);
    for (uint32_t y = 0; y < 2; y++)
        for (uint32_t x = 0; x < 2; x++) {
            /* In a picture of height h, row y is in cell y * 2 / h. */
            uint32_t h =
                y ? r->image.height - (r->image.height + 1) / 2 : (r->image.height + 1) / 2;
            uint32_t w = x ? r->image.width - (r->image.width + 1) / 2 : (r->image.width + 1) / 2;
            distribute(made->counters + 40 + 24 * (2 * y + x), 24, h * w, seed + 4 + 2 * y + x);
        }
}

static const struct store_run test_run = {.command = "clpipe ingest photos -o out.h5",
                                          .json = "{}",
                                          .device = "none",
                                          .driver = "none",
                                          .host = "test",
                                          .seconds = 1.5};

/* Processes one item as the pipeline does: uses earlier work if there is any. Returns 0 for new, 1
 * for unchanged, 2 for resumed. */
static inline int put_item(struct store *store, uint64_t sequence, uint16_t source, uint64_t id,
                           uint64_t version)
{
    struct error error = ERROR_INIT;
    struct made made;
    struct store_record prior;
    make_record(&made, id, version);
    made.record.image.source = source;
    bool found = prior_find(store_prior(store), source, made.record.path, made.record.path_length,
                            made.record.image.bytes, made.record.image.mtime_ns, &prior);
    struct store_record *record = found ? &prior : &made.record;
    if (found) {
        assert_int_equal(prior.image.width, made.record.image.width);
        assert_int_equal(prior.image.height, made.record.image.height);
        assert_int_equal(prior.failure.reason, made.record.failure.reason);
        assert_memory_equal(prior.image.digest, made.record.image.digest,
                            sizeof prior.image.digest);
        assert_string_equal(prior.path, made.record.path);
    }
    record->sequence = sequence;
    assert_ok(store_put(store, record, &error));
    return found ? 1 + location_in_log(prior.origin) : 0;
}

/* A complete run over items first, first + step, ... below end; counts the results of put_item. */
static inline void run_items(struct fixture *f, uint64_t first, uint64_t end, uint64_t step,
                             uint64_t version, struct store_summary *summary, unsigned counts[3])
{
    struct error error = ERROR_INIT;
    struct store *store;
    assert_ok(store_open(&store, &f->config, &error));
    uint64_t sequence = 0;
    for (uint64_t id = first; id < end; id += step)
        counts[put_item(store, sequence++, 0, id, version)]++;
    assert_ok(store_finish(store, &test_run, summary, &error));
    store_close(&store);
    assert_int_equal(access(f->work, F_OK), -1);
}

/* Returns the identity of a file after checking its invariants. */
static inline void print_broken(const char *line, void *context)
{
    (void)context;
    print_error("broken: %s\n", line);
}

static inline void identity_of_unverified(char hex[65], const char *path)
{
    struct error error = ERROR_INIT;
    struct result *result;
    assert_ok(result_open(&result, path, &error));
    assert_ok(result_identity(result, hex, &error));
    result_close(&result);
}

static inline void identity_of(char hex[65], const char *path)
{
    struct error error = ERROR_INIT;
    struct result *result;
    uint64_t broken;
    assert_ok(result_open(&result, path, &error));
    assert_ok(result_verify(result, print_broken, NULL, &broken, &error));
    assert_int_equal(broken, 0);
    result_close(&result);
    identity_of_unverified(hex, path);
}

/* Returns the bytes of a file, to be freed by the caller. */
static inline char *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    char *data = malloc(*size + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, *size, file), *size);
    data[*size] = 0;
    fclose(file);
    return data;
}

static inline void write_file(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    fclose(file);
}

/* Returns the only log of the work directory, to be freed by the caller. */
static inline char *get_log(struct fixture *f, size_t *size)
{
    DIR *directory = opendir(f->work);
    unsigned found = 0;
    assert_non_null(directory);
    for (struct dirent *e; (e = readdir(directory));)
        if (strncmp(e->d_name, "log-", 4) == 0) {
            snprintf(f->log, sizeof f->log, "%s/%.20s", f->work, e->d_name);
            found++;
        }
    closedir(directory);
    assert_int_equal(found, 1);
    return read_file(f->log, size);
}

/* Makes this log the only one. */
static inline void put_log(struct fixture *f, const char *log, size_t size)
{
    assert_int_equal(remove_tree(f->work), 0);
    assert_int_equal(mkdir(f->work, 0777), 0);
    write_file(f->log, log, size);
}

/* Counts the entries of a directory except "." and "..". */
static inline unsigned count_entries(const char *path)
{
    unsigned count = 0;
    DIR *directory = opendir(path);
    assert_non_null(directory);
    for (struct dirent *e; (e = readdir(directory));)
        count += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(directory);
    return count;
}

/* Reads rows of a feature as float32. */
static inline enum status read_feature(struct result *result, const struct result_feature *feature,
                                       uint64_t first, uint64_t count, float *rows,
                                       struct error *err)
{
    struct matrix_source matrix;
    struct result_feature about;
    enum status status = feature_matrix_open(&matrix, &about, result, feature->name, err);
    if (status == STATUS_OK)
        status = matrix_read(&matrix, first, count, rows, err);
    matrix_close(&matrix);
    return status;
}

#endif

/* test_result_clusters.c: clusterings added, replaced, carried over and found to be wrong.
 * long because: all of it needs one clustered file and its makers. */
#include "test_store_common.h"
#include <hdf5.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define ITEMS 90
#define K     3

/* A clustering of a feature of the file, by k arbitrary centroids: everything in it is right. */
struct clustered {
    struct result_clustering clustering;
    char feature[FEATURE_NAME_MAX], content[65];
    float *centroids, *distances;
    int32_t *labels;
    uint64_t sizes[K];
    int64_t nearest[3 * K];
    double history[2];
};

static void cluster(struct clustered *c, const char *path, const char *feature_name,
                    const char *metric)
{
    struct error error = ERROR_INIT;
    struct result *result;
    memset(c, 0, sizeof *c);
    assert_ok(result_open(&result, path, &error));
    const struct result_feature *feature = result_feature_find(result, feature_name);
    assert_non_null(feature);
    uint32_t d = feature->dimension;
    uint64_t n = feature->rows;
    snprintf(c->feature, sizeof c->feature, "%s", feature_name);
    assert_ok(result_feature_identity(result, feature, c->content, &error));
    float *rows = calloc(n * d + 1, sizeof *rows);
    assert_ok(result_feature_read(result, feature, 0, n, rows, &error));
    for (uint64_t i = 0; i < n; i++) {
        double length = 0;
        for (uint32_t j = 0; j < d; j++)
            length += rows[i * d + j] * rows[i * d + j];
        for (uint32_t j = 0; j < d; j++)
            if (strcmp(metric, "hellinger") == 0)
                rows[i * d + j] = sqrtf(rows[i * d + j]);
            else if (strcmp(metric, "cosine") == 0)
                rows[i * d + j] /= (float)sqrt(length);
    }
    c->centroids = malloc(K * d * sizeof *c->centroids);
    c->labels = malloc((n + 1) * sizeof *c->labels);
    c->distances = malloc((n + 1) * sizeof *c->distances);
    for (uint32_t k = 0; k < K; k++)
        memcpy(c->centroids + k * d, rows + (k * 7 + 1) * d, d * sizeof *rows);
    for (int i = 0; i < 3 * K; i++)
        c->nearest[i] = -1;
    double inertia = 0;
    for (uint64_t i = 0; i < n; i++) {
        double best = HUGE_VAL;
        for (uint32_t k = 0; k < K; k++) {
            double sum = 0;
            for (uint32_t j = 0; j < d; j++)
                sum += pow((double)rows[i * d + j] - c->centroids[k * d + j], 2);
            if (sum < best) {
                best = sum;
                c->labels[i] = (int32_t)k;
            }
        }
        c->distances[i] = (float)best;
        inertia += c->distances[i];
        c->sizes[c->labels[i]]++;
        /* Insertion among the three nearest. */
        int64_t row = (int64_t)i, *nearest = c->nearest + 3 * c->labels[i];
        for (int p = 0; p < 3; p++)
            if (nearest[p] < 0 || c->distances[row] < c->distances[nearest[p]]) {
                int64_t swap = nearest[p];
                nearest[p] = row;
                row = swap;
                if (row < 0)
                    break;
            }
    }
    free(rows);
    c->history[0] = inertia * 2;
    c->history[1] = inertia;
    c->clustering = (struct result_clustering){.name = "kmeans",
                                               .feature = c->feature,
                                               .init = "kmeans++",
                                               .metric = metric,
                                               .parameters = "{\"k\":3}",
                                               .content = c->content,
                                               .k = K,
                                               .dimension = d,
                                               .iterations = 2,
                                               .rows = n,
                                               .seed = -5,
                                               .converged = true,
                                               .inertia = inertia,
                                               .centroids = c->centroids,
                                               .labels = c->labels,
                                               .distances = c->distances,
                                               .sizes = c->sizes,
                                               .nearest = c->nearest,
                                               .inertia_history = c->history};
    result_close(&result);
}

static void clustered_clear(struct clustered *c)
{
    free(c->centroids);
    free(c->labels);
    free(c->distances);
}

static void ingest(struct fixture *f, uint64_t count, struct store_summary *summary)
{
    unsigned counts[3] = {0};
    run_items(f, 0, count, 1, 0, summary, counts);
}

/* The clustering must be in the file as it was given. */
static void assert_there(const char *path, const struct clustered *c)
{
    struct error error = ERROR_INIT;
    struct result *result;
    const struct result_clustering *given = &c->clustering;
    assert_ok(result_open(&result, path, &error));
    const struct result_clusters *found = result_clusters_find(result, given->name);
    assert_non_null(found);
    assert_string_equal(found->feature, given->feature);
    assert_string_equal(found->metric, given->metric);
    assert_string_equal(found->init, given->init);
    assert_string_equal(found->parameters, given->parameters);
    assert_string_equal(found->content, given->content);
    assert_int_equal(found->k, K);
    assert_int_equal(found->dimension, given->dimension);
    assert_int_equal(found->iterations, 2);
    assert_int_equal(found->rows, given->rows);
    assert_int_equal(found->seed, -5);
    assert_true(found->converged);
    assert_memory_equal(&found->inertia, &given->inertia, sizeof found->inertia);
    float *centroids = malloc(K * given->dimension * sizeof *centroids);
    float *distances = malloc((given->rows + 1) * sizeof *distances);
    int32_t *labels = malloc((given->rows + 1) * sizeof *labels);
    uint64_t sizes[K];
    int64_t nearest[3 * K];
    assert_ok(
        result_clusters_read(result, found, centroids, labels, distances, sizes, nearest, &error));
    assert_memory_equal(centroids, given->centroids, K * given->dimension * sizeof *centroids);
    assert_memory_equal(labels, given->labels, given->rows * sizeof *labels);
    assert_memory_equal(distances, given->distances, given->rows * sizeof *distances);
    assert_memory_equal(sizes, given->sizes, sizeof sizes);
    assert_memory_equal(nearest, given->nearest, sizeof nearest);
    assert_ok(result_clusters_read(result, found, NULL, NULL, NULL, NULL, NULL, &error));
    free(centroids);
    free(distances);
    free(labels);
    result_close(&result);
}

static void test_add_and_replace(void **state)
{
    struct fixture *f = *state;
    struct error error = ERROR_INIT;
    struct store_summary summary;
    struct clustered first, second;
    char plain[65], with[65], again[65];
    ingest(f, ITEMS, &summary);
    identity_of(plain, f->output);
    cluster(&first, f->output, "rgb_8", "hellinger");
    assert_ok(result_write_clusters(f->output, f->output, &first.clustering, false, &error));
    assert_there(f->output, &first);
    identity_of(with, f->output);
    assert_string_not_equal(plain, with);

    /* Not twice, unless it is asked for. */
    assert_int_equal(result_write_clusters(f->output, f->output, &first.clustering, false, &error),
                     STATUS_USAGE);
    assert_non_null(strstr(error.sentence, "--force"));
    struct stat st[2];
    assert_int_equal(stat(f->output, &st[0]), 0);
    for (int i = 0; i < 5; i++)
        assert_ok(result_write_clusters(f->output, f->output, &first.clustering, true, &error));
    identity_of(again, f->output);
    assert_string_equal(with, again);
    assert_there(f->output, &first);
    /* Their space is used again. */
    assert_int_equal(stat(f->output, &st[1]), 0);
    assert_true(st[1].st_size < st[0].st_size + 20000);

    /* A second one, of another feature and metric, beside it; then replaced by a third. */
    cluster(&second, f->output, "gray_16", "cosine");
    second.clustering.name = "other-1.0";
    assert_ok(result_write_clusters(f->output, f->output, &second.clustering, false, &error));
    assert_there(f->output, &first);
    assert_there(f->output, &second);
    identity_of(with, f->output);
    clustered_clear(&second);
    cluster(&second, f->output, "joint", "euclidean");
    second.clustering.name = "other-1.0";
    assert_ok(result_write_clusters(f->output, f->output, &second.clustering, true, &error));
    assert_there(f->output, &second);
    identity_of(again, f->output);
    assert_string_not_equal(with, again);
    assert_int_equal(count_entries(f->directory), 1);
    clustered_clear(&first);
    clustered_clear(&second);
}

static void test_file_of_its_own(void **state)
{
    struct fixture *f = *state;
    struct error error = ERROR_INIT;
    struct store_summary summary;
    struct clustered c;
    char path[400], before[65], after[65];
    ingest(f, ITEMS, &summary);
    cluster(&c, f->output, "rgb_8", "euclidean");
    snprintf(path, sizeof path, "%s/clusters.h5", f->directory);
    identity_of(before, f->output);
    /* A copy of the input. */
    assert_ok(result_write_clusters(path, f->output, &c.clustering, false, &error));
    assert_there(path, &c);
    identity_of(after, path);
    assert_int_equal(result_write_clusters(path, f->output, &c.clustering, false, &error),
                     STATUS_USAGE);
    assert_ok(result_write_clusters(path, f->output, &c.clustering, true, &error));
    /* Other data must not go where features are. */
    assert_int_equal(result_write_clusters(path, NULL, &c.clustering, true, &error), STATUS_USAGE);
    assert_non_null(strstr(error.sentence, "features"));
    unlink(path);
    /* Clusters alone, then a second beside the first. */
    assert_ok(result_write_clusters(path, NULL, &c.clustering, false, &error));
    assert_there(path, &c);
    identity_of(after, path);
    assert_int_equal(result_write_clusters(path, NULL, &c.clustering, false, &error), STATUS_USAGE);
    c.clustering.name = "second";
    c.clustering.k = 2;
    c.clustering.dimension = 12;
    c.clustering.rows = 10;
    c.clustering.iterations = 0;
    assert_ok(result_write_clusters(path, NULL, &c.clustering, false, &error));
    struct result *result;
    assert_ok(result_open(&result, path, &error));
    assert_int_equal(result_clusters_count(result), 2);
    assert_int_equal(result_images(result), 0);
    assert_int_equal(result_feature_count(result), 0);
    assert_string_equal(result_parameters(result), "{}");
    result_close(&result);
    /* An ingest does not take it for its output. */
    struct store *store;
    f->config.output = path;
    assert_int_equal(store_open(&store, &f->config, &error), STATUS_USAGE);
    f->config.output = f->output;
    identity_of(after, f->output);
    assert_string_equal(before, after);
    clustered_clear(&c);
}

static void test_refusals(void **state)
{
    struct fixture *f = *state;
    struct error error = ERROR_INIT;
    struct store_summary summary;
    struct clustered c;
    char before[65], after[65], path[400];
    ingest(f, ITEMS, &summary);
    cluster(&c, f->output, "rgb_8", "euclidean");
    identity_of(before, f->output);
    static const char too_long[] = "0123456789012345678901234567890123456789"
                                   "012345678901234567890123";
    static const char *const names[] = {"", ".", "..", "a/b", "a b", "\xc3\xa9", "a\n", too_long};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        c.clustering.name = names[i];
        assert_int_equal(result_write_clusters(f->output, f->output, &c.clustering, true, &error),
                         STATUS_USAGE);
    }
    c.clustering.name = "kmeans";
    c.clustering.rows--;
    assert_int_equal(result_write_clusters(f->output, f->output, &c.clustering, true, &error),
                     STATUS_FAILED);
    c.clustering.rows++;
    snprintf(path, sizeof path, "%s/notes.txt", f->directory);
    write_file(path, "notes", 5);
    assert_int_equal(result_write_clusters(path, f->output, &c.clustering, true, &error),
                     STATUS_FAILED);
    assert_non_null(strstr(error.sentence, "not overwritten"));
    assert_int_equal(result_write_clusters(f->output, path, &c.clustering, true, &error),
                     STATUS_FAILED);
    assert_int_equal(
        result_write_clusters("/nonexistent/r.h5", f->output, &c.clustering, true, &error),
        STATUS_FAILED);
    assert_int_equal(result_write_clusters("/dev/null", f->output, &c.clustering, true, &error),
                     STATUS_FAILED);
    identity_of(after, f->output);
    assert_string_equal(before, after);
    assert_int_equal(count_entries(f->directory), 2);
    clustered_clear(&c);
}

static void test_update_keeps_or_drops(void **state)
{
    struct fixture *f = *state;
    struct error error = ERROR_INIT;
    struct store_summary summary;
    struct clustered c, d;
    ingest(f, ITEMS, &summary);
    cluster(&c, f->output, "rgb_8", "hellinger");
    cluster(&d, f->output, "joint", "euclidean");
    d.clustering.name = "second";
    assert_ok(result_write_clusters(f->output, f->output, &c.clustering, false, &error));
    assert_ok(result_write_clusters(f->output, f->output, &d.clustering, false, &error));
    ingest(f, ITEMS, &summary);
    assert_true(summary.unchanged);
    assert_false(summary.clusters_dropped);
    /* One more failure (90 is an image, 91 is none): the images stay as they are. */
    struct store *store;
    assert_ok(store_open(&store, &f->config, &error));
    for (uint64_t id = 0; id < ITEMS; id++)
        assert_int_equal(put_item(store, id, 0, id, 0), 1);
    assert_int_equal(put_item(store, ITEMS, 0, 94, 0), 0);
    assert_ok(store_finish(store, &test_run, &summary, &error));
    store_close(&store);
    assert_false(summary.unchanged);
    assert_false(summary.clusters_dropped);
    assert_there(f->output, &c);
    assert_there(f->output, &d);
    char kept[65], made[65];
    identity_of(kept, f->output);
    /* The same file, as if the clusters had been made now. */
    unlink(f->output);
    assert_ok(store_open(&store, &f->config, &error));
    for (uint64_t id = 0; id < ITEMS; id++)
        put_item(store, id, 0, id, 0);
    put_item(store, ITEMS, 0, 94, 0);
    assert_ok(store_finish(store, &test_run, &summary, &error));
    store_close(&store);
    assert_ok(result_write_clusters(f->output, f->output, &d.clustering, false, &error));
    assert_ok(result_write_clusters(f->output, f->output, &c.clustering, false, &error));
    identity_of(made, f->output);
    assert_string_equal(kept, made);
    /* One more image: dropped. */
    ingest(f, ITEMS + 10, &summary);
    assert_true(summary.clusters_dropped);
    struct result *result;
    assert_ok(result_open(&result, f->output, &error));
    assert_int_equal(result_clusters_count(result), 0);
    result_close(&result);
    clustered_clear(&c);
    clustered_clear(&d);
}

/* Runs over items in an order and in versions; returns whether the clusters are still there. */
static bool clusters_after(struct fixture *f, const uint64_t *ids, uint64_t changed,
                           bool touched_only)
{
    struct error error = ERROR_INIT;
    struct store_summary summary;
    struct store *store;
    struct result *result;
    assert_ok(store_open(&store, &f->config, &error));
    for (uint64_t i = 0; i < ITEMS; i++) {
        struct made made;
        struct store_record prior;
        bool resumed;
        make_record(&made, ids[i], ids[i] == changed && !touched_only);
        made.record.mtime_ns += ids[i] == changed;
        bool found = store_prior(store, 0, made.record.path, made.record.path_length,
                                 made.record.bytes, made.record.mtime_ns, &prior, &resumed);
        assert_int_equal(found, ids[i] != changed);
        struct store_record *record = found ? &prior : &made.record;
        record->sequence = i;
        assert_ok(store_put(store, record, &error));
    }
    assert_ok(store_finish(store, &test_run, &summary, &error));
    store_close(&store);
    assert_false(summary.unchanged);
    assert_ok(result_open(&result, f->output, &error));
    unsigned count = result_clusters_count(result);
    result_close(&result);
    assert_int_equal(summary.clusters_dropped, count == 0);
    return count > 0;
}

static void test_what_clusters_depend_on(void **state)
{
    struct fixture *f = *state;
    struct error error = ERROR_INIT;
    struct store_summary summary;
    uint64_t ids[ITEMS];
    f->sources[0] = "@list";
    for (uint64_t i = 0; i < ITEMS; i++)
        ids[i] = i;
    for (int variant = 0; variant < 4; variant++) {
        struct clustered c;
        char hex[65];
        f->config.fresh = true;
        ingest(f, ITEMS, &summary);
        f->config.fresh = false;
        cluster(&c, f->output, "rgb_8", "hellinger");
        assert_ok(result_write_clusters(f->output, f->output, &c.clustering, false, &error));
        clustered_clear(&c);
        if (variant == 0) {
            /* A file was touched: its row is another, its values are not. 8 is an image. */
            assert_true(clusters_after(f, ids, 8, true));
        } else if (variant == 1) {
            assert_false(clusters_after(f, ids, 8, false));
        } else if (variant == 2) {
            /* Two images change places (6 and 7); then two failures (3 and 5). */
            ids[6] = 7;
            ids[7] = 6;
            assert_false(clusters_after(f, ids, ITEMS, false));
            ids[6] = 6;
            ids[7] = 7;
        } else {
            ids[3] = 5;
            ids[5] = 3;
            assert_true(clusters_after(f, ids, ITEMS, false));
        }
        identity_of(hex, f->output);
    }
}

static void test_no_room_for_clusters(void **state)
{
    struct fixture *f = *state;
    struct store_summary summary;
    struct clustered c;
    struct stat st;
    char before[65], after[65];
    ingest(f, ITEMS, &summary);
    cluster(&c, f->output, "rgb_8", "hellinger");
    identity_of(before, f->output);
    assert_int_equal(stat(f->output, &st), 0);
    for (rlim_t limit = 1000; limit < (rlim_t)st.st_size + 3000; limit += 4 * 1024) {
        pid_t child = fork();
        if (child == 0) {
            struct error error = ERROR_INIT;
            struct rlimit no_more = {limit, limit};
            signal(SIGXFSZ, SIG_IGN);
            signal(SIGSEGV, SIG_DFL);
            setrlimit(RLIMIT_FSIZE, &no_more);
            enum status status =
                result_write_clusters(f->output, f->output, &c.clustering, false, &error);
            _exit(status != STATUS_FAILED || !strstr(error.sentence, "larger than"));
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    identity_of(after, f->output);
    assert_string_equal(before, after);
    assert_int_equal(count_entries(f->directory), 1);
    clustered_clear(&c);
}

/* --- what verify finds ------------------------------------------------------------------------ */

struct lines {
    char text[4000];
};

static void collect(const char *line, void *context)
{
    struct lines *lines = context;
    size_t used = strlen(lines->text);
    snprintf(lines->text + used, sizeof lines->text - used, "%s\n", line);
}

static void expect_broken(const char *path, const char *part)
{
    struct error error = ERROR_INIT;
    struct result *result;
    struct lines lines = {""};
    uint64_t count;
    assert_ok(result_open(&result, path, &error));
    assert_ok(result_verify(result, collect, &lines, &count, &error));
    if (count == 0 || !strstr(lines.text, part))
        print_error("wanted '%s' among: %s\n", part, lines.text);
    assert_true(count > 0);
    assert_non_null(strstr(lines.text, part));
    result_close(&result);
}

/* Writes one element of a dataset. */
static void poke(const char *path, const char *dataset, hid_t type, hsize_t row, hsize_t column,
                 const void *value)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t id = H5Dopen2(file, dataset, H5P_DEFAULT), space = H5Dget_space(id);
    hsize_t at[2] = {row, column}, one = 1;
    hid_t memory = H5Screate_simple(1, &one, NULL);
    assert_true(H5Sselect_elements(space, H5S_SELECT_SET, 1, at) >= 0);
    assert_true(H5Dwrite(id, type, memory, space, H5P_DEFAULT, value) >= 0);
    H5Sclose(memory);
    H5Sclose(space);
    H5Dclose(id);
    H5Fclose(file);
}

static void test_verify_finds(void **state)
{
    struct fixture *f = *state;
    struct error error = ERROR_INIT;
    struct store_summary summary;
    struct clustered c;
    ingest(f, ITEMS, &summary);
    cluster(&c, f->output, "rgb_8", "hellinger");
    assert_ok(result_write_clusters(f->output, f->output, &c.clustering, false, &error));
    size_t size;
    char *good = read_file(f->output, &size);
    static const float nan_value = NAN, big = 7, third = 0.3f, half = 3.5f;
    static const uint32_t count = 12345, zero = 0;
    static const uint8_t nine = 9;
    static const uint16_t source = 3;
    static const int32_t label = K, other_label = 2;
    static const int64_t row = 1000, wrong_row = 0;
    static const uint64_t members = 1;
    const struct {
        const char *dataset;
        hid_t type;
        hsize_t row, column;
        const void *value;
        const char *line;
    } cases[] = {
        {"features/rgb_8", H5T_NATIVE_FLOAT, 5, 3, &nan_value, "row 5 has values that are not"},
        {"features/rgb_8", H5T_NATIVE_FLOAT, 5, 3, &big, "row 5 has values that are not"},
        {"features/rgb_8", H5T_NATIVE_FLOAT, 0, 0, &third, "do not add up to 1"},
        {"features/joint", H5T_NATIVE_FLOAT, 9, 50, &third, "do not add up to 1"},
        {"features/gray_16", H5T_NATIVE_UINT32, 7, 2, &count, "do not add up to the pixels"},
        {"images/width", H5T_NATIVE_UINT32, 2, 0, &zero, "/images: row 2 has no width"},
        {"images/orientation", H5T_NATIVE_UINT8, 2, 0, &nine, "impossible orientation"},
        {"images/source", H5T_NATIVE_UINT16, 60, 0, &source, "not in the list"},
        {"failures/source", H5T_NATIVE_UINT16, 1, 0, &source, "not in the list"},
        {"images/path_raw/bytes", H5T_NATIVE_UINT8, 3, 0, &nine, "does not agree with path_raw"},
        {"clusters/kmeans/labels", H5T_NATIVE_INT32, 4, 0, &label, "label that is no cluster"},
        {"clusters/kmeans/labels", H5T_NATIVE_INT32, (hsize_t)c.nearest[0], 0, &other_label,
         "sizes"},
        {"clusters/kmeans/distances", H5T_NATIVE_FLOAT, 4, 0, &nan_value, "no distance"},
        {"clusters/kmeans/distances", H5T_NATIVE_FLOAT, 4, 0, &big, "distances add up"},
        {"clusters/kmeans/sizes", H5T_NATIVE_UINT64, 0, 0, &members, "sizes: cluster 0"},
        {"clusters/kmeans/nearest", H5T_NATIVE_INT64, 1, 1, &row, "nearest: the rows of cluster 1"},
        {"clusters/kmeans/nearest", H5T_NATIVE_INT64, 1, 0, &wrong_row, "rows of cluster 1"},
        {"clusters/kmeans/centroids", H5T_NATIVE_FLOAT, 1, 2, &nan_value, "no number"},
        {"clusters/kmeans/centroids", H5T_NATIVE_FLOAT, 1, 2, &half, "nearest centroid"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_file(f->output, good, size);
        poke(f->output, cases[i].dataset, cases[i].type, cases[i].row, cases[i].column,
             cases[i].value);
        expect_broken(f->output, cases[i].line);
    }
    /* Values that are fine by themselves, but not those that were clustered: two of a histogram
     * change places. */
    write_file(f->output, good, size);
    struct result *result;
    assert_ok(result_open(&result, f->output, &error));
    float values[24];
    assert_ok(
        result_feature_read(result, result_feature_find(result, "rgb_8"), 11, 1, values, &error));
    result_close(&result);
    unsigned a = 0, b = 1;
    while (values[a] == values[b])
        b++;
    assert_true(b < 8);
    poke(f->output, "features/rgb_8", H5T_NATIVE_FLOAT, 11, a, &values[b]);
    poke(f->output, "features/rgb_8", H5T_NATIVE_FLOAT, 11, b, &values[a]);
    expect_broken(f->output, "made from other rows");
    /* A reason that does not exist; paths in the wrong order; a scale that is gone. */
    write_file(f->output, good, size);
    hid_t text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, 16);
    poke(f->output, "failures/reason", text, 2, 0, "no-such-reason\0");
    expect_broken(f->output, "row 2 has a reason that does not exist");
    write_file(f->output, good, size);
    H5Tset_size(text, H5T_VARIABLE);
    H5Tset_cset(text, H5T_CSET_UTF8);
    const char *early = "a";
    poke(f->output, "images/path", text, 9, 0, &early);
    expect_broken(f->output, "row 9 does not come after");
    H5Tclose(text);
    write_file(f->output, good, size);
    hid_t file = H5Fopen(f->output, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(H5Adelete_by_name(file, "images/height", "DIMENSION_LIST", H5P_DEFAULT) >= 0);
    H5Fclose(file);
    expect_broken(f->output, "/images/height: axis 0 has no dimension scale");
    /* Unfinished work beside it. */
    write_file(f->output, good, size);
    assert_int_equal(mkdir(f->work, 0777), 0);
    expect_broken(f->output, "out.h5.partial is there");
    rmdir(f->work);
    free(good);
    clustered_clear(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_add_and_replace, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(test_file_of_its_own, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(test_refusals, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(test_update_keeps_or_drops, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(test_what_clusters_depend_on, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(test_no_room_for_clusters, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(test_verify_finds, fixture_open, fixture_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

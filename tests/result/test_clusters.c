/* test_clusters.c: clusterings that are added, replaced and carried over. */
#include "test_clusters_common.h"
#include <hdf5.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void assert_there(const char *path, const struct clustered *c)
{
    struct error error = ERROR_INIT;
    struct result *result;
    const struct result_clusters *given = &c->clustering.clusters;
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
    void *const part[] = {centroids, labels, distances, sizes, nearest};
    for (int p = PART_CENTROIDS; p <= PART_NEAREST; p++)
        assert_ok(result_part_read(part[p], found, p, &error));
    assert_memory_equal(centroids, c->centroids, K * given->dimension * sizeof *centroids);
    assert_memory_equal(labels, c->labels, given->rows * sizeof *labels);
    assert_memory_equal(distances, c->distances, given->rows * sizeof *distances);
    assert_memory_equal(sizes, c->sizes, sizeof sizes);
    assert_memory_equal(nearest, c->nearest, sizeof nearest);
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
    assert_ok(result_write_clusters(f->output, f->output, &first.clustering, 1, false, &error));
    assert_there(f->output, &first);
    identity_of(with, f->output);
    assert_string_not_equal(plain, with);

    /* A clustering is not written twice unless replacing was requested. */
    assert_int_equal(
        result_write_clusters(f->output, f->output, &first.clustering, 1, false, &error),
        STATUS_USAGE);
    assert_int_equal(error.remedy, REMEDY_REPLACE);
    struct stat st[2];
    assert_int_equal(stat(f->output, &st[0]), 0);
    for (int i = 0; i < 5; i++)
        assert_ok(result_write_clusters(f->output, f->output, &first.clustering, 1, true, &error));
    identity_of(again, f->output);
    assert_string_equal(with, again);
    assert_there(f->output, &first);
    /* The space of the replaced clustering is reused. */
    assert_int_equal(stat(f->output, &st[1]), 0);
    assert_true(st[1].st_size < st[0].st_size + 20000);

    /* A second clustering, of another feature with another metric, is added; then a third replaces
     * it. */
    cluster(&second, f->output, "gray_16", "cosine");
    rename_clustering(&second, "other-1.0");
    assert_ok(result_write_clusters(f->output, f->output, &second.clustering, 1, false, &error));
    assert_there(f->output, &first);
    assert_there(f->output, &second);
    identity_of(with, f->output);
    clustered_clear(&second);
    cluster(&second, f->output, "joint", "euclidean");
    rename_clustering(&second, "other-1.0");
    assert_ok(result_write_clusters(f->output, f->output, &second.clustering, 1, true, &error));
    assert_there(f->output, &second);
    identity_of(again, f->output);
    assert_string_not_equal(with, again);
    assert_int_equal(count_entries(f->directory), 1);
    clustered_clear(&first);
    clustered_clear(&second);
}

static void test_separate_file(void **state)
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
    /* Writes the clusters to a copy of the input. */
    assert_ok(result_write_clusters(path, f->output, &c.clustering, 1, false, &error));
    assert_there(path, &c);
    identity_of(after, path);
    assert_int_equal(result_write_clusters(path, f->output, &c.clustering, 1, false, &error),
                     STATUS_USAGE);
    assert_ok(result_write_clusters(path, f->output, &c.clustering, 1, true, &error));
    /* Clusters of other data may not be written to a file with features. */
    assert_int_equal(result_write_clusters(path, NULL, &c.clustering, 1, true, &error),
                     STATUS_USAGE);
    assert_non_null(strstr(error.sentence, "features"));
    unlink(path);
    /* A file with clusters only, and then a second clustering beside the first. */
    assert_ok(result_write_clusters(path, NULL, &c.clustering, 1, false, &error));
    assert_there(path, &c);
    identity_of(after, path);
    assert_int_equal(result_write_clusters(path, NULL, &c.clustering, 1, false, &error),
                     STATUS_USAGE);
    rename_clustering(&c, "second");
    c.clustering.clusters.k = 2;
    c.clustering.clusters.dimension = 12;
    c.clustering.clusters.rows = 10;
    c.clustering.clusters.iterations = 0;
    assert_ok(result_write_clusters(path, NULL, &c.clustering, 1, false, &error));
    struct result *result;
    assert_ok(result_open(&result, path, &error));
    assert_int_equal(result->clusters_count, 2);
    assert_int_equal(result_images(result), 0);
    assert_int_equal(result->feature_count, 0);
    assert_string_equal(result->parameters, "{}");
    result_close(&result);
    /* An ingest refuses such a file as its output. */
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
    static const char *const names[] = {"", ".", "..", "a/b", "a b", "\xc3\xa9", "a\n"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        rename_clustering(&c, names[i]);
        assert_int_equal(
            result_write_clusters(f->output, f->output, &c.clustering, 1, true, &error),
            STATUS_USAGE);
    }
    rename_clustering(&c, "kmeans");
    c.clustering.clusters.rows--;
    assert_int_equal(result_write_clusters(f->output, f->output, &c.clustering, 1, true, &error),
                     STATUS_FAILED);
    c.clustering.clusters.rows++;
    snprintf(path, sizeof path, "%s/notes.txt", f->directory);
    write_file(path, "notes", 5);
    assert_int_equal(result_write_clusters(path, f->output, &c.clustering, 1, true, &error),
                     STATUS_FAILED);
    assert_non_null(strstr(error.sentence, "not overwritten"));
    assert_int_equal(result_write_clusters(f->output, path, &c.clustering, 1, true, &error),
                     STATUS_FAILED);
    assert_int_equal(
        result_write_clusters("/nonexistent/r.h5", f->output, &c.clustering, 1, true, &error),
        STATUS_FAILED);
    assert_int_equal(result_write_clusters("/dev/null", f->output, &c.clustering, 1, true, &error),
                     STATUS_FAILED);
    identity_of(after, f->output);
    assert_string_equal(before, after);
    assert_int_equal(count_entries(f->directory), 2);
    clustered_clear(&c);
}

/* Puts all rows in cluster 1, with their first value as the distance. */
static enum status label_all(int32_t *labels, float *distances, const float *rows, uint64_t count,
                             uint32_t dimension, const float *centroids, uint32_t k,
                             const char *metric, unsigned threads, struct stop *stop,
                             struct error *err)
{
    (void)centroids;
    (void)threads;
    (void)stop;
    (void)err;
    assert_true(k > 1 && metric[0]);
    for (uint64_t i = 0; i < count; i++) {
        labels[i] = 1;
        distances[i] = rows[i * dimension];
    }
    return STATUS_OK;
}

/* Checks that the file continues the clustering `before`, whose first `gone_rows` rows are gone. */
static void assert_continued(const char *path, const struct clustered *before, uint64_t gone_rows)
{
    struct error error = ERROR_INIT;
    struct result *result;
    assert_ok(result_open(&result, path, &error));
    const struct result_clusters *c =
        result_clusters_find(result, before->clustering.clusters.name);
    assert_non_null(c);
    const uint64_t rows = result_images(result),
                   kept = before->clustering.clusters.rows - gone_rows;
    assert_int_equal(c->rows, rows);
    assert_int_equal(c->fitted_rows, before->clustering.clusters.rows);
    assert_true(c->inertia == before->clustering.clusters.inertia);
    int32_t *labels = malloc(rows * sizeof *labels);
    float *distances = malloc(rows * sizeof *distances);
    uint64_t *sizes = malloc(c->k * sizeof *sizes), *counted = calloc(c->k, sizeof *counted);
    int64_t *nearest = malloc(c->k * 3 * sizeof *nearest);
    float *row = malloc(c->dimension * sizeof *row);
    const struct result_feature *feature = result_feature_find(result, c->feature);
    assert_ok(result_clusters_read_rows(c, 0, rows, labels, distances, &error));
    assert_ok(result_part_read(sizes, c, PART_SIZES, &error));
    assert_ok(result_part_read(nearest, c, PART_NEAREST, &error));
    for (uint64_t i = 0; i < rows; i++) {
        if (i < kept) {
            assert_int_equal(labels[i], before->labels[i + gone_rows]);
            assert_true(distances[i] == before->distances[i + gone_rows]);
        } else {
            assert_ok(read_feature(result, feature, i, 1, row, &error));
            assert_int_equal(labels[i], 1);
            assert_true(distances[i] == row[0]);
        }
        counted[labels[i]]++;
    }
    for (uint32_t i = 0; i < c->k; i++) {
        assert_int_equal(sizes[i], counted[i]);
        if (nearest[3 * i] >= 0)
            assert_int_equal(labels[nearest[3 * i]], i);
        for (int n = 1; n < 3 && nearest[3 * i + n] >= 0; n++) {
            float a = distances[nearest[3 * i + n - 1]], b = distances[nearest[3 * i + n]];
            assert_true(a < b || (a == b && nearest[3 * i + n - 1] < nearest[3 * i + n]));
        }
    }
    free(labels);
    free(distances);
    free(sizes);
    free(counted);
    free(nearest);
    free(row);
    result_close(&result);
}

static void test_update_keeps_and_continues(void **state)
{
    struct fixture *f = *state;
    struct error error = ERROR_INIT;
    struct store_summary summary;
    struct clustered c, d;
    ingest(f, ITEMS, &summary);
    cluster(&c, f->output, "rgb_8", "hellinger");
    cluster(&d, f->output, "joint", "euclidean");
    rename_clustering(&d, "second");
    assert_ok(result_write_clusters(f->output, f->output, &c.clustering, 1, false, &error));
    assert_ok(result_write_clusters(f->output, f->output, &d.clustering, 1, false, &error));
    ingest(f, ITEMS, &summary);
    assert_true(summary.unchanged);
    /* One more failure does not change the images (90 is an image, 91 a failure). */
    struct store *store;
    assert_ok(store_open(&store, &f->config, &error));
    for (uint64_t id = 0; id < ITEMS; id++)
        assert_int_equal(put_item(store, id, 0, id, 0), 1);
    assert_int_equal(put_item(store, ITEMS, 0, 94, 0), 0);
    assert_ok(store_finish(store, &test_run, &summary, &error));
    store_close(&store);
    assert_false(summary.unchanged);
    assert_there(f->output, &c);
    assert_there(f->output, &d);
    char kept[65], made[65];
    identity_of(kept, f->output);
    /* Makes the same file and clusters it only now. */
    unlink(f->output);
    assert_ok(store_open(&store, &f->config, &error));
    for (uint64_t id = 0; id < ITEMS; id++)
        put_item(store, id, 0, id, 0);
    put_item(store, ITEMS, 0, 94, 0);
    assert_ok(store_finish(store, &test_run, &summary, &error));
    store_close(&store);
    assert_ok(result_write_clusters(f->output, f->output, &d.clustering, 1, false, &error));
    assert_ok(result_write_clusters(f->output, f->output, &c.clustering, 1, false, &error));
    identity_of(made, f->output);
    assert_string_equal(kept, made);
    /* Additional images are labelled. */
    f->config.label = label_all;
    ingest(f, ITEMS + 10, &summary);
    assert_continued(f->output, &c, 0);
    assert_continued(f->output, &d, 0);
    /* The first three images are removed. */
    struct made item;
    struct store_record prior;
    uint64_t gone = 0, sequence = 0, first = 0;
    for (; gone < 3; first++) {
        make_record(&item, first, 0);
        gone += item.record.failure.reason == REASON_NONE;
    }
    assert_ok(store_open(&store, &f->config, &error));
    for (uint64_t id = first; id < ITEMS + 10; id++) {
        make_record(&item, id, 0);
        assert_true(prior_find(store_prior(store), 0, item.record.path, item.record.path_length,
                               item.record.image.bytes, item.record.image.mtime_ns, &prior));
        prior.sequence = sequence++;
        assert_ok(store_put(store, &prior, &error));
    }
    assert_ok(store_finish(store, &test_run, &summary, &error));
    store_close(&store);
    assert_continued(f->output, &c, 3);
    assert_continued(f->output, &d, 3);
    f->config.label = NULL;
    clustered_clear(&c);
    clustered_clear(&d);
}

/* Runs over items in a given order and version; returns whether the clusters are still those of a
 * fit of all rows. */
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
        make_record(&made, ids[i], ids[i] == changed && !touched_only);
        made.record.image.mtime_ns += ids[i] == changed;
        bool found = prior_find(store_prior(store), 0, made.record.path, made.record.path_length,
                                made.record.image.bytes, made.record.image.mtime_ns, &prior);
        assert_int_equal(found, ids[i] != changed);
        struct store_record *record = found ? &prior : &made.record;
        record->sequence = i;
        assert_ok(store_put(store, record, &error));
    }
    assert_ok(store_finish(store, &test_run, &summary, &error));
    store_close(&store);
    assert_false(summary.unchanged);
    assert_ok(result_open(&result, f->output, &error));
    assert_int_equal(result->clusters_count, 1);
    const uint64_t fitted = result->clusters[0].fitted_rows;
    assert_true(fitted == 0 || fitted == result->clusters[0].rows);
    result_close(&result);
    return fitted == 0;
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
        assert_ok(result_write_clusters(f->output, f->output, &c.clustering, 1, false, &error));
        clustered_clear(&c);
        if (variant == 0) {
            /* Touching a file changes its row but not its values. Item 8 is an image. */
            assert_true(clusters_after(f, ids, 8, true));
        } else if (variant == 1) {
            assert_false(clusters_after(f, ids, 8, false));
        } else if (variant == 2) {
            /* Two images (6 and 7) are exchanged; then two failures (3 and 5). */
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

static void test_no_space_for_clusters(void **state)
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
    for (rlim_t limit = 1000; limit < (rlim_t)st.st_size + 3000;
         limit += test_brief() ? 13000 : 4096) {
        pid_t child = fork();
        if (child == 0) {
            struct error error = ERROR_INIT;
            struct rlimit no_more = {limit, limit};
            signal(SIGXFSZ, SIG_IGN);
            signal(SIGSEGV, SIG_DFL);
            setrlimit(RLIMIT_FSIZE, &no_more);
            enum status status =
                result_write_clusters(f->output, f->output, &c.clustering, 1, false, &error);
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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_add_and_replace, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_separate_file, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_refusals, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_update_keeps_and_continues, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_what_clusters_depend_on, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_no_space_for_clusters, fixture_open, fixture_close),
};
TEST_GROUP(clusters, NULL, NULL)

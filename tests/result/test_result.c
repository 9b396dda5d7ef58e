/* test_result.c: files that are damaged by accident or on purpose. */
#include "base/process.h"
#include "test_store_common.h"
#include <errno.h>
#include <hdf5.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define ITEMS 40

struct file {
    char *bytes;
    size_t size;
};

static struct file good_file(struct fixture *f)
{
    struct store_summary summary;
    unsigned counts[3] = {0};
    struct file file;
    run_items(f, 0, ITEMS, 1, 0, &summary, counts);
    file.bytes = read_file(f->output, &file.size);
    return file;
}

/* Reads everything in the file. Returns 0 if opening it failed, 1 if an error occurred later, 2
 * without an error. */
static int read_all(const char *path, struct error *error)
{
    struct result *result = (struct result *)error;
    struct result_image image;
    struct result_failure failure;
    struct store_run run;
    uint64_t broken;
    char hex[65];
    enum status status = result_open(&result, path, error);
    if (status) {
        assert_null(result);
        assert_int_equal(status, access(path, F_OK) ? STATUS_USAGE : STATUS_FAILED);
        return 0;
    }
    for (uint64_t i = 0; !status && i < result_images(result); i++)
        status = result_image_at(result, i, &image, error);
    for (uint64_t i = 0; !status && i < result_failures(result); i++)
        status = result_failure_at(result, i, &failure, error);
    for (uint64_t i = 0; !status && i < result->run_count; i++)
        status = result_run_at(result, i, &run, error);
    if (!status)
        status = result_verify(result, print_broken, NULL, &broken, error);
    if (!status)
        status = result_identity(result, hex, error);
    result_close(&result);
    return status ? 1 : 2;
}

static void expect_refused(struct fixture *f, const char *what, int level, const char *part)
{
    struct error error = ERROR_INIT;
    int reached = read_all(f->output, &error);
    if (!part) {
        assert_int_equal(reached, level);
        return;
    }
    if (reached != level || !strstr(error.sentence, part))
        print_error("%s: wanted %d '%s', got %d '%s'\n", what, level, part, reached,
                    error.sentence);
    assert_int_equal(reached, level);
    assert_non_null(strstr(error.sentence, part));
    assert_non_null(strstr(error.sentence, "out.h5"));
    assert_null(strchr(error.sentence, '\n'));
}

/* --- no HDF5 --------------------------------------------------------------------------------- */

static void test_other_files(void **state)
{
    struct fixture *f = *state;
    expect_refused(f, "missing", 0, "there is no file");
    write_file(f->output, "", 0);
    expect_refused(f, "empty", 0, "not an HDF5 file");
    write_file(f->output, "some text\n", 10);
    expect_refused(f, "text", 0, "not an HDF5 file");
    unlink(f->output);
    assert_int_equal(mkfifo(f->output, 0666), 0);
    expect_refused(f, "a pipe, which must not be waited for", 0, "not a regular file");
    unlink(f->output);
    assert_int_equal(mkdir(f->output, 0777), 0);
    expect_refused(f, "a directory", 0, "not a regular file");
    rmdir(f->output);
    hid_t file = H5Fcreate(f->output, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    expect_refused(f, "an empty HDF5 file", 0, "not a clpipe file");
}

static void test_truncated(void **state)
{
    struct fixture *f = *state;
    struct file good = good_file(f);
    struct error error = ERROR_INIT;
    assert_int_equal(read_all(f->output, &error), 2);
    for (size_t size = 0; size < good.size; size += 1 + good.size / 60) {
        write_file(f->output, good.bytes, size);
        assert_int_equal(read_all(f->output, &error), 0);
        assert_non_null(strstr(error.sentence, "out.h5"));
    }
    free(good.bytes);
}

/* --- wrong structure ------------------------------------------------------------------------- */

/* Replaces a dataset by one with other properties. */
static void replace(hid_t file, const char *name, hid_t type, int rank, const hsize_t *size,
                    hid_t list)
{
    static const hsize_t most[2] = {H5S_UNLIMITED, H5S_UNLIMITED};
    bool chunked = list != H5P_DEFAULT && H5Pget_layout(list) == H5D_CHUNKED;
    hid_t space = H5Screate_simple(rank, size, chunked ? most : NULL);
    H5Ldelete(file, name, H5P_DEFAULT);
    hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    assert_true(dataset > 0);
    H5Dclose(dataset);
    H5Sclose(space);
}

static hsize_t rows_of(hid_t file, const char *name)
{
    hsize_t size[2] = {0, 0};
    hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(dataset);
    H5Sget_simple_extent_dims(space, size, NULL);
    H5Sclose(space);
    H5Dclose(dataset);
    return size[0];
}

static void no_width(hid_t file)
{
    H5Ldelete(file, "images/width", H5P_DEFAULT);
}

static void float_width(hid_t file)
{
    hsize_t n = rows_of(file, "images/width");
    replace(file, "images/width", H5T_IEEE_F32LE, 1, &n, H5P_DEFAULT);
}

static void signed_width(hid_t file)
{
    hsize_t n = rows_of(file, "images/width");
    replace(file, "images/width", H5T_STD_I32LE, 1, &n, H5P_DEFAULT);
}

static void long_width(hid_t file)
{
    hsize_t n = rows_of(file, "images/width") + 1;
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY);
    replace(file, "images/width", H5T_STD_U32LE, 1, &n, list);
    H5Pclose(list);
}

static void deep_width(hid_t file)
{
    hsize_t size[2] = {rows_of(file, "images/width"), 2};
    replace(file, "images/width", H5T_STD_U32LE, 2, size, H5P_DEFAULT);
}

static void scalar_width(hid_t file)
{
    H5Ldelete(file, "images/width", H5P_DEFAULT);
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t dataset = H5Dcreate2(file, "images/width", H5T_STD_U32LE, space, H5P_DEFAULT, H5P_DEFAULT,
                               H5P_DEFAULT);
    H5Dclose(dataset);
    H5Sclose(space);
}

static void soft_width(hid_t file)
{
    H5Ldelete(file, "images/width", H5P_DEFAULT);
    H5Lcreate_soft("/images/height", file, "images/width", H5P_DEFAULT, H5P_DEFAULT);
}

static void dangling_width(hid_t file)
{
    H5Ldelete(file, "images/width", H5P_DEFAULT);
    H5Lcreate_soft("/nowhere", file, "images/width", H5P_DEFAULT, H5P_DEFAULT);
}

static void external_images(hid_t file)
{
    H5Lmove(file, "images", file, "hidden", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external("/etc/passwd", "/", file, "images", H5P_DEFAULT, H5P_DEFAULT);
}

static void group_width(hid_t file)
{
    H5Ldelete(file, "images/width", H5P_DEFAULT);
    H5Gclose(H5Gcreate2(file, "images/width", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
}

static void variable_path(hid_t file)
{
    hsize_t n = rows_of(file, "images/path");
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    replace(file, "images/path", type, 1, &n, H5P_DEFAULT);
    H5Tclose(type);
}

static void no_attributes(hid_t file)
{
    H5Adelete_by_name(file, "features/rgb_8", "spec", H5P_DEFAULT);
}

static void no_parameters(hid_t file)
{
    H5Adelete(file, "parameters");
}

static void numeric_parameters(hid_t file)
{
    H5Adelete(file, "parameters");
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t attribute =
        H5Acreate2(file, "parameters", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT);
    H5Aclose(attribute);
    H5Sclose(space);
}

static void newer_format(hid_t file)
{
    int number = 99;
    hid_t attribute = H5Aopen(file, "clpipe_format", H5P_DEFAULT);
    H5Awrite(attribute, H5T_NATIVE_INT, &number);
    H5Aclose(attribute);
}

static void no_features(hid_t file)
{
    H5Ldelete(file, "features", H5P_DEFAULT);
}

/* Replaces a feature and its attributes. */
static void replace_feature(hid_t file, hid_t type, int rank, const hsize_t *size, hid_t list)
{
    hid_t old = H5Dopen2(file, "features/rgb_8", H5P_DEFAULT);
    replace(file, "features/rgb_8", type, rank, size, list);
    hid_t new = H5Dopen2(file, "features/rgb_8", H5P_DEFAULT);
    static const char *const names[] = {"spec", "kind", "bins", "grid", "normalize"};
    hid_t text = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(text, H5T_VARIABLE);
    H5Tset_cset(text, H5T_CSET_UTF8);
    for (size_t i = 0; i < 5; i++) {
        char *value = NULL;
        hid_t from = H5Aopen(old, names[i], H5P_DEFAULT);
        assert_true(H5Aread(from, text, &value) >= 0);
        hid_t to = H5Acreate2(new, names[i], text, space, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(H5Awrite(to, text, &value) >= 0);
        H5free_memory(value);
        H5Aclose(from);
        H5Aclose(to);
    }
    int one = 1;
    hid_t scale = H5Acreate2(new, "decode_scale", H5T_STD_U32LE, space, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(scale, H5T_NATIVE_INT, &one);
    H5Aclose(scale);
    H5Sclose(space);
    H5Tclose(text);
    H5Dclose(old);
    H5Dclose(new);
}

static void huge_feature(hid_t file)
{
    hsize_t size[2] = {rows_of(file, "images/width"), 1 << 22};
    replace_feature(file, H5T_IEEE_F32LE, 2, size, H5P_DEFAULT);
}

static void impossible_feature(hid_t file)
{
    hsize_t size[2] = {(hsize_t)1 << 30, (hsize_t)1 << 22};
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunk[2] = {1, 1024};
    H5Pset_chunk(list, 2, chunk);
    replace_feature(file, H5T_IEEE_F32LE, 2, size, list);
    H5Pclose(list);
}

static void huge_chunks(hid_t file)
{
    hsize_t size[2] = {rows_of(file, "images/width"), 24}, chunk[2] = {1 << 20, 1 << 8};
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(list, 2, chunk);
    replace_feature(file, H5T_IEEE_F32LE, 2, size, list);
    H5Pclose(list);
}

static void external_feature(hid_t file)
{
    hsize_t size[2] = {rows_of(file, "images/width"), 24};
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(list, "/etc/passwd", 0, H5F_UNLIMITED);
    replace_feature(file, H5T_IEEE_F32LE, 2, size, list);
    H5Pclose(list);
}

static void virtual_feature(hid_t file)
{
    hsize_t size[2] = {rows_of(file, "images/width"), 24};
    hid_t list = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(2, size, NULL);
    H5Pset_virtual(list, space, "/etc/passwd", "x", space);
    replace_feature(file, H5T_IEEE_F32LE, 2, size, list);
    H5Sclose(space);
    H5Pclose(list);
}

static void counting_feature(hid_t file)
{
    hsize_t size[2] = {rows_of(file, "images/width"), 24};
    replace_feature(file, H5T_STD_U32LE, 2, size, H5P_DEFAULT);
}

static void flat_feature(hid_t file)
{
    hsize_t n = rows_of(file, "images/width");
    replace_feature(file, H5T_IEEE_F32LE, 1, &n, H5P_DEFAULT);
}

static void empty_clustering(hid_t file)
{
    hid_t all = H5Gcreate2(file, "clusters", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(H5Gcreate2(all, "kmeans", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Gclose(all);
}

static void clusters_of_another_kind(hid_t file)
{
    hid_t all = H5Gcreate2(file, "clusters", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/images", all, "kmeans", H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(all);
}

/* A group that is its own member: reading all members would never end. */
static void endless(hid_t file)
{
    hid_t group = H5Gcreate2(file, "extra", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(file, "extra", group, "a", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(file, "extra", group, "b", H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(group);
}

static void linked_extra(hid_t file)
{
    H5Lcreate_external("/etc/passwd", "/", file, "extra", H5P_DEFAULT, H5P_DEFAULT);
}

static void test_wrong_structure(void **state)
{
    struct fixture *f = *state;
    struct file good = good_file(f);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
#define CASE(change, level, part)                                                                  \
    {                                                                                              \
        change, #change, level, part                                                               \
    }
    static const struct {
        void (*change)(hid_t file);
        const char *name;
        int level;
        const char *part;
    } cases[] = {
        CASE(no_width, 0, "no dataset /images/width"),
        CASE(float_width, 0, "/images/width has a type that"),
        CASE(signed_width, 0, "/images/width has a type that"),
        CASE(long_width, 0, "columns of different lengths"),
        CASE(deep_width, 0, "a number of dimensions that"),
        CASE(scalar_width, 0, "a number of dimensions that"),
        CASE(soft_width, 0, "no dataset /images/width"),
        CASE(dangling_width, 0, "no dataset /images/width"),
        CASE(external_images, 0, "/images is missing"),
        CASE(group_width, 0, "no dataset /images/width"),
        CASE(variable_path, 0, "/images/path has a type that"),
        CASE(no_attributes, 2, NULL),
        CASE(no_parameters, 0, "no attribute 'parameters'"),
        CASE(numeric_parameters, 0, "'parameters' is not text"),
        CASE(newer_format, 0, "has format 99, but this clpipe reads format"),
        CASE(no_features, 0, "no /features"),
        CASE(huge_feature, 0, "beyond the end"),
        CASE(impossible_feature, 0, "larger than its file can hold"),
        CASE(huge_chunks, 0, "larger chunks"),
        CASE(external_feature, 0, "another file"),
        CASE(virtual_feature, 0, "other datasets"),
        CASE(counting_feature, 0, "/features/rgb_8 has a type that"),
        CASE(flat_feature, 0, "a number of dimensions that"),
        CASE(empty_clustering, 2, NULL),
        CASE(clusters_of_another_kind, 2, NULL),
        CASE(endless, 2, NULL),
        CASE(linked_extra, 2, NULL),
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_file(f->output, good.bytes, good.size);
        hid_t file = H5Fopen(f->output, H5F_ACC_RDWR, H5P_DEFAULT);
        assert_true(file > 0);
        cases[i].change(file);
        assert_true(H5Fclose(file) >= 0);
        expect_refused(f, cases[i].name, cases[i].level, cases[i].part);
    }
    free(good.bytes);
}

/* A feature that another program has compressed is readable. */
static void test_repacked_feature(void **state)
{
    struct fixture *f = *state;
    struct file good = good_file(f);
    struct error error = ERROR_INIT;
    float *before = malloc(ITEMS * 24 * sizeof *before),
          *after = malloc(ITEMS * 24 * sizeof *after);
    hid_t file = H5Fopen(f->output, H5F_ACC_RDWR, H5P_DEFAULT);
    hsize_t size[2] = {rows_of(file, "images/width"), 24}, chunk[2] = {5, 24};
    hid_t dataset = H5Dopen2(file, "features/rgb_8", H5P_DEFAULT);
    H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, before);
    H5Dclose(dataset);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(list, 2, chunk);
    H5Pset_deflate(list, 6);
    replace_feature(file, H5T_IEEE_F32BE, 2, size, list);
    dataset = H5Dopen2(file, "features/rgb_8", H5P_DEFAULT);
    H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, before);
    H5Dclose(dataset);
    H5Pclose(list);
    H5Fclose(file);
    struct result *result;
    assert_ok(result_open(&result, f->output, &error));
    const struct result_feature *feature = result_feature_find(result, "rgb_8");
    assert_ok(read_feature(result, feature, 0, feature->rows, after, &error));
    assert_memory_equal(before, after, feature->rows * 24 * sizeof *before);
    result_close(&result);
    free(before);
    free(after);
    free(good.bytes);
}

/* --- wrong bytes ----------------------------------------------------------------------------- */

#define ENDED 3 /* the process crashed and printed a line that names the file */

/* Reads a file in a child process, because HDF5 may crash, and returns the result of read_all() or
 * ENDED. */
static int read_in_child(const char *path, const char *messages)
{
    static const int crashes[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE};
    struct error error = ERROR_INIT;
    pid_t child = fork();
    if (child == 0) {
        log_set_level(LOG_QUIET);
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        if (!freopen(messages, "w", stderr))
            _exit(-1);
        process_repair();
        alarm(20);
        for (size_t i = 0; SANITIZED && i < sizeof crashes / sizeof *crashes; i++)
            signal(crashes[i],
                   SIG_DFL); /* default actions: sanitizers exit after their own report */
        _exit(read_all(path, &error));
    }
    int status;
    struct rusage usage;
    pid_t ended;
    while ((ended = wait4(child, &status, 0, &usage)) < 0 && errno == EINTR)
        ;
    assert_int_equal(ended, child);
    if (SANITIZED && WIFSIGNALED(status)) /* with sanitizers, the program does not report crashes */
        return ENDED;
    assert_true(WIFEXITED(status));
    assert_true(SANITIZED || usage.ru_maxrss < 400 << 10);
    int code = WEXITSTATUS(status);
    if (code >= ENDED) {
        size_t size;
        char *line = read_file(messages, &size), verify[400];
        /* A sanitizer reports errors in calls from HDF5 to the C library. */
        const char *caller = SANITIZED ? strstr(line, "    #1 ") : NULL;
        snprintf(verify, sizeof verify, "clpipe verify %s tells", path);
        if (caller && memmem(caller, strcspn(caller, "\n"), "/libhdf5", 8))
            code = ENDED;
        else if (code > ENDED || !strstr(line, "clpipe: ended by signal ") || !strstr(line, verify))
            fail_msg("%.*s", (int)size, line);
        free(line);
    }
    return code;
}

static void test_random_damage(void **state)
{
    struct fixture *f = *state;
    struct file good = good_file(f);
    unsigned reached[ENDED + 1] = {0};
    char messages[400];
    snprintf(messages, sizeof messages, "%s.messages", f->output);
    for (uint64_t i = 0; i < 120; i += test_brief() ? 5 : 1) {
        char *bad = malloc(good.size);
        memcpy(bad, good.bytes, good.size);
        for (uint64_t j = 0; j <= i % 3; j++) {
            uint64_t r = mix(1000 * i + j);
            bad[r % good.size] =
                i % 2 ? (char)(r >> 40) : (char)(bad[r % good.size] ^ 1 << (r >> 60) % 8);
        }
        write_file(f->output, bad, good.size);
        free(bad);
        const int level = read_in_child(f->output, messages);
        assert_in_range(level, 0, ENDED);
        reached[level]++;
    }
    print_message("refused when opened %u, refused later %u, read %u, ended %u\n", reached[0],
                  reached[1], reached[2], reached[ENDED]);
    unlink(messages);
    free(good.bytes);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_other_files, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_truncated, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_wrong_structure, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_repacked_feature, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_random_damage, fixture_open, fixture_close),
};
TEST_GROUP(result, NULL, NULL)

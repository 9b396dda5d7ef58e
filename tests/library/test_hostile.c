/* test_hostile.c: calls to the library with any arguments that C allows: each call returns
 * CLPIPE_OK or an error of one line, and leaves the handle usable. */
#include "runner.h"

#include "library/clpipe.h"
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 40, COLUMNS = 7, K = 3, SIDE = 12, PICTURES = 3, MOST = 64 };

/* The state of one thread. */
struct caller {
    uint32_t state;
    struct clpipe **shared; /* one of these handles is used */
    unsigned handles;
    struct clpipe *own; /* the handle whose call invokes the callbacks */
    unsigned ok, failed;
};

static uint32_t draw(struct caller *caller, uint32_t below)
{
    caller->state = caller->state * 1664525u + 1013904223u;
    return (caller->state >> 8) % below;
}

static bool rarely(struct caller *caller)
{
    return draw(caller, 12) == 0;
}

#define TYPE_OF(value) __typeof__((value) + 0)

/* Draws one of the values, which have the type of the first. */
#define ONE_OF(caller, first, ...)                                                                 \
    ((TYPE_OF(first)[]){first, __VA_ARGS__})[draw(                                                 \
        caller, sizeof((TYPE_OF(first)[]){first, __VA_ARGS__}) / sizeof(TYPE_OF(first)))]

static size_t size_of(struct caller *caller, size_t size)
{
    const size_t wrong[] = {0, 1, sizeof size - 1, sizeof size, 5000, SIZE_MAX};
    return rarely(caller) ? wrong[draw(caller, 6)] : size;
}

static int number(struct caller *caller, int usual)
{
    const int wrong[] = {-1, 3, 4, 99, INT32_MIN, INT32_MAX};
    return rarely(caller) ? wrong[draw(caller, 6)] : usual;
}

static uint32_t count(struct caller *caller, uint32_t usual)
{
    const uint32_t wrong[] = {0, 1, ROWS + 1, 1u << 22, (1u << 22) + 1, UINT32_MAX};
    return rarely(caller) ? wrong[draw(caller, 6)] : usual;
}

static float value(struct caller *caller)
{
    static const float wrong[] = {NAN, INFINITY, -INFINITY, -1, 0, 3e38f, 1e-45f};
    return draw(caller, 2000) == 0 ? wrong[draw(caller, 7)] : (float)(1 + draw(caller, 1000)) / 100;
}

static int64_t stride(struct caller *caller)
{
    const int64_t wrong[] = {1, 3, INT64_MIN, INT64_MAX, INT64_C(1) << 61};
    return rarely(caller) ? wrong[draw(caller, 5)] : 0;
}

static int read_rows(void *context, uint64_t first, uint64_t rows, float *values)
{
    struct caller *caller = context;
    struct clpipe_error err = CLPIPE_INIT(clpipe_error);
    char name[8];
    if (draw(caller, 9) == 0) /* another thread may close the handle in the meantime */
        assert_in_range(clpipe_name(name, sizeof name, caller->own, &err), CLPIPE_ARGUMENT,
                        CLPIPE_ARGUMENT);
    for (uint64_t i = 0; i < rows * COLUMNS; i++)
        values[i] = (float)(((first * COLUMNS + i) * 7919) % 101);
    return rarely(caller) ? ONE_OF(caller, 1, -1, INT32_MIN) : 0;
}

static int progress(void *context, const char *phase, uint64_t done, uint64_t total)
{
    struct caller *caller = context;
    struct clpipe_error err = CLPIPE_INIT(clpipe_error);
    assert_true(strlen(phase) > 0 && (total == 0 || done <= total));
    if (draw(caller, 9) == 0)
        assert_in_range(clpipe_fit(NULL, caller->own, NULL, NULL, NULL, &err), CLPIPE_ARGUMENT,
                        CLPIPE_ARGUMENT);
    if (rarely(caller))
        clpipe_stop(caller->own);
    return rarely(caller);
}

struct given {
    float values[ROWS * COLUMNS];
    struct clpipe_rows rows;
};

static struct clpipe_rows *rows_of(struct given *given, struct caller *caller)
{
    for (unsigned i = 0; i < ROWS * COLUMNS; i++)
        given->values[i] = value(caller);
    given->rows = (struct clpipe_rows){.size = size_of(caller, sizeof given->rows),
                                       .rows = ROWS,
                                       .columns = COLUMNS,
                                       .type = rarely(caller) ? (int)draw(caller, 9) - 3 : 0};
    const uint64_t wrong[] = {0, 1, UINT64_C(1) << 41, UINT64_MAX};
    if (rarely(caller))
        given->rows.rows = wrong[draw(caller, 4)];
    if (rarely(caller))
        given->rows.columns = ONE_OF(caller, 0u, 1u, UINT32_MAX);
    if (given->rows.type == CLPIPE_FLOAT64)
        given->rows.rows = ROWS / 2;
    if (draw(caller, 4) == 0 && given->rows.columns <= COLUMNS) {
        given->rows.columns = COLUMNS;
        given->rows.read = read_rows;
        given->rows.context = caller;
        given->rows.values = rarely(caller) ? given->values : NULL;
    } else {
        given->rows.values = rarely(caller) ? NULL : given->values;
        given->rows.row_stride = stride(caller);
        given->rows.column_stride = stride(caller);
    }
    return rarely(caller) ? NULL : &given->rows;
}

static struct clpipe_watch *watch_of(struct clpipe_watch *watch, struct caller *caller)
{
    *watch = (struct clpipe_watch){size_of(caller, sizeof *watch), progress, caller};
    if (rarely(caller))
        watch->progress = NULL;
    return draw(caller, 2) ? watch : NULL;
}

static int call_fit(struct caller *caller, struct clpipe_error *err)
{
    struct given given;
    struct clpipe_watch watch;
    float centroids[MOST * COLUMNS], initial[K * COLUMNS], weights[ROWS], distances[ROWS];
    int32_t labels[ROWS];
    uint64_t sizes[MOST];
    for (unsigned i = 0; i < K * COLUMNS; i++)
        initial[i] = value(caller);
    for (unsigned i = 0; i < ROWS; i++)
        weights[i] = value(caller);
    struct clpipe_fit fit = {size_of(caller, sizeof fit),
                             rarely(caller) ? NULL : centroids,
                             rarely(caller) ? NULL : labels,
                             rarely(caller) ? NULL : distances,
                             rarely(caller) ? NULL : sizes,
                             0,
                             0,
                             0};
    struct clpipe_kmeans kmeans = {.size = size_of(caller, sizeof kmeans),
                                   .metric = number(caller, (int)draw(caller, 3)),
                                   .init = number(caller, (int)draw(caller, 4)),
                                   .initial = rarely(caller) ? NULL : initial,
                                   .weights = draw(caller, 2) ? weights : NULL,
                                   .seed = draw(caller, 9),
                                   .n_init = draw(caller, 3),
                                   .max_iter = 1 + draw(caller, 4),
                                   .tol = ONE_OF(caller, 0.0, 1e-4, 1e9),
                                   .mini_batch = draw(caller, 3) ? 0 : draw(caller, 2 * ROWS)};
    kmeans.k = kmeans.init == CLPIPE_GIVEN ? K : count(caller, 1 + draw(caller, MOST));
    if (rarely(caller))
        kmeans.tol = ONE_OF(caller, (double)NAN, -1.0, (double)INFINITY);
    return clpipe_fit(rarely(caller) ? NULL : &fit, caller->own, rows_of(&given, caller),
                      rarely(caller) ? NULL : &kmeans, watch_of(&watch, caller), err);
}

static int call_predict(struct caller *caller, struct clpipe_error *err)
{
    struct given given;
    struct clpipe_watch watch;
    float centroids[K * COLUMNS], distances[ROWS];
    int32_t labels[ROWS];
    for (unsigned i = 0; i < K * COLUMNS; i++)
        centroids[i] = value(caller);
    return clpipe_predict(rarely(caller) ? NULL : labels, rarely(caller) ? NULL : distances,
                          caller->own, rows_of(&given, caller), rarely(caller) ? NULL : centroids,
                          rarely(caller) ? 0 : K, number(caller, (int)draw(caller, 3)),
                          watch_of(&watch, caller), err);
}

static int call_neighbors(struct caller *caller, struct clpipe_error *err)
{
    struct given given, queries;
    struct clpipe_watch watch;
    int64_t found[ROWS * ROWS];
    double distances[ROWS * ROWS];
    return clpipe_neighbors(rarely(caller) ? NULL : found, rarely(caller) ? NULL : distances,
                            caller->own, rows_of(&given, caller), rows_of(&queries, caller),
                            count(caller, 1 + draw(caller, ROWS)),
                            number(caller, (int)draw(caller, 3)), watch_of(&watch, caller), err);
}

static int call_features(struct caller *caller, struct clpipe_error *err)
{
    static const char *const spec[] = {"gray",
                                       "rgb:bins=4x4x4",
                                       "hog",
                                       "quality",
                                       "nothing",
                                       "",
                                       "dct:fisher=8",
                                       "net:model=/dev/null",
                                       "gray:bins=99999999",
                                       "=:,="};
    uint8_t pixels[SIDE * SIDE * 3];
    static const char bytes[] = "P5\n4 4\n255\n0123456789abcde\xff\xd8\xff\xe0GIF89aRIFF";
    float *values = malloc(PICTURES * 4096 * sizeof *values);
    const char *specs[17];
    struct clpipe_watch watch;
    struct clpipe_picture pictures[PICTURES];
    struct clpipe_features features = {.size = size_of(caller, sizeof features),
                                       .specs = rarely(caller) ? NULL : specs,
                                       .count = rarely(caller) ? draw(caller, 18) : 1};
    uint32_t columns = 0;
    for (unsigned i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)draw(caller, 256);
    for (unsigned i = 0; i < 17; i++)
        specs[i] = rarely(caller) ? NULL : spec[draw(caller, draw(caller, 2) ? 4 : 10)];
    if (draw(caller, 4) == 0)
        features = (struct clpipe_features){
            .size = sizeof features, .preset = ONE_OF(caller, "color", "few", "fast", "", "none")};
    for (unsigned i = 0; i < PICTURES; i++) {
        const uint32_t way = draw(caller, 3), from = draw(caller, sizeof bytes);
        pictures[i] = (struct clpipe_picture){.size = size_of(caller, sizeof *pictures)};
        if (way == 0 || rarely(caller))
            pictures[i].path =
                ONE_OF(caller, "/dev/null", "/", "", "/nothing/there.jpg", "/proc/self/exe");
        if (way == 1 || rarely(caller)) {
            pictures[i].bytes = bytes + (draw(caller, 2) ? from : 0);
            pictures[i].length = draw(caller, 2) ? sizeof bytes - from : 0;
        }
        if (way == 2 || rarely(caller)) {
            pictures[i].pixels = pixels;
            pictures[i].width = rarely(caller) ? ONE_OF(caller, 0u, 1u) : SIDE;
            pictures[i].height = rarely(caller) ? ONE_OF(caller, 0u, 1u) : SIDE;
            pictures[i].channels = rarely(caller) ? draw(caller, 6) : 3;
            pictures[i].row_stride = rarely(caller) ? ONE_OF(caller, INT64_MIN, INT64_MAX) : 0;
            pictures[i].channel_stride =
                rarely(caller) ? ONE_OF(caller, INT64_MIN, INT64_C(1) << 62) : 0;
        }
    }
    const int code = clpipe_features(
        rarely(caller) ? NULL : values, rarely(caller) ? NULL : &columns, caller->own,
        rarely(caller) ? NULL : pictures, rarely(caller) ? 0 : PICTURES,
        rarely(caller) ? NULL : &features, watch_of(&watch, caller), err);
    free(values);
    return code;
}

static int call_other(struct caller *caller, struct clpipe_error *err)
{
    char name[8];
    struct clpipe_device devices[2] = {{.size = size_of(caller, sizeof *devices)}};
    struct clpipe_options options = {.size = size_of(caller, sizeof options),
                                     .device = ONE_OF(caller, "cpu", "", "7", "none", "0,0"),
                                     .threads = ONE_OF(caller, 1u, UINT32_MAX),
                                     .memory = ONE_OF(caller, UINT64_C(1), UINT64_MAX)};
    struct clpipe *opened = (struct clpipe *)(uintptr_t)caller->state;
    unsigned most = rarely(caller) ? UINT32_MAX / 2 : 1;
    int code;
    switch (draw(caller, 5)) {
    case 0:
        return clpipe_name(rarely(caller) ? NULL : name, draw(caller, sizeof name), caller->own,
                           err);
    case 1:
        return clpipe_devices(rarely(caller) ? NULL : devices,
                              rarely(caller) || most > 1 ? NULL : &most, err);
    case 2:
        return clpipe_close(NULL);
    case 3:
        code = clpipe_open(rarely(caller) ? NULL : &opened, &options, err);
        if (code == CLPIPE_OK)
            assert_int_equal(clpipe_close(&opened), CLPIPE_OK);
        return code;
    default:
        clpipe_stop((struct clpipe *)(uintptr_t)draw(caller, UINT32_MAX / 2));
        return CLPIPE_OK;
    }
}

static void call(struct caller *caller)
{
    static int (*const calls[])(struct caller *, struct clpipe_error *) = {
        call_fit, call_fit, call_predict, call_neighbors, call_features, call_other};
    struct clpipe_error err = CLPIPE_INIT(clpipe_error);
    err.size = size_of(caller, sizeof err);
    caller->own = rarely(caller)
                      ? (struct clpipe *)ONE_OF(caller, (uintptr_t)0, (uintptr_t)&err, UINTPTR_MAX)
                      : caller->shared[draw(caller, caller->handles)];
    const int code = calls[draw(caller, 6)](caller, &err);
    assert_in_range(code, CLPIPE_OK, CLPIPE_CLOSED);
    if (code != CLPIPE_OK && err.size == sizeof err) {
        assert_int_equal(err.status, code);
        assert_true(err.text[0] && !strchr(err.text, '\n'));
    }
    *(code == CLPIPE_OK ? &caller->ok : &caller->failed) += 1;
}

static void check_good(struct clpipe *clpipe)
{
    static const float values[4][2] = {{0, 0}, {9, 9}, {0, 1}, {9, 8}};
    struct clpipe_error err = CLPIPE_INIT(clpipe_error);
    struct clpipe_rows rows = CLPIPE_INIT(clpipe_rows);
    struct clpipe_kmeans kmeans = CLPIPE_INIT(clpipe_kmeans);
    struct clpipe_fit fit = CLPIPE_INIT(clpipe_fit);
    int32_t labels[4];
    rows.rows = 4;
    rows.columns = 2;
    rows.values = values;
    kmeans.k = 2;
    fit.labels = labels;
    assert_int_equal(clpipe_fit(&fit, clpipe, &rows, &kmeans, NULL, &err), CLPIPE_OK);
    assert_true(labels[0] == labels[2] && labels[1] == labels[3] && labels[0] != labels[1]);
}

static void in_a_child(struct caller *caller)
{
    struct clpipe_error err = CLPIPE_INIT(clpipe_error);
    struct given given;
    const pid_t child = fork();
    if (child == 0) {
        struct clpipe *again = caller->shared[0];
        char name[9];
        _exit(clpipe_name(name, sizeof name, again, &err) != CLPIPE_FORK ||
              clpipe_neighbors(NULL, NULL, again, rows_of(&given, caller), NULL, 1, 0, NULL,
                               &err) != CLPIPE_FORK ||
              clpipe_stop(again) != CLPIPE_FORK || clpipe_open(&again, NULL, &err) != CLPIPE_FORK);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static unsigned long resident_kib(void)
{
    unsigned long all = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu %lu", &all, &resident), 2);
    fclose(file);
    return resident * (unsigned long)sysconf(_SC_PAGESIZE) / 1024;
}

static void call_1000(struct caller *caller)
{
    struct clpipe *handles[2], *closed;
    char name[9];
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(clpipe_open(&handles[i], NULL, NULL), CLPIPE_OK);
    closed = handles[1];
    caller->shared = handles;
    for (unsigned i = 0; i < 1000; i++) {
        call(caller);
        if (i % 100 == 0)
            in_a_child(caller);
        if (i % 50 == 0)
            check_good(handles[0]);
    }
    assert_int_equal(clpipe_close(&handles[1]), CLPIPE_OK);
    assert_int_equal(clpipe_name(name, sizeof name, closed, NULL), CLPIPE_CLOSED);
    assert_int_equal(clpipe_close(&closed), CLPIPE_CLOSED);
    assert_int_equal(clpipe_close(&handles[0]), CLPIPE_OK);
}

/* With CLPIPE_LONG, 10,000 calls. PoCL's compiler, loaded for the first kernel that is not cached,
 * takes a hundred megabytes once; so the test counts how many times a thousand calls need more than
 * 2 MiB of additional memory. Sanitizers, which report leaks themselves, retain freed memory. */
static void one_thread(void **unused)
{
    (void)unused;
    struct caller caller = {.state = test_seed(), .handles = 1};
    unsigned grown = 0;
    call_1000(&caller);
    assert_true(caller.ok > 100 && caller.failed > 100);
    const unsigned long first = resident_kib();
    unsigned long before = first;
    for (unsigned i = 1; i < 10 && getenv("CLPIPE_LONG"); i++) {
        call_1000(&caller);
        grown += resident_kib() > before + 2048;
        before = resident_kib();
    }
    printf("# %u calls: %lu KiB, %lu after the first 1,000\n", caller.ok + caller.failed, before,
           first);
    assert_true(test_brief() || grown < 5);
}

static void *call_many(void *argument)
{
    for (unsigned i = 0; i < 60; i++)
        call(argument);
    return NULL;
}

/* Handles are closed while other threads use them. */
static void several_threads(void **unused)
{
    (void)unused;
    struct clpipe *handles[3], *again[3];
    const uint32_t seed = test_seed();
    struct caller callers[4];
    pthread_t threads[4];
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(clpipe_open(&handles[i], NULL, NULL), CLPIPE_OK);
    memcpy(again, handles, sizeof again);
    for (unsigned i = 0; i < 4; i++) {
        callers[i] = (struct caller){.state = seed + i, .shared = handles, .handles = 3};
        assert_int_equal(pthread_create(&threads[i], NULL, call_many, &callers[i]), 0);
    }
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    assert_int_equal(clpipe_stop(again[0]), CLPIPE_OK);
    assert_int_equal(clpipe_close(&again[1]), CLPIPE_OK);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    check_good(handles[0]);
    assert_int_equal(clpipe_close(&again[0]), CLPIPE_OK);
    assert_int_equal(clpipe_close(&again[2]), CLPIPE_OK);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(one_thread),
                                          cmocka_unit_test(several_threads)};
TEST_GROUP_WITHIN(120, hostile, NULL, NULL)

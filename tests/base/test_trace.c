/* test_trace.c: events and lanes of the trace file, which is valid JSON whatever happens.
 *
 * A small parser checks the JSON here; the tests of profiled runs load it with Python. */
#include "runner.h"

#include "base/clock.h"
#include "base/trace.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[64], path[96];
static char *text; /* contents of the trace file that was read last */

static int make_root(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/clpipe-trace-XXXXXX");
    if (!mkdtemp(root))
        return -1;
    snprintf(path, sizeof path, "%s/t.json", root);
    return 0;
}

static int remove_root(void **state)
{
    (void)state;
    free(text);
    char command[128];
    snprintf(command, sizeof command, "rm -rf -- '%s'", root);
    return system(command);
}

/* Skips one JSON value without white space; returns NULL if there is none. */
static const char *skip_value(const char *at)
{
    if (*at == '"') {
        for (at++; *at != '"'; at++) {
            if ((unsigned char)*at < 0x20)
                return NULL;
            if (*at == '\\')
                at++;
        }
        return at + 1;
    }
    if (*at == '{' || *at == '[') {
        char closing = *at == '{' ? '}' : ']';
        if (*++at == closing)
            return at + 1;
        for (;; at++) {
            if (closing == '}') {
                if (*at != '"' || !(at = skip_value(at)) || *at++ != ':')
                    return NULL;
            }
            if (!(at = skip_value(at)))
                return NULL;
            if (*at == closing)
                return at + 1;
            if (*at != ',')
                return NULL;
        }
    }
    char *end;
    strtod(at, &end);
    return end == at ? NULL : end;
}

static void read_file(void)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    free(text);
    size_t size = 64 << 20;
    text = malloc(size);
    assert_non_null(text);
    size_t n = fread(text, 1, size - 1, file);
    fclose(file);
    text[n] = 0;
    char *fit = realloc(text, n + 1);
    text = fit ? fit : text;
    const char *end = skip_value(text);
    assert_non_null(end);
    assert_int_equal(*end, 0);
    assert_memory_equal(text, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", 39);
}

static unsigned count(const char *what)
{
    unsigned n = 0;
    /* With address checks, each strstr() would scan the whole rest of the text. */
    for (const char *at = text; *at; at++)
        n += *at == *what && strncmp(at, what, strlen(what)) == 0;
    return n;
}

static struct trace *open_trace(void)
{
    struct trace *trace;
    struct error err = ERROR_INIT;
    assert_int_equal(trace_open(&trace, path, &err), STATUS_OK);
    return trace;
}

static void close_trace(struct trace **trace)
{
    struct error err = ERROR_INIT;
    assert_int_equal(trace_close(trace, &err), STATUS_OK);
    assert_null(*trace);
    read_file();
}

static void null_trace_is_ignored(void **state)
{
    (void)state;
    struct trace *none = NULL;
    struct error err = ERROR_INIT;
    assert_int_equal(trace_track(NULL, "host", "x"), 0);
    trace_span(NULL, 0, "x", 0, 1, NULL);
    assert_int_equal(trace_close(NULL, &err), STATUS_OK);
    assert_int_equal(trace_close(&none, &err), STATUS_OK);
}

static void empty_trace_is_json(void **state)
{
    (void)state;
    struct trace *trace = open_trace();
    close_trace(&trace);
    assert_string_equal(text, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[]}");
}

static void events(void **state)
{
    (void)state;
    struct trace *trace = open_trace();
    unsigned decode = trace_track(trace, "host", "decode 0");
    unsigned upload = trace_track(trace, "NVIDIA \"H200\"", "upload");
    unsigned store = trace_track(trace, "host", "store");
    assert_int_equal(trace_track(trace, "host", "decode 0"), decode);
    assert_int_equal(trace_track(trace, "NVIDIA \"H200\"", "upload"), upload);
    assert_true(decode && upload && store && decode != upload && decode != store &&
                upload != store);
    int64_t zero = clock_process_start();
    trace_span(trace, decode, "jpeg", zero + 1234567, zero + 1234567 + 1000, "a/\xff\n.jpg");
    trace_span(trace, upload, "write", zero - 1500, zero + 5, NULL);
    trace_span(trace, store, "backwards", zero + 100, zero + 50, NULL);
    trace_command(trace, upload, "kernel", zero + 1000, zero + 1500, zero + 2000, zero + 3500);
    trace_span(trace, 0, "nowhere", zero, zero + 1, NULL);
    trace_span(trace, 99, "nowhere", zero, zero + 1, NULL);
    close_trace(&trace);

    assert_int_equal(count("\"process_name\""), 2);
    assert_int_equal(count("\"thread_name\""), 3);
    assert_int_equal(count("{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":"
                           "\"host\"}}"),
                     1);
    assert_int_equal(count("{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":2,\"args\":{\"name\":"
                           "\"NVIDIA \\\"H200\\\"\"}}"),
                     1);
    assert_int_equal(count("{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":3,\"args\":{"
                           "\"name\":\"store\"}}"),
                     1);
    assert_int_equal(count("{\"ph\":\"X\",\"name\":\"jpeg\",\"pid\":1,\"tid\":1,\"ts\":1234.567,"
                           "\"dur\":1.000,\"args\":{\"detail\":\"a/\\ufffd\\n.jpg\"}}"),
                     1);
    assert_int_equal(count("{\"ph\":\"X\",\"name\":\"write\",\"pid\":2,\"tid\":2,\"ts\":-1.500,"
                           "\"dur\":1.505}"),
                     1);
    assert_int_equal(count("\"tid\":3,\"ts\":0.100,\"dur\":0.000}"), 1);
    assert_int_equal(count("\"tid\":2,\"ts\":2.000,\"dur\":1.500,\"args\":{\"queued\":1.000,"
                           "\"submitted\":1.500}}"),
                     1);
    assert_int_equal(count("nowhere"), 0);
}

/* Overlapping spans are placed in separate lanes; spans that only touch share one. */
static void overlaps_get_lanes(void **state)
{
    (void)state;
    struct trace *trace = open_trace();
    int64_t zero = clock_process_start();
    unsigned calm = trace_track(trace, "device", "calm");
    unsigned busy = trace_track(trace, "device", "busy");
    for (int i = 0; i < 5; i++)
        trace_span(trace, calm, "c", zero + i * 10, zero + (i + 1) * 10, NULL);
    trace_span(trace, busy, "a", zero, zero + 20, NULL);
    trace_span(trace, busy, "b", zero + 10, zero + 30, NULL);
    trace_span(trace, busy, "c", zero + 20, zero + 40, NULL);
    /* Even if more spans overlap than there are lanes, all of them are written. */
    for (int i = 0; i < 20; i++)
        trace_span(trace, busy, "many", zero + 50, zero + 60, NULL);
    close_trace(&trace);
    assert_int_equal(count("\"name\":\"calm"), 1);
    assert_int_equal(count("\"name\":\"busy\""), 1);
    assert_int_equal(count("\"name\":\"busy (2)\""), 1);
    assert_int_equal(count("\"name\":\"busy (8)\""), 1);
    assert_int_equal(count("\"name\":\"busy (9)\""), 0);
    assert_int_equal(count("\"name\":\"a\",\"pid\":1,\"tid\":2,"), 1);
    assert_int_equal(count("\"name\":\"b\",\"pid\":1,\"tid\":3,"), 1);
    assert_int_equal(count("\"name\":\"c\",\"pid\":1,\"tid\":2,"), 1);
    assert_int_equal(count("\"name\":\"many\""), 20);
}

#define THREADS 4
#define SPANS   4000

struct work {
    struct trace *trace;
    int index;
};

static void *trace_much(void *argument)
{
    struct work *work = argument;
    char name[32];
    snprintf(name, sizeof name, "thread %d", work->index);
    unsigned track = trace_track(work->trace, "host", name);
    for (int i = 0; i < SPANS; i++) {
        int64_t now = clock_now();
        trace_span(work->trace, track, "span", now, now + 10, "some detail of the span");
    }
    return NULL;
}

static void threads_write_concurrently(void **state)
{
    (void)state;
    struct trace *trace = open_trace();
    pthread_t threads[THREADS];
    struct work work[THREADS];
    for (int i = 0; i < THREADS; i++) {
        work[i] = (struct work){trace, i};
        assert_int_equal(pthread_create(&threads[i], NULL, trace_much, &work[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    close_trace(&trace);
    assert_int_equal(count("\"name\":\"span\""), THREADS * SPANS);
    assert_int_equal(count("\"thread_name\""), count("\"thread_sort_index\""));
}

/* The trace is written to a temporary file during the run and appears under its name only at the
 * end. */
static void memory_is_bounded(void **state)
{
    (void)state;
    assert_true(unlink(path) == 0 || access(path, F_OK) != 0);
    struct trace *trace = open_trace();
    unsigned track = trace_track(trace, "host", "x");
    for (int i = 0; i < SPANS; i++)
        trace_span(trace, track, "span", i, i + 1, NULL);
    struct stat st;
    char temporary[128];
    snprintf(temporary, sizeof temporary, "%s.tmp-clpipe-%ld", path, (long)getpid());
    assert_int_equal(stat(temporary, &st), 0);
    assert_true(st.st_size > SPANS * 40);
    assert_int_equal(access(path, F_OK), -1);
    close_trace(&trace);
    assert_int_equal(access(temporary, F_OK), -1);
}

static void write_beyond_limit(void)
{
    struct rlimit limit = {300000, 300000};
    struct trace *trace = NULL;
    struct error err = ERROR_INIT;
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) || trace_open(&trace, path, &err))
        _exit(1);
    unsigned track = trace_track(trace, "host", "x");
    for (int i = 0; i < 4 * SPANS; i++)
        trace_span(trace, track, "span", i, i + 1, NULL);
    if (trace_close(&trace, &err) != STATUS_FAILED || trace)
        _exit(2);
    if (err.native != EFBIG || !strstr(err.sentence, path))
        _exit(3);
    if (access(path, F_OK) == 0)
        _exit(4);
    _exit(0);
}

static void first_write_error_is_kept(void **state)
{
    (void)state;
    unlink(path);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        write_beyond_limit();
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void open_errors_name_the_directory(void **state)
{
    (void)state;
    struct trace *trace = (struct trace *)1;
    struct error err = ERROR_INIT;
    assert_int_equal(trace_open(&trace, "/nonexistent/t.json", &err), STATUS_FAILED);
    assert_null(trace);
    assert_non_null(strstr(err.sentence, "the directory /nonexistent/ does not exist"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(null_trace_is_ignored),
    cmocka_unit_test(empty_trace_is_json),
    cmocka_unit_test(events),
    cmocka_unit_test(overlaps_get_lanes),
    cmocka_unit_test(threads_write_concurrently),
    cmocka_unit_test(memory_is_bounded),
    cmocka_unit_test(first_write_error_is_kept),
    cmocka_unit_test(open_errors_name_the_directory),
};
TEST_GROUP(trace, make_root, remove_root)

/* test_log.c: the exact bytes on standard error: on pipes, on terminals and from many threads. Each
 * case runs in a child process whose standard error the test reads. */
#include "runner.h"

#include "base/log.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static char captured[1024 * 1024];

/* Runs body with fd as its standard error and with the given environment; the caller reads. */
static pid_t start(int fd, int other, const char *term, const char *no_color, void (*body)(void))
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(other);
        if (dup2(fd, STDERR_FILENO) < 0)
            _exit(99);
        if (term)
            setenv("TERM", term, 1);
        else
            unsetenv("TERM");
        if (no_color)
            setenv("NO_COLOR", no_color, 1);
        else
            unsetenv("NO_COLOR");
        body();
        _exit(0);
    }
    return child;
}

static void read_all(int fd)
{
    size_t length = 0;
    ssize_t n;
    while ((n = read(fd, captured + length, sizeof captured - 1 - length)) != 0) {
        if (n < 0 && errno != EINTR)
            break; /* EIO: the other end of the terminal is closed */
        length += n > 0 ? (size_t)n : 0;
    }
    captured[length] = 0;
}

static void assert_ended_well(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void on_pipe(void (*body)(void))
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = start(ends[1], ends[0], "xterm", NULL, body);
    close(ends[1]);
    read_all(ends[0]);
    close(ends[0]);
    assert_ended_well(child);
}

static void on_terminal(const char *term, const char *no_color, void (*body)(void))
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0)
        skip();
    assert_int_equal(grantpt(master), 0);
    assert_int_equal(unlockpt(master), 0);
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    assert_true(slave >= 0);
    struct termios raw;
    assert_int_equal(tcgetattr(slave, &raw), 0);
    cfmakeraw(&raw);
    assert_int_equal(tcsetattr(slave, TCSANOW, &raw), 0);
    pid_t child = start(slave, master, term, no_color, body);
    close(slave);
    read_all(master);
    close(master);
    assert_ended_well(child);
}

static void each_level(void)
{
    for (int level = LOG_QUIET; level <= LOG_DEBUG; level++) {
        log_set_level((enum log_level)level);
        if (log_get_level() != (enum log_level)level)
            _exit(1);
        log_message(LOG_ERROR, "error %d", level);
        log_message(LOG_NOTICE, "notice %d", level);
        log_message(LOG_INFO, "info %d", level);
        log_message(LOG_DEBUG, "debug %d", level);
    }
}

static void levels(void **state)
{
    (void)state;
    on_pipe(each_level);
    assert_string_equal(captured, "clpipe: error 1\n"
                                  "clpipe: error 2\nclpipe: notice 2\n"
                                  "clpipe: error 3\nclpipe: notice 3\ninfo 3\n"
                                  "clpipe: error 4\nclpipe: notice 4\ninfo 4\nclpipe: debug 4\n");
}

static void by_default(void)
{
    log_message(LOG_INFO, "shown");
    log_message(LOG_DEBUG, "not shown");
}

static void default_level(void **state)
{
    (void)state;
    on_pipe(by_default);
    assert_string_equal(captured, "shown\n");
}

static void dirty_texts(void)
{
    log_message(LOG_ERROR, "a\nb\tc\033[2J\xff");
    log_message(LOG_INFO, "a\nb\tc\033[2J\r\xc3\xa9");
    struct error err;
    error_errno(&err, STATUS_FAILED, EIO, "read", "cannot read it");
    error_subject(&err, "photos/\n.jpg");
    log_error(&err);
    errno = 1234;
    log_message(LOG_ERROR, "x");
    log_status_line("not on a pipe");
    log_status_line(NULL);
    if (errno != 1234 || log_is_terminal() || log_wants_colour(STDERR_FILENO))
        _exit(1);
}

static void texts_are_cleaned(void **state)
{
    (void)state;
    on_pipe(dirty_texts);
    assert_string_equal(captured,
                        "clpipe: a?b?c?[2J?\na\nb\tc?[2J?\xc3\xa9\n"
                        "clpipe: photos/\\x0a.jpg: cannot read it: Input/output error (EIO in "
                        "read)\nclpipe: x\n");
}

static void long_texts(void)
{
    static char text[100001];
    memset(text, 'l', sizeof text - 1);
    log_message(LOG_INFO, "%s", text);
    for (size_t length = 1000; length < 1050; length++)
        log_message(LOG_INFO, "%.*s", (int)length, text);
    for (size_t length = 2030; length < 2060; length++)
        log_message(LOG_NOTICE, "%.*s", (int)length, text);
}

static void long_texts_arrive_whole(void **state)
{
    (void)state;
    on_pipe(long_texts);
    const char *at = captured;
    assert_int_equal(strspn(at, "l"), 100000);
    at += 100001;
    for (size_t length = 1000; length < 1050; length++) {
        assert_int_equal(strspn(at, "l"), length);
        assert_int_equal(at[length], '\n');
        at += length + 1;
    }
    for (size_t length = 2030; length < 2060; length++) {
        assert_memory_equal(at, "clpipe: ", 8);
        assert_int_equal(strspn(at + 8, "l"), length);
        assert_int_equal(at[8 + length], '\n');
        at += 8 + length + 1;
    }
    assert_int_equal(*at, 0);
}

static void colours(void)
{
    log_message(LOG_ERROR, "e");
    log_message(LOG_NOTICE, "n");
    log_message(LOG_INFO, "i");
}

static void colour_only_where_wanted(void **state)
{
    (void)state;
    static const char plain[] = "clpipe: e\nclpipe: n\ni\n";
    static const char coloured[] = "\033[1;31mclpipe:\033[0m e\n\033[33mclpipe:\033[0m n\ni\n";
    on_terminal("xterm-256color", NULL, colours);
    assert_string_equal(captured, coloured);
    on_terminal("xterm", "", colours);
    assert_string_equal(captured, coloured);
    on_terminal("xterm", "1", colours);
    assert_string_equal(captured, plain);
    on_terminal("dumb", NULL, colours);
    assert_string_equal(captured, plain);
    on_terminal(NULL, NULL, colours);
    assert_string_equal(captured, plain);
}

static void status_and_messages(void)
{
    if (!log_is_terminal() || log_wants_colour(STDERR_FILENO))
        _exit(1);
    log_status_line(NULL); /* there is no status line to clear */
    log_status_line("10 of 20");
    log_message(LOG_INFO, "message");
    log_status_line("20 of 20");
    log_status_line(NULL);
    log_message(LOG_INFO, "end");
}

#define ERASE   "\r\033[K"
#define LINE(s) "\033[?7l" s "\033[?7h"

static void messages_replace_the_status_line(void **state)
{
    (void)state;
    on_terminal("xterm", "1", status_and_messages);
    assert_string_equal(captured, ERASE LINE("10 of 20") ERASE "message\n" LINE("10 of 20")
                                      ERASE LINE("20 of 20") ERASE "end\n");
}

static void status_on_dumb(void)
{
    log_status_line("never");
    log_message(LOG_INFO, "plain");
    log_status_line(NULL);
}

static void no_status_line_on_dumb_terminals(void **state)
{
    (void)state;
    on_terminal("dumb", NULL, status_on_dumb);
    assert_string_equal(captured, "plain\n");
}

#define THREADS  4
#define MESSAGES 500

static void *talk(void *argument)
{
    int thread = (int)(intptr_t)argument;
    for (int i = 0; i < MESSAGES; i++) {
        log_message(LOG_INFO, "thread %d message %d %.*s", thread, i, i % 300,
                    "........................................................................"
                    "........................................................................"
                    "........................................................................"
                    "........................................................................"
                    "............");
        if (i % 50 == 0) {
            char line[32];
            snprintf(line, sizeof line, "status %d", i);
            log_status_line(i % 100 ? line : NULL);
        }
    }
    return NULL;
}

static void crowd(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, talk, (void *)(intptr_t)i))
            _exit(1);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* In packet mode, one read() from a pipe returns exactly what one write() wrote. */
static void one_write_per_message(void **state)
{
    (void)state;
    int ends[2];
    if (pipe2(ends, O_DIRECT))
        skip();
    pid_t child = start(ends[1], ends[0], "xterm", NULL, crowd);
    close(ends[1]);
    int next[THREADS] = {0}, total = 0;
    ssize_t n;
    while ((n = read(ends[0], captured, sizeof captured - 1)) > 0) {
        captured[n] = 0;
        int thread, message, end = 0;
        assert_int_equal(sscanf(captured, "thread %d message %d%n", &thread, &message, &end), 2);
        assert_in_range(thread, 0, THREADS - 1);
        assert_int_equal(message, next[thread]++);
        size_t dots = strspn(captured + end + 1, ".");
        assert_int_equal(dots, message % 300);
        assert_int_equal((size_t)n, (size_t)end + 1 + dots + 1);
        assert_int_equal(captured[n - 1], '\n');
        total++;
    }
    close(ends[0]);
    assert_ended_well(child);
    assert_int_equal(total, THREADS * MESSAGES);
}

/* However messages and status lines interleave, all lines are complete once escapes are removed. */
static void many_threads_on_a_terminal(void **state)
{
    (void)state;
    on_terminal("xterm", NULL, crowd);
    int messages = 0;
    for (char *at = captured; (at = strstr(at, "thread ")); at++)
        messages++;
    assert_int_equal(messages, THREADS * MESSAGES);
    for (char *at = captured; (at = strstr(at, "status ")); at++) {
        assert_memory_equal(at - 5, "\033[?7l", 5);
        at += strspn(at, "status 0123456789");
        assert_memory_equal(at, "\033[?7h", 5);
    }
}

static void fill_up(void)
{
    for (int i = 0; i < 3000; i++)
        log_message(LOG_INFO, "%064d", i);
}

/* Nothing is lost if standard error is non-blocking. */
static void waits_for_a_slow_reader(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    pid_t child = start(ends[1], ends[0], "xterm", NULL, fill_up);
    close(ends[1]);
    struct timespec moment = {0, 50 * 1000 * 1000};
    nanosleep(&moment, NULL);
    read_all(ends[0]);
    close(ends[0]);
    assert_ended_well(child);
    assert_int_equal(strlen(captured), 3000 * 65);
}

static void no_stderr(void)
{
    close(STDERR_FILENO);
    log_message(LOG_ERROR, "into the void");
    log_status_line("nor this");
}

static void survives_a_closed_stderr(void **state)
{
    (void)state;
    on_pipe(no_stderr);
    assert_string_equal(captured, "");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(levels),
    cmocka_unit_test(default_level),
    cmocka_unit_test(texts_are_cleaned),
    cmocka_unit_test(long_texts_arrive_whole),
    cmocka_unit_test(colour_only_where_wanted),
    cmocka_unit_test(messages_replace_the_status_line),
    cmocka_unit_test(no_status_line_on_dumb_terminals),
    cmocka_unit_test(one_write_per_message),
    cmocka_unit_test(many_threads_on_a_terminal),
    cmocka_unit_test(waits_for_a_slow_reader),
    cmocka_unit_test(survives_a_closed_stderr),
};
TEST_GROUP(log, NULL, NULL)

/* runner.c: runs the test groups that are linked with it, and reports in TAP.
 *
 *   PROGRAM [GROUP|GROUP/TEST]...    runs these, or all without arguments
 *   PROGRAM --list                   lists the groups
 *
 * A single group runs in this process, for a debugger. Several groups run in a child process each,
 * so that neither their side effects nor a crash affects other groups. If a test hangs, its group
 * ends with a line that names the test. */
#include "runner.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct test_group *groups;

void test_group_register(struct test_group *group)
{
    struct test_group **at = &groups;
    while (*at && strcmp((*at)->name, group->name) < 0)
        at = &(*at)->next;
    group->next = *at;
    *at = group;
}

static unsigned number_of(const char *variable, unsigned otherwise)
{
    const char *text = getenv(variable);
    return text && *text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

uint32_t test_seed(void)
{
    const uint32_t seed = number_of("CLPIPE_TEST_SEED", 1);
    printf("# seed %u (CLPIPE_TEST_SEED)\n", seed);
    return seed;
}

bool test_brief(void)
{
    return getenv("CLPIPE_TEST_BRIEF");
}

/* --- one group, in this process -------------------------------------------------------------- */

/* cmocka does not tell a fixture which test it belongs to, but tests run in order. */
static struct {
    const struct test_group *group;
    const struct CMUnitTest *tests; /* in the order of the file */
    size_t count, at;
} running;

/* A test is considered hung if it has used almost no processor time in half of its limit, or twice
 * its limit in total. On a busy machine it may take longer than the limit. */
static struct {
    unsigned seconds;
    double begun, seen; /* processor seconds of this process */
    char line[512];     /* what the handler prints */
} limit;

/* Includes the time of children that were waited for. */
static double processor_seconds(void)
{
    struct tms used;
    times(&used);
    return (double)(used.tms_utime + used.tms_stime + used.tms_cutime + used.tms_cstime) /
           (double)sysconf(_SC_CLK_TCK);
}

static void check_time(int number)
{
    const double now = processor_seconds();
    (void)number;
    if (now - limit.seen > 0.2 && now - limit.begun < 2.0 * limit.seconds) {
        limit.seen = now;
        alarm((limit.seconds + 1) / 2);
        return;
    }
    if (write(STDOUT_FILENO, limit.line, strlen(limit.line)) < 0)
        _exit(125);
    _exit(124);
}

static void limit_time(const char *test)
{
    alarm(0);
    limit.seconds = running.group->seconds * number_of("CLPIPE_TEST_PATIENCE", 1);
    limit.begun = limit.seen = processor_seconds();
    snprintf(limit.line, sizeof limit.line,
             "\nnot ok 0 - %s/%s: hangs, or takes more than %u seconds\n", running.group->name,
             test, limit.seconds);
    alarm((limit.seconds + 1) / 2);
}

static int begin_test(void **state)
{
    const struct CMUnitTest *test = &running.tests[running.at++];
    limit_time(test->name);
    return test->setup_func ? test->setup_func(state) : 0;
}

static int begin_group(void **state)
{
    limit_time("setup");
    return running.group->setup ? running.group->setup(state) : 0;
}

static int end_group(void **state)
{
    limit_time("teardown");
    return running.group->teardown ? running.group->teardown(state) : 0;
}

/* A shell or a background build may have left signals ignored or blocked. */
static void restore_signals(void)
{
    static const int signals[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGPIPE,
                                  SIGUSR1, SIGUSR2, SIGCHLD, SIGXFSZ};
    sigset_t none;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        signal(signals[i], SIG_DFL);
    signal(SIGALRM, check_time);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static bool is_chosen(const struct test_group *group, const char *test, char **names)
{
    const size_t length = strlen(group->name);
    for (; *names; names++)
        if (strncmp(*names, group->name, length) == 0 &&
            ((*names)[length] == '\0' ||
             ((*names)[length] == '/' && (!test || strcmp(*names + length + 1, test) == 0))))
            return true;
    return false;
}

/* Runs the selected tests of the group, or all if no names are given. */
static int run_group(const struct test_group *group, char **names)
{
    struct CMUnitTest *chosen = calloc(2 * group->count, sizeof *chosen);
    struct CMUnitTest *limited = chosen + group->count;
    char(*titles)[256] = calloc(group->count, sizeof *titles);
    if (!chosen || !titles)
        abort();
    running.group = group;
    running.tests = chosen;
    for (size_t i = 0; i < group->count; i++) {
        const struct CMUnitTest *test = &group->tests[i];
        if (*names && !is_chosen(group, test->name, names))
            continue;
        snprintf(titles[running.count], sizeof *titles, "%s/%s", group->name, test->name);
        chosen[running.count] = limited[running.count] = *test;
        limited[running.count].name = titles[running.count];
        limited[running.count].setup_func = begin_test;
        running.count++;
    }
    restore_signals();
    setvbuf(stdout, NULL, _IOLBF, 0);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const int failed = running.count ? _cmocka_run_group_tests(group->name, limited, running.count,
                                                               begin_group, end_group)
                                     : 1;
    alarm(0);
    if (running.count == 0)
        printf("not ok 0 - %s: has no such test\n", group->name);
    free(chosen);
    free(titles);
    return failed;
}

/* --- all groups ------------------------------------------------------------------------------ */

static int run_apart(const struct test_group *group, char **names)
{
    int ended = 0;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0)
        exit(run_group(group, names) != 0);
    while (child > 0 && waitpid(child, &ended, 0) < 0 && errno == EINTR)
        ;
    if (child > 0 && WIFEXITED(ended) && WEXITSTATUS(ended) == 0)
        return 0;
    if (child < 0 || WIFSIGNALED(ended))
        printf("not ok 0 - %s: ended by signal %d\n", group->name, child < 0 ? 0 : WTERMSIG(ended));
    else if (WEXITSTATUS(ended) > 1)
        printf("# %s: exit status %d\n", group->name, WEXITSTATUS(ended));
    return 1;
}

int main(int count, char **arguments)
{
    const struct test_group *chosen = NULL;
    char **names = arguments + 1;
    unsigned failed = 0, ran = 0;
    if (count == 2 && strcmp(names[0], "--list") == 0) {
        for (const struct test_group *group = groups; group; group = group->next)
            printf("%s\n", group->name);
        return 0;
    }
    for (const struct test_group *group = groups; group; group = group->next)
        if (count < 2 || is_chosen(group, NULL, names)) {
            chosen = group;
            ran++;
        }
    if (ran == 1)
        return run_group(chosen, names) != 0;
    for (const struct test_group *group = groups; group && ran > 0; group = group->next)
        if (count < 2 || is_chosen(group, NULL, names))
            failed += run_apart(group, names);
    if (ran == 0)
        printf("not ok 0 - no such group: --list names them\n");
    return failed > 0 || ran == 0;
}

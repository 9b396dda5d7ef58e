/* process.c: repairs inherited state, and reports crashes.
 *
 * PoCL aborts the process if it cannot start a thread or a linker, and LLVM if memory runs out.
 * Both install signal handlers when the first device is opened, so clpipe's are installed again
 * after that. */
#include "base/process.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STACK_BYTES      (8ul << 20)
#define DESCRIPTORS_MOST 65536 /* some libraries close every possible descriptor one by one */
#define SYSTEM_PATH      "/usr/local/bin:/usr/bin:/bin"
#define EXIT_FAILED      3

/* Written by process_repair. */
static int last_descriptor = INT_MAX;
static char limits[160], crash_line[400];
static bool memory_is_limited;
static pid_t owner;

/* --- repairs --------------------------------------------------------------------------------- */

static void repair_descriptors(void)
{
    struct rlimit files;
    /* A file opened later must not become a standard stream. */
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY) != fd)
            _exit(EXIT_FAILED);
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return;
    if (files.rlim_cur < DESCRIPTORS_MOST) {
        files.rlim_cur = files.rlim_max < DESCRIPTORS_MOST ? files.rlim_max : DESCRIPTORS_MOST;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    last_descriptor = files.rlim_cur < INT_MAX ? (int)files.rlim_cur : INT_MAX;
}

bool process_keeps_descriptor(int fd, int left)
{
    if (fd >= 0 && fd < last_descriptor - left)
        return true;
    if (fd >= 0) {
        close(fd);
        errno = EMFILE;
    }
    return false;
}

/* Drivers search PATH for a linker. Relative entries are dropped: they depend on the directory. */
static void repair_path(void)
{
    const char *entry = getenv("PATH");
    char *path = malloc((entry ? strlen(entry) : 0) + sizeof SYSTEM_PATH + 1), *end = path;
    if (!path)
        return;
    for (size_t length; entry && *entry; entry += length + (entry[length] == ':')) {
        length = strcspn(entry, ":");
        if (*entry == '/')
            end += sprintf(end, "%.*s:", (int)length, entry);
    }
    strcpy(end, SYSTEM_PATH);
    setenv("PATH", path, 1);
    free(path);
}

static pthread_once_t temporary_once = PTHREAD_ONCE_INIT;
static const char *temporary = "/tmp";

static void find_temporary_directory(void)
{
    const char *const set = getenv("TMPDIR");
    const char *const place[] = {set && *set ? set : "/tmp", "/tmp", "/var/tmp", "/dev/shm"};
    for (size_t i = 0; i < sizeof place / sizeof *place; i++) {
        if (faccessat(AT_FDCWD, place[i], W_OK | X_OK, AT_EACCESS) != 0)
            continue;
        const char *copy = strdup(place[i]); /* the environment may change */
        temporary = copy ? copy : "/tmp";
        return;
    }
}

const char *process_temporary_directory(void)
{
    pthread_once(&temporary_once, find_temporary_directory);
    return temporary;
}

bool process_file_beside(char *path, size_t size, const char *file)
{
    static const char *const places[] = {"", "../lib/clpipe/"};
    char own[PATH_MAX];
    Dl_info info;
    struct link_map *map = NULL;
    dladdr1(places, &info, (void **)&map, RTLD_DL_LINKMAP);
    if (!realpath(map && map->l_name[0] ? map->l_name : "/proc/self/exe", own))
        own[0] = '\0';
    char *slash = strrchr(own, '/');
    if (slash)
        slash[1] = '\0';
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(path, size, "%s%s%s", own, places[i], file);
        if (access(path, F_OK) == 0)
            return true;
    }
    return false;
}

/* --- what is short --------------------------------------------------------------------------- */

/* Records limits below every system's defaults, which the user must have set. */
static void look_at_limits(void)
{
    static const struct {
        int resource;
        char option;
        rlim_t unit, usual;
    } all[] = {{RLIMIT_AS, 'v', 1024, RLIM_INFINITY},
               {RLIMIT_DATA, 'd', 1024, RLIM_INFINITY},
               {RLIMIT_FSIZE, 'f', 1024, RLIM_INFINITY},
               {RLIMIT_NPROC, 'u', 1, 1024},
               {RLIMIT_NOFILE, 'n', 1, 256}};
    size_t used = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct rlimit limit;
        if (getrlimit((__rlimit_resource_t)all[i].resource, &limit) != 0 ||
            limit.rlim_cur >= all[i].usual)
            continue;
        used += (size_t)snprintf(limits + used, sizeof limits - used, "%sulimit -%c %llu",
                                 used ? ", " : " (limits: ", all[i].option,
                                 (unsigned long long)(limit.rlim_cur / all[i].unit));
        memory_is_limited = memory_is_limited || i < 2;
    }
    if (used > 0)
        snprintf(limits + used, sizeof limits - used, ")");
}

const char *process_limits(void)
{
    return limits;
}

bool process_is_short(int errno_value)
{
    return errno_value == EMFILE || errno_value == ENFILE || errno_value == ENOMEM ||
           errno_value == EAGAIN || errno_value == ENOBUFS;
}

bool process_wait_for(int64_t *since, int errno_value, const char *what)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    const bool own = errno_value == ENOMEM && memory_is_limited;
    if (*since == 0)
        *since = clock_now();
    if (!process_is_short(errno_value) || clock_seconds_since(*since) > (own ? 20 : 60))
        return false;
    if (!atomic_flag_test_and_set(&told))
        log_message(LOG_NOTICE, "notice: waiting for %s: %s%s", what, strerror(errno_value),
                    limits);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    return true;
}

/* --- crashes --------------------------------------------------------------------------------- */

static _Atomic(const char *) read_path;
static _Atomic(pthread_t) reader;

static void close_between(unsigned first, unsigned last)
{
#ifdef SYS_close_range
    if (first > last || syscall(SYS_close_range, first, last, 0) == 0)
        return;
#endif
    for (unsigned fd = first; fd <= last && fd < DESCRIPTORS_MOST; fd++)
        close((int)fd);
}

void process_serve(const char *name, int keep)
{
    static const int polite[] = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU, SIGHUP, SIGQUIT};
    for (size_t i = 0; i < sizeof polite / sizeof *polite; i++)
        signal(polite[i], SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
    prctl(PR_SET_NAME, name);
    const int nothing = open("/dev/null", O_RDWR);
    for (int fd = 0; fd <= 2 && nothing >= 0; fd++)
        dup2(nothing, fd);
    close_between(3, keep > 3 ? (unsigned)keep - 1 : 2);
    close_between(keep >= 3 ? (unsigned)keep + 1 : 3, UINT_MAX);
}

void process_reads(const char *path)
{
    atomic_store(&reader, pthread_self());
    atomic_store(&read_path, path);
}

static void name_crash(int number)
{
    signal(number, SIG_DFL);
    raise(number); /* once this handler has returned */
    if (getpid() != owner)
        return; /* the parent reports it */
    struct rlimit core;
    char line[1024], shown[256], where[800];
    const char *path = pthread_equal(reader, pthread_self()) ? read_path : NULL;
    snprintf(where, sizeof where, " or a driver%s", crash_line);
    if (path && path_for_message(shown, sizeof shown, path))
        snprintf(where, sizeof where,
                 " that was reading %s: clpipe verify %s tells whether it is damaged\n", shown,
                 shown);
    const int size = snprintf(line, sizeof line, "%sclpipe: ended by signal %d in a library%s",
                              log_is_terminal() ? "\r\033[K\033[?7h" : "", number, where);
    const ssize_t written = write(STDERR_FILENO, line, (size_t)size);
    (void)written; /* an error cannot be reported */
    if (getrlimit(RLIMIT_CORE, &core) != 0 || core.rlim_cur == 0)
        _exit(EXIT_FAILED);
}

void process_name_crashes(void)
{
    static const int numbers[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE};
    static char room[16 << 10]; /* for stack overflows */
    const struct sigaction action = {.sa_handler = name_crash, .sa_flags = (int)SA_ONSTACK};
    const stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
    if (SANITIZED || !crash_line[0])
        return;
    sigaltstack(&stack, NULL);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
}

void process_repair(void)
{
    owner = getpid();
    repair_descriptors();
    signal(SIGCHLD, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    /* A file size limit is an error like a full disk, not a reason to be killed. */
    signal(SIGXFSZ, SIG_IGN);
    umask(umask(0) & 077);
    repair_path();
    process_temporary_directory();
    log_is_terminal(); /* reads the environment before drivers change it */
    look_at_limits();
    snprintf(crash_line, sizeof crash_line,
             "%s: finished work is kept; run the same command again%s\n", limits,
             limits[0] ? " with higher limits" : "");
    process_name_crashes();
#ifdef __GLIBC__
    if (memory_is_limited)
        mallopt(M_ARENA_MAX, 1); /* each arena takes 64 MiB of address space */
#endif
}

/* --- the stack ------------------------------------------------------------------------------- */

struct call {
    int (*run)(int argc, char **argv);
    int argc, result;
    char **argv;
    sigset_t signals;
};

static void *call_main(void *context)
{
    struct call *call = context;
    pthread_sigmask(SIG_SETMASK, &call->signals, NULL);
    call->result = call->run(call->argc, call->argv);
    return NULL;
}

int process_run(int (*run)(int argc, char **argv), int argc, char **argv)
{
    struct rlimit stack;
    struct call call = {run, argc, EXIT_FAILED, argv, {{0}}};
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
#ifdef __GLIBC__
    pthread_setattr_default_np(&attributes);
#endif
    if (getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur >= STACK_BYTES)
        return run(argc, argv);
    /* The threads that run the command handle the signals. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &call.signals);
    const int code = pthread_create(&thread, &attributes, call_main, &call);
    if (code == 0)
        pthread_join(thread, NULL);
    else
        log_message(LOG_ERROR,
                    "cannot start a thread with a larger stack than ulimit -s allows: %s%s",
                    strerror(code), limits);
    return call.result;
}

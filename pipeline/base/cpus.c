/* cpus.c: the CPUs and the memory that this process may use.
 *
 * The affinity mask does not show a container's limit, which is a quota of CPU time per period, set
 * on the process's cgroup or on any cgroup above it; a limit on memory is set in the same way.
 * /proc/self/mountinfo shows where the cgroups are mounted, and which of their directories are
 * visible. */
#include "base/cpus.h"
#include "base/parse.h"
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* CPU_SETSIZE is only the size of the fixed type; larger machines exist. */
#define MOST_CPUS (1u << 20)

/* A kind of cgroup limit. */
struct limit {
    const char *controller; /* v1 */
    /* The limit set in a cgroup's directory, or 0. */
    uint64_t (*of)(const char *root, const char *directory, bool v2);
};

static unsigned cpus_affinity(void)
{
    for (unsigned cpus = CPU_SETSIZE; cpus <= MOST_CPUS; cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC(cpus);
        if (!set)
            return 1;
        size_t size = CPU_ALLOC_SIZE(cpus);
        CPU_ZERO_S(size, set);
        int failed = sched_getaffinity(0, size, set) ? errno : 0;
        int count = failed ? 0 : CPU_COUNT_S(size, set);
        CPU_FREE(set);
        if (!failed)
            return count > 0 ? (unsigned)count : 1;
        if (failed != EINVAL)
            return 1;
    }
    return 1;
}

/* Opens the file ROOT DIRECTORY/NAME; NULL if there is none. */
static FILE *open_file(const char *root, const char *directory, const char *name)
{
    char path[4096];
    return (size_t)snprintf(path, sizeof path, "%s%s/%s", root, directory, name) < sizeof path
               ? fopen(path, "re")
               : NULL;
}

/* Reads its first line; false if there is none. */
static bool read_line(char *line, size_t size, const char *root, const char *directory,
                      const char *name)
{
    FILE *file = open_file(root, directory, name);
    if (!file)
        return false;
    bool read = fgets(line, (int)size, file) != NULL;
    fclose(file);
    if (read)
        line[strcspn(line, "\n")] = 0;
    return read;
}

/* Reads a number above 0; 0 if there is none. "max" and v1's -1 mean no limit; parse_u64() rejects
 * them. */
static uint64_t read_number(const char *root, const char *directory, const char *name)
{
    char line[128];
    uint64_t number;
    return read_line(line, sizeof line, root, directory, name) &&
                   parse_u64(&number, line, 1, UINT64_MAX)
               ? number
               : 0;
}

static uint64_t quota_of(const char *root, const char *directory, bool v2)
{
    char line[128], *rest;
    uint64_t quota, period;
    if (v2) {
        /* "max 100000" or "150000 100000" */
        if (!read_line(line, sizeof line, root, directory, "cpu.max") ||
            !(rest = strchr(line, ' ')))
            return 0;
        *rest++ = 0;
        if (!parse_u64(&quota, line, 1, UINT64_MAX) || !parse_u64(&period, rest, 1, UINT64_MAX))
            return 0;
    } else {
        quota = read_number(root, directory, "cpu.cfs_quota_us");
        period = read_number(root, directory, "cpu.cfs_period_us");
        if (quota == 0 || period == 0)
            return 0;
    }
    const uint64_t cpus = quota / period + (quota % period != 0);
    return cpus < MOST_CPUS ? cpus : MOST_CPUS;
}

static uint64_t memory_of(const char *root, const char *directory, bool v2)
{
    return read_number(root, directory, v2 ? "memory.max" : "memory.limit_in_bytes");
}

static const struct limit cpu_quota = {"cpu", quota_of}, memory_limit = {"memory", memory_of};

/* The smaller of two limits; 0 means none. */
static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a == 0 || (b > 0 && b < a) ? b : a;
}

/* The smallest limit from mount/cgroup up to the mount itself, or 0. */
static uint64_t limit_upwards(const struct limit *limit, const char *root, const char *mount,
                              const char *cgroup, bool v2)
{
    char directory[4096];
    if ((size_t)snprintf(directory, sizeof directory, "%s%s", mount, cgroup) >= sizeof directory)
        return 0;
    uint64_t least = 0;
    for (size_t stem = strlen(mount);;) {
        least = smaller(least, limit->of(root, directory, v2));
        char *slash = strrchr(directory, '/');
        if (!slash || (size_t)(slash - directory) < stem || strlen(directory) <= stem)
            return least;
        *slash = 0;
    }
}

/* True if `word` is one of the comma-separated words of `list`. */
static bool lists(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += n)
        if ((at == list || at[-1] == ',') && (at[n] == 0 || at[n] == ','))
            return true;
    return false;
}

/* Decodes octal escapes such as \040 in mountinfo, in place. */
static void unescape(char *text)
{
    char *out = text;
    for (const char *in = text; *in; out++) {
        if (in[0] == '\\' && in[1] >= '0' && in[1] <= '3' && in[2] >= '0' && in[2] <= '7' &&
            in[3] >= '0' && in[3] <= '7') {
            *out = (char)((in[1] - '0') * 64 + (in[2] - '0') * 8 + (in[3] - '0'));
            in += 4;
        } else {
            *out = *in++;
        }
    }
    *out = 0;
}

/* The process's cgroup of the unified hierarchy (v2) or of a v1 controller, from /proc/self/cgroup:
 * lines "0::/path" and "4:cpu,cpuacct:/path". */
static bool own_cgroup(char *out, size_t size, const char *root, const char *controller, bool v2)
{
    char *line = NULL;
    FILE *file = open_file(root, "/proc/self", "cgroup");
    if (!file)
        return false;
    bool found = false;
    size_t capacity = 0;
    while (!found && getline(&line, &capacity, file) > 0) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':');
        char *cgroup = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!cgroup)
            continue;
        *cgroup++ = 0;
        controllers++;
        if (v2 ? *controllers == 0 : lists(controllers, controller))
            found = (size_t)snprintf(out, size, "%s", cgroup) < size;
    }
    free(line);
    fclose(file);
    return found;
}

/* Handles one line of mountinfo: "36 35 98:0 ROOT MOUNT options [tags] - TYPE SOURCE OPTIONS".
 * Returns the limit found under this mount, or 0. */
static uint64_t mount_limit(const struct limit *limit, const char *root, char *line)
{
    char *separator = strstr(line, " - "), *save = NULL;
    if (!separator)
        return 0;
    *separator = 0;
    char *type = strtok_r(separator + 3, " ", &save);
    char *source = strtok_r(NULL, " ", &save), *options = strtok_r(NULL, " ", &save);
    if (!type || !source)
        return 0;
    bool v2 = strcmp(type, "cgroup2") == 0;
    if (!v2 && !(strcmp(type, "cgroup") == 0 && options && lists(options, limit->controller)))
        return 0;

    char *shown = NULL, *mount = NULL, *word = strtok_r(line, " ", &save);
    for (int field = 0; word && field < 5; field++, word = strtok_r(NULL, " ", &save)) {
        if (field == 3)
            shown = word;
        else if (field == 4)
            mount = word;
    }
    char cgroup[4096];
    if (!shown || !mount || !own_cgroup(cgroup, sizeof cgroup, root, limit->controller, v2))
        return 0;
    unescape(shown);
    unescape(mount);
    /* The mount may show only a part of the hierarchy; the levels above cannot be read. */
    size_t n = strcmp(shown, "/") == 0 ? 0 : strlen(shown);
    const char *below = "";
    if (strncmp(cgroup, shown, n) == 0 && (cgroup[n] == '/' || cgroup[n] == 0))
        below = strcmp(cgroup + n, "/") == 0 ? "" : cgroup + n;
    return limit_upwards(limit, root, mount, below, v2);
}

static uint64_t cgroup_limit(const struct limit *limit, const char *root)
{
    char *line = NULL;
    FILE *file = open_file(root, "/proc/self", "mountinfo");
    if (!file)
        return 0;
    uint64_t least = 0;
    size_t capacity = 0;
    while (getline(&line, &capacity, file) > 0) {
        line[strcspn(line, "\n")] = 0;
        least = smaller(least, mount_limit(limit, root, line));
    }
    free(line);
    fclose(file);
    return least;
}

unsigned cpus_cgroup_quota(const char *root)
{
    return (unsigned)cgroup_limit(&cpu_quota, root);
}

uint64_t memory_cgroup_limit(const char *root)
{
    return cgroup_limit(&memory_limit, root);
}

static unsigned own_quota;

static void find_quota(void)
{
    own_quota = cpus_cgroup_quota("");
}

unsigned cpus_available(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_quota);
    const unsigned cpus = cpus_affinity();
    return own_quota && own_quota < cpus ? own_quota : cpus;
}

uint64_t memory_available(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    const uint64_t machine = pages > 0 && bytes > 0 ? (uint64_t)pages * (uint64_t)bytes : 0;
    return smaller(machine, memory_cgroup_limit(""));
}

uint64_t peak_rss_bytes(void)
{
    /* VmHWM first: ru_maxrss survives execve() and may be that of the shell that started this. */
    FILE *file = fopen("/proc/self/status", "re");
    uint64_t kilobytes = 0;
    if (file) {
        char line[256];
        while (kilobytes == 0 && fgets(line, sizeof line, file))
            sscanf(line, "VmHWM: %" SCNu64, &kilobytes);
        fclose(file);
    }
    struct rusage usage;
    if (kilobytes == 0 && getrusage(RUSAGE_SELF, &usage) == 0)
        kilobytes = (uint64_t)usage.ru_maxrss;
    return kilobytes * 1024;
}

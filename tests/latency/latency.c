/* latency.c: makes reading pictures (*.jpg) slow, as on a network file system. A library for
 * LD_PRELOAD: opening a file takes CLPIPE_LATENCY_US microseconds, and its bytes arrive with the
 * same delay after they are first requested by a read or by posix_fadvise. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define MOST_FILES 4096

/* The time in nanoseconds at which each descriptor's bytes arrive; NOT_ASKED: not requested yet; 0:
 * no delay. */
static int64_t there[MOST_FILES];
#define NOT_ASKED INT64_MAX

static int64_t latency(void)
{
    const char *text = getenv("CLPIPE_LATENCY_US");
    return text ? strtoll(text, NULL, 10) * 1000 : 0;
}

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void wait_until(int64_t end)
{
    struct timespec t = {end / 1000000000, end % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
        ;
}

static void ask(int fd)
{
    if (fd >= 0 && fd < MOST_FILES && there[fd] == NOT_ASKED)
        there[fd] = now() + latency();
}

static int open_slowly(int directory, const char *path, int flags)
{
    static int (*next)(int, const char *, int, ...);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "openat64");
    const char *end = strrchr(path, '.');
    bool picture = end && strcmp(end, ".jpg") == 0;
    if (picture)
        wait_until(now() + latency());
    int fd = next(directory, path, flags, 0666);
    if (fd >= 0 && fd < MOST_FILES)
        there[fd] = picture ? NOT_ASKED : 0;
    return fd;
}

int openat64(int directory, const char *path, int flags, ...)
{
    return open_slowly(directory, path, flags);
}

/* The function that the C library's headers substitute in an optimised build. */
int __openat64_2(int directory, const char *path, int flags);
int __openat64_2(int directory, const char *path, int flags)
{
    return open_slowly(directory, path, flags);
}

static ssize_t read_slowly(int fd, void *data, size_t size, off64_t offset)
{
    static ssize_t (*next)(int, void *, size_t, off64_t);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "pread64");
    ask(fd);
    if (fd >= 0 && fd < MOST_FILES && there[fd] > 0) {
        wait_until(there[fd]);
        there[fd] = 0;
    }
    return next(fd, data, size, offset);
}

ssize_t pread64(int fd, void *data, size_t size, off64_t offset)
{
    return read_slowly(fd, data, size, offset);
}

ssize_t __pread64_chk(int fd, void *data, size_t size, off64_t offset, size_t room);
ssize_t __pread64_chk(int fd, void *data, size_t size, off64_t offset, size_t room)
{
    (void)room;
    return read_slowly(fd, data, size, offset);
}

int posix_fadvise64(int fd, off64_t offset, off64_t size, int advice)
{
    (void)offset;
    (void)size;
    if (advice == POSIX_FADV_WILLNEED)
        ask(fd);
    return 0;
}

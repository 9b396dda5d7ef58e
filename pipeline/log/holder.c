/* holder.c: a line "PROCESS HOST BOOT COUNT" in a lock file. BOOT is the kernel's number for its
 * run, so equal names of two machines, or of two containers, are told apart; "-" instead of a line
 * says that the last holder has left. Times of different machines are never compared. */
#include "log/holder.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)
#define BEAT   (2 * SECOND)
#define WATCH  (15 * SECOND) /* a file server may be slow */
#define LOOK   (SECOND / 10) /* stops are not kept waiting */
#define LINE   256

struct holder {
    int lock, directory;
    const char *name;
    char who[LINE]; /* the line up to the count */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    bool ending; /* guarded by mutex */
};

/* The first line, or an empty one. */
static void read_line(char line[LINE], int lock)
{
    ssize_t n;
    do
        n = pread(lock, line, LINE - 1, 0);
    while (n < 0 && errno == EINTR);
    line[n > 0 ? n : 0] = 0;
    line[strcspn(line, "\n")] = 0;
}

/* A full disk is noticed elsewhere. Other machines see what the server has. */
static void write_line(int lock, const char *line)
{
    const ssize_t size = (ssize_t)strlen(line);
    if (pwrite(lock, line, (size_t)size, 0) == size && ftruncate(lock, size) == 0)
        fdatasync(lock);
}

static void write_count(const struct holder *h, unsigned long count)
{
    char line[LINE + 24];
    snprintf(line, sizeof line, "%s %010lu\n", h->who, count);
    write_line(h->lock, line);
}

/* The identifier of the kernel's present run; "?" where it is not available. */
static void read_boot(char boot[64])
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (!file || fscanf(file, "%63s", boot) != 1)
        strcpy(boot, "?");
    if (file)
        fclose(file);
}

/* Did a process of this machine write it, as far as one can tell? */
static bool is_ours(const char *line)
{
    char theirs[64], boot[64];
    read_boot(boot);
    return sscanf(line, "%*d %*64s %63s", theirs) == 1 && strcmp(theirs, boot) == 0 && *boot != '?';
}

bool holder_is_ours(int lock)
{
    char line[LINE];
    read_line(line, lock);
    return is_ours(line);
}

void holder_name(char *name, size_t size, int lock)
{
    char line[LINE], host[65];
    long pid;
    read_line(line, lock);
    if (sscanf(line, "%ld %64s", &pid, host) == 2)
        snprintf(name, size, "process %ld on %s", pid, host);
    else
        snprintf(name, size, "another process");
}

enum status holder_watch(bool *works, int directory, const char *name, bool locked,
                         const char *path, struct stop *stop, struct error *err)
{
    char before[LINE], now[LINE], who[128], shown[256];
    *works = false;
    int lock = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (lock < 0)
        return STATUS_OK;
    read_line(before, lock);
    holder_name(who, sizeof who, lock);
    close(lock);
    if (strcmp(before, "-") == 0 || (locked && is_ours(before)))
        return STATUS_OK;
    log_message(LOG_NOTICE, "%s is in use by %s: waiting %d s to see whether it is still running",
                path_for_message(shown, sizeof shown, path), who, (int)(WATCH / SECOND));
    for (int64_t end = clock_now() + WATCH; !*works && clock_now() < end;) {
        if (stop && stop_requested(stop))
            return error_set(err, STATUS_INTERRUPTED, "interrupted while checking %s", shown);
        nanosleep(&(struct timespec){.tv_nsec = LOOK}, NULL);
        /* Opening is what makes a network file system ask its server. */
        lock = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (lock < 0)
            return STATUS_OK;
        read_line(now, lock);
        close(lock);
        *works = strcmp(before, now) != 0;
    }
    return STATUS_OK;
}

bool holder_keeps(const struct holder *h)
{
    struct stat mine, named;
    char line[LINE];
    /* Opening is what makes a network file system ask its server. */
    const int lock = h ? openat(h->directory, h->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    if (lock < 0)
        return !h || (errno != ENOENT && errno != ESTALE);
    const bool same = fstat(lock, &named) == 0 && fstat(h->lock, &mine) == 0 &&
                      mine.st_dev == named.st_dev && mine.st_ino == named.st_ino;
    read_line(line, lock);
    close(lock);
    /* A full disk has left no line. */
    return same && (!*line || strncmp(line, h->who, strlen(h->who)) == 0);
}

static void *count_on(void *argument)
{
    struct holder *h = argument;
    int64_t next = clock_now();
    pthread_mutex_lock(&h->mutex);
    for (unsigned long count = 1; !h->ending; count++) {
        next += BEAT;
        while (!h->ending && clock_now() < next)
            cond_wait_until(&h->wake, &h->mutex, next);
        if (h->ending)
            break;
        pthread_mutex_unlock(&h->mutex);
        if (holder_keeps(h))
            write_count(h, count);
        pthread_mutex_lock(&h->mutex);
    }
    pthread_mutex_unlock(&h->mutex);
    return NULL;
}

void holder_begin(struct holder **out, int lock, int directory, const char *name)
{
    struct holder *h = calloc(1, sizeof *h);
    char host[65] = "", boot[64];
    *out = NULL;
    if (!h)
        return;
    read_boot(boot);
    gethostname(host, sizeof host - 1);
    snprintf(h->who, sizeof h->who, "%ld %s %s", (long)getpid(), *host ? host : "?", boot);
    h->lock = lock;
    h->directory = directory;
    h->name = name;
    write_count(h, 0);
    pthread_mutex_init(&h->mutex, NULL);
    cond_init_monotonic(&h->wake);
    if (pthread_create(&h->thread, NULL, count_on, h)) {
        pthread_cond_destroy(&h->wake);
        pthread_mutex_destroy(&h->mutex);
        free(h);
        return;
    }
    *out = h;
}

void holder_end(struct holder **holder)
{
    struct holder *h = *holder;
    if (!h)
        return;
    *holder = NULL;
    pthread_mutex_lock(&h->mutex);
    h->ending = true;
    pthread_cond_signal(&h->wake);
    pthread_mutex_unlock(&h->mutex);
    pthread_join(h->thread, NULL);
    if (holder_keeps(h))
        write_line(h->lock, "-\n");
    pthread_cond_destroy(&h->wake);
    pthread_mutex_destroy(&h->mutex);
    free(h);
}

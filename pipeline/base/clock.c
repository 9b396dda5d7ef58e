/* clock.c: monotonic time for measuring and waiting, calendar time for records. */
#include "base/clock.h"
#include "base/parse.h"
#include <stdlib.h>

#define NANOSECONDS INT64_C(1000000000)
/* 1000-01-01 and 9999-12-31: the years that strftime() writes with four digits. */
#define FIRST_SECOND INT64_C(-30610224000)
#define LAST_SECOND  INT64_C(253402300799)

int64_t clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NANOSECONDS + now.tv_nsec;
}

double clock_seconds_since(int64_t start)
{
    return (double)(clock_now() - start) * 1e-9;
}

int64_t clock_file_time(const struct timespec *time)
{
    int64_t sum;
    if (__builtin_mul_overflow((int64_t)time->tv_sec, NANOSECONDS, &sum) ||
        __builtin_add_overflow(sum, (int64_t)time->tv_nsec, &sum))
        return time->tv_sec < 0 ? INT64_MIN : INT64_MAX;
    return sum;
}

static pthread_once_t start_once = PTHREAD_ONCE_INIT;
static int64_t start;

static void start_note(void)
{
    start = clock_now();
}

int64_t clock_process_start(void)
{
    pthread_once(&start_once, start_note);
    return start;
}

void cond_init_monotonic(pthread_cond_t *cond)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attributes);
    pthread_condattr_destroy(&attributes);
}

void cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline)
{
    if (deadline < 0)
        deadline = 0;
    struct timespec until = {(time_t)(deadline / NANOSECONDS), (long)(deadline % NANOSECONDS)};
    pthread_cond_timedwait(cond, mutex, &until);
}

int64_t clock_created(void)
{
    const char *epoch = getenv("SOURCE_DATE_EPOCH");
    uint64_t seconds;
    if (epoch && parse_u64(&seconds, epoch, 0, LAST_SECOND))
        return (int64_t)seconds;
    return (int64_t)time(NULL);
}

char *clock_iso8601(char *buffer, int64_t seconds_since_epoch)
{
    if (seconds_since_epoch < FIRST_SECOND)
        seconds_since_epoch = FIRST_SECOND;
    if (seconds_since_epoch > LAST_SECOND)
        seconds_since_epoch = LAST_SECOND;
    time_t seconds = (time_t)seconds_since_epoch;
    struct tm utc;
    gmtime_r(&seconds, &utc);
    strftime(buffer, 32, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return buffer;
}

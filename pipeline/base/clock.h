/* clock.h: monotonic time, calendar time, and waiting until a deadline. */
#ifndef CLPIPE_BASE_CLOCK_H
#define CLPIPE_BASE_CLOCK_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* Nanoseconds of CLOCK_MONOTONIC. */
int64_t clock_now(void);

/* Seconds since `start`, a value of clock_now(). */
double clock_seconds_since(int64_t start);

/* clock_now() at the start of the process, approximated by the first call (the first thing in
 * main). */
int64_t clock_process_start(void);

/* A file time in nanoseconds since 1970; times out of range (before 1677 or after 2262, which file
 * systems can store) become the nearest representable one. */
int64_t clock_file_time(const struct timespec *time);

/* Initialises a condition variable that waits on CLOCK_MONOTONIC. */
void cond_init_monotonic(pthread_cond_t *cond);

/* Waits on such a condition variable until woken or until clock_now() >= deadline. */
void cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline);

/* Seconds since the epoch for `created`: SOURCE_DATE_EPOCH if set and valid, else the current
 * time. */
int64_t clock_created(void);

/* ISO 8601 UTC, "2026-01-31T12:00:00Z", into buffer of at least 32 bytes; returns buffer. */
char *clock_iso8601(char *buffer, int64_t seconds_since_epoch);

#endif

/* process.h: the process environment: signal dispositions, descriptors, PATH, stacks, limits, a
 * directory for temporary files. */
#ifndef CLPIPE_BASE_PROCESS_H
#define CLPIPE_BASE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 1 in builds with sanitizers, whose runtimes need more resources and install signal handlers. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED 1
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* Repairs inherited state: opens descriptors 0 to 2, resets SIGCHLD, ignores SIGPIPE and SIGXFSZ,
 * clears the owner's bits of the umask, raises the descriptor limit (to at most 65536), and makes
 * PATH absolute directories including the system's. Call first, with a single thread. */
void process_repair(void);

/* Returns run(argc, argv), called on a stack of at least 8 MiB, whatever the limit of `ulimit -s`;
 * threads started without a stack size get 8 MiB, too. */
int process_run(int (*run)(int argc, char **argv), int argc, char **argv);

/* Installs handlers that report SIGABRT, SIGSEGV, SIGBUS and SIGFPE in one line; the exit status is
 * then 3, or the signal's if core dumps are enabled (`ulimit -c`) and in forked processes.
 * process_repair calls it; call it again after a library has installed its own handlers. */
void process_name_crashes(void);

/* In a forked process that serves its parent: names it, ignores signals that ask a job to end, since
 * they reach all of its processes and the parent decides, lets SIGCHLD be waited for, has /dev/null as
 * descriptors 0 to 2, and closes all others but `keep`, inherited ones too; 0: all. */
void process_serve(const char *name, int keep);

/* Sets the file that a library is reading in this thread, which that line names; the path must live
 * until the next call. NULL: none. */
void process_reads(const char *path);

/* Resource limits that may explain a failure, for a message: " (limits: ulimit -v 400000, ulimit -n
 * 12)"; "" if there are none. */
const char *process_limits(void);

/* Whether the errno is a shortage of descriptors, memory or processes, not a file's fault. */
bool process_is_short(int errno_value);

/* False if fd is negative, or if fewer than about `left` descriptors are available above it: then
 * it is closed, and errno is EMFILE. */
bool process_keeps_descriptor(int fd, int left);

/* Descriptors that drivers need while they work. */
#define DESCRIPTORS_OF_DRIVERS 8

/* Sleeps 50 ms to wait out a shortage of `what`, with one notice per process. *since starts as 0.
 * False: not a shortage, or waited for 60 s, or 20 s for memory if only this process is limited.
 * Any thread. */
bool process_wait_for(int64_t *since, int errno_value, const char *what);

/* TMPDIR if it is writable, else the first of /tmp, /var/tmp and /dev/shm that is, else "/tmp".
 * Chosen once, by process_repair. */
const char *process_temporary_directory(void);

/* Finds a file beside the program (in libclpipe.so: beside that) or in ../lib/clpipe; false: it is in neither. */
bool process_file_beside(char *path, size_t size, const char *file);

#endif

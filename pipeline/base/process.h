/* process.h: what a process inherits and needs of its surroundings: signal dispositions, descriptors, PATH,
 * stacks, limits, a directory for temporary files. */
#ifndef CLPIPE_BASE_PROCESS_H
#define CLPIPE_BASE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 1 in builds with sanitizers, whose runtimes need more of the system and have handlers of their own. */
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

/* Repairs what a parent may have taken away: descriptors 0 to 2, the disposition of SIGCHLD, the owner's
 * bits of the umask, descriptors up to the hard limit, and a PATH of absolute directories, the system's
 * among them. Call first, while there is one thread. */
void process_repair(void);

/* Returns run(argc, argv), called where the stack has 8 MiB, whatever `ulimit -s` says; threads that are
 * started without a size have as much. */
int process_run(int (*run)(int argc, char **argv), int argc, char **argv);

/* After process_repair one line says so where a library ends the process by SIGABRT, SIGSEGV, SIGBUS or
 * SIGFPE; the exit status is 3, or the signal's where a core is wanted (`ulimit -c`) and in forked processes.
 * To be called again after a library that has handlers of its own. */
void process_name_crashes(void);

/* The file that a library reads in this thread, which that line names; the path must live until the next
 * call. NULL: none. */
void process_reads(const char *path);

/* The limits that are set for this process and can be the reason for a failure, for a message:
 * " (limits: ulimit -v 400000, ulimit -n 12)"; "" where there are none. */
const char *process_limits(void);

/* Is the errno a shortage of descriptors, memory or processes, which is no property of a file? */
bool process_is_short(int errno_value);

/* False if fd is no descriptor, or if fewer than `left`, which others need, are left behind it: it is then
 * closed, and errno is EMFILE. */
bool process_keeps_descriptor(int fd, int left);

/* Descriptors that drivers need while they work. */
#define DESCRIPTORS_OF_DRIVERS 8

/* Waits a moment for what is short, and says so once. *since is 0 at first. false: not any more, after 60 s,
 * or 20 s where memory is limited for this process alone, so that others cannot help. Any thread. */
bool process_wait_for(int64_t *since, int errno_value, const char *what);

/* TMPDIR if files can be created there, else the first of /tmp, /var/tmp and /dev/shm where they can, else
 * "/tmp". The first call looks, which process_repair makes. */
const char *process_temporary_directory(void);

/* The path of a file beside the program or in ../lib/clpipe; false: it is in neither. */
bool process_file_beside(char *path, size_t size, const char *file);

#endif

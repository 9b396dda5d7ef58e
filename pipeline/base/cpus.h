/* cpus.h: how many CPUs and how much memory this process may use. */
#ifndef CLPIPE_BASE_CPUS_H
#define CLPIPE_BASE_CPUS_H

#include <stdint.h>

/* The CPUs of the affinity mask, bounded by the cgroup's quota (v1 and v2, rounded up; read once); at
 * least 1. */
unsigned cpus_available(void);

/* The smallest CPU quota of this process's cgroups and their parents, rounded up to whole CPUs; 0
 * if there is none. `root` is the prefix of /proc/self and the cgroup mounts: "" for the machine
 * itself. */
unsigned cpus_cgroup_quota(const char *root);

/* The machine's memory in bytes, bounded by memory_cgroup_limit(""); 0: unknown. */
uint64_t memory_available(void);

/* The smallest memory limit of this process's cgroups and their parents, in bytes; 0 if there is
 * none. */
uint64_t memory_cgroup_limit(const char *root);

/* Peak resident set size of this process so far, in bytes. */
uint64_t peak_rss_bytes(void);

#endif

/* test_cpus.c: quotas read from simulated /proc and cgroup trees, and those of this machine. */
#include "runner.h"

#include "base/cpus.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

static void put(const char *path, const char *content)
{
    char name[512];
    snprintf(name, sizeof name, "%s%s", root, path);
    for (char *slash = name + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(name, 0755);
        *slash = '/';
    }
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int make_root(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/clpipe-cpus-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf -- '%s'", root);
    return system(command);
}

static const char v2_mount[] =
    "22 27 0:20 / /proc rw,nosuid - proc proc rw\n"
    "29 22 0:26 / /sys/fs/cgroup rw,nosuid,nodev shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

static void missing_files_mean_no_quota(void **state)
{
    (void)state;
    assert_int_equal(cpus_cgroup_quota(root), 0);
    assert_int_equal(cpus_cgroup_quota("/nonexistent"), 0);
}

static void v2_smallest_quota_of_all_ancestors(void **state)
{
    (void)state;
    put("/proc/self/mountinfo", v2_mount);
    put("/proc/self/cgroup", "0::/user.slice/job.scope\n");
    assert_int_equal(cpus_cgroup_quota(root), 0);
    put("/sys/fs/cgroup/user.slice/job.scope/cpu.max", "max 100000\n");
    assert_int_equal(cpus_cgroup_quota(root), 0);
    put("/sys/fs/cgroup/user.slice/job.scope/cpu.max", "350000 100000\n");
    assert_int_equal(cpus_cgroup_quota(root), 4); /* 3.5, rounded up */
    put("/sys/fs/cgroup/user.slice/cpu.max", "200000 100000\n");
    assert_int_equal(cpus_cgroup_quota(root), 2);
    put("/sys/fs/cgroup/cpu.max", "10000 100000\n");
    assert_int_equal(cpus_cgroup_quota(root), 1);
}

static void v2_strange_contents(void **state)
{
    (void)state;
    static const struct {
        const char *content;
        unsigned quota;
    } cases[] = {
        {"", 0},
        {"max\n", 0},
        {"100000\n", 0},
        {"100000 0\n", 0},
        {"0 100000\n", 0},
        {"-1 100000\n", 0},
        {"a b\n", 0},
        {"100000 100000", 1},
        {"100001 100000\n", 2},
        {"18446744073709551615 1\n", 1u << 20},
        {"1 1000000 7\n", 0},
    };
    put("/proc/self/mountinfo", v2_mount);
    put("/proc/self/cgroup", "0::/\n");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        put("/sys/fs/cgroup/cpu.max", cases[i].content);
        assert_int_equal(cpus_cgroup_quota(root), cases[i].quota);
    }
    put("/sys/fs/cgroup/cpu.max", "100000 100000\n");
    put("/proc/self/cgroup", "garbage\n\n0\n0:\n");
    assert_int_equal(cpus_cgroup_quota(root), 0);
    put("/proc/self/cgroup", "0::/\n");
    put("/proc/self/mountinfo", "\nx\n - \n1 2 - cgroup2\n - cgroup2 a b\n1 2 3 - cgroup2 a b\n");
    assert_int_equal(cpus_cgroup_quota(root), 0);
}

static void v1_and_hybrid(void **state)
{
    (void)state;
    put("/proc/self/mountinfo",
        "30 25 0:27 / /cg/cpuset rw shared:9 - cgroup cgroup rw,cpuset\n"
        "31 25 0:28 / /cg/cpu,cpuacct rw shared:10 - cgroup cgroup rw,cpu,cpuacct\n"
        "32 25 0:29 / /cg/unified rw - cgroup2 cgroup2 rw\n");
    put("/proc/self/cgroup", "5:cpuset:/wrong\n4:cpu,cpuacct:/docker/abc\n0::/other\n");
    put("/cg/cpuset/wrong/cpu.cfs_quota_us", "100000\n");
    put("/cg/cpuset/wrong/cpu.cfs_period_us", "100000\n");
    put("/cg/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    put("/cg/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    assert_int_equal(cpus_cgroup_quota(root), 0);
    put("/cg/cpu,cpuacct/docker/cpu.cfs_quota_us", "600000\n");
    put("/cg/cpu,cpuacct/docker/cpu.cfs_period_us", "100000\n");
    assert_int_equal(cpus_cgroup_quota(root), 6);
    put("/cg/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "120000\n");
    put("/cg/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "50000\n");
    assert_int_equal(cpus_cgroup_quota(root), 3); /* 2.4, rounded up */
    put("/cg/unified/other/cpu.max", "100000 100000\n");
    assert_int_equal(cpus_cgroup_quota(root), 1);
}

/* In a container the mount's root is its own cgroup, while /proc shows the outer path. */
static void mount_of_a_subtree(void **state)
{
    (void)state;
    put("/proc/self/mountinfo", "29 22 0:26 /docker/abc /mnt\\040x rw - cgroup2 cgroup2 rw\n");
    put("/proc/self/cgroup", "0::/docker/abc/inner\n");
    put("/mnt x/cpu.max", "500000 100000\n");
    assert_int_equal(cpus_cgroup_quota(root), 5);
    put("/mnt x/inner/cpu.max", "300000 100000\n");
    assert_int_equal(cpus_cgroup_quota(root), 3);
    /* A sibling cgroup that shares only a prefix of the name is not below it. */
    put("/proc/self/cgroup", "0::/docker/abcdef\n");
    assert_int_equal(cpus_cgroup_quota(root), 5);
}

static void memory_of_cgroups(void **state)
{
    (void)state;
    put("/proc/self/mountinfo", "40 25 0:41 / /m2 rw - cgroup2 cgroup2 rw\n"
                                "41 25 0:42 / /m1 rw - cgroup cgroup rw,memory\n");
    put("/proc/self/cgroup", "7:memory:/job\n4:cpu:/wrong\n0::/slice/scope\n");
    put("/m2/slice/scope/cpu.max", "100000 100000\n");
    put("/m2/slice/scope/memory.max", "max\n");
    put("/m1/wrong/memory.limit_in_bytes", "4096\n");
    assert_int_equal(memory_cgroup_limit(root), 0);
    put("/m1/job/memory.limit_in_bytes", "9223372036854771712\n");
    assert_int_equal(memory_cgroup_limit(root), UINT64_C(9223372036854771712));
    put("/m2/slice/scope/memory.max", "17179869184\n");
    assert_int_equal(memory_cgroup_limit(root), UINT64_C(17179869184));
    put("/m2/slice/memory.max", "8589934592\n");
    assert_int_equal(memory_cgroup_limit(root), UINT64_C(8589934592));
    put("/m1/memory.limit_in_bytes", "5368709120\n");
    assert_int_equal(memory_cgroup_limit(root), UINT64_C(5368709120));
    assert_int_equal(cpus_cgroup_quota(root), 1);
}

static void this_machine(void **state)
{
    (void)state;
    unsigned cpus = cpus_available();
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    assert_in_range(cpus, 1, online);
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    int first = 0;
    while (!CPU_ISSET(first, &before))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(cpus_available(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    const uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    assert_in_range(memory_available(), 1 << 20, memory);
    const uint64_t limit = memory_cgroup_limit("");
    assert_true(limit == 0 || memory_available() <= limit);
}

static void peak_memory_grows(void **state)
{
    (void)state;
    uint64_t before = peak_rss_bytes();
    assert_in_range(before, 100 * 1024, UINT64_C(1) << 40);
    size_t size = 64 << 20;
    volatile char *memory = malloc(size);
    assert_non_null((void *)(uintptr_t)memory);
    for (size_t i = 0; i < size; i += 4096)
        memory[i] = 1;
    uint64_t during = peak_rss_bytes();
    free((void *)(uintptr_t)memory);
    assert_true(during >= before + size / 2);
    /* Not exact to the page: the kernel sums its per-CPU counters only occasionally. */
    assert_true(peak_rss_bytes() >= during - size / 8);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(missing_files_mean_no_quota),
    cmocka_unit_test(v2_smallest_quota_of_all_ancestors),
    cmocka_unit_test(v2_strange_contents),
    cmocka_unit_test(v1_and_hybrid),
    cmocka_unit_test(mount_of_a_subtree),
    cmocka_unit_test(this_machine),
    cmocka_unit_test(memory_of_cgroups),
    cmocka_unit_test(peak_memory_grows),
};
TEST_GROUP(cpus, make_root, remove_root)

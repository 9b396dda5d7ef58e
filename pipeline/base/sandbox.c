/* sandbox.c: limits, and a filter of system calls.
 *
 * The filter lists the calls that reading and decoding a file need; all others fail with EPERM, so
 * that a library that only probes can continue. It is written as BPF to avoid a dependency. */
#include "base/sandbox.h"

#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined __x86_64__
#define OUR_ARCH AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define OUR_ARCH AUDIT_ARCH_AARCH64
#else
#define OUR_ARCH 0 /* no filter */
#endif

/* A socket, a file, memory statistics, and the three standard ones. */
#define MOST_FDS 32

/* --- the filter ------------------------------------------------------------------------------ */

static const int allowed[] = {
    SYS_read,
    SYS_pread64,
    SYS_lseek,
    SYS_fstat,
    SYS_newfstatat,
    SYS_recvmsg,
    SYS_sendmsg,
    SYS_close,
    SYS_munmap,
    SYS_mremap,
    SYS_brk,
    SYS_madvise,
    SYS_exit,
    SYS_exit_group,
    SYS_getpid,
    SYS_gettid,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_restart_syscall,
    SYS_prlimit64,
    SYS_getrusage,
    SYS_getrandom,
    SYS_sysinfo,
    SYS_clock_gettime,
    SYS_gettimeofday,
    /* Some codecs start threads. */
    SYS_futex,
    SYS_set_robust_list,
    SYS_sched_getaffinity,
    SYS_sched_yield,
    SYS_clock_nanosleep,
#ifdef SYS_rseq
    SYS_rseq,
#endif
};

enum { ARGUMENT_0 = offsetof(struct seccomp_data, args) };

struct program {
    struct sock_filter line[128];
    unsigned short length;
};

static void add(struct program *program, struct sock_filter line)
{
    program->line[program->length++] = line;
}

static void load(struct program *program, size_t offset)
{
    add(program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void end(struct program *program, uint32_t verdict)
{
    add(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, verdict));
}

/* Continues if the loaded word is `value`, else skips `lines` instructions. */
static void only_if(struct program *program, uint32_t value, uint8_t lines)
{
    add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, lines));
}

/* Allows a call whose argument has none of these bits. The low half of an argument comes first on
 * the machines that have a filter. */
static void allow_without(struct program *program, int call, unsigned argument, uint32_t bits)
{
    only_if(program, (uint32_t)call, 4);
    load(program, ARGUMENT_0 + 8 * argument);
    add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 1, 0));
    end(program, SECCOMP_RET_ALLOW);
    end(program, SECCOMP_RET_ERRNO | EPERM);
}

/* Allows a call for one value of its first argument. */
static void allow_for(struct program *program, int call, uint32_t value)
{
    only_if(program, (uint32_t)call, 4);
    load(program, ARGUMENT_0);
    only_if(program, value, 1);
    end(program, SECCOMP_RET_ALLOW);
    end(program, SECCOMP_RET_ERRNO | EPERM);
}

/* Threads, but no processes. A filter cannot see clone3's flags: ENOSYS makes the C library fall
 * back to clone. */
static void allow_threads(struct program *program)
{
    only_if(program, SYS_clone, 4);
    load(program, ARGUMENT_0);
    add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1));
    end(program, SECCOMP_RET_ALLOW);
    end(program, SECCOMP_RET_ERRNO | EPERM);
#ifdef SYS_clone3
    only_if(program, SYS_clone3, 1);
    end(program, SECCOMP_RET_ERRNO | ENOSYS);
#endif
    allow_for(program, SYS_prctl, PR_SET_NAME);
}

static void filter_calls(void)
{
    struct program program = {.length = 0};
    load(&program, offsetof(struct seccomp_data, arch));
    only_if(&program, OUR_ARCH, 1);
    add(&program, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 1));
    end(&program, SECCOMP_RET_ERRNO | EPERM);
    load(&program, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
        only_if(&program, (uint32_t)allowed[i], 1);
        end(&program, SECCOMP_RET_ALLOW);
    }
    allow_without(&program, SYS_mmap, 2, PROT_EXEC);
    allow_without(&program, SYS_mprotect, 2, PROT_EXEC);
    allow_threads(&program);
    /* abort() */
    allow_for(&program, SYS_tgkill, (uint32_t)getpid());
    end(&program, SECCOMP_RET_ERRNO | EPERM);
    struct sock_fprog all = {program.length, program.line};
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all);
}

/* --- limits ---------------------------------------------------------------------------------- */

static void limit(__rlimit_resource_t what, rlim_t most)
{
    struct rlimit now;
    if (getrlimit(what, &now) != 0)
        return;
    if (now.rlim_max == RLIM_INFINITY || now.rlim_max > most)
        setrlimit(what, &(struct rlimit){most, most});
}

int sandbox_enter(void)
{
    const int figures = SANITIZED ? -1 : open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, 0);
    limit(RLIMIT_NOFILE, MOST_FDS);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (SANITIZED)
        return figures;
    /* Keeps out debuggers, and prevents core dumps to a pipe, which RLIMIT_CORE does not. */
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (OUR_ARCH)
        filter_calls();
    return figures;
}

void sandbox_allow_memory(int figures, uint64_t bytes)
{
    char text[64];
    ssize_t got = figures < 0 ? 0 : pread(figures, text, sizeof text - 1, 0);
    if (got <= 0)
        return;
    text[got] = 0;
    /* "size resident shared text lib data dirty", in pages. */
    unsigned long long data;
    struct rlimit now;
    if (sscanf(text, "%*u %*u %*u %*u %*u %llu", &data) != 1 || getrlimit(RLIMIT_DATA, &now) != 0)
        return;
    uint64_t there = data * (uint64_t)sysconf(_SC_PAGESIZE);
    rlim_t most = bytes < UINT64_MAX / 2 ? there + bytes : RLIM_INFINITY;
    now.rlim_cur = most < now.rlim_max ? most : now.rlim_max;
    setrlimit(RLIMIT_DATA, &now);
}

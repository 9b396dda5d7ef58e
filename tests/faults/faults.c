/* faults.c: makes calls of clpipe fail, one at a time. A library for LD_PRELOAD.
 *
 *   CLPIPE_FAULT="CLASS SITE NTH ACTION"   makes the NTH call ("3") or the NTH and all later calls
 *                                          ("3+") of a class at a site fail
 *   CLPIPE_FAULT_NOTE=FILE                 appends a line for each call that was made to fail
 *   CLPIPE_FAULT_LIST=FILE                 appends "CLASS SITE CALLS" for each site at exit
 *
 * A site is the return address of the calls: a hexadecimal offset from the start of the program
 * ("clpipe+1a2b"), of libhdf5 or of clpipe's MPI module, or "*" for all sites. Only calls from
 * these modules count; OpenCL drivers, MPI and the C library are not affected. ACTION is an error
 * number (negative for OpenCL), "short" to transfer one byte only, or "kill".
 *
 * The counters have no locks because malloc is one of the calls. */
/* The checked functions (__open_2) are defined here, too; hardened headers declare them
 * differently. */
#undef _FORTIFY_SOURCE
#include "faults.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_SITES 8192u
/* Actions other than error numbers. */
#define SHORT (1 << 20)
#define KILL  (1 << 21)

static const char *const class_name[CALL_CLASSES] = {
    [CALL_OPEN] = "open",         [CALL_READ] = "read",         [CALL_WRITE] = "write",
    [CALL_SYNC] = "sync",         [CALL_RENAME] = "rename",     [CALL_TRUNCATE] = "truncate",
    [CALL_MKDIR] = "mkdir",       [CALL_UNLINK] = "unlink",     [CALL_MAP] = "map",
    [CALL_MEMORY] = "memory",     [CALL_THREAD] = "thread",     [CALL_PROCESS] = "process",
    [CALL_SOCKET] = "socket",     [CALL_MESSAGE] = "message",   [CALL_CONTEXT] = "context",
    [CALL_QUEUE] = "queue",       [CALL_BUFFER] = "buffer",     [CALL_PROGRAM] = "program",
    [CALL_BUILD] = "build",       [CALL_KERNEL] = "kernel",     [CALL_ARGUMENT] = "argument",
    [CALL_LAUNCH] = "launch",     [CALL_TRANSFER] = "transfer", [CALL_FLUSH] = "flush",
    [CALL_CALLBACK] = "callback", [CALL_EVENT] = "event",       [CALL_LIST] = "list",
    [CALL_COPY] = "copy",
};

static struct module {
    const char *name;
    uintptr_t base, start, end; /* offsets are relative to base; its code is from start to end */
} module[] = {{"clpipe", 0, 0, 0}, {"hdf5", 0, 0, 0}, {"mpi", 0, 0, 0}};
#define MODULES ((int)(sizeof module / sizeof *module))

static bool ranks; /* the MPI module will be loaded later */

/* An open-addressing table: the key is the class, the module and the offset. */
static struct site {
    _Atomic uint64_t key;
    _Atomic uint64_t calls;
} site[MOST_SITES];

static struct {
    enum call_class class;
    int module, action; /* module: -1 for all */
    uint64_t offset, nth;
    bool all, on;
    _Atomic uint64_t calls;
} fault;

/* --- setting up ------------------------------------------------------------------------------ */

static int look_at_module(struct dl_phdr_info *info, size_t size, void *first)
{
    (void)size;
    bool *main_program = first;
    struct module *found =
        *main_program ? &module[0]
        : strstr(info->dlpi_name, "libhdf5_serial.so") || strstr(info->dlpi_name, "libhdf5.so")
            ? &module[1]
        : strstr(info->dlpi_name, "/mpi-openmpi.so") || strstr(info->dlpi_name, "/mpi-mpich.so")
            ? &module[2]
            : NULL;
    *main_program = false;
    for (int i = 0; found && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X))
            continue;
        found->base = info->dlpi_addr;
        found->start = info->dlpi_addr + part->p_vaddr;
        found->end = found->start + part->p_memsz;
    }
    return 0;
}

static void read_fault(const char *text)
{
    char class[16], where[64], count[24], action[16], name[16];
    unsigned long long offset = 0;
    if (sscanf(text, "%15s %63s %23s %15s", class, where, count, action) != 4) {
        fprintf(stderr, "CLPIPE_FAULT is not 'CLASS SITE NTH ACTION': %s\n", text);
        _exit(99);
    }
    fault.class = CALL_CLASSES;
    for (int c = 0; c < CALL_CLASSES; c++)
        if (strcmp(class, class_name[c]) == 0)
            fault.class = (enum call_class)c;
    fault.module = -1;
    for (int m = 0; m < MODULES; m++)
        if (sscanf(where, "%15[a-z0-9]+%llx", name, &offset) == 2 &&
            strcmp(name, module[m].name) == 0)
            fault.module = m;
    fault.offset = offset;
    fault.nth = strtoull(count, NULL, 10);
    fault.all = strchr(count, '+') != NULL;
    fault.action = strcmp(action, "short") == 0  ? SHORT
                   : strcmp(action, "kill") == 0 ? KILL
                                                 : atoi(action);
    fault.on = fault.class < CALL_CLASSES && (fault.module >= 0 || strcmp(where, "*") == 0);
    if (!fault.on)
        _exit(99);
}

__attribute__((constructor)) static void begin(void)
{
    bool first = true;
    char program[4096];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n > 0 ? n : 0] = 0;
    /* A compiler that a driver starts inherits this library but is not under test. */
    const char *name = strrchr(program, '/');
    if (!name || strcmp(name, "/clpipe") != 0)
        return;
    dl_iterate_phdr(look_at_module, &first);
    ranks = getenv("OMPI_COMM_WORLD_RANK") || getenv("PMI_RANK");
    const char *text = getenv("CLPIPE_FAULT");
    if (text)
        read_fault(text);
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("CLPIPE_FAULT_LIST");
    FILE *file = path && module[0].end ? fopen(path, "w") : NULL;
    if (!file)
        return;
    for (unsigned i = 0; i < MOST_SITES; i++) {
        uint64_t key = site[i].key;
        if (key)
            fprintf(file, "%s %s+%llx %llu\n", class_name[(key >> 56) - 1],
                    module[key >> 48 & 0xff].name, (unsigned long long)(key & 0xffffffffffff),
                    (unsigned long long)site[i].calls);
    }
    fclose(file);
}

/* --- deciding -------------------------------------------------------------------------------- */

static void note(int class, int which, uint64_t offset, uint64_t number)
{
    const char *path = getenv("CLPIPE_FAULT_NOTE");
    char line[128];
    int fd =
        path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND, 0666) : -1;
    if (fd < 0)
        return;
    int n = snprintf(line, sizeof line, "%s %s+%llx %llu\n", class_name[class], module[which].name,
                     (unsigned long long)offset, (unsigned long long)number);
    syscall(SYS_write, fd, line, n);
    syscall(SYS_close, fd);
}

static int find_module(uintptr_t at)
{
    for (int m = 0; m < MODULES; m++)
        if (at >= module[m].start && at < module[m].end)
            return m;
    return -1;
}

int faults_decide(enum call_class class, const void *address)
{
    uintptr_t at = (uintptr_t)address;
    int which = find_module(at);
    if (which < 0 && ranks) {
        bool first = true;
        dl_iterate_phdr(look_at_module, &first);
        ranks = module[2].end == 0;
        which = find_module(at);
    }
    /* HDF5 handles failed allocations by itself. */
    if (which < 0 || (which == 1 && class == CALL_MEMORY))
        return 0;
    uint64_t offset = at - module[which].base;
    uint64_t key = (uint64_t)(class + 1) << 56 | (uint64_t)which << 48 | offset, seen;
    unsigned place = (unsigned)(key * 0x9e3779b97f4a7c15ull >> 51) % MOST_SITES;
    for (;;) {
        seen = 0;
        if (atomic_compare_exchange_strong(&site[place].key, &seen, key) || seen == key)
            break;
        place = (place + 1) % MOST_SITES;
    }
    atomic_fetch_add(&site[place].calls, 1);
    if (!fault.on || class != fault.class ||
        (fault.module >= 0 && (which != fault.module || offset != fault.offset)))
        return 0;
    uint64_t number = atomic_fetch_add(&fault.calls, 1) + 1;
    if (number != fault.nth && !(fault.all && number > fault.nth))
        return 0;
    note(class, which, offset, number);
    if (fault.action == KILL)
        kill(getpid(), SIGKILL);
    return fault.action;
}

/* Returns true, with errno set, if the call is to fail. */
static bool fails(enum call_class class, const void *address)
{
    int number = faults_decide(class, address);
    if (number && number != SHORT)
        errno = number;
    return number != 0 && number != SHORT;
}

/* The size to read or write: the full size, 1 for a short transfer, or -1 for a failure. */
static ssize_t admit(enum call_class class, size_t size, const void *address)
{
    int number = faults_decide(class, address);
    if (number == SHORT)
        return size > 0 ? 1 : 0;
    if (number)
        errno = number;
    return number ? -1 : (ssize_t)size;
}

/* --- files ----------------------------------------------------------------------------------- */

static int do_open(int at, const char *path, int flags, mode_t mode, const void *address)
{
    if (fails(CALL_OPEN, address))
        return -1;
    return (int)syscall(SYS_openat, at, path, flags, mode);
}

static mode_t mode_of(int flags, va_list arguments)
{
    return flags & (O_CREAT | __O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

#define OPEN(name)                                                                                 \
    int name(const char *path, int flags, ...);                                                    \
    int name(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        va_list arguments;                                                                         \
        va_start(arguments, flags);                                                                \
        mode_t mode = mode_of(flags, arguments);                                                   \
        va_end(arguments);                                                                         \
        return do_open(AT_FDCWD, path, flags, mode, CALLER);                                       \
    }
OPEN(open)
OPEN(open64)
OPEN(__open_2)
OPEN(__open64_2)

#define OPENAT(name)                                                                               \
    int name(int at, const char *path, int flags, ...);                                            \
    int name(int at, const char *path, int flags, ...)                                             \
    {                                                                                              \
        va_list arguments;                                                                         \
        va_start(arguments, flags);                                                                \
        mode_t mode = mode_of(flags, arguments);                                                   \
        va_end(arguments);                                                                         \
        return do_open(at, path, flags, mode, CALLER);                                             \
    }
OPENAT(openat)
OPENAT(openat64)
OPENAT(__openat_2)
OPENAT(__openat64_2)

static ssize_t do_transfer(enum call_class class, long call, int fd, void *data, size_t size,
                           off_t offset, const void *address)
{
    ssize_t admitted = admit(class, size, address);
    return admitted < 0 ? -1 : syscall(call, fd, data, (size_t)admitted, offset);
}

#define READ(name)                                                                                 \
    ssize_t name(int fd, void *data, size_t size)                                                  \
    {                                                                                              \
        return do_transfer(CALL_READ, SYS_read, fd, data, size, 0, CALLER);                        \
    }
#define PREAD(name)                                                                                \
    ssize_t name(int fd, void *data, size_t size, off_t offset)                                    \
    {                                                                                              \
        return do_transfer(CALL_READ, SYS_pread64, fd, data, size, offset, CALLER);                \
    }
#define PWRITE(name)                                                                               \
    ssize_t name(int fd, const void *data, size_t size, off_t offset)                              \
    {                                                                                              \
        return do_transfer(CALL_WRITE, SYS_pwrite64, fd, (void *)(uintptr_t)data, size, offset,    \
                           CALLER);                                                                \
    }
READ(read)
PREAD(pread)
PREAD(pread64)
PWRITE(pwrite)
PWRITE(pwrite64)

/* Functions that the headers substitute if the compiler knows the size of the buffer. */
ssize_t __read_chk(int fd, void *data, size_t size, size_t room);
ssize_t __read_chk(int fd, void *data, size_t size, size_t room)
{
    (void)room;
    return do_transfer(CALL_READ, SYS_read, fd, data, size, 0, CALLER);
}
#define PREAD_CHECKED(name)                                                                        \
    ssize_t name(int fd, void *data, size_t size, off_t offset, size_t room);                      \
    ssize_t name(int fd, void *data, size_t size, off_t offset, size_t room)                       \
    {                                                                                              \
        (void)room;                                                                                \
        return do_transfer(CALL_READ, SYS_pread64, fd, data, size, offset, CALLER);                \
    }
PREAD_CHECKED(__pread_chk)
PREAD_CHECKED(__pread64_chk)

ssize_t write(int fd, const void *data, size_t size)
{
    /* Messages must not fail, because the tests read them. */
    const void *address = fd == STDERR_FILENO ? NULL : CALLER;
    return do_transfer(CALL_WRITE, SYS_write, fd, (void *)(uintptr_t)data, size, 0, address);
}

#define SIMPLE(class, type, name, parameters, arguments)                                           \
    type name parameters                                                                           \
    {                                                                                              \
        NEXT(name);                                                                                \
        return fails(class, CALLER) ? (type)-1 : next arguments;                                   \
    }
SIMPLE(CALL_COPY, ssize_t, copy_file_range,
       (int from, off64_t *in, int to, off64_t *out, size_t size, unsigned flags),
       (from, in, to, out, size, flags))
SIMPLE(CALL_SYNC, int, fsync, (int fd), (fd))
SIMPLE(CALL_SYNC, int, fdatasync, (int fd), (fd))
SIMPLE(CALL_RENAME, int, rename, (const char *from, const char *to), (from, to))
SIMPLE(CALL_RENAME, int, renameat, (int at, const char *from, int there, const char *to),
       (at, from, there, to))
SIMPLE(CALL_RENAME, int, renameat2,
       (int at, const char *from, int there, const char *to, unsigned flags),
       (at, from, there, to, flags))
SIMPLE(CALL_TRUNCATE, int, ftruncate, (int fd, off_t size), (fd, size))
SIMPLE(CALL_TRUNCATE, int, ftruncate64, (int fd, off64_t size), (fd, size))
SIMPLE(CALL_MKDIR, int, mkdir, (const char *path, mode_t mode), (path, mode))
SIMPLE(CALL_MKDIR, int, mkdirat, (int at, const char *path, mode_t mode), (at, path, mode))
SIMPLE(CALL_UNLINK, int, unlink, (const char *path), (path))
SIMPLE(CALL_UNLINK, int, unlinkat, (int at, const char *path, int flags), (at, path, flags))
SIMPLE(CALL_MAP, void *, mmap, (void *at, size_t size, int mode, int flags, int fd, off_t offset),
       (at, size, mode, flags, fd, offset))
SIMPLE(CALL_MAP, void *, mmap64,
       (void *at, size_t size, int mode, int flags, int fd, off64_t offset),
       (at, size, mode, flags, fd, offset))

#define LIST(type, name)                                                                           \
    type *name(DIR *stream)                                                                        \
    {                                                                                              \
        NEXT(name);                                                                                \
        return fails(CALL_LIST, CALLER) ? NULL : next(stream);                                     \
    }
LIST(struct dirent, readdir)
LIST(struct dirent64, readdir64)

SIMPLE(CALL_PROCESS, pid_t, fork, (void), ())
SIMPLE(CALL_SOCKET, int, socketpair, (int domain, int type, int protocol, int pair[2]),
       (domain, type, protocol, pair))
SIMPLE(CALL_SOCKET, int, memfd_create, (const char *name, unsigned flags), (name, flags))
SIMPLE(CALL_MESSAGE, ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags),
       (fd, message, flags))
SIMPLE(CALL_MESSAGE, ssize_t, recvmsg, (int fd, struct msghdr *message, int flags),
       (fd, message, flags))

SIMPLE(CALL_TRUNCATE, int, fallocate64, (int fd, int mode, off64_t offset, off64_t size),
       (fd, mode, offset, size))

/* These functions return their error. */
int posix_fallocate64(int fd, off64_t offset, off64_t size)
{
    NEXT(posix_fallocate64);
    return fails(CALL_TRUNCATE, CALLER) ? errno : next(fd, offset, size);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                   void *argument)
{
    NEXT(pthread_create);
    return fails(CALL_THREAD, CALLER) ? errno : next(thread, attributes, start, argument);
}

/* --- memory ---------------------------------------------------------------------------------- */

/* dlsym() itself allocates memory. */
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

void *malloc(size_t size)
{
    return fails(CALL_MEMORY, CALLER) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails(CALL_MEMORY, CALLER) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    return fails(CALL_MEMORY, CALLER) ? NULL : __libc_realloc(old, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    if (fails(CALL_MEMORY, CALLER))
        return ENOMEM;
    *out = __libc_memalign(alignment, size);
    return *out ? 0 : ENOMEM;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return fails(CALL_MEMORY, CALLER) ? NULL : __libc_memalign(alignment, size);
}

static char *copy(const char *text, size_t length, const void *address)
{
    char *out = fails(CALL_MEMORY, address) ? NULL : __libc_malloc(length + 1);
    if (out) {
        memcpy(out, text, length);
        out[length] = 0;
    }
    return out;
}

char *strdup(const char *text)
{
    return copy(text, strlen(text), CALLER);
}

char *strndup(const char *text, size_t most)
{
    return copy(text, strnlen(text, most), CALLER);
}

/* ocl_cache.c: directories for compiled kernels, even without a home directory, and the entries of
 * clpipe's cache.
 *
 * PoCL compiles into $POCL_CACHE_DIR, else $XDG_CACHE_HOME/pocl/kcache, else
 * $HOME/.cache/pocl/kcache, else /tmp/pocl/kcache, loads programs from there, and aborts the
 * process if a file there is damaged, belongs to another user or cannot be written. So each process
 * gives it a private directory, initially empty and removed at exit, and saves PoCL's output as
 * entries of clpipe's cache, which have digests: programs, and the kernels that PoCL compiles per
 * work-group size at the first launch, which no program binary contains.
 *
 * Compiled kernels run with the rights of the user. A cache is used only if no other user can write
 * to it or to a directory above it. */
#include "ocl/ocl_cache.h"

#include "base/hash.h"
#include "base/log.h"
#include "base/output.h"
#include "base/output_directory.h"
#include "base/path.h"
#include "base/process.h"
#include "base/unnamed_file.h"
#include "version_generated.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Free space that a directory needs: for an entry; for what a driver compiles in one run. */
#define ENTRY_SPACE  (1ull << 20)
#define DRIVER_SPACE (4ull << 20)

#define ENTRY_MOST (1u << 30)
#define PATH_BYTES 4096
#define LINKS_MOST 40

#define ENTRY_MAGIC "clpipe-binary-1\n"

struct entry_header {
    char magic[16];
    uint64_t length;
    uint8_t digest[32];
};

static const char *setting(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* --- directories ----------------------------------------------------------------------------- */

static bool belongs_to_us(const struct stat *st)
{
    return st->st_uid == geteuid() || st->st_uid == 0;
}

/* Replaces the link whole[0, end) by its target; false if there are too many links. */
static bool follow_link(char whole[PATH_BYTES], size_t end, unsigned *links)
{
    char link[PATH_BYTES], next[2 * PATH_BYTES];
    const char kept = whole[end];
    whole[end] = '\0';
    const ssize_t length = readlink(whole, link, sizeof link - 1);
    whole[end] = kept;
    if (length <= 0 || ++*links > LINKS_MOST)
        return false;
    link[length] = '\0';
    size_t parent = end;
    while (whole[parent - 1] != '/')
        parent--;
    const int size = snprintf(next, sizeof next, "%.*s%s%s", link[0] == '/' ? 0 : (int)parent,
                              whole, link, whole + end);
    if (size >= PATH_BYTES)
        return false;
    strcpy(whole, next);
    return true;
}

/* Whether the directory, its parents and links on the way belong to this user or root and are
 * writable by nobody else (except root's sticky ones). Missing ones will be made by this process.
 * false: *culprit cannot be trusted. */
static bool is_private(char culprit[PATH_BYTES], const char *path)
{
    struct stat st;
    unsigned links = 0;
    const bool relative = path[0] != '/';
    if ((relative && !getcwd(culprit, PATH_BYTES / 2)) || strlen(path) >= PATH_BYTES / 2)
        return false;
    const size_t before = relative ? strlen(culprit) : 0;
    snprintf(culprit + before, PATH_BYTES - before, "%s%s", relative ? "/" : "", path);
    for (size_t end = 1;;) { /* end of a prefix of the path */
        const char kept = culprit[end];
        culprit[end] = '\0';
        if (lstat(culprit, &st) != 0)
            return true;
        const bool link = S_ISLNK(st.st_mode), sticky = st.st_uid == 0 && (st.st_mode & S_ISVTX);
        if (!belongs_to_us(&st) || (!link && !sticky && (st.st_mode & (S_IWGRP | S_IWOTH))))
            return false;
        culprit[end] = kept;
        if (link && !follow_link(culprit, end, &links))
            return false;
        end = link ? 1 : end + strspn(culprit + end, "/");
        if (!link && !culprit[end])
            return true;
        end += link ? 0 : strcspn(culprit + end, "/");
    }
}

/* Makes the directories above the last name of the path. */
static void make_parents(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
}

/* Makes the directory if needed, and a file of `bytes` in it, mapped as executable if `load`, to
 * fail early. Returns 0 or errno. */
static int try_directory(const char *path, uint64_t bytes, bool load)
{
    char inside[PATH_BYTES + 2];
    snprintf(inside, sizeof inside, "%s/", path);
    make_parents(inside);
    const int fd = unnamed_file(path);
    int code = fd < 0 ? errno : 0;
    if (code == 0 &&
        (pwrite(fd, "", 1, (off_t)bytes - 1) != 1 ||
         (fallocate(fd, 0, 0, (off_t)bytes) != 0 && errno != EOPNOTSUPP && errno != ENOSYS)))
        code = errno;
    if (code == 0 && load) {
        void *program = mmap(NULL, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
        if (program == MAP_FAILED)
            code = errno == EPERM ? ENOEXEC : errno;
        else
            munmap(program, 1);
    }
    if (fd >= 0)
        close(fd);
    return code;
}

/* A private directory of this user (0700), in `own` or, if that is NULL, in a directory for
 * temporary files. Never uses another user's directory. Returns 0 or the first errno. */
static int private_directory(char path[PATH_BYTES], const char *own, uint64_t bytes, bool load)
{
    /* PoCL syncs each file that it writes, which is fast in memory. */
    const char *const places[] = {own ? own : setting("TMPDIR"), "/dev/shm", "/tmp", "/var/tmp"};
    char culprit[PATH_BYTES];
    struct stat st;
    int first = 0;
    for (size_t i = 0; i < (own ? 1 : sizeof places / sizeof *places); i++) {
        if (!places[i] || (!own && (places[i][0] != '/' || access(places[i], F_OK) != 0)))
            continue;
        snprintf(path, PATH_BYTES, "%s/clpipe-cache-%lu", places[i], (unsigned long)geteuid());
        int code = is_private(culprit, path) ? try_directory(path, bytes, load) : EPERM;
        if (code == 0 && (lstat(path, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
                          (st.st_mode & 077) != 0))
            code = EPERM;
        if (code == 0)
            return 0;
        first = first ? first : code;
    }
    return first ? first : ENOENT;
}

static void tell_untrusted(const char *path, const char *culprit, const char *instead)
{
    log_message(
        LOG_NOTICE,
        "notice: the cache of compiled kernels %s is not used, since others can change %s (chmod "
        "go-w, chown); instead: %s",
        PATH_TEXT(path), PATH_TEXT(culprit), instead);
}

/* --- drivers --------------------------------------------------------------------------------- */

static struct output_directory *driver; /* this process's; NULL: none */
static char trouble[512];               /* why */
static pid_t driver_process;            /* its owner, not a child */

static void remove_driver_directory(void)
{
    if (driver_process == getpid())
        output_directory_close(&driver);
}

void ocl_cache_for_drivers(void)
{
    static const char *const names[] = {"", NULL};
    const char *own = setting("POCL_CACHE_DIR"), *home = setting("HOME");
    char base[PATH_BYTES], path[PATH_BYTES + 80], culprit[PATH_BYTES], host[64] = "";
    struct error err = ERROR_INIT;
    if (driver || trouble[0])
        return;
    const bool trusted = !own || is_private(culprit, own);
    const int code = private_directory(base, trusted ? own : NULL, DRIVER_SPACE, true);
    gethostname(host, sizeof host - 1);
    snprintf(path, sizeof path, "%s/pocl-%s", base, host); /* locks may work on one machine only */
    if (code != 0)
        snprintf(trouble, sizeof trouble, "%.300s: %s%s",
                 own && trusted ? own : "none of TMPDIR, /dev/shm, /tmp and /var/tmp can be used",
                 code == ENOEXEC ? "mounted noexec" : strerror(code), process_limits());
    else if (output_directory_open(&driver, path, names, &err) != STATUS_OK)
        snprintf(trouble, sizeof trouble, "%.500s", err.sentence);
    /* Without a directory, PoCL should report no platform rather than abort in the middle of a
     * build. */
    setenv("POCL_CACHE_DIR", driver ? output_directory_temporary(driver) : "/dev/null/none", 1);
    if (driver) {
        driver_process = getpid();
        atexit(remove_driver_directory);
        if (!trusted)
            tell_untrusted(own, culprit, base);
    }
    snprintf(path, sizeof path, "%.3000s/.nv/ComputeCache", home ? home : "");
    if (home && !setting("CUDA_CACHE_PATH") && !is_private(culprit, path) && driver)
        setenv("CUDA_CACHE_PATH", base, 1);
}

const char *ocl_cache_trouble(void)
{
    return trouble;
}

/* --- our own --------------------------------------------------------------------------------- */

static pthread_mutex_t choice_lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static char choice_of[PATH_BYTES], choice[PATH_BYTES];          /* the wanted and the used one; "":
                                                                 * none */

/* Chooses the cache's directory: `wanted` (may be "") or a private one. `given`: the user named it,
 * so it is used if it can be trusted, whatever else fails. Under the lock. */
static void choose_cache(const char *wanted, bool given)
{
    static const char *const folders[] = {"programs", "proven", "kernels"};
    char path[PATH_BYTES + 16], culprit[PATH_BYTES];
    bool trusted = true, usable = wanted[0] != '\0';
    for (size_t i = 0; i < sizeof folders / sizeof *folders && trusted && usable; i++) {
        snprintf(path, sizeof path, "%s/%s", wanted, folders[i]);
        trusted = is_private(culprit, path);
        usable = given || (trusted && try_directory(path, ENTRY_SPACE, false) == 0);
    }
    snprintf(choice, sizeof choice, "%s", wanted);
    if (trusted && usable)
        return;
    if (private_directory(choice, NULL, ENTRY_SPACE, false) != 0)
        choice[0] = '\0';
    if (!trusted)
        tell_untrusted(wanted, culprit, choice[0] ? choice : "none");
}

/* The path of an entry, which need not exist; false if there is no cache. */
static bool entry_path(char *path, size_t size, const char *folder, const char *name)
{
    const char *off = setting("CLPIPE_NO_CACHE"), *own = setting("CLPIPE_CACHE_DIR");
    const char *xdg = setting("XDG_CACHE_HOME"), *home = setting("HOME");
    if (off && strcmp(off, "0") != 0)
        return false;
    char wanted[PATH_BYTES] = "";
    int length = own                    ? snprintf(wanted, sizeof wanted, "%s", own)
                 : xdg && xdg[0] == '/' ? snprintf(wanted, sizeof wanted, "%s/clpipe", xdg)
                 : home && home[0] == '/'
                     ? snprintf(wanted, sizeof wanted, "%s/.cache/clpipe", home)
                     : 0;
    if (length < 0 || (size_t)length >= sizeof wanted)
        wanted[0] = '\0';
    pthread_mutex_lock(&choice_lock);
    if (!choice[0] || strcmp(choice_of, wanted) != 0)
        choose_cache(wanted, own != NULL);
    strcpy(choice_of, wanted);
    length = choice[0] ? snprintf(path, size, "%s/%s/%s", choice, folder, name) : -1;
    pthread_mutex_unlock(&choice_lock);
    return length > 0 && (size_t)length < size;
}

static void digest_entry(uint8_t digest[32], const void *data, size_t size)
{
    struct sha256 sha;
    sha256_init(&sha);
    sha256_update(&sha, data, size);
    sha256_final(&sha, digest);
}

/* An empty file counts as damaged: no entry is empty. */
static enum ocl_cache_state read_entry(char **data, size_t *size, FILE *file)
{
    struct entry_header header;
    struct stat st;
    uint8_t digest[32];
    if (fstat(fileno(file), &st) != 0 || !S_ISREG(st.st_mode) || !belongs_to_us(&st) ||
        (st.st_mode & (S_IWGRP | S_IWOTH)) || fread(&header, sizeof header, 1, file) != 1 ||
        memcmp(header.magic, ENTRY_MAGIC, sizeof header.magic) != 0 || header.length == 0 ||
        header.length > ENTRY_MOST || (uint64_t)st.st_size != sizeof header + header.length)
        return OCL_CACHE_DAMAGED;
    char *bytes = malloc(header.length + 1);
    if (!bytes)
        return OCL_CACHE_ABSENT;
    bytes[header.length] = '\0';
    if (fread(bytes, 1, header.length, file) == header.length) {
        digest_entry(digest, bytes, header.length);
        if (memcmp(digest, header.digest, sizeof digest) == 0) {
            *data = bytes;
            *size = header.length;
            return OCL_CACHE_FOUND;
        }
    }
    free(bytes);
    return OCL_CACHE_DAMAGED;
}

enum ocl_cache_state ocl_cache_load(char **data, size_t *size, const char *folder, const char *name)
{
    char path[PATH_BYTES];
    *data = NULL;
    const int fd =
        entry_path(path, sizeof path, folder, name)
            ? open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) /* a FIFO does not block */
            : -1;
    FILE *file = fd >= 0 ? fdopen(fd, "rb") : NULL;
    if (!file)
        return OCL_CACHE_ABSENT;
    enum ocl_cache_state state = read_entry(data, size, file);
    fclose(file);
    return state;
}

bool ocl_cache_lacks(const char *folder, const char *name)
{
    char path[PATH_BYTES];
    return entry_path(path, sizeof path, folder, name) && access(path, F_OK) != 0;
}

enum status ocl_cache_save(const char *folder, const char *name, const void *data, size_t size,
                           struct error *err)
{
    char path[PATH_BYTES], temporary[PATH_BYTES + 96], host[64] = "";
    if (!entry_path(path, sizeof path, folder, name))
        return error_set(err, STATUS_FAILED,
                         "there is no cache: CLPIPE_NO_CACHE is set, or no directory for it was "
                         "found; set CLPIPE_CACHE_DIR to a writable directory");
    gethostname(host, sizeof host - 1);
    snprintf(temporary, sizeof temporary, "%s.%s.%ld", path, host, (long)getpid());
    make_parents(temporary);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_errno(err, STATUS_FAILED, errno, "open", "cannot write %s", temporary);
    struct entry_header header = {.length = size};
    memcpy(header.magic, ENTRY_MAGIC, sizeof header.magic);
    digest_entry(header.digest, data, size);
    enum status status = write_all(fd, &header, sizeof header, temporary, err);
    if (status == STATUS_OK)
        status = write_all(fd, data, size, temporary, err);
    if (close(fd) != 0 && status == STATUS_OK)
        status = error_errno(err, STATUS_FAILED, errno, "close", "cannot write %s", temporary);
    if (status == STATUS_OK && rename(temporary, path) != 0)
        status = error_errno(err, STATUS_FAILED, errno, "rename", "cannot write %s", path);
    if (status != STATUS_OK)
        unlink(temporary);
    return status;
}

enum status ocl_cache_remove(bool *found, const char *folder, const char *name, struct error *err)
{
    char path[PATH_BYTES];
    *found = false;
    if (!entry_path(path, sizeof path, folder, name))
        return STATUS_OK;
    *found = unlink(path) == 0;
    if (*found || errno == ENOENT || errno == ENOTDIR)
        return STATUS_OK;
    return error_errno(err, STATUS_FAILED, errno, "unlink", "cannot remove %s", path);
}

/* --- what PoCL compiles at launches ---------------------------------------------------------- */

/* Entries: "VERSION,PATH" in the driver's directory, with a comma for each '/'. */
#define KERNELS_FOLDER "kernels"
#define KERNELS_PREFIX CLPIPE_VERSION ","
#define KERNELS_MOST   2000u /* entries */

static void replace_all(char *text, char from, char to)
{
    while ((text = strchr(text, from)))
        *text = to;
}

/* Writes the kernels of a program that earlier processes have saved to its directory, once. */
static void fetch_program(const char *program)
{
    char path[2 * PATH_BYTES], prefix[PATH_BYTES], *data;
    const char *directory = output_directory_temporary(driver);
    size_t size;
    struct error err;
    snprintf(path, sizeof path, "%s/fetched", program);
    const int mark = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (mark < 0)
        return;
    close(mark);
    snprintf(prefix, sizeof prefix, KERNELS_PREFIX "%s,", program + strlen(directory) + 1);
    replace_all(prefix, '/', ',');
    DIR *stream = entry_path(path, sizeof path, KERNELS_FOLDER, "") ? opendir(path) : NULL;
    for (struct dirent *entry; stream && (entry = readdir(stream));) {
        const char *name = entry->d_name;
        if (strncmp(name, prefix, strlen(prefix)) != 0)
            continue;
        const enum ocl_cache_state state = ocl_cache_load(&data, &size, KERNELS_FOLDER, name);
        if (state == OCL_CACHE_DAMAGED)
            ocl_cache_remove(&(bool){false}, KERNELS_FOLDER, name, &err);
        if (state != OCL_CACHE_FOUND)
            continue;
        const int before = snprintf(path, sizeof path, "%s/", directory);
        strcpy(path + before, name + strlen(KERNELS_PREFIX));
        replace_all(path + before, ',', '/');
        make_parents(path);
        const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
        if (fd >= 0 && write_all(fd, data, size, path, NULL) != STATUS_OK)
            unlink(path);
        if (fd >= 0)
            close(fd);
        free(data);
    }
    if (stream)
        closedir(stream);
}

/* The driver's directory has one for each program: two letters, '/', and the rest of its digest. */
static FTS *open_driver_tree(void)
{
    char *const roots[] = {(char *)(uintptr_t)output_directory_temporary(driver), NULL};
    return fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
}

void ocl_cache_fetch_kernels(void)
{
    static pthread_mutex_t lock =
        PTHREAD_MUTEX_INITIALIZER; /* no half-written kernel is launched */
    pthread_mutex_lock(&lock);
    FTS *tree = driver ? open_driver_tree() : NULL;
    for (FTSENT *entry; tree && (entry = fts_read(tree));) {
        if (entry->fts_info != FTS_D || entry->fts_level != 2)
            continue;
        fts_set(tree, entry, FTS_SKIP);
        fetch_program(entry->fts_path);
    }
    if (tree)
        fts_close(tree);
    pthread_mutex_unlock(&lock);
}

static void keep_kernel(const char *path, const char *name, size_t size)
{
    struct error err = ERROR_INIT;
    char *data = malloc(size);
    FILE *file = data ? fopen(path, "rbe") : NULL;
    if (file && fread(data, 1, size, file) == size &&
        ocl_cache_save(KERNELS_FOLDER, name, data, size, &err) != STATUS_OK)
        log_message(LOG_DEBUG, "program cache: %s", err.sentence);
    if (file)
        fclose(file);
    free(data);
}

/* Removes entries beyond KERNELS_MOST, of any version. */
static void drop_kernels(void)
{
    char path[PATH_BYTES];
    struct error err;
    unsigned count = 0;
    DIR *stream = entry_path(path, sizeof path, KERNELS_FOLDER, "") ? opendir(path) : NULL;
    for (struct dirent *entry; stream && (entry = readdir(stream));)
        if (entry->d_name[0] != '.' && ++count > KERNELS_MOST)
            ocl_cache_remove(&(bool){false}, KERNELS_FOLDER, entry->d_name, &err);
    if (stream)
        closedir(stream);
}

void ocl_cache_keep_kernels(void)
{
    char path[PATH_BYTES], name[PATH_BYTES];
    bool kept = false;
    FTS *tree = driver ? open_driver_tree() : NULL;
    for (FTSENT *entry; tree && (entry = fts_read(tree));) {
        const size_t length = entry->fts_pathlen;
        if (entry->fts_info != FTS_F || strcmp(entry->fts_path + length - 3, ".so") != 0 ||
            strstr(entry->fts_path, "/0-0-0/")) /* not for one size: in the program's binary */
            continue;
        snprintf(name, sizeof name, KERNELS_PREFIX "%s",
                 entry->fts_path + strlen(output_directory_temporary(driver)) + 1);
        replace_all(name, '/', ',');
        if (!entry_path(path, sizeof path, KERNELS_FOLDER, name) || access(path, F_OK) == 0)
            continue;
        keep_kernel(entry->fts_path, name, (size_t)entry->fts_statp->st_size);
        kept = true;
    }
    if (tree)
        fts_close(tree);
    if (kept)
        drop_kernels();
}

/* ocl_cache.c: directories for compiled kernels, also without a home directory, and the entries of
 * clpipe's cache.
 *
 * PoCL compiles into $POCL_CACHE_DIR, else $XDG_CACHE_HOME/pocl/kcache, else
 * $HOME/.cache/pocl/kcache, else /tmp/pocl/kcache, and loads its binaries from there. If it cannot
 * create the directory it silently reports no platform; on a full disk, or one mounted noexec, it
 * aborts the process during a build; and /tmp/pocl belongs to the first user who creates it. An
 * unusable directory is therefore replaced, before PoCL looks, by a private one of this user under
 * $TMPDIR, /tmp, /var/tmp or /dev/shm. It is kept for the next run, which then starts in a fraction
 * of the time.
 */
#include "ocl/ocl_cache.h"

#include "base/hash.h"
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Generous space for the output of compiling a few kernels. */
#define SPACE_MIN (16ull << 20)

#define PATH_BYTES 4096

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

/* Can files be created in `path` and, if `load` is true, be loaded as programs? For a path that
 * does not exist, the directory is checked in which it would be created. 0, or the errno of the
 * obstacle. */
static int obstacle(const char *path, bool load)
{
    char directory[PATH_BYTES];
    if (path[0] != '/' || strlen(path) >= sizeof directory)
        return EINVAL;
    strcpy(directory, path);
    struct stat st;
    while (stat(directory, &st) != 0) {
        char *slash = strrchr(directory, '/');
        if (errno != ENOENT || slash == directory)
            return errno;
        *slash = '\0';
    }
    if (!S_ISDIR(st.st_mode))
        return ENOTDIR;
    if (faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS) != 0)
        return errno;
    struct statvfs disk;
    if (statvfs(directory, &disk) != 0)
        return errno;
    if (disk.f_flag & ST_RDONLY)
        return EROFS;
    if (load && (disk.f_flag & ST_NOEXEC))
        return ENOEXEC;
    return (unsigned long long)disk.f_bavail * disk.f_frsize < SPACE_MIN ? ENOSPC : 0;
}

/* A private directory of this user (0700) among the temporary files. A directory of another user
 * under this name is never used: programs are loaded from it. */
static bool private_directory(char *path, size_t size)
{
    const char *const place[] = {setting("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm"};
    for (size_t i = 0; i < sizeof place / sizeof *place; i++) {
        struct stat st;
        if (!place[i] || obstacle(place[i], true) != 0)
            continue;
        int length =
            snprintf(path, size, "%s/clpipe-cache-%lu", place[i], (unsigned long)geteuid());
        if (length < 0 || (size_t)length >= size || (mkdir(path, 0700) != 0 && errno != EEXIST))
            continue;
        if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
            (st.st_mode & 077) == 0 && obstacle(path, true) == 0)
            return true;
    }
    return false;
}

/* --- drivers --------------------------------------------------------------------------------- */

/* Where PoCL would look; false if that directory is shared by all users. */
static bool pocl_directory(char *path, size_t size)
{
    const char *own = setting("POCL_CACHE_DIR"), *xdg = setting("XDG_CACHE_HOME");
    const char *home = setting("HOME");
    int length = own    ? snprintf(path, size, "%s", own)
                 : xdg  ? snprintf(path, size, "%s/pocl/kcache", xdg)
                 : home ? snprintf(path, size, "%s/.cache/pocl/kcache", home)
                        : -1;
    return length > 0 && (size_t)length < size;
}

void ocl_cache_for_drivers(void)
{
    char path[PATH_BYTES], own[PATH_BYTES + 8];
    if (setting("POCL_CACHE_DIR")) /* requested: use no other */
        return;
    if (pocl_directory(path, sizeof path) && obstacle(path, true) == 0)
        return;
    if (!private_directory(path, sizeof path))
        return;
    snprintf(own, sizeof own, "%s/pocl", path);
    setenv("POCL_CACHE_DIR", own, 1);
}

void ocl_cache_trouble(char *text, size_t size)
{
    char path[PATH_BYTES];
    text[0] = '\0';
    if (!pocl_directory(path, sizeof path)) {
        snprintf(text, size, "there is no HOME and no directory for temporary files");
        return;
    }
    int code = obstacle(path, true);
    if (code == ENOEXEC)
        snprintf(text, size, "%s is on a file system mounted noexec", path);
    else if (code != 0)
        snprintf(text, size, "%s cannot be used: %s", path, strerror(code));
}

/* --- our own --------------------------------------------------------------------------------- */

/* The path of an entry, which need not exist; false if there is no cache. */
static bool entry_path(char *path, size_t size, const char *folder, const char *name)
{
    const char *off = setting("CLPIPE_NO_CACHE"), *own = setting("CLPIPE_CACHE_DIR");
    const char *xdg = setting("XDG_CACHE_HOME"), *home = setting("HOME");
    if (off && strcmp(off, "0") != 0)
        return false;
    char directory[PATH_BYTES];
    int length = own                    ? snprintf(directory, sizeof directory, "%s", own)
                 : xdg && xdg[0] == '/' ? snprintf(directory, sizeof directory, "%s/clpipe", xdg)
                 : home && home[0] == '/'
                     ? snprintf(directory, sizeof directory, "%s/.cache/clpipe", home)
                     : -1;
    bool found = length > 0 && (size_t)length < sizeof directory;
    if (!own && (!found || obstacle(directory, false) != 0))
        found = private_directory(directory, sizeof directory);
    length = found ? snprintf(path, size, "%s/%s/%s", directory, folder, name) : -1;
    return length > 0 && (size_t)length < size;
}

static void digest_entry(uint8_t digest[32], const void *data, size_t size)
{
    struct sha256 sha;
    sha256_init(&sha);
    sha256_update(&sha, data, size);
    sha256_final(&sha, digest);
}

/* An empty file is damaged, too: no entry is empty. */
static enum ocl_cache_state read_entry(char **data, size_t *size, FILE *file)
{
    struct entry_header header;
    struct stat st;
    uint8_t digest[32];
    if (fread(&header, sizeof header, 1, file) != 1 ||
        memcmp(header.magic, ENTRY_MAGIC, sizeof header.magic) != 0 ||
        fstat(fileno(file), &st) != 0 || header.length == 0 ||
        (uint64_t)st.st_size != sizeof header + header.length)
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
    FILE *file = entry_path(path, sizeof path, folder, name) ? fopen(path, "rbe") : NULL;
    if (!file)
        return OCL_CACHE_ABSENT;
    enum ocl_cache_state state = read_entry(data, size, file);
    fclose(file);
    return state;
}

enum status ocl_cache_save(const char *folder, const char *name, const void *data, size_t size,
                           struct error *err)
{
    char path[PATH_BYTES], temporary[PATH_BYTES + 96], host[64] = "";
    if (!entry_path(path, sizeof path, folder, name))
        return error_set(err, STATUS_FAILED,
                         "there is no cache: CLPIPE_NO_CACHE is set, or no directory for it was "
                         "found; set CLPIPE_CACHE_DIR to a writable one");
    gethostname(host, sizeof host - 1);
    snprintf(temporary, sizeof temporary, "%s.%s.%ld", path, host, (long)getpid());
    for (char *slash = strchr(temporary + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(temporary, 0700);
        *slash = '/';
    }
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

/* unfinished.c: tries a shared lock to see whether the exclusive one is held; counts records from
 * block headers and reasons of failures. */
#include "result/unfinished.h"
#include "base/output.h"
#include "base/path.h"
#include "result/records.h"
#include "result/workdir.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define REASONS   1024 /* read at a time */
#define RANKS_MAX 65536

/* Checks whether the lock is held. On file systems without locks, uses the line in the lock
 * file. */
static void look_at_lock(struct unfinished *out, int directory)
{
    const int lock = openat(directory, "lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (lock < 0)
        return;
    out->in_use = flock(lock, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    workdir_holder(out->holder, sizeof out->holder, &out->may_be_used, lock);
    out->may_be_used = out->may_be_used && !out->in_use;
    if (!out->in_use && !out->may_be_used)
        out->holder[0] = 0;
    close(lock);
}

/* Reads the command line and, after a NUL, the directory. */
static void read_command(struct unfinished *out, int directory)
{
    size_t size;
    char *text = read_small(&size, directory, "command");
    const size_t length = text ? strlen(text) : 0;
    if (length > 0 && length < size)
        out->directory = strdup(text + length + 1);
    if (out->directory && utf8_valid(text, length))
        out->command = strdup(text);
    free(text);
}

static enum status look_at_log(struct unfinished *out, int directory, struct error *err)
{
    struct records records;
    struct failure_row row = {.path = NULL};
    char reason[REASONS][sizeof row.reason];
    enum status status = records_open(&records, directory, out->path, false, err);
    if (!status)
        status = records_scan(&records, NULL, 0, NULL, err);
    out->has_log = records.logs > 0;
    out->bytes = records.bytes;
    out->written_ns = records.written_ns;
    out->by_reason[REASON_NONE] = records.rows[RECORDS_IMAGES];
    const uint64_t failures = records.rows[RECORDS_FAILURES];
    for (uint64_t i = 0, count; i < failures && !status; i += count) {
        count = failures - i < REASONS ? failures - i : REASONS;
        status = records_read(&records, LOG_FAILURES, offsetof(struct log_row, failure.reason),
                              sizeof row.reason, i, count, reason, err);
        for (uint64_t r = 0; r < count && !status; r++) {
            enum reason is;
            memcpy(row.reason, reason[r], sizeof row.reason);
            if (failure_row_reason(&is, &row))
                out->by_reason[is]++;
        }
    }
    for (unsigned i = 0; i < records.logs; i++)
        out->runs += records.log[i].blocks > 0;
    for (unsigned i = 0; i < REASON_COUNT; i++)
        out->records += out->by_reason[i];
    records_clear(&records);
    return status;
}

enum status unfinished_look(struct unfinished *out, const char *output, struct error *err)
{
    *out = (struct unfinished){.exists = false};
    size_t size;
    enum status status = workdir_name(&out->path, output, err);
    if (status != STATUS_OK)
        return status;
    const int directory = open(out->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return errno == ENOENT || errno == ENOTDIR
                   ? STATUS_OK
                   : error_errno(err, STATUS_FAILED, errno, "open", "cannot read %s",
                                 PATH_TEXT(out->path));
    look_at_lock(out, directory);
    status = look_at_log(out, directory, err);
    if (status == STATUS_OK && out->has_log)
        read_command(out, directory);
    if (out->in_use || out->may_be_used)
        out->status = read_small(&size, directory, WORKDIR_STATUS);
    out->exists = out->has_log || out->in_use;
    close(directory);
    return status;
}

/* --- ranks ----------------------------------------------------------------------------------- */

/* The number of ranks of the newest parts; 0: none. */
static unsigned newest_ranks(const char *parts)
{
    DIR *directory = opendir(parts);
    struct dirent *entry;
    struct timespec newest = {0, 0};
    unsigned ranks = 0, rank, count;
    struct stat st;
    while (directory && (entry = readdir(directory))) {
        if (sscanf(entry->d_name, "shard-%u-of-%u.h5", &rank, &count) != 2 || rank >= count ||
            count > RANKS_MAX || fstatat(dirfd(directory), entry->d_name, &st, 0) != 0)
            continue;
        if (st.st_mtim.tv_sec > newest.tv_sec ||
            (st.st_mtim.tv_sec == newest.tv_sec && st.st_mtim.tv_nsec >= newest.tv_nsec)) {
            newest = st.st_mtim;
            ranks = count;
        }
    }
    if (directory)
        closedir(directory);
    return ranks;
}

/* Adds a part, taking ownership of its strings. */
static void add_part(struct unfinished *sum, struct unfinished *part)
{
    sum->has_log = sum->has_log || part->has_log;
    for (unsigned i = 0; i < REASON_COUNT; i++)
        sum->by_reason[i] += part->by_reason[i];
    sum->records += part->records;
    sum->bytes += part->bytes;
    sum->runs = part->runs > sum->runs ? part->runs : sum->runs;
    sum->written_ns = part->written_ns > sum->written_ns ? part->written_ns : sum->written_ns;
    if (!sum->in_use && (part->in_use || (part->may_be_used && !sum->may_be_used))) {
        sum->in_use = part->in_use;
        sum->may_be_used = part->may_be_used;
        memcpy(sum->holder, part->holder, sizeof sum->holder);
        free(sum->status);
        sum->status = part->status;
        part->status = NULL;
    }
    if (!sum->command && part->command) {
        if (asprintf(&sum->command, "mpirun -n %u %s", sum->ranks, part->command) < 0)
            sum->command = NULL;
        sum->directory = part->directory;
        part->directory = NULL;
    }
}

char *unfinished_part(const char *parts, unsigned rank, unsigned ranks)
{
    char *path;
    const int width = snprintf(NULL, 0, "%u", ranks - 1);
    return asprintf(&path, "%s/shard-%0*u-of-%u.h5", parts, width, rank, ranks) < 0 ? NULL : path;
}

static enum status look_at_part(struct unfinished *sum, unsigned rank, struct error *err)
{
    struct unfinished part;
    char *path = unfinished_part(sum->path, rank, sum->ranks);
    if (!path)
        return error_memory(err, strlen(sum->path), "the name of a part");
    enum status status = unfinished_look(&part, path, err);
    if (status == STATUS_OK && !part.exists && access(path, F_OK) == 0)
        sum->ranks_done++;
    if (status == STATUS_OK && part.exists)
        add_part(sum, &part);
    unfinished_clear(&part);
    free(path);
    return status;
}

enum status unfinished_look_ranks(struct unfinished *out, const char *output, bool missing,
                                  struct error *err)
{
    char *target = NULL;
    *out = (struct unfinished){.exists = false};
    enum status status = output_resolve(&target, output, err);
    if (status == STATUS_OK && asprintf(&out->path, "%s" UNFINISHED_PARTS, target) < 0) {
        out->path = NULL;
        status = error_memory(err, strlen(target), "the name of the parts");
    }
    free(target);
    if (status == STATUS_OK)
        out->ranks = newest_ranks(out->path);
    for (unsigned rank = 0; rank < out->ranks && status == STATUS_OK; rank++)
        status = look_at_part(out, rank, err);
    out->exists = out->has_log || out->in_use || (missing && out->ranks_done > 0);
    return status;
}

void unfinished_clear(struct unfinished *unfinished)
{
    free(unfinished->path);
    free(unfinished->command);
    free(unfinished->directory);
    free(unfinished->status);
    *unfinished = (struct unfinished){.exists = false};
}

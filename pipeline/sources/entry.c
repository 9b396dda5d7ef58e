/* entry.c: classifies a path. */
#include "sources/entry.h"
#include "base/clock.h"
#include <errno.h>
#include <string.h>

uint32_t entry_size(const struct entry *entry)
{
    const size_t head = offsetof(struct entry, failure.message);
    const bool failed = entry->failure.reason != REASON_NONE;
    return (uint32_t)(head + (failed ? strlen(entry->failure.message) + 1 : 0));
}

static bool leads_nowhere(int number)
{
    return number == ENOENT || number == ENOTDIR || number == ELOOP;
}

bool entry_is_unseen(const struct failure *failure)
{
    return failure->reason == REASON_UNREADABLE && !leads_nowhere(failure->error_number);
}

void entry_from_stat(struct entry *entry, const struct stat *st, struct file_system_trust *trust,
                     int directory, const char *path)
{
    *entry = (struct entry){.bytes = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0,
                            .mtime_ns = clock_file_time(&st->st_mtim)};
    if (file_system_trusted(trust, st, directory, path)) {
        entry->inode = st->st_ino;
        entry->ctime_ns = clock_file_time(&st->st_ctim);
    }
    if (S_ISREG(st->st_mode))
        return;
    const char *what = S_ISDIR(st->st_mode)
                           ? "a directory: give it as a SOURCE to take the files below it"
                       : S_ISFIFO(st->st_mode) ? "a FIFO (named pipe), not opened"
                       : S_ISSOCK(st->st_mode) ? "a socket, not opened"
                       : S_ISCHR(st->st_mode)  ? "a character device, not opened"
                       : S_ISBLK(st->st_mode)  ? "a block device, not opened"
                                               : "not a regular file, not opened";
    failure_set(&entry->failure, REASON_NOT_AN_IMAGE, "%s", what);
}

void entry_broken_link(struct entry *entry, int number, bool promised)
{
    *entry = (struct entry){0};
    const bool nowhere = leads_nowhere(number);
    enum reason reason = nowhere && !promised ? REASON_NOT_AN_IMAGE : REASON_UNREADABLE;
    failure_errno(&entry->failure, reason, number,
                  number == ELOOP ? "a symbolic link that leads back to itself"
                  : nowhere       ? "a symbolic link to something that does not exist"
                                  : "cannot follow the symbolic link");
}

void entry_unreadable(struct entry *entry, int number, const char *what)
{
    *entry = (struct entry){0};
    failure_errno(&entry->failure, REASON_UNREADABLE, number, "%s", what);
}

void entry_vanished(struct entry *entry)
{
    *entry = (struct entry){0};
    failure_errno(&entry->failure, REASON_VANISHED, ENOENT, "removed before it could be read");
}

/* h5_error.c: interprets the entries of HDF5's error stack. */
#include "matrix/h5_error.h"
#include "base/path.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Atomic uint64_t failed_calls;

/* HDF5 calls it where it would print. */
static herr_t count_failure(hid_t stack, void *context)
{
    (void)stack;
    (void)context;
    failed_calls++;
    return 0;
}

void h5_close(hid_t *id)
{
    if (*id > 0)
        H5Idec_ref(*id);
    *id = H5I_INVALID_HID;
}

void h5_quiet(void)
{
    static _Thread_local bool quiet;
    if (!quiet)
        quiet = H5Eset_auto2(H5E_DEFAULT, count_failure, NULL) >= 0;
}

uint64_t h5_failed_calls(void)
{
    return failed_calls;
}

enum status h5_system_failed(struct error *err, int native, const char *call, const char *what,
                             const char *path)
{
    const char *shown = PATH_TEXT(path);
    if (native == ENOSPC || native == EDQUOT || native == EFBIG) {
        error_set(err, STATUS_FAILED, "cannot %s %s: %s", what, shown,
                  native == ENOSPC ? "the disk is full; free some space and run the command again"
                  : native == EDQUOT
                      ? "your disk quota is used up; free some space and run the command again"
                      : "the file would be larger than the file system or ulimit -f allows");
        return error_cause(err, CAUSE_OTHER, native);
    }
    return error_errno(err, STATUS_FAILED, native, call, "cannot %s %s", what, shown);
}

/* The meaning of a phrase in an entry's description; the first match counts. */
static const struct meaning {
    const char *sign, *text;
} meanings[] = {
    {"unable to lock file, errno = 11,",
     "another program has it open for writing; close it there, and run the command again"},
    {"h5clear", "a program that had it open for writing did not close it, or still has it open; if "
                "none has, h5clear -s makes it readable"},
    {"version", "it is in a newer format than this HDF5 library reads, or damaged; h5repack of the "
                "library that wrote it, with --high=2, makes a copy that it reads"},
    {"required filter",
     "it is compressed with a filter that this HDF5 library lacks (%.*s): install its "
     "plugin (HDF5_PLUGIN_PATH), or make a copy with h5repack -f NONE where it is there"},
};
#define MEANINGS (sizeof meanings / sizeof *meanings)

struct reason {
    char innermost[400], filter[80];
    size_t meaning; /* MEANINGS: none */
};

static herr_t note_entry(unsigned n, const H5E_error2_t *entry, void *context)
{
    struct reason *reason = context;
    const char *text = entry->desc ? entry->desc : "", *found;
    if (n == 0)
        snprintf(reason->innermost, sizeof reason->innermost, "%s", text);
    for (size_t i = 0; i < reason->meaning; i++)
        if ((found = strstr(text, meanings[i].sign))) {
            found += strlen(meanings[i].sign);
            found += strspn(found, " '(");
            snprintf(reason->filter, sizeof reason->filter, "%.*s", (int)strcspn(found, "';)"),
                     found);
            reason->meaning = i;
        }
    return 0;
}

enum status h5_fail(struct error *err, const char *call, const char *what, const char *path)
{
    struct reason reason = {.meaning = MEANINGS};
    char text[400];
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, note_entry, &reason);
    H5Eclear2(H5E_DEFAULT);
    /* A failed system call is described with its error number, followed by pointers and offsets. */
    const char *number = strstr(reason.innermost, "errno = ");
    if (number && reason.meaning == MEANINGS)
        return h5_system_failed(err, atoi(number + strlen("errno = ")), call, what, path);
    const char *shown = PATH_TEXT(path);
    unsigned long long there, base, wanted;
    if (reason.meaning < MEANINGS)
        snprintf(text, sizeof text, meanings[reason.meaning].text, (int)strlen(reason.filter),
                 reason.filter);
    else if (sscanf(reason.innermost,
                    "truncated file: eof = %llu, sblock->base_addr = %llu, stored_eof = %llu",
                    &there, &base, &wanted) == 3)
        snprintf(text, sizeof text, "the file is truncated (%llu of %llu bytes)", there,
                 base + wanted);
    else
        snprintf(text, sizeof text, "%s",
                 *reason.innermost ? reason.innermost : "HDF5 gives no reason");
    return error_set(err, STATUS_FAILED, "cannot %s %s: %s", what, shown, text);
}

enum status h5_open(hid_t *file, const char *path, hid_t access, struct error *err)
{
    h5_quiet();
    *file = H5Fopen(path, H5F_ACC_RDONLY, access);
    if (*file > 0)
        return STATUS_OK;
    /* Comes first, since any other call would clear the reason. */
    const enum status status = h5_fail(err, "H5Fopen", "read", path);
    if (H5Fis_hdf5(path) == 0)
        error_set(err, STATUS_FAILED, "%s is not an HDF5 file", PATH_TEXT(path));
    return status;
}

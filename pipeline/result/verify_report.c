/* verify_report.c: reports broken invariants. */
#include "result/verify_report.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void verify_broken(struct verify *verify, const char *format, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    verify->count++;
    verify->broken(line, verify->context);
}

static herr_t visit(hid_t at, const char *name, const H5O_info_t *info, void *context)
{
    (void)at, (void)name, (void)info, (void)context;
    return 0;
}

void verify_calls(struct verify *verify)
{
    /* Lists the file like other programs, which visits parts of groups that a look-up by name does not
     * read. */
    H5Ovisit(verify->result->file, H5_INDEX_NAME, H5_ITER_INC, visit, NULL);
    if (verify->count == 0 && h5_failed_calls() > verify->result->failed_calls)
        verify_broken(verify, "HDF5 cannot read all metadata of the contents");
}

enum status verify_unreadable(struct verify *verify, const char *where, const struct error *why,
                              struct error *err)
{
    if (verify->count > 0) {
        verify_broken(verify, "%s: %s", where, why->sentence);
        return STATUS_OK;
    }
    if (err)
        *err = *why;
    return why->status;
}

void verify_mark_ranges(struct verify *verify)
{
    for (unsigned i = 0; i < verify->ranges; i++) {
        const struct verify_range *range = &verify->range[i];
        uint8_t *bad = range->failures ? verify->bad_failures : verify->bad_images;
        bool found = false;
        for (uint64_t row = range->first; row <= range->last; row++)
            found = found || (bad[row] && !range->unreadable);
        for (uint64_t row = range->first; !found && row <= range->last; row++)
            bad[row] = 1;
    }
    free(verify->range);
    verify->range = NULL;
    verify->ranges = 0;
}

void verify_row(struct verify_rows *rows, uint64_t row)
{
    if (rows->count++ == 0)
        rows->first = row;
    if (rows->bad)
        rows->bad[row] = 1;
}

void verify_report_rows(struct verify *verify, const struct verify_rows *rows, const char *where,
                        const char *what)
{
    if (rows->count == 1)
        verify_broken(verify, "%s: row %llu %s", where, (unsigned long long)rows->first, what);
    else if (rows->count > 1)
        verify_broken(verify, "%s: %llu rows, the first is %llu: each %s", where,
                      (unsigned long long)rows->count, (unsigned long long)rows->first, what);
}

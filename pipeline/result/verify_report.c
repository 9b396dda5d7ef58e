/* verify_report.c: reports broken invariants. */
#include "result/verify_report.h"
#include <stdarg.h>
#include <stdio.h>

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

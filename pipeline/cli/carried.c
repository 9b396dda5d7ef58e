/* carried.c: which file a command writes anew. */
#include "cli/carried.h"
#include "result/foreign.h"

enum status carried_check(const struct options *options, const char *path, struct error *err)
{
    if (options->drop_references)
        foreign_drop_references();
    return path && !options->dry_run ? foreign_check_file(path, err) : STATUS_OK;
}

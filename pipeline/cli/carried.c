/* carried.c: which file a command writes anew. */
#include "cli/carried.h"
#include "file/foreign.h"
#include <string.h>

/* NULL: none. */
static const char *file_of(const struct options *options)
{
    const char *name = options->command->name;
    const char *last =
        options->operand_count > 0 ? options->operand[options->operand_count - 1] : NULL;
    /* repair looks where a damaged file cannot end it. */
    if (options->dry_run || strcmp(name, "repair") == 0 ||
        (strcmp(name, "similar") == 0 && !options->all))
        return NULL;
    if (strcmp(name, "run") == 0 || strcmp(name, "ingest") == 0 || strcmp(name, "merge") == 0)
        return options->output;
    if (strcmp(name, "cluster") == 0 || strcmp(name, "assign") == 0)
        return options->output ? options->output : last;
    /* remove lists what there is. */
    const unsigned fewest = strcmp(name, "remove") == 0 ? 2 : 1;
    return options->operand_count >= fewest ? options->operand[0] : NULL;
}

enum status carried_check(const struct options *options, struct error *err)
{
    const char *path = file_of(options);
    if (options->drop_references)
        foreign_drop_references();
    return path && option_find(options->command, "drop-references", strlen("drop-references"))
               ? foreign_check_file(path, err)
               : STATUS_OK;
}

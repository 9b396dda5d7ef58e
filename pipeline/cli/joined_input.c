/* joined_input.c: clpipe merge, but for the name. */
#include "cli/joined_input.h"
#include "base/path.h"
#include "base/process.h"
#include "base/unnamed_file.h"
#include "result/merge.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_hdf5(const char *path)
{
    static const char signature[8] = "\211HDF\r\n\032\n";
    char start[sizeof signature] = "";
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const bool same = fd >= 0 && read(fd, start, sizeof start) == (ssize_t)sizeof start &&
                      memcmp(start, signature, sizeof start) == 0;
    if (fd >= 0)
        close(fd);
    return same;
}

static enum status open_unnamed(int *fd, struct error *err)
{
    const char *directory = process_temporary_directory();
    char shown[256];
    *fd = unnamed_file(directory);
    return *fd >= 0 ? STATUS_OK
                    : error_errno(err, STATUS_FAILED, errno, "open", "cannot create a file in %s",
                                  path_for_message(shown, sizeof shown, directory));
}

/* The operands that are files to join: all, or those before a PICTURE. */
static enum status count_files(unsigned *count, const struct options *options, unsigned first,
                               struct error *err)
{
    const unsigned all = options->operand_count - first;
    const bool pictures = options->command->joins_first;
    char shown[256];
    for (*count = 0; *count < all && is_hdf5(options->operand[first + *count]); ++*count)
        ;
    return all < 2 || pictures || *count == all
               ? STATUS_OK
               : misuse(err, options->command,
                        "unexpected argument '%s': several files are taken as one only if all are "
                        "clpipe's",
                        path_for_message(shown, sizeof shown,
                                         options->operand[first + (*count ? *count : 1)]));
}

enum status joined_input_open(struct joined_input *out, struct options *options, struct error *err)
{
    struct merge_report report;
    char shown[200];
    unsigned count;
    *out = (struct joined_input){.fd = -1};
    if (options->command->joins == 0)
        return STATUS_OK;
    const unsigned first = options->command->joins - 1u;
    enum status status = count_files(&count, options, first, err);
    if (status != STATUS_OK || count < 2)
        return status;
    const bool *all = option_at(options, "all");
    if (all && *all)
        return misuse(err, options->command,
                      "--all stores neighbours in one file: run clpipe merge first");
    if (options->command->joins_output && !options->output)
        return misuse(err, options->command,
                      "the result for several files requires a separate file: give -o");
    const char **const file = &options->operand[first];
    snprintf(out->names, sizeof out->names, "%s (and %u more)",
             path_for_message(shown, sizeof shown, *file), count - 1);
    status = open_unnamed(&out->fd, err);
    if (status != STATUS_OK)
        return status;
    snprintf(out->path, sizeof out->path, "/proc/self/fd/%d", out->fd);
    const struct store_run run = {.command = options->command_line, .json = "{}", .host = ""};
    const struct merge_config config = {.input = file,
                                        .count = count,
                                        .output = out->path,
                                        .unnamed = true,
                                        .run = &run};
    status = merge_files(&report, &config, err);
    *file = out->path;
    memmove(file + 1, file + count,
            (options->operand_count - first - count) * sizeof *options->operand);
    options->operand_count -= count - 1;
    return status;
}

void joined_input_close(struct joined_input *joined, struct error *err)
{
    char line[sizeof err->sentence];
    char *at = joined->fd >= 0 ? strstr(err->sentence, joined->path) : NULL;
    if (at) {
        const char *rest = at + strlen(joined->path);
        snprintf(line, sizeof line, "%.*s%s%.400s", (int)(at - err->sentence), err->sentence,
                 joined->names, rest);
        snprintf(err->sentence, sizeof err->sentence, "%s", line);
    }
    if (joined->fd >= 0)
        close(joined->fd);
    joined->fd = -1;
}

/* report_step.c: pages_write with the options of a command. */
#include "cli/report_step.h"
#include "cli/compute.h"
#include "cli/quote.h"
#include "cli/signals.h"
#include "cli/summary.h"
#include "version_generated.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum status report_directory(char **directory, const char *file, struct error *err)
{
    size_t length = strlen(file);
    if (length > 3 && strcmp(file + length - 3, ".h5") == 0 && file[length - 4] != '/')
        length -= 3;
    if (asprintf(directory, "%.*s-report", (int)length, file) < 0) {
        *directory = NULL;
        return error_memory(err, length + 8, "a file name");
    }
    return STATUS_OK;
}

enum status report_step(struct pages_counts *counts, const char *file, const char *directory,
                        const char *name, const struct options *options, struct progress *progress,
                        struct error *err)
{
    const struct pages_config config = {.file = file,
                                        .directory = directory,
                                        .name = name,
                                        .link_originals = options->link_originals,
                                        .version = CLPIPE_VERSION,
                                        .threads = compute_threads(options),
                                        .memory = options->memory,
                                        .stop = signals_stop(),
                                        .progress = progress_phase,
                                        .progress_context = progress};
    enum status status = pages_write(counts, &config, err);
    progress_end(progress);
    return status;
}

void report_open_line(const struct options *options, const char *directory)
{
    const size_t size = 4 * strlen(directory) + 64;
    char *path = malloc(size), *quoted = malloc(4 * size + 8);
    if (path && quoted) {
        snprintf(path, size, "%s/index.html", directory);
        summary_line(options, "  open        %s", quote_word(quoted, 4 * size + 8, path));
    }
    free(path);
    free(quoted);
}

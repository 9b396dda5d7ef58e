/* report_step.c: where the pages go, and what is told of them. */
#include "cli/report_step.h"
#include "cli/quote.h"
#include "cli/report_json.h"
#include "cli/summary.h"
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

void report_open_line(const struct options *options, const char *directory)
{
    const size_t size = strlen(directory) + 16;
    char *path = malloc(size), *quoted = malloc(4 * size + 8);
    if (path && quoted) {
        snprintf(path, size, "%s/index.html", directory);
        summary_line(options, "  open        %s", quote_word(quoted, 4 * size + 8, path));
    }
    free(path);
    free(quoted);
}

void report_pages(struct json *json, const struct pages_counts *counts, const char *directory)
{
    json_uint(json, "images", counts->images);
    json_bool(json, "written", !counts->kept);
    if (!counts->kept) {
        json_uint(json, "groups", counts->groups);
        json_uint(json, "failed", counts->failed);
        json_uint(json, "without_thumbnail", counts->without_thumbnail);
        json_uint(json, "bytes", counts->bytes);
    }
    report_bytes(json, "output", directory);
}

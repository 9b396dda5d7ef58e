/* row_list.c: appends runs through a buffer and reads them through a mapping. */
#include "result/row_list.h"
#include "base/unnamed_file.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct row_list {
    FILE *file;
    uint64_t rows, runs; /* runs: in the file, without the last one */
    struct row_run last; /* count 0: there is none */
    struct row_run *map;
};

static enum status failed(const char *call, struct error *err)
{
    const int number = errno ? errno : EIO;
    return error_errno(err, STATUS_FAILED, number, call,
                       "cannot keep the order of the rows in a temporary file%s",
                       number == ENOSPC ? " (the disk is full: free some space)" : "");
}

enum status row_list_open(struct row_list **out, const char *directory, struct error *err)
{
    *out = NULL;
    struct row_list *list = calloc(1, sizeof *list);
    if (!list)
        return error_memory(err, sizeof *list, "the order of the rows");
    const int fd = unnamed_file(directory);
    list->file = fd >= 0 ? fdopen(fd, "w+") : NULL;
    if (!list->file) {
        const enum status status = failed("open", err);
        if (fd >= 0)
            close(fd);
        free(list);
        return status;
    }
    *out = list;
    return STATUS_OK;
}

static enum status put_last(struct row_list *list, struct error *err)
{
    if (list->last.count == 0)
        return STATUS_OK;
    list->runs++;
    return fwrite(&list->last, sizeof list->last, 1, list->file) == 1 ? STATUS_OK
                                                                      : failed("fwrite", err);
}

enum status row_list_add(struct row_list *list, uint32_t input, uint64_t first, uint64_t count,
                         struct error *err)
{
    struct row_run *last = &list->last;
    if (input == ROW_LIST_NONE)
        first = 0;
    if (count == 0)
        return STATUS_OK;
    const uint64_t row = list->rows;
    list->rows += count;
    if (last->count > 0 && last->input == input &&
        (input == ROW_LIST_NONE || last->first + last->count == first)) {
        last->count += count;
        return STATUS_OK;
    }
    const enum status status = put_last(list, err);
    *last = (struct row_run){.row = row, .first = first, .count = count, .input = input};
    return status;
}

enum status row_list_finish(struct row_list *list, struct error *err)
{
    if (put_last(list, err))
        return STATUS_FAILED;
    if (fflush(list->file))
        return failed("fflush", err);
    if (list->runs == 0)
        return STATUS_OK;
    void *map = mmap(NULL, (size_t)list->runs * sizeof *list->map, PROT_READ, MAP_SHARED,
                     fileno(list->file), 0);
    if (map == MAP_FAILED)
        return failed("mmap", err);
    list->map = map;
    return STATUS_OK;
}

void row_list_close(struct row_list **list)
{
    struct row_list *l = *list;
    if (!l)
        return;
    *list = NULL;
    if (l->map)
        munmap(l->map, (size_t)l->runs * sizeof *l->map);
    fclose(l->file);
    free(l);
}

uint64_t row_list_rows(const struct row_list *list)
{
    return list->rows;
}

uint64_t row_list_runs(const struct row_list *list)
{
    return list->runs;
}

struct row_run row_list_at(const struct row_list *list, uint64_t run)
{
    return list->map[run];
}

uint64_t row_list_find(const struct row_list *list, uint64_t row)
{
    uint64_t low = 0, high = list->runs;
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        if (list->map[middle].row <= row)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* --- both tables ------------------------------------------------------------------------------- */

enum status row_lists_open(struct row_lists *out, const char *directory, struct error *err)
{
    *out = (struct row_lists){.images = NULL};
    const enum status status = row_list_open(&out->images, directory, err);
    return status ? status : row_list_open(&out->failures, directory, err);
}

enum status row_lists_add(struct row_lists *lists, uint64_t location, struct error *err)
{
    const enum location_kind kind = location_kind(location);
    const bool image = kind == LOCATION_LOG_IMAGE || kind == LOCATION_IMAGE;
    return row_list_add(image ? lists->images : lists->failures,
                        location_in_log(location) ? INPUT_LOG : INPUT_FILE, location_row(location),
                        1, err);
}

enum status row_lists_finish(struct row_lists *lists, struct error *err)
{
    const enum status status = row_list_finish(lists->images, err);
    return status ? status : row_list_finish(lists->failures, err);
}

void row_lists_close(struct row_lists *lists)
{
    row_list_close(&lists->images);
    row_list_close(&lists->failures);
}

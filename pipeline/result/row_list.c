/* row_list.c: rows that continue the last run make it longer. */
#include "result/row_list.h"
#include "base/array.h"
#include <stdlib.h>

enum status row_list_add(struct row_list *list, uint32_t input, uint64_t first, uint64_t count,
                         struct error *err)
{
    struct row_run *last = list->runs > 0 ? &list->run[list->runs - 1] : NULL;
    if (count == 0)
        return STATUS_OK;
    if (last && last->input == input &&
        (input == ROW_LIST_NONE || last->first + last->count == first)) {
        last->count += count;
    } else {
        if (array_grow(&list->run, list->runs, sizeof *list->run, "the order of the rows", err))
            return STATUS_FAILED;
        list->run[list->runs++] =
            (struct row_run){.row = list->rows, .first = first, .count = count, .input = input};
    }
    list->rows += count;
    return STATUS_OK;
}

uint64_t row_list_find(const struct row_list *list, uint64_t row)
{
    uint64_t low = 0, high = list->runs;
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        *(list->run[middle].row <= row ? &low : &high) = middle;
    }
    return low;
}

void row_list_clear(struct row_list *list)
{
    free(list->run);
    *list = (struct row_list){.run = NULL};
}

enum status row_lists_add(struct row_lists *lists, uint64_t location, struct error *err)
{
    const enum location_kind kind = location_kind(location);
    const bool image = kind == LOCATION_LOG_IMAGE || kind == LOCATION_IMAGE;
    return row_list_add(image ? &lists->images : &lists->failures,
                        location_in_log(location) ? INPUT_LOG : INPUT_FILE, location_row(location),
                        1, err);
}

void row_lists_clear(struct row_lists *lists)
{
    row_list_clear(&lists->images);
    row_list_clear(&lists->failures);
}

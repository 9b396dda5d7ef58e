/* nearest.h: the nearest rows found so far, in order. */
#ifndef CLPIPE_NEIGHBOURS_NEAREST_H
#define CLPIPE_NEIGHBOURS_NEAREST_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NEAREST_NONE 0xffffffffu

struct nearest {
    double squared;
    uint32_t row; /* NEAREST_NONE: none yet */
};

static inline void nearest_init(struct nearest *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        list[i] = (struct nearest){INFINITY, NEAREST_NONE};
}

static inline bool nearest_before(double squared, uint32_t row, const struct nearest *other)
{
    return squared < other->squared || (squared == other->squared && row < other->row);
}

/* Inserts a row into an ordered list of n; true if it is among them. Add each row once. */
static inline bool nearest_add(struct nearest *list, uint32_t n, double squared, uint32_t row)
{
    if (!nearest_before(squared, row, &list[n - 1]))
        return false;
    uint32_t low = 0, high = n - 1;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (nearest_before(squared, row, &list[middle]))
            high = middle;
        else
            low = middle + 1;
    }
    memmove(&list[low + 1], &list[low], (n - 1 - low) * sizeof *list);
    list[low] = (struct nearest){squared, row};
    return true;
}

#endif

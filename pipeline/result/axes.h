/* axes.h: the names of the dimension scales on the axes of a file's datasets.
 *
 * Datasets refer to scales by their addresses; HDF5 would look through the whole file for the name of
 * each. One thread at a time. */
#ifndef CLPIPE_RESULT_AXES_H
#define CLPIPE_RESULT_AXES_H

#include "result/h5.h"

struct axes {
    hid_t file;
    struct axes_scale {
        uint64_t address;
        char *name;
    } * scale; /* the datasets at the root, read when a name is first requested */
    unsigned count;
};

/* `file` must outlive *axes. */
void axes_init(struct axes *axes, hid_t file);
void axes_clear(struct axes *axes);

/* The name (at the root, without '/') of the scale on an axis of a dataset; "" if none. */
enum status axes_name(char *name, size_t size, struct axes *axes, hid_t dataset, unsigned axis,
                      struct error *err);

/* Whether a dataset is a scale. (H5DSis_scale of HDF5 1.10 frees memory twice if the attribute
 * CLASS is damaged.) */
bool axes_is_scale(hid_t dataset);

#endif

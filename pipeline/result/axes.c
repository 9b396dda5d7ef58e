/* axes.c: DIMENSION_LIST, of the "HDF5 Dimension Scale Specification": for each axis a list of references,
 * which are addresses. */
#include "result/axes.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_AXES 8

void axes_init(struct axes *axes, hid_t file)
{
    *axes = (struct axes){.file = file};
}

void axes_clear(struct axes *axes)
{
    for (unsigned i = 0; i < axes->count; i++)
        free(axes->scale[i].name);
    free(axes->scale);
    *axes = (struct axes){.file = H5I_INVALID_HID};
}

static enum status learn_scales(struct axes *axes, struct error *err)
{
    H5_SCOPED_NAMES names = {0};
    if (axes->scale)
        return STATUS_OK;
    if (h5_list(&names, axes->file, err))
        return STATUS_FAILED;
    axes->scale = calloc(names.count + 1, sizeof *axes->scale);
    for (unsigned i = 0; axes->scale && i < names.count; i++) {
        H5O_info_t info;
        if (!h5_is_object(axes->file, names.name[i], H5O_TYPE_DATASET) ||
            H5Oget_info_by_name(axes->file, names.name[i], &info, H5P_DEFAULT) < 0)
            continue;
        axes->scale[axes->count++] = (struct axes_scale){info.addr, names.name[i]};
        names.name[i] = NULL;
    }
    return axes->scale ? STATUS_OK : error_memory(err, sizeof *axes->scale, "dimension scales");
}

/* Whether a type is that of a DIMENSION_LIST in memory. H5Tequal ignores the kind of a list: the
 * byte after its version and class, 0 for a sequence. */
static bool is_list_type(hid_t type, hid_t memory)
{
    uint8_t code[256];
    size_t size = sizeof code;
    return H5Tequal(type, memory) > 0 && H5Tencode(type, code, &size) >= 0 && size > 3 &&
           code[3] == 0;
}

enum status axes_name(char *name, size_t size, struct axes *axes, hid_t dataset, unsigned axis,
                      struct error *err)
{
    hvl_t list[MOST_AXES];
    name[0] = 0;
    if (H5Aexists(dataset, "DIMENSION_LIST") <= 0)
        return STATUS_OK;
    H5_SCOPED hid_t attribute = H5Aopen(dataset, "DIMENSION_LIST", H5P_DEFAULT);
    H5_SCOPED hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    H5_SCOPED hid_t memory = H5Tvlen_create(H5T_STD_REF_OBJ);
    const hssize_t count = H5Sget_simple_extent_npoints(space);
    if (!is_list_type(type, memory) || count <= (hssize_t)axis || count > MOST_AXES ||
        H5Aread(attribute, memory, list) < 0)
        return h5_damaged(err, h5_path(axes->file), "a DIMENSION_LIST cannot be read");
    enum status status = learn_scales(axes, err);
    /* Any more belong to other programs. */
    for (size_t i = 1; i < list[axis].len && !status; i++) {
        H5_SCOPED hid_t scale =
            H5Rdereference2(dataset, H5P_DEFAULT, H5R_OBJECT, (const hobj_ref_t *)list[axis].p + i);
        if (scale < 0)
            status = h5_damaged(err, h5_path(axes->file), "a DIMENSION_LIST leads nowhere");
    }
    if (!status && list[axis].len > 0)
        for (unsigned i = 0; i < axes->count; i++)
            if (axes->scale[i].address == *(const hobj_ref_t *)list[axis].p)
                snprintf(name, size, "%s", axes->scale[i].name);
    H5Dvlen_reclaim(memory, space, H5P_DEFAULT, list);
    return status;
}

bool axes_is_scale(hid_t dataset)
{
    char *class = NULL;
    const bool is = h5_get_text(&class, dataset, "CLASS", false, NULL) == STATUS_OK && class &&
                    strcmp(class, "DIMENSION_SCALE") == 0;
    free(class);
    return is;
}

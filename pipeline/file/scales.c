/* scales.c: the types and sizes of the attributes CLASS, REFERENCE_LIST and DIMENSION_LIST.
 *
 * From the "HDF5 Dimension Scale Specification": REFERENCE_LIST is an array of pairs (dataset,
 * axis), DIMENSION_LIST has for each axis a variable-length list of references to scales. */
#include "file/scales.h"

static bool is_pair(hid_t type)
{
    if (H5Tget_class(type) != H5T_COMPOUND || H5Tget_nmembers(type) != 2 || H5Tget_size(type) > 16)
        return false;
    hid_t dataset = H5Tget_member_type(type, 0), axis = H5Tget_member_type(type, 1);
    bool right = H5Tequal(dataset, H5T_STD_REF_OBJ) > 0 &&
                 (H5Tequal(axis, H5T_STD_I32LE) > 0 || H5Tequal(axis, H5T_STD_U32LE) > 0) &&
                 H5Tget_member_offset(type, 0) == 0 && H5Tget_member_offset(type, 1) == 8;
    h5_close(&dataset);
    h5_close(&axis);
    return right;
}

bool scales_references_whole(hid_t scale)
{
    if (H5Aexists(scale, "REFERENCE_LIST") <= 0)
        return true;
    hid_t attribute = H5Aopen(scale, "REFERENCE_LIST", H5P_DEFAULT);
    hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    bool whole = attribute > 0 && is_pair(type) && H5Sget_simple_extent_ndims(space) == 1 &&
                 H5Sget_simple_extent_npoints(space) > 0;
    h5_close(&space);
    h5_close(&type);
    h5_close(&attribute);
    return whole;
}

enum status scales_check_scale(struct result *result, const char *name, struct error *err)
{
    if (!h5_is_object(result->file, name, H5O_TYPE_DATASET))
        return STATUS_OK;
    hid_t scale = H5Dopen2(result->file, name, H5P_DEFAULT);
    enum status status = STATUS_OK;
    if (scale < 0)
        return h5_fail(err, "H5Dopen2", "read", result->path);
    if (!(axes_is_scale(scale) && scales_references_whole(scale)))
        status = h5_damaged(err, result->path, "/%s is no dimension scale", name);
    h5_close(&scale);
    return status;
}

enum status scales_check_own(struct result *result, const char *name, struct error *err)
{
    enum status status = scales_check_scale(result, name, err);
    if (status || !h5_is_object(result->file, name, H5O_TYPE_DATASET))
        return status;
    hid_t scale = H5Dopen2(result->file, name, H5P_DEFAULT);
    hid_t list = scale > 0 ? H5Dget_create_plist(scale) : H5I_INVALID_HID;
    if (list < 0 || H5Pget_layout(list) != H5D_CONTIGUOUS || H5Dget_offset(scale) != HADDR_UNDEF)
        status =
            h5_damaged(err, result->path, "/%s has values, which dimension scales have not", name);
    h5_close(&list);
    h5_close(&scale);
    return status;
}

enum status scales_check_dataset(struct result *result, hid_t dataset, struct error *err)
{
    if (H5Aexists(dataset, "DIMENSION_LIST") <= 0)
        return STATUS_OK;
    hid_t attribute = H5Aopen(dataset, "DIMENSION_LIST", H5P_DEFAULT),
          space = H5Dget_space(dataset);
    hid_t type = H5Aget_type(attribute), axes = H5Aget_space(attribute);
    hid_t base = H5Tget_class(type) == H5T_VLEN ? H5Tget_super(type) : H5I_INVALID_HID;
    int rank = H5Sget_simple_extent_ndims(space);
    bool whole = attribute > 0 && base > 0 && H5Tequal(base, H5T_STD_REF_OBJ) > 0 &&
                 H5Sget_simple_extent_ndims(axes) == 1 &&
                 H5Sget_simple_extent_npoints(axes) == rank;
    h5_close(&base);
    h5_close(&axes);
    h5_close(&type);
    h5_close(&space);
    h5_close(&attribute);
    if (!whole)
        return h5_damaged(err, result->path, "a DIMENSION_LIST has another form");
    for (int a = 0; a < rank; a++) {
        char axis[AXIS_NAME_MAX];
        if (axes_name(axis, sizeof axis, &result->axes, dataset, (unsigned)a, err) ||
            (*axis && scales_check_scale(result, axis, err)))
            return STATUS_FAILED;
    }
    return STATUS_OK;
}

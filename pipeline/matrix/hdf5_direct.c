/* hdf5_direct.c: types and places of contiguous datasets. */
#include "matrix/hdf5_direct.h"

/* Whether a float of that size has the fields of IEEE 754. */
static bool is_ieee(hid_t type, size_t bytes)
{
    static const struct {
        size_t bytes, exponent, mantissa, bias;
    } forms[] = {{2, 5, 10, 15}, {4, 8, 23, 127}, {8, 11, 52, 1023}};
    size_t sign, exponent_at, exponent, mantissa_at, mantissa;
    if (H5Tget_fields(type, &sign, &exponent_at, &exponent, &mantissa_at, &mantissa) < 0 ||
        H5Tget_norm(type) != H5T_NORM_IMPLIED)
        return false;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (forms[i].bytes == bytes)
            return sign == 8 * bytes - 1 && mantissa_at == 0 && exponent_at == mantissa &&
                   exponent == forms[i].exponent && mantissa == forms[i].mantissa &&
                   H5Tget_ebias(type) == forms[i].bias;
    return false;
}

static bool format_of(struct value_format *out, hid_t type)
{
    const H5T_class_t class = H5Tget_class(type);
    const size_t bytes = H5Tget_size(type);
    const H5T_order_t order = H5Tget_order(type);
    if ((class != H5T_FLOAT && class != H5T_INTEGER) || bytes > 8 ||
        H5Tget_precision(type) != 8 * bytes || H5Tget_offset(type) != 0 ||
        (order != H5T_ORDER_LE && order != H5T_ORDER_BE))
        return false;
    *out = (struct value_format){.bytes = (unsigned char)bytes, .big_endian = order == H5T_ORDER_BE};
    out->kind = class == H5T_FLOAT                ? 'f'
                : H5Tget_sign(type) == H5T_SGN_2 ? 'i'
                                                  : 'u';
    return values_known(*out) && (class == H5T_INTEGER || is_ieee(type, bytes));
}

bool hdf5_format(struct value_format *out, hid_t dataset)
{
    hid_t type = H5Dget_type(dataset);
    const bool known = type >= 0 && format_of(out, type);
    if (type >= 0)
        H5Tclose(type);
    return known;
}

bool hdf5_direct(struct file_rows *out, hid_t dataset, uint32_t dimension, const char *path)
{
    int *descriptor = NULL;
    *out = (struct file_rows){.dimension = dimension, .path = path};
    hid_t list = H5Dget_create_plist(dataset), file = H5Iget_file_id(dataset);
    const haddr_t at = H5Dget_offset(dataset);
    const bool plain = list >= 0 && file >= 0 && at != HADDR_UNDEF &&
                       H5Pget_layout(list) == H5D_CONTIGUOUS &&
                       H5Pget_external_count(list) == 0 && hdf5_format(&out->format, dataset) &&
                       H5Fget_vfd_handle(file, H5P_DEFAULT, (void **)&descriptor) >= 0 && descriptor;
    if (plain) {
        out->fd = *descriptor;
        out->offset = at;
    }
    if (list >= 0)
        H5Pclose(list);
    if (file >= 0)
        H5Fclose(file);
    return plain;
}

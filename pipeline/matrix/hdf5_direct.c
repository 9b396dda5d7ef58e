/* hdf5_direct.c: types and places of datasets. */
#include "matrix/hdf5_direct.h"
#include "matrix/h5_driver.h"

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
    *out =
        (struct value_format){.bytes = (unsigned char)bytes, .big_endian = order == H5T_ORDER_BE};
    out->kind = class == H5T_FLOAT ? 'f' : H5Tget_sign(type) == H5T_SGN_2 ? 'i' : 'u';
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

/* Where contiguous values lie. */
static bool find_contiguous(struct file_rows *file, hid_t dataset, hid_t list)
{
    const haddr_t at = H5Dget_offset(dataset);
    if (at == HADDR_UNDEF || H5Pget_layout(list) != H5D_CONTIGUOUS ||
        H5Pget_external_count(list) != 0)
        return false;
    file->offset = at;
    return true;
}

enum status hdf5_direct_open(struct hdf5_direct *out, hid_t dataset, uint32_t dimension,
                             const char *path, struct error *err)
{
    int *descriptor = NULL;
    enum status status = STATUS_OK;
    *out = (struct hdf5_direct){.file = {.dimension = dimension, .path = path}};
    hid_t list = H5Dget_create_plist(dataset), file = H5Iget_file_id(dataset);
    if (list >= 0 && file >= 0 && hdf5_format(&out->file.format, dataset) && h5_driver_used(file) &&
        H5Fget_vfd_handle(file, H5P_DEFAULT, (void **)&descriptor) >= 0 && descriptor) {
        out->file.fd = *descriptor;
        out->possible = find_contiguous(&out->file, dataset, list);
        if (!out->possible)
            status = hdf5_chunks_open(&out->chunks, dataset, &out->file, err);
        out->possible = out->possible || out->chunks;
    }
    if (list >= 0)
        H5Pclose(list);
    if (file >= 0)
        H5Fclose(file);
    return status;
}

void hdf5_direct_close(struct hdf5_direct *direct)
{
    hdf5_chunks_close(&direct->chunks);
}

enum status hdf5_direct_read(const struct hdf5_direct *direct, uint64_t first, uint64_t count,
                             float *rows, struct error *err)
{
    return direct->chunks ? hdf5_chunks_read(direct->chunks, first, count, rows, err)
                          : file_rows_read(&direct->file, first, count, rows, err);
}

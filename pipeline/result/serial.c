/* serial.c: heads, attributes and values of objects, as far as clpipe's files have them. */
#include "result/serial.h"
#include "base/path.h"
#include "result/defined.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AXES_TEXT (2 * SERIAL_MOST_NAME + 8)

void serial_init(struct serial *serial, struct axes *axes, const char *path)
{
    *serial = (struct serial){.axes = axes, .path = path};
    sha256_init(&serial->sha);
}

/* STATUS_FAILED "PATH has no identity: NAME WHY". */
static enum status refuse(const struct serial *serial, struct error *err, const char *name,
                          const char *why)
{
    char shown[256];
    return error_set(err, STATUS_FAILED, "%s has contents that cannot be digested: %s %s",
                     path_for_message(shown, sizeof shown, serial->path), name, why);
}

static void add(struct serial *serial, const char *text)
{
    sha256_update(&serial->sha, text, strlen(text));
}

/* --- types and shapes ------------------------------------------------------------------------ */

static bool find_kind(struct serial_values *kind, hid_t type)
{
    enum value_type found;
    *kind = (struct serial_values){.size = H5Tget_size(type), .memory = H5I_INVALID_HID};
    if (!h5_find_type(&found, type))
        return false;
    const bool text = H5Tget_class(type) == H5T_STRING;
    kind->memory = text ? H5Tcopy(type) : h5_stored_type(found);
    if (text)
        H5Tset_strpad(kind->memory, H5T_STR_NULLPAD);
    snprintf(kind->name, sizeof kind->name, text ? "%s%zu" : "%s", value_name(found), kind->size);
    return true;
}

/* "3,4"; false where there are more axes than clpipe's files have, or no data. */
static bool shape_text(char *text, size_t size, hsize_t dimensions[SERIAL_MOST_AXES], int *rank,
                       hid_t space)
{
    *rank = H5Sget_simple_extent_ndims(space);
    if (*rank < 1 || *rank > SERIAL_MOST_AXES || H5Sget_simple_extent_type(space) == H5S_NULL)
        return false;
    dimensions[0] = dimensions[1] = 1;
    H5Sget_simple_extent_dims(space, dimensions, NULL);
    if (*rank < 2)
        snprintf(text, size, "%llu", (unsigned long long)dimensions[0]);
    else
        snprintf(text, size, "%llu,%llu", (unsigned long long)dimensions[0],
                 (unsigned long long)dimensions[1]);
    return true;
}

/* --- attributes ------------------------------------------------------------------------------ */

/* Whether a text of an attribute that has a size fills it up, as those do that clpipe and HDF5 write. */
static bool fills(hid_t type, size_t length)
{
    return H5Tis_variable_str(type) > 0 || H5Tget_size(type) <= length + 1;
}

/* Whether texts have the character set and the padding that clpipe and HDF5 give them. */
static bool is_usual_text(hid_t type, bool utf8, bool padded)
{
    const H5T_str_t padding = H5Tget_class(type) == H5T_STRING ? H5Tget_strpad(type) : H5T_STR_NULLPAD;
    return H5Tget_class(type) != H5T_STRING ||
           (H5Tget_cset(type) == (utf8 ? H5T_CSET_UTF8 : H5T_CSET_ASCII) &&
            (padding == H5T_STR_NULLPAD || (padding == H5T_STR_NULLTERM && !padded)));
}

static enum status add_text(struct serial *serial, hid_t object, const char *name, hid_t type,
                            struct error *err)
{
    char *text, line[SERIAL_MOST_NAME + 128];
    if (h5_get_text(&text, object, name, true, serial->path, err))
        return STATUS_FAILED;
    const uint64_t length = strlen(text);
    snprintf(line, sizeof line, "attribute %s text scalar\n", name);
    add(serial, line);
    sha256_update(&serial->sha, &length, sizeof length);
    sha256_update(&serial->sha, text, length);
    free(text);
    return serial->exact && !fills(type, length)
               ? refuse(serial, err, name, "is an attribute of a kind that clpipe does not write")
               : STATUS_OK;
}

static enum status add_attribute(struct serial *serial, hid_t object, const char *name,
                                 struct error *err)
{
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    if (attribute < 0)
        return h5_fail(err, "H5Aopen", "read", serial->path);
    hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    struct serial_values kind = {.memory = H5I_INVALID_HID};
    char line[SERIAL_MOST_NAME + 128];
    uint8_t value[8];
    enum status status = STATUS_FAILED;
    if (serial->exact && (H5Sget_simple_extent_type(space) != H5S_SCALAR ||
                          !is_usual_text(type, H5Tis_variable_str(type) > 0, false))) {
        refuse(serial, err, name, "is an attribute of a kind that clpipe does not write");
        goto out;
    }
    if (H5Tget_class(type) == H5T_STRING) {
        status = add_text(serial, object, name, type, err);
        goto out;
    }
    if (H5Sget_simple_extent_npoints(space) != 1 || !find_kind(&kind, type)) {
        refuse(serial, err, name, "is an attribute of a kind that clpipe does not know");
        goto out;
    }
    if (H5Aread(attribute, kind.memory, value) < 0) {
        h5_fail(err, "H5Aread", "read", serial->path);
        goto out;
    }
    snprintf(line, sizeof line, "attribute %s %s scalar\n", name, kind.name);
    add(serial, line);
    sha256_update(&serial->sha, value, kind.size);
    status = STATUS_OK;
out:
    h5_close(&kind.memory);
    h5_close(&space);
    h5_close(&type);
    h5_close(&attribute);
    return status;
}

static enum status add_attributes(struct serial *serial, hid_t object, serial_filter *filter,
                                  const void *context, struct error *err)
{
    struct h5_names names;
    enum status status = STATUS_FAILED;
    if (h5_list_attributes(&names, object, DEFINED_MOST_MEMBERS, serial->path, err))
        return STATUS_FAILED;
    for (unsigned i = 0; i < names.count; i++) {
        if (!filter(context, names.name[i]))
            continue;
        if (strlen(names.name[i]) > SERIAL_MOST_NAME) {
            refuse(serial, err, "an attribute", "has a longer name than clpipe gives");
            goto out;
        }
        if (add_attribute(serial, object, names.name[i], err))
            goto out;
    }
    status = STATUS_OK;
out:
    h5_free_names(&names);
    return status;
}

/* --- objects --------------------------------------------------------------------------------- */

enum status serial_group(struct serial *serial, hid_t group, const char *name,
                         serial_filter *filter, const void *context, struct error *err)
{
    char line[SERIAL_MOST_NAME + 16];
    snprintf(line, sizeof line, "group %s\n", name);
    add(serial, line);
    return add_attributes(serial, group, filter, context, err);
}

/* What is wrong with a dataset's values, or NULL. */
static const char *bad_values(hid_t dataset, const struct serial_values *values)
{
    uint64_t elements = 0;
    if (__builtin_mul_overflow(values->dimensions[0], values->dimensions[1], &elements) ||
        elements > INT64_MAX / values->size || values->dimensions[1] > SERIAL_BUFFER / values->size)
        return "has an impossible size";
    return h5_bad_storage(dataset, elements * values->size, values->size);
}

/* What a dataset has otherwise than clpipe writes it, although the values are the same, or NULL. */
static const char *other_form(hid_t dataset, hid_t type, hid_t space)
{
    hsize_t size[SERIAL_MOST_AXES], most[SERIAL_MOST_AXES];
    H5D_fill_value_t fill = H5D_FILL_VALUE_ERROR;
    hid_t list = H5Dget_create_plist(dataset);
    /* What shows rows of parts has one, for those of lost parts. */
    if (H5Pget_layout(list) == H5D_VIRTUAL)
        fill = H5D_FILL_VALUE_DEFAULT;
    else
        H5Pfill_value_defined(list, &fill);
    h5_close(&list);
    const int rank = H5Sget_simple_extent_dims(space, size, most);
    return !is_usual_text(type, true, true)                               ? "has texts of another kind"
           : axes_is_scale(dataset) && H5Dget_offset(dataset) != HADDR_UNDEF ? "has values"
           : fill != H5D_FILL_VALUE_DEFAULT                               ? "has a value for missing rows"
           : rank < 0 || memcmp(size, most, (size_t)rank * sizeof *size)  ? "has a maximal size"
                                                                          : NULL;
}

enum status serial_dataset(struct serial_values *values, struct serial *serial, hid_t dataset,
                           const char *name, serial_filter *filter, const void *context,
                           struct error *err)
{
    hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset);
    char shape[64], axes[AXES_TEXT] = "", line[SERIAL_MOST_NAME + AXES_TEXT + 128];
    enum status status = STATUS_FAILED;
    const bool known = find_kind(values, type) &&
                       shape_text(shape, sizeof shape, values->dimensions, &values->rank, space);
    const char *wrong = !known                  ? "is of a kind that clpipe does not know"
                        : axes_is_scale(dataset) ? NULL
                                                 : bad_values(dataset, values);
    if (!wrong && serial->exact)
        wrong = other_form(dataset, type, space);
    if (wrong) {
        refuse(serial, err, name, wrong);
        goto out;
    }
    /* "image,feature_rgb_256"; "-" for an axis without a scale. */
    for (int a = 0; a < values->rank; a++) {
        char axis[SERIAL_MOST_NAME];
        if (axes_name(axis, sizeof axis, serial->axes, dataset, (unsigned)a, err))
            goto out;
        snprintf(axes + strlen(axes), sizeof axes - strlen(axes), "%s%s", a ? "," : "",
                 *axis ? axis : "-");
    }
    snprintf(line, sizeof line, "dataset %s %s %s %s\n", name, values->name, shape, axes);
    add(serial, line);
    status = add_attributes(serial, dataset, filter, context, err);
out:
    if (status)
        h5_close(&values->memory);
    h5_close(&space);
    h5_close(&type);
    return status;
}

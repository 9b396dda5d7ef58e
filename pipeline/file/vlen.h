/* vlen.h: variable-length data of an HDF5 file, read without trusting it.
 *
 * HDF5 stores such an element as a descriptor of 16 bytes (length, address of a collection in the
 * "global heap", index in it). The library believes the length: one changed byte makes it allocate
 * and fill gigabytes. So clpipe finds the descriptors and looks into the collections itself, where
 * every size is checked against the file. That covers what clpipe writes (contiguous datasets,
 * attributes in version 1 object headers); anything else is refused with a message. Reading
 * 100,000 paths takes 10 ms; H5Dread takes 20. One thread at a time. */
#ifndef CLPIPE_FILE_VLEN_H
#define CLPIPE_FILE_VLEN_H

#include "file/h5.h"

#define VLEN_DESCRIPTOR 16
/* Longer texts are taken for damage. */
#define VLEN_MOST_BYTES (16u << 20)

struct vlen;

/* `file` must stay open as long as the reader. */
enum status vlen_open(struct vlen **out, hid_t file, const char *path, struct error *err);
void vlen_close(struct vlen **vlen);

/* The descriptors of elements [first, first + count) of a contiguous dataset. */
enum status vlen_descriptors(struct vlen *vlen, hid_t dataset, uint64_t first, uint64_t count,
                             uint8_t *descriptors, struct error *err);

/* The value of an attribute as stored, which must be `size` bytes. */
enum status vlen_attribute(struct vlen *vlen, hid_t object, const char *name, uint8_t *value,
                           size_t size, struct error *err);

/* What a descriptor stands for: *count elements of `unit` bytes each; valid until the next call. */
enum status vlen_element(struct vlen *vlen, const uint8_t descriptor[VLEN_DESCRIPTOR], size_t unit,
                         const uint8_t **bytes, uint32_t *count, struct error *err);

/* A scalar text attribute, variable or fixed length, as a new string of at most VLEN_MOST_BYTES.
 * *text is NULL where there is no such attribute and it is not `required`. */
enum status vlen_text_attribute(char **text, struct vlen *vlen, hid_t object, const char *name,
                                bool required, struct error *err);

/* Whether a dataset is a dimension scale. (H5DSis_scale of HDF5 1.10 frees memory twice where the
 * attribute that says so is damaged.) */
enum status vlen_is_scale(bool *is_scale, struct vlen *vlen, hid_t dataset, struct error *err);

/* The name (at the root, without '/') of the dimension scale on an axis of a dataset, or "" if
 * there is none. */
enum status vlen_axis(char *name, size_t size, struct vlen *vlen, hid_t dataset, unsigned axis,
                      struct error *err);

#endif

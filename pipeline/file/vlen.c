/* vlen.c: object headers and the global heap of HDF5, as far as variable-length data needs them.
 *
 * From the "HDF5 File Format Specification", version 3.0: III.E (global heap), IV.A.1.a (version 1
 * object header), IV.A.2.m (attribute message), IV.A.2.q (continuation). All numbers are
 * little-endian; offsets and lengths have 8 bytes, as in every file of a 64-bit program. */
#include "file/vlen.h"
#include "base/path.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A collection has room for many short texts; HDF5 fills a few at a time. */
#define CACHE_SLOTS        32
#define COLLECTION_HEADER  16
#define OBJECT_HEADER      16
#define MOST_COLLECTION    (VLEN_MOST_BYTES + (64u << 10))
#define MESSAGE_ATTRIBUTE  0x000c
#define MESSAGE_CONTINUED  0x0010
#define MOST_HEADER_BLOCKS 64
#define MOST_HEADER_BYTES  (1u << 20)
#define MOST_ROOT_NAMES    65536

struct collection {
    uint64_t address; /* 0: empty */
    uint8_t *data;
    size_t size, capacity;
    /* Where object `index` lies, 0: nowhere. HDF5 gives ascending numbers, to the texts of a block from
     * its end to its beginning. */
    uint32_t *object;
    uint32_t objects, room;
};

struct scale_name {
    uint64_t address;
    char *name;
};

struct vlen {
    hid_t file;
    int descriptor; /* HDF5's own, not ours to close */
    char *path;
    struct collection cache[CACHE_SLOTS];
    struct scale_name *scale; /* the datasets at the root, once asked for */
    unsigned scale_count;
    bool scales_known;
};

static uint64_t get(const uint8_t *at, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--)
        value = value << 8 | at[i];
    return value;
}

/* pread() of exactly `size` bytes. */
static enum status read_at(struct vlen *vlen, uint64_t address, void *data, size_t size,
                           struct error *err)
{
    char *at = data;
    while (size > 0) {
        ssize_t n = address > INT64_MAX ? 0 : pread(vlen->descriptor, at, size, (off_t)address);
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            return h5_damaged(err, vlen->path, "a text lies beyond the end of the file");
        if (n < 0) {
            char shown[256];
            return error_errno(err, STATUS_FAILED, errno, "pread", "cannot read %s",
                               path_for_message(shown, sizeof shown, vlen->path));
        }
        at += n;
        address += (uint64_t)n;
        size -= (size_t)n;
    }
    return STATUS_OK;
}

enum status vlen_open(struct vlen **out, hid_t file, const char *path, struct error *err)
{
    *out = NULL;
    enum status status = STATUS_FAILED;
    int *descriptor = NULL;
    size_t offset_size = 0, length_size = 0;
    hsize_t userblock = 0;
    hid_t list = H5Fget_create_plist(file);
    struct vlen *vlen = calloc(1, sizeof *vlen);
    if (!vlen || !(vlen->path = strdup(path))) {
        error_memory(err, sizeof *vlen, "a reader");
        goto out;
    }
    vlen->file = file;
    if (H5Fget_vfd_handle(file, H5P_DEFAULT, (void **)&descriptor) < 0 || !descriptor) {
        h5_fail(err, "H5Fget_vfd_handle", "read", path);
        goto out;
    }
    if (H5Pget_sizes(list, &offset_size, &length_size) < 0 || offset_size != 8 ||
        length_size != 8 || H5Pget_userblock(list, &userblock) < 0 || userblock != 0) {
        h5_damaged(err, vlen->path, "it has another form of HDF5 than clpipe writes");
        goto out;
    }
    vlen->descriptor = *descriptor;
    *out = vlen;
    vlen = NULL;
    status = STATUS_OK;
out:
    h5_close(&list);
    vlen_close(&vlen);
    return status;
}

void vlen_close(struct vlen **vlen)
{
    if (!vlen || !*vlen)
        return;
    for (unsigned i = 0; i < CACHE_SLOTS; i++) {
        free((*vlen)->cache[i].object);
        free((*vlen)->cache[i].data);
    }
    for (unsigned i = 0; i < (*vlen)->scale_count; i++)
        free((*vlen)->scale[i].name);
    free((*vlen)->scale);
    free((*vlen)->path);
    free(*vlen);
    *vlen = NULL;
}

enum status vlen_descriptors(struct vlen *vlen, hid_t dataset, uint64_t first, uint64_t count,
                             uint8_t *descriptors, struct error *err)
{
    if (count == 0)
        return STATUS_OK;
    hid_t list = H5Dget_create_plist(dataset);
    H5D_layout_t layout = H5Pget_layout(list);
    h5_close(&list);
    haddr_t at = H5Dget_offset(dataset);
    if (layout != H5D_CONTIGUOUS || at == HADDR_UNDEF)
        return h5_damaged(err, vlen->path,
                          "its texts are stored in another layout than clpipe writes (contiguous)");
    return read_at(vlen, at + first * VLEN_DESCRIPTOR, descriptors, count * VLEN_DESCRIPTOR, err);
}

/* Notes where the objects of a collection lie, up to the first that is none. */
static enum status index_objects(struct collection *collection, struct error *err)
{
    collection->objects = 0;
    for (size_t at = COLLECTION_HEADER; at + OBJECT_HEADER <= collection->size;) {
        const uint8_t *object = collection->data + at;
        const uint32_t number = (uint32_t)get(object, 2);
        const uint64_t size = get(object + 8, 8);
        /* Number 0 is the free space at the end. */
        if (number == 0 || size > collection->size - at - OBJECT_HEADER)
            break;
        if (number >= collection->room) {
            const uint32_t room = 2 * number + 512;
            uint32_t *more = realloc(collection->object, room * sizeof *more);
            if (!more)
                return error_memory(err, room * sizeof *more, "texts");
            collection->object = more;
            collection->room = room;
        }
        for (; collection->objects <= number; collection->objects++)
            collection->object[collection->objects] = 0;
        if (collection->object[number] == 0)
            collection->object[number] = (uint32_t)at;
        at += OBJECT_HEADER + ((size + 7) & ~(uint64_t)7);
    }
    return STATUS_OK;
}

/* The collection at `address`, from the cache or the file. */
static enum status load_collection(struct collection **out, struct vlen *vlen, uint64_t address,
                                   struct error *err)
{
    struct collection *collection = &vlen->cache[(address >> 12) % CACHE_SLOTS];
    *out = collection;
    if (collection->address == address)
        return STATUS_OK;
    uint8_t header[COLLECTION_HEADER];
    if (read_at(vlen, address, header, sizeof header, err))
        return STATUS_FAILED;
    uint64_t size = get(header + 8, 8);
    if (memcmp(header, "GCOL", 4) || header[4] != 1 || size < COLLECTION_HEADER)
        return h5_damaged(err, vlen->path, "a text points to where no texts are");
    if (size > MOST_COLLECTION)
        return h5_damaged(err, vlen->path, "a text is longer than 16 MiB");
    if (size > collection->capacity) {
        uint8_t *more = realloc(collection->data, size);
        if (!more)
            return error_memory(err, size, "texts");
        collection->data = more;
        collection->capacity = size;
    }
    collection->address = 0;
    if (read_at(vlen, address, collection->data, size, err))
        return STATUS_FAILED;
    collection->size = size;
    if (index_objects(collection, err))
        return STATUS_FAILED;
    collection->address = address;
    return STATUS_OK;
}

enum status vlen_element(struct vlen *vlen, const uint8_t descriptor[VLEN_DESCRIPTOR], size_t unit,
                         const uint8_t **bytes, uint32_t *count, struct error *err)
{
    uint64_t length = get(descriptor, 4), address = get(descriptor + 4, 8);
    uint64_t index = get(descriptor + 12, 4);
    *bytes = (const uint8_t *)"";
    *count = 0;
    if (length == 0)
        return STATUS_OK;
    if (length * unit > VLEN_MOST_BYTES)
        return h5_damaged(err, vlen->path, "a text is longer than 16 MiB");
    struct collection *collection;
    if (load_collection(&collection, vlen, address, err))
        return STATUS_FAILED;
    const size_t at = index < collection->objects ? collection->object[index] : 0;
    /* HDF5 itself would copy what is there, however long. */
    if (!at || get(collection->data + at + 8, 8) != length * unit)
        return h5_damaged(err, vlen->path, "a text is not where its row says");
    *bytes = collection->data + at + OBJECT_HEADER;
    *count = (uint32_t)length;
    return STATUS_OK;
}

/* The data of an attribute message, if it is the attribute `name`, or NULL. */
static const uint8_t *attribute_data(const uint8_t *message, size_t size, const char *name,
                                     size_t wanted)
{
    if (size < 8)
        return NULL;
    unsigned version = message[0], shared = version >= 2 ? message[1] & 3 : 0;
    if (version < 1 || version > 3 || shared)
        return NULL;
    uint64_t pad = version == 1 ? 7 : 0;
    uint64_t name_size = get(message + 2, 2), at = version == 3 ? 9 : 8;
    uint64_t skip = ((name_size + pad) & ~pad) + ((get(message + 4, 2) + pad) & ~pad) +
                    ((get(message + 6, 2) + pad) & ~pad);
    if (at + skip > size || size - at - skip < wanted || name_size != strlen(name) + 1 ||
        memcmp(message + at, name, name_size) != 0)
        return NULL;
    return message + at + skip;
}

/* A block of an object header, and the blocks that continue it. */
struct header_blocks {
    unsigned count;
    struct {
        uint64_t address, size;
    } block[MOST_HEADER_BLOCKS];
};

/* Looks for an attribute in a block of `bytes` bytes at `data`; adds the blocks that it names. */
static const uint8_t *find_attribute(struct header_blocks *blocks, const uint8_t *data,
                                     uint64_t bytes, const char *name, size_t size)
{
    for (uint64_t at = 0; at + 8 <= bytes;) {
        uint64_t type = get(data + at, 2), length = get(data + at + 2, 2);
        const uint8_t *message = data + at + 8;
        if (length > bytes - at - 8)
            break;
        if (type == MESSAGE_CONTINUED && length >= 16 && blocks->count < MOST_HEADER_BLOCKS) {
            blocks->block[blocks->count].address = get(message, 8);
            blocks->block[blocks->count++].size = get(message + 8, 8);
        }
        const uint8_t *found =
            type == MESSAGE_ATTRIBUTE ? attribute_data(message, length, name, size) : NULL;
        if (found)
            return found;
        at += 8 + length;
    }
    return NULL;
}

enum status vlen_attribute(struct vlen *vlen, hid_t object, const char *name, uint8_t *value,
                           size_t size, struct error *err)
{
    enum status status = STATUS_FAILED;
    uint8_t prefix[16], *data = NULL;
    H5O_info_t info;
    if (H5Oget_info(object, &info) < 0)
        return h5_fail(err, "H5Oget_info", "read", vlen->path);
    if (read_at(vlen, info.addr, prefix, sizeof prefix, err))
        return STATUS_FAILED;
    if (prefix[0] != 1)
        return h5_damaged(err, vlen->path,
                          "it was rewritten in a newer form of HDF5; clpipe cannot use it");
    struct header_blocks blocks = {1, {{info.addr + 16, get(prefix + 8, 4)}}};
    for (unsigned b = 0; b < blocks.count; b++) {
        uint64_t bytes = blocks.block[b].size;
        if (bytes > MOST_HEADER_BYTES) {
            h5_damaged(err, vlen->path, "an object's header has an impossible size");
            goto out;
        }
        free(data);
        data = malloc(bytes ? bytes : 1);
        if (!data) {
            error_memory(err, bytes, "an object header");
            goto out;
        }
        if (read_at(vlen, blocks.block[b].address, data, bytes, err))
            goto out;
        const uint8_t *found = find_attribute(&blocks, data, bytes, name, size);
        if (found) {
            memcpy(value, found, size);
            status = STATUS_OK;
            goto out;
        }
    }
    h5_damaged(err, vlen->path, "its attribute '%s' is stored in an unknown form", name);
out:
    free(data);
    return status;
}

enum status vlen_text_attribute(char **text, struct vlen *vlen, hid_t object, const char *name,
                                bool required, struct error *err)
{
    *text = NULL;
    if (H5Aexists(object, name) <= 0)
        return required ? h5_damaged(err, vlen->path, "it has no attribute '%s'", name) : STATUS_OK;
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    bool text_class = attribute > 0 && H5Tget_class(type) == H5T_STRING &&
                      H5Sget_simple_extent_npoints(space) == 1;
    bool variable = text_class && H5Tis_variable_str(type) > 0;
    size_t size = text_class ? H5Tget_size(type) : 0;
    enum status status = STATUS_FAILED;
    if (!text_class || size > VLEN_MOST_BYTES) {
        h5_damaged(err, vlen->path, "its attribute '%s' is no text", name);
        goto out;
    }
    if (variable) {
        uint8_t descriptor[VLEN_DESCRIPTOR];
        const uint8_t *bytes;
        uint32_t count;
        if (vlen_attribute(vlen, object, name, descriptor, sizeof descriptor, err) ||
            vlen_element(vlen, descriptor, 1, &bytes, &count, err))
            goto out;
        *text = strndup((const char *)bytes, count);
        size = count;
    } else {
        *text = calloc(size + 1, 1);
    }
    if (!*text) {
        error_memory(err, size, "an attribute");
        goto out;
    }
    if (!variable && H5Aread(attribute, type, *text) < 0) {
        h5_fail(err, "H5Aread", "read", vlen->path);
        free(*text);
        *text = NULL;
        goto out;
    }
    status = STATUS_OK;
out:
    h5_close(&space);
    h5_close(&type);
    h5_close(&attribute);
    return status;
}

enum status vlen_is_scale(bool *is_scale, struct vlen *vlen, hid_t dataset, struct error *err)
{
    char *class;
    enum status status = vlen_text_attribute(&class, vlen, dataset, "CLASS", false, err);
    *is_scale = class && strcmp(class, "DIMENSION_SCALE") == 0;
    free(class);
    return status;
}

/* Where the datasets at the root lie: dimension scales are referred to by address. */
static enum status learn_scales(struct vlen *vlen, struct error *err)
{
    struct h5_names names;
    if (vlen->scales_known)
        return STATUS_OK;
    if (h5_list(&names, vlen->file, MOST_ROOT_NAMES, vlen->path, err))
        return STATUS_FAILED;
    vlen->scale = calloc(names.count ? names.count : 1, sizeof *vlen->scale);
    vlen->scales_known = vlen->scale != NULL;
    for (unsigned i = 0; vlen->scale && i < names.count; i++) {
        H5O_info_t info;
        if (!h5_is_object(vlen->file, names.name[i], H5O_TYPE_DATASET) ||
            H5Oget_info_by_name(vlen->file, names.name[i], &info, H5P_DEFAULT) < 0)
            continue;
        vlen->scale[vlen->scale_count].address = info.addr;
        vlen->scale[vlen->scale_count++].name = names.name[i];
        names.name[i] = NULL;
    }
    h5_free_names(&names);
    return vlen->scale ? STATUS_OK : error_memory(err, sizeof *vlen->scale, "dimension scales");
}

enum status vlen_axis(char *name, size_t size, struct vlen *vlen, hid_t dataset, unsigned axis,
                      struct error *err)
{
    name[0] = 0;
    if (H5Aexists(dataset, "DIMENSION_LIST") <= 0)
        return STATUS_OK;
    uint8_t descriptors[8 * VLEN_DESCRIPTOR];
    const uint8_t *bytes;
    uint32_t count;
    if (learn_scales(vlen, err) ||
        vlen_attribute(vlen, dataset, "DIMENSION_LIST", descriptors, (axis + 1) * VLEN_DESCRIPTOR,
                       err) ||
        vlen_element(vlen, descriptors + axis * VLEN_DESCRIPTOR, 8, &bytes, &count, err))
        return STATUS_FAILED;
    if (count == 0)
        return STATUS_OK;
    uint64_t address = get(bytes, 8);
    for (unsigned i = 0; i < vlen->scale_count; i++)
        if (vlen->scale[i].address == address)
            snprintf(name, size, "%s", vlen->scale[i].name);
    return STATUS_OK;
}

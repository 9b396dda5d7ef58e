/* serial.h: objects of a file as bytes, into SHA-256; docs/file-format.md, "Checksums and identity".
 *
 *   "group NAME\n" or "dataset NAME TYPE SHAPE AXES\n", NAME being absolute
 *   for each attribute, by name:  "attribute NAME TYPE scalar\n" and its value
 *
 * Values: numbers as they are in memory on a little-endian machine, texts of datasets with their padding,
 * those of attributes as their length (8 bytes, little-endian) and their bytes. What HDF5 keeps for
 * dimension scales (addresses) is left out: the names of the scales, AXES, say the same. */
#ifndef CLPIPE_RESULT_SERIAL_H
#define CLPIPE_RESULT_SERIAL_H

#include "base/hash.h"
#include "result/axes.h"

#define SERIAL_MOST_NAME 1024
#define SERIAL_MOST_AXES 2
/* Values are read in blocks of about that size; a row of the longest feature has 16 MiB. */
#define SERIAL_BUFFER (16u << 20)

struct serial {
    struct sha256 sha;
    struct axes *axes;
    const char *path; /* of the file, for messages */
    bool exact; /* refuses what has another form than clpipe gives it, although it says the same */
};

void serial_init(struct serial *serial, struct axes *axes, const char *path);

/* Which attributes of an object count. */
typedef bool serial_filter(const void *context, const char *attribute);

enum status serial_group(struct serial *serial, hid_t group, const char *name,
                         serial_filter *filter, const void *context, struct error *err);

/* The findings of serial_dataset. Close `memory`. */
struct serial_values {
    char name[24]; /* of the type */
    hid_t memory;  /* of the values in memory */
    size_t size;   /* of one value */
    int rank;
    hsize_t dimensions[SERIAL_MOST_AXES]; /* 1 if there is no axis */
};

/* The head and the attributes of a dataset. */
enum status serial_dataset(struct serial_values *values, struct serial *serial, hid_t dataset,
                           const char *name, serial_filter *filter, const void *context,
                           struct error *err);

#endif

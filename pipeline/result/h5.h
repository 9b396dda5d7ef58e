/* h5.h: the HDF5 operations that the store needs, each with a one-line error.
 *
 * HDF5 keeps global state: only one thread uses it at a time. Its errors become clpipe's sentences
 * (matrix/h5_error.h). Everything that is written can be read by HDF5 1.8, without time stamps. */
#ifndef CLPIPE_RESULT_H5_H
#define CLPIPE_RESULT_H5_H

#define H5_USE_110_API

#include "base/error.h"
#include "base/text.h"
#include "matrix/h5_error.h"
#include "matrix/raw.h"
#include <stdint.h>

/* The element types of clpipe's files. */
enum value_type {
    VALUE_U8,
    VALUE_U16,
    VALUE_U32,
    VALUE_U64,
    VALUE_I8,
    VALUE_I16,
    VALUE_I32,
    VALUE_I64,
    VALUE_F16,
    VALUE_F32,
    VALUE_F64,
    VALUE_TEXT8,  /* UTF-8 of 8 bytes, NUL-padded */
    VALUE_TEXT16, /* of 16 bytes */
    VALUE_TEXT,   /* of the dataset's width: h5_text_width */
};

/* Bytes of one element in memory; 0: VALUE_TEXT. */
size_t value_size(enum value_type type);
/* "uint8" to "float64", "text". */
const char *value_name(enum value_type type);

/* Longer texts of a dataset or an attribute count as damage. */
#define H5_TEXT_MOST (16u << 20)

/* Creates the HDF5 type of `type` in files and in memory. */
hid_t h5_type(enum value_type type);
/* Which of them a stored type is, in either byte order; false: none. */
bool h5_find_type(enum value_type *type, hid_t stored);

/* STATUS_FAILED "PATH is damaged or not a clpipe file: WHAT". */
enum status h5_damaged(struct error *err, const char *path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The name of the file of any object, for messages; valid until it is closed. */
const char *h5_path(hid_t object);
/* h5_fail with that name. */
enum status h5_failed(struct error *err, const char *call, const char *what, hid_t object);

/* h5_damaged with its name and that of its file: "/features/rgb WHAT". */
enum status h5_wrong(struct error *err, hid_t object, const char *what);

/* Keeps HDF5 from registering its exit handler, which crashes if a file could not be finished (a
 * full disk). Call it before any other HDF5 function; every file must be closed before exit. */
void h5_without_exit_handler(void);
/* The version linked at run time. */
void h5_version(unsigned version[3]);

/* Creates (truncates) a file, or opens one for reading; shown: its name in messages. virtual: with virtual datasets, which
 * need HDF5 1.10. */
enum status h5_create_file(hid_t *file, const char *path, const char *shown, bool virtual,
                           struct error *err);
enum status h5_open_file(hid_t *file, const char *path, struct error *err);

/* Flushes what HDF5 holds in memory. Only this and h5_finish_file report all write failures; other
 * functions may miss them (h5_driver.h). */
enum status h5_flush_file(hid_t file, struct error *err);

/* STATUS_FAILED: a read of an open file has failed. HDF5 functions, and so their callers, may
 * mistake that for absence: call this before using such a result. */
enum status h5_check_reads(struct error *err);

/* Completes and closes a new file, unless h5_check_reads fails; closes it even on failure. */
enum status h5_finish_file(hid_t *file, struct error *err);

/* Closes a file whose content is no longer needed, without further writes. */
void h5_discard_file(hid_t *file);

/* Writes a whole file, which appears by rename when it is complete: `write` fills it, open as `path`. Nothing under
 * its name has changed after a failure. unnamed: `output` is the path of an open unnamed file, which stays
 * unnamed. */
enum status h5_write_file(const char *output, bool unnamed, bool virtual,
                          enum status (*write)(void *context, hid_t file, const char *path,
                                               struct error *err),
                          void *context, struct error *err);

/* --- writing --------------------------------------------------------------------------------- */

enum status h5_create_group(hid_t *group, hid_t parent, const char *name, struct error *err);
/* The same, or opens the existing one. */
enum status h5_make_group(hid_t *group, hid_t parent, const char *name, struct error *err);

/* A dataset of `rank` dimensions, contiguous, its space allocated at once and not filled. */
enum status h5_create_dataset(hid_t *dataset, hid_t parent, const char *name, enum value_type type,
                              int rank, const hsize_t *dimensions, struct error *err);

/* The same with the scale axis[a] on each dimension a, creating missing scales. */
enum status h5_create_on_scales(hid_t *dataset, hid_t file, hid_t parent, const char *name,
                                enum value_type type, int rank, const hsize_t *dimensions,
                                const char *const *axis, struct error *err);
/* The same with all its values. */
enum status h5_put_values(hid_t file, hid_t parent, const char *name, enum value_type type,
                          int rank, const hsize_t *dimensions, const char *const *axis,
                          const void *values, struct error *err);

/* A dataset of rows in chunks of `chunk_rows`, deflated by H5_DEFLATE_LEVEL, optionally shuffled;
 * every chunk must be written. */
#define H5_DEFLATE_LEVEL 1
enum status h5_create_chunked(hid_t *dataset, hid_t parent, const char *name, enum value_type type,
                              const hsize_t dimensions[2], uint64_t chunk_rows, bool shuffle,
                              struct error *err);

/* A column of texts of that size: contiguous, or deflated in chunks if most of it would be padding. */
enum status h5_create_texts(hid_t *dataset, hid_t parent, const char *name, uint64_t rows,
                            const struct text_size *size, struct error *err);
/* The width of such a dataset's texts in bytes. */
size_t h5_text_width(hid_t dataset);

/* Whether a dataset has chunks that a filter may have compressed. */
bool h5_is_compressed(hid_t dataset);

/* Writes or reads elements [first, first + count) along the first axis and all along the others.
 * count 0 does nothing. */
enum status h5_write_rows(hid_t dataset, enum value_type type, uint64_t first, uint64_t count,
                          const void *data, struct error *err);
enum status h5_read_rows(hid_t dataset, enum value_type type, uint64_t first, uint64_t count,
                         void *data, struct error *err);

/* Closes a written dataset; its last part may be written only now. */
enum status h5_finish_dataset(hid_t *dataset, struct error *err);

/* All `count` texts of a column, which must be UTF-8, as a new list (texts_free); NULL on failure. `what`: its name in
 * messages. */
enum status h5_read_texts(char ***texts, hid_t dataset, uint64_t count, const char *what,
                          struct error *err);
/* Row `row` of a column to be written, of *bytes bytes, valid until the next call; NULL: it cannot be read, see
 * errno. */
typedef const void *h5_row(void *context, uint64_t row, size_t *bytes);
/* The error for NULL. */
enum status h5_row_failed(struct error *err);
/* A whole column of texts with the scale `axis`, which is created if missing; rows are requested in order, twice:
 * first to be measured. */
enum status h5_put_column(hid_t file, hid_t parent, const char *name, uint64_t rows,
                          const char *axis, h5_row *row, void *context, struct error *err);
/* The same with the texts of an array; NULL: all are "". */
enum status h5_put_texts(hid_t file, hid_t parent, const char *name, const char *const *text,
                         uint64_t count, const char *axis, struct error *err);

/* Scalar attributes. A text may be of any length; bytes that are not UTF-8 are escaped (path_to_utf8). */
enum status h5_put_text(hid_t object, const char *name, const char *text, struct error *err);
enum status h5_put_number(hid_t object, const char *name, enum value_type type, const void *value,
                          struct error *err);

/* Copies an attribute of any kind to an object of another file, as stored. */
enum status h5_copy_attribute(hid_t to, hid_t from, const char *name, struct error *err);

/* Attributes of an object, each with its place in a struct. */
struct attribute {
    const char *name;
    enum value_type type; /* VALUE_F64, an integer, or VALUE_TEXT: */
    size_t offset, size;  /* its size in the struct; 0: a pointer to an allocated text */
    bool optional;        /* if it is missing, its place is left unchanged */
    int64_t least, most;  /* least < most: other numbers are damage */
};
enum status h5_put_attributes(hid_t object, const struct attribute *attribute, unsigned count,
                              const void *from, struct error *err);
/* Texts are UTF-8; the caller owns allocated ones even after a failure. */
enum status h5_get_attributes(void *to, hid_t object, const struct attribute *attribute,
                              unsigned count, struct error *err);

/* Creates a dimension scale without values (netCDF's convention) at the root of the file, unless it
 * already exists. */
enum status h5_create_scale(hid_t file, const char *name, uint64_t length, struct error *err);
enum status h5_attach_scale(hid_t file, hid_t dataset, unsigned axis, const char *scale,
                            struct error *err);

/* --- virtual datasets ------------------------------------------------------------------------ */

/* Provides those of merged files (parts.h); NULL if no such file is open. */
struct h5_virtual {
    struct raw *(*find)(hid_t dataset);        /* NULL: not examined */
    const char *(*bad_mapping)(hid_t dataset); /* the problem, or NULL */
};
void h5_set_virtual(const struct h5_virtual *reader);

/* Whether a dataset opened by h5_open_dataset shows rows of other files. */
bool h5_is_virtual(hid_t dataset);
/* Like raw_open, but also accepts these. */
enum status h5_open_raw(struct raw **out, hid_t dataset, struct error *err);

/* --- reading what others may have written ---------------------------------------------------- */

/* True if `name` is a hard link in `parent` to an object of that type; soft and external links
 * count as missing, as do unreadable objects (h5_check_reads). */
bool h5_is_object(hid_t parent, const char *name, H5O_type_t type);

enum status h5_open_group(hid_t *group, hid_t parent, const char *name, struct error *err);

/* Opens a dataset and checks its type, its rank (1 or 2), that its data lies in this file (or its parts, parts.h)
 * and that the file is large enough for it. */
enum status h5_open_dataset(hid_t *dataset, hid_t parent, const char *name, enum value_type type,
                            int rank, hsize_t *dimensions, struct error *err);

/* The problem with the storage of a dataset's `bytes` bytes, or NULL: its data must lie in this
 * file or its parts, which must be large enough. */
const char *h5_bad_storage(hid_t dataset, uint64_t bytes, size_t element_bytes);

/* A scalar integer attribute of any width; false if it is missing or of a different kind. */
bool h5_get_integer(hid_t object, const char *name, int64_t *value);

/* A scalar text attribute, of variable or fixed length, as a new string of at most H5_TEXT_MOST
 * bytes. *text is NULL if the attribute is missing and not `required`. */
enum status h5_get_text(char **text, hid_t object, const char *name, bool required,
                        struct error *err);

/* A required one, which must be UTF-8 and fit into `size` bytes. */
enum status h5_get_short_text(void *text, size_t size, hid_t object, const char *name,
                              struct error *err);

/* The names of the members of a group, sorted by their bytes; STATUS_FAILED if there are more than
 * 65,536. */
struct h5_names {
    char **name;
    unsigned count;
};
void h5_free_names(struct h5_names *names);
/* Declares lists, which must be initialised, that are freed when their scope is left. */
#define H5_SCOPED_NAMES __attribute__((cleanup(h5_free_names))) struct h5_names
enum status h5_list(struct h5_names *names, hid_t group, struct error *err);
/* All attributes of an object. */
enum status h5_list_attributes(struct h5_names *names, hid_t object, struct error *err);

#endif

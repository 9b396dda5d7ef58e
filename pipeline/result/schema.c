/* schema.c: the tables behind schema.h. */
#include "result/schema.h"
#include "base/clock.h"
#include "base/path.h"
#include "version_generated.h"
#include <stdio.h>
#include <string.h>

#define IMAGE(name, type, width)                                                                   \
    {                                                                                              \
#name, type, width, offsetof(struct result_image, name), NULL, false                       \
    }
#define FAILURE(name, type, width)                                                                 \
    {                                                                                              \
#name, type, width, offsetof(struct failure_row, name), NULL, false                        \
    }
#define FAILURE_AS(name, type, as, width)                                                          \
    {                                                                                              \
        as, type, width, offsetof(struct failure_row, name), NULL, false                           \
    }

const struct table image_table = {
    .group = "images",
    .axis = "image",
    .row_size = sizeof(struct result_image),
    .count = 13,
    .column =
        {
            IMAGE(path, VALUE_TEXT, 1),
            IMAGE(width, VALUE_U32, 1),
            IMAGE(height, VALUE_U32, 1),
            IMAGE(orientation, VALUE_U8, 1),
            IMAGE(channels, VALUE_U8, 1),
            IMAGE(source, VALUE_U16, 1),
            [IMAGE_BYTES] = IMAGE(bytes, VALUE_U64, 1),
            IMAGE(mtime_ns, VALUE_I64, 1),
            IMAGE(inode, VALUE_U64, 1),
            IMAGE(ctime_ns, VALUE_I64, 1),
            [IMAGE_DIGEST] = {"digest", VALUE_U64, 2, offsetof(struct result_image, digest),
                              DIGEST_AXIS, false},
            IMAGE(format, VALUE_TEXT8, 1),
            [IMAGE_CODE] = {"code", VALUE_U8, 32, offsetof(struct result_image, code), CODE_AXIS,
                            true},
        },
};

const struct table name_table = {
    .group = "images",
    .axis = "image",
    .row_size = sizeof(struct result_image),
    .count = 2,
    .column = {IMAGE(path, VALUE_TEXT, 1), IMAGE(source, VALUE_U16, 1)},
};

#define SIDECAR_TABLE(cls)                                                                         \
    {                                                                                              \
        .group = "images", .axis = "image", .row_size = sizeof(struct sidecar_row), .count = 2,    \
        .column = {                                                                                \
            {"key", VALUE_TEXT, 1, offsetof(struct sidecar_row, key), NULL, false},                \
            cls                                                                                    \
        }                                                                                          \
    }
#define SIDECAR_CLASS(type, member)                                                                \
    {                                                                                              \
        "cls", type, 1, offsetof(struct sidecar_row, member), NULL, false                          \
    }
const struct table sidecar_text_table = SIDECAR_TABLE(SIDECAR_CLASS(VALUE_TEXT, cls));
const struct table sidecar_number_table = SIDECAR_TABLE(SIDECAR_CLASS(VALUE_I64, number));

const struct table failure_table = {
    .group = "failures",
    .axis = "failure",
    .row_size = sizeof(struct failure_row),
    .count = 9,
    .column =
        {
            FAILURE(path, VALUE_TEXT, 1),
            FAILURE(reason, VALUE_TEXT16, 1),
            FAILURE(message, VALUE_TEXT, 1),
            FAILURE(bytes, VALUE_U64, 1),
            FAILURE_AS(error_number, VALUE_I32, "errno", 1),
            FAILURE(source, VALUE_U16, 1),
            FAILURE(mtime_ns, VALUE_I64, 1),
            FAILURE(inode, VALUE_U64, 1),
            FAILURE(ctime_ns, VALUE_I64, 1),
        },
};

char *axis_name(char buffer[AXIS_NAME_MAX], const char *prefix, const char *name)
{
    snprintf(buffer, AXIS_NAME_MAX, "%s_%s", prefix, name);
    return buffer;
}

bool failure_row_reason(enum reason *reason, const struct failure_row *row)
{
    char name[sizeof row->reason + 1] = "";
    memcpy(name, row->reason, sizeof row->reason);
    *reason = reason_from_name(name);
    return *reason != REASON_NONE && *reason != REASON_COUNT;
}

enum status schema_put_root(hid_t file, struct error *err)
{
    int32_t format = SCHEMA_FORMAT;
    char created[32];
    clock_iso8601(created, clock_created());
    if (h5_put_number(file, "clpipe_format", VALUE_I32, &format, err) ||
        h5_put_text(file, "clpipe_version", CLPIPE_VERSION, err) ||
        h5_put_text(file, "created", created, err))
        return STATUS_FAILED;
    return STATUS_OK;
}

enum status schema_put_sources(hid_t file, hid_t images, const char *const *sources,
                               const char *const *directories, unsigned count, struct error *err)
{
    const enum status status =
        h5_put_texts(file, images, "sources", sources, count, SOURCE_AXIS, err);
    return status ? status
                  : h5_put_texts(file, images, DIRECTORIES, directories, count, SOURCE_AXIS, err);
}

bool schema_name_valid(const char *name)
{
    size_t length = strlen(name);
    return length > 0 && length < FEATURE_NAME_MAX && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0 &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-") ==
               length;
}

enum status schema_check_name(const char *name, const char *what, struct error *err)
{
    return schema_name_valid(name)
               ? STATUS_OK
               : error_set(err, STATUS_USAGE,
                           "'%s' cannot be the name of a %s: use 1 to %d letters, digits, '_', "
                           "'.' and '-'",
                           PATH_TEXT_IN(128, name), what, FEATURE_NAME_MAX - 1);
}

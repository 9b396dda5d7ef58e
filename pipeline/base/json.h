/* json.h: writes JSON (RFC 8259) into a growing buffer. Strings are escaped and must be valid UTF-8
 * (path_to_utf8). Numbers are written so that they read back exactly; NaN and infinities become
 * null. The writer adds commas and indentation. json_finish reports a failed allocation.
 *
 * jansson only parses (result/parameters.h): it cannot write a document in pieces, raw values, or
 * numbers with no more digits than necessary. Some of its functions have the same names as these,
 * which would interpose them if they were not hidden. */
#ifndef CLPIPE_BASE_JSON_H
#define CLPIPE_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct json {
    char *text;
    size_t length, capacity;
    int depth;
    bool first, failed, compact;
    bool script; /* set after json_init: also escapes what could end a script or its lines */
};

/* compact: no white space (for attributes); otherwise indented by two. */
void json_init(struct json *json, bool compact);
/* `key` is NULL inside arrays and for the outermost value. */
void json_open_object(struct json *json, const char *key);
void json_close_object(struct json *json);
void json_open_array(struct json *json, const char *key);
void json_close_array(struct json *json);
void json_string(struct json *json, const char *key, const char *value);
void json_uint(struct json *json, const char *key, uint64_t value);
void json_int(struct json *json, const char *key, int64_t value);
void json_double(struct json *json, const char *key, double value);
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);
/* An already written JSON value. */
void json_raw(struct json *json, const char *key, const char *value);
/* The finished text (owned by the writer, no trailing newline), or NULL if memory ran out. */
const char *json_finish(struct json *json);
/* The same, but the caller owns and frees the text; the writer is empty afterwards. */
char *json_take(struct json *json);
void json_clear(struct json *json);

#pragma GCC visibility pop

#endif

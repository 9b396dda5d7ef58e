/* json.c: a JSON writer that keeps track of commas, indentation and its own failed allocations. */
#include "base/json.h"
#include "base/decimal.h"
#include "base/text.h"
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void json_init(struct json *json, bool compact)
{
    *json = (struct json){.first = true, .compact = compact};
}

void json_clear(struct json *json)
{
    free(json->text);
    json_init(json, json->compact);
}

static void append(struct json *json, const char *text, size_t length)
{
    if (json->failed)
        return;
    if (length >= json->capacity - json->length) {
        size_t capacity = json->capacity ? json->capacity : 256;
        while (capacity <= SIZE_MAX / 2 && length >= capacity - json->length)
            capacity *= 2;
        char *grown = length < capacity - json->length ? realloc(json->text, capacity) : NULL;
        if (!grown) {
            json->failed = true;
            return;
        }
        json->text = grown;
        json->capacity = capacity;
    }
    memcpy(json->text + json->length, text, length);
    json->length += length;
    json->text[json->length] = 0;
}

static void append_text(struct json *json, const char *text)
{
    append(json, text, strlen(text));
}

/* Would the character be unsafe in a script: '<', or one of Unicode's separators, which end a line there? */
static bool is_unsafe(const char *character)
{
    return *character == '<' || strncmp(character, "\xe2\x80\xa8", 3) == 0 ||
           strncmp(character, "\xe2\x80\xa9", 3) == 0;
}

static void append_quoted(struct json *json, const char *value)
{
    append(json, "\"", 1);
    for (size_t length = strlen(value); length > 0;) {
        /* Appends the longest run that needs no escaping at once. */
        size_t run = 0, n = 0;
        while (run < length) {
            n = utf8_sequence(value + run, length - run);
            if (n == 0 || value[run] == '"' || value[run] == '\\' ||
                (unsigned char)value[run] < 0x20 || (json->script && is_unsafe(value + run)))
                break;
            run += n;
        }
        append(json, value, run);
        value += run;
        length -= run;
        if (length == 0)
            break;
        char escaped[8];
        if (n == 0)
            snprintf(escaped, sizeof escaped, "\\ufffd");
        else if (*value == '"' || *value == '\\')
            snprintf(escaped, sizeof escaped, "\\%c", *value);
        else if (*value == '\n')
            snprintf(escaped, sizeof escaped, "\\n");
        else if (*value == '\t')
            snprintf(escaped, sizeof escaped, "\\t");
        else if (n == 3)
            snprintf(escaped, sizeof escaped, "\\u%04x", value[2] == '\xa8' ? 0x2028u : 0x2029u);
        else
            snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned)(unsigned char)*value);
        append_text(json, escaped);
        value += n ? n : 1;
        length -= n ? n : 1;
    }
    append(json, "\"", 1);
}

static void new_line(struct json *json)
{
    if (json->compact)
        return;
    append(json, "\n", 1);
    for (int i = 0; i < json->depth; i++)
        append(json, "  ", 2);
}

/* Writes what precedes a value: comma, line, key. */
static void begin(struct json *json, const char *key)
{
    assert(json->depth > 0 || json->first);
    if (!json->first)
        append(json, ",", 1);
    if (json->depth > 0)
        new_line(json);
    json->first = false;
    if (key) {
        append_quoted(json, key);
        append_text(json, json->compact ? ":" : ": ");
    }
}

static void open_container(struct json *json, const char *key, const char *bracket)
{
    begin(json, key);
    append(json, bracket, 1);
    json->depth++;
    json->first = true;
}

static void close_container(struct json *json, const char *bracket)
{
    assert(json->depth > 0);
    json->depth--;
    if (!json->first)
        new_line(json);
    append(json, bracket, 1);
    json->first = false;
}

void json_open_object(struct json *json, const char *key)
{
    open_container(json, key, "{");
}

void json_close_object(struct json *json)
{
    close_container(json, "}");
}

void json_open_array(struct json *json, const char *key)
{
    open_container(json, key, "[");
}

void json_close_array(struct json *json)
{
    close_container(json, "]");
}

void json_string(struct json *json, const char *key, const char *value)
{
    begin(json, key);
    append_quoted(json, value);
}

void json_uint(struct json *json, const char *key, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    json_raw(json, key, text);
}

void json_int(struct json *json, const char *key, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    json_raw(json, key, text);
}

void json_double(struct json *json, const char *key, double value)
{
    if (!isfinite(value)) {
        json_null(json, key);
        return;
    }
    char text[FLOAT64_TEXT];
    json_raw(json, key, format_float64(text, value));
}

void json_bool(struct json *json, const char *key, bool value)
{
    json_raw(json, key, value ? "true" : "false");
}

void json_null(struct json *json, const char *key)
{
    json_raw(json, key, "null");
}

void json_raw(struct json *json, const char *key, const char *value)
{
    begin(json, key);
    append_text(json, value);
}

const char *json_finish(struct json *json)
{
    assert(json->depth == 0 && !json->first);
    return json->failed ? NULL : json->text;
}

char *json_take(struct json *json)
{
    char *text = (char *)json_finish(json);
    if (text)
        json->text = NULL;
    json_clear(json);
    return text;
}

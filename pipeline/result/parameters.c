/* parameters.c: parses with jansson within limits, and describes differences.
 *
 * jansson rather than cJSON: it keeps 64-bit integers, so that two seeds above 2^53 stay different,
 * refuses duplicate keys, and limits the depth itself. */
#include "result/parameters.h"
#include "base/text.h"
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The kernel passes arguments of 6 MiB at most. */
#define MOST_BYTES (8u << 20)

struct parameters {
    json_t *root;
};

/* NULL: not JSON, or too large. Integers beyond 64 bits become floating-point. */
static json_t *load_json(const char *text, size_t flags, json_error_t *error)
{
    const size_t length = strlen(text);
    if (length > MOST_BYTES)
        return NULL;
    json_t *value = json_loadb(text, length, flags | JSON_REJECT_DUPLICATES, error);
    return value ? value
                 : json_loadb(text, length,
                              flags | JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, error);
}

enum status parameters_open(struct parameters **out, const char *json, struct error *err)
{
    *out = NULL;
    json_error_t error;
    json_t *root = load_json(json, 0, &error);
    struct parameters *parameters = calloc(1, sizeof *parameters);
    if (!parameters || !json_is_object(root)) {
        json_decref(root);
        free(parameters);
        return error_set(err, STATUS_FAILED, "the parameters are not a JSON object");
    }
    parameters->root = root;
    *out = parameters;
    return STATUS_OK;
}

void parameters_close(struct parameters **parameters)
{
    if (!parameters || !*parameters)
        return;
    json_decref((*parameters)->root);
    free(*parameters);
    *parameters = NULL;
}

const char *parameters_member(const struct parameters *parameters, const char *key)
{
    return json_string_value(json_object_get(parameters->root, key));
}

const char *parameters_entry(const struct parameters *parameters, const char *key, unsigned i,
                             const char **name)
{
    json_t *member = json_object_get(parameters->root, key);
    if (json_is_array(member))
        return json_string_value(json_array_get(member, i));
    void *at = json_object_iter(member);
    while (at && i-- > 0)
        at = json_object_iter_next(member, at);
    if (!at)
        return NULL;
    if (name)
        *name = json_object_iter_key(at);
    return json_string_value(json_object_iter_value(at));
}

bool parameters_item(const struct parameters *parameters, const char *key, unsigned i,
                     const char *text_key, const char **text, const char *real_key, double *real)
{
    const json_t *item = json_array_get(json_object_get(parameters->root, key), i);
    const json_t *number = json_object_get(item, real_key);
    *text = json_string_value(json_object_get(item, text_key));
    *real = json_number_value(number);
    return *text && json_is_number(number);
}

unsigned parameters_number(const struct parameters *parameters, const char *key, unsigned otherwise)
{
    const json_t *member = json_object_get(parameters->root, key);
    const json_int_t value = json_integer_value(member);
    return json_is_integer(member) && value >= 0 && value <= INT32_MAX ? (unsigned)value
                                                                       : otherwise;
}

bool parameters_integer(const struct parameters *parameters, const char *key, uint64_t *value)
{
    const json_t *member = json_object_get(parameters->root, key);
    if (!json_is_integer(member) || json_integer_value(member) < 0)
        return false;
    *value = (uint64_t)json_integer_value(member);
    return true;
}

bool parameters_real(const struct parameters *parameters, const char *key, double *value)
{
    const json_t *member = json_object_get(parameters->root, key);
    if (!json_is_number(member))
        return false;
    *value = json_number_value(member);
    return true;
}

bool parameters_boolean(const struct parameters *parameters, const char *key, bool *value)
{
    const json_t *member = json_object_get(parameters->root, key);
    if (!json_is_boolean(member))
        return false;
    *value = json_is_true(member);
    return true;
}

bool parameters_archives(const char *json)
{
    struct parameters *parameters;
    bool archives = false;
    if (parameters_open(&parameters, json, NULL))
        return false;
    parameters_boolean(parameters, "archives", &archives);
    parameters_close(&parameters);
    return archives;
}

char *parameters_text(char *buffer, size_t size, const char *json, const char *key)
{
    struct parameters *parameters;
    const char *text = NULL;
    buffer[0] = 0;
    if (parameters_open(&parameters, json, NULL))
        return buffer;
    text = parameters_member(parameters, key);
    if (text && strlen(text) < size)
        strcpy(buffer, text);
    parameters_close(&parameters);
    return buffer;
}

size_t parameters_length(const char *text)
{
    json_error_t error = {.position = 0};
    json_t *value = load_json(text, JSON_DISABLE_EOF_CHECK | JSON_DECODE_ANY, &error);
    json_decref(value);
    return value && error.position > 0 ? (size_t)error.position : 0;
}

/* --- differences ----------------------------------------------------------------------------- */

/* Equal in meaning: 1 and 1.0 are the same number. */
static bool same_value(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b) && json_typeof(a) != json_typeof(b))
        return json_number_value(a) == json_number_value(b);
    return json_equal(a, b);
}

/* What does not fit is truncated. */
struct line {
    char *text;
    size_t size;
};

static void line_add(const struct line *line, const char *text)
{
    text_add(line->text, line->size, "", "%s", text);
}

static void line_add_value(const struct line *line, const json_t *value)
{
    char *dumped = NULL;
    if (!value)
        line_add(line, "none");
    else if (json_is_string(value))
        line_add(line, json_string_value(value));
    else if ((dumped = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15))))
        line_add(line, dumped);
    free(dumped);
}

/* Entries [first, last) of a list. A feature "NAME=SPEC" is represented by its name, unless the
 * other list has a different one of that name in its [first, other_last). */
static void line_add_entries(const struct line *line, const json_t *list, size_t first, size_t last,
                             const json_t *other, size_t other_last)
{
    if (first == last)
        line_add(line, "none");
    for (size_t i = first; i < last; i++) {
        const json_t *entry = json_array_get(list, i);
        const char *text = json_string_value(entry), *end = text ? strchr(text, '=') : NULL;
        for (size_t j = first; end && j < other_last; j++) {
            const char *theirs = json_string_value(json_array_get(other, j));
            if (theirs && strncmp(text, theirs, (size_t)(end - text) + 1) == 0)
                end = NULL;
        }
        line_add(line, i > first ? ", " : "");
        if (end)
            text_add(line->text, line->size, "", "%.*s", (int)(end - text), text);
        else
            line_add_value(line, entry);
    }
}

static void line_add_difference(const struct line *line, const char *key, const json_t *there,
                                const json_t *here, const char *who)
{
    const size_t a = json_array_size(there), b = json_array_size(here);
    const bool lists = json_is_array(there) && json_is_array(here);
    size_t first = 0, last = 0; /* leaves out the common beginning and end */
    while (first < a && first < b &&
           same_value(json_array_get(there, first), json_array_get(here, first)))
        first++;
    while (last < a - first && last < b - first &&
           same_value(json_array_get(there, a - 1 - last), json_array_get(here, b - 1 - last)))
        last++;
    text_add(line->text, line->size, ". ", "%s: %s has ", key, who);
    if (lists)
        line_add_entries(line, there, first, a - last, here, b - last);
    else
        line_add_value(line, there);
    line_add(line, "; the command asks for ");
    if (lists)
        line_add_entries(line, here, first, b - last, there, a - last);
    else
        line_add_value(line, here);
}

/* Describes every member that differs; members that are objects in both are compared recursively,
 * and come last. */
static void line_add_members(const struct line *line, json_t *there, json_t *here, const char *who)
{
    const char *key;
    json_t *value;
    json_object_foreach(there, key, value)
    {
        json_t *other = json_object_get(here, key);
        if (same_value(value, other))
            continue;
        if (json_is_object(value) && json_is_object(other)) {
            line_add_members(line, value, other, who);
            if (*line->text)
                return;
        } else {
            line_add_difference(line, key, value, other, who);
        }
    }
    json_object_foreach(here, key, value) if (!json_object_get(there, key))
        line_add_difference(line, key, NULL, value, who);
}

bool parameters_difference(char *buffer, size_t size, const char *there, const char *here,
                           const char *who)
{
    const struct line line = {buffer, size};
    buffer[0] = 0;
    if (strcmp(there, here) == 0)
        return false;
    json_error_t error;
    json_t *a = load_json(there, 0, &error), *b = load_json(here, 0, &error);
    if (json_is_object(a) && json_is_object(b))
        line_add_members(&line, a, b, who);
    else
        snprintf(buffer, size, "its parameters cannot be read");
    json_decref(a);
    json_decref(b);
    return buffer[0];
}

const char *parameters_library(void)
{
    return JANSSON_VERSION;
}

/* stored_options.c: one row for each option that is stored, in the order of the keys, which is part of a file's
 * identity. */
#include "cli/stored_options.h"
#include "base/text.h"
#include "cli/report_json.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum role {
    SHAPES, /* values: must be as in the file */
    LIMITS, /* which files are failures: may be raised */
    CHOOSES /* files: may change */
};

static const struct stored_option {
    const char *name; /* its key has _ instead of - */
    enum role role;
    bool sparse; /* not stored if it is off or the first of its words */
} rows[] = {{"alpha", SHAPES, false},
            {"icc", SHAPES, true},
            {"max-pixels", LIMITS, false},
            {"max-scans", LIMITS, false},
            {"decode-scale", SHAPES, false},
            {"max-decode-seconds", LIMITS, true},
            {"follow-symlinks", CHOOSES, false},
            {"archives", CHOOSES, true},
            {"sidecar", CHOOSES, true},
            {"hidden", CHOOSES, false},
            {"include", CHOOSES, false},
            {"exclude", CHOOSES, false}};

#define ROWS (sizeof rows / sizeof *rows)

static const struct option *row_of(const struct options *options,
                                   const struct stored_option *stored)
{
    return option_find(options->command, stored->name, strlen(stored->name));
}

static const char *key_of(char key[32], const char *name)
{
    snprintf(key, 32, "%s", name);
    for (char *at = key; *at; at++)
        *at = *at == '-' ? '_' : *at;
    return key;
}

/* The fewest digits needed. */
static void real_text(char *text, size_t size, double value)
{
    snprintf(text, size, "%.15g", value);
    if (strtod(text, NULL) != value)
        snprintf(text, size, "%.17g", value);
}

/* The value of an option that is not a list, as typed. */
static const char *text_of(char text[64], const struct options *options, const struct option *row)
{
    const void *value = option_at(options, row->name);
    if (row->type == OPTION_CHOICE)
        return option_choice(text, 64, options, row->name);
    if (row->type == OPTION_FLAG)
        snprintf(text, 64, "%s", *(const bool *)value ? "true" : "0");
    else if (row->type == OPTION_NUMBER)
        snprintf(text, 64, "%llu", (unsigned long long)*(const uint64_t *)value);
    else
        real_text(text, 64, *(const double *)value);
    return text;
}

void stored_write(struct json *json, const struct options *options)
{
    for (size_t i = 0; i < ROWS; i++) {
        const struct option *row = row_of(options, &rows[i]);
        const void *value = option_at(options, row->name);
        char key[32], text[64];
        uint64_t number;
        key_of(key, rows[i].name);
        if (row->type == OPTION_LIST) {
            const struct text_list *list = value;
            json_open_array(json, key);
            for (unsigned j = 0; j < list->count; j++)
                report_bytes(json, NULL, list->text[j]);
            json_close_array(json);
            continue;
        }
        text_of(text, options, row);
        if (rows[i].sparse && strcmp(text, row->initial ? row->initial : "0") == 0)
            continue;
        if (row->type == OPTION_FLAG)
            json_bool(json, key, *(const bool *)value);
        else if (row->type == OPTION_SECONDS)
            json_double(json, key, *(const double *)value);
        else if (parse_u64(&number, text, 0, UINT64_MAX))
            json_uint(json, key, number);
        else
            json_string(json, key, text);
    }
}

const char *stored_text(char *buffer, size_t size, const struct parameters *parameters,
                        const char *name)
{
    char key[32];
    uint64_t number;
    double real;
    const char *text = parameters_member(parameters, key_of(key, name));
    if (text)
        return text;
    if (parameters_integer(parameters, key, &number))
        snprintf(buffer, size, "%llu", (unsigned long long)number);
    else if (parameters_real(parameters, key, &real))
        real_text(buffer, size, real);
    else
        return NULL;
    return buffer;
}

enum status stored_take(struct options *options, const struct parameters *parameters,
                        struct error *err)
{
    for (size_t i = 0; i < ROWS; i++) {
        const struct option *row = row_of(options, &rows[i]);
        char key[32], buffer[64];
        const char *text = NULL;
        bool on;
        key_of(key, rows[i].name);
        if (options_given(options, row->name))
            continue;
        if (row->type == OPTION_FLAG && parameters_boolean(parameters, key, &on) && on)
            text = "on";
        else if (row->type != OPTION_LIST && row->type != OPTION_FLAG)
            text = stored_text(buffer, sizeof buffer, parameters, row->name);
        /* Values that this version does not accept are ignored. */
        if (text)
            option_set(options, row, text, NULL);
        for (unsigned j = 0;
             row->type == OPTION_LIST && (text = parameters_entry(parameters, key, j, NULL)); j++)
            if (option_set(options, row, text, err) != STATUS_OK)
                return STATUS_FAILED;
    }
    return STATUS_OK;
}

const char *stored_differences(char *buffer, size_t size, bool *raised,
                               const struct options *options, const struct parameters *parameters)
{
    *buffer = '\0';
    *raised = false;
    for (size_t i = 0; i < ROWS; i++) {
        const struct option *row = row_of(options, &rows[i]);
        char text[64], mine[64];
        const char *theirs = stored_text(text, sizeof text, parameters, row->name);
        if (rows[i].role == CHOOSES || !options_given(options, row->name))
            continue;
        text_of(mine, options, row);
        if (rows[i].role == LIMITS && theirs && strtod(mine, NULL) > strtod(theirs, NULL)) {
            *raised = true;
            continue;
        }
        theirs = theirs ? theirs : row->initial ? row->initial : "none";
        if (strcmp(theirs, mine) != 0)
            text_add(buffer, size, ", ", "--%s is %s there and %s here", row->name, theirs, mine);
    }
    return buffer;
}

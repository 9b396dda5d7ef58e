/* parameters.c: reading single keys of canonical JSON. */
#include "clustering/parameters.h"
#include <stdio.h>
#include <string.h>

/* The raw value of a top-level key in compact canonical JSON; its length, or 0. */
static size_t field(const char **value, const char *json, const char *key)
{
    char pattern[80];
    snprintf(pattern, sizeof pattern, "\"%s\":", key);
    const char *at = strstr(json, pattern);
    if (!at)
        return 0;
    at += strlen(pattern);
    *value = at;
    size_t length = 0;
    bool quoted = false;
    for (; at[length] && (quoted || (at[length] != ',' && at[length] != '}')); length++) {
        if (quoted && at[length] == '\\' && at[length + 1])
            length++;
        else if (at[length] == '"')
            quoted = !quoted;
    }
    return length;
}

void parameters_text(char *text, size_t size, const char *json, const char *key)
{
    const char *value = "";
    size_t length = field(&value, json, key);
    bool quoted = length >= 2 && value[0] == '"';
    snprintf(text, size, "%.*s", quoted ? (int)length - 2 : 0, quoted ? value + 1 : "");
}

bool parameters_differ(char *text, size_t size, const char *there, const char *here)
{
    static const char *const keys[] = {"k",    "feature",    "spec",    "metric",
                                       "init", "seed",       "n_init",  "max_iter",
                                       "tol",  "mini_batch", "weights", "clusters"};
    if (strcmp(there, here) == 0)
        return false;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *old = "", *new = "";
        size_t old_length = field(&old, there, keys[i]), new_length = field(&new, here, keys[i]);
        if (old_length != new_length || memcmp(old, new, old_length) != 0) {
            snprintf(text, size, "%s is %.*s there and %.*s here", keys[i],
                     old_length ? (int)old_length : 7, old_length ? old : "not set",
                     new_length ? (int)new_length : 7, new_length ? new : "not set");
            return true;
        }
    }
    snprintf(text, size, "it was made by another version of clpipe");
    return true;
}

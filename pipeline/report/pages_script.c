/* pages_script.c: turns JSON into a script. */
#include "report/pages_script.h"
#include "base/text.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In JSON these only occur in strings. Returns the replacement of the character at `at`, which has
 * *length bytes; NULL: unchanged. */
static const char *escape_of(const char *at, size_t *length)
{
    static const char separators[2][4] = {"\xe2\x80\xa8", "\xe2\x80\xa9"};
    *length = 1;
    if (*at == '<')
        return "\\u003c";
    if (*at != separators[0][0])
        return NULL;
    *length = 3;
    if (strncmp(at, separators[0], 3) == 0)
        return "\\u2028";
    if (strncmp(at, separators[1], 3) == 0)
        return "\\u2029";
    return NULL;
}

static size_t escaped_size(const char *text)
{
    size_t size = 0, length;
    for (; *text; text++)
        size += escape_of(text, &length) ? 6 : 1;
    return size;
}

static char *append_escaped(char *to, const char *text)
{
    while (*text) {
        size_t length;
        const char *escape = escape_of(text, &length);
        if (escape) {
            memcpy(to, escape, 6);
            to += 6;
            text += length;
        } else {
            *to++ = *text++;
        }
    }
    return to;
}

enum status script_write(struct json *json, const char *kind, int64_t number,
                         struct output_directory *directory, uint64_t *bytes, struct error *err)
{
    char name[96], head[96];
    const char *text = json_finish(json);
    if (!text) {
        const size_t length = json->length;
        json_clear(json);
        return error_memory(err, length, "data of the pages");
    }
    if (number >= 0)
        snprintf(name, sizeof name, "data/%s-%lld.js", kind, (long long)number);
    else
        snprintf(name, sizeof name, "data/%s.js", kind);
    snprintf(head, sizeof head, "clpipe(\"%s\",%lld,", kind, (long long)(number < 0 ? 0 : number));
    const size_t size = strlen(head) + escaped_size(text) + 3;
    char *script = malloc(size + 1);
    enum status status = script ? STATUS_OK : error_memory(err, size, "data of the pages");
    if (script) {
        char *end = append_escaped(stpcpy(script, head), text);
        end = stpcpy(end, ");\n");
        *bytes += (uint64_t)(end - script);
        status = output_directory_write(directory, name, script, (size_t)(end - script), err);
    }
    free(script);
    json_clear(json);
    return status;
}

void script_number(struct json *json, const char *key, double value, int digits)
{
    char text[40];
    if (!isfinite(value)) {
        json_null(json, key);
        return;
    }
    locale_t before = uselocale(text_c_locale());
    snprintf(text, sizeof text, "%.*g", digits, value);
    uselocale(before);
    json_raw(json, key, text);
}

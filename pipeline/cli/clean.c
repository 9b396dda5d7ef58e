/* clean.c: escaping and quoting of text from files. */
#include "cli/clean.h"
#include "base/path.h"
#include <stdlib.h>
#include <string.h>

void sink_clean(struct sink *sink, const char *text)
{
    size_t size = 4 * strlen(text) + 16;
    char *clean = malloc(size);
    if (!clean) {
        sink_text(sink, "?");
        return;
    }
    sink_text(sink, path_for_message(clean, size, text));
    free(clean);
}

void sink_field(struct sink *sink, const char *text, char separator)
{
    char special[] = {'"', '\r', '\n', separator, 0};
    if (!text[strcspn(text, special)]) {
        sink_text(sink, text);
        return;
    }
    sink_text(sink, "\"");
    for (const char *quote = strchr(text, '"'); quote; quote = strchr(text, '"')) {
        sink_write(sink, text, (size_t)(quote - text) + 1);
        sink_text(sink, "\"");
        text = quote + 1;
    }
    sink_text(sink, text);
    sink_text(sink, "\"");
}

/* quote.c: words for a shell, so that a command in a message can be copied and run. */
#include "cli/quote.h"
#include "base/text.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *quote_word(char *buffer, size_t size, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./,:=@%+";
    if (word[0] && word[strspn(word, plain)] == 0) {
        snprintf(buffer, size, "%s", word);
        return buffer;
    }
    bool text = true;
    for (size_t i = 0, length = strlen(word), n; text && i < length; i += n) {
        n = utf8_sequence(word + i, length - i);
        text = n > 0 && !utf8_is_hidden(word + i, n);
    }
    size_t used = (size_t)snprintf(buffer, size, "%s", text ? "'" : "$'");
    for (const unsigned char *at = (const unsigned char *)word; *at && used + 8 < size; at++) {
        char *put = buffer + used;
        if (*at == '\'')
            used += (size_t)snprintf(put, size - used, "%s", text ? "'\\''" : "\\'");
        else if (!text && *at == '\\')
            used += (size_t)snprintf(put, size - used, "\\\\");
        else if (!text && (*at < ' ' || *at >= 127))
            used += (size_t)snprintf(put, size - used, "\\%03o", *at);
        else
            used += (size_t)snprintf(put, size - used, "%c", *at);
    }
    if (used + 1 < size)
        snprintf(buffer + used, size - used, "'");
    return buffer;
}

char *quote_command(int argc, char *const *argv)
{
    static const char program[] = "clpipe";
    size_t size = sizeof program;
    for (int i = 1; i < argc; i++)
        size += 4 * strlen(argv[i]) + 9;
    char *line = malloc(size);
    if (!line)
        return NULL;
    memcpy(line, program, sizeof program);
    size_t used = sizeof program - 1;
    for (int i = 1; i < argc; i++) {
        line[used++] = ' ';
        quote_word(line + used, size - used, argv[i]);
        used += strlen(line + used);
    }
    return line;
}

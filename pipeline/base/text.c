/* text.c: UTF-8 sequences and texts that are safe to print. */
#include "base/text.h"
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t utf8_sequence(const char *bytes, size_t length)
{
    const unsigned char *b = (const unsigned char *)bytes;
    if (length == 0 || b[0] == 0)
        return 0;
    if (b[0] < 0x80)
        return 1;
    /* The range of the second byte excludes overlong forms, surrogates and > U+10FFFF. */
    size_t need;
    unsigned char low = 0x80, high = 0xbf;
    if (b[0] >= 0xc2 && b[0] <= 0xdf) {
        need = 2;
    } else if (b[0] >= 0xe0 && b[0] <= 0xef) {
        need = 3;
        if (b[0] == 0xe0)
            low = 0xa0;
        else if (b[0] == 0xed)
            high = 0x9f;
    } else if (b[0] >= 0xf0 && b[0] <= 0xf4) {
        need = 4;
        if (b[0] == 0xf0)
            low = 0x90;
        else if (b[0] == 0xf4)
            high = 0x8f;
    } else {
        return 0;
    }
    if (length < need || b[1] < low || b[1] > high)
        return 0;
    for (size_t i = 2; i < need; i++)
        if (b[i] < 0x80 || b[i] > 0xbf)
            return 0;
    return need;
}

bool utf8_is_hidden(const char *sequence, size_t length)
{
    static const struct {
        uint32_t first, last;
    } hidden[] = {{0x0, 0x1f},        {0x7f, 0x9f},       {0xad, 0xad},       {0x600, 0x605},
                  {0x61c, 0x61c},     {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x890, 0x891},
                  {0x8e2, 0x8e2},     {0x180e, 0x180e},   {0x200b, 0x200f},   {0x2028, 0x202e},
                  {0x2060, 0x206f},   {0xfeff, 0xfeff},   {0xfff9, 0xfffb},   {0x110bd, 0x110bd},
                  {0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
                  {0xe0000, 0xe007f}};
    const unsigned char *b = (const unsigned char *)sequence;
    uint32_t point = length == 1 ? b[0] : b[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++)
        point = point << 6 | (b[i] & 0x3f);
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        if (point <= hidden[i].last)
            return point >= hidden[i].first;
    return false;
}

size_t text_clean(char *text, bool keep_layout)
{
    size_t length = strlen(text), out = 0;
    for (size_t in = 0; in < length;) {
        size_t n = utf8_sequence(text + in, length - in);
        bool layout = keep_layout && (text[in] == '\n' || text[in] == '\t');
        if (n == 0 || (utf8_is_hidden(text + in, n) && !layout)) {
            text[out++] = '?';
            in += n ? n : 1;
        } else {
            memmove(text + out, text + in, n);
            out += n;
            in += n;
        }
    }
    text[out] = 0;
    return out;
}

void text_add(char *text, size_t size, const char *separator, const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;
    if (used > 0)
        used += (size_t)snprintf(text + used, size - used, "%s", separator);
    va_start(arguments, format);
    if (used < size)
        vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}

void text_add_name(char *names, size_t size, const char *name)
{
    text_add(names, size, ", ", "%s", name);
}

void text_format(char *buffer, size_t size, const char *format, va_list arguments)
{
    if (size == 0)
        return;
    int wanted = vsnprintf(buffer, size, format, arguments);
    if (wanted < 0) {
        buffer[0] = 0;
        return;
    }
    if ((size_t)wanted >= size && size > 4) {
        /* Goes back to the start of the character that the dots would cut. */
        size_t end = size - 4;
        while (end > 0 && ((unsigned char)buffer[end] & 0xc0) == 0x80)
            end--;
        memcpy(buffer + end, "...", 4);
    }
    text_clean(buffer, false);
}

static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;
static locale_t c_locale;

static void c_locale_make(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

locale_t text_c_locale(void)
{
    pthread_once(&c_locale_once, c_locale_make);
    return c_locale;
}

void texts_free(char **texts)
{
    for (char **text = texts; text && *text; text++)
        free(*text);
    free(texts);
}

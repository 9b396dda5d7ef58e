/* text.c: UTF-8 sequences and texts that are safe to print. */
#include "base/text.h"
#include <pthread.h>
#include <stdio.h>
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

bool utf8_is_control(const char *sequence, size_t length)
{
    const unsigned char *b = (const unsigned char *)sequence;
    if (length == 1)
        return b[0] < 0x20 || b[0] == 0x7f;
    /* U+0080 to U+009F: some terminals treat U+009B as the start of an escape sequence. */
    return length == 2 && b[0] == 0xc2 && b[1] < 0xa0;
}

size_t text_clean(char *text, bool keep_layout)
{
    size_t length = strlen(text), out = 0;
    for (size_t in = 0; in < length;) {
        size_t n = utf8_sequence(text + in, length - in);
        bool layout = keep_layout && (text[in] == '\n' || text[in] == '\t');
        if (n == 0 || (utf8_is_control(text + in, n) && !layout)) {
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
        /* Back to the start of the character that the dots would cut. */
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

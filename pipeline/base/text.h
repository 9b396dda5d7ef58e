/* text.h: text for the messages of errors, failures and the log: valid UTF-8 that cannot garble a
 * terminal or read as something else, whatever the input. */
#ifndef CLPIPE_BASE_TEXT_H
#define CLPIPE_BASE_TEXT_H

#include <locale.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length (1 to 4) of the valid UTF-8 sequence that `bytes` begins with; 0 if there is none or
 * if it is a NUL. RFC 3629: no surrogates, no overlong forms. */
size_t utf8_sequence(const char *bytes, size_t length);

/* True if the valid sequence of that length is invisible and can change how the text around it is
 * shown: controls (C0, DEL, C1), format characters (Unicode's Cf: marks of direction, zero-width
 * ones), line and paragraph separators. */
bool utf8_is_hidden(const char *sequence, size_t length);

/* Replaces hidden characters and bytes that are not UTF-8 with '?', in place. keep_layout: keeps
 * newlines and tabs. Returns the new length, at most the old one. */
size_t text_clean(char *text, bool keep_layout);

/* vsnprintf, cleaned; text that does not fit is cut between characters and ends in "...". */
void text_format(char *buffer, size_t size, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));

/* Adds formatted text, after `separator` unless it is the first; truncates what does not fit. */
void text_add(char *text, size_t size, const char *separator, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Adds a name, after ", ". */
void text_add_name(char *names, size_t size, const char *name);

/* The size of a text column, counted before it is written: bytes of the longest text, and of all
 * texts. */
struct text_size {
    uint64_t width, bytes;
};
static inline void text_size_add(struct text_size *size, uint64_t length)
{
    size->width = length > size->width ? length : size->width;
    size->bytes += length;
}

/* The C locale, in which the decimal point is '.'. */
locale_t text_c_locale(void);

/* Frees texts and their list, which ends in NULL; accepts NULL. */
void texts_free(char **texts);

/* Texts of someone else, such as the values of a repeatable option, in the order given. */
struct text_list {
    const char **text;
    unsigned count;
};

#endif

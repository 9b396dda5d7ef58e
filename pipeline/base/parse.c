/* parse.c: numbers from and for users, independent of the locale: the decimal point is '.'. */
#include "base/parse.h"
#include "base/text.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads the digits at *text as a number and moves *text past them; false on none or overflow. */
static bool take_u64(uint64_t *out, const char **text)
{
    char *end;
    if (!is_digit(**text))
        return false;
    errno = 0;
    *out = strtoull(*text, &end, 10);
    *text = end;
    return errno == 0;
}

bool parse_u64(uint64_t *out, const char *text, uint64_t min, uint64_t max)
{
    uint64_t value;
    if (!take_u64(&value, &text) || *text || value < min || value > max)
        return false;
    *out = value;
    return true;
}

/* The power of two that a suffix stands for; 0 if there is none. Moves *text past it. */
static unsigned take_unit(const char **text)
{
    static const char units[] = "kmgt";
    char lower = (char)(**text | 0x20);
    const char *unit = **text ? strchr(units, lower) : NULL;
    if (!unit)
        return 0;
    (*text)++;
    if ((**text == 'i' || **text == 'I') && ((*text)[1] == 'B' || (*text)[1] == 'b'))
        *text += 2;
    else if (**text == 'B' || **text == 'b')
        *text += 1;
    return 10 * (unsigned)(unit - units + 1);
}

bool parse_size(uint64_t *out, const char *text)
{
    uint64_t whole = 0;
    /* The fraction in units of 10^-18: the rest is below a millionth of a byte. */
    const uint64_t one = UINT64_C(1000000000000000000);
    uint64_t fraction = 0;
    bool any = is_digit(*text), fractional = false;
    if (any && !take_u64(&whole, &text))
        return false;
    if (*text == '.') {
        text++;
        if (!is_digit(*text))
            return false;
        fractional = true;
        for (uint64_t place = one / 10; is_digit(*text); text++, place /= 10)
            fraction += place * (uint64_t)(*text - '0');
    } else if (!any) {
        return false;
    }
    unsigned bits = take_unit(&text);
    if (*text || (fractional && bits == 0) || whole > (UINT64_MAX >> bits))
        return false;
    uint64_t part = 0;
    for (unsigned i = 0; i < bits; i++) {
        fraction *= 2;
        part = part * 2 + (fraction >= one);
        fraction -= fraction >= one ? one : 0;
    }
    *out = (whole << bits) + part;
    return true;
}

/* A decimal number of the grammar digits [. digits] [e [+-] digits]; moves *text past it. strtod()
 * alone would also accept blanks, signs, hexadecimal, "inf" and the locale's decimal point. */
static bool take_double(double *out, const char **text)
{
    const char *t = *text;
    bool digits = is_digit(*t);
    while (is_digit(*t))
        t++;
    if (*t == '.') {
        t++;
        if (!is_digit(*t))
            return false;
        digits = true;
        while (is_digit(*t))
            t++;
    }
    if (!digits)
        return false;
    if (*t == 'e' || *t == 'E') {
        const char *e = t + 1;
        if (*e == '+' || *e == '-')
            e++;
        if (!is_digit(*e))
            return false;
        while (is_digit(*e))
            e++;
        t = e;
    }
    char *end;
    double value = strtod_l(*text, &end, text_c_locale());
    if (end != t || !isfinite(value))
        return false;
    *out = value;
    *text = t;
    return true;
}

bool parse_double(double *out, const char *text)
{
    double value;
    if (!take_double(&value, &text) || *text)
        return false;
    *out = value;
    return true;
}

/* ":MM" */
static bool take_sixtieth(uint64_t *value, const char **text)
{
    const char *at = *text + 1;
    if (**text != ':' || !take_u64(value, &at) || at - *text != 3 || *value > 59)
        return false;
    *text = at;
    return true;
}

/* HH:MM:SS or DAYS-HH[:MM[:SS]]; without days, hours may have any number of digits. */
static bool parse_clock(double *out, const char *text)
{
    uint64_t days = 0, hours, minutes = 0, seconds = 0;
    if (!take_u64(&hours, &text))
        return false;
    const bool has_days = *text == '-';
    if (has_days) {
        days = hours;
        text++;
        if (days > UINT32_MAX || !take_u64(&hours, &text) || hours > 23)
            return false;
    }
    if (hours > UINT32_MAX || (!has_days && *text != ':'))
        return false;
    /* After days, minutes and seconds may be missing. */
    const bool has_minutes = take_sixtieth(&minutes, &text);
    const bool has_seconds = has_minutes && take_sixtieth(&seconds, &text);
    if (*text || (!has_days && !has_seconds))
        return false;
    *out = (double)(days * 86400 + hours * 3600 + minutes * 60 + seconds);
    return true;
}

bool parse_seconds(double *out, const char *text)
{
    if (parse_clock(out, text))
        return true;
    static const char letters[] = "smhd";
    static const double units[] = {1, 60, 3600, 86400};
    double value;
    if (!take_double(&value, &text))
        return false;
    const char *letter = *text ? strchr(letters, *text) : NULL;
    if (letter) {
        value *= units[letter - letters];
        text++;
    }
    if (*text || !isfinite(value))
        return false;
    *out = value;
    return true;
}

bool parse_share(struct share *out, const char *text)
{
    struct share share = {0};
    uint64_t count;
    if (parse_u64(&count, text, 0, UINT64_C(1) << 53)) {
        *out = (struct share){.number = (double)count};
        return true;
    }
    share.per_cent = true;
    if (!take_double(&share.number, &text) || strcmp(text, "%") != 0 || share.number > 100)
        return false;
    *out = share;
    return true;
}

bool share_covers(const struct share *share, uint64_t count, uint64_t total)
{
    return share->per_cent ? 100 * (double)count <= share->number * (double)total
                           : (double)count <= share->number;
}

char *format_bytes(char *buffer, size_t size, uint64_t bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    /* Rounded to three digits: value * 10^power. */
    uint64_t step = 1;
    unsigned power = 0;
    for (; bytes / step >= 1000; step *= 10)
        power++;
    unsigned value = (unsigned)(bytes / step + (bytes % step >= step - step / 2));
    if (value == 1000) {
        value = 100;
        power++;
    }
    const unsigned index = (power + 2) / 3;
    unsigned places = 3 * index - power;
    for (; places > 0 && value % 10 == 0; places--)
        value /= 10;
    const unsigned divisor = places == 2 ? 100 : places == 1 ? 10 : 1;
    if (places == 0)
        snprintf(buffer, size, "%u %s", value, units[index]);
    else
        snprintf(buffer, size, "%u.%0*u %s", value / divisor, (int)places, value % divisor,
                 units[index]);
    return buffer;
}

char *format_duration(char *buffer, size_t size, double seconds)
{
    if (isnan(seconds) || seconds > 1e15) {
        snprintf(buffer, size, "unknown");
        return buffer;
    }
    if (seconds < 0)
        seconds = 0;
    unsigned hundredths = seconds < 60 ? (unsigned)(seconds * 100 + 0.5) : 6000;
    uint64_t whole = (uint64_t)(seconds + 0.5);
    if (hundredths < 1000)
        snprintf(buffer, size, "%u.%02u s", hundredths / 100, hundredths % 100);
    else if (whole < 60)
        snprintf(buffer, size, "%u s", (unsigned)whole);
    else if (whole < 3600)
        snprintf(buffer, size, "%u min %02u s", (unsigned)(whole / 60), (unsigned)(whole % 60));
    else
        snprintf(buffer, size, "%llu h %02u min", (unsigned long long)((whole + 30) / 3600),
                 (unsigned)((whole + 30) / 60 % 60));
    return buffer;
}

char *format_count(char *buffer, size_t size, uint64_t count)
{
    char text[32], *at = text + sizeof text - 1;
    *at = 0;
    for (unsigned i = 0; i == 0 || count > 0; i++, count /= 10) {
        if (i > 0 && i % 3 == 0)
            *--at = ',';
        *--at = (char)('0' + count % 10);
    }
    snprintf(buffer, size, "%s", at);
    return buffer;
}

char *format_number_of(char *buffer, size_t size, uint64_t count, const char *noun)
{
    char digits[32];
    const size_t length = strlen(noun);
    const bool hissing = length > 2 && strcmp(noun + length - 2, "ch") == 0;
    snprintf(buffer, size, "%s %s%s", format_count(digits, sizeof digits, count), noun,
             count == 1 ? ""
             : hissing  ? "es"
                        : "s");
    return buffer;
}

char *format_range(char *buffer, size_t size, const struct number_range *range)
{
    int used = snprintf(buffer, size, "%llu:%llu", (unsigned long long)range->first,
                        (unsigned long long)range->last);
    if (range->step > 1)
        snprintf(buffer + used, size - (size_t)used, ":%llu", (unsigned long long)range->step);
    return buffer;
}

/* sniff.c: what a file is, by its first bytes. Names and extensions are never looked at. */
#include "decode/codec.h"

#include <string.h>

struct magic {
    const char *format;
    unsigned offset;
    const char *bytes;
    unsigned size;
};

/* Sources: each format's specification. Longer and later magic is tried in the order given. */
static const struct magic magic[] = {
    {"jpeg", 0, "\xff\xd8\xff", 3},
    {"png", 0, "\x89PNG\r\n\x1a\n", 8},
    {"webp", 8, "WEBP", 4},
    {"tiff", 0, "II*\0", 4},
    {"tiff", 0, "MM\0*", 4},
    {"tiff", 0, "II+\0", 4},
    {"tiff", 0, "MM\0+", 4},
    {"raw", 0, "IIRO", 4},
    {"raw", 0, "IIRS", 4},
    {"raw", 0, "IIU\0", 4},
    {"raw", 0, "FUJIFILMCCD-RAW", 15},
    {"raw", 4, "ftypcrx ", 8},
    {"gif", 0, "GIF87a", 6},
    {"gif", 0, "GIF89a", 6},
    {"jxl", 0, "\xff\x0a", 2},
    {"jxl", 0, "\0\0\0\x0cJXL \r\n\x87\n", 12},
    {"jp2", 0, "\0\0\0\x0cjP  \r\n\x87\n", 12},
    {"jp2", 0, "\xff\x4f\xff\x51", 4},
    {"psd", 0, "8BPS", 4},
    {"exr", 0, "\x76\x2f\x31\x01", 4},
    {"hdr", 0, "#?RADIANCE", 10},
    {"hdr", 0, "#?RGBE", 6},
    {"qoi", 0, "qoif", 4},
    {"ico", 0, "\0\0\1\0", 4},
};

/* "BM", and the reserved bytes 0 as every writer leaves them: two letters alone are any text. */
static bool is_bmp(const uint8_t *head, size_t size)
{
    static const uint8_t reserved[4] = {0};
    return size >= 18 && head[0] == 'B' && head[1] == 'M' && memcmp(head + 6, reserved, 4) == 0;
}

static bool is_blank(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* "P1" to "P6", "Pf" and "PF", then white space or a comment, then a number: two letters alone are
 * any text. PAM's first line is "P7" and nothing else; "P7 332" is a thumbnail of xv. */
static const char *netpbm(const uint8_t *head, size_t size)
{
    if (size < 4 || head[0] != 'P' || !(is_blank(head[2]) || head[2] == '#'))
        return NULL;
    if (head[1] == '7')
        return head[2] == '\n' || (size >= 6 && memcmp(head + 2, " 332", 4) == 0) ? "pnm" : NULL;
    bool map = head[1] == 'f' || head[1] == 'F';
    if (!map && (head[1] < '1' || head[1] > '6'))
        return NULL;
    size_t i = 2;
    while (i < size && (is_blank(head[i]) || head[i] == '#')) {
        if (head[i] == '#')
            while (i < size && head[i] != '\n' && head[i] != '\r')
                i++;
        else
            i++;
    }
    if (i < size && (head[i] < '0' || head[i] > '9'))
        return NULL;
    return map ? "pfm" : "pnm";
}

/* An <svg element within an XML text. */
static bool is_svg(const uint8_t *head, size_t size)
{
    size_t i = 0;
    if (size >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0)
        i = 3;
    while (i < size && strchr(" \t\r\n", head[i]) && head[i])
        i++;
    return i < size && head[i] == '<' && memmem(head + i, size - i, "<svg", 4) != NULL;
}

/* ISO base media: the brand and those that it is compatible with; one that names AV1 decides. */
static const char *brands(const uint8_t *head, size_t size)
{
    static const char heif[][5] = {"heic", "heix", "heim", "heis", "hevc",
                                   "hevx", "mif1", "mif2", "msf1", "miaf"};
    const char *found = NULL;
    if (size < 16 || memcmp(head + 4, "ftyp", 4) != 0)
        return NULL;
    size_t length = (size_t)head[2] << 8 | head[3];
    for (size_t i = 8; i + 4 <= size && i + 4 <= length; i += i == 8 ? 8 : 4) {
        if (memcmp(head + i, "avif", 4) == 0 || memcmp(head + i, "avis", 4) == 0)
            return "avif";
        for (size_t k = 0; k < sizeof heif / sizeof *heif; k++) {
            if (memcmp(head + i, heif[k], 4) == 0)
                found = "heif";
        }
    }
    return found;
}

int sniff_format(const uint8_t *head, size_t size)
{
    for (size_t i = 0; i < sizeof magic / sizeof *magic; i++) {
        const struct magic *m = &magic[i];
        if (size >= m->offset + m->size && memcmp(head + m->offset, m->bytes, m->size) == 0 &&
            (strcmp(m->format, "webp") != 0 || memcmp(head, "RIFF", 4) == 0))
            return format_index(m->format);
    }
    if (is_bmp(head, size))
        return format_index("bmp");
    if (netpbm(head, size))
        return format_index(netpbm(head, size));
    if (brands(head, size))
        return format_index(brands(head, size));
    return is_svg(head, size) ? format_index("svg") : -1;
}

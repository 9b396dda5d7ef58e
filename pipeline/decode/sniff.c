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
    {"heif", 4, "ftypheic", 8},
    {"heif", 4, "ftypheix", 8},
    {"heif", 4, "ftypheim", 8},
    {"heif", 4, "ftypheis", 8},
    {"heif", 4, "ftyphevc", 8},
    {"heif", 4, "ftypmif1", 8},
    {"heif", 4, "ftypmsf1", 8},
    {"avif", 4, "ftypavif", 8},
    {"avif", 4, "ftypavis", 8},
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

static const struct format formats[] = {
    {"jpeg", "jpg jpeg jpe jfif", "", "baseline, progressive, arithmetic; grey, RGB, CMYK; 8 bits"},
    {"png", "png apng", "", "all colour types and depths, interlaced; the default image of APNG"},
    {"webp", "webp", NULL, "recognised only"},
    {"tiff", "tif tiff dng cr2 nef arw orf rw2", NULL, "recognised only"},
    {"bmp", "bmp dib", NULL, "recognised only"},
    {"gif", "gif", NULL, "recognised only"},
    {"pnm", "pnm pbm pgm ppm pam", NULL, "recognised only"},
    {"pfm", "pfm", NULL, "recognised only"},
    {"heif", "heic heif", NULL, "recognised only"},
    {"avif", "avif", NULL, "recognised only"},
    {"jxl", "jxl", NULL, "recognised only"},
    {"jp2", "jp2 j2k", NULL, "recognised only"},
    {"ico", "ico", NULL, "recognised only"},
    {"psd", "psd", NULL, "recognised only"},
    {"exr", "exr", NULL, "recognised only"},
    {"hdr", "hdr", NULL, "recognised only"},
    {"qoi", "qoi", NULL, "recognised only"},
    {"svg", "svg", NULL, "recognised only"},
    {"raw", "cr3 raf", NULL, "recognised only"},
};

#define FORMATS (sizeof formats / sizeof *formats)

const struct format *format_at(unsigned i)
{
    static _Thread_local struct format row;
    if (i >= FORMATS)
        return NULL;
    row = formats[i];
    if (i == 0)
        row.library = codec_jpeg_library();
    if (i == 1)
        row.library = codec_png_library();
    return &row;
}

static int index_of(const char *name)
{
    for (unsigned i = 0; i < FORMATS; i++) {
        if (strcmp(formats[i].name, name) == 0)
            return (int)i;
    }
    return -1;
}

/* "BM", and the reserved bytes 0 as every writer leaves them: two letters alone are any text. */
static bool is_bmp(const uint8_t *head, size_t size)
{
    static const uint8_t reserved[4] = {0};
    return size >= 18 && head[0] == 'B' && head[1] == 'M' && memcmp(head + 6, reserved, 4) == 0;
}

/* "P1" to "P7", then white space; "Pf" and "PF" are PFM. */
static const char *netpbm(const uint8_t *head, size_t size)
{
    if (size < 3 || head[0] != 'P' || !strchr(" \t\r\n#", head[2]) || head[2] == '\0')
        return NULL;
    if (head[1] >= '1' && head[1] <= '7')
        return "pnm";
    return head[1] == 'f' || head[1] == 'F' ? "pfm" : NULL;
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

int sniff_format(const uint8_t *head, size_t size)
{
    for (size_t i = 0; i < sizeof magic / sizeof *magic; i++) {
        const struct magic *m = &magic[i];
        if (size >= m->offset + m->size && memcmp(head + m->offset, m->bytes, m->size) == 0 &&
            (strcmp(m->format, "webp") != 0 || memcmp(head, "RIFF", 4) == 0))
            return index_of(m->format);
    }
    if (is_bmp(head, size))
        return index_of("bmp");
    if (netpbm(head, size))
        return index_of(netpbm(head, size));
    return is_svg(head, size) ? index_of("svg") : -1;
}

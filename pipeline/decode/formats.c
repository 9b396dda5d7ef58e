/* formats.c: the table of formats: names, extensions, signatures and codecs. A codec is one file and
 * one row, with its name above the rows. A codec whose library was not found by the build is left
 * out; its row names the library to install. */
#include "decode/codec.h"

#include <string.h>

#define MAGIC_MAX 5

/* Bytes at an offset that identify the format. */
struct magic {
    unsigned offset, size;
    const char *bytes;
};

struct row {
    struct format format;
    const struct codec *codec;
    struct magic magic[MAGIC_MAX]; /* any of these matches */
    /* Asked if no format's magic matches: the name of the format, or NULL. */
    const char *(*recognise)(const uint8_t *head, size_t size);
};

/* --- formats without a magic ----------------------------------------------------------------- */

static const char *webp_name(const uint8_t *head, size_t size)
{
    const bool webp =
        size >= 12 && memcmp(head, "RIFF", 4) == 0 && memcmp(head + 8, "WEBP", 4) == 0;
    return webp ? "webp" : NULL;
}

/* "BM" and zero reserved bytes, as every writer leaves them; "BM" alone could be text. */
static const char *bmp_name(const uint8_t *head, size_t size)
{
    const bool bmp =
        size >= 18 && head[0] == 'B' && head[1] == 'M' && little_endian(head + 6, 4) == 0;
    return bmp ? "bmp" : NULL;
}

/* "P1" to "P6", "Pf" or "PF", then white space or a comment, then a number; two letters alone could
 * be text. PAM begins with the line "P7"; "P7 332" is a thumbnail of xv. */
static const char *netpbm_name(const uint8_t *head, size_t size)
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

/* ISO base media: checks the major and the compatible brands; an AV1 brand has precedence. */
static const char *brand_name(const uint8_t *head, size_t size)
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

/* Is it XML text with an <svg element? */
static const char *svg_name(const uint8_t *head, size_t size)
{
    size_t i = 0;
    if (size >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0)
        i = 3;
    while (i < size && strchr(" \t\r\n", head[i]) && head[i])
        i++;
    return i < size && head[i] == '<' && memmem(head + i, size - i, "<svg", 4) ? "svg" : NULL;
}

/* --- the table ------------------------------------------------------------------------------- */

/* READ: always decodable. READ_IF: if `with` (CLPIPE_WITH_...) is 1; package: Debian's name.
 * UNREAD: recognised but not decoded. The last column is the signature, from each format's
 * specification. */
/* clang-format off */
#define MAGIC(...) {__VA_ARGS__}, NULL
#define AT(offset, bytes) {offset, sizeof bytes - 1, bytes}
#define BY(function) {{0, 0, NULL}}, function
#define READ(name, extensions, codec, notes, ...) \
    {{name, extensions, NULL, notes}, &codec, __VA_ARGS__}
#define READ_1(name, title, extensions, codec, package, notes, ...) \
    READ(name, extensions, codec, notes, __VA_ARGS__)
#define READ_0(name, title, extensions, codec, package, notes, ...) \
    {{name, extensions, NULL, \
      "this build cannot read " title "; install " package " and build again"}, NULL, \
     __VA_ARGS__}
#define READ_EITHER(with) READ_##with
#define READ_IF(with) READ_EITHER(with)
#define UNREAD(name, title, extensions, ...) \
    {{name, extensions, NULL, "clpipe has no decoder for " title}, NULL, __VA_ARGS__}

/* Those of the second line exist only if the build has found their libraries. */
extern const struct codec codec_jpeg, codec_png, codec_bmp, codec_pnm, codec_pfm;
extern const struct codec codec_webp, codec_tiff, codec_gif, codec_heif, codec_avif, codec_jxl;

static const struct row rows[] = {
    READ("jpeg", "jpg jpeg jpe jfif", codec_jpeg,
         "baseline, progressive, arithmetic; grey, RGB, CMYK; 8 bits; the first picture of MPO",
         MAGIC(AT(0, "\xff\xd8\xff"))),
    READ("png", "png apng", codec_png,
         "all colour types and depths, interlaced; the default image of APNG",
         MAGIC(AT(0, "\x89PNG\r\n\x1a\n"))),
    READ_IF(CLPIPE_WITH_WEBP)
        ("webp", "WebP", "webp", codec_webp, "libwebp-dev",
         "lossy and lossless, alpha; the first frame of animations",
         BY(webp_name)),
    READ_IF(CLPIPE_WITH_TIFF)
        ("tiff", "TIFF", "tif tiff", codec_tiff, "libtiff-dev",
         "first page; 1 to 16 bits; grey, palette, RGB, CMYK, YCbCr, L*a*b*; strips, tiles",
         MAGIC(AT(0, "II*\0"), AT(0, "MM\0*"), AT(0, "II+\0"), AT(0, "MM\0+"))),
    READ("bmp", "bmp dib", codec_bmp,
         "1 to 32 bits, RLE4, RLE8, bit fields; Windows and OS/2 headers",
         BY(bmp_name)),
    READ_IF(CLPIPE_WITH_GIF)
        ("gif", "GIF", "gif", codec_gif, "libgif-dev",
         "the first frame on its canvas",
         MAGIC(AT(0, "GIF87a"), AT(0, "GIF89a"))),
    READ("pnm", "pnm pbm pgm ppm pam", codec_pnm,
         "P1 to P7, up to 16 bits; the first picture",
         BY(netpbm_name)),
    READ("pfm", "pfm", codec_pfm, "grey and RGB; 0.0 to 1.0 become 0 to 255",
         BY(netpbm_name)),
    READ_IF(CLPIPE_WITH_HEIF)
        ("heif", "HEIF", "heic heif", codec_heif,
         "libheif-dev, libde265-dev and libdav1d-dev",
         "the primary picture, of up to 16 bits; rotated and cropped as the file says",
         BY(brand_name)),
    READ_IF(CLPIPE_WITH_HEIF)
        ("avif", "AVIF", "avif", codec_avif,
         "libheif-dev, libde265-dev and libdav1d-dev",
         "the primary picture, of up to 16 bits; rotated and cropped as the file says",
         BY(brand_name)),
    READ_IF(CLPIPE_WITH_JXL)
        ("jxl", "JPEG XL", "jxl", codec_jxl, "libjxl-dev",
         "the first frame, of up to 16 bits; grey, RGB, alpha",
         MAGIC(AT(0, "\xff\x0a"), AT(0, "\0\0\0\x0cJXL \r\n\x87\n"))),
    UNREAD("jp2", "JPEG 2000", "jp2 j2k",
         MAGIC(AT(0, "\0\0\0\x0cjP  \r\n\x87\n"), AT(0, "\xff\x4f\xff\x51"))),
    UNREAD("ico", "Windows icons", "ico",
         MAGIC(AT(0, "\0\0\1\0"))),
    UNREAD("psd", "Photoshop documents", "psd",
         MAGIC(AT(0, "8BPS"))),
    UNREAD("exr", "OpenEXR", "exr",
         MAGIC(AT(0, "\x76\x2f\x31\x01"))),
    UNREAD("hdr", "Radiance HDR", "hdr",
         MAGIC(AT(0, "#?RADIANCE"), AT(0, "#?RGBE"))),
    UNREAD("qoi", "QOI", "qoi",
         MAGIC(AT(0, "qoif"))),
    UNREAD("svg", "SVG", "svg",
         BY(svg_name)),
    UNREAD("raw", "raw photographs", "dng cr2 cr3 nef arw orf rw2 raf",
         MAGIC(AT(0, "IIRO"), AT(0, "IIRS"), AT(0, "IIU\0"), AT(0, "FUJIFILMCCD-RAW"),
              AT(4, "ftypcrx "))),
};
/* clang-format on */

#define FORMATS (sizeof rows / sizeof *rows)

/* An image extension, but the format has no signature. */
static const char other_extensions[] = "tga";

const struct format *format_at(unsigned i)
{
    static _Thread_local struct format format;
    if (i >= FORMATS)
        return NULL;
    format = rows[i].format;
    const struct codec *codec = rows[i].codec;
    if (codec)
        format.library = codec->library ? codec->library() : "clpipe's own";
    return &format;
}

const struct codec *format_codec(unsigned i)
{
    return i < FORMATS ? rows[i].codec : NULL;
}

int format_recognise(const uint8_t *head, size_t size)
{
    int found = -1;
    unsigned longest = 0;
    for (unsigned i = 0; i < FORMATS; i++) {
        for (unsigned m = 0; m < MAGIC_MAX; m++) {
            const struct magic *magic = &rows[i].magic[m];
            if (magic->size > longest && size >= magic->offset + magic->size &&
                memcmp(head + magic->offset, magic->bytes, magic->size) == 0) {
                found = (int)i;
                longest = magic->size;
            }
        }
    }
    for (unsigned i = 0; i < FORMATS && found < 0; i++) {
        const char *name = rows[i].recognise ? rows[i].recognise(head, size) : NULL;
        if (name && strcmp(name, rows[i].format.name) == 0)
            found = (int)i;
    }
    return found;
}

/* Not strcasecmp(): in a Turkish locale it may not match I with i. */
static bool is_word(const char *text, const char *word, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        const char c = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] + 32) : text[i];
        if (c != word[i])
            return false;
    }
    return text[length] == 0;
}

static bool is_among(const char *text, const char *words)
{
    while (*words) {
        const size_t length = strcspn(words, " ");
        if (is_word(text, words, length))
            return true;
        words += length + strspn(words + length, " ");
    }
    return false;
}

bool format_promised(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    if (!dot || dot == name)
        return false;
    for (unsigned i = 0; i < FORMATS; i++) {
        if (is_among(dot + 1, rows[i].format.extensions))
            return true;
    }
    return is_among(dot + 1, other_extensions);
}

/* formats.c: the table of formats. A decoder is one file and one row. One that needs a library
 * which was not there when clpipe was built is left out, and its row says what to install. */
#include "decode/codec.h"

#include <string.h>

struct row {
    struct format format;
    const struct codec *codec;
    const char *(*library)(void);
};

static const char *own_code(void)
{
    return "clpipe's own";
}

/* READ: always there. READ_IF: where `with` (CLPIPE_WITH_...) is 1; package is Debian's. UNREAD:
 * only told from what is no image. */
/* clang-format off */
#define READ(name, extensions, codec, library, notes) \
    {{name, extensions, NULL, notes}, &codec, library}
#define READ_1(name, title, extensions, codec, library, package, notes) \
    READ(name, extensions, codec, library, notes)
#define READ_0(name, title, extensions, codec, library, package, notes) \
    {{name, extensions, NULL, \
      "this build cannot read " title "; install " package " and build again"}, NULL, NULL}
#define READ_EITHER(with) READ_##with
#define READ_IF(with) READ_EITHER(with)
#define UNREAD(name, title, extensions) \
    {{name, extensions, NULL, "clpipe has no decoder for " title}, NULL, NULL}

static const struct row rows[] = {
    READ("jpeg", "jpg jpeg jpe jfif", codec_jpeg, codec_jpeg_library,
         "baseline, progressive, arithmetic; grey, RGB, CMYK; 8 bits; the first picture of MPO"),
    READ("png", "png apng", codec_png, codec_png_library,
         "all colour types and depths, interlaced; the default image of APNG"),
    READ_IF(CLPIPE_WITH_WEBP)
        ("webp", "WebP", "webp", codec_webp, codec_webp_library, "libwebp-dev",
         "lossy and lossless, alpha; the first frame of animations"),
    READ_IF(CLPIPE_WITH_TIFF)
        ("tiff", "TIFF", "tif tiff", codec_tiff, codec_tiff_library, "libtiff-dev",
         "first page; 1 to 16 bits; grey, palette, RGB, CMYK, YCbCr, L*a*b*; strips, tiles"),
    READ("bmp", "bmp dib", codec_bmp, own_code,
         "1 to 32 bits, RLE4, RLE8, bit fields; Windows and OS/2 headers"),
    READ_IF(CLPIPE_WITH_GIF)
        ("gif", "GIF", "gif", codec_gif, codec_gif_library, "libgif-dev",
         "the first frame on its canvas"),
    READ("pnm", "pnm pbm pgm ppm pam", codec_pnm, own_code,
         "P1 to P7, up to 16 bits; the first picture"),
    READ("pfm", "pfm", codec_pfm, own_code, "grey and RGB; 0.0 to 1.0 becomes 0 to 255"),
    READ_IF(CLPIPE_WITH_HEIF)
        ("heif", "HEIF", "heic heif", codec_heif, codec_heif_library,
         "libheif-dev, libde265-dev and libdav1d-dev",
         "the primary picture, of up to 16 bits; turned and cropped as the file says"),
    READ_IF(CLPIPE_WITH_HEIF)
        ("avif", "AVIF", "avif", codec_heif, codec_avif_library,
         "libheif-dev, libde265-dev and libdav1d-dev",
         "the primary picture, of up to 16 bits; turned and cropped as the file says"),
    READ_IF(CLPIPE_WITH_JXL)
        ("jxl", "JPEG XL", "jxl", codec_jxl, codec_jxl_library, "libjxl-dev",
         "the first frame, of up to 16 bits; grey, RGB, alpha"),
    UNREAD("jp2", "JPEG 2000", "jp2 j2k"),
    UNREAD("ico", "Windows icons", "ico"),
    UNREAD("psd", "Photoshop documents", "psd"),
    UNREAD("exr", "OpenEXR", "exr"),
    UNREAD("hdr", "Radiance HDR", "hdr"),
    UNREAD("qoi", "QOI", "qoi"),
    UNREAD("svg", "SVG", "svg"),
    UNREAD("raw", "raw photographs", "dng cr2 cr3 nef arw orf rw2 raf"),
};
/* clang-format on */

#define FORMATS (sizeof rows / sizeof *rows)

const struct format *format_at(unsigned i)
{
    static _Thread_local struct format format;
    if (i >= FORMATS)
        return NULL;
    format = rows[i].format;
    if (rows[i].library)
        format.library = rows[i].library();
    return &format;
}

const struct codec *format_codec(unsigned i)
{
    return i < FORMATS ? rows[i].codec : NULL;
}

int format_index(const char *name)
{
    for (unsigned i = 0; i < FORMATS; i++) {
        if (strcmp(rows[i].format.name, name) == 0)
            return (int)i;
    }
    return -1;
}

/* tiff.c: the first page of TIFF and BigTIFF through libtiff, which reads at offsets through
 * callbacks.
 *
 * Samples are converted here (tiff_pixels.h): libtiff's RGBA interface rounds differently. It is
 * used only for YCbCr without JPEG, CIE L*a*b* and LogLuv. Strips are read row by row; tiles and
 * separate planes in bands of rows, counted in info.memory. The size is limited before anything is
 * allocated: all strips or tiles together may take 8 bytes per pixel of --max-pixels, and 16 times
 * what the picture's samples need.
 *
 * While pixels are read, every libtiff error fails the picture, and so do warnings about missing
 * data; complaints about tags are ignored. */
#include "decode/codec.h"
#include "decode/tiff_pixels.h"
#include "decode/tiff_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tiffio.h>

enum { SAMPLES_MAX = 64 };
enum how { BY_ROW, BY_BAND, BY_RGBA };

struct tiff {
    TIFF *file;
    struct tiff_source source;
    uint32_t width, height, row;
    struct tiff_layout layout;
    uint16_t compression, planar;
    enum how how;
    bool tiled, started;
    /* A band: `planes` times `across` tiles (or strips) of tile_bytes each; has rows first to first
     * + count of the picture. */
    uint32_t tile_width, tile_height, across, planes;
    size_t tile_bytes, row_bytes; /* per tile; per row of a tile */
    uint32_t band_first, band_rows;
    uint8_t *data;
    TIFFRGBAImage rgba;
    bool has_rgba;
    uint8_t *inks; /* a row of CMYK for its profile; NULL: none */
};

static const char *library_name(void)
{
    static _Thread_local char text[48];
    const char *version = TIFFGetVersion(); /* "LIBTIFF, Version 4.5.0\nCopyright..." */
    const char *number = strstr(version, "Version ");
    number = number ? number + 8 : version;
    snprintf(text, sizeof text, "libtiff %.*s", (int)strcspn(number, "\n"), number);
    return text;
}

static void tiff_reset(void *state)
{
    struct tiff *tiff = state;
    tiff->source.reading = false;
    tiff->source.failure = NULL;
    if (tiff->has_rgba)
        TIFFRGBAImageEnd(&tiff->rgba);
    if (tiff->file)
        TIFFClose(tiff->file);
    free(tiff->data);
    free(tiff->inks);
    *tiff = (struct tiff){.file = NULL};
}

/* --- the directory --------------------------------------------------------------------------- */

/* The first directory of a raw photograph is a thumbnail or a mosaic, not the picture. */
static bool is_raw_photograph(TIFF *file, uint16_t photometric)
{
    void *version = NULL, *offsets = NULL;
    uint16_t count = 0;
    uint32_t type = 0;
    if (photometric == PHOTOMETRIC_CFA || photometric == 34892 ||
        TIFFGetField(file, TIFFTAG_DNGVERSION, &version))
        return true;
    TIFFGetField(file, TIFFTAG_SUBFILETYPE, &type);
    return (type & FILETYPE_REDUCEDIMAGE) && TIFFGetField(file, TIFFTAG_SUBIFD, &count, &offsets) &&
           count > 0;
}

static void read_palette(struct tiff *tiff)
{
    uint16_t *map[3] = {NULL};
    struct tiff_layout *layout = &tiff->layout;
    uint32_t count = 1u << layout->bits, max = 0;
    if (!TIFFGetField(tiff->file, TIFFTAG_COLORMAP, &map[0], &map[1], &map[2]))
        return;
    for (int c = 0; c < 3; c++) {
        for (uint32_t i = 0; i < count; i++)
            max = map[c][i] > max ? map[c][i] : max;
    }
    /* Some writers store 8-bit values in the 16-bit table. */
    for (int c = 0; c < 3; c++) {
        for (uint32_t i = 0; i < count; i++)
            layout->palette[i][c] = max < 256 ? (uint8_t)map[c][i] : pixel_scale(map[c][i], 65535);
    }
    layout->has_palette = true;
}

static void read_alpha(struct tiff *tiff, uint32_t colours)
{
    uint16_t count = 0, *types = NULL;
    if (!TIFFGetField(tiff->file, TIFFTAG_EXTRASAMPLES, &count, &types))
        return;
    for (uint32_t i = 0; i < count && colours + i < tiff->layout.samples; i++) {
        if (types[i] == EXTRASAMPLE_ASSOCALPHA || types[i] == EXTRASAMPLE_UNASSALPHA) {
            tiff->layout.alpha_at = (int)(colours + i);
            tiff->source.input->colours->premultiplied = types[i] == EXTRASAMPLE_ASSOCALPHA;
            return;
        }
    }
}

/* Reads the meaning of the samples; fails if it is not supported. */
static enum reason read_meaning(struct tiff *tiff, struct failure *failure)
{
    struct tiff_layout *layout = &tiff->layout;
    uint16_t photometric, format = SAMPLEFORMAT_UINT, inks = INKSET_CMYK, bits = 1, samples = 1;
    TIFFGetFieldDefaulted(tiff->file, TIFFTAG_BITSPERSAMPLE, &bits);
    TIFFGetFieldDefaulted(tiff->file, TIFFTAG_SAMPLESPERPIXEL, &samples);
    TIFFGetFieldDefaulted(tiff->file, TIFFTAG_SAMPLEFORMAT, &format);
    TIFFGetFieldDefaulted(tiff->file, TIFFTAG_PLANARCONFIG, &tiff->planar);
    TIFFGetFieldDefaulted(tiff->file, TIFFTAG_COMPRESSION, &tiff->compression);
    if (!TIFFGetField(tiff->file, TIFFTAG_PHOTOMETRIC, &photometric))
        photometric = samples >= 3 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK;
    *layout = (struct tiff_layout){.bits = bits, .samples = samples, .alpha_at = -1};
    if (is_raw_photograph(tiff->file, photometric))
        return failure_set(failure, REASON_UNSUPPORTED, "a raw photograph");
    if (!TIFFIsCODECConfigured(tiff->compression))
        return failure_set(failure, REASON_UNSUPPORTED, "compression %u is not in this libtiff",
                           tiff->compression);
    if (samples < 1 || samples > SAMPLES_MAX)
        return failure_set(failure, REASON_UNSUPPORTED, "%u samples per pixel", samples);
    tiff->how = BY_BAND;
    uint32_t colours = 3;
    switch (photometric) {
    case PHOTOMETRIC_MINISWHITE:
    case PHOTOMETRIC_MINISBLACK:
        layout->kind = photometric == PHOTOMETRIC_MINISWHITE ? TIFF_WHITE_IS_0 : TIFF_BLACK_IS_0;
        colours = 1;
        break;
    case PHOTOMETRIC_PALETTE:
        layout->kind = TIFF_PALETTE;
        colours = 1;
        if (bits <= 8)
            read_palette(tiff);
        if (!layout->has_palette)
            return failure_set(failure, bits <= 8 ? REASON_CORRUPT : REASON_UNSUPPORTED,
                               "a palette picture of %u bits without a palette", bits);
        break;
    case PHOTOMETRIC_RGB:
        layout->kind = TIFF_RGB;
        break;
    case PHOTOMETRIC_SEPARATED:
        layout->kind = TIFF_CMYK;
        colours = 4;
        TIFFGetFieldDefaulted(tiff->file, TIFFTAG_INKSET, &inks);
        if (inks != INKSET_CMYK)
            return failure_set(failure, REASON_UNSUPPORTED, "inks other than CMYK");
        break;
    case PHOTOMETRIC_YCBCR:
        layout->kind = TIFF_RGB;
        if (tiff->compression != COMPRESSION_JPEG || tiff->planar != PLANARCONFIG_CONTIG)
            tiff->how = BY_RGBA;
        else
            TIFFSetField(tiff->file, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
        break;
    default:
        tiff->how = BY_RGBA;
        break;
    }
    if (tiff->how == BY_RGBA) {
        char text[1024] = "";
        tiff->source.input->colours->premultiplied = true;
        if (photometric == PHOTOMETRIC_LOGL || photometric == PHOTOMETRIC_LOGLUV)
            TIFFSetField(tiff->file, TIFFTAG_SGILOGDATAFMT, SGILOGDATAFMT_8BIT);
        if (!TIFFRGBAImageOK(tiff->file, text))
            return failure_set(failure, REASON_UNSUPPORTED, "%s", text);
        return REASON_NONE;
    }
    if (samples < colours)
        return failure_set(failure, REASON_CORRUPT, "%u samples per pixel", samples);
    if ((format != SAMPLEFORMAT_UINT && format != SAMPLEFORMAT_VOID) || bits < 1 || bits > 16)
        return failure_set(failure, REASON_UNSUPPORTED, "samples of %u bits%s", bits,
                           format == SAMPLEFORMAT_UINT || format == SAMPLEFORMAT_VOID ? ""
                           : format == SAMPLEFORMAT_INT                               ? ", signed"
                                                        : ", floating point or complex");
    read_alpha(tiff, colours);
    return REASON_NONE;
}

/* Reads the profile, unless the samples are device independent (L*a*b*, LogLuv). */
static enum reason read_profile(struct tiff *tiff, uint64_t *memory, struct failure *failure)
{
    static const enum icc_space spaces[] = {[TIFF_BLACK_IS_0] = ICC_GREY,
                                            [TIFF_WHITE_IS_0] = ICC_GREY,
                                            [TIFF_PALETTE] = ICC_RGB,
                                            [TIFF_RGB] = ICC_RGB,
                                            [TIFF_CMYK] = ICC_CMYK};
    const struct tiff_layout *layout = &tiff->layout;
    struct colours *colours = tiff->source.input->colours;
    uint32_t size = 0;
    void *profile = NULL;
    if ((tiff->how == BY_RGBA && layout->kind != TIFF_RGB) ||
        !TIFFGetField(tiff->file, TIFFTAG_ICCPROFILE, &size, &profile) ||
        colours_profile(colours, memory, profile, size, spaces[layout->kind], failure) !=
            REASON_NONE ||
        !colours->managed || layout->kind != TIFF_CMYK)
        return failure->reason;
    tiff->inks = malloc(4 * (size_t)tiff->width);
    *memory += 4 * (uint64_t)tiff->width;
    return tiff->inks ? REASON_NONE
                      : failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for a row");
}

/* Computes the memory for reading and checks its limits. */
static enum reason plan(struct tiff *tiff, uint64_t max_pixels, struct failure *failure,
                        uint64_t *memory)
{
    enum { SLACK = 64 << 20 }; /* allows small pictures in large tiles */
    uint64_t most = max_pixels > UINT64_MAX / 16 ? UINT64_MAX / 2 : 8 * max_pixels + SLACK;
    uint64_t pixels = (uint64_t)tiff->width * tiff->height, tile_bytes, row_bytes, band, all,
             raster = 0;
    uint64_t padded = 16ull * tiff->layout.samples * ((tiff->layout.bits + 7) / 8);
    if (padded < most / pixels) /* more than 16 times the samples cannot be padding */
        most = padded * pixels + SLACK;
    tiff->planes = tiff->planar == PLANARCONFIG_SEPARATE ? tiff->layout.samples : 1;
    tiff->tiled = TIFFIsTiled(tiff->file);
    tiff->tile_width = tiff->width;
    if (tiff->tiled) {
        TIFFGetField(tiff->file, TIFFTAG_TILEWIDTH, &tiff->tile_width);
        TIFFGetField(tiff->file, TIFFTAG_TILELENGTH, &tiff->tile_height);
        tile_bytes = TIFFTileSize64(tiff->file);
        row_bytes = TIFFTileRowSize64(tiff->file);
    } else {
        TIFFGetFieldDefaulted(tiff->file, TIFFTAG_ROWSPERSTRIP, &tiff->tile_height);
        if (tiff->tile_height > tiff->height)
            tiff->tile_height = tiff->height;
        tile_bytes = TIFFStripSize64(tiff->file);
        row_bytes = TIFFScanlineSize64(tiff->file);
        if (tiff->how == BY_BAND && tiff->planes == 1)
            tiff->how = BY_ROW;
    }
    if (tile_bytes == 0 || row_bytes == 0 || tiff->tile_width == 0 || tiff->tile_height == 0)
        return failure_set(failure, REASON_CORRUPT, "strips or tiles without a size");
    tiff->across = (tiff->width - 1) / tiff->tile_width + 1;
    uint64_t down = (tiff->height - 1) / tiff->tile_height + 1;
    if (__builtin_mul_overflow(tile_bytes, (uint64_t)tiff->across * tiff->planes, &band) ||
        __builtin_mul_overflow(band, down, &all) || all > most)
        return failure_set(failure, REASON_TOO_LARGE,
                           "strips or tiles of %llu bytes (--max-pixels)",
                           (unsigned long long)tile_bytes);
    tiff->tile_bytes = (size_t)tile_bytes;
    tiff->row_bytes = (size_t)row_bytes;
    if (tiff->how == BY_RGBA)
        raster = 4ull * tiff->width * tiff->tile_height;
    /* A compressed strip or tile, the codec's memory, and the table of offsets. */
    const uint64_t packed = tile_bytes + tile_bytes / 2;
    const uint64_t file_bytes = tiff->source.input->blob.bytes;
    *memory += (1u << 20) + 16 * down * tiff->across * tiff->planes +
               (packed < file_bytes ? packed : file_bytes) +
               (tiff->how == BY_ROW ? row_bytes : band) + raster;
    return REASON_NONE;
}

static enum reason tiff_begin(void *state, struct input *input,
                              const struct decode_options *options, struct image_info *info,
                              struct failure *failure)
{
    struct tiff *tiff = state;
    *tiff = (struct tiff){.source = {.input = input, .failure = failure}};
    tiff->source.reading = tiff->source.opening = true;
    tiff->file = tiff_source_open(&tiff->source);
    tiff->source.opening = false;
    info->memory = 2 * tiff->source.directory_bytes;
    if (!tiff->file)
        return failure->reason
                   ? failure->reason
                   : failure_set(failure, tiff->source.ended ? REASON_TRUNCATED : REASON_CORRUPT,
                                 "there is no directory that can be read");
    *failure = (struct failure){0};
    tiff->source.reading = tiff->source.ended = false;
    uint16_t orientation = 1;
    if (!TIFFGetField(tiff->file, TIFFTAG_IMAGEWIDTH, &tiff->width) ||
        !TIFFGetField(tiff->file, TIFFTAG_IMAGELENGTH, &tiff->height))
        return failure_set(failure, REASON_CORRUPT, "the first page has no size");
    TIFFGetFieldDefaulted(tiff->file, TIFFTAG_ORIENTATION, &orientation);
    if (codec_set_size(info, tiff->width, tiff->height, options, failure) != REASON_NONE ||
        read_meaning(tiff, failure) != REASON_NONE ||
        plan(tiff, options->max_pixels, failure, &info->memory) != REASON_NONE ||
        (options->icc && read_profile(tiff, &info->memory, failure) != REASON_NONE))
        return failure->reason;
    tiff->layout.separate = tiff->planes > 1;
    if (tiff->layout.alpha_at >= 0 || tiff->how == BY_RGBA)
        input->colours->alphas_wanted = tiff->width;
    info->orientation = orientation >= 1 && orientation <= 8 ? (uint8_t)orientation : 1;
    info->channels = tiff_channels(&tiff->layout);
    uint32_t size;
    void *profile;
    info->profile =
        colours_tell(input->colours, TIFFGetField(tiff->file, TIFFTAG_ICCPROFILE, &size, &profile));
    return REASON_NONE;
}

/* --- rows ------------------------------------------------------------------------------------ */

static enum reason start(struct tiff *tiff, struct failure *failure)
{
    uint64_t size = tiff->how == BY_ROW ? tiff->row_bytes
                    : tiff->how == BY_BAND
                        ? (uint64_t)tiff->tile_bytes * tiff->across * tiff->planes
                        : 4ull * tiff->width * tiff->tile_height;
    tiff->started = true;
    tiff->data = calloc(1, (size_t)size);
    if (!tiff->data)
        return failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for strips or tiles");
    if (tiff->how == BY_RGBA) {
        char text[1024] = "";
        if (!TIFFRGBAImageBegin(&tiff->rgba, tiff->file, 1, text))
            return failure->reason ? failure->reason
                                   : failure_set(failure, REASON_UNSUPPORTED, "%s", text);
        tiff->has_rgba = true;
        tiff->rgba.req_orientation = tiff->rgba.orientation; /* rows as stored */
    }
    return REASON_NONE;
}

/* The reason if libtiff failed or reported an error. */
static enum reason outcome(struct tiff *tiff, bool ok, struct failure *failure)
{
    if (failure->reason == REASON_NONE && !ok)
        tiff_source_note(&tiff->source, "broken data");
    return failure->reason;
}

static bool read_tiles(struct tiff *tiff)
{
    for (uint32_t plane = 0; plane < tiff->planes; plane++) {
        for (uint32_t i = 0; i < tiff->across; i++) {
            uint8_t *out = tiff->data + ((size_t)plane * tiff->across + i) * tiff->tile_bytes;
            uint16_t sample = (uint16_t)plane;
            tmsize_t got;
            if (tiff->tiled)
                got = TIFFReadEncodedTile(
                    tiff->file,
                    TIFFComputeTile(tiff->file, i * tiff->tile_width, tiff->row, 0, sample), out,
                    (tmsize_t)tiff->tile_bytes);
            else
                got = TIFFReadEncodedStrip(tiff->file,
                                           TIFFComputeStrip(tiff->file, tiff->row, sample), out,
                                           (tmsize_t)tiff->tile_bytes);
            if (got < 0 || tiff->source.failure->reason != REASON_NONE)
                return false;
        }
    }
    return true;
}

/* Reads the band of the current row. */
static enum reason read_band(struct tiff *tiff, struct failure *failure)
{
    uint32_t left = tiff->height - tiff->row;
    tiff->band_first = tiff->row;
    tiff->band_rows = left < tiff->tile_height ? left : tiff->tile_height;
    bool ok;
    if (tiff->how == BY_BAND) {
        ok = read_tiles(tiff);
    } else {
        tiff->rgba.row_offset = (int)tiff->row;
        tiff->rgba.col_offset = 0;
        ok = TIFFRGBAImageGet(&tiff->rgba, (uint32_t *)(void *)tiff->data, tiff->width,
                              tiff->band_rows) != 0;
    }
    return outcome(tiff, ok, failure);
}

/* Converts `count` pixels from x on. */
static void put_pixels(uint8_t *dst, const struct tiff *tiff, uint32_t x,
                       const uint8_t *const *planes, uint32_t count)
{
    uint8_t *alphas = tiff->source.input->colours->alphas;
    tiff_put_pixels(tiff->inks ? tiff->inks + 4 * (size_t)x : dst + 3 * (size_t)x,
                    alphas ? alphas + x : NULL, &tiff->layout, tiff->inks != NULL, planes, count);
}

static void put_band_row(uint8_t *dst, struct tiff *tiff)
{
    const uint8_t *planes[SAMPLES_MAX];
    size_t y = tiff->row - tiff->band_first;
    for (uint32_t i = 0; i < tiff->across; i++) {
        uint32_t x = i * tiff->tile_width, left = tiff->width - x;
        for (uint32_t plane = 0; plane < tiff->planes; plane++)
            planes[plane] = tiff->data + ((size_t)plane * tiff->across + i) * tiff->tile_bytes +
                            y * tiff->row_bytes;
        put_pixels(dst, tiff, x, planes, left < tiff->tile_width ? left : tiff->tile_width);
    }
}

static enum reason tiff_rows(void *state, uint8_t *dst, size_t stride, uint32_t rows,
                             struct failure *failure)
{
    struct tiff *tiff = state;
    tiff->source.failure = failure;
    tiff->source.reading = true;
    if (!tiff->started && start(tiff, failure) != REASON_NONE)
        return failure->reason;
    for (uint32_t i = 0; i < rows; i++, tiff->row++, dst += stride) {
        if (tiff->how == BY_ROW) {
            const uint8_t *row = tiff->data;
            bool ok = TIFFReadScanline(tiff->file, tiff->data, tiff->row, 0) >= 0;
            if (outcome(tiff, ok, failure) != REASON_NONE)
                return failure->reason;
            put_pixels(dst, tiff, 0, &row, tiff->width);
        } else {
            if (tiff->row >= tiff->band_first + tiff->band_rows &&
                read_band(tiff, failure) != REASON_NONE)
                return failure->reason;
            const uint8_t *rgba = tiff->data + 4ull * tiff->width * (tiff->row - tiff->band_first);
            if (tiff->how == BY_BAND)
                put_band_row(dst, tiff);
            else
                tiff_put_rgba(dst, tiff->source.input->colours->alphas, rgba, tiff->width);
        }
        colours_finish(tiff->source.input->colours, dst, tiff->inks ? tiff->inks : dst,
                       tiff->width);
    }
    return REASON_NONE;
}

const struct codec codec_tiff = {
    .library = library_name,
    .state_bytes = sizeof(struct tiff),
    .begin = tiff_begin,
    .rows = tiff_rows,
    .reset = tiff_reset,
};

/* decode.h: decodes a picture's bytes to rows of RGB in the caller's memory.
 *
 * One `struct decode` per thread, reused for every file:
 *
 *     decode_begin   recognises the content and reads the header; allocates nothing that grows with
 *                    the picture. info.memory says how much the rest needs: reserve it first.
 *     decode_rows    any number of rows at a time, top to bottom as stored, into the caller's rows
 *     decode_end     checks the data after the last row, reads the rest of the file for the digest,
 *                    and checks that the file did not change meanwhile
 *     decode_abort   cancels, at any point after decode_begin
 *
 * If decode_begin fails, call neither end nor abort. After any other failure call decode_abort. The
 * outcome depends on the file and on the options, never on memory, threads or load. Pixels are as
 * docs/features.md defines them: 8-bit interleaved RGB, grey as R = G = B, alpha composited, rows
 * in stored order (orientation is reported, not applied). */
#ifndef CLPIPE_DECODE_DECODE_H
#define CLPIPE_DECODE_DECODE_H

#include "base/blob.h"
#include "base/error.h"
#include "base/failure.h"
#include "base/stop.h"
#include "decode/dct.h"
#include "decode/pixel.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct decode_options {
    enum alpha_mode alpha;
    uint64_t max_pixels; /* of the stored picture; more: REASON_TOO_LARGE */
    /* Limit for progressive and multi-scan JPEGs of up to 10 megapixels; lower in proportion for
     * larger ones, but not below min(20, max_scans). More: REASON_TOO_MANY_SCANS. */
    uint32_t max_scans;
    unsigned scale;    /* 1, 2, 4 or 8: scaling by the codec (JPEG); other formats ignore it */
    bool icc;          /* apply embedded ICC profiles: pixels become sRGB */
    bool coefficients; /* set image_info.dct if possible; never changes the outcome */
    bool streams;      /* likewise image_info.stream_bytes; only with coefficients */
    /* When this is overdue, reading ends, and failures after that are meaningless. May be NULL. */
    struct stop *stop;
};

/* white, 268435456, 100, 1, false, false, false, NULL */
void decode_options_default(struct decode_options *options);

struct image_info {
    char format[8];                 /* "jpeg", "png": short lower-case name, NUL-padded */
    uint32_t width, height;         /* stored size, before orientation and scaling */
    uint32_t out_width, out_height; /* of the rows from decode_rows: differ if scaled */
    uint8_t orientation;            /* EXIF 1 to 8; 1 where absent or invalid */
    uint8_t channels;      /* of the file's pixels: 1 grey, 2 grey+alpha, 3 RGB, 4 RGBA or CMYK;
                              a palette counts as 3, or 4 with transparency */
    bool profile;          /* the file may have an ICC profile that was not applied; with
                       * decode_for_display: it was applied and changes colours */
    bool progressive;      /* a JPEG with several scans that refine each other */
    uint64_t memory;       /* bytes that the codec will allocate, without the caller's rows */
    struct dct_layout dct; /* if colour is not DCT_NONE, decode_coefficients may be called */
    uint64_t stream_bytes; /* if not 0, decode_stream may be called, for at most this many bytes */
};

struct decode;

/* A decoder that runs codecs on the calling thread; see isolate.h for the other kind. Copies
 * options. */
enum status decode_open(struct decode **out, const struct decode_options *options,
                        struct error *err);

/* Call before each file: restarts a decoder after a crash. */
enum status decode_ready(struct decode *decode, struct error *err);

/* A file that decode_begin will be called with. */
struct decode_file {
    const struct blob *blob;
    const char *path;
};
#define DECODE_AHEAD_MAX 16
/* How many small files to announce at a time; 1: announcing has no benefit. */
unsigned decode_ahead(const struct decode *decode);
/* Announces the next files for decode_begin, in order: an isolated decoder processes them in one
 * request. At most decode_ahead() files, and none while earlier ones are pending; blobs and paths
 * must stay valid. Results do not change. */
void decode_announce(struct decode *decode, const struct decode_file *files, unsigned count);

/* Makes the next decode_begin produce pixels for display, whatever the options: in sRGB if the
 * build can apply profiles, alpha over grey 128 (which shows both black and white), scaled like
 * options.scale by 1, 2, 4 or 8. Not while files are announced. */
void decode_for_display(struct decode *decode, unsigned scale);
/* The largest scale at which the longer side still has `side` pixels, or all of its pixels. */
unsigned decode_scale_for(uint32_t width, uint32_t height, uint32_t side);

/* Starts a file; the blob must stay open until end or abort. `path` only decides between
 * unknown-format and not-an-image. Sets *info and returns REASON_NONE, or sets *failure. A file
 * that differs from the blob's size or time is REASON_CHANGED, as is any failure of a file that
 * changed in the meantime. */
enum reason decode_begin(struct decode *decode, const struct blob *blob, const char *path,
                         struct image_info *info, struct failure *failure);

/* Decodes the next `rows` rows to dst, dst + stride, ... (stride in bytes, at least 3 * out_width;
 * bytes between rows are not written). The total of rows must not exceed out_height. */
enum reason decode_rows(struct decode *decode, uint8_t *dst, size_t stride, uint32_t rows,
                        struct failure *failure);

/* Alternative to decode_rows if info.dct is set: writes all coefficients to dst
 * (dct_bytes(&info.dct) bytes, 16-byte aligned). dct_pixels (decode/dct.h) computes the pixels of
 * decode_rows from them; failures are the same. Ends with decode_end. */
enum reason decode_coefficients(struct decode *decode, void *dst, struct failure *failure);

/* Alternative to decode_rows if info.stream_bytes is set: writes the payload of decode/stream.h for
 * a picture with the layout info.dct to dst (16-byte aligned). Ends with decode_end, which does not
 * check the entropy-coded data: stream decoders accept only what decode_rows would decode, to the
 * same pixels; files that they refuse are decoded again. False: not suitable; call decode_abort and
 * decode_begin, then decode coefficients or rows. */
bool decode_stream(struct decode *decode, void *dst);

/* Does the installed JPEG library compute the same pixels as dct_pixels? Compares a few synthetic
 * images, in about a millisecond. If not, decode_options.coefficients must stay off. */
bool decode_coefficients_agree(void);

/* After the last row. digest: murmur3 of the whole file (base/hash.h). */
enum reason decode_end(struct decode *decode, uint64_t digest[2], struct failure *failure);

/* Instead of decode_end: gives up the current file before its last row. */
void decode_abort(struct decode *decode);

/* Bytes read from the file so far (the current or the last one). */
uint64_t decode_bytes_read(const struct decode *decode);

/* Frees *decode if it is not NULL, and sets it to NULL. */
void decode_close(struct decode **decode);

/* Name and version of the library for options.icc, or NULL: not in this build; options.icc must be
 * off. */
const char *decode_icc_library(void);

/* --- the table ------------------------------------------------------------------------------- */

/* A recognised format, decodable or not. */
struct format {
    const char *name;       /* "jpeg" */
    const char *extensions; /* "jpg jpeg jpe jfif" */
    const char *library;    /* "libjpeg-turbo 2.1.5 (API 62)"; NULL: this build cannot decode it */
    const char *notes;      /* "baseline, progressive, ...", or why it is not supported */
};

/* Row i of `clpipe formats`; NULL past the last. */
const struct format *format_at(unsigned i);

/* Is the extension of a path's last component one of an image format (in any case)? A leading dot
 * starts a name, not an extension. */
bool format_promised(const char *path);

#endif

/* decode.h: from a picture's bytes to rows of RGB in memory that the caller owns.
 *
 * One `struct decode` per thread, reused for every file:
 *
 *     decode_begin   recognises the content and reads the header; allocates nothing that grows with
 *                    the picture. info.memory says what going on will cost: admit it first.
 *     decode_rows    any number of rows at a time, top to bottom as stored, straight into place
 *     decode_end     checks what is behind the last row, reads the rest of the file for the digest,
 *                    and looks whether the file changed meanwhile
 *     decode_abort   instead of going on, at any point after decode_begin
 *
 * decode_begin that fails needs neither end nor abort. After any other failure call decode_abort.
 * The outcome depends on the file and on the options, never on memory, threads or load.
 * Pixels are those of the contract: 8-bit RGB, interleaved, 3 bytes a pixel, grey as R = G = B,
 * alpha composited, rows in stored order (orientation is reported, not applied).
 */
#ifndef CLPIPE_DECODE_DECODE_H
#define CLPIPE_DECODE_DECODE_H

#include "base/blob.h"
#include "base/error.h"
#include "base/failure.h"
#include "base/stop.h"
#include "part/dct.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ALPHA_GREY: of decode_for_people. */
enum alpha_mode { ALPHA_WHITE, ALPHA_BLACK, ALPHA_DROP, ALPHA_GREY };

struct decode_options {
    enum alpha_mode alpha;
    uint64_t max_pixels; /* of the stored picture; more is REASON_TOO_LARGE */
    /* Limit for a progressive or multi-scan JPEG of up to 10 megapixels; proportionally lower for
     * larger ones, but not below 20 unless this is. More is REASON_TOO_MANY_SCANS. */
    uint32_t max_scans;
    unsigned scale;    /* 1, 2, 4 or 8: JPEG only, the codec's own scaling; others ignore it */
    bool icc;          /* embedded ICC profiles are applied: pixels become sRGB */
    bool coefficients; /* fill image_info.dct where that is possible; never changes the outcome */
    bool streams;      /* likewise image_info.stream_bytes; only with coefficients */
    /* Once this is overdue, reading ends: a failure from then on says nothing. May be NULL. */
    struct stop *stop;
};

/* white, 268435456, 100, 1, false, false, NULL */
void decode_options_default(struct decode_options *options);

/* For images that were decoded before: pixels as they were made with `alpha` and `icc`, words of a file's
 * parameters (NULL: the default), and no limits. */
void decode_options_again(struct decode_options *options, const char *alpha, const char *icc);

struct image_info {
    char format[8];                 /* "jpeg", "png": short lower-case name, NUL-padded */
    uint32_t width, height;         /* stored size, before orientation and scaling */
    uint32_t out_width, out_height; /* of the rows that decode_rows gives: differ when scaled */
    uint8_t orientation;            /* EXIF 1 to 8; 1 where absent or invalid */
    uint8_t channels; /* of the file's pixels: 1 grey, 2 grey+alpha, 3 RGB, 4 RGBA or CMYK;
                              a palette counts as 3, or 4 with transparency */
    bool profile;     /* there may be an ICC profile that was not applied; of decode_for_people: it
                              was, and changes colours */
    bool scale_ignored;    /* options.scale > 1 and the format has no scaling */
    bool progressive;      /* a JPEG of several scans that refine each other */
    uint64_t memory;       /* bytes the codec will hold beyond the caller's rows */
    struct dct_layout dct; /* colour other than DCT_NONE: decode_coefficients may be called */
    uint64_t stream_bytes; /* other than 0: decode_stream may be called, for at most so many */
};

struct decode;

/* A decoder whose codecs run on the calling thread; isolate.h has another. options are copied. */
enum status decode_open(struct decode **out, const struct decode_options *options,
                        struct error *err);

/* Before each file: a decoder that a crash has taken away is there again. */
enum status decode_ready(struct decode *decode, struct error *err);

/* A file that decode_begin will be called with. */
struct decode_file {
    const struct blob *blob;
    const char *path;
};
#define DECODE_AHEAD_MAX 16
/* How many files it pays to announce at a time, if they are small; 1: it does not. */
unsigned decode_ahead(const struct decode *decode);
/* Says which files decode_begin will be called with next, and in which order: an isolated decoder
 * takes them in one go. At most decode_ahead() of them, and none while others are left; blobs and
 * paths must last. What becomes of a file is the same with and without. */
void decode_announce(struct decode *decode, const struct decode_file *files, unsigned count);

/* The next file that decode_begin is called with has pixels for people to look at, whatever the options
 * say: in sRGB where the build can apply profiles, alpha over the grey 128, which shows both black and
 * white, and scaled by 1, 2, 4 or 8 as options.scale does. Not while files are announced. */
void decode_for_people(struct decode *decode, unsigned scale);
/* The largest scale that leaves the longer side `side` pixels, or all that it has. */
unsigned decode_scale_for(uint32_t width, uint32_t height, uint32_t side);

/* Starts on a file; the blob must stay open until end or abort. `path` only decides between
 * unknown-format and not-an-image. Fills *info and returns REASON_NONE, or fills *failure. A file
 * that is no longer what the blob says is REASON_CHANGED, as is every failure of a file that turns
 * out to have changed since. */
enum reason decode_begin(struct decode *decode, const struct blob *blob, const char *path,
                         struct image_info *info, struct failure *failure);

/* Decodes the next `rows` rows to dst, dst + stride, ... (stride in bytes, at least 3 * out_width;
 * bytes between rows are left alone). The sum of rows must not pass out_height. */
enum reason decode_rows(struct decode *decode, uint8_t *dst, size_t stride, uint32_t rows,
                        struct failure *failure);

/* Instead of any rows, where info.dct says so: all coefficients to dst, dct_bytes(&info.dct) of
 * them, aligned to 16 bytes. What dct_pixels (part/dct.h) makes of them is what decode_rows would
 * have given, and so is the failure. Ends with decode_end like rows do. */
enum reason decode_coefficients(struct decode *decode, void *dst, struct failure *failure);

/* Instead of any rows, where info.stream_bytes says so: the payload of part/stream.h, of a picture with
 * info.dct, to dst, aligned to 16 bytes. Ends with decode_end, which says nothing about the entropy
 * code: the decoder of streams accepts only what decode_rows would have decoded, to the same pixels, and
 * for what it refuses the file is decoded again. False: this is no such file; call decode_abort and
 * decode_begin, then decode coefficients or rows. */
bool decode_stream(struct decode *decode, void *dst);

/* Does the installed JPEG library compute pixels as dct_pixels does? Compares a few synthetic
 * images, in about a millisecond. If not, decode_options.coefficients must stay off. */
bool decode_coefficients_agree(void);

/* After the last row. digest: murmur3 of the whole file (base/hash.h). */
enum reason decode_end(struct decode *decode, uint64_t digest[2], struct failure *failure);

void decode_abort(struct decode *decode);

/* Bytes read from the file so far (the current or the last one). */
uint64_t decode_bytes_read(const struct decode *decode);

void decode_close(struct decode **decode);

/* The library behind options.icc with its version, or NULL: this build has none, and must not be
 * asked for it. */
const char *decode_icc_library(void);

/* --- the table ------------------------------------------------------------------------------- */

/* A format that content is recognised as, decodable or not. */
struct format {
    const char *name;       /* "jpeg" */
    const char *extensions; /* "jpg jpeg jpe jfif" */
    const char *library; /* "libjpeg-turbo 2.1.5 (API 62)", or NULL: this build cannot decode it */
    const char *notes;   /* "baseline, progressive, ...", or why it is not read and what to do */
};

/* Row i of `clpipe formats`, or NULL past the last. */
const struct format *format_at(unsigned i);

/* Does the extension of a path's last component promise an image (the contract's list, in any case)?
 * A leading dot starts a name, not an extension. */
bool format_promised(const char *path);

#endif

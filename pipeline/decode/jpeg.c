/* jpeg.c: JPEG through libjpeg-turbo's libjpeg API.
 *
 * The library's default decoder: accurate integer IDCT (ISLOW) and fancy upsampling. Rows are
 * decoded into the caller's memory; only CMYK uses a row buffer. Errors return by longjmp.
 *
 * Warnings about missing or wrong data fail the picture: the library would fill up with grey, for
 * hours if the header is large. The reason is `truncated` if the file ends inside a scan, else
 * `corrupt`. Warnings about metadata and stray bytes between markers are ignored. Progressive and
 * other multi-scan files are read completely before the first row; scans are limited, so that a
 * megabyte cannot cost hours.
 *
 * Coefficients are supported for files with one Huffman-coded scan, whose entropy decoder writes
 * each block once, into the caller's memory: clpipe's virtual arrays replace the library's. As much
 * of the file is read as for pixels, so failures are the same.
 *
 * Streams are supported for the same files if they have no unusual features: jpeg_stream.c.
 *
 * Metadata segments are read by clpipe's functions: the library would store every segment of a
 * type, without a limit. */
#include "decode/codec.h"
#include "decode/exif.h"
#include "decode/jpeg_dct.h"
#include "decode/jpeg_stream.h"

#include <assert.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <jerror.h> /* depends on JPEG_LIB_VERSION: jpeglib.h comes first, above */

#define SEGMENT_MAX 65533u
/* --max-scans applies to pictures of up to this many pixels; larger ones may have fewer scans, but
 * at least SCANS_ALWAYS, since each scan visits the whole picture. */
#define SCANNED_PIXELS 10000000u
#define SCANS_ALWAYS   20u
/* Bytes of "ICC_PROFILE\0", the chunk's number and the number of chunks. */
#define ICC_HEAD 14u

/* The blocks of a component in the caller's memory, replacing a virtual array of the library. */
struct block_array {
    JBLOCKROW first;
    JDIMENSION across, down;
    JBLOCKROW row[MAX_SAMP_FACTOR]; /* requested last */
};

enum { ESCAPE_FAILED = 1, ESCAPE_DONE };

struct jpeg {
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    jmp_buf escape;
    struct input *input;
    struct failure *failure; /* of the current call */
    bool started, ended;     /* decompression started; end of the file reached */
    uint32_t max_scans;
    uint8_t *cmyk; /* one row, or NULL */
    uint8_t segment[SEGMENT_MAX];
    bool in_header;
    uint8_t orientation; /* 0: no Exif block yet */
    /* The profile's chunks, by number. */
    struct chunk {
        uint8_t *data;
        size_t size;
    } chunk[256];
    size_t profile_size; /* sum of the chunks read so far */
    unsigned chunk_count;
    bool chunks_broken, has_profile;
    struct dct_layout dct;
    struct block_array array[DCT_COMPONENTS];
    unsigned arrays;   /* arrays handed out */
    bool coefficients; /* reading coefficients, not rows */
    struct stream_head stream;
    uint64_t scan_bytes; /* upper bound: the rest of the file */
};

static const char *library_name(void)
{
#ifdef LIBJPEG_TURBO_VERSION
    return "libjpeg-turbo " CODEC_TEXT(LIBJPEG_TURBO_VERSION) " (API " CODEC_TEXT(
        JPEG_LIB_VERSION) ")";
#else
    return "libjpeg (API " CODEC_TEXT(JPEG_LIB_VERSION) ")";
#endif
}

/* --- errors ---------------------------------------------------------------------------------- */

_Noreturn static void escape(struct jpeg *jpeg)
{
    longjmp(jpeg->escape, ESCAPE_FAILED);
}

static enum reason reason_of_error(const struct jpeg *jpeg, int code)
{
    switch (code) {
    case JERR_OUT_OF_MEMORY:
        return REASON_OUT_OF_MEMORY;
    case JERR_SOF_UNSUPPORTED:
    case JERR_BAD_PRECISION:
#if JPEG_LIB_VERSION < 70
    case JERR_ARITH_NOTIMPL:
#endif
    case JERR_CONVERSION_NOTIMPL:
    case JERR_NOT_COMPILED:
    case JERR_CCIR601_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
        return REASON_UNSUPPORTED;
    case JERR_IMAGE_TOO_BIG: /* library limit: 65500 per side */
        return REASON_TOO_LARGE;
    case JERR_EMPTY_IMAGE: /* no height: defined by a DNL segment after the first scan */
        if (jpeg->info.image_height == 0 && jpeg->info.image_width > 0 && !jpeg->ended)
            return REASON_UNSUPPORTED;
        return jpeg->ended ? REASON_TRUNCATED : REASON_CORRUPT;
    case JERR_INPUT_EMPTY:
    case JERR_INPUT_EOF:
        return REASON_TRUNCATED;
    default:
        return jpeg->ended ? REASON_TRUNCATED : REASON_CORRUPT;
    }
}

/* Fails the current call. After the end of the file, the library complains about the inserted end
 * marker; that message is not reported. */
_Noreturn static void fail(struct jpeg *jpeg, enum reason reason)
{
    char text[JMSG_LENGTH_MAX];
    jpeg->errors.format_message((j_common_ptr)&jpeg->info, text);
    if (jpeg->input->error_number)
        failure_errno(jpeg->failure, REASON_UNREADABLE, jpeg->input->error_number, "read failed");
    else
        failure_set(jpeg->failure, reason, "%s",
                    reason == REASON_TRUNCATED ? "the file ends early" : text);
    escape(jpeg);
}

static void on_error(j_common_ptr common)
{
    struct jpeg *jpeg = common->client_data;
    fail(jpeg, reason_of_error(jpeg, common->err->msg_code));
}

static void on_message(j_common_ptr common, int level)
{
    struct jpeg *jpeg = common->client_data;
    const int code = common->err->msg_code;
    /* Warnings that do not affect pixels. */
    const bool benign = code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR ||
                        code == JWRN_EXTRANEOUS_DATA || code == JWRN_JPEG_EOF ||
                        code == JWRN_NOT_SEQUENTIAL || code == JWRN_BOGUS_ICC;
    if (level < 0 && !benign)
        fail(jpeg, jpeg->ended ? REASON_TRUNCATED : REASON_CORRUPT);
}

static void on_output(j_common_ptr common)
{
    (void)common;
}

/* The arithmetic decoder silently reads zeros for missing data: encoders may omit trailing zeros,
 * but only before a marker. */
static bool is_cut_arithmetic(const struct jpeg *jpeg)
{
    return jpeg->ended && jpeg->info.arith_code;
}

static uint32_t scans_allowed(uint64_t pixels, uint32_t max_scans)
{
    if (pixels <= SCANNED_PIXELS || max_scans <= SCANS_ALWAYS)
        return max_scans;
    uint64_t fewer = (uint64_t)max_scans * SCANNED_PIXELS / pixels;
    return fewer > SCANS_ALWAYS ? (uint32_t)fewer : SCANS_ALWAYS;
}

/* Called while scans and rows are read: limits the number of scans. Coefficients are complete after
 * one scan; reading would continue to the end marker. */
static void on_progress(j_common_ptr common)
{
    struct jpeg *jpeg = common->client_data;
    if (jpeg->coefficients && jpeg->info.input_iMCU_row == jpeg->info.total_iMCU_rows)
        longjmp(jpeg->escape, ESCAPE_DONE);
    if ((uint32_t)jpeg->info.input_scan_number > jpeg->max_scans) {
        failure_set(jpeg->failure, REASON_TOO_MANY_SCANS,
                    "more than %u scans of %u x %u pixels (--max-scans)", jpeg->max_scans,
                    jpeg->info.image_width, jpeg->info.image_height);
        escape(jpeg);
    }
    if (is_cut_arithmetic(jpeg))
        fail(jpeg, REASON_TRUNCATED);
}

/* --- the source ------------------------------------------------------------------------------ */

static void source_nothing(j_decompress_ptr info)
{
    (void)info;
}

/* Gives the library the unread bytes of the input's buffer. */
static void give_input(struct jpeg *jpeg)
{
    jpeg->source.next_input_byte = jpeg->input->buffer + jpeg->input->position;
    jpeg->source.bytes_in_buffer = jpeg->input->end - jpeg->input->position;
}

/* Takes back those that it has not read. */
static void take_back_input(struct jpeg *jpeg)
{
    jpeg->input->position = jpeg->input->end - (jpeg->ended ? 0 : jpeg->source.bytes_in_buffer);
}

static boolean source_fill(j_decompress_ptr info)
{
    static const JOCTET end_of_image[2] = {0xff, JPEG_EOI};
    struct jpeg *jpeg = info->client_data;
    jpeg->input->position = jpeg->input->end;
    if (!input_fill(jpeg->input)) {
        jpeg->ended = true;
        WARNMS(info, JWRN_JPEG_EOF);
        info->src->next_input_byte = end_of_image;
        info->src->bytes_in_buffer = 2;
        return TRUE;
    }
    give_input(jpeg);
    return TRUE;
}

static void source_skip(j_decompress_ptr info, long count)
{
    struct jpeg *jpeg = info->client_data;
    if (count <= 0)
        return;
    take_back_input(jpeg);
    input_read(jpeg->input, NULL, (size_t)count);
    give_input(jpeg);
}

/* --- segments -------------------------------------------------------------------------------- */

/* Reads up to `size` bytes; returns how many. */
static size_t take(struct jpeg *jpeg, uint8_t *out, size_t size)
{
    take_back_input(jpeg);
    const size_t done = input_read(jpeg->input, out, size);
    give_input(jpeg);
    if (done < size)
        source_fill(&jpeg->info);
    return done;
}

/* Reads a whole segment after its marker; returns the length of its data. */
static size_t take_segment(struct jpeg *jpeg)
{
    uint8_t length[2] = {0};
    take(jpeg, length, 2);
    size_t size = (size_t)length[0] << 8 | length[1];
    return size > 2 ? take(jpeg, jpeg->segment, size - 2) : 0;
}

static boolean on_app1(j_decompress_ptr info)
{
    struct jpeg *jpeg = info->client_data;
    size_t size = take_segment(jpeg);
    if (jpeg->in_header && jpeg->orientation == 0 && size > 6 &&
        memcmp(jpeg->segment, "Exif\0", 5) == 0)
        jpeg->orientation = exif_orientation(jpeg->segment + 6, size - 6);
    return TRUE;
}

static boolean on_app2(j_decompress_ptr info)
{
    struct jpeg *jpeg = info->client_data;
    size_t size = take_segment(jpeg);
    if (!jpeg->in_header || size < ICC_HEAD || memcmp(jpeg->segment, "ICC_PROFILE", 12) != 0)
        return TRUE;
    jpeg->has_profile = true;
    if (!jpeg->input->colours->wanted)
        return TRUE;
    unsigned number = jpeg->segment[12], count = jpeg->segment[13];
    size -= ICC_HEAD;
    if (number == 0 || number > count || (jpeg->chunk_count && jpeg->chunk_count != count) ||
        jpeg->chunk[number].data || jpeg->profile_size + size > ICC_PROFILE_MAX) {
        jpeg->chunks_broken = true;
        return TRUE;
    }
    uint8_t *data = malloc(size ? size : 1);
    if (!data) {
        failure_set(jpeg->failure, REASON_OUT_OF_MEMORY, "no memory for a colour profile");
        escape(jpeg);
    }
    memcpy(data, jpeg->segment + ICC_HEAD, size);
    jpeg->chunk[number] = (struct chunk){data, size};
    jpeg->chunk_count = count;
    jpeg->profile_size += size;
    return TRUE;
}

static void drop_chunks(struct jpeg *jpeg)
{
    for (unsigned i = 0; jpeg->chunk_count && i < 256; i++) {
        free(jpeg->chunk[i].data);
        jpeg->chunk[i] = (struct chunk){NULL, 0};
    }
    jpeg->profile_size = 0;
    jpeg->chunk_count = 0;
    jpeg->chunks_broken = false;
}

/* Joins the chunks of the profile if all are there. */
static enum reason take_profile(struct jpeg *jpeg, uint64_t *memory, struct failure *failure)
{
    int components = jpeg->info.num_components;
    *memory += jpeg->profile_size;
    bool whole = jpeg->chunk_count > 0 && !jpeg->chunks_broken;
    for (unsigned i = 1; i <= jpeg->chunk_count; i++)
        whole = whole && jpeg->chunk[i].data;
    uint8_t *profile = whole ? malloc(jpeg->profile_size + 1) : NULL, *at = profile;
    for (unsigned i = 1; profile && i <= jpeg->chunk_count; at += jpeg->chunk[i].size, i++)
        memcpy(at, jpeg->chunk[i].data, jpeg->chunk[i].size);
    if (whole)
        colours_profile(jpeg->input->colours, memory, profile, jpeg->profile_size,
                        components == 1   ? ICC_GREY
                        : components == 4 ? ICC_CMYK
                                          : ICC_RGB,
                        failure);
    free(profile);
    drop_chunks(jpeg);
    return failure->reason;
}

/* --- the codec ------------------------------------------------------------------------------- */

/* Creates a decompressor for one file: a decompressor keeps tables, so a file that lacks tables
 * would be decoded with those of an earlier file. false: no memory. */
static bool create_decompressor(struct jpeg *jpeg)
{
    struct failure ignored = {0};
    jpeg->failure = &ignored;
    if (setjmp(jpeg->escape)) {
        jpeg_destroy_decompress(&jpeg->info);
        jpeg->failure = NULL;
        return false;
    }
    jpeg_create_decompress(&jpeg->info);
    jpeg->info.src = &jpeg->source;
    jpeg->info.progress = &jpeg->progress;
    jpeg_set_marker_processor(&jpeg->info, JPEG_APP0 + 1, on_app1);
    jpeg_set_marker_processor(&jpeg->info, JPEG_APP0 + 2, on_app2);
    jpeg->failure = NULL;
    return true;
}

static void jpeg_init(void *state)
{
    struct jpeg *jpeg = state;
    jpeg->info.err = jpeg_std_error(&jpeg->errors);
    jpeg->errors.error_exit = on_error;
    jpeg->errors.emit_message = on_message;
    jpeg->errors.output_message = on_output;
    jpeg->info.client_data = jpeg;
    jpeg->source = (struct jpeg_source_mgr){.init_source = source_nothing,
                                            .fill_input_buffer = source_fill,
                                            .skip_input_data = source_skip,
                                            .resync_to_restart = jpeg_resync_to_restart,
                                            .term_source = source_nothing};
    jpeg->progress.progress_monitor = on_progress;
}

static void jpeg_reset(void *state)
{
    struct jpeg *jpeg = state;
    jpeg_destroy_decompress(&jpeg->info);
    free(jpeg->cmyk);
    jpeg->cmyk = NULL;
    drop_chunks(jpeg);
    jpeg->started = jpeg->ended = jpeg->coefficients = false;
}

/* Bytes needed for decoding: rows of every component for the upsampler and, for multi-scan files,
 * all coefficients (2 bytes each, whole blocks, rounded up to the sampling factors). */
static uint64_t memory_needed(struct jpeg_decompress_struct *info)
{
    uint64_t bytes = 256u << 10;
    bool whole = jpeg_has_multiple_scans(info);
    for (int c = 0; c < info->num_components; c++) {
        const jpeg_component_info *component = &info->comp_info[c];
        uint64_t h = (uint64_t)component->h_samp_factor, v = (uint64_t)component->v_samp_factor;
        /* Not the component's own count of blocks, which are samples in lossless files. */
        uint64_t across = (info->image_width * h + 8ull * (unsigned)info->max_h_samp_factor - 1) /
                          (8ull * (unsigned)info->max_h_samp_factor);
        uint64_t down = (info->image_height * v + 8ull * (unsigned)info->max_v_samp_factor - 1) /
                        (8ull * (unsigned)info->max_v_samp_factor);
        across = (across + h - 1) / h * h;
        down = (down + v - 1) / v * v;
        bytes += across * 8 * (5ull * v * 8);
        if (whole)
            bytes += across * down * 64 * sizeof(JCOEF);
    }
    return bytes + (uint64_t)info->image_width * 16;
}

static enum reason jpeg_begin(void *state, struct input *input,
                              const struct decode_options *options, struct image_info *info,
                              struct failure *failure)
{
    struct jpeg *jpeg = state;
    jpeg->input = input;
    if (!create_decompressor(jpeg))
        return failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for libjpeg");
    jpeg->failure = failure;
    jpeg->ended = jpeg->has_profile = false;
    jpeg->orientation = 0;
    jpeg->max_scans = UINT32_MAX;
    give_input(jpeg);
    if (setjmp(jpeg->escape))
        return failure->reason;
    jpeg->in_header = true;
    jpeg_read_header(&jpeg->info, TRUE);
    jpeg->in_header = false;
    uint64_t pixels = (uint64_t)jpeg->info.image_width * jpeg->info.image_height;
    if (codec_set_size(info, jpeg->info.image_width, jpeg->info.image_height, options, failure) !=
        REASON_NONE)
        return failure->reason;
    jpeg->max_scans = scans_allowed(pixels, options->max_scans);
    int components = jpeg->info.num_components;
    bool four = components == 4;
    if (components != 1 && components != 3 && !four)
        return failure_set(failure, REASON_UNSUPPORTED, "%d colour components", components);
    if (take_profile(jpeg, &info->memory, failure) != REASON_NONE)
        return failure->reason;
    jpeg->info.out_color_space = four ? JCS_CMYK : JCS_RGB;
    jpeg->info.dct_method = JDCT_ISLOW;
    jpeg->info.do_fancy_upsampling = TRUE;
    jpeg->info.scale_num = 1;
    jpeg->info.scale_denom = options->scale;
    jpeg_calc_output_dimensions(&jpeg->info);
    info->out_width = jpeg->info.output_width;
    info->out_height = jpeg->info.output_height;
    info->orientation = jpeg->orientation ? jpeg->orientation : 1;
    info->channels = (uint8_t)jpeg->info.num_components;
    info->progressive = jpeg->info.progressive_mode;
    info->profile = colours_tell(input->colours, jpeg->has_profile);
    info->memory += memory_needed(&jpeg->info) + (four ? 4ull * info->out_width : 0);
    jpeg->dct = (struct dct_layout){0};
    if (options->coefficients && !input->colours->managed)
        jpeg_dct_layout(&jpeg->dct, &jpeg->info);
    info->dct = jpeg->dct;
    jpeg->scan_bytes = input->blob.bytes + jpeg->source.bytes_in_buffer - input->total;
    if (options->streams && jpeg->dct.colour != DCT_NONE && jpeg->scan_bytes <= STREAM_BYTES_MAX &&
        jpeg_stream_begin(&jpeg->stream, &jpeg->info, &jpeg->dct))
        info->stream_bytes = stream_bytes(&jpeg->stream, jpeg->scan_bytes);
    return REASON_NONE;
}

/* Inverted CMYK to RGB. */
static void convert_cmyk(uint8_t *dst, const uint8_t *src, uint32_t width)
{
    for (uint32_t x = 0; x < width; x++, src += 4, dst += 3)
        for (int c = 0; c < 3; c++)
            dst[c] = (uint8_t)((src[c] * src[3] + 127) / 255);
}

/* Is all data there? Checked for multi-scan files without an end marker: every component must be in
 * some scan and, in progressive files, all bits of all coefficients. */
static bool is_complete(const struct jpeg_decompress_struct *info)
{
    for (int c = 0; c < info->num_components; c++) {
        if (!info->comp_info[c].quant_table)
            return false;
        for (int k = 0; info->coef_bits && k < DCTSIZE2; k++) {
            if (info->coef_bits[c][k] != 0)
                return false;
        }
    }
    return true;
}

/* setjmp is in a function of its own, so that no local is clobbered. */
static enum reason read_rows(struct jpeg *jpeg, uint8_t *dst, size_t stride, uint32_t rows,
                             struct failure *failure)
{
    const struct colours *colours = jpeg->input->colours;
    if (!jpeg->started) {
        jpeg->started = true;
        jpeg_start_decompress(&jpeg->info);
        if (jpeg->ended && jpeg_has_multiple_scans(&jpeg->info) && !is_complete(&jpeg->info))
            return codec_short(jpeg->input, failure, "the file ends before the last scan");
        if (jpeg->info.num_components == 4) {
            jpeg->cmyk = malloc((size_t)jpeg->info.output_width * 4);
            if (!jpeg->cmyk)
                return failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for a row");
        }
    }
    while (rows > 0) {
        JSAMPROW row[16];
        uint32_t n = 0;
        if (jpeg->cmyk) {
            row[n++] = jpeg->cmyk;
        } else {
            for (; n < 16 && n < rows; n++)
                row[n] = dst + n * stride;
        }
        JDIMENSION got = jpeg_read_scanlines(&jpeg->info, row, n);
        if (got == 0)
            return failure_set(failure, REASON_CORRUPT, "the decoder returned no rows");
        uint32_t width = jpeg->info.output_width;
        /* Adobe's files store inverted values. */
        if (jpeg->cmyk && !jpeg->info.saw_Adobe_marker)
            for (size_t i = 0; i < 4 * (size_t)width; i++)
                jpeg->cmyk[i] = 255 - jpeg->cmyk[i];
        if (jpeg->cmyk && !colours->managed)
            convert_cmyk(dst, jpeg->cmyk, width);
        for (uint32_t i = 0; i < got; i++)
            colours_finish(colours, row[i] == jpeg->cmyk ? dst : row[i], row[i], width);
        dst += got * stride;
        rows -= got;
    }
    return REASON_NONE;
}

static enum reason jpeg_rows(void *state, uint8_t *dst, size_t stride, uint32_t rows,
                             struct failure *failure)
{
    struct jpeg *jpeg = state;
    jpeg->failure = failure;
    if (setjmp(jpeg->escape))
        return failure->reason;
    return read_rows(jpeg, dst, stride, rows, failure);
}

/* --- coefficients ---------------------------------------------------------------------------- */

static jvirt_barray_ptr request_array(j_common_ptr common, int pool, boolean zeroed,
                                      JDIMENSION across, JDIMENSION down, JDIMENSION at_once)
{
    struct jpeg *jpeg = common->client_data;
    (void)pool;
    (void)zeroed;
    assert(jpeg->arrays < DCT_COMPONENTS && at_once <= MAX_SAMP_FACTOR);
    struct block_array *array = &jpeg->array[jpeg->arrays++];
    assert(across == array->across && down == array->down);
    return (jvirt_barray_ptr)array;
}

static void realize_arrays(j_common_ptr common)
{
    (void)common; /* nothing to allocate */
}

/* Each row of blocks is requested once, for writing. */
static JBLOCKARRAY access_array(j_common_ptr common, jvirt_barray_ptr pointer, JDIMENSION start,
                                JDIMENSION count, boolean writable)
{
    struct block_array *array = (struct block_array *)pointer;
    (void)common;
    (void)writable;
    assert(count <= MAX_SAMP_FACTOR && count <= array->down && start <= array->down - count);
    for (JDIMENSION i = 0; i < count; i++)
        array->row[i] = array->first + (size_t)(start + i) * array->across;
    memset(array->row[0], 0, (size_t)count * array->across * sizeof(JBLOCK));
    return array->row;
}

static enum reason jpeg_coefficients(void *state, void *dst, struct failure *failure)
{
    struct jpeg *jpeg = state;
    uint16_t *table = dst;
    JBLOCKROW block = (JBLOCKROW)(table + DCT_COMPONENTS * DCT_BLOCK);
    jpeg->failure = failure;
    jpeg->started = jpeg->coefficients = true;
    jpeg->arrays = 0;
    for (unsigned c = 0; c < DCT_COMPONENTS; c++) {
        jpeg->array[c].first = block;
        jpeg->array[c].across = jpeg->dct.blocks_across[c];
        jpeg->array[c].down = jpeg->dct.blocks_down[c];
        block += dct_component_blocks(&jpeg->dct, c);
    }
    jpeg->info.mem->request_virt_barray = request_array;
    jpeg->info.mem->realize_virt_arrays = realize_arrays;
    jpeg->info.mem->access_virt_barray = access_array;
    switch (setjmp(jpeg->escape)) {
    case 0:
        jpeg_read_coefficients(&jpeg->info); /* left by longjmp from on_progress */
        return failure_set(failure, REASON_CORRUPT, "the decoder did not end");
    case ESCAPE_DONE:
        break;
    default:
        return failure->reason;
    }
    for (int c = 0; c < (int)DCT_COMPONENTS; c++) {
        const bool there = c < jpeg->info.num_components;
        for (unsigned i = 0; i < DCT_BLOCK; i++)
            table[c * (int)DCT_BLOCK + (int)i] =
                there ? jpeg->info.comp_info[c].quant_table->quantval[i] : 0;
    }
    return REASON_NONE;
}

static bool jpeg_stream(void *state, void *dst)
{
    struct jpeg *jpeg = state;
    take_back_input(jpeg);
    const bool good = jpeg_stream_read(dst, &jpeg->stream, jpeg->scan_bytes, jpeg->input);
    give_input(jpeg);
    return good;
}

static enum reason jpeg_end(void *state, struct failure *failure)
{
    struct jpeg *jpeg = state;
    if (is_cut_arithmetic(jpeg))
        return codec_short(jpeg->input, failure, "the file ends early");
    /* Data after the last row is not read: a missing end marker is not a failure. */
    take_back_input(jpeg);
    return REASON_NONE;
}

const struct codec codec_jpeg = {
    .library = library_name,
    .state_bytes = sizeof(struct jpeg),
    .init = jpeg_init,
    .begin = jpeg_begin,
    .rows = jpeg_rows,
    .coefficients = jpeg_coefficients,
    .stream = jpeg_stream,
    .end = jpeg_end,
    .reset = jpeg_reset,
};

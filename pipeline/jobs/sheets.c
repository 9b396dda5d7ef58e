/* sheets.c: makes JPEG files of many thumbnails.
 *
 * A thumbnail and a sheet have the same quantization tables and sampling, and cells begin at
 * multiples of 16 pixels, so the coefficients of a thumbnail's blocks are copied and only entropy
 * coding is repeated, without loss. Thumbnails in other formats, stored by other programs, are
 * decoded and encoded again. So are large ones in a sheet with small ones, which has no
 * subsampling: decoders interpolate colours across the border of a cell, and small pictures are
 * mostly border. */
#include "base/minmax.h"
#include "decode/jpeg_errors.h"
#include "decode/thumbnail.h"
#include "jobs/thumbs.h"

#include <stdlib.h>
#include <string.h>

#define SHEET_SIDE   2048u /* upper bound in pixels if there is more than one column */
#define COLUMNS_MOST 32u
#define MCU          16u /* pixels per MCU with 4:2:0 */

struct sheets {
    struct thumbs *thumbs;
    const struct sheets_config *config;
    struct thumb_place *places;
    struct sheet_grid grid;
    uint64_t cells;
    uint64_t first; /* first sheet of the batch */
};

/* A decompressor and a compressor of the library with a common error exit. */
struct codec {
    struct jpeg_compress_struct out;
    struct jpeg_decompress_struct in;
    struct jpeg_errors errors;
    bool fine; /* the sheet has no subsampling */
    uint8_t *file;
    unsigned long file_bytes;
    uint8_t *thumbnail; /* as stored, or encoded again */
    size_t room;
    uint8_t *remade;
    bool made[2]; /* whether `in` and `out` were created */
};

static void close_codec(struct codec *codec)
{
    if (codec->made[0])
        jpeg_destroy_compress(&codec->out);
    if (codec->made[1])
        jpeg_destroy_decompress(&codec->in);
    free(codec->file);
    free(codec->thumbnail);
    free(codec->remade);
}

/* Side of a block of component c, in pixels. */
static JDIMENSION side_of(const struct codec *codec, int c)
{
    return c && !codec->fine ? MCU : DCTSIZE;
}

/* Starts a sheet of width x height pixels; its blocks are zero, which is grey. */
static bool begin_sheet(struct codec *codec, jvirt_barray_ptr array[3], uint32_t width,
                        uint32_t height)
{
    struct jpeg_compress_struct *out = &codec->out;
    codec->out.err = codec->in.err = jpeg_errors_init(&codec->errors);
    if (setjmp(codec->errors.escape))
        return false;
    jpeg_create_compress(out);
    codec->made[0] = true;
    jpeg_create_decompress(&codec->in);
    codec->made[1] = true;
    jpeg_mem_dest(out, &codec->file, &codec->file_bytes);
    out->image_width = width;
    out->image_height = height;
#if JPEG_LIB_VERSION >= 70
    out->jpeg_width = width;
    out->jpeg_height = height;
    out->min_DCT_h_scaled_size = out->min_DCT_v_scaled_size = DCTSIZE;
#endif
    out->in_color_space = JCS_RGB;
    out->input_components = 3;
    jpeg_set_defaults(out);
    jpeg_set_quality(out, THUMBNAIL_QUALITY, TRUE);
    out->optimize_coding = TRUE;
    if (codec->fine)
        out->comp_info[0].h_samp_factor = out->comp_info[0].v_samp_factor = 1;
    for (int c = 0; c < 3; c++) {
        const JDIMENSION side = side_of(codec, c);
        const JDIMENSION v = (JDIMENSION)out->comp_info[c].v_samp_factor;
        array[c] = out->mem->request_virt_barray((j_common_ptr)out, JPOOL_IMAGE, TRUE, width / side,
                                                 height / side, v);
    }
    jpeg_write_coefficients(out, array);
    /* libjpeg requires that rows are first accessed in order. */
    for (int c = 0; c < 3; c++)
        for (JDIMENSION row = 0; row < height / side_of(codec, c); row++)
            out->mem->access_virt_barray((j_common_ptr)out, array[c], row, 1, TRUE);
    return true;
}

/* Does the opened file have the sheet's sampling and quantization? */
static bool is_alike(const struct codec *codec)
{
    const struct jpeg_decompress_struct *in = &codec->in;
    if (in->num_components != 3 || in->jpeg_color_space != JCS_YCbCr || in->data_precision != 8)
        return false;
    for (int c = 0; c < 3; c++) {
        const jpeg_component_info *component = &in->comp_info[c];
        const int sampling = codec->out.comp_info[c].h_samp_factor;
        const JQUANT_TBL *table = codec->out.quant_tbl_ptrs[c ? 1 : 0];
        if (component->h_samp_factor != sampling || component->v_samp_factor != sampling ||
            !component->quant_table ||
            memcmp(component->quant_table->quantval, table->quantval, sizeof table->quantval) != 0)
            return false;
    }
    return true;
}

enum outcome { OUTCOME_DONE, OUTCOME_UNLIKE, OUTCOME_SMALL, OUTCOME_BROKEN };

/* Copies a thumbnail's blocks to the cell at (x, y). Everything runs under setjmp: no local is used
 * afterwards. */
static enum outcome copy_blocks(struct codec *codec, jvirt_barray_ptr sheet[3],
                                struct thumb_place *place, const uint8_t *jpeg, uint32_t length,
                                uint32_t cell)
{
    struct jpeg_decompress_struct *in = &codec->in;
    if (setjmp(codec->errors.escape)) {
        jpeg_abort_decompress(in);
        return OUTCOME_BROKEN;
    }
    jpeg_mem_src(in, jpeg, length);
    jpeg_read_header(in, TRUE);
    if (in->image_width > cell || in->image_height > cell) {
        jpeg_abort_decompress(in);
        return OUTCOME_UNLIKE;
    }
    if (!codec->fine && min_u32(in->image_width, in->image_height) <= THUMBNAIL_FINE) {
        jpeg_abort_decompress(in);
        return OUTCOME_SMALL;
    }
    jvirt_barray_ptr *blocks = jpeg_read_coefficients(in);
    if (!is_alike(codec)) {
        jpeg_abort_decompress(in);
        return OUTCOME_UNLIKE;
    }
    for (int c = 0; c < 3; c++) {
        const jpeg_component_info *component = &in->comp_info[c];
        const JDIMENSION side = side_of(codec, c);
        for (JDIMENSION row = 0; row < component->height_in_blocks; row++) {
            JBLOCKARRAY from =
                in->mem->access_virt_barray((j_common_ptr)in, blocks[c], row, 1, FALSE);
            JBLOCKARRAY to = codec->out.mem->access_virt_barray((j_common_ptr)&codec->out, sheet[c],
                                                                place->y / side + row, 1, TRUE);
            memcpy(to[0] + place->x / side, from[0], component->width_in_blocks * sizeof(JBLOCK));
        }
    }
    place->width = (uint16_t)in->image_width;
    place->height = (uint16_t)in->image_height;
    jpeg_finish_decompress(in);
    return OUTCOME_DONE;
}

/* Decodes any JPEG file and encodes it as a thumbnail. */
static bool remake(struct codec *codec, const uint8_t *jpeg, uint32_t length, uint32_t size,
                   uint32_t *bytes)
{
    struct jpeg_decompress_struct *in = &codec->in;
    struct thumbnail_maker *volatile maker = thumbnail_maker_new(size, codec->fine);
    uint8_t *volatile row = NULL;
    bool volatile done = false;
    free(codec->remade);
    codec->remade = NULL;
    if (maker && setjmp(codec->errors.escape) == 0) {
        jpeg_mem_src(in, jpeg, length);
        jpeg_read_header(in, TRUE);
        in->out_color_space = JCS_RGB;
        if (in->image_width > THUMBNAIL_MOST || in->image_height > THUMBNAIL_MOST)
            longjmp(codec->errors.escape, 1);
        jpeg_start_decompress(in);
        row = malloc((size_t)in->output_width * 3);
        thumbnail_begin(maker, in->output_width, in->output_height, 1);
        while (row && in->output_scanline < in->output_height) {
            JSAMPROW to = row;
            jpeg_read_scanlines(in, &to, 1);
            thumbnail_rows(maker, row, 0, 1);
        }
        done = row != NULL;
    }
    jpeg_abort_decompress(in);
    if (done)
        codec->remade = thumbnail_finish(maker, bytes);
    thumbnail_maker_free(maker);
    free(row);
    return codec->remade != NULL;
}

static bool finish_sheet(struct codec *codec)
{
    if (setjmp(codec->errors.escape))
        return false;
    jpeg_finish_compress(&codec->out);
    return true;
}

/* *small: set if a thumbnail is too small for a sheet with subsampling. */
static enum status fill_sheet(bool *small, struct sheets *sheets, struct codec *codec,
                              jvirt_barray_ptr array[3], uint64_t first, uint64_t count,
                              struct error *err)
{
    const uint32_t cell = sheets->grid.cell;
    *small = false;
    for (uint64_t i = 0; i < count; i++) {
        struct thumb_place *place = &sheets->places[first + i];
        const uint64_t row = sheets->config->rows[first + i];
        *place = (struct thumb_place){.x = (uint16_t)(i % sheets->grid.columns * cell),
                                      .y = (uint16_t)(i / sheets->grid.columns * cell)};
        uint32_t length = sheets->thumbs->length[row];
        if (length == 0)
            continue;
        enum status status = thumbs_read(&codec->thumbnail, &codec->room, sheets->thumbs, row, err);
        if (status != STATUS_OK)
            return status;
        enum outcome outcome = copy_blocks(codec, array, place, codec->thumbnail, length, cell);
        if (outcome == OUTCOME_UNLIKE &&
            remake(codec, codec->thumbnail, length, sheets->thumbs->size, &length))
            outcome = copy_blocks(codec, array, place, codec->remade, length, cell);
        *small = outcome == OUTCOME_SMALL;
        if (*small)
            return STATUS_OK;
        if (outcome != OUTCOME_DONE) /* treated as missing */
            place->width = place->height = 0;
    }
    return STATUS_OK;
}

static enum status make_sheet(struct sheets *sheets, uint64_t sheet, struct error *err)
{
    const struct sheet_grid *grid = &sheets->grid;
    const uint64_t first = sheet * sheets->cells;
    const uint64_t count = min_u64(sheets->cells, sheets->config->count - first);
    const uint32_t rows = (uint32_t)((count + grid->columns - 1) / grid->columns);
    const uint32_t columns = grid->columns; /* even for few thumbnails: pages scale a sheet by its
                                             * columns */
    struct codec codec = {.file = NULL};
    jvirt_barray_ptr array[3];
    enum status status = STATUS_OK;
    bool small = false;
    do {
        close_codec(&codec);
        codec = (struct codec){.fine = small};
        if (!begin_sheet(&codec, array, columns * grid->cell, rows * grid->cell))
            status = error_memory(err, (size_t)columns * rows * grid->cell * grid->cell * 3,
                                  "a sheet of thumbnails");
        if (status == STATUS_OK)
            status = fill_sheet(&small, sheets, &codec, array, first, count, err);
    } while (status == STATUS_OK && small);
    if (status == STATUS_OK && !finish_sheet(&codec))
        status = error_memory(err, codec.file_bytes, "a sheet of thumbnails");
    if (status == STATUS_OK)
        status =
            sheets->config->write(sheets->config->context, sheets->config->first + (uint32_t)sheet,
                                  codec.file, codec.file_bytes, err);
    close_codec(&codec);
    return status;
}

static enum status do_sheet(void *context, uint64_t i, struct error *err)
{
    struct sheets *sheets = context;
    return make_sheet(sheets, sheets->first + i, err);
}

struct sheet_grid thumbs_grid(const struct thumbs *thumbs)
{
    const uint32_t cell = (thumbs->size + MCU - 1) / MCU * MCU;
    const uint32_t columns = min_u32(max_u32(SHEET_SIDE / cell, 1), COLUMNS_MOST);
    return (struct sheet_grid){cell, columns, columns};
}

enum status thumbs_sheets(struct thumb_place *places, struct thumbs *thumbs,
                          const struct sheets_config *config, struct error *err)
{
    struct sheets sheets = {
        .thumbs = thumbs, .config = config, .places = places, .grid = thumbs_grid(thumbs)};
    sheets.cells = (uint64_t)sheets.grid.columns * sheets.grid.rows;
    const uint64_t total = (config->count + sheets.cells - 1) / sheets.cells;
    const uint64_t batch = 2ull * thumbs->machine->threads;
    if (total > UINT32_MAX - config->first)
        return error_set(err, STATUS_FAILED, "too many thumbnails for sheets");
    enum status status = STATUS_OK;
    while (sheets.first < total && status == STATUS_OK) {
        const uint64_t count = min_u64(batch, total - sheets.first);
        status = workers_try(thumbs->workers, do_sheet, &sheets, count, err);
        sheets.first += count;
        if (status == STATUS_OK)
            status = watch_check(&thumbs->machine->watch, "writing sheets of thumbnails", err);
        if (status == STATUS_OK)
            watch_show(&thumbs->machine->watch, "sheets", sheets.first, total);
    }
    return status;
}

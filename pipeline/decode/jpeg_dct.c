/* jpeg_dct.c: which files can be decoded by decode/dct.c, and whether it agrees with the installed
 * JPEG library.
 *
 * decode/dct.c follows libjpeg-turbo's SIMD code for x86. Builds without it, other architectures and
 * other libraries agree on photographs, but differ if hostile coefficients overflow 16 bits. This
 * is tested: synthetic pictures, a third with coefficients of any size, are encoded, decoded by the
 * library, and compared with the plain C result. */
#include "decode/jpeg_dct.h"

#include "base/random.h"
#include "decode/dct_synthetic.h"
#include "decode/decode.h"
#include "decode/jpeg_errors.h"

#include <stdlib.h>
#include <string.h>

void jpeg_dct_layout(struct dct_layout *layout, struct jpeg_decompress_struct *info)
{
    const jpeg_component_info *first = &info->comp_info[0];
    const bool grey = info->num_components == 1 && info->jpeg_color_space == JCS_GRAYSCALE;
    const bool ycc = info->num_components == 3 && info->jpeg_color_space == JCS_YCbCr;
    const bool rgb = info->num_components == 3 && info->jpeg_color_space == JCS_RGB;
    int across = 1, down = 1;
    if (info->scale_denom != 1 || info->data_precision != 8 || info->progressive_mode ||
        info->arith_code || jpeg_has_multiple_scans(info) || !(grey || ycc || rgb))
        return;
    if (!grey) {
        const jpeg_component_info *second = &info->comp_info[1], *third = &info->comp_info[2];
        across = first->h_samp_factor;
        down = first->v_samp_factor;
        if (second->h_samp_factor != 1 || second->v_samp_factor != 1 || third->h_samp_factor != 1 ||
            third->v_samp_factor != 1 || across > 2 || down > across)
            return;
        /* The library upsamples planes of one or two columns differently. */
        if (across == 2 && info->image_width <= 4)
            return;
    }
    layout->width = info->image_width;
    layout->height = info->image_height;
    layout->across = (uint8_t)across;
    layout->down = (uint8_t)down;
    for (int c = 0; c < info->num_components; c++) {
        const jpeg_component_info *component = &info->comp_info[c];
        const JDIMENSION h = (JDIMENSION)component->h_samp_factor;
        const JDIMENSION v = (JDIMENSION)component->v_samp_factor;
        layout->blocks_across[c] = (component->width_in_blocks + h - 1) / h * h;
        layout->blocks_down[c] = (component->height_in_blocks + v - 1) / v * v;
    }
    layout->colour = grey ? DCT_GREY : ycc ? DCT_YCC : DCT_RGB;
}

/* --- does the library agree? ---------------------------------------------------------------- */

#define SIDE_MOST  48u
#define BYTES_MOST (3u * SIDE_MOST * SIDE_MOST * sizeof(int16_t) * 2)

struct trial {
    uint32_t width, height;
    uint8_t across, down;
    enum dct_colour colour;
    uint32_t largest; /* coefficient */
    uint32_t quantization;
};

/* Sizes that are not multiples of blocks; one has one more row and column of MCUs. */
static const struct trial trials[] = {
    {45, 39, 2, 2, DCT_YCC, 40, 16},    {33, 17, 2, 1, DCT_YCC, 40, 16},
    {23, 31, 1, 1, DCT_YCC, 40, 16},    {37, 11, 1, 1, DCT_GREY, 40, 16},
    {16, 16, 2, 2, DCT_RGB, 90, 7},     {40, 40, 1, 1, DCT_GREY, 1000, 60},
    {48, 48, 2, 2, DCT_YCC, 1000, 255}, {5, 3, 2, 2, DCT_YCC, 1000, 3},
};

struct rig {
    struct jpeg_compress_struct out;
    struct jpeg_decompress_struct in;
    struct jpeg_errors errors;
    unsigned char *file;
    unsigned long file_bytes;
    struct dct_layout layout;
    _Alignas(16) uint8_t coefficients[DCT_TABLE_BYTES + BYTES_MOST];
    uint8_t samples[BYTES_MOST], pixels[3 * SIDE_MOST * SIDE_MOST],
        wanted[3 * SIDE_MOST * SIDE_MOST];
};

static void encode(struct rig *rig)
{
    struct jpeg_compress_struct *out = &rig->out;
    const struct dct_layout *layout = &rig->layout;
    const int components = layout->colour == DCT_GREY ? 1 : (int)DCT_COMPONENTS;
    const uint16_t *tables = (const uint16_t *)(const void *)rig->coefficients;
    JBLOCKROW block = (JBLOCKROW)(tables + DCT_COMPONENTS * DCT_BLOCK);
    jvirt_barray_ptr array[DCT_COMPONENTS];
    jpeg_mem_dest(out, &rig->file, &rig->file_bytes);
    out->image_width = layout->width;
    out->image_height = layout->height;
#if JPEG_LIB_VERSION >= 70
    /* The library scales, but with coefficients given the caller sets the size. */
    out->jpeg_width = layout->width;
    out->jpeg_height = layout->height;
    out->min_DCT_h_scaled_size = out->min_DCT_v_scaled_size = DCTSIZE;
#endif
    out->input_components = components;
    out->in_color_space = components == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(out);
    jpeg_set_colorspace(out, layout->colour == DCT_GREY  ? JCS_GRAYSCALE
                             : layout->colour == DCT_YCC ? JCS_YCbCr
                                                         : JCS_RGB);
    out->optimize_coding = TRUE; /* the standard tables have no codes for large values */
    for (int c = 0; c < components; c++) {
        jpeg_component_info *component = &out->comp_info[c];
        unsigned int table[DCT_BLOCK];
        for (unsigned i = 0; i < DCT_BLOCK; i++)
            table[i] = tables[(unsigned)c * DCT_BLOCK + i];
        jpeg_add_quant_table(out, c, table, 100, FALSE);
        component->quant_tbl_no = c;
        component->h_samp_factor = c ? 1 : layout->across;
        component->v_samp_factor = c ? 1 : layout->down;
        array[c] = out->mem->request_virt_barray((j_common_ptr)out, JPOOL_IMAGE, FALSE,
                                                 layout->blocks_across[c], layout->blocks_down[c],
                                                 (JDIMENSION)component->v_samp_factor);
    }
    jpeg_write_coefficients(out, array);
    for (int c = 0; c < components; c++) {
        for (JDIMENSION y = 0; y < layout->blocks_down[c]; y++, block += layout->blocks_across[c]) {
            JBLOCKARRAY row = out->mem->access_virt_barray((j_common_ptr)out, array[c], y, 1, TRUE);
            memcpy(row[0], block, layout->blocks_across[c] * sizeof(JBLOCK));
        }
    }
    jpeg_finish_compress(out);
}

static void decode_by_library(struct rig *rig)
{
    struct jpeg_decompress_struct *in = &rig->in;
    jpeg_mem_src(in, rig->file, rig->file_bytes);
    jpeg_read_header(in, TRUE);
    in->out_color_space = JCS_RGB;
    in->dct_method = JDCT_ISLOW;
    in->do_fancy_upsampling = TRUE;
    jpeg_start_decompress(in);
    while (in->output_scanline < in->output_height) {
        JSAMPROW row = rig->wanted + (size_t)in->output_scanline * in->output_width * 3;
        jpeg_read_scanlines(in, &row, 1);
    }
    jpeg_finish_decompress(in);
}

/* Encodes and decodes; false if the library fails. */
static bool go_through(struct rig *rig)
{
    rig->out.err = rig->in.err = jpeg_errors_init(&rig->errors);
    if (setjmp(rig->errors.escape))
        return false;
    jpeg_create_compress(&rig->out);
    jpeg_create_decompress(&rig->in);
    encode(rig);
    decode_by_library(rig);
    return true;
}

static bool agrees(struct rig *rig, const struct trial *trial, uint32_t *state)
{
    rig->layout = (struct dct_layout){.colour = trial->colour,
                                      .width = trial->width,
                                      .height = trial->height,
                                      .across = trial->across,
                                      .down = trial->down};
    dct_synthetic_blocks(&rig->layout);
    dct_synthetic_coefficients(rig->coefficients, &rig->layout, trial->largest, trial->quantization,
                               state);
    dct_pixels(rig->pixels, rig->samples, rig->coefficients, &rig->layout);
    const bool same = go_through(rig) && memcmp(rig->pixels, rig->wanted,
                                                (size_t)3 * trial->width * trial->height) == 0;
    jpeg_destroy_decompress(&rig->in);
    jpeg_destroy_compress(&rig->out);
    free(rig->file);
    rig->file = NULL;
    return same;
}

bool decode_coefficients_agree(void)
{
    struct rig *rig = calloc(1, sizeof *rig);
    uint32_t state = RANDOM_START;
    bool all = rig != NULL;
    for (unsigned i = 0; all && i < sizeof trials / sizeof trials[0]; i++)
        all = agrees(rig, &trials[i], &state);
    free(rig);
    return all;
}

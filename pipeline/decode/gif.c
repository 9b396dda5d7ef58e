/* gif.c: GIF through giflib: the first frame on its canvas.
 *
 * The canvas outside the frame is transparent, whatever background the header has (as in browsers);
 * with --alpha drop it has the background colour. Frames are clipped to the canvas. A picture
 * without colour tables is grey; an index beyond the table is black. Lines are converted into the
 * caller's rows; only interlaced frames are buffered. */
#include "decode/codec.h"

#include <stdlib.h>
#include <string.h>

#include <gif_lib.h>

struct gif {
    GifFileType *file;
    struct input *input;
    bool ended; /* the end of the file was reached */
    uint32_t width, height, row;
    uint32_t left, top, frame_width, frame_height;
    int transparent; /* index, or -1 */
    uint8_t colour[256][3], background[3];
    GifPixelType *lines; /* one line, or all of an interlaced frame */
    bool interlaced;
};

static const char *library_name(void)
{
    return "giflib " CODEC_TEXT(GIFLIB_MAJOR) "." CODEC_TEXT(GIFLIB_MINOR) "." CODEC_TEXT(
        GIFLIB_RELEASE);
}

static void gif_reset(void *state)
{
    struct gif *gif = state;
    int ignored;
    if (gif->file)
        DGifCloseFile(gif->file, &ignored);
    free(gif->lines);
    gif->file = NULL;
    gif->lines = NULL;
}

/* Returns one empty block at the end of the file: a frame that lacks only its terminator is
 * complete; one that lacks data gets the block too early and fails. */
static int on_read(GifFileType *file, GifByteType *out, int size)
{
    struct gif *gif = file->UserData;
    size_t got = input_read(gif->input, out, (size_t)size);
    if (got == 0 && size == 1 && !gif->ended && !gif->input->error_number) {
        gif->ended = true;
        *out = 0;
        return 1;
    }
    return (int)got;
}

static enum reason fail(struct gif *gif, int code, struct failure *failure)
{
    const char *text = GifErrorString(code);
    const struct input *input = gif->input;
    if (gif->ended || (input->at_end && input->position == input->end))
        return codec_short(gif->input, failure, "the file ends early");
    if (code == D_GIF_ERR_NOT_ENOUGH_MEM)
        return failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for giflib");
    if (code == D_GIF_ERR_EOF_TOO_SOON)
        return failure_set(failure, REASON_TRUNCATED, "the frame ends early");
    return failure_set(failure, REASON_CORRUPT, "%s", text ? text : "broken data");
}

_Static_assert(sizeof(GifColorType) == 3, "three bytes: R, G, B");

static void read_colours(struct gif *gif)
{
    const ColorMapObject *map =
        gif->file->Image.ColorMap ? gif->file->Image.ColorMap : gif->file->SColorMap;
    const ColorMapObject *global = gif->file->SColorMap;
    for (int i = 0; i < 256; i++) {
        memset(gif->colour[i], map ? 0 : i, 3);
        if (map && i < map->ColorCount)
            memcpy(gif->colour[i], &map->Colors[i], 3);
    }
    memset(gif->background, 0, 3);
    if (global && gif->file->SBackGroundColor < global->ColorCount)
        memcpy(gif->background, &global->Colors[gif->file->SBackGroundColor], 3);
}

/* Reads up to the first frame's descriptor. */
static enum reason find_frame(struct gif *gif, struct failure *failure)
{
    GifRecordType type;
    for (;;) {
        if (DGifGetRecordType(gif->file, &type) != GIF_OK)
            return fail(gif, gif->file->Error, failure);
        if (type == IMAGE_DESC_RECORD_TYPE)
            break;
        if (type == TERMINATE_RECORD_TYPE)
            return failure_set(failure, gif->ended ? REASON_TRUNCATED : REASON_CORRUPT,
                               "there is no frame");
        int code;
        GifByteType *block;
        if (DGifGetExtension(gif->file, &code, &block) != GIF_OK)
            return fail(gif, gif->file->Error, failure);
        while (block) {
            if (code == GRAPHICS_EXT_FUNC_CODE && block[0] >= 4)
                gif->transparent = block[1] & 1 ? block[4] : -1;
            if (DGifGetExtensionNext(gif->file, &block) != GIF_OK)
                return fail(gif, gif->file->Error, failure);
        }
    }
    return DGifGetImageDesc(gif->file) == GIF_OK ? REASON_NONE
                                                 : fail(gif, gif->file->Error, failure);
}

static enum reason gif_begin(void *state, struct input *input, const struct decode_options *options,
                             struct image_info *info, struct failure *failure)
{
    struct gif *gif = state;
    int error = 0;
    *gif = (struct gif){.input = input, .transparent = -1};
    gif->file = DGifOpen(gif, on_read, &error);
    if (!gif->file)
        return fail(gif, error, failure);
    if (find_frame(gif, failure) != REASON_NONE)
        return failure->reason;
    const GifImageDesc *frame = &gif->file->Image;
    gif->left = (uint32_t)frame->Left & 0xffff;
    gif->top = (uint32_t)frame->Top & 0xffff;
    gif->frame_width = (uint32_t)frame->Width & 0xffff;
    gif->frame_height = (uint32_t)frame->Height & 0xffff;
    gif->interlaced = frame->Interlace;
    gif->width = (uint32_t)gif->file->SWidth & 0xffff;
    gif->height = (uint32_t)gif->file->SHeight & 0xffff;
    if (gif->width == 0 || gif->height == 0) {
        gif->width = gif->left + gif->frame_width;
        gif->height = gif->top + gif->frame_height;
    }
    if (codec_set_size(info, gif->width, gif->height, options, failure) != REASON_NONE ||
        codec_set_size(info, gif->frame_width, gif->frame_height, options, failure) != REASON_NONE)
        return failure->reason;
    read_colours(gif);
    bool covered = gif->left == 0 && gif->top == 0 && gif->frame_width >= gif->width &&
                   gif->frame_height >= gif->height;
    info->width = gif->width;
    info->height = gif->height;
    info->channels = gif->transparent >= 0 || !covered ? 4 : 3;
    info->memory =
        (64u << 10) + (uint64_t)gif->frame_width * (gif->interlaced ? gif->frame_height : 1);
    return REASON_NONE;
}

static enum reason read_line(struct gif *gif, GifPixelType *line, struct failure *failure)
{
    if (DGifGetLine(gif->file, line, (int)gif->frame_width) == GIF_OK)
        return REASON_NONE;
    return fail(gif, gif->file->Error, failure);
}

static enum reason read_interlaced(struct gif *gif, struct failure *failure)
{
    static const uint32_t first[] = {0, 4, 2, 1}, step[] = {8, 8, 4, 2};
    for (int pass = 0; pass < 4; pass++) {
        for (uint32_t y = first[pass]; y < gif->frame_height; y += step[pass]) {
            if (read_line(gif, gif->lines + (size_t)y * gif->frame_width, failure) != REASON_NONE)
                return failure->reason;
        }
    }
    return REASON_NONE;
}

/* Writes a row of the canvas; line: the frame's row, or NULL outside the frame. */
static void put_row(uint8_t *dst, const struct gif *gif, const GifPixelType *line)
{
    for (uint32_t x = 0; x < gif->width; x++, dst += 3) {
        bool inside = line && x >= gif->left && x - gif->left < gif->frame_width;
        int index = inside ? line[x - gif->left] : -1;
        const uint8_t *colour = inside ? gif->colour[index] : gif->background;
        uint32_t a = inside && index != gif->transparent ? 255 : 0;
        for (int c = 0; c < 3; c++)
            dst[c] = pixel_over(colour[c], a, gif->input->colours->mode);
    }
}

static enum reason gif_rows(void *state, uint8_t *dst, size_t stride, uint32_t rows,
                            struct failure *failure)
{
    struct gif *gif = state;
    if (!gif->lines) {
        gif->lines = calloc(gif->interlaced ? gif->frame_height : 1, gif->frame_width);
        if (!gif->lines)
            return failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for a frame");
        if (gif->interlaced && read_interlaced(gif, failure) != REASON_NONE)
            return failure->reason;
    }
    for (uint32_t i = 0; i < rows; i++, gif->row++, dst += stride) {
        const GifPixelType *line = NULL;
        if (gif->row >= gif->top && gif->row - gif->top < gif->frame_height) {
            size_t y = gif->interlaced ? gif->row - gif->top : 0;
            line = gif->lines + y * gif->frame_width;
            if (!gif->interlaced && read_line(gif, gif->lines, failure) != REASON_NONE)
                return failure->reason;
        }
        put_row(dst, gif, line);
    }
    return REASON_NONE;
}

const struct codec codec_gif = {
    .library = library_name,
    .state_bytes = sizeof(struct gif),
    .begin = gif_begin,
    .rows = gif_rows,
    .reset = gif_reset,
};

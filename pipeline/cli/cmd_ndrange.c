/* cmd_ndrange.c: clpipe ndrange: four launches over one range, as a table, JSON and pictures. */
#include "base/failure.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/path.h"
#include "cli/commands.h"
#include "cli/compute.h"
#include "cli/option_rows.h"
#include "cli/report_json.h"
#include "cli/sink.h"
#include "decode/decode.h"
#include "decode/scale.h"
#include "device/blur_step.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The options of the command. */
struct ndrange_options {
    struct options common;
    const char *local_size, *image, *out_prefix;
};

#define OWN struct ndrange_options

#define BMP_HEADER       54u
#define CASES            4u
#define WORK_ITEMS_MOST  (1ull << 28)
#define PREFIX_MOST      4000u
#define DEFAULT_GLOBAL_X 638u /* with DEFAULT_GLOBAL_Y, the interior of 640 x 480 pixels */
#define DEFAULT_GLOBAL_Y 478u

static const char *const corner_name[OCL_NDRANGE_CORNERS] = {"top left", "top right", "bottom left",
                                                             "bottom right"};

/* Decoded from a file of any format. */
struct picture {
    uint8_t *pixels; /* RGB rows without gaps, as stored */
    uint32_t width, height;
    uint8_t orientation; /* EXIF 1 to 8 */
};

struct probe {
    const struct ndrange_options *own;
    const struct ocl_device *device;
    struct ocl_context *context;
    struct ocl_queue *queue;
    struct transcript to;
    size_t global[2], local[2];
    struct picture picture;      /* from --image; pixels NULL: no image */
    uint8_t *blurred, *expected; /* of the picture's interior */
    unsigned wrong;
};

/* "638x478" */
static bool parse_pair(size_t out[2], const char *text)
{
    char first[24];
    const char *cross = strchr(text, 'x');
    uint64_t x, y;
    if (!cross || (size_t)(cross - text) >= sizeof first)
        return false;
    memcpy(first, text, (size_t)(cross - text));
    first[cross - text] = '\0';
    if (!parse_u64(&x, first, 1, WORK_ITEMS_MOST) || !parse_u64(&y, cross + 1, 1, WORK_ITEMS_MOST))
        return false;
    out[0] = (size_t)x;
    out[1] = (size_t)y;
    return true;
}

static enum status read_sizes(struct probe *probe, struct error *err)
{
    const struct ndrange_options *own = probe->own;
    const struct options *options = &own->common;
    const char *range = options->operand_count > 0 ? options->operand[0] : NULL;
    probe->global[0] = DEFAULT_GLOBAL_X;
    probe->global[1] = DEFAULT_GLOBAL_Y;
    if (!own->image != !own->out_prefix)
        return misuse(err, "--image and --out must be given together");
    if (own->image && range)
        return misuse(err, "--image sets the range: leave out %s", range);
    if (own->out_prefix && strlen(own->out_prefix) > PREFIX_MOST)
        return misuse(err, "the PREFIX of --out is too long");
    if (range && (!parse_pair(probe->global, range) ||
                  probe->global[0] * probe->global[1] > WORK_ITEMS_MOST))
        return misuse(err, "the range must be WxH, such as 638x478, with at most %llu work-items",
                      WORK_ITEMS_MOST);
    if (!parse_pair(probe->local, own->local_size))
        return misuse(err, "--local must be AxB, such as 16x16");
    return STATUS_OK;
}

/* --- the picture ---------------------------------------------------------------------------- */

static void clear_picture(struct picture *picture)
{
    free(picture->pixels);
    *picture = (struct picture){0};
}

/* Decodes the file with the defaults of an ingest. STATUS_FAILED: the message names the reason. */
static enum status read_file(struct picture *out, const char *path, struct error *err)
{
    *out = (struct picture){0};
    const char *shown = PATH_TEXT(path);
    struct blob blob = BLOB_NOTHING;
    struct decode *decode = NULL;
    struct failure failure = {.reason = REASON_NONE};
    struct decode_options options;
    struct image_info info;
    uint64_t digest[2];
    decode_options_default(&options);
    enum status status = decode_open(&decode, &options, err);
    blob_open_file(&blob, path, &failure);
    if (status == STATUS_OK && !blob_is_open(&blob)) {
        status = error_set(err, failure.reason == REASON_VANISHED ? STATUS_USAGE : STATUS_FAILED,
                           "cannot read the image %s: %s", shown, failure.message);
    } else if (status == STATUS_OK &&
               decode_begin(decode, &blob, path, &info, &failure) == REASON_NONE) {
        const size_t stride = (size_t)info.out_width * 3;
        *out = (struct picture){malloc(stride * info.out_height), info.out_width, info.out_height,
                                info.orientation};
        if (!out->pixels)
            status = error_memory(err, stride * info.out_height, "a picture");
        if (status != STATUS_OK ||
            decode_rows(decode, out->pixels, stride, info.out_height, &failure) != REASON_NONE ||
            decode_end(decode, digest, &failure) != REASON_NONE)
            decode_abort(decode);
    }
    if (status == STATUS_OK && failure.reason != REASON_NONE)
        status = error_set(err, STATUS_FAILED, "cannot decode %s: %s (%s)", shown, failure.message,
                           reason_name(failure.reason));
    decode_close(&decode);
    blob_close(&blob);
    if (status != STATUS_OK)
        clear_picture(out);
    return status;
}

static void put_u32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

/* Writes the upright picture as a 24-bit BMP; the file appears complete or not at all. */
static enum status write_bmp(const char *path, const struct picture *picture, struct error *err)
{
    const bool swapped = picture->orientation >= 5;
    const uint32_t width = swapped ? picture->height : picture->width;
    const uint32_t height = swapped ? picture->width : picture->height;
    const uint64_t stride = ((uint64_t)width * 3 + 3) / 4 * 4;
    if (stride * height > UINT32_MAX - BMP_HEADER)
        return error_set(err, STATUS_FAILED, "an image of %u x %u pixels is too large for BMP",
                         width, height);
    uint8_t header[BMP_HEADER] = {'B', 'M'};
    put_u32(header + 2, (uint32_t)(BMP_HEADER + stride * height));
    put_u32(header + 10, BMP_HEADER);
    put_u32(header + 14, 40); /* BITMAPINFOHEADER */
    put_u32(header + 18, width);
    put_u32(header + 22, height); /* positive: bottom row first */
    header[26] = 1;               /* planes */
    header[28] = 24;              /* bits */
    put_u32(header + 34, (uint32_t)(stride * height));
    const struct scale_turn turn =
        scale_turn(picture->width, picture->height, picture->orientation);
    uint8_t *rows = calloc(height, stride);
    if (!rows)
        return error_memory(err, stride * height, "the rows of a BMP");
    for (uint32_t y = 0; y < picture->height; y++)
        for (uint32_t x = 0; x < picture->width; x++) {
            const uint8_t *rgb = picture->pixels + ((size_t)y * picture->width + x) * 3;
            const int64_t to = turn.first + (int64_t)y * turn.row + (int64_t)x * turn.column;
            for (int c = 0; c < 3; c++)
                rows[to / (3 * width) * (int64_t)stride + to % (3 * width) + c] = rgb[2 - c];
        }
    struct sink sink;
    enum status status = sink_open(&sink, path, err);
    if (status == STATUS_OK) {
        sink_write(&sink, header, sizeof header);
        for (uint32_t y = height; y-- > 0;)
            sink_write(&sink, rows + y * stride, stride);
        status = sink_close(&sink, true, err);
    }
    free(rows);
    return status;
}

static char *bmp_path(char path[PREFIX_MOST + 16], const struct probe *probe, unsigned number)
{
    snprintf(path, PREFIX_MOST + 16, "%s_%u.bmp", probe->own->out_prefix, number);
    return path;
}

/* The range is the interior of the image. */
static enum status read_picture(struct probe *probe, struct error *err)
{
    const struct ndrange_options *own = probe->own;
    if (!own->image)
        return STATUS_OK;
    struct stat image, out;
    char path[PREFIX_MOST + 16];
    for (unsigned i = 0; i < CASES; i++)
        if (stat(own->image, &image) == 0 && stat(bmp_path(path, probe, i), &out) == 0 &&
            image.st_dev == out.st_dev && image.st_ino == out.st_ino)
            return misuse(err, "--out would overwrite the image");
    enum status status = read_file(&probe->picture, own->image, err);
    if (status != STATUS_OK)
        return status;
    const struct picture *picture = &probe->picture;
    if (picture->width <= BLUR_BORDER || picture->height <= BLUR_BORDER)
        return error_set(err, STATUS_USAGE,
                         "the image has only %u x %u pixels; the blur needs at least 3 x 3",
                         picture->width, picture->height);
    const size_t width = picture->width - BLUR_BORDER, height = picture->height - BLUR_BORDER;
    probe->global[0] = width;
    probe->global[1] = height;
    probe->blurred = malloc(width * height * 3);
    probe->expected = malloc(width * height * 3);
    if (!probe->blurred || !probe->expected)
        return error_memory(err, width * height * 3, "a blurred picture");
    blur_reference(probe->expected, width * 3, picture->pixels, (size_t)picture->width * 3,
                   (uint32_t)width, (uint32_t)height);
    return STATUS_OK;
}

/* --- what is printed ------------------------------------------------------------------------- */

static void json_pair(struct json *json, const char *key, uint64_t x, uint64_t y)
{
    json_open_array(json, key);
    json_uint(json, NULL, x);
    json_uint(json, NULL, y);
    json_close_array(json);
}

static void tell_corners(struct probe *probe, const struct ocl_ndrange_corner *corner)
{
    sink_printf(&probe->to.sink, "  %-14s %-16s %-16s %s\n", "corner", "global id", "local size",
                "enqueued local size");
    json_open_array(probe->to.json, "corners");
    for (unsigned i = 0; i < OCL_NDRANGE_CORNERS; i++) {
        const uint32_t *id = corner[i].global_id, *local = corner[i].local_size;
        const uint32_t *enqueued = corner[i].enqueued_local_size;
        char id_text[32], local_text[32], enqueued_text[32] = "undefined";
        json_open_object(probe->to.json, NULL);
        json_string(probe->to.json, "corner", corner_name[i]);
        json_pair(probe->to.json, "global_id", id[0], id[1]);
        json_pair(probe->to.json, "local_size", local[0], local[1]);
        if (enqueued[0] > 0) {
            json_pair(probe->to.json, "enqueued_local_size", enqueued[0], enqueued[1]);
            snprintf(enqueued_text, sizeof enqueued_text, "%ux%u", enqueued[0], enqueued[1]);
        } else {
            json_null(probe->to.json, "enqueued_local_size");
        }
        json_close_object(probe->to.json);
        snprintf(id_text, sizeof id_text, "%u,%u", id[0], id[1]);
        snprintf(local_text, sizeof local_text, "%ux%u", local[0], local[1]);
        sink_printf(&probe->to.sink, "  %-14s %-16s %-16s %s\n", corner_name[i], id_text,
                    local_text, enqueued_text);
    }
    json_close_array(probe->to.json);
}

static void tell_refusal(struct probe *probe, const struct ocl_ndrange *range,
                         const struct error *refused)
{
    const char *name = ocl_error_name(refused->native);
    char why[sizeof refused->sentence];
    ocl_ndrange_why(why, sizeof why, range, probe->device, refused);
    json_string(probe->to.json, "error", name);
    json_int(probe->to.json, "code", refused->native);
    report_bytes(probe->to.json, "reason", why);
    sink_printf(&probe->to.sink, "  refused: %s (%d): %s\n", name, refused->native, why);
}

/* --- the cases ------------------------------------------------------------------------------- */

static enum status blur(struct probe *probe, unsigned number, const struct ocl_ndrange *range,
                        struct error *err)
{
    const size_t bytes = range->global[0] * range->global[1] * 3;
    enum status status = blur_picture(probe->blurred, probe->context, probe->queue,
                                      probe->picture.pixels, range, err);
    if (status != STATUS_OK)
        return status;
    char path[PREFIX_MOST + 16];
    bmp_path(path, probe, number);
    const struct picture blurred = {.pixels = probe->blurred,
                                    .width = (uint32_t)range->global[0],
                                    .height = (uint32_t)range->global[1],
                                    .orientation = probe->picture.orientation};
    status = write_bmp(path, &blurred, err);
    if (status != STATUS_OK)
        return status;
    const bool right = memcmp(probe->blurred, probe->expected, bytes) == 0;
    probe->wrong += !right;
    report_bytes(probe->to.json, "image", path);
    json_bool(probe->to.json, "equals_plain_c", right);
    sink_line(&probe->to.sink, "  blurred into %s, %s plain C", path,
              right ? "equal to" : "WRONG: differs from");
    return STATUS_OK;
}

static enum status try_case(struct probe *probe, unsigned number, struct error *err)
{
    const bool given = number & 1;
    const struct ocl_ndrange range = {
        .c_version = number < 2 ? "1.2" : ocl_ndrange_version(probe->device),
        .global = {probe->global[0], probe->global[1]},
        .local = {given ? probe->local[0] : 0, given ? probe->local[1] : 0},
    };
    struct ocl_ndrange_corner corner[OCL_NDRANGE_CORNERS];
    struct error refused = ERROR_INIT;
    char local[64] = "NULL";
    if (given)
        snprintf(local, sizeof local, "%zux%zu", range.local[0], range.local[1]);
    sink_printf(&probe->to.sink, "\ncase %u: OpenCL C %s, local size %s\n", number, range.c_version,
                local);
    json_open_object(probe->to.json, NULL);
    json_string(probe->to.json, "opencl_c", range.c_version);
    if (given)
        json_pair(probe->to.json, "local", range.local[0], range.local[1]);
    else
        json_null(probe->to.json, "local");
    enum status status = ocl_ndrange_probe(corner, probe->context, probe->queue, &range, &refused);
    json_bool(probe->to.json, "launched", status == STATUS_OK);
    if (status == STATUS_OK) {
        tell_corners(probe, corner);
        if (probe->picture.pixels)
            status = blur(probe, number, &range, err);
    } else if (refused.cause == CAUSE_OPENCL) { /* a refusal is a result; any other error is not */
        tell_refusal(probe, &range, &refused);
        status = STATUS_OK;
    } else {
        *err = refused;
    }
    json_close_object(probe->to.json);
    sink_flush(&probe->to.sink);
    return status;
}

static enum status try_cases(struct probe *probe, struct error *err)
{
    enum status status = STATUS_OK;
    const struct ocl_device *device = probe->device;
    report_open(&probe->own->common);
    report_bytes(probe->to.json, "device", device->name);
    json_bool(probe->to.json, "non_uniform_groups", device->non_uniform_groups);
    json_pair(probe->to.json, "global", probe->global[0], probe->global[1]);
    sink_line(&probe->to.sink, "range of %zu x %zu work-items on %s", probe->global[0],
              probe->global[1], device->name);
    sink_line(&probe->to.sink, "The device supports %s.",
              device->non_uniform_groups ? "non-uniform work-groups" : "uniform work-groups only");
    json_open_array(probe->to.json, "cases");
    for (unsigned i = 0; i < CASES && status == STATUS_OK; i++)
        status = try_case(probe, i, err);
    json_close_array(probe->to.json);
    return status;
}

static enum status run_ndrange(const struct options *options, struct error *err)
{
    struct probe probe = {.own = (const struct ndrange_options *)options};
    enum status status = read_sizes(&probe, err);
    if (status == STATUS_OK)
        status = read_picture(&probe, err);
    if (status == STATUS_OK)
        status = compute_open(options, true, err);
    if (status == STATUS_OK)
        status = compute_context(&probe.context, &options->call->compute, err);
    if (status == STATUS_OK) {
        probe.device = ocl_context_device(probe.context);
        status = ocl_queue_open(&probe.queue, probe.context, "probe", err);
    }
    if (status == STATUS_OK)
        status = transcript_open(&probe.to, options, err);
    if (status == STATUS_OK)
        status = sink_end(&probe.to.sink, try_cases(&probe, err), err);
    if (status == STATUS_OK && probe.wrong > 0) {
        log_message(LOG_ERROR, "%u of %u cases differ from plain C: do not use this device",
                    probe.wrong, (unsigned)CASES);
        status = STATUS_PARTIAL;
    }
    ocl_queue_close(&probe.queue);
    ocl_context_close(&probe.context);
    clear_picture(&probe.picture);
    free(probe.blurred);
    free(probe.expected);
    return status;
}

static const struct option rows[] = {
    TEXT("local", local_size, "AxB", "work-group size of the cases that set one",
         .initial = "16x16"),
    TEXT("image", image, "IN", "image to blur with a 3x3 box in each case; needs --out"),
    TEXT("out", out_prefix, "PREFIX", "write the blurred images as PREFIX_0.bmp to PREFIX_3.bmp"),
    {.name = NULL}};

const struct command command_ndrange = {
    .name = "ndrange",
    .goal = GOAL_MACHINE,
    .arguments = "[WxH] [OPTIONS]",
    .summary = "show how a device runs ranges that work-groups do not divide",
    .about = "Launches a range of W x H work-items (default: 638x478) in four cases: compiled as "
             "OpenCL C 1.2 and as 2.0 (or 3.0), each with a work-group size chosen by the driver "
             "and with the size of --local. Prints what the work-items at the corners see, or why "
             "the launch was refused. With --image, each case blurs the interior of an image, and "
             "the result is compared with plain C. Exits with 1 if one differs.",
    .examples = "  clpipe ndrange\n"
                "  clpipe ndrange 1000x700 --local 32x8\n"
                "  clpipe ndrange --image photo.jpg --out blurred",
    .operand_name = "",
    .operands = {0, 1},
    .computes = true,
    .ranks_apart = true,
    .group = {{"Range", rows}},
    .size = sizeof(OWN),
    .run = run_ndrange};

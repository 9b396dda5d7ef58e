/* test_sheets.c: sheets show each thumbnail unchanged at any position. */
#include "decode/thumbnail.h"
#include "jobs/thumbs.h"
#include "runner.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jpeglib.h>

enum { ROWS = 1100, SIZE = 64, SECOND = ROWS - 1024 };

struct picture {
    uint32_t width, height;
    uint8_t *rgb;
};

static struct picture decode(const uint8_t *jpeg, size_t bytes)
{
    struct jpeg_decompress_struct in;
    struct jpeg_error_mgr errors;
    in.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&in);
    jpeg_mem_src(&in, jpeg, bytes);
    jpeg_read_header(&in, TRUE);
    in.out_color_space = JCS_RGB;
    jpeg_start_decompress(&in);
    struct picture out = {in.output_width, in.output_height,
                          malloc((size_t)in.output_width * in.output_height * 3)};
    while (in.output_scanline < in.output_height) {
        JSAMPROW row = out.rgb + (size_t)in.output_scanline * out.width * 3;
        jpeg_read_scanlines(&in, &row, 1);
    }
    jpeg_finish_decompress(&in);
    jpeg_destroy_decompress(&in);
    return out;
}

static void put(struct thumbs *thumbs, uint64_t row, const void *data, uint32_t bytes)
{
    assert_int_equal(pwrite(thumbs->spool, data, bytes, (off_t)thumbs->used), bytes);
    thumbs->at[row] = thumbs->used;
    thumbs->length[row] = bytes;
    thumbs->used += bytes;
}

/* Makes a JPEG with a different quality and without subsampling. */
static uint8_t *foreign(unsigned long *bytes, uint32_t width, uint32_t height)
{
    struct jpeg_compress_struct out;
    struct jpeg_error_mgr errors;
    uint8_t *file = NULL, *row = malloc((size_t)width * 3);
    memset(row, 90, (size_t)width * 3);
    out.err = jpeg_std_error(&errors);
    jpeg_create_compress(&out);
    jpeg_mem_dest(&out, &file, bytes);
    out.image_width = width;
    out.image_height = height;
    out.in_color_space = JCS_RGB;
    out.input_components = 3;
    jpeg_set_defaults(&out);
    jpeg_set_quality(&out, 40, TRUE);
    out.comp_info[0].h_samp_factor = out.comp_info[0].v_samp_factor = 1;
    jpeg_start_compress(&out, TRUE);
    while (out.next_scanline < height)
        jpeg_write_scanlines(&out, &row, 1);
    jpeg_finish_compress(&out);
    jpeg_destroy_compress(&out);
    free(row);
    return file;
}

static const uint64_t absent = 5, broken = 6, other = 7, large = 8;

/* Makes thumbnails of pictures with many shapes; some rows have none, or a file that clpipe did not
 * write. */
static void open_thumbs(struct thumbs *thumbs, unsigned threads)
{
    FILE *file = tmpfile();
    struct thumbnail_maker *maker = thumbnail_maker_new(SIZE, false);
    static struct clustering_machine machine;
    machine.threads = threads;
    *thumbs = (struct thumbs){.rows = ROWS, .size = SIZE, .machine = &machine};
    thumbs->spool = dup(fileno(file));
    fclose(file);
    thumbs->at = calloc(ROWS, sizeof *thumbs->at);
    thumbs->length = calloc(ROWS, sizeof *thumbs->length);
    assert_int_equal(workers_open(&thumbs->workers, threads, NULL), STATUS_OK);
    uint8_t rgb[3 * 100];
    for (uint64_t row = 0; row < ROWS; row++) {
        /* The second sheet, with the first rows, has small thumbnails and therefore no
         * subsampling. */
        const uint32_t least = row < SECOND ? 20 : 60, most = row < SECOND ? 80 : 40;
        const uint32_t width = least + (uint32_t)(row * 7 % most);
        const uint32_t height = least + (uint32_t)(row % most);
        uint32_t bytes;
        if (row >= absent && row <= large)
            continue;
        thumbnail_begin(maker, width, height, 1);
        for (uint32_t y = 0; y < height; y++) {
            for (uint32_t i = 0; i < 3 * width; i++)
                rgb[i] = (uint8_t)(row * 37 + i % 3 * 60 + (i / 30 + y / 8) % 2 * 70);
            thumbnail_rows(maker, rgb, 0, 1);
        }
        uint8_t *jpeg = thumbnail_finish(maker, &bytes);
        put(thumbs, row, jpeg, bytes);
        free(jpeg);
    }
    put(thumbs, broken, "\xff\xd8\xff no JPEG file", 16);
    unsigned long bytes;
    uint8_t *jpeg = foreign(&bytes, 60, 40);
    put(thumbs, other, jpeg, (uint32_t)bytes);
    free(jpeg);
    jpeg = foreign(&bytes, 320, 160);
    put(thumbs, large, jpeg, (uint32_t)bytes);
    free(jpeg);
    thumbnail_maker_free(maker);
}

struct kept {
    uint8_t *data[4];
    size_t bytes[4];
    uint32_t fail; /* the sheet for which writing fails */
};

static enum status keep(void *context, uint32_t sheet, const uint8_t *data, size_t bytes,
                        struct error *err)
{
    struct kept *kept = context;
    assert_true(sheet >= 10 && sheet < 14);
    if (sheet == kept->fail)
        return error_set(err, STATUS_FAILED, "no room");
    kept->data[sheet - 10] = malloc(bytes);
    memcpy(kept->data[sheet - 10], data, bytes);
    kept->bytes[sheet - 10] = bytes;
    return STATUS_OK;
}

static void clear(struct kept *kept)
{
    for (unsigned i = 0; i < 4; i++)
        free(kept->data[i]);
}

/* Reverse order, with one row twice. */
static void order(uint64_t rows[ROWS + 1])
{
    for (uint64_t i = 0; i < ROWS; i++)
        rows[i] = ROWS - 1 - i;
    rows[ROWS] = 3;
}

static void test_cells_show_thumbnails(void **state)
{
    (void)state;
    struct thumbs *thumbs = malloc(sizeof *thumbs);
    struct thumb_place *places = malloc((ROWS + 1) * sizeof *places);
    uint64_t rows[ROWS + 1];
    struct kept kept = {.fail = 0};
    open_thumbs(thumbs, 3);
    order(rows);
    const struct sheets_config config = {
        .rows = rows, .count = ROWS + 1, .first = 10, .write = keep, .context = &kept};
    const struct sheet_grid grid = thumbs_grid(thumbs);
    assert_int_equal(grid.cell, 64);
    assert_int_equal(grid.columns, 32);
    assert_int_equal(thumbs_sheets(places, thumbs, &config, NULL), STATUS_OK);
    struct picture sheet[2] = {decode(kept.data[0], kept.bytes[0]),
                               decode(kept.data[1], kept.bytes[1])};
    assert_int_equal(sheet[0].width, 2048);
    assert_int_equal(sheet[0].height, 2048);
    assert_int_equal(sheet[1].height, 3 * 64); /* 1,101 - 1,024 cells */
    for (uint64_t i = 0; i <= ROWS; i++) {
        const struct thumb_place *place = &places[i];
        assert_int_equal(place->x, i % 32 * 64);
        assert_int_equal(place->y, i % 1024 / 32 * 64);
        if (rows[i] == absent || rows[i] == broken) {
            assert_int_equal(place->width, 0);
            assert_int_equal(place->height, 0);
            continue;
        }
        if (rows[i] == large) {
            assert_int_equal(place->width, 64);
            assert_int_equal(place->height, 32);
            continue;
        }
        uint8_t *jpeg = NULL;
        size_t room = 0;
        assert_int_equal(thumbs_read(&jpeg, &room, thumbs, rows[i], NULL), STATUS_OK);
        struct picture wanted = decode(jpeg, thumbs->length[rows[i]]);
        free(jpeg);
        assert_int_equal(place->width, wanted.width);
        assert_int_equal(place->height, wanted.height);
        const struct picture *in = &sheet[i / 1024];
        /* The colours of the outermost pixels are interpolated with their neighbours on the sheet,
         * except for small pictures. */
        const bool small = wanted.width <= THUMBNAIL_FINE || wanted.height <= THUMBNAIL_FINE;
        const int most = small || i < 1024 ? 0 : rows[i] == other ? 12 : 48;
        const uint32_t border = small ? 0 : 1;
        for (uint32_t y = border; y + 2 * border < wanted.height; y++) {
            for (uint32_t x = border; x + 2 * border < wanted.width; x++) {
                const uint8_t *a =
                    in->rgb + ((size_t)(place->y + y) * in->width + place->x + x) * 3;
                const uint8_t *b = wanted.rgb + ((size_t)y * wanted.width + x) * 3;
                for (unsigned c = 0; c < 3; c++)
                    assert_true(abs(a[c] - b[c]) <= most);
            }
        }
        free(wanted.rgb);
    }
    free(sheet[0].rgb);
    free(sheet[1].rgb);
    clear(&kept);
    free(places);
    thumbs_close(&thumbs);
}

static void test_bytes_do_not_depend_on_threads(void **state)
{
    (void)state;
    struct kept kept[2] = {{.fail = 0}, {.fail = 0}};
    struct thumb_place *places = malloc((ROWS + 1) * sizeof *places);
    uint64_t rows[ROWS + 1];
    order(rows);
    for (unsigned i = 0; i < 2; i++) {
        struct thumbs *thumbs = malloc(sizeof *thumbs);
        open_thumbs(thumbs, i ? 4 : 1);
        const struct sheets_config config = {
            .rows = rows, .count = ROWS + 1, .first = 10, .write = keep, .context = &kept[i]};
        assert_int_equal(thumbs_sheets(places, thumbs, &config, NULL), STATUS_OK);
        thumbs_close(&thumbs);
    }
    for (unsigned s = 0; s < 2; s++) {
        assert_int_equal(kept[0].bytes[s], kept[1].bytes[s]);
        assert_memory_equal(kept[0].data[s], kept[1].data[s], kept[0].bytes[s]);
    }
    clear(&kept[0]);
    clear(&kept[1]);
    free(places);
}

static void test_writer_errors_are_returned(void **state)
{
    (void)state;
    struct thumbs *thumbs = malloc(sizeof *thumbs);
    struct thumb_place *places = malloc((ROWS + 1) * sizeof *places);
    struct kept kept = {.fail = 11};
    struct error err = ERROR_INIT;
    uint64_t rows[ROWS + 1];
    open_thumbs(thumbs, 2);
    order(rows);
    const struct sheets_config config = {
        .rows = rows, .count = ROWS + 1, .first = 10, .write = keep, .context = &kept};
    assert_int_equal(thumbs_sheets(places, thumbs, &config, &err), STATUS_FAILED);
    assert_string_equal(err.sentence, "no room");
    clear(&kept);
    free(places);
    thumbs_close(&thumbs);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_cells_show_thumbnails),
    cmocka_unit_test(test_bytes_do_not_depend_on_threads),
    cmocka_unit_test(test_writer_errors_are_returned),
};
TEST_GROUP(sheets, NULL, NULL)

/* test_input.c: a picture decodes to the same result as a separate file, as a range of a larger
 * file and from memory, in this thread and in an isolated process. The failure messages are the
 * same, too. */
#include "test_decode_common.h"

#include "base/hash.h"
#include "decode/isolate.h"
#include <png.h>

#define WIDTH  61
#define HEIGHT 47
/* Larger than a decoder's read buffer. */
#define LARGE 300

/* --- pictures -------------------------------------------------------------------------------- */

static struct bytes make_ppm(unsigned width, unsigned height)
{
    struct bytes file = {malloc((size_t)width * height * 3 + 32), 0};
    assert_non_null(file.data);
    file.size = (size_t)sprintf((char *)file.data, "P6 %u %u 255\n", width, height);
    for (unsigned i = 0; i < width * height * 3; i++)
        file.data[file.size++] = (uint8_t)next_random();
    return file;
}

static struct bytes make_png(unsigned width, unsigned height)
{
    png_image image = {
        .version = PNG_IMAGE_VERSION, .width = width, .height = height, .format = PNG_FORMAT_RGB};
    struct bytes pixels = make_ppm(width, height), file = {NULL, 0};
    png_alloc_size_t size = 0;
    assert_true(png_image_write_get_memory_size(image, size, 0, pixels.data, 0, NULL));
    file.data = malloc(size);
    assert_non_null(file.data);
    assert_true(png_image_write_to_memory(&image, file.data, &size, 0, pixels.data, 0, NULL));
    file.size = size;
    free(pixels.data);
    return file;
}

static void put_tag(uint8_t *at, unsigned tag, unsigned type, uint32_t count, uint32_t value)
{
    const uint32_t words[] = {tag | type << 16, count, value};
    memcpy(at, words, sizeof words);
}

/* A TIFF with one strip after the directory, so that a reader has to seek. Little-endian machines
 * only. */
static struct bytes make_tiff(unsigned width, unsigned height)
{
    enum { TAGS = 9, BITS = 8 + 2 + TAGS * 12 + 4, PIXELS = BITS + 6 };
    struct bytes pixels = make_ppm(width, height);
    const uint32_t count = width * height * 3;
    struct bytes file = {calloc(1, PIXELS + count), PIXELS + count};
    assert_non_null(file.data);
    memcpy(file.data, "II*\0\x08\0\0\0\x09\0", 10);
    put_tag(file.data + 10, 256, 4, 1, width);
    put_tag(file.data + 22, 257, 4, 1, height);
    put_tag(file.data + 34, 258, 3, 3, BITS);
    put_tag(file.data + 46, 259, 3, 1, 1);
    put_tag(file.data + 58, 262, 3, 1, 2);
    put_tag(file.data + 70, 273, 4, 1, PIXELS);
    put_tag(file.data + 82, 277, 3, 1, 3);
    put_tag(file.data + 94, 278, 4, 1, height);
    put_tag(file.data + 106, 279, 4, 1, count);
    memcpy(file.data + BITS, "\x08\0\x08\0\x08\0", 6);
    memcpy(file.data + PIXELS, pixels.data, count);
    free(pixels.data);
    return file;
}

/* --- decoding -------------------------------------------------------------------------------- */

enum form { FORM_FILE, FORM_MEMBER, FORM_MEMORY, FORMS };

/* Returns the first `size` bytes of a picture. A member is preceded by other bytes and followed by
 * the rest of the picture. */
static struct blob make_blob(enum form form, const struct bytes *picture, size_t size)
{
    struct stat st;
    if (form == FORM_MEMORY) {
        uint8_t *memory = malloc(size + 1);
        assert_non_null(memory);
        memcpy(memory, picture->data, size);
        return blob_of_memory(memory, size);
    }
    const size_t before = form == FORM_MEMBER ? 4099 : 0;
    int fd = memfd_create("pictures", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, picture->data, picture->size < before ? picture->size : before, 0),
                     picture->size < before ? picture->size : before);
    const size_t there = form == FORM_MEMBER ? picture->size : size;
    assert_int_equal(pwrite(fd, picture->data, there, (off_t)before), there);
    assert_int_equal(fstat(fd, &st), 0);
    struct blob blob = blob_of_file(fd, size, clock_file_time(&st.st_mtim));
    blob.offset = before;
    blob.file_bytes = (uint64_t)st.st_size;
    return blob;
}

struct result {
    struct failure failure;
    struct image_info info;
    uint64_t pixels[2], digest[2], bytes_read;
};

static struct result decode_blob(struct decode *decode, const struct blob *blob)
{
    struct result result;
    struct murmur3 hash;
    memset(&result, 0, sizeof result);
    murmur3_init(&hash);
    if (decode_begin(decode, blob, "picture.jpg", &result.info, &result.failure) == REASON_NONE) {
        const size_t row = 3 * (size_t)result.info.out_width;
        uint8_t *rows = malloc(row * result.info.out_height);
        assert_non_null(rows);
        if (decode_rows(decode, rows, row, result.info.out_height, &result.failure) ==
            REASON_NONE) {
            murmur3_update(&hash, rows, row * result.info.out_height);
            decode_end(decode, result.digest, &result.failure);
        }
        if (result.failure.reason != REASON_NONE)
            decode_abort(decode);
        free(rows);
    }
    murmur3_final(&hash, result.pixels);
    result.bytes_read = decode_bytes_read(decode);
    result.info.memory = 0; /* an isolated decoder reports its worker's memory */
    return result;
}

static void assert_same(const struct result *a, const struct result *b)
{
    assert_int_equal(a->failure.reason, b->failure.reason);
    assert_string_equal(a->failure.message, b->failure.message);
    assert_int_equal(a->failure.error_number, b->failure.error_number);
    if (a->failure.reason != REASON_NONE)
        return;
    assert_memory_equal(&a->info, &b->info, sizeof a->info);
    assert_memory_equal(a->pixels, b->pixels, sizeof a->pixels);
    assert_memory_equal(a->digest, b->digest, sizeof a->digest);
    assert_int_equal(a->bytes_read, b->bytes_read);
}

/* Announces one blob of each form and decodes all of them. */
static void decode_forms(struct decode *decode, const struct result *expected,
                         const struct bytes *picture, size_t size)
{
    struct blob blob[FORMS];
    struct decode_file file[FORMS];
    struct error err = ERROR_INIT;
    for (int form = 0; form < FORMS; form++) {
        blob[form] = make_blob((enum form)form, picture, size);
        file[form] = (struct decode_file){&blob[form], "picture.jpg"};
    }
    if (decode_ahead(decode) >= FORMS)
        decode_announce(decode, file, FORMS);
    for (int form = 0; form < FORMS; form++) {
        assert_int_equal(decode_ready(decode, &err), STATUS_OK);
        const struct result result = decode_blob(decode, &blob[form]);
        assert_same(&result, expected);
        blob_close(&blob[form]);
    }
}

static void check_picture(struct bytes picture, enum reason whole)
{
    struct isolate_config config = {.slot_bytes = 1 << 16};
    struct isolate *isolate;
    struct decode *local, *isolated;
    struct error err = ERROR_INIT;
    decode_options_default(&config.options);
    assert_int_equal(isolate_open(&isolate, &config, &err), STATUS_OK);
    assert_int_equal(decode_open(&local, &config.options, &err), STATUS_OK);
    assert_int_equal(decode_open_isolated(&isolated, isolate, &err), STATUS_OK);

    const size_t sizes[] = {
        picture.size, picture.size - 1, picture.size / 2, picture.size / 8, 20, 0};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct blob file = make_blob(FORM_FILE, &picture, sizes[i]);
        const struct result expected = decode_blob(local, &file);
        blob_close(&file);
        if (i == 0) {
            struct murmur3 hash;
            uint64_t digest[2];
            murmur3_init(&hash);
            murmur3_update(&hash, picture.data, picture.size);
            murmur3_final(&hash, digest);
            assert_int_equal(expected.failure.reason, whole);
            if (whole == REASON_NONE) {
                assert_memory_equal(expected.digest, digest, sizeof digest);
                assert_int_equal(expected.bytes_read, picture.size);
            }
        } else if (i > 1) { /* a PNG is complete without its last byte */
            assert_int_not_equal(expected.failure.reason, REASON_NONE);
        }
        decode_forms(local, &expected, &picture, sizes[i]);
        decode_forms(isolated, &expected, &picture, sizes[i]);
    }
    decode_close(&local);
    decode_close(&isolated);
    isolate_close(&isolate);
    free(picture.data);
}

static void read_sequentially(void **state)
{
    (void)state;
    check_picture(make_ppm(WIDTH, HEIGHT), REASON_NONE);
    check_picture(make_ppm(LARGE, LARGE), REASON_NONE);
    check_picture(make_png(WIDTH, HEIGHT), REASON_NONE);
    check_picture(make_png(LARGE, LARGE), REASON_NONE);
}

static void read_with_seeks(void **state)
{
    (void)state;
    const bool there = format_at(3)->library != NULL;
    assert_string_equal(format_at(3)->name, "tiff");
    check_picture(make_tiff(WIDTH, HEIGHT), there ? REASON_NONE : REASON_UNSUPPORTED);
    check_picture(make_tiff(LARGE, LARGE), there ? REASON_NONE : REASON_UNSUPPORTED);
}

/* A member is reported as changed if the file that contains it has changed. */
static void the_file_around_a_member_changes(void **state)
{
    (void)state;
    struct bytes picture = make_ppm(WIDTH, HEIGHT);
    struct decode *decode = open_decode(NULL);
    struct blob blob = make_blob(FORM_MEMBER, &picture, picture.size);
    assert_int_equal(decode_blob(decode, &blob).failure.reason, REASON_NONE);
    assert_int_equal(pwrite(blob.fd, "x", 1, (off_t)blob.file_bytes), 1);
    const struct result changed = decode_blob(decode, &blob);
    assert_int_equal(changed.failure.reason, REASON_CHANGED);
    assert_string_equal(changed.failure.message, "the file changed while it was read");
    blob_close(&blob);
    decode_close(&decode);
    free(picture.data);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(read_sequentially),
    cmocka_unit_test(read_with_seeks),
    cmocka_unit_test(the_file_around_a_member_changes),
};
TEST_GROUP(input, NULL, NULL)

/* test_formats.c: file names that denote images, and formats recognised by content. */
#include "runner.h"

#include "decode/codec.h"

#include <stdio.h>
#include <string.h>

static void file_names_of_formats(void **state)
{
    (void)state;
    static const char *const yes[] = {"a.jpg",       "A.JPG",      "d/e.JpEg", "x.tar.png",
                                      "..png",       "a.raf",      "a.j2k",    "a b.webp",
                                      ".hidden.gif", "d.d/e.tiff", "\xff.bmp"};
    static const char *const no[] = {"",       "jpg",   ".jpg",        "a.",     "a.jp",
                                     "a.jpgx", "a.txt", "d.jpg/e",     "d/.png", "a.jpg ",
                                     "a.jpg/", "png.",  "a.p\xc4\xb1g"};
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++)
        assert_true(format_promised(yes[i]));
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++)
        assert_false(format_promised(no[i]));
    /* All extensions that the documentation lists. */
    char list[] = "jpg jpeg jpe jfif png apng webp tif tiff bmp dib gif pnm pbm pgm ppm pam pfm "
                  "heic heif avif jxl jp2 j2k ico psd tga exr hdr qoi svg dng cr2 cr3 nef arw orf "
                  "rw2 raf";
    char *save = NULL;
    for (char *word = strtok_r(list, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        char name[32];
        snprintf(name, sizeof name, "photo.%s", word);
        assert_true(format_promised(name));
    }
}

struct content {
    const char *format; /* NULL if unrecognised */
    size_t size;
    const char *bytes;
};

#define CONTENT(format, bytes)                                                                     \
    {                                                                                              \
        format, sizeof bytes - 1, bytes                                                            \
    }

static void recognised_formats(void **state)
{
    (void)state;
    static const struct content contents[] = {
        CONTENT("jpeg", "\xff\xd8\xff\xe0"),
        CONTENT(NULL, "\xff\xd8\xfe\xe0"),
        CONTENT("png", "\x89PNG\r\n\x1a\n"),
        CONTENT(NULL, "\x89PNG\n\x1a\n"),
        CONTENT("webp", "RIFF\1\0\0\0WEBP"),
        CONTENT(NULL, "RIFX\1\0\0\0WEBP"),
        CONTENT(NULL, "RIFF\1\0\0\0WEB"),
        CONTENT("tiff", "II*\0"),
        CONTENT("tiff", "MM\0*"),
        CONTENT("tiff", "II+\0"),
        CONTENT("tiff", "MM\0+"),
        CONTENT(NULL, "II*"),
        CONTENT("bmp", "BM1234\0\0\0\0\0"
                       "901234567"),
        CONTENT(NULL, "BM1234\0\0\1\0"
                      "901234567"),
        CONTENT(NULL, "BM1234\0\0\0\0"
                      "90"),
        CONTENT("gif", "GIF87a"),
        CONTENT("gif", "GIF89a"),
        CONTENT(NULL, "GIF88a"),
        CONTENT("pnm", "P6 1 1 255\n"),
        CONTENT("pnm", "P1\n# a comment\n1 1"),
        CONTENT("pnm", "P7\nWIDTH 1"),
        CONTENT("pnm", "P7 332\n"),
        CONTENT(NULL, "P7 12"),
        CONTENT(NULL, "P5 is a road"),
        CONTENT("pfm", "Pf\n1 1\n"),
        CONTENT("pfm", "PF 1 1\n"),
        CONTENT("heif", "\0\0\0\x18"
                        "ftypheic\0\0\0\0mif1heic"),
        CONTENT("heif", "\0\0\0\x14"
                        "ftypabcd\0\0\0\0mif1"),
        CONTENT("avif", "\0\0\0\x18"
                        "ftypmif1\0\0\0\0mif1avif"),
        CONTENT(NULL, "\0\0\0\x10"
                      "ftypabcd\0\0\0\0mif1"),
        CONTENT("jxl", "\xff\x0a"),
        CONTENT("jxl", "\0\0\0\x0cJXL \r\n\x87\n"),
        CONTENT("jp2", "\0\0\0\x0cjP  \r\n\x87\n"),
        CONTENT("jp2", "\xff\x4f\xff\x51"),
        CONTENT("ico", "\0\0\1\0\1\0"),
        CONTENT("psd", "8BPS"),
        CONTENT("exr", "\x76\x2f\x31\x01"),
        CONTENT("hdr", "#?RADIANCE\n"),
        CONTENT("hdr", "#?RGBE\n"),
        CONTENT("qoi", "qoif"),
        CONTENT("svg", "<?xml version='1.0'?><svg>"),
        CONTENT("svg", "\xef\xbb\xbf \n<svg>"),
        CONTENT(NULL, "<html>"),
        CONTENT("raw", "IIRO"),
        CONTENT("raw", "IIRS"),
        CONTENT("raw", "IIU\0"),
        CONTENT("raw", "FUJIFILMCCD-RAW 0201"),
        CONTENT("raw", "\0\0\0\x18"
                       "ftypcrx \0\0\0\1crx isom"),
        /* The length of its first box equals the magic number of an icon. */
        CONTENT("raw", "\0\0\1\0"
                       "ftypcrx \0\0\0\1crx isom"),
        CONTENT(NULL, ""),
        CONTENT(NULL, "text"),
    };
    for (size_t i = 0; i < sizeof contents / sizeof *contents; i++) {
        const struct content *c = &contents[i];
        const int row = format_recognise((const uint8_t *)c->bytes, c->size);
        if (c->format)
            assert_string_equal(row < 0 ? "none" : format_at((unsigned)row)->name, c->format);
        else
            assert_int_equal(row, -1);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(file_names_of_formats),
    cmocka_unit_test(recognised_formats),
};
TEST_GROUP(formats, NULL, NULL)

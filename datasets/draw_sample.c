/* draw_sample.c: draws the sample that quickstart and the tests run on.
 *
 *   draw_sample DEST
 *
 * writes 96 pictures, DEST/CLASS/NAME in six classes, as JPEG and PNG of the kinds that real
 * directories hold; files in DEST/broken that fail to be images, each in another way;
 * and DEST/labels.tsv, one line "path TAB class" per picture, sorted by path as clpipe sorts its
 * rows and with clpipe's spelling of names that are not valid UTF-8. The pictures are the same on
 * every machine; the files' bytes are those of the libjpeg and zlib that it is linked with. */
#include "encode.h"
#include "scene.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#define PER_CLASS 16

struct size {
    unsigned width, height;
};

/* Mostly what comes out of phones and web pages, small; a thumbnail, a banner, odd numbers. */
static const struct size sizes[] = {
    {336, 224}, {280, 210}, {224, 336}, {341, 227}, {256, 256}, {400, 225},
    {320, 213}, {181, 272}, {96, 64},   {441, 294}, {390, 130},
};

static const struct encoding encodings[] = {
    {.extension = ".jpg", .quality = 85, .sampling_h = 2, .sampling_v = 2},
    {.extension = ".jpg", .quality = 92, .sampling_h = 1, .sampling_v = 1},
    {.extension = ".jpg", .quality = 75, .sampling_h = 2, .sampling_v = 2, .progressive = 1},
    {.extension = ".JPG", .quality = 90, .sampling_h = 2, .sampling_v = 1, .orientation = 6},
    {.extension = ".png", .kind = ENCODING_PNG, .png = PNG_COLOUR, .depth = 8},
    {.extension = ".jpg", .quality = 60, .sampling_h = 2, .sampling_v = 2},
    {.extension = ".jpeg", .quality = 80, .sampling_h = 1, .sampling_v = 2},
    {.extension = ".jpg", .quality = 88, .sampling_h = 2, .sampling_v = 2, .orientation = 1},
    {.extension = ".png", .kind = ENCODING_PNG, .png = PNG_INDEXED, .depth = 8},
    {.extension = ".jpg", .quality = 95, .sampling_h = 1, .sampling_v = 1, .progressive = 1},
    {.extension = ".jpg", .quality = 85, .sampling_h = 2, .sampling_v = 2, .restart = 4},
    {.extension = ".jpg", .quality = 80, .jpeg = JPEG_GREY},
    {.extension = ".JPG",
     .quality = 85,
     .sampling_h = 2,
     .sampling_v = 2,
     .orientation = 8,
     .big_endian = 1},
    {.extension = ".png", .kind = ENCODING_PNG, .png = PNG_COLOUR_ALPHA, .depth = 8},
    {.extension = ".jpg", .quality = 40, .sampling_h = 2, .sampling_v = 2},
    {.extension = ".jpg", .quality = 85, .sampling_h = 2, .sampling_v = 1, .progressive = 1},
    {.extension = ".png", .kind = ENCODING_PNG, .png = PNG_COLOUR, .depth = 16},
    {.extension = ".jpg", .quality = 100, .sampling_h = 1, .sampling_v = 1},
    {.extension = ".jpg", .quality = 85, .sampling_h = 2, .sampling_v = 2, .orientation = 3},
    {.extension = ".png", .kind = ENCODING_PNG, .png = PNG_COLOUR, .depth = 8, .interlaced = 1},
    {.extension = ".jpg", .quality = 90, .jpeg = JPEG_CMYK},
    {.extension = ".png", .kind = ENCODING_PNG, .png = PNG_INDEXED, .depth = 8, .transparent = 1},
    {.extension = ".jpg",
     .quality = 82,
     .sampling_h = 4,
     .sampling_v = 1,
     .orientation = 5,
     .big_endian = 1},
    {.extension = ".png", .kind = ENCODING_PNG, .png = PNG_GREY_ALPHA, .depth = 16},
    {.extension = ".png", .kind = ENCODING_PNG, .png = PNG_GREY, .depth = 4},
};

/* Names that careless programs trip over; every other picture is called CLASS-NN.EXTENSION. */
static const struct {
    unsigned scene, index;
    const char *name; /* bytes */
} names[] = {
    {0, 1, "Abendrot \303\274ber dem Meer.jpg"},
    {0, 5, "\345\244\225\346\227\245\343\201\256\346\265\267.jpg"},
    {0, 9, "DSC_0417 (1).jpg"},
    {1, 2, "for\303\252t de sapins.jpg"},
    {1, 6, "-rf.jpeg"},
    {1, 13, "tree #3 at 50% & more.png"},
    {2, 0, "IMG_20190314_235959.jpg"},
    {2, 7,
     "\320\275\320\276\321\207\320\275\320\276\320\271 "
     "\320\263\320\276\321\200\320\276\320\264.jpg"},
    {2, 10, "no extension"},
    {3, 3, "Sahara 'dunes' \"best\".jpg"},
    {3, 6, "really a png.jpg"},
    {4, 1, "caf\351.jpg"}, /* Latin-1: not valid UTF-8 */
    {5, 2, "\360\237\217\224 summit.jpg"},
    {5, 5, "a.name.with.dots.jpg"},
    {5, 10, " leading space.jpg"},
};

static void fail(const char *what, const char *path)
{
    fprintf(stderr, "draw_sample: cannot %s %s: %s\n", what, path, strerror(errno));
    exit(3);
}

static void make_directory(const char *path)
{
    if (mkdir(path, 0777) && errno != EEXIST)
        fail("create", path);
}

/* DEST/FOLDER/NAME; the caller frees it. */
static char *join(const char *dest, const char *folder, const char *name)
{
    size_t size = strlen(dest) + strlen(folder) + strlen(name) + 3;
    char *path = allocate(size, 1);
    snprintf(path, size, "%s/%s%s%s", dest, folder, *name ? "/" : "", name);
    return path;
}

/* Returns 0 where the file system does not take such a name (some know UTF-8 only). */
static int write_file(const char *dest, const char *folder, const char *name, const void *data,
                      size_t size)
{
    char *path = join(dest, folder, name);
    FILE *file = fopen(path, "wb");
    if (!file && (errno == EILSEQ || errno == EINVAL)) {
        fprintf(stderr, "draw_sample: this file system does not take the name %s\n", path);
        free(path);
        return 0;
    }
    if (!file)
        fail("create", path);
    if (fwrite(data, 1, size, file) != size || fclose(file))
        fail("write", path);
    free(path);
    return 1;
}

static void name_of(char *name, size_t room, unsigned scene, unsigned index, const char *extension)
{
    snprintf(name, room, "%s-%02u%s", scene_name(scene), index, extension);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].scene == scene && names[i].index == index)
            snprintf(name, room, "%s", names[i].name);
}

static void paint(struct canvas *canvas, unsigned scene, unsigned index, struct size size)
{
    *canvas = (struct canvas){size.width, size.height,
                              allocate((size_t)size.width * size.height, 3 * sizeof(float))};
    scene_paint(canvas, scene, (uint64_t)(scene * PER_CLASS + index + 1) * 0x9e3779b97f4a7c15ULL);
}

/* --- broken files ---------------------------------------------------------------------------- */

static void big_endian(unsigned char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> (24 - 8 * i));
}

/* A PNG that promises 60,000 by 60,000 pixels and ends there. */
static void write_bomb(const char *dest)
{
    unsigned char png[] = {0x89, 'P', 'N', 'G', 13, 10, 26, 10, 0, 0, 0, 13, 'I', 'H', 'D', 'R', 0,
                           0,    0,   0,   0,   0,  0,  0,  8,  2, 0, 0, 0,  0,   0,   0,   0};
    big_endian(png + 16, 60000);
    big_endian(png + 20, 60000);
    big_endian(png + 29, (uint32_t)crc32(0, png + 12, 17));
    write_file(dest, "broken", "sixty thousand squared.png", png, sizeof png);
}

static void write_broken(const char *dest)
{
    static const char text[] = "Shot list: pier at sunset, pine forest, skyline from the bridge.\n";
    struct canvas canvas;
    struct bytes file;

    write_file(dest, "broken", "empty.jpg", "", 0);
    write_file(dest, "broken", "text in disguise.jpg", text, sizeof text - 1);
    write_file(dest, "broken", "notes.txt", text, sizeof text - 1);
    write_bomb(dest);

    paint(&canvas, 0, PER_CLASS, (struct size){320, 240});
    encode(&file, &canvas, &encodings[0]);
    write_file(dest, "broken", "truncated.jpg", file.data, file.size * 3 / 5);
    write_file(dest, "broken", "header only.jpg", file.data, 100);
    free(file.data);
    encode(&file, &canvas, &encodings[4]);
    write_file(dest, "broken", "truncated.png", file.data, file.size / 2);
    file.data[file.size / 2] ^= 0x10;
    write_file(dest, "broken", "flipped bit.png", file.data, file.size);
    free(file.data);
    free(canvas.rgb);
}

/* --- labels ---------------------------------------------------------------------------------- */

struct label {
    char name[64];
    unsigned scene;
};

static int by_path(const void *a, const void *b)
{
    const struct label *left = a, *right = b;
    int order = strcmp(scene_name(left->scene), scene_name(right->scene));
    return order ? order : strcmp(left->name, right->name);
}

static void write_labels(const char *dest, struct label *labels, size_t count)
{
    qsort(labels, count, sizeof *labels, by_path);
    char *path = join(dest, "labels.tsv", "");
    FILE *file = fopen(path, "wb");
    if (!file)
        fail("create", path);
    for (size_t i = 0; i < count; i++) {
        const char *class = scene_name(labels[i].scene);
        fprintf(file, "%s/", class);
        for (const char *c = labels[i].name; *c; c++) {
            /* The names above hold one byte that is not part of UTF-8: Latin-1's e acute, which
             * a dot follows where UTF-8 wants a continuation byte. */
            if ((unsigned char)*c >= 0xe0 && !(c[1] & 0x80))
                fprintf(file, "\\x%02x", (unsigned)(unsigned char)*c);
            else
                fputc(*c, file);
        }
        fprintf(file, "\t%s\n", class);
    }
    if (fclose(file))
        fail("write", path);
    free(path);
}

int main(int argc, char **argv)
{
    if (argc != 2 || argv[1][0] == '-') {
        fputs("usage: draw_sample DEST\n", stderr);
        return 2;
    }
    const char *dest = argv[1];
    make_directory(dest);
    struct label *labels = allocate(SCENE_COUNT * PER_CLASS, sizeof *labels);
    size_t count = 0;
    for (unsigned scene = 0; scene < SCENE_COUNT; scene++) {
        char *folder = join(dest, scene_name(scene), "");
        make_directory(folder);
        free(folder);
        for (unsigned index = 0; index < PER_CLASS; index++) {
            unsigned number = scene * PER_CLASS + index;
            const struct encoding *encoding =
                &encodings[number % (sizeof encodings / sizeof *encodings)];
            struct canvas canvas;
            struct bytes file;
            struct label *label = &labels[count];
            paint(&canvas, scene, index, sizes[number % (sizeof sizes / sizeof *sizes)]);
            encode(&file, &canvas, encoding);
            name_of(label->name, sizeof label->name, scene, index, encoding->extension);
            label->scene = scene;
            count += (size_t)write_file(dest, scene_name(scene), label->name, file.data, file.size);
            free(file.data);
            free(canvas.rgb);
        }
    }
    char *folder = join(dest, "broken", "");
    make_directory(folder);
    free(folder);
    write_broken(dest);
    write_labels(dest, labels, count); /* last: its presence says that the sample is whole */
    printf("%zu pictures in %u classes, and some broken files: %s\n", count, SCENE_COUNT, dest);
    free(labels);
    return 0;
}

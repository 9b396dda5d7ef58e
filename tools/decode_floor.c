/* decode_floor.c: the lower bound that ingest is compared with: it only reads, decodes and counts.
 *
 *     decode_floor [--no-count | --streams] THREADS LIST
 *
 * LIST names the files, separated by NUL. Each thread takes the next file, reads it whole, decodes
 * it with libjpeg (accurate IDCT, fancy upsampling, RGB) and, without --no-count, counts three
 * 256-bin histograms with four sub-tables. No pipeline, no device, no output file. Prints images,
 * seconds and the sum of all pixel counts weighted by bin, which prevents the compiler from removing
 * the work and allows a comparison. With --streams it only reads headers, and copies the scans without
 * their stuffed bytes, as for a device that decodes the entropy code.
 */
#include "base/clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

static char **files;
static int file_count;
static int counting = 1, streams;
static atomic_int next_file;
static _Atomic uint64_t images, weighted;

/* Written out: compilers do not unroll a loop over the tables at -O2. */
#define COUNT_PIXEL(s)                                                                             \
    table[s][0][p[3 * (s)]]++;                                                                     \
    table[s][1][p[3 * (s) + 1]]++;                                                                 \
    table[s][2][p[3 * (s) + 2]]++;

static void count(uint32_t table[4][3][256], const uint8_t *p, size_t pixels)
{
    size_t i = 0;
    for (; i + 4 <= pixels; i += 4, p += 12) {
        COUNT_PIXEL(0)
        COUNT_PIXEL(1)
        COUNT_PIXEL(2)
        COUNT_PIXEL(3)
    }
    for (; i < pixels; i++, p += 3) {
        for (int c = 0; c < 3; c++)
            table[0][c][p[c]]++;
    }
}

/* The whole file, in a buffer that grows; 0 if it cannot be read. */
static size_t read_file(uint8_t **buffer, size_t *room, const char *name)
{
    FILE *file = fopen(name, "rb");
    if (!file)
        return 0;
    size_t size = 0, got;
    do {
        if (*room < size + (1u << 20))
            *buffer = realloc(*buffer, *room = size + (2u << 20));
        got = *buffer ? fread(*buffer + size, 1, *room - size, file) : 0;
        size += got;
    } while (got > 0);
    fclose(file);
    return size;
}

/* Copies the scan up to the marker after it, without stuffed bytes; returns their number. */
static size_t copy_scan(uint8_t *out, const uint8_t *scan, size_t size)
{
    size_t done = 0;
    const uint8_t *end = scan + size, *marker;
    while ((marker = memchr(scan, 0xff, (size_t)(end - scan)))) {
        memcpy(out + done, scan, (size_t)(marker - scan) + 1);
        done += (size_t)(marker - scan) + 1;
        scan = marker + 2;
        if (scan >= end || (marker[1] != 0 && (marker[1] & 0xf8) != 0xd0))
            break;
    }
    return done;
}

static void *work(void *unused)
{
    (void)unused;
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;
    uint8_t *bytes = NULL, *pixels = NULL;
    size_t byte_room = 0, pixel_room = 0;
    info.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&info);
    for (int i; (i = atomic_fetch_add(&next_file, 1)) < file_count;) {
        size_t size = read_file(&bytes, &byte_room, files[i]);
        if (size == 0)
            continue;
        jpeg_mem_src(&info, bytes, size);
        jpeg_read_header(&info, TRUE);
        if (streams) {
            if (pixel_room < size)
                pixels = realloc(pixels, pixel_room = 2 * size);
            if (pixels)
                atomic_fetch_add(&weighted, copy_scan(pixels, info.src->next_input_byte,
                                                      info.src->bytes_in_buffer));
            jpeg_abort_decompress(&info);
            atomic_fetch_add(&images, 1);
            continue;
        }
        info.out_color_space = JCS_RGB;
        info.dct_method = JDCT_ISLOW;
        jpeg_start_decompress(&info);
        size_t stride = (size_t)info.output_width * 3, wanted = stride * info.output_height;
        if (pixel_room < wanted)
            pixels = realloc(pixels, pixel_room = wanted);
        while (pixels && info.output_scanline < info.output_height) {
            JSAMPROW row[16];
            for (int r = 0; r < 16; r++)
                row[r] = pixels + (info.output_scanline + (size_t)r) * stride;
            jpeg_read_scanlines(&info, row,
                                info.output_height - info.output_scanline < 16
                                    ? info.output_height - info.output_scanline
                                    : 16);
        }
        atomic_fetch_add(&images, 1);
        jpeg_finish_decompress(&info);
        if (!counting)
            continue;
        static _Thread_local uint32_t table[4][3][256];
        memset(table, 0, sizeof table);
        count(table, pixels, (size_t)info.output_width * info.output_height);
        uint64_t sum = 0;
        for (int s = 0; s < 4; s++)
            for (int c = 0; c < 3; c++)
                for (int v = 0; v < 256; v++)
                    sum += (uint64_t)table[s][c][v] * (uint64_t)(c * 256 + v + 1);
        atomic_fetch_add(&weighted, sum);
    }
    jpeg_destroy_decompress(&info);
    free(pixels);
    free(bytes);
    return NULL;
}

/* Splits the list into `files`; 0 if it cannot be read. */
static int read_list(const char *path)
{
    uint8_t *text = NULL;
    size_t room = 0, size = read_file(&text, &room, path);
    for (size_t at = 0; at < size; at += strlen((char *)text + at) + 1)
        file_count++;
    files = malloc(((size_t)file_count + 1) * sizeof *files);
    if (size == 0 || text[size - 1] != '\0' || !files)
        return 0;
    int i = 0;
    for (size_t at = 0; at < size; at += strlen((char *)text + at) + 1)
        files[i++] = (char *)text + at;
    return 1;
}

int main(int argc, char **argv)
{
    int64_t start = clock_now();
    if (argc > 1 && (strcmp(argv[1], "--no-count") == 0 || strcmp(argv[1], "--streams") == 0)) {
        streams = argv[1][2] == 's';
        counting = 0;
        argv++;
        argc--;
    }
    int threads = argc == 3 ? atoi(argv[1]) : 0;
    if (threads < 1 || threads > 1024 || !read_list(argv[2])) {
        fprintf(stderr, "usage: decode_floor [--no-count | --streams] THREADS LIST\n");
        return 2;
    }
    pthread_t thread[1024];
    for (int i = 0; i < threads; i++) {
        if (pthread_create(&thread[i], NULL, work, NULL) != 0)
            return 3;
    }
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    printf("%llu images %.3f s %llu\n", (unsigned long long)images,
           (double)(clock_now() - start) * 1e-9, (unsigned long long)weighted);
    return 0;
}

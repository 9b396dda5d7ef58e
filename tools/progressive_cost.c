/* progressive_cost.c: what progressive JPEG files cost the host, and which part of this a device
 * could do.
 *
 *     progressive_cost ROUNDS FILE...
 *
 * Makes a progressive file of each baseline FILE, with the same coefficients (libjpeg's usual
 * script, as jpegtran -progressive), in memory. Decodes both in turn, to coefficients and to
 * pixels, and prints the medians over the rounds of the processor time. Then prints what the scans
 * of the progressive files contain: bytes by class, and for refinements of AC coefficients, which
 * are decoded one bit after the other, how many bits and symbols the longest chain of dependent
 * scans has: those of one component.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <jpeglib.h>

enum class { DC_FIRST, DC_REFINE, AC_FIRST, AC_REFINE, CLASSES };
static const char *const names[CLASSES] = {"DC first", "DC refine", "AC first", "AC refine"};

struct file {
    uint8_t *data[2]; /* baseline, progressive */
    unsigned long size[2];
};

/* Of all files. */
static double bytes[CLASSES], scans[CLASSES], pixels;
/* Of the refinements of AC coefficients: their bits, corrections of coefficients that are not 0 already,
 * coefficients that become so; all, and of each file's longest chain. */
static double refined_bits, corrections, new_values, chain_bits, chain_symbols;

static uint8_t *read_file(unsigned long *size, const char *name)
{
    FILE *file = fopen(name, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        exit(fprintf(stderr, "cannot read %s\n", name));
    *size = (unsigned long)ftell(file);
    rewind(file);
    uint8_t *data = malloc(*size);
    if (!data || fread(data, 1, *size, file) != *size)
        exit(fprintf(stderr, "cannot read %s\n", name));
    fclose(file);
    return data;
}

/* False: the file is progressive already. */
static int make_progressive(struct file *file)
{
    struct jpeg_decompress_struct in;
    struct jpeg_compress_struct out;
    struct jpeg_error_mgr errors;
    in.err = out.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&in);
    jpeg_mem_src(&in, file->data[0], file->size[0]);
    jpeg_read_header(&in, TRUE);
    const int baseline = !jpeg_has_multiple_scans(&in);
    if (baseline) {
        jvirt_barray_ptr *coefficients = jpeg_read_coefficients(&in);
        jpeg_create_compress(&out);
        jpeg_mem_dest(&out, &file->data[1], &file->size[1]);
        jpeg_copy_critical_parameters(&in, &out);
        jpeg_simple_progression(&out);
        jpeg_write_coefficients(&out, coefficients);
        jpeg_finish_compress(&out);
        jpeg_destroy_compress(&out);
    }
    jpeg_destroy_decompress(&in);
    return baseline;
}

static double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double decode(const struct file *file, int kind, int to_pixels)
{
    static uint8_t *row;
    static size_t room;
    const double start = processor_seconds();
    struct jpeg_decompress_struct in;
    struct jpeg_error_mgr errors;
    in.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&in);
    jpeg_mem_src(&in, file->data[kind], file->size[kind]);
    jpeg_read_header(&in, TRUE);
    if (to_pixels) {
        jpeg_start_decompress(&in);
        if (room < (size_t)in.output_width * in.output_components)
            row = realloc(row, room = (size_t)in.output_width * in.output_components);
        while (row && in.output_scanline < in.output_height)
            jpeg_read_scanlines(&in, &row, 1);
        jpeg_finish_decompress(&in);
        pixels = pixels + (double)in.output_width * in.output_height;
    } else {
        jpeg_read_coefficients(&in);
    }
    jpeg_destroy_decompress(&in);
    return processor_seconds() - start;
}

/* --- scans ----------------------------------------------------------------------------------- */

/* The header of a scan. */
struct scan {
    int component, first, last, high, low;
    size_t size; /* of its entropy code, with stuffed bytes */
};

/* The next scan from *at on; 0: there is none. */
static int next_scan(struct scan *scan, const uint8_t *data, size_t size, size_t *at,
                     const int ids[4])
{
    for (size_t i = *at; i + 1 < size; i++) {
        if (data[i] != 0xff || data[i + 1] != 0xda)
            continue;
        const size_t length = (size_t)data[i + 2] << 8 | data[i + 3], begin = i + 2 + length;
        const uint8_t *end = data + begin - 3;
        size_t to = begin;
        for (scan->component = 0; ids[scan->component] != data[i + 5];)
            scan->component++;
        scan->first = end[0];
        scan->last = end[1];
        scan->high = end[2] >> 4;
        scan->low = end[2] & 15;
        while (to + 1 < size && (data[to] != 0xff || data[to + 1] == 0 ||
                                 (data[to + 1] >= 0xd0 && data[to + 1] <= 0xd7)))
            to++;
        scan->size = to - begin;
        *at = to;
        return 1;
    }
    return 0;
}

/* Corrections and new values of a refinement, from the final coefficients. */
static void count_refinement(double counts[2], struct jpeg_decompress_struct *in,
                             jvirt_barray_ptr *coefficients, const struct scan *scan)
{
    const jpeg_component_info *component = &in->comp_info[scan->component];
    for (JDIMENSION y = 0; y < component->height_in_blocks; y++) {
        JBLOCKARRAY blocks = in->mem->access_virt_barray(
            (j_common_ptr)in, coefficients[scan->component], y, 1, FALSE);
        for (JDIMENSION x = 0; x < component->width_in_blocks; x++) {
            for (int k = 1; k < 64; k++) {
                const int size = abs(blocks[0][x][k]);
                counts[0] += size >> scan->high > 0;
                counts[1] += size >> scan->high == 0 && size >> scan->low > 0;
            }
        }
    }
}

static void look_at_scans(const struct file *file)
{
    struct jpeg_decompress_struct in;
    struct jpeg_error_mgr errors;
    in.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&in);
    jpeg_mem_src(&in, file->data[1], file->size[1]);
    jpeg_read_header(&in, TRUE);
    jvirt_barray_ptr *coefficients = jpeg_read_coefficients(&in);
    struct scan scan;
    size_t at = 0;
    double chain[4][2] = {{0}};
    int ids[4] = {0}, longest = 0;
    for (int c = 0; c < in.num_components && c < 4; c++)
        ids[c] = in.comp_info[c].component_id;
    while (next_scan(&scan, file->data[1], file->size[1], &at, ids)) {
        const int class = (scan.first > 0 ? AC_FIRST : DC_FIRST) + (scan.high > 0);
        double counts[2] = {0};
        bytes[class] += (double)scan.size;
        scans[class]++;
        if (class != AC_REFINE)
            continue;
        count_refinement(counts, &in, coefficients, &scan);
        refined_bits += 8 * (double)scan.size;
        corrections += counts[0];
        new_values += counts[1];
        chain[scan.component][0] += 8 * (double)scan.size;
        chain[scan.component][1] += counts[1];
    }
    for (int c = 1; c < 4; c++)
        longest = chain[c][0] > chain[longest][0] ? c : longest;
    chain_bits += chain[longest][0];
    chain_symbols += chain[longest][1];
    jpeg_destroy_decompress(&in);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    const int rounds = argc > 2 ? atoi(argv[1]) : 0;
    if (rounds < 1)
        return fprintf(stderr, "usage: progressive_cost ROUNDS FILE...\n") > 0;
    struct file *file = calloc((size_t)argc, sizeof *file);
    double *seconds = calloc(4 * (size_t)rounds, sizeof *seconds), sizes[2] = {0}, all = 0;
    int count = 0;
    for (int i = 2; i < argc; i++) {
        file[count].data[0] = read_file(&file[count].size[0], argv[i]);
        count += make_progressive(&file[count]);
    }
    for (int i = 0; i < count; i++) {
        look_at_scans(&file[i]);
        sizes[0] += (double)file[i].size[0];
        sizes[1] += (double)file[i].size[1];
    }
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < count; i++)
            for (int way = 0; way < 4; way++)
                seconds[way * rounds + round] += decode(&file[i], way / 2, way % 2);
    printf("%d files, %.2f megapixels; baseline %.1f kB, progressive %.1f kB\n", count,
           pixels / count / rounds / 2e6, sizes[0] / count / 1e3, sizes[1] / count / 1e3);
    for (int way = 0; way < 4; way++) {
        qsort(seconds + way * rounds, (size_t)rounds, sizeof *seconds, compare);
        printf("%s to %s: %.3f ms a file\n", way / 2 ? "progressive" : "baseline",
               way % 2 ? "pixels" : "coefficients",
               seconds[way * rounds + rounds / 2] / count * 1e3);
    }
    for (int class = 0; class < CLASSES; class ++)
        all += bytes[class];
    for (int class = 0; class < CLASSES; class ++)
        printf("%s: %.1f scans, %.1f %% of the bytes\n", names[class], scans[class] / count,
               100 * bytes[class] / all);
    printf("AC refine: %.0f %% of its bits correct known coefficients; a file has %.0f kbit, %.0f "
           "thousand new coefficients; its longest chain %.0f kbit, %.0f thousand\n",
           100 * corrections / refined_bits, refined_bits / count / 1e3, new_values / count / 1e3,
           chain_bits / count / 1e3, chain_symbols / count / 1e3);
    return 0;
}

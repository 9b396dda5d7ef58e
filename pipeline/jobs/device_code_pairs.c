/* device_code_pairs.c: compares bands of rows with all later columns, one launch each. */
#include "jobs/code_pairs.h"

#include "base/minmax.h"
#include "base/random.h"
#include "code_pairs_shape.h"
#include "features/code.h"

#include <stdlib.h>
#include <string.h>

#define BAND_PAIRS   (1ull << 36) /* per launch: a fraction of a second on a GPU */
#define ROOM_LEAST   (1u << 16)
#define ROOM_MOST    (1u << 26)
#define TEST_CODES   300u /* more than the rows of a work-group */
#define TEST_LIMIT   100u
#define TENSOR_MAJOR 8 /* mma.m16n8k32 */

struct search {
    struct ocl_context *context;
    const struct code_pairs_config *config;
    struct ocl_queue *queue;
    cl_kernel kernel;
    cl_mem codes, found;
    uint32_t padded, odd_bits, room;
    struct code_list list;
};

/* The kernel writes pairs as words. */
_Static_assert(sizeof(struct code_pair) == PAIR_FOUND * sizeof(uint32_t), "a pair is three words");

static enum status open_search(struct search *search, struct error *err)
{
    const struct code_pairs_config *config = search->config;
    const struct ocl_device *device = ocl_context_device(search->context);
    const char *options = device->nvidia && device->nvidia_major >= TENSOR_MAJOR ? "" : "-DPLAIN";
    const uint64_t most = config->memory / sizeof(struct code_pair);
    search->padded = (config->count + PAIR_ROWS - 1) / PAIR_ROWS * PAIR_ROWS;
    search->room = most > ROOM_MOST ? ROOM_MOST : most < ROOM_LEAST ? ROOM_LEAST : (uint32_t)most;
    const size_t bytes = (size_t)search->padded * PAIR_WORDS * 4;
    uint32_t *words = code_pairs_words(&search->odd_bits, config, search->padded);
    if (!words)
        return error_memory(err, bytes, "the codes of images");
    enum status status = ocl_context_kernel(&search->kernel, search->context, "code_pairs",
                                            "code_pairs", options, err);
    if (status == STATUS_OK)
        status = ocl_queue_open(&search->queue, search->context, "codes", err);
    if (status == STATUS_OK)
        status = ocl_buffer(&search->codes, search->context,
                            CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, bytes, words, "codes", err);
    if (status == STATUS_OK)
        status = ocl_buffer(&search->found, search->context, CL_MEM_READ_WRITE,
                            4 + (size_t)search->room * PAIR_FOUND * 4, NULL, "pairs", err);
    free(words);
    return status;
}

static void close_search(struct search *search)
{
    ocl_queue_close(&search->queue);
    ocl_buffer_release(&search->found);
    ocl_buffer_release(&search->codes);
    if (search->kernel)
        clReleaseKernel(search->kernel);
    free(search->list.pair);
}

/* Compares rows [first, first + rows) with the columns from the first on; finds *found pairs. */
static enum status launch(uint32_t *found, struct search *search, uint32_t first, uint32_t rows,
                          struct error *err)
{
    const cl_uint count = search->config->count, limit = search->list.limit, odd = search->odd_bits;
    const cl_uint first_row = first, first_column = first, room = search->room;
    const size_t local[2] = {PAIR_ITEMS, 1};
    const size_t global[2] = {(size_t)rows / PAIR_ROWS * PAIR_ITEMS,
                              (search->padded - first + PAIR_COLUMNS - 1) / PAIR_COLUMNS};
    if (ocl_args(search->kernel, err, OCL_ARG(search->codes), OCL_ARG(count), OCL_ARG(first_row),
                 OCL_ARG(first_column), OCL_ARG(limit), OCL_ARG(odd), OCL_ARG(room),
                 OCL_ARG(search->found), OCL_ARGS_END) != STATUS_OK ||
        ocl_enqueue_fill(search->queue, "zero", search->found, 0, 0, 4, OCL_NO_WAITS, NULL, err) !=
            STATUS_OK ||
        ocl_enqueue_kernel(search->queue, "code_pairs", search->kernel, 2, global, local,
                           OCL_NO_WAITS, NULL, err) != STATUS_OK)
        return STATUS_FAILED;
    return ocl_enqueue_read(search->queue, "read pairs", search->found, true, 0, 4, found,
                            OCL_NO_WAITS, NULL, err);
}

static enum status take(struct search *search, uint32_t found, struct error *err)
{
    const size_t bytes = (size_t)found * sizeof(struct code_pair);
    struct code_pair *pair = malloc(bytes + 1);
    enum status status = pair ? ocl_enqueue_read(search->queue, "read pairs", search->found, true,
                                                 4, bytes, pair, OCL_NO_WAITS, NULL, err)
                              : error_memory(err, bytes, "pairs of images");
    if (status == STATUS_OK)
        status = code_list_add(&search->list, pair, found, err);
    free(pair);
    return status;
}

static enum status find(struct code_pairs *out, struct ocl_context *context,
                        const struct code_pairs_config *config, struct error *err)
{
    struct search search = {
        .context = context, .config = config, .list = {.config = config, .limit = config->limit}};
    const uint64_t total = (uint64_t)config->count * config->count / 2;
    memset(out, 0, sizeof *out);
    enum status status = config->count > 0 ? open_search(&search, err) : STATUS_OK;
    uint64_t rows = BAND_PAIRS / (config->count + 1) / PAIR_ROWS * PAIR_ROWS;
    rows = rows < PAIR_ROWS ? PAIR_ROWS : rows;
    uint32_t band = rows < search.padded ? (uint32_t)rows : search.padded;
    for (uint32_t first = 0; first < config->count && status == STATUS_OK;) {
        const uint32_t here = min_u32(band, search.padded - first);
        uint32_t found = 0;
        status = watch_check(&config->watch, "comparing codes", err);
        if (status == STATUS_OK)
            status = launch(&found, &search, first, here, err);
        if (status != STATUS_OK)
            break;
        if (found > search.room && here > PAIR_ROWS) {
            band = here / 2 / PAIR_ROWS * PAIR_ROWS; /* repeat with fewer rows */
            band = band < PAIR_ROWS ? PAIR_ROWS : band;
            continue;
        }
        if (found > search.room)
            status = error_set(err, STATUS_FAILED, "too many images have similar codes for %s",
                               ocl_context_device(context)->name);
        else
            status = take(&search, found, err);
        first += here;
        watch_show(&config->watch, "comparing codes",
                   total - (uint64_t)(config->count - min_u32(first, config->count)) *
                               (config->count - min_u32(first, config->count)) / 2,
                   total);
    }
    if (status == STATUS_OK)
        code_list_end(out, &search.list);
    close_search(&search);
    return status;
}

/* Compares the results for random codes, a third of them near others, with plain C. */
static enum status prove(struct ocl_context *context, struct error *err)
{
    static const uint32_t seed = RANDOM_START;
    uint32_t random = seed;
    uint8_t(*codes)[CODE_BYTES] = calloc(TEST_CODES, sizeof *codes);
    struct code_pairs got = {0}, want = {0};
    struct code_pairs_config config = {.codes = codes ? codes[0] : NULL,
                                       .count = TEST_CODES,
                                       .limit = TEST_LIMIT,
                                       .most = UINT64_MAX,
                                       .memory = 64u << 20};
    if (!codes)
        return error_memory(err, TEST_CODES * CODE_BYTES, "the self-test");
    for (uint32_t c = 0; c < TEST_CODES; c++) {
        for (uint32_t i = 0; i < CODE_BYTES; i++) {
            random_next(&random);
            const uint8_t flips = (uint8_t)(random >> 9 & random >> 15 & random >> 21);
            codes[c][i] = c > 10 && c % 3 == 0 ? codes[c % 10][i] ^ flips : (uint8_t)(random >> 9);
        }
    }
    enum status status = workers_open(&config.workers, 1, err);
    if (status == STATUS_OK)
        status = code_pairs_find(&want, &config, err);
    if (status == STATUS_OK)
        status = find(&got, context, &config, err);
    if (status == STATUS_OK &&
        (got.count != want.count || memcmp(got.pair, want.pair, got.count * sizeof *got.pair) != 0))
        status = error_set(err, STATUS_FAILED, "the kernel code_pairs gives wrong results on %s",
                           ocl_context_device(context)->name);
    code_pairs_clear(&got);
    code_pairs_clear(&want);
    workers_close(&config.workers);
    free(codes);
    return status;
}

enum status device_code_pairs_find(struct code_pairs *out, struct ocl_context *context,
                                   const struct code_pairs_config *config, struct error *err)
{
    memset(out, 0, sizeof *out);
    const enum status status = prove(context, err);
    return status == STATUS_OK ? find(out, context, config, err) : status;
}

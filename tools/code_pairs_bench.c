/* code_pairs_bench.c: the time to compare all codes with each other.
 *
 *     code_pairs_bench CODES LIMIT [DEVICE [THREADS]]
 *
 * Random codes, every thousandth one near an earlier one. DEVICE is as for clpipe --device, or
 * "host" (default) for THREADS threads (2). Prints a line of JSON; "found" must be the same on
 * every device. scons builds it as build/release/code_pairs_bench.
 */
#include "base/clock.h"
#include "jobs/code_pairs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const struct error *err)
{
    fprintf(stderr, "code_pairs_bench: %s\n", err->sentence);
    return 1;
}

int main(int argc, char **argv)
{
    struct error err = ERROR_INIT;
    struct ocl_devices devices = {0};
    struct ocl_context *context = NULL;
    struct code_pairs pairs;
    if (argc < 3) {
        fprintf(stderr, "usage: code_pairs_bench CODES LIMIT [DEVICE [THREADS]]\n");
        return 2;
    }
    const uint32_t count = (uint32_t)strtoul(argv[1], NULL, 10);
    const char *device = argc > 3 ? argv[3] : "host";
    const unsigned threads = argc > 4 ? (unsigned)atoi(argv[4]) : 2;
    uint64_t random = 88172645463325252u;
    uint64_t(*codes)[4] = malloc(((size_t)count + 1) * sizeof *codes);
    if (!codes)
        return 1;
    for (uint32_t c = 0; c < count; c++) {
        for (int w = 0; w < 4; w++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            codes[c][w] = random;
        }
        if (c % 1000 == 999) {
            memcpy(codes[c], codes[random % c], sizeof *codes);
            for (int flips = (int)(random >> 40 & 63); flips > 0; flips--) {
                random = random * 6364136223846793005u + 1442695040888963407u;
                codes[c][random >> 33 & 3] ^= 1ull << (random >> 50 & 63);
            }
        }
    }
    struct code_pairs_config config = {.codes = (const uint8_t *)codes,
                                       .count = count,
                                       .limit = (uint32_t)atoi(argv[2]),
                                       .most = UINT64_MAX,
                                       .memory = 4ull << 30};
    if (workers_open(&config.workers, threads, &err) != STATUS_OK)
        return fail(&err);
    if (strcmp(device, "host") != 0) {
        unsigned chosen[1], found;
        if (ocl_devices_open(&devices, threads, &err) != STATUS_OK ||
            ocl_devices_select(chosen, &found, 1, &devices, device, &err) != STATUS_OK ||
            ocl_context_open(&context, &devices.device[chosen[0]], NULL, &err) != STATUS_OK)
            return fail(&err);
    }
    for (int round = 0; round < 2; round++) {
        const int64_t begun = clock_now();
        const enum status status = context ? device_code_pairs_find(&pairs, context, &config, &err)
                                           : code_pairs_find(&pairs, &config, &err);
        if (status != STATUS_OK)
            return fail(&err);
        const double seconds = clock_seconds_since(begun);
        printf("{\"codes\": %u, \"limit\": %u, \"device\": \"%s\", \"found\": %llu, \"seconds\": "
               "%.3f, "
               "\"pairs_per_second\": %.4g}\n",
               (unsigned)count, (unsigned)pairs.limit,
               context ? ocl_context_device(context)->name : "host",
               (unsigned long long)pairs.count, seconds, (double)count * count / 2 / seconds);
        fflush(stdout);
        code_pairs_clear(&pairs);
        if (seconds > 30)
            break;
    }
    ocl_context_close(&context);
    ocl_devices_close(&devices);
    workers_close(&config.workers);
    free(codes);
    return 0;
}

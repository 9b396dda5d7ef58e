/* cmd_selftest.c: clpipe self-test: compares a device's results with plain C. */
#include "cli/commands.h"
#include "cli/compute.h"
#include "cli/report_json.h"
#include "cli/signals.h"
#include "cli/summary.h"
#include "device/plan.h"
#include "device/proof.h"
#include "device/selftest.h"
#include "kmeans/cluster.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static void say(const char *line, void *context)
{
    struct transcript *transcript = context;
    transcript_line(line, transcript);
    sink_flush(&transcript->sink); /* because the next test takes a while */
}

/* --- k-means --------------------------------------------------------------------------------- */
/* Points with small integer coordinates, so that every distance and sum is exact and the result is
 * known: POINTS_OF_ONE points around each of CENTRES corners, far from each other. */

#define CENTRES       8u
#define DIMENSION     16u
#define POINTS_OF_ONE 37u
#define POINTS        (CENTRES * POINTS_OF_ONE)

static float coordinate(uint64_t row, uint32_t column)
{
    uint32_t centre = (uint32_t)(row % CENTRES);
    uint32_t noise = (uint32_t)((row * 2654435761u + column * 40503u) >> 7) % 3u;
    return (float)(64 * ((centre >> (column % 3)) & 1) + noise);
}

static enum status read_points(void *context, uint64_t first, uint64_t count, float *rows,
                               struct error *err)
{
    (void)context;
    (void)err;
    for (uint64_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < DIMENSION; j++)
            rows[i * DIMENSION + j] = coordinate(first + i, j);
    return STATUS_OK;
}

/* True if every point has the label of its centre and its squared distance from the mean. */
static bool is_right(const struct cluster_outcome *outcome)
{
    for (uint32_t centre = 0; centre < CENTRES; centre++) {
        double mean[DIMENSION] = {0};
        for (uint64_t row = centre; row < POINTS; row += CENTRES)
            for (uint32_t j = 0; j < DIMENSION; j++)
                mean[j] += (double)coordinate(row, j) / POINTS_OF_ONE;
        for (uint64_t row = centre; row < POINTS; row += CENTRES) {
            double distance = 0;
            for (uint32_t j = 0; j < DIMENSION; j++) {
                double difference = (double)coordinate(row, j) - mean[j];
                distance += difference * difference;
            }
            if (outcome->labels[row] != (int32_t)centre ||
                fabs((double)outcome->distances[row] - distance) > 1e-3 * (1 + distance))
                return false;
        }
        if (outcome->sizes[centre] != POINTS_OF_ONE)
            return false;
    }
    return true;
}

static enum status test_clustering(struct transcript *transcript, struct ocl_context *context,
                                   unsigned threads, uint64_t *wrong, struct error *err)
{
    float initial[CENTRES * DIMENSION];
    struct matrix_source source = {.rows = POINTS, .dimension = DIMENSION, .read = read_points};
    struct cluster_config config;
    struct cluster_outcome outcome;
    memset(&outcome, 0, sizeof outcome);
    read_points(NULL, 0, CENTRES, initial, NULL);
    cluster_config_default(&config);
    config.k = CENTRES;
    config.init = INIT_GIVEN;
    config.initial = initial;
    config.memory = (uint64_t)64 << 20;
    config.threads = threads;
    config.watch.stop = signals_stop();
    const struct cluster_devices device = {&context, 1};
    enum status status = cluster_run(&outcome, &device, &source, &config, err);
    if (status == STATUS_OK) {
        bool right = is_right(&outcome);
        char line[120];
        snprintf(line, sizeof line, "%s  k-means, %u points of %u values, k %u",
                 right ? "ok   " : "WRONG", POINTS, DIMENSION, CENTRES);
        say(line, transcript);
        *wrong += !right;
    }
    cluster_outcome_clear(&outcome);
    return status;
}

static enum status test_steps(struct transcript *transcript, struct ocl_context *context,
                              uint64_t *wrong, struct error *err)
{
    for (unsigned i = 0; steps[i]; i++) {
        const struct step *step = steps[i];
        uint64_t compared = 0, different = 0;
        char line[120];
        if (!step->self_test)
            continue;
        if (proof_test(&compared, &different, (struct step_node){.step = step}, context, err) !=
            STATUS_OK)
            return STATUS_FAILED;
        snprintf(line, sizeof line, "%-20s %llu bytes compared, %llu differ", step->self_test_name,
                 (unsigned long long)compared, (unsigned long long)different);
        say(line, transcript);
        *wrong += different;
    }
    return STATUS_OK;
}

/* --- the command ----------------------------------------------------------------------------- */

static enum status test_device(struct transcript *transcript, const struct compute *compute,
                               unsigned chosen, uint64_t *wrong, struct error *err)
{
    struct ocl_context *context = NULL;
    const struct ocl_device *device = &compute->devices.device[chosen];
    enum status status = ocl_context_open(&context, device, compute->trace, err);
    if (status != STATUS_OK)
        return status;
    char line[400];
    snprintf(line, sizeof line, "%s, driver %s", device->name, device->driver);
    say(line, transcript);
    uint64_t here = 0;
    status = histogram_self_test(context, false, say, transcript, &here, err);
    *wrong += here;
    if (status != STATUS_OK)
        goto out;
    status = test_steps(transcript, context, wrong, err);
    if (status != STATUS_OK)
        goto out;
    status = test_clustering(transcript, context, compute->threads, wrong, err);
out:
    ocl_context_close(&context);
    return status;
}

static enum status run_self_test(const struct options *options, struct error *err)
{
    const struct compute *compute = &options->call->compute;
    struct transcript transcript;
    uint64_t wrong = 0;
    signals_install(0);
    enum status status = compute_open(options, true, err);
    if (status == STATUS_OK)
        status = transcript_open(&transcript, options, err);
    if (status != STATUS_OK)
        return status;
    report_open(options);
    json_open_array(transcript.json, "lines");
    for (unsigned i = 0; status == STATUS_OK && i < compute->count; i++)
        status = test_device(&transcript, compute, compute->chosen[i], &wrong, err);
    json_close_array(transcript.json);
    json_uint(transcript.json, "wrong", wrong);
    status = sink_end(&transcript.sink, status, err);
    if (status == STATUS_OK && wrong == 0)
        summary_line(options, "all results are correct");
    return status == STATUS_OK ? compute_verdict(wrong, "wrong value") : status;
}

const struct command command_self_test = {
    .name = "self-test",
    .goal = GOAL_MACHINE,
    .arguments = "[OPTIONS]",
    .summary = "check the results of a device against plain C",
    .about = "Runs every histogram variant that the device supports and the other kernels on "
             "synthetic images, and a small k-means, and compares the results bit by bit. Exits "
             "with 1 if one differs.",
    .operand_name = "",
    .computes = true,
    .ranks_apart = true,
    .run = run_self_test};

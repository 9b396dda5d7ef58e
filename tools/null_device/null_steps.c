/* null_steps.c: the table of steps with steps that cost a device nothing, for tools/bench-ingest --null.
 *
 * The program clpipe_null is clpipe with this table in place of device/table.c's. The host does all
 * of its usual work: files are opened, read and decoded into slots, tables filled, slots delivered,
 * records stored. But no kernel is built or run, and all values are 0. Any device takes streams.
 * PoCL gets one thread: one for each core, all woken by every command, would add cost.
 */
#include "device/plan.h"

#include <stdlib.h>

static struct step null_entropy, null_thumbnail, null_jpeg, null_count, null_code;

const struct step *const steps[] = {&null_entropy, &null_thumbnail, &null_jpeg,
                                    &null_count,   &null_code,      NULL};

static bool is_possible(const struct ocl_device *device, uint64_t parameter)
{
    (void)device;
    (void)parameter;
    return true;
}

static enum status build_nothing(void *state, struct error *err)
{
    (void)state;
    (void)err;
    return STATUS_OK;
}

static enum status enqueue_nothing(void *state, struct ocl_queue *queue, struct step_io *io,
                                   struct error *err)
{
    (void)state;
    (void)queue;
    (void)io;
    (void)err;
    return STATUS_OK;
}

static void make_null(struct step *null, const struct step *step)
{
    *null = *step;
    null->build = null->prove = build_nothing;
    null->enqueue = enqueue_nothing;
    null->abandon = NULL;
    null->describe = NULL;
    null->possible = is_possible;
}

__attribute__((constructor)) static void make_all_null(void)
{
    make_null(&null_entropy, &entropy_step);
    make_null(&null_thumbnail, &thumbnail_step);
    make_null(&null_jpeg, &jpeg_step);
    make_null(&null_count, &count_step);
    make_null(&null_code, &code_step);
    setenv("POCL_MAX_PTHREAD_COUNT", "1", 0);
    setenv("POCL_CPU_MAX_CU_COUNT", "1", 0); /* from version 5 on */
}

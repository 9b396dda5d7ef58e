/* compute.c: devices, threads and the trace of a computing command. */
#include "cli/compute.h"
#include "base/cpus.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/text.h"
#include "cli/call.h"
#include "ranks/processes.h"
#include <stdio.h>
#include <string.h>

unsigned compute_threads(const struct options *options)
{
    return options->threads ? (unsigned)options->threads : cpus_available();
}

/* Chooses the device for the local rank: among numbered devices, else among those like the chosen
 * one. Ranks of a host take them in turn, and share them if there are more ranks than devices. */
static void take_own_device(struct compute *compute, const struct options *options)
{
    const struct ocl_device *first = &compute->devices.device[compute->chosen[0]];
    const char *numbers = options->device;
    if (!numbers || numbers[strspn(numbers, "0123456789,")]) {
        compute->count = 0;
        for (unsigned i = 0; i < compute->devices.count && compute->count < CLUSTERING_DEVICES;
             i++) {
            const struct ocl_device *device = &compute->devices.device[i];
            if (device->usable && device->platform_id == first->platform_id &&
                device->type == first->type && strcmp(device->name, first->name) == 0)
                compute->chosen[compute->count++] = i;
        }
    }
    compute->chosen[0] = compute->chosen[processes_local_rank(options->processes) % compute->count];
    compute->count = 1;
}

static enum status find_devices(const struct options *options, struct error *err)
{
    struct compute *compute = &options->call->compute;
    progress_stage(&options->call->progress, "devices");
    enum status status = ocl_devices_open(&compute->devices, compute->threads, err);
    if (status != STATUS_OK)
        return status;
    status = ocl_devices_select(compute->chosen, &compute->count, CLUSTERING_DEVICES,
                                &compute->devices, options->device, err);
    if (status == STATUS_OK && options->processes)
        take_own_device(compute, options);
    return status;
}

enum status compute_open(const struct options *options, bool device, struct error *err)
{
    struct compute *out = &options->call->compute;
    out->threads = compute_threads(options);
    progress_stage(&options->call->progress, "devices");
    if (!options->dry_run)
        ocl_prepare(out->threads);
    if (!device)
        progress_stage(&options->call->progress, "opening");
    enum status status = device ? find_devices(options, err) : STATUS_OK;
    if (status == STATUS_OK && options->profile)
        status = trace_open(&out->trace, options->profile, err);
    return status;
}

enum status compute_selection(void *given, struct ocl_selection *found, struct error *err)
{
    const struct options *options = given;
    struct compute *compute = &options->call->compute;
    enum status status = STATUS_OK;
    if (compute->threads == 0)
        status = compute_open(options, true, err);
    else if (compute->count == 0)
        status = find_devices(options, err);
    *found = (struct ocl_selection){&compute->devices, compute->chosen, compute->count,
                                    compute->trace, NULL};
    return status;
}

enum status compute_context(struct ocl_context **out, const struct compute *compute,
                            struct error *err)
{
    const struct ocl_device *device = &compute->devices.device[compute->chosen[0]];
    if (compute->count > 1)
        log_message(LOG_NOTICE, "%u devices were chosen, but this command uses only %s",
                    compute->count, device->name);
    return ocl_context_open(out, device, compute->trace, err);
}

enum status compute_close(struct compute *compute, enum status status, struct error *err)
{
    struct error trouble = ERROR_INIT;
    enum status traced = trace_close(&compute->trace, &trouble);
    ocl_devices_close(&compute->devices);
    memset(compute, 0, sizeof *compute);
    if (traced == STATUS_OK)
        return status;
    if (err->status == STATUS_OK) {
        *err = trouble;
        return traced;
    }
    log_error(&trouble);
    return status;
}

enum status compute_variant(enum histogram_variant *out, const char *option, const char *name,
                            struct error *err)
{
    char names[256] = "";
    if (histogram_variant_parse(out, name))
        return STATUS_OK;
    for (int v = 0; v < HISTOGRAM_VARIANTS; v++)
        text_add_name(names, sizeof names, histogram_variant_name((enum histogram_variant)v));
    return misuse(err, "--%s %s is unknown; choose one of %s", option, name, names);
}

enum status compute_check_specs(const char *const *specs, unsigned count, struct error *err)
{
    for (unsigned i = 0; i < count; i++) {
        struct feature_set one = {0};
        enum status status = feature_set_add(&one, specs[i], NORMALIZE_NONE, err);
        if (status != STATUS_OK)
            return status;
        if (one.feature[0].image.blur)
            return misuse(err, "'%s': blurred features cannot be measured", specs[i]);
    }
    return STATUS_OK;
}

enum status compute_verdict(uint64_t wrong, const char *what)
{
    if (wrong == 0)
        return STATUS_OK;
    log_message(LOG_ERROR, "%s: do not use this device; choose another with --device",
                NUMBER_OF(wrong, what));
    return STATUS_PARTIAL;
}

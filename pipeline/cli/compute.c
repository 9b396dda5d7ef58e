/* compute.c: devices, threads and the trace of a computing command. */
#include "cli/compute.h"
#include "base/cpus.h"
#include "base/log.h"
#include <stdio.h>
#include <string.h>

unsigned compute_threads(const struct options *options)
{
    return options->threads ? (unsigned)options->threads : cpus_available();
}

enum status compute_find_devices(struct compute *compute, const struct options *options,
                                 struct error *err)
{
    enum status status = ocl_devices_open(&compute->devices, compute->threads, err);
    if (status == STATUS_OK)
        status = ocl_devices_select(compute->chosen, &compute->count, COMPUTE_DEVICES,
                                    &compute->devices, options->device, err);
    return status;
}

enum status compute_open(struct compute *out, const struct options *options, bool device,
                         struct error *err)
{
    memset(out, 0, sizeof *out);
    out->threads = compute_threads(options);
    if (!options->dry_run)
        ocl_prepare(out->threads);
    enum status status = device ? compute_find_devices(out, options, err) : STATUS_OK;
    if (status == STATUS_OK && options->profile)
        status = trace_open(&out->trace, options->profile, err);
    return status;
}

enum status compute_context(struct ocl_context **out, const struct compute *compute,
                            struct error *err)
{
    const struct ocl_device *device = &compute->devices.device[compute->chosen[0]];
    if (compute->count > 1)
        log_message(LOG_NOTICE, "of the %u chosen devices only %s is used here", compute->count,
                    device->name);
    return ocl_context_open(out, device, compute->trace, err);
}

enum status compute_contexts_open(struct compute_contexts *out, const struct compute *compute,
                                  unsigned most, struct error *err)
{
    struct error failed = ERROR_INIT;
    char line[1200];
    size_t used = 0;
    *out = (struct compute_contexts){0};
    for (unsigned i = 0; i < compute->count; i++) {
        const struct ocl_device *device = &compute->devices.device[compute->chosen[i]];
        if (out->count == most) {
            log_message(LOG_NOTICE, "of the %u chosen devices only %s is used here", compute->count,
                        out->names);
            break;
        }
        /* A CPU would be what a GPU waits for, with whatever share of the rows. */
        if (out->count > 0 && device->type != ocl_context_device(out->context[0])->type) {
            log_message(LOG_NOTICE, "notice: device %u (%s) takes no part beside %s", device->index,
                        device->name, ocl_context_device(out->context[0])->name);
            continue;
        }
        if (ocl_context_open(&out->context[out->count], device, compute->trace, &failed) !=
            STATUS_OK) {
            if (compute->count > 1)
                log_message(LOG_NOTICE, "notice: device %s is passed over: %s", device->name,
                            error_line(line, sizeof line, &failed));
            continue;
        }
        used += (size_t)snprintf(out->names + used, sizeof out->names - used, "%s%s",
                                 out->count ? " + " : "", device->name);
        used = used < sizeof out->names ? used : sizeof out->names - 1;
        out->count++;
    }
    if (out->count > 0)
        return STATUS_OK;
    *err = failed;
    return failed.status;
}

void compute_contexts_close(struct compute_contexts *contexts)
{
    for (uint32_t i = 0; i < contexts->count; i++)
        ocl_context_close(&contexts->context[i]);
    contexts->count = 0;
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
                            const struct options *options, struct error *err)
{
    char names[256] = "";
    if (histogram_variant_parse(out, name))
        return STATUS_OK;
    for (int v = 0; v < HISTOGRAM_VARIANTS; v++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", v ? ", " : "",
                 histogram_variant_name((enum histogram_variant)v));
    }
    return misuse(err, options->command, "--%s %s is none of %s", option, name, names);
}

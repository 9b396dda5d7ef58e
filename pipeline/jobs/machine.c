/* machine.c: decides which of the chosen devices work together. */
#include "jobs/machine.h"
#include "base/log.h"
#include "base/text.h"
#include "ranks/processes.h"
#include <stdio.h>

enum status clustering_contexts_open(struct clustering_contexts *out,
                                     const struct clustering_machine *machine, unsigned most,
                                     struct error *err)
{
    struct error failed = ERROR_INIT;
    struct ocl_selection found = machine->found;
    *out = (struct clustering_contexts){.devices.contexts = out->context};
    if (machine->find_devices &&
        machine->find_devices(machine->find_devices_context, &found, err) != STATUS_OK)
        return err->status;
    for (unsigned i = 0; i < found.count; i++) {
        const struct ocl_device *device = &found.devices->device[found.chosen[i]];
        if (out->devices.count == most) {
            log_message(LOG_NOTICE, "notice: only %s is used, although %u devices were chosen",
                        out->names, found.count);
            break;
        }
        /* A GPU would wait for a CPU, however small the CPU's share of the rows. */
        if (out->devices.count > 0 && device->type != ocl_context_device(out->context[0])->type) {
            log_message(LOG_NOTICE, "notice: device %u (%s) is not used together with %s",
                        device->index, device->name, ocl_context_device(out->context[0])->name);
            continue;
        }
        if (ocl_context_open(&out->context[out->devices.count], device, found.trace, &failed) !=
            STATUS_OK) {
            if (found.count > 1)
                log_message(LOG_NOTICE, "notice: device %s is skipped: %s", device->name,
                            ERROR_LINE(&failed));
            continue;
        }
        text_add(out->names, sizeof out->names, " + ", "%s", device->name);
        out->devices.count++;
    }
    if (out->devices.count > 0 && machine->processes)
        text_add(out->names, sizeof out->names, ", ", "%u ranks",
                 processes_comm(machine->processes)->size);
    if (out->devices.count > 0)
        return STATUS_OK;
    *err = failed;
    return failed.status;
}

void clustering_contexts_close(struct clustering_contexts *contexts)
{
    for (uint32_t i = 0; i < contexts->devices.count; i++)
        ocl_context_close(&contexts->context[i]);
    contexts->devices.count = 0;
}

void clustering_config_of(struct cluster_config *config, const struct clustering_machine *machine)
{
    cluster_config_default(config);
    config->memory = machine->memory;
    config->device_memory = machine->device_memory;
    config->threads = machine->threads;
    config->processes = machine->processes;
    config->watch = machine->watch;
    config->iteration = machine->progress.iteration;
}

struct neighbours_config clustering_search(const struct clustering_machine *machine,
                                           enum cluster_metric metric, uint32_t n)
{
    return (struct neighbours_config){.metric = metric,
                                      .n = n,
                                      .threads = machine->threads,
                                      .memory = machine->memory,
                                      .device_memory = machine->device_memory,
                                      .watch = machine->watch};
}

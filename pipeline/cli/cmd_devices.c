/* cmd_devices.c: clpipe devices. */
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/compute.h"
#include "cli/report_json.h"
#include "cli/sink.h"
#include <string.h>

static bool is_chosen(const unsigned *chosen, unsigned count, unsigned index)
{
    for (unsigned i = 0; i < count; i++)
        if (chosen[i] == index)
            return true;
    return false;
}

static enum status print_table(const struct ocl_devices *devices, const unsigned *chosen,
                               unsigned count, struct error *err)
{
    struct sink sink;
    enum status status = sink_open(&sink, NULL, err);
    if (status != STATUS_OK)
        return status;
    int width = 6; /* of the longest name */
    for (unsigned i = 0; i < devices->count; i++)
        if ((int)strlen(devices->device[i].name) > width)
            width = (int)strlen(devices->device[i].name);
    width = width > 48 ? 48 : width;
    sink_printf(&sink, "   #  type  %-*s  %10s  %5s  platform\n", width, "device", "memory",
                "units");
    for (unsigned i = 0; i < devices->count; i++) {
        const struct ocl_device *device = &devices->device[i];
        sink_printf(&sink, "%c %2u  %-4.4s  %-*.48s  %10s  %5u  %s (driver %s)\n",
                    is_chosen(chosen, count, i) ? '*' : ' ', device->index,
                    ocl_device_type_name(device->type), width, device->name,
                    BYTES_TEXT(device->global_memory), device->compute_units, device->platform,
                    device->driver);
        if (!device->usable)
            sink_printf(&sink, "            not usable: %s\n", device->reason);
    }
    sink_printf(&sink, "* is used%s\nloader: %s\n", count ? " unless --device chooses another" : "",
                ocl_loader_name());
    return sink_close(&sink, true, err);
}

static void report_device(struct json *json, const struct ocl_device *device)
{
    json_open_object(json, NULL);
    json_uint(json, "index", device->index);
    report_bytes(json, "platform", device->platform);
    report_bytes(json, "name", device->name);
    report_bytes(json, "loader", ocl_loader_name());
    json_string(json, "type", ocl_device_type_name(device->type));
    report_bytes(json, "version", device->version);
    report_bytes(json, "driver", device->driver);
    json_bool(json, "usable", device->usable);
    report_bytes(json, "reason", device->usable ? NULL : device->reason);
    report_bytes(json, "vendor", device->vendor);
    report_bytes(json, "platform_version", device->platform_version);
    json_uint(json, "compute_units", device->compute_units);
    json_uint(json, "clock_mhz", device->clock_mhz);
    json_uint(json, "memory_alignment", device->memory_alignment);
    json_uint(json, "global_memory", device->global_memory);
    json_uint(json, "max_allocation", device->max_allocation);
    json_uint(json, "local_memory", device->local_memory);
    json_uint(json, "max_constant", device->max_constant);
    json_uint(json, "max_work_group", device->max_work_group);
    json_open_array(json, "max_work_item");
    for (int i = 0; i < 3; i++)
        json_uint(json, NULL, device->max_work_item[i]);
    json_close_array(json);
    json_bool(json, "local_is_dedicated", device->local_is_dedicated);
    json_bool(json, "unified_memory", device->unified_memory);
    json_bool(json, "non_uniform_groups", device->non_uniform_groups);
    json_bool(json, "subgroups", device->subgroups);
    json_bool(json, "fp64", device->fp64);
    json_bool(json, "int64_atomics", device->int64_atomics);
    json_bool(json, "out_of_order", device->out_of_order);
    json_bool(json, "images", device->images);
    json_bool(json, "nvidia", device->nvidia);
    json_uint(json, "opencl_c_major", device->opencl_c_major);
    json_close_object(json);
}

static enum status run_devices(const struct options *options, struct error *err)
{
    struct ocl_devices devices = {0};
    struct json *json = &options->call->json;
    unsigned chosen[CLUSTERING_DEVICES], count = 0;
    enum status status = ocl_devices_open(&devices, compute_threads(options), err);
    if (status != STATUS_OK)
        return status;
    /* The list is useful even if no device can be chosen: it says why. */
    struct error none = ERROR_INIT;
    enum status selected =
        ocl_devices_select(chosen, &count, CLUSTERING_DEVICES, &devices, options->device, &none);
    if (selected != STATUS_OK)
        count = 0;
    if (devices.count > 0 && !json_owns_stdout(options))
        status = print_table(&devices, chosen, count, err);
    json_open_array(json, NULL);
    for (unsigned i = 0; i < devices.count; i++)
        report_device(json, &devices.device[i]);
    json_close_array(json);
    if (status == STATUS_OK && selected != STATUS_OK) {
        options->call->tells_errors = true;
        *err = none;
        status = selected;
    }
    ocl_devices_close(&devices);
    return status;
}

const struct command command_devices = {.name = "devices",
                                        .goal = GOAL_MACHINE,
                                        .arguments = "[OPTIONS]",
                                        .summary = "list OpenCL devices and show which one is used",
                                        .operand_name = "",
                                        .computes = true,
                                        .ranks_apart = true,
                                        .run = run_devices};

/* library.c: devices, handles of devices, and rows of the caller. */
#include "library/library.h"
#include "base/cpus.h"
#include "version_generated.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Drivers and their loader are asked by one thread at a time: they look at the environment, and change it. */
static pthread_mutex_t drivers = PTHREAD_MUTEX_INITIALIZER;

static enum status find_devices(struct ocl_devices *out, unsigned threads, struct error *err)
{
    if (handle_process(err) != STATUS_OK)
        return err->status;
    pthread_mutex_lock(&drivers);
    const enum status status = ocl_devices_open(out, threads, err);
    pthread_mutex_unlock(&drivers);
    return status;
}

const char *clpipe_version(void)
{
    return CLPIPE_VERSION;
}

int clpipe_devices(struct clpipe_device *out, unsigned *count, struct clpipe_error *err)
{
    struct error why = ERROR_INIT;
    struct ocl_devices devices;
    if (!count || (*count > 0 && !out)) {
        error_set(&why, STATUS_USAGE, "clpipe_devices has no room for devices: NULL");
        return handle_tell(why.status, &why, err);
    }
    enum status status = find_devices(&devices, cpus_available(), &why);
    if (status != STATUS_OK)
        return handle_tell(status, &why, err);
    char *at = (char *)out;
    for (unsigned i = 0; i < *count && i < devices.count && status == STATUS_OK; i++) {
        const struct ocl_device *from = &devices.device[i];
        struct clpipe_device to;
        status = handle_take(&to, sizeof to, at, "clpipe_device", &why);
        if (status != STATUS_OK)
            break;
        const size_t size = to.size;
        to = (struct clpipe_device){
            .size = size, .usable = from->usable, .memory = from->global_memory};
        snprintf(to.type, sizeof to.type, "%s", ocl_device_type_name(from->type));
        memcpy(to.name, from->name, sizeof to.name);
        memcpy(to.platform, from->platform, sizeof to.platform);
        memcpy(to.driver, from->driver, sizeof to.driver);
        memcpy(to.reason, from->reason, sizeof to.reason);
        memcpy(at, &to, size < sizeof to ? size : sizeof to);
        at += size;
    }
    *count = devices.count;
    ocl_devices_close(&devices);
    return handle_tell(status, &why, err);
}

/* --- handles ----------------------------------------------------------------------------------- */

static void free_library(struct handle *handle)
{
    struct library *library = (struct library *)handle;
    clustering_contexts_close(&library->contexts);
    ocl_devices_close(&library->devices);
    free(library);
}

static enum status chosen_devices(void *context, struct clustering_devices *found,
                                  struct error *err)
{
    const struct library *library = context;
    (void)err;
    *found = (struct clustering_devices){&library->devices, library->chosen, library->count, NULL};
    return STATUS_OK;
}

static void tell_iteration(void *context, uint32_t iteration, double inertia, uint64_t moved,
                           double pruned, double seconds)
{
    const struct library *library = context;
    (void)inertia, (void)moved, (void)pruned, (void)seconds;
    handle_phase(context, "iterations", iteration, library->iterations);
}

static enum status open_library(struct library *library, const struct clpipe_options *options,
                                struct error *err)
{
    const uint64_t memory = memory_available();
    struct clustering_machine *machine = &library->machine;
    *machine = (struct clustering_machine){
        .find_devices = chosen_devices,
        .find_devices_context = library,
        .threads = options->threads ? options->threads : cpus_available(),
        .memory = options->memory ? options->memory
                  : memory        ? memory / 2
                                  : (uint64_t)1 << 30,
        .device_memory = options->device_memory,
        .stop = &library->handle.stop,
        .progress = {.iteration = tell_iteration, .phase = handle_phase, .context = library},
    };
    library->memory = options->memory;
    enum status status = find_devices(&library->devices, machine->threads, err);
    if (status == STATUS_OK)
        status = ocl_devices_select(library->chosen, &library->count, CLUSTERING_DEVICES,
                                    &library->devices, options->device, err);
    if (status != STATUS_OK)
        return error_remedy(err, REMEDY_OTHER_DEVICE);
    pthread_mutex_lock(&drivers);
    status = clustering_contexts_open(&library->contexts, machine, CLUSTERING_DEVICES, err);
    pthread_mutex_unlock(&drivers);
    return status;
}

int clpipe_open(struct clpipe **out, const struct clpipe_options *given, struct clpipe_error *err)
{
    struct error why = ERROR_INIT;
    struct clpipe_options options = CLPIPE_INIT(clpipe_options);
    struct library *library = NULL;
    enum status status =
        out ? handle_process(&why)
            : error_set(&why, STATUS_USAGE, "clpipe_open has no room for a handle: NULL");
    if (out)
        *out = NULL;
    if (status == STATUS_OK && given)
        status = handle_take(&options, sizeof options, given, "clpipe_options", &why);
    if (status == STATUS_OK && options.threads > LIBRARY_THREADS_MOST)
        status = error_set(&why, STATUS_USAGE, "%u threads are too many", options.threads);
    if (status == STATUS_OK && !(library = calloc(1, sizeof *library)))
        status = error_memory(&why, sizeof *library, "a handle");
    if (status == STATUS_OK)
        status = open_library(library, &options, &why);
    if (status == STATUS_OK)
        *out = handle_add(&library->handle, free_library);
    else if (library)
        free_library(&library->handle);
    return handle_tell(status, &why, err);
}

int clpipe_name(char *name, size_t size, struct clpipe *clpipe, struct clpipe_error *err)
{
    struct error why = ERROR_INIT;
    int code;
    struct library *library = handle_begin(clpipe, NULL, err, &code);
    if (!library)
        return code;
    enum status status =
        name && size > 0 ? STATUS_OK : error_set(&why, STATUS_USAGE, "no room for a name");
    if (status == STATUS_OK)
        snprintf(name, size, "%s", library->contexts.names);
    return handle_end(library, status, &why, err);
}

int clpipe_close(struct clpipe **clpipe)
{
    const int code = clpipe && *clpipe ? handle_remove(*clpipe) : CLPIPE_OK;
    if (clpipe)
        *clpipe = NULL;
    return code;
}

int clpipe_stop(struct clpipe *clpipe)
{
    return handle_stop(clpipe);
}

/* --- rows -------------------------------------------------------------------------------------- */

static enum status read_given(void *context, uint64_t first, uint64_t count, float *rows,
                              struct error *err)
{
    const struct clpipe_rows *given = context;
    handle_calls_back = true;
    const int code = given->read(given->context, first, count, rows);
    handle_calls_back = false;
    return code ? error_set(err, STATUS_USAGE,
                            "the callback that reads rows returned %d for row %llu", code,
                            (unsigned long long)first)
                : STATUS_OK;
}

enum status library_choice(int value, int count, const char *what, struct error *err)
{
    return value >= 0 && value < count
               ? STATUS_OK
               : error_set(err, STATUS_USAGE, "there is no %s %d", what, value);
}

bool library_strides_fit(const int64_t *stride, const uint64_t *count, unsigned axes, int64_t bytes)
{
    int64_t all = 0;
    for (unsigned i = 0; i < axes; i++) {
        int64_t length;
        if ((stride[i] > -bytes && stride[i] < bytes && stride[i] != 0) ||
            __builtin_mul_overflow(stride[i], (int64_t)count[i], &length) ||
            __builtin_add_overflow(all, length > 0 ? length : -(length + 1), &all))
            return false;
    }
    return true;
}

enum status library_rows_open(struct library_rows *out, const struct clpipe_rows *rows,
                              struct error *err)
{
    static const struct value_format formats[] = {
        {'f', 4, false}, {'f', 2, false}, {'f', 8, false}, {'u', 1, false}};
    struct clpipe_rows *given = &out->given;
    struct matrix_strided *memory = &out->memory;
    if (handle_take(given, sizeof *given, rows, "clpipe_rows", err) != STATUS_OK)
        return err->status;
    if (given->columns < 1 || given->columns > CLPIPE_COLUMNS_MAX)
        return error_set(err, STATUS_USAGE, "rows have %u columns; there can be 1 to %u",
                         given->columns, CLPIPE_COLUMNS_MAX);
    if (given->rows > LIBRARY_ROWS_MOST)
        return error_set(err, STATUS_USAGE, "%llu rows are too many",
                         (unsigned long long)given->rows);
    if (given->rows > 0 && !given->values == !given->read)
        return error_set(err, STATUS_USAGE,
                         "rows need either values or a callback that reads them");
    if (library_choice(given->type, sizeof formats / sizeof *formats, "type", err) != STATUS_OK)
        return err->status;
    if (given->read) {
        out->source = (struct matrix_source){
            .rows = given->rows, .dimension = given->columns, .read = read_given, .context = given};
        return STATUS_OK;
    }
    *memory = (struct matrix_strided){.values = given->values,
                                      .format = formats[given->type],
                                      .row_stride = given->row_stride,
                                      .column_stride = given->column_stride,
                                      .columns = given->columns};
    if (memory->column_stride == 0)
        memory->column_stride = memory->format.bytes;
    if (memory->row_stride == 0)
        memory->row_stride = (int64_t)memory->columns * memory->format.bytes;
    if (!library_strides_fit((int64_t[]){memory->row_stride, memory->column_stride},
                             (uint64_t[]){given->rows, given->columns}, 2, memory->format.bytes))
        return error_set(
            err, STATUS_USAGE,
            "strides of %lld and %lld bytes do not fit %llu rows of %u values of %u bytes",
            (long long)memory->row_stride, (long long)memory->column_stride,
            (unsigned long long)given->rows, given->columns, memory->format.bytes);
    matrix_strided_source(&out->source, memory, given->rows);
    return STATUS_OK;
}

/* ocl_device.c: lists the devices and their capabilities, and selects among them. */
#include "ocl/ocl.h"
#include "ocl/ocl_cache.h"
#include "ocl/ocl_trial.h"

#include "base/parse.h"
#include "base/process.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define DEVICES_MAX 256
/* Descriptors that a driver and its compiler need. */
#define DESCRIPTORS_LEAST 16

/* cl_nv_device_attribute_query */
#define COMPUTE_CAPABILITY_MAJOR_NV 0x4000

static void query_text(char *out, size_t size, cl_device_id id, cl_device_info what)
{
    out[0] = '\0';
    size_t length = 0;
    char text[4096];
    if (clGetDeviceInfo(id, what, sizeof text, text, &length) != CL_SUCCESS || length == 0)
        return;
    text[length < sizeof text ? length : sizeof text - 1] = '\0';
    const char *start = text;
    while (isspace((unsigned char)*start))
        start++;
    size_t kept = strnlen(start, size - 1);
    memcpy(out, start, kept);
    out[kept] = '\0';
    for (size_t n = strlen(out); n > 0 && isspace((unsigned char)out[n - 1]); n--)
        out[n - 1] = '\0';
}

/* 0 if the device does not support the query. */
static uint64_t query_number(cl_device_id id, cl_device_info what, size_t bytes)
{
    union {
        cl_uint u32;
        cl_ulong u64;
        size_t size;
    } value;
    memset(&value, 0, sizeof value);
    if (clGetDeviceInfo(id, what, bytes, &value, NULL) != CL_SUCCESS)
        return 0;
    return bytes == sizeof(cl_uint)    ? value.u32
           : bytes == sizeof(cl_ulong) ? value.u64
                                       : value.size;
}

static bool has_extension(cl_device_id id, const char *name)
{
    size_t length = 0;
    if (clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS, 0, NULL, &length) != CL_SUCCESS || length == 0)
        return false;
    char *text = malloc(length + 1);
    if (!text)
        return false;
    bool found = false;
    if (clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS, length, text, NULL) == CL_SUCCESS) {
        text[length] = '\0';
        size_t n = strlen(name);
        for (const char *p = text; !found && (p = strstr(p, name)); p += n)
            found = (p == text || p[-1] == ' ') && (p[n] == '\0' || p[n] == ' ');
    }
    free(text);
    return found;
}

/* The version numbers out of "OpenCL 1.2 vendor text" or "OpenCL C 3.0 ..."; 0 if not understood.
 */
static unsigned version_number(const char *text)
{
    while (*text && !isdigit((unsigned char)*text))
        text++;
    unsigned major = 0, minor = 0;
    if (sscanf(text, "%u.%u", &major, &minor) != 2)
        return 0;
    return major * 100 + minor * 10;
}

/* Does a device of OpenCL 3 support OpenCL C 2.0? */
static bool takes_2(cl_device_id id)
{
    cl_name_version version[16];
    size_t bytes = 0;
    if (clGetDeviceInfo(id, CL_DEVICE_OPENCL_C_ALL_VERSIONS, sizeof version, version, &bytes) !=
        CL_SUCCESS)
        return true;
    for (size_t i = 0; i < bytes / sizeof *version; i++)
        if (CL_VERSION_MAJOR(version[i].version) == 2)
            return true;
    return false;
}

static void describe(struct ocl_device *device)
{
    cl_device_id id = device->id;
    query_text(device->name, sizeof device->name, id, CL_DEVICE_NAME);
    query_text(device->vendor, sizeof device->vendor, id, CL_DEVICE_VENDOR);
    query_text(device->version, sizeof device->version, id, CL_DEVICE_VERSION);
    query_text(device->driver, sizeof device->driver, id, CL_DRIVER_VERSION);
    device->type = (cl_device_type)query_number(id, CL_DEVICE_TYPE, sizeof(cl_ulong));
    device->compute_units = (unsigned)query_number(id, CL_DEVICE_MAX_COMPUTE_UNITS, 4);
    device->clock_mhz = (unsigned)query_number(id, CL_DEVICE_MAX_CLOCK_FREQUENCY, 4);
    device->memory_alignment = (unsigned)query_number(id, CL_DEVICE_MEM_BASE_ADDR_ALIGN, 4) / 8;
    device->global_memory = query_number(id, CL_DEVICE_GLOBAL_MEM_SIZE, 8);
    device->max_allocation = query_number(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, 8);
    device->local_memory = query_number(id, CL_DEVICE_LOCAL_MEM_SIZE, 8);
    device->max_constant = query_number(id, CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE, 8);
    device->max_work_group =
        (size_t)query_number(id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size_t));
    size_t items[16] = {0};
    if (clGetDeviceInfo(id, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof items, items, NULL) == CL_SUCCESS)
        memcpy(device->max_work_item, items, sizeof device->max_work_item);
    device->local_is_dedicated = query_number(id, CL_DEVICE_LOCAL_MEM_TYPE, 4) == CL_LOCAL;
    /* Deprecated in 2.0, but the only query that every runtime answers. */
    device->unified_memory = query_number(id, CL_DEVICE_HOST_UNIFIED_MEMORY, 4) != 0 ||
                             (device->type & CL_DEVICE_TYPE_CPU) != 0;

    unsigned version = version_number(device->version);
    char c_version[128];
    query_text(c_version, sizeof c_version, id, CL_DEVICE_OPENCL_C_VERSION);
    device->opencl_c_major = version_number(c_version) / 100;
    device->opencl_c_2 = version < 300 || takes_2(id);
    if (version >= 300)
        device->non_uniform_groups =
            query_number(id, CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT, 4) != 0;
    else
        device->non_uniform_groups = version >= 200 || strstr(device->platform, "Oclgrind");
    device->subgroups = has_extension(id, "cl_khr_subgroups") ||
                        (version >= 300 && query_number(id, CL_DEVICE_MAX_NUM_SUB_GROUPS, 4) > 0);
    device->fp64 = query_number(id, CL_DEVICE_DOUBLE_FP_CONFIG, 8) != 0;
    device->int64_atomics = has_extension(id, "cl_khr_int64_base_atomics");
    device->out_of_order = (query_number(id, CL_DEVICE_QUEUE_PROPERTIES, 8) &
                            CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0;
    device->images = query_number(id, CL_DEVICE_IMAGE_SUPPORT, 4) != 0;
    if (strcmp(device->platform, "Portable Computing Language") == 0) {
        const unsigned pocl = version_number(device->driver);
        device->pocl_major = pocl >= 100 ? pocl / 100 : 1;
    }
    device->nvidia = strstr(device->vendor, "NVIDIA") && strstr(device->platform, "NVIDIA");
    device->nvidia_major =
        device->nvidia ? (unsigned)query_number(id, COMPUTE_CAPABILITY_MAJOR_NV, 4) : 0;

    const char *why = NULL;
    if (!query_number(id, CL_DEVICE_AVAILABLE, 4))
        why = "the driver says it is not available";
    else if (!query_number(id, CL_DEVICE_COMPILER_AVAILABLE, 4))
        why = "it has no OpenCL C compiler";
    else if (!query_number(id, CL_DEVICE_ENDIAN_LITTLE, 4))
        why = "it is not little-endian";
    else if (version < 120)
        why = "it is older than OpenCL 1.2";
    else if (device->max_allocation < (16u << 20))
        why = "it cannot allocate 16 MiB";
    else if (device->max_work_group == 0 || device->max_work_item[0] == 0)
        why = "the driver does not say how large work-groups may be";
    device->usable = !why;
    snprintf(device->reason, sizeof device->reason, "%s", why ? why : "");
}

void ocl_prepare(unsigned host_threads)
{
    /* CPU runtimes use every core by default, whatever the cgroup allows. */
    char number[16];
    snprintf(number, sizeof number, "%u", host_threads ? host_threads : 1);
    setenv("POCL_MAX_PTHREAD_COUNT", number, 0); /* PoCL up to 4 */
    setenv("POCL_CPU_MAX_CU_COUNT", number, 0);  /* PoCL 5 and later */
    ocl_cache_for_drivers();
}

/* Drivers abort the process if they lack descriptors, threads or memory. */
static enum status check_surroundings(struct error *err)
{
    const int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    if (!process_keeps_descriptor(fd, DESCRIPTORS_LEAST))
        return error_errno(err, STATUS_FAILED, errno, "fcntl",
                           "OpenCL drivers need %d more descriptors%s", DESCRIPTORS_LEAST,
                           process_limits());
    close(fd);
    return process_limits()[0] ? ocl_trial(0, NULL, "", "the OpenCL drivers cannot be used", err)
                               : STATUS_OK;
}

enum status ocl_devices_open(struct ocl_devices *out, unsigned host_threads, struct error *err)
{
    ocl_prepare(host_threads);
    out->device = NULL;
    out->count = 0;
    cl_platform_id platform[64];
    if (check_surroundings(err) != STATUS_OK)
        return STATUS_FAILED;
    const cl_uint platforms = ocl_loader_platforms(platform, 64);
    if (platforms == 0)
        return STATUS_OK;
    struct ocl_device *device = calloc(DEVICES_MAX, sizeof *device);
    if (!device)
        return error_memory(err, DEVICES_MAX * sizeof *device, "the list of devices");
    for (cl_uint p = 0; p < platforms; p++) {
        cl_device_id id[DEVICES_MAX];
        cl_uint count = 0;
        if (clGetDeviceIDs(platform[p], CL_DEVICE_TYPE_ALL, DEVICES_MAX, id, &count) != CL_SUCCESS)
            continue;
        for (cl_uint d = 0; d < count && d < DEVICES_MAX && out->count < DEVICES_MAX; d++) {
            struct ocl_device *one = &device[out->count];
            one->index = out->count++;
            one->platform_id = platform[p];
            one->id = id[d];
            clGetPlatformInfo(platform[p], CL_PLATFORM_NAME, sizeof one->platform - 1,
                              one->platform, NULL);
            clGetPlatformInfo(platform[p], CL_PLATFORM_VERSION, sizeof one->platform_version - 1,
                              one->platform_version, NULL);
            describe(one);
        }
    }
    out->device = device;
    process_name_crashes(); /* LLVM has installed its handlers */
    return STATUS_OK;
}

void ocl_devices_close(struct ocl_devices *devices)
{
    free(devices->device);
    devices->device = NULL;
    devices->count = 0;
}

const char *ocl_device_type_name(cl_device_type type)
{
    return type & CL_DEVICE_TYPE_GPU           ? "gpu"
           : type & CL_DEVICE_TYPE_ACCELERATOR ? "accelerator"
           : type & CL_DEVICE_TYPE_CPU         ? "cpu"
                                               : "custom";
}

static bool contains_ignoring_case(const char *text, const char *part)
{
    for (; *text; text++) {
        size_t i = 0;
        while (part[i] && tolower((unsigned char)text[i]) == tolower((unsigned char)part[i]))
            i++;
        if (!part[i])
            return true;
    }
    return false;
}

static int rank(const struct ocl_device *device)
{
    /* Mesa's and Google's software renderers compute correctly, but many times slower than a
     * runtime for CPUs; some report themselves as GPUs. */
    static const char *const renderers[] = {"llvmpipe", "softpipe", "swrast", "SwiftShader"};
    for (size_t i = 0; i < sizeof renderers / sizeof *renderers; i++)
        if (contains_ignoring_case(device->name, renderers[i]))
            return 0;
    return device->type & CL_DEVICE_TYPE_GPU           ? 4
           : device->type & CL_DEVICE_TYPE_ACCELERATOR ? 3
           : device->type & CL_DEVICE_TYPE_CPU         ? 2
                                                       : 1;
}

/* Lists the devices in `text`, for a message. */
static void list_devices(char *text, size_t size, const struct ocl_devices *devices)
{
    size_t used = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < devices->count && used < size; i++) {
        const struct ocl_device *device = &devices->device[i];
        int n = snprintf(text + used, size - used, "%s#%u %s%s%s%s", i ? ", " : "", i, device->name,
                         device->usable ? "" : " (not usable: ", device->reason,
                         device->usable ? "" : ")");
        used += n > 0 ? (size_t)n : 0;
    }
}

/* "2" or "0,2": selects the devices of these numbers. */
static enum status select_numbers(unsigned *chosen, unsigned *count, unsigned max,
                                  const struct ocl_devices *devices, const char *selector,
                                  const char *have, struct error *err)
{
    for (const char *at = selector; at;) {
        char text[24];
        uint64_t number = 0;
        const char *end = strchr(at, ',');
        snprintf(text, sizeof text, "%.*s", end ? (int)(end - at) : (int)sizeof text, at);
        if (!parse_u64(&number, text, 0, UINT32_MAX) || number >= devices->count)
            return error_set(err, STATUS_FAILED, "no device %s; available: %s", text, have);
        const struct ocl_device *device = &devices->device[number];
        if (!device->usable)
            return error_set(err, STATUS_FAILED, "device %s (%s) cannot be used: %s", text,
                             device->name, device->reason);
        bool again = false;
        for (unsigned i = 0; i < *count; i++)
            again = again || chosen[i] == number;
        if (!again && *count < max)
            chosen[(*count)++] = (unsigned)number;
        at = end ? end + 1 : NULL;
    }
    return STATUS_OK;
}

enum status ocl_devices_select(unsigned *chosen, unsigned *count, unsigned max,
                               const struct ocl_devices *devices, const char *selector,
                               struct error *err)
{
    *count = 0;
    const char *trouble = ocl_cache_trouble();
    if (devices->count == 0 && trouble[0])
        return error_set(err, STATUS_FAILED,
                         "no OpenCL device: no OpenCL platform responds; PoCL, if installed, has "
                         "no directory to compile in (%s): set POCL_CACHE_DIR to a writable one",
                         trouble);
    if (devices->count == 0 && !ocl_loader_name())
        return error_set(
            err, STATUS_FAILED,
            "no OpenCL device: there is no OpenCL loader (libOpenCL.so.1); install the package "
            "ocl-icd-libopencl1, or your GPU vendor's OpenCL driver");
    if (devices->count == 0)
        return error_set(err, STATUS_FAILED,
                         "no OpenCL device: no OpenCL platform is installed%s%s; install your GPU "
                         "vendor's OpenCL driver, or PoCL for the CPU (package pocl-opencl-icd)",
                         process_limits()[0] ? ", or none can be loaded" : "", process_limits());
    char have[512];
    list_devices(have, sizeof have, devices);

    if (selector && selector[strspn(selector, "0123456789,")] == '\0')
        return select_numbers(chosen, count, max, devices, selector, have, err);

    bool all = selector && strcasecmp(selector, "all") == 0;
    const struct ocl_device *best = NULL;
    for (unsigned i = 0; i < devices->count; i++) {
        const struct ocl_device *device = &devices->device[i];
        bool fits =
            !selector || all ||
            (strcasecmp(selector, "cpu") == 0   ? (device->type & CL_DEVICE_TYPE_CPU) != 0
             : strcasecmp(selector, "gpu") == 0 ? (device->type & CL_DEVICE_TYPE_GPU) != 0
                                                : contains_ignoring_case(device->name, selector));
        if (!device->usable || !fits)
            continue;
        if (all && *count < max)
            chosen[(*count)++] = i;
        if (!best || rank(device) > rank(best) ||
            (rank(device) == rank(best) && device->compute_units > best->compute_units))
            best = device;
    }
    if (!best && !selector)
        return error_set(err, STATUS_FAILED, "no usable OpenCL device; available: %s", have);
    if (!best) {
        error_set(
            err, STATUS_FAILED, "no usable OpenCL device matches '%s'%s; available: %s", selector,
            strcasecmp(selector, "cpu") == 0 || all ? "" : " (is its driver installed?)", have);
        error_remedy(err, REMEDY_OTHER_DEVICE);
        return STATUS_FAILED;
    }
    if (!all && max > 0)
        chosen[(*count)++] = best->index;
    for (unsigned i = 1; i < *count; i++) {
        if (chosen[i] == best->index) {
            chosen[i] = chosen[0];
            chosen[0] = best->index;
        }
    }
    return STATUS_OK;
}

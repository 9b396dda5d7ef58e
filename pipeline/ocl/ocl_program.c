/* ocl_program.c: from an embedded kernel to a built program, through a cache on disk.
 *
 * A cache entry is the device binary of one (source, options, device, driver, platform version,
 * clpipe version), named by the SHA-256 of all of these. A problem with the cache costs only a
 * build. A second entry of the same name records that the program was proven correct.
 */
#include "ocl/embedded.h"
#include "ocl/ocl.h"
#include "ocl/ocl_cache.h"
#include "ocl/ocl_pocl.h"
#include "ocl/ocl_trial.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "version_generated.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum status append_embedded(FILE *source, const char *name, struct error *err)
{
    const struct embedded_kernel *kernel = embedded_kernels;
    while (kernel->name && strcmp(kernel->name, name) != 0)
        kernel++;
    if (!kernel->name)
        return error_set(err, STATUS_FAILED, "this build has no kernel %s", name);
    for (const char *const *line = kernel->lines; *line; line++)
        fputs(*line, source);
    return STATUS_OK;
}

/* The prologue's lines, embedded headers in place of #include "...". */
static enum status append_prologue(FILE *source, const char *prologue, struct error *err)
{
    while (*prologue) {
        const size_t length = strcspn(prologue, "\n") + 1;
        char header[64];
        if (sscanf(prologue, "#include \"%63[^\"]\"", header) != 1)
            fprintf(source, "%.*s", (int)length, prologue);
        else if (append_embedded(source, header, err) != STATUS_OK)
            return STATUS_FAILED;
        prologue += length;
    }
    return STATUS_OK;
}

/* All lines of an embedded kernel after the prologue, in one string (malloc); NULL on failure. */
static enum status load_source(char **out, const char *name, const char *prologue,
                               struct error *err)
{
    size_t size = 0;
    char *text = NULL;
    *out = NULL;
    FILE *source = open_memstream(&text, &size);
    if (!source)
        return error_memory(err, BUFSIZ, "a kernel's source");
    enum status status = prologue ? append_prologue(source, prologue, err) : STATUS_OK;
    if (status == STATUS_OK)
        status = append_embedded(source, name, err);
    const bool failed = ferror(source) != 0;
    if ((fclose(source) != 0 || failed) && status == STATUS_OK)
        status = error_memory(err, size, "a kernel's source");
    if (status == STATUS_OK)
        *out = text;
    else
        free(text);
    return status;
}

/* --- the cache ------------------------------------------------------------------------------- */

static void digest_text(struct sha256 *sha, const char *text)
{
    sha256_update(sha, text, strlen(text) + 1);
}

/* Hashes the version of clpipe, the device and its driver. */
static void digest_device(struct sha256 *sha, const struct ocl_device *device)
{
    sha256_init(sha);
    digest_text(sha, CLPIPE_VERSION);
    digest_text(sha, device->platform);
    digest_text(sha, device->platform_version);
    digest_text(sha, device->name);
    digest_text(sha, device->vendor);
    digest_text(sha, device->version);
    digest_text(sha, device->driver);
}

static void source_key(char hex[OCL_KEY], const struct ocl_device *device, const char *source,
                       const char *options)
{
    struct sha256 sha;
    digest_device(&sha, device);
    digest_text(&sha, options);
    digest_text(&sha, source);
    sha256_hex(hex, &sha);
}

#define ENTRY (OCL_KEY + 4)

/* The name of the cache's entry for a program's binary. */
static void binary_entry(char entry[ENTRY], const struct ocl_device *device, const char *source,
                         const char *options)
{
    source_key(entry, device, source, options);
    strcat(entry, ".bin");
}

void ocl_device_key(char hex[OCL_KEY], const struct ocl_device *device, const char *prefix)
{
    struct sha256 sha;
    digest_device(&sha, device);
    for (const struct embedded_kernel *kernel = embedded_kernels; kernel->name; kernel++) {
        if (strncmp(kernel->name, prefix, strlen(prefix)) != 0)
            continue;
        for (const char *const *line = kernel->lines; *line; line++)
            digest_text(&sha, *line);
    }
    sha256_hex(hex, &sha);
}

enum status ocl_program_key(char hex[OCL_KEY], const struct ocl_device *device, const char *name,
                            const char *prologue, const char *options, struct error *err)
{
    char *source;
    enum status status = load_source(&source, name, prologue, err);
    if (status == STATUS_OK)
        source_key(hex, device, source, options);
    free(source);
    return status;
}

bool ocl_program_is_proven(const char *key)
{
    char *data;
    size_t size;
    bool found = ocl_cache_load(&data, &size, "proven", key) == OCL_CACHE_FOUND;
    free(data);
    return found;
}

void ocl_program_set_proven(const char *key)
{
    struct error err = ERROR_INIT;
    if (ocl_cache_save("proven", key, "right\n", 6, &err) != STATUS_OK)
        log_message(LOG_DEBUG, "program cache: %s", err.sentence);
}

/* --- building -------------------------------------------------------------------------------- */

static void print_build_log(cl_program program, const struct ocl_device *device, const char *name,
                            enum log_level level)
{
    size_t length = 0;
    if (clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &length) !=
            CL_SUCCESS ||
        length <= 1)
        return;
    char *text = malloc(length + 1);
    if (!text)
        return;
    if (clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, length, text, NULL) ==
        CL_SUCCESS) {
        text[length] = '\0';
        bool blank = text[strspn(text, " \t\r\n")] == '\0';
        if (!blank)
            log_message(level, "build log of kernel %s on %s:\n%s", name, device->name, text);
    }
    free(text);
}

static cl_program build_binary(struct ocl_context *context, const char *entry, const char *options)
{
    const struct ocl_device *device = ocl_context_device(context);
    size_t size = 0;
    char *binary = NULL;
    enum ocl_cache_state state = ocl_cache_load(&binary, &size, "programs", entry);
    if (state == OCL_CACHE_DAMAGED)
        log_message(LOG_DEBUG, "program cache: %s is damaged; building again", entry);
    if (state != OCL_CACHE_FOUND)
        return NULL;
    cl_int code = CL_SUCCESS, loaded = CL_SUCCESS;
    const unsigned char *one = (const unsigned char *)binary;
    cl_program program = clCreateProgramWithBinary(ocl_context_handle(context), 1, &device->id,
                                                   &size, &one, &loaded, &code);
    free(binary);
    if (code == CL_SUCCESS && loaded == CL_SUCCESS &&
        clBuildProgram(program, 1, &device->id, options, NULL, NULL) == CL_SUCCESS)
        return program;
    if (program && code == CL_SUCCESS)
        clReleaseProgram(program);
    log_message(LOG_DEBUG, "program cache: the driver refused %s; building again", entry);
    return NULL;
}

static void save_binary(cl_program program, const char *entry)
{
    size_t size = 0;
    if (clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL) !=
            CL_SUCCESS ||
        size == 0)
        return;
    unsigned char *binary = malloc(size);
    struct error err = ERROR_INIT;
    if (binary &&
        clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL) ==
            CL_SUCCESS &&
        ocl_cache_save("programs", entry, binary, size, &err) != STATUS_OK)
        log_message(LOG_DEBUG, "program cache: %s", err.sentence);
    free(binary);
}

const char *ocl_copy_option(const struct ocl_device *device)
{
    const bool version_3 = strncmp(device->version, "OpenCL 3", 8) == 0;
    return device->pocl_major && version_3 ? "-cl-std=CL3.0" : "-cl-std=CL1.2";
}

static void (*observer)(const char *name);

void ocl_program_observe(void (*compiling)(const char *name))
{
    observer = compiling;
}

/* Number of programs being compiled, since when, and the earlier time spent compiling. */
static pthread_mutex_t compiling_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned compiling;
static int64_t compiling_since, compiled;

static void begin_compiling(const char *name)
{
    if (observer)
        observer(name);
    pthread_mutex_lock(&compiling_lock);
    if (compiling++ == 0)
        compiling_since = clock_now();
    pthread_mutex_unlock(&compiling_lock);
}

static void end_compiling(void)
{
    pthread_mutex_lock(&compiling_lock);
    if (--compiling == 0)
        compiled += clock_now() - compiling_since;
    pthread_mutex_unlock(&compiling_lock);
}

int64_t ocl_program_compiled(void)
{
    pthread_mutex_lock(&compiling_lock);
    const int64_t spent = compiled + (compiling ? clock_now() - compiling_since : 0);
    pthread_mutex_unlock(&compiling_lock);
    return spent;
}

/* Warnings are off, since PoCL prints their number; tools/check turns them on. */
static cl_int build_quietly(cl_program program, const struct ocl_device *device,
                            const char *options)
{
    const size_t size = strlen(options) + sizeof " -w";
    char *quiet = malloc(size);
    if (!quiet)
        return CL_OUT_OF_HOST_MEMORY;
    snprintf(quiet, size, "%s -w", options);
    const cl_int code = clBuildProgram(program, 1, &device->id, quiet, NULL, NULL);
    free(quiet);
    return code;
}

/* entry: where to keep the binary. */
static enum status compile(cl_program *out, struct ocl_context *context, const char *name,
                           const char *source, const char *options, const char *entry,
                           struct error *err)
{
    const struct ocl_device *device = ocl_context_device(context);
    if (device->pocl_major) {
        char what[256];
        snprintf(what, sizeof what, "kernel %s cannot be compiled on %.128s", name, device->name);
        if (ocl_trial(device->index, source, options, what, err) != STATUS_OK)
            return STATUS_FAILED;
        *out = build_binary(context, entry, options);
        if (*out)
            return STATUS_OK;
    }
    cl_int code = CL_SUCCESS;
    cl_program program =
        clCreateProgramWithSource(ocl_context_handle(context), 1, &source, NULL, &code);
    if (code != CL_SUCCESS)
        return ocl_error(err, code, "clCreateProgramWithSource", "cannot load kernel %s on %s",
                         name, device->name);
    code = build_quietly(program, device, options);
    if (code != CL_SUCCESS) {
        print_build_log(program, device, name, LOG_ERROR);
        clReleaseProgram(program);
        ocl_error(err, code, "clBuildProgram", "kernel %s does not build on %s", name,
                  device->name);
        return error_remedy(err, REMEDY_OTHER_DEVICE);
    }
    print_build_log(program, device, name, LOG_DEBUG);
    if (ocl_pocl_counts_wrong(device))
        ocl_pocl_begin_alone();
    save_binary(program, entry);
    if (ocl_pocl_counts_wrong(device))
        ocl_pocl_end_alone();
    *out = program;
    return STATUS_OK;
}

static enum status make_program(cl_program *out, struct ocl_context *context, const char *name,
                                const char *source, const char *options, struct error *err)
{
    char entry[ENTRY];
    binary_entry(entry, ocl_context_device(context), source, options);
    *out = build_binary(context, entry, options);
    if (*out)
        return STATUS_OK;
    begin_compiling(name);
    const enum status status = compile(out, context, name, source, options, entry, err);
    end_compiling();
    return status;
}

enum status ocl_program_build_source(cl_program *out, struct ocl_context *context, const char *name,
                                     const char *source, const char *options, struct error *err)
{
    enum status status = make_program(out, context, name, source, options, err);
    if (status == STATUS_OK && ocl_context_device(context)->pocl_major)
        ocl_cache_fetch_kernels();
    if (status == STATUS_OK && ocl_pocl_counts_wrong(ocl_context_device(context)))
        ocl_pocl_new_program(*out);
    return status;
}

enum status ocl_program_build(cl_program *out, struct ocl_context *context, const char *name,
                              const char *prologue, const char *options, struct error *err)
{
    *out = NULL;
    char *source;
    enum status status = load_source(&source, name, prologue, err);
    if (status == STATUS_OK)
        status = ocl_program_build_source(out, context, name, source, options, err);
    free(source);
    return status;
}

void ocl_programs_compile(const struct ocl_device *device, const char *name,
                          const char *const *options, unsigned count)
{
    char *source, entry[ENTRY];
    const char **wanted = calloc((size_t)count + 1, sizeof *wanted);
    unsigned found = 0;
    if (wanted && load_source(&source, name, NULL, NULL) == STATUS_OK) {
        for (unsigned i = 0; i < count; i++) {
            binary_entry(entry, device, source, options[i]);
            if (ocl_cache_lacks("programs", entry))
                wanted[found++] = options[i];
        }
        if (found > 1) {
            begin_compiling(name);
            ocl_trial_compile(device->index, source, wanted, found);
            end_compiling();
        }
        free(source);
    }
    free(wanted);
}

enum status ocl_kernel(cl_kernel *out, cl_program program, const char *name, struct error *err)
{
    cl_int code = CL_SUCCESS;
    *out = clCreateKernel(program, name, &code);
    if (code == CL_SUCCESS)
        return STATUS_OK;
    *out = NULL;
    return ocl_error(err, code, "clCreateKernel", "no kernel %s in the program", name);
}

enum status ocl_args(cl_kernel kernel, struct error *err, ...)
{
    va_list args;
    va_start(args, err);
    enum status status = STATUS_OK;
    for (cl_uint i = 0; status == STATUS_OK; i++) {
        size_t size = va_arg(args, size_t);
        if (size == OCL_ARGS_END)
            break;
        const void *value = va_arg(args, const void *);
        cl_int code = clSetKernelArg(kernel, i, size, value);
        if (code != CL_SUCCESS)
            status = ocl_error(err, code, "clSetKernelArg", "kernel argument %u", (unsigned)i);
    }
    va_end(args);
    return status;
}

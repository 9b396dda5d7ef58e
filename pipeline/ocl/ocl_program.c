/* ocl_program.c: from an embedded kernel to a built program, through a cache on disk.
 *
 * A cache entry is the device binary of one (source, options, device, driver, platform version,
 * clpipe version), named by the SHA-256 of all that, with a header that carries a magic, the length
 * and a digest of the binary. Entries are written under a temporary name of the process's own and
 * renamed, so any number of processes, also on several hosts of a shared home directory, see whole
 * entries or none. Whatever is wrong with the cache costs a build and nothing else.
 */
#include "ocl/embedded.h"
#include "ocl/ocl.h"
#include "ocl/ocl_cache.h"

#include "base/hash.h"
#include "base/log.h"
#include "base/output.h"
#include "version_generated.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CACHE_MAGIC "clpipe-binary-1\n"

struct cache_header {
    char magic[16];
    uint64_t length;
    uint8_t digest[32];
};

/* All lines of an embedded kernel in one string (malloc), or NULL. */
static char *join_lines(const struct embedded_kernel *kernel, const char *prologue)
{
    size_t length = prologue ? strlen(prologue) : 0;
    for (const char *const *line = kernel->lines; *line; line++)
        length += strlen(*line);
    char *text = malloc(length + 1);
    if (!text)
        return NULL;
    char *end = prologue ? stpcpy(text, prologue) : text;
    *end = '\0';
    for (const char *const *line = kernel->lines; *line; line++)
        end = stpcpy(end, *line);
    return text;
}

static const struct embedded_kernel *find_kernel(const char *name)
{
    const struct embedded_kernel *kernel = embedded_kernels;
    while (kernel->name && strcmp(kernel->name, name) != 0)
        kernel++;
    return kernel->name ? kernel : NULL;
}

/* --- the cache ------------------------------------------------------------------------------- */

/* mkdir -p of the directory that `path` lies in. */
static void make_parents(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
}

static void digest_text(struct sha256 *sha, const char *text)
{
    sha256_update(sha, text, strlen(text) + 1);
}

static void cache_key(char hex[65], const struct ocl_device *device, const char *source,
                      const char *options)
{
    struct sha256 sha;
    uint8_t digest[32];
    sha256_init(&sha);
    digest_text(&sha, CLPIPE_VERSION);
    digest_text(&sha, device->platform);
    digest_text(&sha, device->platform_version);
    digest_text(&sha, device->name);
    digest_text(&sha, device->vendor);
    digest_text(&sha, device->version);
    digest_text(&sha, device->driver);
    digest_text(&sha, options);
    digest_text(&sha, source);
    sha256_final(&sha, digest);
    sha256_hex(hex, digest);
}

static void digest_binary(uint8_t digest[32], const void *data, size_t size)
{
    struct sha256 sha;
    sha256_init(&sha);
    sha256_update(&sha, data, size);
    sha256_final(&sha, digest);
}

/* The binary of an entry (malloc), or NULL. */
static unsigned char *cache_load(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rbe");
    if (!file)
        return NULL;
    struct cache_header header;
    unsigned char *binary = NULL;
    struct stat st;
    uint8_t digest[32];
    if (fread(&header, sizeof header, 1, file) != 1 ||
        memcmp(header.magic, CACHE_MAGIC, sizeof header.magic) != 0 ||
        fstat(fileno(file), &st) != 0 || header.length == 0 ||
        (uint64_t)st.st_size != sizeof header + header.length)
        goto out;
    binary = malloc(header.length);
    if (!binary)
        goto out;
    if (fread(binary, 1, header.length, file) == header.length) {
        digest_binary(digest, binary, header.length);
        if (memcmp(digest, header.digest, sizeof digest) == 0) {
            *size = header.length;
            fclose(file);
            return binary;
        }
    }
    log_message(LOG_DEBUG, "program cache: %s is damaged; building again", path);
out:
    free(binary);
    fclose(file);
    return NULL;
}

static void cache_save(const char *path, const unsigned char *binary, size_t size)
{
    char temporary[4096 + 96], host[64] = "";
    gethostname(host, sizeof host - 1);
    int length = snprintf(temporary, sizeof temporary, "%s.%s.%ld", path, host, (long)getpid());
    if (length < 0 || (size_t)length >= sizeof temporary)
        return;
    make_parents(temporary);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        log_message(LOG_DEBUG, "program cache: cannot write %s: %s", temporary, strerror(errno));
        return;
    }
    struct cache_header header = {.length = size};
    memcpy(header.magic, CACHE_MAGIC, sizeof header.magic);
    digest_binary(header.digest, binary, size);
    struct error err = ERROR_INIT;
    bool ok = write_all(fd, &header, sizeof header, temporary, &err) == STATUS_OK &&
              write_all(fd, binary, size, temporary, &err) == STATUS_OK;
    ok = close(fd) == 0 && ok;
    if (!ok || rename(temporary, path) != 0) {
        unlink(temporary);
        log_message(LOG_DEBUG, "program cache: cannot write %s", path);
    }
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

static cl_program build_binary(struct ocl_context *context, const char *path, const char *options)
{
    const struct ocl_device *device = ocl_context_device(context);
    size_t size = 0;
    unsigned char *binary = cache_load(path, &size);
    if (!binary)
        return NULL;
    cl_int code = CL_SUCCESS, loaded = CL_SUCCESS;
    const unsigned char *one = binary;
    cl_program program = clCreateProgramWithBinary(ocl_context_handle(context), 1, &device->id,
                                                   &size, &one, &loaded, &code);
    free(binary);
    if (code == CL_SUCCESS && loaded == CL_SUCCESS &&
        clBuildProgram(program, 1, &device->id, options, NULL, NULL) == CL_SUCCESS)
        return program;
    if (program && code == CL_SUCCESS)
        clReleaseProgram(program);
    log_message(LOG_DEBUG, "program cache: the driver refused %s; building again", path);
    return NULL;
}

static void save_binary(cl_program program, const char *path)
{
    size_t size = 0;
    if (clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL) !=
            CL_SUCCESS ||
        size == 0)
        return;
    unsigned char *binary = malloc(size);
    if (binary &&
        clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL) == CL_SUCCESS)
        cache_save(path, binary, size);
    free(binary);
}

enum status ocl_program_build_source(cl_program *out, struct ocl_context *context, const char *name,
                                     const char *source, const char *options, struct error *err)
{
    const struct ocl_device *device = ocl_context_device(context);
    char name_of_entry[65 + 4], path[4096];
    cache_key(name_of_entry, device, source, options);
    strcat(name_of_entry, ".bin");
    bool cached = ocl_cache_path(path, sizeof path, name_of_entry);
    *out = cached ? build_binary(context, path, options) : NULL;
    if (*out)
        return STATUS_OK;

    cl_int code = CL_SUCCESS;
    cl_program program =
        clCreateProgramWithSource(ocl_context_handle(context), 1, &source, NULL, &code);
    if (code != CL_SUCCESS)
        return ocl_error(err, code, "clCreateProgramWithSource", "cannot load kernel %s on %s",
                         name, device->name);
    code = clBuildProgram(program, 1, &device->id, options, NULL, NULL);
    if (code != CL_SUCCESS) {
        print_build_log(program, device, name, LOG_ERROR);
        clReleaseProgram(program);
        return ocl_error(err, code, "clBuildProgram",
                         "kernel %s does not build on %s; choose another device with --device",
                         name, device->name);
    }
    print_build_log(program, device, name, LOG_DEBUG);
    if (cached)
        save_binary(program, path);
    *out = program;
    return STATUS_OK;
}

enum status ocl_program_build(cl_program *out, struct ocl_context *context, const char *name,
                              const char *prologue, const char *options, struct error *err)
{
    *out = NULL;
    const struct embedded_kernel *kernel = find_kernel(name);
    if (!kernel)
        return error_set(err, STATUS_FAILED, "this build has no kernel %s", name);
    char *source = join_lines(kernel, prologue);
    if (!source)
        return error_memory(err, 0, "a kernel's source");
    enum status status = ocl_program_build_source(out, context, name, source, options, err);
    free(source);
    return status;
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

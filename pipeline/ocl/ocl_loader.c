/* ocl_loader.c: loaders read one directory of .icd files; to add drivers, a temporary one is made
 * with copies of the system's, and removed after the loader has read it. */
#include "ocl/ocl_loader.h"

#include "base/process.h"

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOADER  "libOpenCL.so.1"
#define VENDORS "/etc/OpenCL/vendors"

struct ocl_api ocl_api;
static char loader_name[2 * PATH_MAX];

static bool open_loader(void)
{
#define OCL_NAME(name) #name,
    static const char *const names[] = {OCL_ENTRIES(OCL_NAME)};
    char path[PATH_MAX];
    Dl_info from;
    if (loader_name[0])
        return true;
    /* Global, so that preloaded libraries find the next definition of a symbol in it. */
    if (!dlopen(LOADER, RTLD_NOW | RTLD_GLOBAL)) {
        setenv("PYOPENCL_HOME", "", 0); /* read by the wheel's build of ocl-icd */
        if (!process_file_beside(path, sizeof path, LOADER) ||
            !dlopen(path, RTLD_NOW | RTLD_GLOBAL))
            return false;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *const address = dlsym(RTLD_DEFAULT, names[i]);
        if (!address)
            return false; /* older than OpenCL 1.2 */
        memcpy((char *)&ocl_api + i * sizeof address, &address, sizeof address);
        if (i == 0 && dladdr(address, &from))
            snprintf(path, sizeof path, "%s", from.dli_fname);
    }
    snprintf(loader_name, sizeof loader_name, "%s", path);
    return true;
}

/* --- drivers that are not listed --------------------------------------------------------------- */

static bool write_icd(const char *folder, const char *name, const char *library)
{
    char path[2 * PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    const bool written = file && fprintf(file, "%s\n", library) > 0;
    return file && fclose(file) == 0 && written;
}

/* Whether a system .icd file names a library that contains the string `sign` (NULL: none). Copies
 * all into the folder, unless that is NULL; loaders ignore links. */
static bool look_at_listed(const char *sign, const char *folder)
{
    DIR *directory = opendir(VENDORS);
    bool found = false;
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        char path[PATH_MAX], line[PATH_MAX];
        snprintf(path, sizeof path, VENDORS "/%s", entry->d_name);
        FILE *file = strstr(entry->d_name, ".icd") ? fopen(path, "r") : NULL;
        if (file && fgets(line, sizeof line, file)) {
            line[strcspn(line, "\n")] = '\0';
            found = found || (sign && strstr(line, sign));
            if (folder)
                write_icd(folder, entry->d_name, line);
        }
        if (file)
            fclose(file);
    }
    if (directory)
        closedir(directory);
    return found;
}

static void remove_folder(const char *folder)
{
    DIR *directory = opendir(folder);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        char path[2 * PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        unlink(path);
    }
    if (directory)
        closedir(directory);
    rmdir(folder);
}

/* Makes a directory of .icd files of the system's drivers and the missing ones; folder "": none is
 * missing. */
static void add_drivers(char *folder, size_t size)
{
    /* PyPI's intel-opencl-rt is in the lib directory of the environment, or of --target, in which
     * this program is. */
    static const char *const libraries[][2] = {{"nvidia", "libnvidia-opencl.so.1"},
                                               {"intelocl", "../../../../libintelocl.so"},
                                               {"intelocl", "../../lib/libintelocl.so"}};
    folder[0] = '\0';
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        char path[PATH_MAX], *real = NULL;
        const char *name = libraries[i][1];
        if (name[0] == '.')
            name =
                process_file_beside(path, sizeof path, name) ? real = realpath(path, NULL) : NULL;
        void *const library =
            name && !look_at_listed(libraries[i][0], NULL) ? dlopen(name, RTLD_LAZY) : NULL;
        if (library && !folder[0]) {
            snprintf(folder, size, "%s/clpipe-vendors-XXXXXX", process_temporary_directory());
            if (mkdtemp(folder))
                look_at_listed(NULL, folder);
            else
                folder[0] = '\0';
        }
        char file[32];
        snprintf(file, sizeof file, "clpipe-%zu.icd", i);
        if (library && folder[0] && write_icd(folder, file, name)) {
            const size_t used = strlen(loader_name);
            snprintf(loader_name + used, sizeof loader_name - used, ", with %s", name);
        }
        free(real);
    }
}

/* --- interface --------------------------------------------------------------------------------- */

cl_uint ocl_loader_platforms(cl_platform_id *platforms, cl_uint max)
{
    static bool complete;
    char folder[PATH_MAX] = "";
    cl_uint count = 0;
    if (!open_loader())
        return 0;
    if (!complete && !getenv("OCL_ICD_VENDORS") && !getenv("OCL_ICD_FILENAMES") &&
        !getenv("OPENCL_VENDOR_PATH"))
        add_drivers(folder, sizeof folder);
    complete = true;
    if (folder[0])
        setenv("OCL_ICD_VENDORS", folder, 1);
    /* Khronos' loader cuts the list in place; child processes need all of it. */
    const char *const names = getenv("OCL_ICD_FILENAMES");
    char *const kept = names ? strdup(names) : NULL;
    const cl_int code = clGetPlatformIDs(max, platforms, &count);
    if (kept)
        setenv("OCL_ICD_FILENAMES", kept, 1);
    free(kept);
    if (folder[0]) {
        unsetenv("OCL_ICD_VENDORS");
        remove_folder(folder);
    }
    return code != CL_SUCCESS ? 0 : count < max ? count : max;
}

const char *ocl_loader_name(void)
{
    return loader_name[0] ? loader_name : NULL;
}

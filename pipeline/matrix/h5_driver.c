/* h5_driver.c: the functions of HDF5's default driver, some of them wrapped. */
#include "matrix/h5_driver.h"
#include "base/process.h"
#include "matrix/h5_error.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

static H5FD_class_t driver, original;
static hid_t driver_id = H5I_INVALID_HID;

/* An open file. */
static struct file {
    H5FD_t *file;
    void *handle; /* identifies it outside the driver */
    int read_failed, write_failed;
    struct file *next;
    char *shown; /* its name in messages, if that is different */
    char name[];
} * files;
static int closed_failed;
static bool copying;
static pthread_mutex_t library = PTHREAD_MUTEX_INITIALIZER;

static struct file **find_file(const H5FD_t *file)
{
    struct file **at = &files;
    while ((*at)->file != file)
        at = &(*at)->next;
    return at;
}

static struct file *find_open(hid_t file)
{
    void *handle = NULL;
    if (file <= 0 || H5Fget_vfd_handle(file, H5P_DEFAULT, &handle) < 0)
        return NULL;
    struct file *at = files;
    while (at && at->handle != handle)
        at = at->next;
    return at;
}

/* --- the driver ------------------------------------------------------------------------------ */

static herr_t find_number(unsigned n, const H5E_error2_t *entry, void *number)
{
    (void)n;
    const char *text = entry->desc ? strstr(entry->desc, "errno = ") : NULL;
    if (text && *(int *)number == 0)
        *(int *)number = atoi(text + strlen("errno = "));
    return 0;
}

/* The error number of the call that has just failed; 0: not a system error. */
static int failed_number(void)
{
    int number = 0;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, find_number, &number);
    return number;
}

static H5FD_t *open_noted(const char *name, unsigned flags, hid_t access, haddr_t most)
{
    struct file *file = calloc(1, sizeof *file + strlen(name) + 1);
    if (file && (file->file = original.open(name, flags, access, most))) {
        strcpy(file->name, name);
        original.get_handle(file->file, access, &file->handle);
        file->next = files;
        files = file;
        return file->file;
    }
    free(file);
    return NULL;
}

/* HDF5 resolves file names through symbolic links, which those in /proc/self/fd do not support. */
static herr_t query_unnamed(const H5FD_t *file, unsigned long *flags)
{
    const herr_t result = original.query(file, flags);
    if (flags)
        *flags &= ~(unsigned long)H5FD_FEAT_POSIX_COMPAT_HANDLE;
    return result;
}

static herr_t close_noted(H5FD_t *closed)
{
    struct file **at = find_file(closed), *file = *at;
    *at = file->next;
    closed_failed = file->write_failed;
    process_reads(NULL);
    free(file->shown);
    free(file);
    return original.close(closed);
}

static herr_t read_noted(H5FD_t *from, H5FD_mem_t type, hid_t transfer, haddr_t address,
                         size_t size, void *data)
{
    struct file *file = *find_file(from);
    process_reads(file->name);
    const herr_t result = original.read(from, type, transfer, address, size, data);
    if (result < 0 && !file->read_failed)
        file->read_failed = failed_number();
    if (result < 0 && copying && type == H5FD_MEM_DRAW) {
        memset(data, 0, size);
        H5Eclear2(H5E_DEFAULT);
        return 0;
    }
    return result;
}

/* Records a failed write and reports success to HDF5. */
static herr_t note_write(struct file *file, herr_t result)
{
    if (result >= 0)
        return result;
    const int number = failed_number();
    file->write_failed = number ? number : EIO;
    H5Eclear2(H5E_DEFAULT);
    return 0;
}

static herr_t write_noted(H5FD_t *to, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t size,
                          const void *data)
{
    struct file *file = *find_file(to);
    return file->write_failed
               ? 0
               : note_write(file, original.write(to, type, transfer, address, size, data));
}

static herr_t truncate_noted(H5FD_t *to, hid_t transfer, hbool_t closing)
{
    struct file *file = *find_file(to);
    return file->write_failed ? 0 : note_write(file, original.truncate(to, transfer, closing));
}

/* --- from outside ---------------------------------------------------------------------------- */

void h5_driver_use(hid_t access)
{
    if (driver_id < 0) {
        /* Any file of the default driver provides its functions. */
        H5FD_t *any = H5FDopen("/dev/null", H5F_ACC_RDONLY, H5P_DEFAULT, HADDR_UNDEF);
        if (!any)
            return;
        driver = original = *any->cls;
        H5FDclose(any);
        driver.name = "clpipe";
        driver.terminate = NULL;
        driver.open = open_noted;
        driver.query = query_unnamed;
        driver.close = close_noted;
        driver.read = read_noted;
        driver.write = write_noted;
        driver.truncate = truncate_noted;
        driver_id = H5FDregister(&driver);
    }
    if (driver_id > 0)
        H5Pset_driver(access, driver_id, NULL);
}

int h5_driver_read_failed(const char **path)
{
    for (const struct file *file = files; file; file = file->next) {
        *path = file->name;
        if (file->read_failed)
            return file->read_failed;
    }
    return 0;
}

/* The open file of any object. */
static struct file *find_of(hid_t object)
{
    H5_SCOPED hid_t file = object > 0 ? H5Iget_file_id(object) : H5I_INVALID_HID;
    struct file *open = find_open(file);
    return open;
}

int h5_driver_descriptor(hid_t object)
{
    const struct file *open = find_of(object);
    return open && open->handle ? *(const int *)open->handle : -1;
}

void h5_driver_note_damage(hid_t object)
{
    struct file *open = find_of(object);
    if (open && !open->read_failed)
        open->read_failed = H5_DRIVER_DAMAGE;
}

void h5_driver_set_name(hid_t file, const char *name)
{
    struct file *open = find_open(file);
    if (open)
        open->shown = strdup(name);
}

const char *h5_driver_name(hid_t object)
{
    const struct file *open = find_of(object);
    return !open ? NULL : open->shown ? open->shown : open->name;
}

void h5_driver_copy(bool begin)
{
    copying = begin;
}

void h5_driver_lock(void)
{
    h5_quiet();
    pthread_mutex_lock(&library);
}

void h5_driver_unlock(void)
{
    pthread_mutex_unlock(&library);
}

int h5_driver_write_failed(hid_t object)
{
    const struct file *open = find_of(object);
    return open ? open->write_failed : 0;
}

int h5_driver_closed_failed(void)
{
    return closed_failed;
}

void h5_driver_drop(hid_t file)
{
    struct file *open = find_open(file);
    if (open && !open->write_failed)
        open->write_failed = ECANCELED;
}

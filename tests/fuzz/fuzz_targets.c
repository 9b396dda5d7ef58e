/* fuzz_targets.c: the table of targets, and functions that they share. */
#include "fuzz.h"

#include "base/hash.h"
#include "decode/decode.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct fuzz_target fixed[] = {
    {"decode", fuzz_decode, fuzz_seal_image, NULL},
    {"archive", fuzz_archive, fuzz_seal_archive, NULL},
    {"list", fuzz_list, NULL, NULL},
    {"listfile", fuzz_listfile, NULL, NULL},
    {"log", fuzz_log, fuzz_seal_log, NULL},
    {"npy", fuzz_npy, NULL, NULL},
    {"network", fuzz_network, fuzz_seal_network, NULL},
    {"result", fuzz_result, NULL, fuzz_mutate_hdf5},
    {"matrix", fuzz_matrix, NULL, fuzz_mutate_hdf5},
};
#define FIXED (sizeof fixed / sizeof *fixed)

bool fuzz_thorough;

/* The table of codecs lists the formats that this build decodes. */
static bool format_target(struct fuzz_target *target, unsigned i)
{
    const struct format *row;
    for (unsigned at = 0; (row = format_at(at)); at++) {
        if (!row->library || i-- > 0)
            continue;
        *target = (struct fuzz_target){.run = fuzz_decode, .seal = fuzz_seal_image};
        snprintf(target->name, sizeof target->name, "%s", row->name);
        return true;
    }
    return false;
}

const struct fuzz_target *fuzz_target_at(unsigned i)
{
    static struct fuzz_target target;
    if (i < FIXED)
        return &fixed[i];
    return format_target(&target, i - FIXED) ? &target : NULL;
}

const struct fuzz_target *fuzz_target_find(const char *name)
{
    const struct fuzz_target *target;
    for (unsigned i = 0; (target = fuzz_target_at(i)); i++) {
        if (strcmp(target->name, name) == 0)
            return target;
    }
    return NULL;
}

const struct fuzz_target *fuzz_target_from(int argc, char **argv)
{
    static const char option[] = "--target=";
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], option, sizeof option - 1) != 0)
            continue;
        const struct fuzz_target *target = fuzz_target_find(argv[i] + sizeof option - 1);
        if (target)
            return target;
    }
    fprintf(stderr, "--target=NAME is missing, with one of these:\n");
    const struct fuzz_target *target;
    for (unsigned i = 0; (target = fuzz_target_at(i)); i++)
        fprintf(stderr, "%s\n", target->name);
    exit(2);
}

/* This is a named file, because HDF5 needs a name, and repair needs the directory. */
static char folder[256], file_name[sizeof folder + 32];

static void remove_folder(void)
{
    unlink(file_name);
    rmdir(folder);
}

const char *fuzz_folder(void)
{
    if (!folder[0]) {
        const char *where = getenv("TMPDIR");
        snprintf(folder, sizeof folder, "%s/clpipe-fuzz-XXXXXX", where ? where : "/tmp");
        fuzz_check(mkdtemp(folder));
        snprintf(file_name, sizeof file_name, "%s/log-0123456789abcdef", folder);
        atexit(remove_folder);
    }
    return folder;
}

int fuzz_file(const uint8_t *data, size_t size)
{
    static int file = -1;
    fuzz_folder();
    if (file < 0)
        file = open(file_name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    fuzz_check(file >= 0 && pwrite(file, data, size, 0) == (ssize_t)size);
    fuzz_check(ftruncate(file, (off_t)size) == 0);
    fuzz_check(lseek(file, 0, SEEK_SET) == 0);
    return file;
}

const char *fuzz_file_name(void)
{
    return file_name;
}

struct fuzz_choice fuzz_choice(const uint8_t *data, size_t size)
{
    return (struct fuzz_choice){crc32c(0, data, size) | (uint64_t)size << 32};
}

uint32_t fuzz_choose(struct fuzz_choice *choice, uint32_t below)
{
    /* splitmix64 */
    uint64_t z = choice->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) % below);
}

void fuzz_broken(const char *what, const char *file, int line)
{
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
    abort();
}

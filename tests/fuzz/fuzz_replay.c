/* fuzz_replay.c: runs a target on files: fuzz_replay --target=NAME FILE|DIRECTORY...
 *
 * Prints the name of each file first, so that after a crash the last name is that of the failing
 * input. The last line is the number of files. fuzz_replay --list prints the targets. */
#include "fuzz.h"

#include <errno.h>
#include <ftw.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fuzz_target target;
static unsigned long count;

static int give(const char *path, const struct stat *st, int type, struct FTW *place)
{
    (void)place;
    if (type != FTW_F)
        return 0;
    FILE *file = fopen(path, "rb");
    /* The buffer has exactly the size of the file, so that reads past its end are detected. */
    uint8_t *data = malloc((size_t)st->st_size);
    if (!file || (!data && st->st_size > 0) ||
        fread(data, 1, (size_t)st->st_size, file) != (size_t)st->st_size) {
        fprintf(stderr, "fuzz_replay: cannot read %s: %s\n", path, strerror(errno));
        return 1;
    }
    fclose(file);
    printf("%s\n", path);
    fflush(stdout);
    target.run(&target, data, (size_t)st->st_size);
    free(data);
    count++;
    return 0;
}

int main(int argc, char **argv)
{
    const struct fuzz_target *row;
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (unsigned i = 0; (row = fuzz_target_at(i)); i++)
            printf("%s\n", row->name);
        return 0;
    }
    target = *fuzz_target_from(argc, argv);
    H5dont_atexit();
    fuzz_thorough = true;
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-' && nftw(argv[i], give, 16, FTW_PHYS) != 0) {
            fprintf(stderr, "fuzz_replay: cannot list %s\n", argv[i]);
            return 1;
        }
    }
    printf("%s: %lu inputs\n", target.name, count);
    return 0;
}

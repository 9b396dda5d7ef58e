/* fuzz.h: what takes bytes from strangers, each as a target that is given any bytes at all.
 *
 *   fuzz_libfuzzer.c   libFuzzer makes the bytes up (VARIANT=fuzz, clang)
 *   fuzz_replay.c      the bytes of files, with any compiler
 *
 * A target must return: crashes, findings of the sanitizers, hangs and untrue promises (fuzz_check)
 * end the process. What it does depends on the bytes alone. */
#ifndef CLPIPE_FUZZ_H
#define CLPIPE_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fuzz_target {
    char name[16];
    void (*run)(const struct fuzz_target *target, const uint8_t *data, size_t size);
    /* Makes the checksums in the bytes right again, without which mutations end at the first of
     * them; NULL where the format has none. */
    void (*seal)(uint8_t *data, size_t size);
    /* Mutates the parts that are ours to read, by `change` (which gives the new size of what it is
     * given, at most `most`); NULL: anything may change. */
    size_t (*mutate)(uint8_t *data, size_t size, unsigned seed,
                     size_t (*change)(uint8_t *data, size_t size, size_t most));
};

/* "decode" (whatever the content is), a target for each format that this build decodes, and the
 * readers; NULL past the last. */
const struct fuzz_target *fuzz_target_at(unsigned i);
/* NULL: none of that name. */
const struct fuzz_target *fuzz_target_find(const char *name);

/* Looks at everything, every time. libFuzzer's own rounds leave what costs most to one in four. */
extern bool fuzz_thorough;

/* "--target=NAME" among the arguments; ends the process with what there is if it is missing. */
const struct fuzz_target *fuzz_target_from(int argc, char **argv);

/* Writes the bytes to a file, always the same one: its descriptor, at the beginning. */
int fuzz_file(const uint8_t *data, size_t size);
/* Its name; and the directory, in $TMPDIR, that holds nothing else and is removed at the end. The
 * file is called as a log is. */
const char *fuzz_file_name(void);
const char *fuzz_folder(void);

/* An endless row of numbers that depends on the bytes alone. */
struct fuzz_choice {
    uint64_t state;
};
struct fuzz_choice fuzz_choice(const uint8_t *data, size_t size);
/* 0 to below - 1. */
uint32_t fuzz_choose(struct fuzz_choice *choice, uint32_t below);

_Noreturn void fuzz_broken(const char *what, const char *file, int line);
#define fuzz_check(condition)                                                                      \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fuzz_broken(#condition, __FILE__, __LINE__);                                           \
    } while (0)

/* fuzz_decode.c */
void fuzz_decode(const struct fuzz_target *target, const uint8_t *data, size_t size);
void fuzz_seal_image(uint8_t *data, size_t size);
/* fuzz_readers.c */
void fuzz_list(const struct fuzz_target *target, const uint8_t *data, size_t size);
void fuzz_log(const struct fuzz_target *target, const uint8_t *data, size_t size);
void fuzz_seal_log(uint8_t *data, size_t size);
void fuzz_npy(const struct fuzz_target *target, const uint8_t *data, size_t size);
/* fuzz_hdf5.c */
void fuzz_result(const struct fuzz_target *target, const uint8_t *data, size_t size);
void fuzz_matrix(const struct fuzz_target *target, const uint8_t *data, size_t size);
size_t fuzz_mutate_hdf5(uint8_t *data, size_t size, unsigned seed,
                        size_t (*change)(uint8_t *data, size_t size, size_t most));

#endif

/* fuzz.h: the parts that read untrusted bytes, each as a target that accepts any bytes.
 *
 *   fuzz_libfuzzer.c   libFuzzer generates the bytes (VARIANT=fuzz, clang)
 *   fuzz_replay.c      the bytes of files, with any compiler
 *
 * A target must return: crashes, sanitizer findings, hangs and violated promises (fuzz_check) end
 * the process. Its behaviour depends only on the bytes. */
#ifndef CLPIPE_FUZZ_H
#define CLPIPE_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fuzz_target {
    char name[16];
    void (*run)(const struct fuzz_target *target, const uint8_t *data, size_t size);
    /* Corrects the checksums in the bytes, at the first of which mutations would otherwise end;
     * NULL if the format has none. */
    void (*seal)(uint8_t *data, size_t size);
    /* Mutates the parts that clpipe itself reads, by `change` (which returns the new size of its
     * argument, at most `most`); NULL: anything may change. */
    size_t (*mutate)(uint8_t *data, size_t size, unsigned seed,
                     size_t (*change)(uint8_t *data, size_t size, size_t most));
};

/* "decode" (content of any format), a target for each format that this build decodes, and the
 * readers; NULL past the last. */
const struct fuzz_target *fuzz_target_at(unsigned i);
/* NULL: unknown name. */
const struct fuzz_target *fuzz_target_find(const char *name);

/* Runs all checks every time. Under libFuzzer the most expensive ones run one time in four. */
extern bool fuzz_thorough;

/* The target of "--target=NAME" among the arguments; without one, lists the targets and exits. */
const struct fuzz_target *fuzz_target_from(int argc, char **argv);

/* Writes the bytes to a file, always the same one; returns its descriptor, positioned at the
 * start. */
int fuzz_file(const uint8_t *data, size_t size);
/* The name of that file, which is that of a log; and its directory, in $TMPDIR, which contains
 * nothing else and is removed at the end. */
const char *fuzz_file_name(void);
const char *fuzz_folder(void);

/* An endless sequence of numbers that depends only on the bytes. */
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
void fuzz_archive(const struct fuzz_target *target, const uint8_t *data, size_t size);
void fuzz_seal_archive(uint8_t *data, size_t size);
void fuzz_list(const struct fuzz_target *target, const uint8_t *data, size_t size);
void fuzz_listfile(const struct fuzz_target *target, const uint8_t *data, size_t size);
void fuzz_log(const struct fuzz_target *target, const uint8_t *data, size_t size);
void fuzz_seal_log(uint8_t *data, size_t size);
void fuzz_npy(const struct fuzz_target *target, const uint8_t *data, size_t size);
void fuzz_network(const struct fuzz_target *target, const uint8_t *data, size_t size);
void fuzz_seal_network(uint8_t *data, size_t size);
/* fuzz_hdf5.c */
void fuzz_result(const struct fuzz_target *target, const uint8_t *data, size_t size);
void fuzz_matrix(const struct fuzz_target *target, const uint8_t *data, size_t size);
size_t fuzz_mutate_hdf5(uint8_t *data, size_t size, unsigned seed,
                        size_t (*change)(uint8_t *data, size_t size, size_t most));

#endif

/* fuzz.h: the parts of the program that read untrusted bytes, each as a target that accepts any
 * bytes.
 *
 *   fuzz_libfuzzer.c   libFuzzer generates the bytes (VARIANT=fuzz, clang)
 *   fuzz_replay.c      runs the bytes of files, with any compiler
 *
 * A target must return: crashes, sanitizer findings, hangs and violated promises (fuzz_check) end
 * the process. The behaviour of a target depends only on the bytes. */
#ifndef CLPIPE_FUZZ_H
#define CLPIPE_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fuzz_target {
    char name[16];
    void (*run)(const struct fuzz_target *target, const uint8_t *data, size_t size);
    /* Corrects the checksums in the bytes, because a reader would stop at the first wrong one. NULL
     * if the format has none. */
    void (*seal)(uint8_t *data, size_t size);
    /* Mutates only the parts that clpipe itself reads, by calling `change`, which returns the new
     * size of its argument, at most `most`. NULL: all bytes may change. */
    size_t (*mutate)(uint8_t *data, size_t size, unsigned seed,
                     size_t (*change)(uint8_t *data, size_t size, size_t most));
};

/* Target number i: "decode" (content of any format), the formats that this build decodes, and the
 * readers. NULL after the last. */
const struct fuzz_target *fuzz_target_at(unsigned i);
/* Returns NULL if the name is unknown. */
const struct fuzz_target *fuzz_target_find(const char *name);

/* Run all checks every time. Under libFuzzer the most expensive ones run one time in four. */
extern bool fuzz_thorough;

/* Returns the target named by "--target=NAME"; without this argument, lists the targets and
 * exits. */
const struct fuzz_target *fuzz_target_from(int argc, char **argv);

/* Writes the bytes to a file, always the same one, and returns its descriptor, positioned at the
 * start. */
int fuzz_file(const uint8_t *data, size_t size);
/* The name of that file, which has the form of a log's name; and its directory in $TMPDIR, which
 * contains nothing else and is removed at exit. */
const char *fuzz_file_name(void);
const char *fuzz_folder(void);

/* An endless sequence of numbers determined by the bytes. */
struct fuzz_choice {
    uint64_t state;
};
struct fuzz_choice fuzz_choice(const uint8_t *data, size_t size);
/* Returns a number from 0 to below - 1. */
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

/* fuzz_libfuzzer.c: entry points for libFuzzer: fuzz --target=NAME [libFuzzer's options]
 * [CORPUS]. */
#include "fuzz.h"

#include <hdf5.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

static struct fuzz_target target;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    target = *fuzz_target_from(*argc, *argv);
    H5dont_atexit();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    target.run(&target, data, size);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    if (target.mutate)
        return target.mutate(data, size, seed, LLVMFuzzerMutate);
    size = LLVMFuzzerMutate(data, size, most);
    /* Some inputs keep wrong checksums, which must be tested, too. */
    if (target.seal && seed % 16 != 0)
        target.seal(data, size);
    return size;
}

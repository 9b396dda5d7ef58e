/* fuzz_libfuzzer.c: libFuzzer's side of the targets: fuzz --target=NAME [its options] [CORPUS]. */
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
    /* Wrong checksums must occur, too, now and then. */
    if (target.seal && seed % 16 != 0)
        target.seal(data, size);
    return size;
}

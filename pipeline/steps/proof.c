/* proof.c: whether kernels are known to be right, and finding out. */
#include "steps/proof.h"

enum status proof_check(const struct proof *proof, struct ocl_context *context,
                        const char *options, struct error *err)
{
    const struct ocl_device *device = ocl_context_device(context);
    char key[PROOF_PROGRAMS][OCL_KEY];
    uint64_t compared, wrong;
    unsigned count = 0, proven = 0;
    for (; count < PROOF_PROGRAMS && proof->program[count]; count++) {
        if (ocl_program_key(key[count], device, proof->program[count], NULL, options, err))
            return STATUS_FAILED;
        proven += ocl_program_is_proven(key[count]);
    }
    if (proven == count)
        return STATUS_OK;
    const enum status status = proof->self_test(&compared, &wrong, context, err);
    if (status != STATUS_OK)
        return status;
    if (wrong > 0)
        return error_set(err, STATUS_FAILED, "%s wrong on %s (%llu of %llu bytes)%s", proof->fault,
                         device->name, (unsigned long long)wrong, (unsigned long long)compared,
                         proof->advice);
    for (unsigned i = 0; i < count; i++)
        ocl_program_set_proven(key[i]);
    return STATUS_OK;
}

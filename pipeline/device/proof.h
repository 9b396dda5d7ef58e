/* proof.h: kernels are used only after a comparison with the C reference, once per device, driver
 * and program: the cache records success. */
#ifndef CLPIPE_DEVICE_PROOF_H
#define CLPIPE_DEVICE_PROOF_H

#include "device/step.h"

/* Runs the self-test of the node's step, and adds to the counts of bytes. */
enum status proof_test(uint64_t *compared, uint64_t *wrong, struct step_node node,
                       struct ocl_context *context, struct error *err);

/* Runs it unless all programs, built with `options`, are recorded as proven. programs: ends with
 * NULL. */
enum status proof_check(struct step_node node, const char *const *programs, const char *options,
                        struct ocl_context *context, struct error *err);

/* A part to run through a step. */
struct proof_part {
    struct part_shape in, out; /* out and out_offset: set by proof_run */
    uint32_t in_offset, out_offset;
    uint32_t values; /* for steps that produce values: index of the first word of the part's row */
    bool given_up;
    bool refused; /* set by proof_run if the step may refuse */
};

/* Runs parts through one step as staging does. `input` and `output` have `bytes` bytes; output
 * bytes that the step does not write keep their values. For steps that produce values, `output`
 * receives the words. */
enum status proof_run(uint8_t *output, struct proof_part *parts, uint32_t count,
                      const struct step_node *node, struct ocl_context *context,
                      const uint8_t *input, uint64_t bytes, struct error *err);

#define PROOF_PARTS_MAX 48u

/* A self-test: parts one after another, the step's output for them, and the reference's. */
struct proof {
    struct step_node node;
    struct ocl_context *context;
    uint64_t compared, wrong; /* bytes of all parts so far */
    struct proof_part part[PROOF_PARTS_MAX];
    uint32_t count, used, alignment; /* bytes used of `in`; of the parts */
    size_t bytes;                    /* of each: */
    uint8_t *in, *got, *again, *wanted;
};

/* Allocates zeros, aligned to 128 bytes, instead of the previous parts. */
enum status proof_open(struct proof *proof, size_t bytes, uint32_t alignment, struct error *err);
/* The same, not aligned, with random bytes and runs of white and black: the largest and the smallest
 * sums. */
enum status proof_open_random(struct proof *proof, size_t bytes, struct error *err);

/* Adds an upright picture with its bytes in `in`. */
struct proof_part *proof_add_rgb(struct proof *proof, uint32_t width, uint32_t height);
/* Adds the part after the last one, whose shape is set. */
struct proof_part *proof_add(struct proof *proof);

/* Runs all parts twice, into `got` and `again`, whose bytes differ beforehand. */
enum status proof_parts(struct proof *proof, struct error *err);
/* Counts the bytes of a part's output that differ from `wanted`, which includes those that no kernel wrote. */
void proof_compare(struct proof *proof, const struct proof_part *part, const uint8_t *wanted);
/* For proof_words: the step overwrites its words, so they start with a value that no picture
 * produces, also in `wanted`. */
void proof_poison_words(struct proof *proof);
/* Runs all parts through a step that produces values, `words` for each, and compares them. As in
 * slots, words start as zeros, unless the caller has set others in `got`. */
enum status proof_words(struct proof *proof, uint32_t words, struct error *err);

#endif

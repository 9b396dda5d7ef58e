/* prove.c: builds and proves the kernels of a run, and replaces those that fail.
 *
 * The proof runs the program that will be used: its features, work-group size and copies. It takes
 * milliseconds and no compilation; proving every variant for every kind of feature (clpipe
 * self-test) takes half a minute to compile. Only successes are cached: a wrong result may be a
 * transient fault, so the next run tries the kernel again and reports a failure again. */
#include "device/prove.h"

#include "base/log.h"
#include "device/selftest.h"

/* With so many counters, clearing and comparing them dominates, so fewer pictures are used. */
#define COUNTERS_MANY (1u << 16)

/* Builds one pass in its current variant and proves it. */
static enum status prepare_pass(struct histogram *histogram, unsigned pass, struct error *err)
{
    char key[OCL_KEY];
    uint64_t compared = 0, wrong = 0;
    enum status status = histogram_build_pass(histogram, pass, err);
    if (status == STATUS_OK)
        status = histogram_pass_key(key, histogram, pass, err);
    if (status != STATUS_OK || ocl_program_is_proven(key))
        return status;
    const bool brief = histogram_features(histogram)->counters > COUNTERS_MANY;
    status = histogram_check_pass(&compared, &wrong, histogram, pass, brief, err);
    if (status != STATUS_OK)
        return status;
    if (wrong > 0) {
        error_set(err, STATUS_FAILED, "kernel %s gives wrong counts on %s (%llu of %llu counters)",
                  histogram_pass(histogram, pass).kernel,
                  ocl_context_device(histogram_context(histogram))->name, (unsigned long long)wrong,
                  (unsigned long long)compared);
        return error_remedy(err, REMEDY_OTHER_DEVICE);
    }
    ocl_program_set_proven(key);
    return STATUS_OK;
}

enum status histogram_prepare(struct histogram *histogram, struct error *err)
{
    for (unsigned p = 0; p < histogram_passes(histogram); p++) {
        const struct histogram_pass planned = histogram_pass(histogram, p);
        const struct feature *first = &histogram_features(histogram)->feature[planned.feature[0]];
        /* The last two are slow everywhere but need no optional device feature. */
        const enum histogram_variant order[] = {
            histogram_variant_usual(first, ocl_context_device(histogram_context(histogram))),
            HISTOGRAM_REPLICATED, HISTOGRAM_LOCAL, HISTOGRAM_PRIVATE, HISTOGRAM_GLOBAL};
        enum histogram_variant variant = planned.variant;
        enum status status = prepare_pass(histogram, p, err);
        for (unsigned i = 0; i < sizeof order / sizeof *order && status == STATUS_FAILED &&
                             histogram_wanted(histogram) == HISTOGRAM_AUTO;
             i++) {
            if (order[i] == planned.variant || (i > 0 && order[i] == order[0]) ||
                !histogram_replace(histogram, p, order[i]))
                continue;
            log_message(LOG_NOTICE, "notice: histogram variant '%s' is used instead of '%s': %s",
                        histogram_variant_name(order[i]), histogram_variant_name(variant),
                        err->sentence);
            *err = (struct error)ERROR_INIT;
            variant = order[i];
            status = prepare_pass(histogram, p, err);
        }
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

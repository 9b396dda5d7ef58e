/* tuner.h: finds the fastest way to count a feature on a device, by trying.
 *
 * A choice is a variant and its shape. Each is timed on constant, natural and random pixels, as one
 * large picture and as many small ones, and its counts are compared with plain C. What counts is
 * the geometric mean of the six rates.
 */
#ifndef CLPIPE_HISTOGRAM_TUNER_H
#define CLPIPE_HISTOGRAM_TUNER_H

#include "base/stop.h"
#include "histogram/bench.h"
#include "histogram/tuning.h"

enum tuner_outcome {
    TUNER_MEASURED,
    TUNER_SLOW,     /* given up: somewhere several times as slow as the best */
    TUNER_UNUSABLE, /* the device does not build or run it */
    TUNER_WRONG,    /* it counts wrong */
};

struct tuner_trial {
    const char *spec;
    struct histogram_choice choice;
    enum tuner_outcome outcome;
    double rate;        /* bytes a second; TUNER_MEASURED only */
    const char *reason; /* TUNER_UNUSABLE only */
};

struct tuner {
    struct bench *bench;
    const struct ocl_device *device; /* that of the bench */
    struct stop *stop;
    void (*tried)(void *context, const struct tuner_trial *trial); /* after each trial */
    void *context;
};

/* Tries variants and shapes for `spec` and fills the tuning's entry of its class: the fastest,
 * where it stays clearly ahead of the usual choice when both are timed in turn, else the usual one.
 * STATUS_INTERRUPTED: stopped. STATUS_FAILED: nothing counts it right. */
enum status tuner_run(struct tuning *tuning, const struct tuner *tuner, const char *spec,
                      struct error *err);

#endif

/* tuner.h: finds the fastest variant and shape for a feature on a device by measuring.
 *
 * Each is timed on constant, natural and random pixels, as one large picture and as many small ones,
 * and its counts are compared with plain C. The geometric mean of the six rates decides.
 */
#ifndef CLPIPE_HISTOGRAM_TUNER_H
#define CLPIPE_HISTOGRAM_TUNER_H

#include "base/stop.h"
#include "histogram/bench.h"
#include "histogram/tuning.h"

enum tuner_outcome {
    TUNER_MEASURED,
    TUNER_SLOW,     /* stopped early: several times slower than the best on some pixels */
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

/* The second largest of the ratios of three duels: other programs slow single ones down. */
#define TUNER_DUELS 3
double tuner_middle(const double ratio[TUNER_DUELS]);

/* Tries variants and shapes for `spec` and fills the tuning's entry of its class: the fastest one if
 * it is clearly faster than the default when both are timed alternately, else the default.
 * STATUS_INTERRUPTED: stopped. STATUS_FAILED: no variant counts correctly. */
enum status tuner_run(struct tuning *tuning, const struct tuner *tuner, const char *spec,
                      struct error *err);

#endif

/* tuner.h: finds the fastest variant and shape for a feature on a device by measuring.
 *
 * Each candidate is timed on constant, natural and random pixels, as one large picture and as many
 * small ones, and its counts are compared with plain C. Candidates are ranked by the geometric mean
 * of the six rates. */
#ifndef CLPIPE_DEVICE_TUNER_H
#define CLPIPE_DEVICE_TUNER_H

#include "base/stop.h"
#include "device/bench.h"
#include "device/tuning.h"

enum tuner_outcome {
    TUNER_MEASURED,
    TUNER_SLOW,     /* stopped: several times slower than the best on some pixels */
    TUNER_UNUSABLE, /* does not build or run on the device */
    TUNER_WRONG,    /* miscounts */
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
    const struct ocl_device *device; /* the bench's device */
    struct stop *stop;
    void (*tried)(void *context, const struct tuner_trial *trial); /* after each trial */
    void *context;
};

/* Number of timed comparisons with the default. */
#define TUNER_DUELS 3
/* The second largest ratio, which counts, since other programs may slow down single comparisons. */
double tuner_middle(const double ratio[TUNER_DUELS]);

/* Tries variants and shapes for `spec` and fills the tuning's entry of its class: the fastest one if
 * it is clearly faster than the default when both are timed alternately, else the default.
 * STATUS_INTERRUPTED: stopped. STATUS_FAILED: no variant counts correctly. */
enum status tuner_run(struct tuning *tuning, const struct tuner *tuner, const char *spec,
                      struct error *err);

#endif

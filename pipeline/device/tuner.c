/* tuner.c: times every variant in its default shape, then varies the parameters of the best one,
 * one at a time, as long as it gets faster, and finally compares the winner with the default. An
 * exhaustive search would find better shapes where parameters interact, but costs a hundred builds
 * per feature. */
#include "device/tuner.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A trial this many times slower than the best one on the same pixels is stopped. */
#define SLOW 3.0
/* The gain at which a neighbour becomes the new best, and at which the winner replaces the default:
 * medians of the same kernel differ by a percent or two. */
#define STEP_GAIN   1.01
#define CHOICE_GAIN 1.03

static const struct {
    enum bench_shape shape;
    enum bench_fill fill;
} cases[] = {{BENCH_LARGE, BENCH_RANDOM},   {BENCH_224X224, BENCH_RANDOM},
             {BENCH_LARGE, BENCH_NATURAL},  {BENCH_224X224, BENCH_NATURAL},
             {BENCH_LARGE, BENCH_CONSTANT}, {BENCH_224X224, BENCH_CONSTANT}};
#define CASES (sizeof cases / sizeof *cases)

/* The best choice so far. */
struct best {
    struct histogram_choice choice;
    double rate[CASES];
    double mean; /* 0: none yet */
};

/* Times one case of a trial: sets *rate, or an outcome that ends the trial. Not STATUS_OK:
 * stopped. */
static enum status time_case(double *rate, struct tuner_trial *trial, const struct tuner *tuner,
                             size_t c, struct error *reason, struct error *err)
{
    struct bench_result result;
    if (stop_requested(tuner->stop) != STOP_NONE)
        return error_set(err, STATUS_INTERRUPTED, "interrupted");
    *reason = (struct error)ERROR_INIT;
    enum status status = bench_fill(tuner->bench, cases[c].shape, cases[c].fill, reason);
    if (status == STATUS_OK)
        status = bench_histogram(&result, tuner->bench, trial->choice.variant, &trial->choice.shape,
                                 trial->spec, reason);
    trial->reason = reason->sentence;
    if (status != STATUS_OK || result.seconds <= 0)
        trial->outcome = TUNER_UNUSABLE;
    else if (result.wrong > 0)
        trial->outcome = TUNER_WRONG;
    else
        *rate = (double)result.bytes / result.seconds;
    return STATUS_OK;
}

/* Tries a choice, which becomes the best one if it is faster by the factor `gain`. */
static enum status try_choice(struct best *best, const struct tuner *tuner, const char *spec,
                              enum histogram_variant variant, struct histogram_shape shape,
                              double gain, struct error *err)
{
    struct tuner_trial trial = {.spec = spec, .choice = {variant, shape, true}};
    struct error reason = ERROR_INIT;
    double rate[CASES];
    for (size_t c = 0; c < CASES && trial.outcome == TUNER_MEASURED; c++) {
        enum status status = time_case(&rate[c], &trial, tuner, c, &reason, err);
        if (status != STATUS_OK)
            return status;
        if (trial.outcome == TUNER_MEASURED && best->mean > 0 && rate[c] * SLOW < best->rate[c])
            trial.outcome = TUNER_SLOW;
    }
    if (trial.outcome == TUNER_MEASURED) {
        double sum = 0;
        for (size_t c = 0; c < CASES; c++)
            sum += log(rate[c]);
        trial.rate = exp(sum / (double)CASES);
    }
    if (trial.rate > best->mean * gain) {
        best->choice = trial.choice;
        memcpy(best->rate, rate, sizeof rate);
        best->mean = trial.rate;
    }
    tuner->tried(tuner->context, &trial);
    return STATUS_OK;
}

/* --- variants -------------------------------------------------------------------------------- */

/* The default variant first, so that slow ones can be stopped early. */
static enum status try_variants(struct best *best, const struct tuner *tuner,
                                const struct feature *feature, const char *spec, struct error *err)
{
    const enum histogram_variant usual = histogram_variant_usual(feature, tuner->device);
    enum status status = STATUS_OK;
    for (int v = HISTOGRAM_AUTO; v < HISTOGRAM_VARIANTS && status == STATUS_OK; v++) {
        const enum histogram_variant variant =
            v == HISTOGRAM_AUTO ? usual : (enum histogram_variant)v;
        char reason[128];
        if ((v == (int)usual) || !histogram_variant_suits(variant, tuner->device) ||
            !histogram_variant_takes(reason, sizeof reason, variant, feature, tuner->device))
            continue;
        status = try_choice(best, tuner, spec, variant,
                            histogram_variant_shape(variant, feature->cell_bins,
                                                    bench_bytes(tuner->bench), tuner->device),
                            1, err);
    }
    if (status == STATUS_OK && best->mean <= 0)
        return error_set(err, STATUS_FAILED,
                         "no kernel counts %s correctly on %s: do not use this device", spec,
                         tuner->device->name);
    return status;
}

/* --- shapes ---------------------------------------------------------------------------------- */

#define PARAMETERS 3

/* Doubles or halves a parameter as long as that is faster. */
static enum status follow(bool *better, struct best *best, const struct tuner *tuner,
                          const struct feature *feature, const char *spec, int parameter, bool half,
                          struct error *err)
{
    *better = false;
    for (;;) {
        const enum histogram_variant variant = best->choice.variant;
        struct histogram_shape shape = best->choice.shape;
        uint32_t *const value[] = {&shape.tile_pixels, &shape.group, &shape.copies};
        *value[parameter] = half ? *value[parameter] / 2 : *value[parameter] * 2;
        shape.tile_pixels &= ~127u; /* whole cache lines */
        const double before = best->mean;
        if (!histogram_shape_fits(&shape, variant, feature->cell_bins, tuner->device))
            return STATUS_OK;
        enum status status = try_choice(best, tuner, spec, variant, shape, STEP_GAIN, err);
        if (status != STATUS_OK || best->mean <= before)
            return status;
        *better = true;
    }
}

static enum status try_shapes(struct best *best, const struct tuner *tuner,
                              const struct feature *feature, const char *spec, struct error *err)
{
    enum status status = STATUS_OK;
    for (int parameter = 0; parameter < PARAMETERS && status == STATUS_OK; parameter++) {
        bool better = false;
        for (int half = 0; half < 2 && !better && status == STATUS_OK; half++)
            status = follow(&better, best, tuner, feature, spec, parameter, half, err);
    }
    return status;
}

/* --- the final comparison -------------------------------------------------------------------- */

double tuner_middle(const double ratio[TUNER_DUELS])
{
    const double a = fmin(ratio[0], ratio[1]), b = fmax(ratio[0], ratio[1]);
    return fmax(a, fmin(b, ratio[2]));
}

/* *gain: speed of the best choice relative to the default, timed alternately; 0 if the default
 * cannot be used. */
static enum status compare_with_usual(double *gain, const struct best *best,
                                      const struct histogram_choice *usual,
                                      const struct tuner *tuner, const char *spec,
                                      struct error *err)
{
    double sum = 0;
    *gain = 0;
    for (size_t c = 0; c < CASES; c++) {
        double ratio[TUNER_DUELS];
        for (int duel = 0; duel < TUNER_DUELS; duel++) {
            struct tuner_trial one = {.spec = spec, .choice = *usual};
            struct tuner_trial other = {.spec = spec, .choice = best->choice};
            struct error reason;
            double usual_rate, best_rate;
            enum status status = time_case(&usual_rate, &one, tuner, c, &reason, err);
            if (status == STATUS_OK)
                status = time_case(&best_rate, &other, tuner, c, &reason, err);
            if (status != STATUS_OK)
                return status;
            if (other.outcome != TUNER_MEASURED)
                return error_set(err, STATUS_FAILED, "the fastest kernel for %s on %s failed: %s",
                                 spec, tuner->device->name, reason.sentence);
            if (one.outcome != TUNER_MEASURED)
                return STATUS_OK;
            ratio[duel] = best_rate / usual_rate;
        }
        sum += log(tuner_middle(ratio));
    }
    *gain = exp(sum / (double)CASES);
    return STATUS_OK;
}

static bool same_choice(const struct histogram_choice *a, const struct histogram_choice *b)
{
    return a->variant == b->variant && a->shape.group == b->shape.group &&
           a->shape.copies == b->shape.copies && a->shape.tile_pixels == b->shape.tile_pixels;
}

enum status tuner_run(struct tuning *tuning, const struct tuner *tuner, const char *spec,
                      struct error *err)
{
    struct feature_set features = {0};
    struct best best = {.mean = 0};
    double gain = 1;
    enum status status = feature_set_add(&features, spec, NORMALIZE_NONE, err);
    if (status != STATUS_OK)
        return status;
    const struct feature *feature = &features.feature[0];
    status = try_variants(&best, tuner, feature, spec, err);
    if (status != STATUS_OK)
        return status;
    status = try_shapes(&best, tuner, feature, spec, err);
    if (status != STATUS_OK)
        return status;
    struct histogram_choice usual = {.variant = histogram_variant_usual(feature, tuner->device)};
    usual.shape = histogram_variant_shape(usual.variant, feature->cell_bins,
                                          bench_bytes(tuner->bench), tuner->device);
    if (!same_choice(&best.choice, &usual)) {
        status = compare_with_usual(&gain, &best, &usual, tuner, spec, err);
        if (status != STATUS_OK)
            return status;
        if (gain > 0 && gain < CHOICE_GAIN) {
            best.choice = usual;
            gain = 1;
        }
    }
    const unsigned class = tuning_class_of(feature);
    if (class == TUNING_CLASSES)
        return STATUS_OK;
    tuning->entry[class].variant = best.choice.variant;
    tuning->entry[class].shape = best.choice.shape;
    tuning->entry[class].gain = (uint32_t)lround(gain * 1000);
    return STATUS_OK;
}

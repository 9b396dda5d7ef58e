/* lloyd.c: Lloyd's algorithm: every row is assigned, then the centroids move to the means.
 *
 * The moves are kept for the next assignment, which need not search rows that cannot change their
 * label. */
#include "kmeans/fit.h"
#include "kmeans/method.h"
#include <stdlib.h>

struct lloyd {
    struct fit *fit;
    double tolerance;
};

static enum status lloyd_open(void **out, struct fit *fit, uint32_t first, struct error *err)
{
    (void)first;
    *out = NULL;
    struct lloyd *lloyd = malloc(sizeof *lloyd);
    if (!lloyd)
        return error_memory(err, sizeof *lloyd, "the iterations");
    *lloyd = (struct lloyd){fit, fit_tolerance(fit)};
    if (fit_forget_labels(fit, err) != STATUS_OK) {
        free(lloyd);
        return err->status;
    }
    *out = lloyd;
    return STATUS_OK;
}

static void lloyd_close(void **method)
{
    free(*method);
    *method = NULL;
}

static enum status lloyd_iterate(struct method_step *step, void *method, uint32_t iteration,
                                 struct error *err)
{
    (void)iteration;
    const struct lloyd *lloyd = method;
    double shift = 0;
    bool relocated = false;
    if (fit_assign(lloyd->fit, true, &step->moved, err) != STATUS_OK ||
        fit_update(lloyd->fit, &step->inertia, &shift, &relocated, err) != STATUS_OK)
        return err->status;
    step->pruned = lloyd->fit->pruned_now;
    /* Equal labels give equal sums: nothing can change any more, and the shift is 0. So the state
     * to resume from need not say whether rows moved. */
    step->labels_current = step->moved == 0 && !relocated;
    step->converged = step->labels_current || (!relocated && shift <= lloyd->tolerance);
    return STATUS_OK;
}

const struct kmeans_method lloyd_method = {
    .name = "lloyd",
    .labels_rows = true,
    .open = lloyd_open,
    .iterate = lloyd_iterate,
    .close = lloyd_close,
};

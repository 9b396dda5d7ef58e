/* lloyd.c: Lloyd's algorithm: every row is assigned, then the centroids move to the means.
 *
 * The moves are kept for the next assignment, which need not search rows that cannot change their
 * label. */
#include "kmeans/fit.h"
#include "kmeans/method.h"

static enum status lloyd_open(void **out, struct fit *fit, uint32_t first, struct error *err)
{
    (void)first;
    const enum status status = fit_forget_labels(fit, err);
    *out = status == STATUS_OK ? fit : NULL;
    return status;
}

static void lloyd_close(void **method)
{
    *method = NULL;
}

static enum status lloyd_iterate(struct method_step *step, void *method, uint32_t iteration,
                                 struct error *err)
{
    (void)iteration;
    struct fit *fit = method;
    double shift = 0;
    bool relocated = false;
    if (fit_assign(fit, true, &step->moved, err) != STATUS_OK ||
        fit_update(fit, &step->inertia, &shift, &relocated, err) != STATUS_OK)
        return err->status;
    step->pruned = fit->pruned_now;
    /* Equal labels give equal sums: nothing can change any more, and the shift is 0. So the state
     * to resume from need not say whether rows moved. */
    step->labels_current = step->moved == 0 && !relocated;
    step->converged = step->labels_current || (!relocated && shift <= fit_tolerance(fit));
    return STATUS_OK;
}

const struct kmeans_method lloyd_method = {
    .name = "lloyd",
    .labels_rows = true,
    .open = lloyd_open,
    .iterate = lloyd_iterate,
    .close = lloyd_close,
};

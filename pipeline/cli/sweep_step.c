/* sweep_step.c: from a range of k to what the file keeps of it. */
#include "cli/sweep_step.h"
#include "cli/progress.h"
#include <stdlib.h>
#include <string.h>

bool range_is_sweep(const struct number_range *range)
{
    return range->last > range->first;
}

char *range_text(char *buffer, size_t size, const struct number_range *range)
{
    int used = snprintf(buffer, size, "%llu:%llu", (unsigned long long)range->first,
                        (unsigned long long)range->last);
    if (range->step > 1)
        snprintf(buffer + used, size - (size_t)used, ":%llu", (unsigned long long)range->step);
    return buffer;
}

/* As the file has it. */
static enum status keep(struct result_sweep *out, const struct cluster_sweep *sweep,
                        const struct folders *folders, struct error *err)
{
    *out = (struct result_sweep){
        .count = sweep->count, .sample = sweep->sample, .has_folders = folders->of_row != NULL};
    snprintf(out->measure, sizeof out->measure, "%s",
             sweep->simplified ? "simplified_silhouette" : "silhouette");
    snprintf(out->reason, sizeof out->reason, "%s", sweep->reason);
    out->values = calloc(sweep->count, sizeof *out->values);
    if (!out->values)
        return error_memory(err, sweep->count * sizeof *out->values, "the values of k");
    for (uint32_t i = 0; i < sweep->count; i++) {
        const struct cluster_sweep_value *value = &sweep->values[i];
        out->values[i] = (struct result_sweep_value){
            .k = value->k,
            .iterations = value->iterations,
            .converged = value->converged,
            .inertia = value->inertia,
            .silhouette = value->measures.silhouette,
            .simplified_silhouette = value->measures.simplified_silhouette,
            .davies_bouldin = value->measures.davies_bouldin,
            .calinski_harabasz = value->measures.calinski_harabasz,
            .agreement = {folders->count, value->agreement.purity, value->agreement.nmi,
                          value->agreement.ari},
        };
    }
    return STATUS_OK;
}

enum status sweep_run(struct cluster_outcome *best, struct result_sweep *sweep,
                      const struct cluster_devices *devices, const struct matrix_source *source,
                      const struct cluster_config *config, const struct number_range *range,
                      const struct folders *folders, struct error *err)
{
    const struct cluster_sweep_config values = {.first = (uint32_t)range->first,
                                                .last = (uint32_t)range->last,
                                                .step = (uint32_t)range->step,
                                                .classes = folders->of_row,
                                                .class_count = folders->count,
                                                .progress = progress_sweep};
    struct cluster_sweep found;
    enum status status = cluster_sweep_run(best, &found, devices, source, config, &values, err);
    if (status == STATUS_OK)
        status = keep(sweep, &found, folders, err);
    cluster_sweep_clear(&found);
    return status;
}

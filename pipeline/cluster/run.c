/* run.c: whether a request makes sense, and going on without a device that failed. */
#include "cluster/run.h"
#include "base/log.h"
#include "cluster/method.h"
#include <stdlib.h>

enum status cluster_check(const struct matrix_source *source, const struct cluster_config *config,
                          uint32_t k, struct error *err)
{
    if (k < 1)
        return error_set(err, STATUS_USAGE, "k must be at least 1");
    if (k > INT32_MAX)
        return error_set(err, STATUS_USAGE, "k can be at most %d", INT32_MAX);
    if (source->rows == 0)
        return error_set(err, STATUS_FAILED, "there are no rows to cluster");
    if (source->dimension == 0)
        return error_set(err, STATUS_FAILED, "the rows to cluster have no columns");
    const struct kmeans_method *method = method_of(config);
    if (!method)
        return error_set(err, STATUS_USAGE, "k-means has no method named \"%s\"", config->method);
    return method->check ? method->check(config, err) : STATUS_OK;
}

/* --- devices --------------------------------------------------------------------------------- */

/* `devices` without the one that failed. */
static void leave_out(struct shard_devices *devices, struct ocl_context **contexts,
                      const struct ocl_context *failed, struct error *err)
{
    char line[1200];
    uint32_t left = 0;
    for (uint32_t i = 0; i < devices->count; i++)
        if (devices->contexts[i] != failed)
            contexts[left++] = devices->contexts[i];
    log_message(LOG_NOTICE, "notice: %s; the other devices go on",
                error_line(line, sizeof line, err));
    *err = (struct error)ERROR_INIT;
    devices->contexts = contexts;
    devices->count = left;
}

enum status
cluster_on_devices(const struct shard_devices *devices,
                   enum status (*once)(void *context, const struct shard_devices *devices,
                                       const struct ocl_context **failed, struct error *err),
                   void *context, struct error *err)
{
    struct shard_devices left = *devices;
    struct ocl_context **contexts = malloc(devices->count * sizeof *contexts);
    if (!contexts)
        return error_memory(err, devices->count * sizeof *contexts, "devices");
    const struct ocl_context *failed = NULL;
    enum status status = once(context, &left, &failed, err);
    while (status == STATUS_FAILED && failed && left.count > 1) {
        leave_out(&left, contexts, failed, err);
        failed = NULL;
        status = once(context, &left, &failed, err);
    }
    free(contexts);
    return status;
}

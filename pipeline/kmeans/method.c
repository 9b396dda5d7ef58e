/* method.c: looks up a k-means method. */
#include "kmeans/method.h"
#include <string.h>

const struct kmeans_method *method_of(const struct cluster_config *config)
{
    const struct kmeans_method *const *method = kmeans_methods;
    while (*method && config->method && strcmp((*method)->name, config->method) != 0)
        method++;
    return *method;
}

uint64_t method_samples(const struct cluster_config *config)
{
    const struct kmeans_method *method = method_of(config);
    return method->samples ? method->samples(config) : 0;
}

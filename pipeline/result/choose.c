/* choose.c: finds a feature or clustering by name; lists the existing ones in errors. */
#include "result/choose.h"
#include "base/path.h"
#include "base/text.h"

enum status choose_feature(const struct result_feature **out, const struct result *result,
                           const char *name, struct error *err)
{
    char names[512] = "";
    const unsigned count = result->feature_count;
    const char *shown = PATH_TEXT(result->path);
    *out = name ? result_feature_find(result, name) : NULL;
    unsigned compared = 0;
    for (unsigned i = 0; i < count && !name; i++)
        if (!result_feature_describes(&result->features[i]) && compared++ == 0)
            *out = &result->features[i];
    if (!name && count == 1)
        *out = &result->features[0];
    if (*out && compared <= 1)
        return STATUS_OK;
    *out = NULL;
    for (unsigned i = 0; i < count; i++)
        text_add_name(names, sizeof names, result->features[i].name);
    if (count == 0)
        return error_set(err, STATUS_FAILED, "%s holds no features", shown);
    if (name)
        return error_set(err, STATUS_USAGE, "%s holds no feature '%s', only %s", shown, name,
                         names);
    error_set(err, STATUS_USAGE, "%s holds several features: %s", shown, names);
    error_remedy(err, REMEDY_CHOOSE_FEATURE);
    return STATUS_USAGE;
}

enum status choose_clusters(const struct result_clusters **out, const struct result *result,
                            const char *name, struct error *err)
{
    char names[512] = "";
    const unsigned count = result->clusters_count;
    const char *shown = PATH_TEXT(result->path);
    unsigned trees = 0;
    *out = name ? result_clusters_find(result, name) : NULL;
    for (unsigned i = 0; i < count && !name; i++) {
        const struct result_clusters *clusters = &result->clusters[i];
        /* Of several levels, only the finest counts. */
        if (clusters->level > 1 && result_clusters_below(result, clusters))
            continue;
        trees++;
        *out = trees == 1 ? clusters : NULL;
    }
    if (*out)
        return STATUS_OK;
    for (unsigned i = 0; i < count; i++)
        text_add_name(names, sizeof names, result->clusters[i].name);
    if (count == 0) {
        error_set(err, STATUS_FAILED, "%s holds no clusters", shown);
        error_remedy(err, REMEDY_MAKE_CLUSTERS);
        return STATUS_FAILED;
    }
    if (name)
        return error_set(err, STATUS_USAGE, "%s holds no /clusters/%s, only %s", shown, name,
                         names);
    error_set(err, STATUS_USAGE, "%s holds several clusterings: %s", shown, names);
    error_remedy(err, REMEDY_CHOOSE_CLUSTERS);
    return STATUS_USAGE;
}

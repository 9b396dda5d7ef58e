/* preset_join.c: reads the JSON. */
#include "result/preset_join.h"
#include "result/parameters.h"
#include <stdio.h>
#include <string.h>

enum status preset_join_read(struct preset_join *out, const char *json, struct error *err)
{
    struct parameters *parameters = NULL;
    const char *name, *metric, *rows;
    *out = (struct preset_join){0};
    if (parameters_open(&parameters, json, err) != STATUS_OK)
        return STATUS_FAILED;
    metric = parameters_member(parameters, "metric");
    rows = parameters_member(parameters, "rows");
    bool right = metric && strcmp(metric, "euclidean") == 0 && rows && strcmp(rows, "unit") == 0;
    double weight;
    while (right && out->count < JOINED_MOST &&
           parameters_item(parameters, "features", out->count, "name", &name, "weight", &weight)) {
        right = strlen(name) < FEATURE_NAME_MAX && weight > 0 && weight <= 1e6;
        if (right)
            snprintf(out->name[out->count], sizeof out->name[0], "%s", name);
        out->weight[out->count++] = weight;
    }
    out->pca = parameters_number(parameters, "pca", 0);
    out->rank_pca = parameters_number(parameters, "rank_pca", 0);
    parameters_real(parameters, "whiten", &out->whiten);
    parameters_close(&parameters);
    right = right && out->count > 0 && out->whiten >= 0 && out->whiten <= 1;
    return right ? STATUS_OK
                 : error_set(err, STATUS_FAILED, "its preset joins features in an unknown way");
}

const char *preset_join_title(char *text, size_t size, const struct result *result,
                              const char *feature)
{
    const char *json = result && strcmp(feature, RESULT_PRESET) == 0 ? result->preset : NULL;
    struct preset_join join;
    char name[32] = "";
    size_t used = 0;
    if (json)
        parameters_text(name, sizeof name, json, "name");
    snprintf(text, size, "%s%s%s", feature, *name ? " " : "", name);
    /* The preset for few images cannot be requested by name, so the features are listed instead. */
    if (strcmp(name, "few") == 0 && preset_join_read(&join, json, NULL) == STATUS_OK)
        for (unsigned i = 0; i < join.count && used < size; i++)
            used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", join.name[i]);
    return text;
}

/* preset.c: the table of presets. */
#include "features/preset.h"

#include "base/json.h"

#include <string.h>

const struct preset presets[] = {
    {.name = "color", .feature = {{"hsv=hsv:bins=16x4x4", 1}}},
    {.name = NULL},
};

const struct preset *preset_find(const char *name)
{
    for (const struct preset *preset = presets; preset->name; preset++)
        if (strcmp(preset->name, name) == 0)
            return preset;
    return NULL;
}

unsigned preset_count(const struct preset *preset)
{
    unsigned count = 0;
    while (count < PRESET_FEATURES_MAX && preset->feature[count].spec)
        count++;
    return count;
}

char *preset_json(const struct preset *preset)
{
    struct json json;
    json_init(&json, true);
    json_open_object(&json, NULL);
    json_string(&json, "name", preset->name);
    json_open_array(&json, "features");
    for (unsigned i = 0; i < preset_count(preset); i++) {
        char name[FEATURE_NAME_MAX];
        const char *spec = preset->feature[i].spec;
        const size_t length = strcspn(spec, "=");
        memcpy(name, spec, length);
        name[length] = '\0';
        json_open_object(&json, NULL);
        json_string(&json, "name", name);
        json_double(&json, "weight", preset->feature[i].weight);
        json_close_object(&json);
    }
    json_close_array(&json);
    json_string(&json, "metric", "euclidean");
    json_string(&json, "rows", "unit");
    json_uint(&json, "pca", preset->pca);
    json_double(&json, "whiten", preset->whiten);
    json_close_object(&json);
    const char *text = json_finish(&json);
    char *copy = text ? strdup(text) : NULL;
    json_clear(&json);
    return copy;
}

/* preset.c: the table of presets. */
#include "features/preset.h"

#include "base/json.h"

#include <string.h>

/* For too few images to learn from. */
static const struct preset few = {
    .name = "few",
    .feature = {{"oplbp=oplbp:normalize=hellinger", 1},
                {"hsv=hsv:bins=16x4x4,normalize=hellinger", 0.5},
                {"hog=hog:grid=4x4,normalize=hellinger", 0.5}},
    .pca = 48,
    .whiten = 0.5,
};

const struct preset presets[] = {
    {.name = "color", .feature = {{"hsv=hsv:bins=16x4x4,normalize=hellinger", 1}}},
    {.name = "fast",
     .feature = {{"dct=dct:fisher=64,scale=256,store=float16", 1},
                 {"oplbp=oplbp:normalize=hellinger,store=float16", 1.5},
                 {"hog=hog:grid=4x4,normalize=hellinger,store=float16", 1.5}},
     .pca = 48,
     .whiten = 0.5,
     .rank_pca = 48,
     .few = &few},
    {.name = "good",
     .feature = {{"sift=sift:fisher=64,store=float16", 1}, {"dct=dct:fisher=64,store=float16", 1}},
     .pca = 48,
     .whiten = 0.5,
     .few = &few},
    {.name = "best",
     .feature = {{"sift=sift:fisher=64,store=float16", 1},
                 {"patch=patch:fisher=64,store=float16", 1},
                 {"opsift=opsift:fisher=64,store=float16", 1}},
     .pca = 48,
     .whiten = 0.5,
     .few = &few},
    {.name = "semantic",
     .feature = {{"net=net:model=lite0,store=uint8", 1}},
     .pca = 24,
     .rank_pca = 24},
    {.name = NULL},
};

const struct preset *preset_find(const char *name)
{
    for (const struct preset *preset = presets; preset->name; preset++)
        if (strcmp(preset->name, name) == 0)
            return preset;
    return strcmp(few.name, name) == 0 ? &few : NULL;
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
    json_bool(&json, "center", preset->pca > 0);
    if (preset->rank_pca)
        json_uint(&json, "rank_pca", preset->rank_pca);
    json_close_object(&json);
    return json_take(&json);
}

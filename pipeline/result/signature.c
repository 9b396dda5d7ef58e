/* signature.c: signatures as JSON.
 *
 * {"parameters": {...}, "sources": [...], "directories": [...], "features": {NAME: SPEC, ...}, "decode_scale": N,
 *    "preset": "{...}", "shard": "I/N"}
 *
 * Preset and shard may be missing. */
#include "result/signature.h"
#include "base/json.h"
#include "base/text.h"
#include "result/parameters.h"
#include "result/result_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parameters are kept verbatim, so their place must be known. */
#define BEGINNING "{\"parameters\":"

static void json_share(struct json *json, const struct list_share *share)
{
    char text[48];
    if (share->count == 0)
        return;
    snprintf(text, sizeof text, "%llu/%llu", (unsigned long long)share->index,
             (unsigned long long)share->count);
    json_string(json, "shard", text);
}

static void json_texts(struct json *json, const char *key, const char *const *texts, unsigned count)
{
    json_open_array(json, key);
    for (unsigned i = 0; i < count; i++)
        json_string(json, NULL, texts[i]);
    json_close_array(json);
}

char *signature_of_content(const struct content *content, struct error *err)
{
    struct json json;
    json_init(&json, true);
    json_open_object(&json, NULL);
    json_raw(&json, "parameters", content->parameters);
    json_texts(&json, "sources", content->sources, content->source_count);
    if (content->directories)
        json_texts(&json, "directories", content->directories, content->source_count);
    json_open_object(&json, "features");
    for (unsigned i = 0; i < content->features->count; i++)
        json_string(&json, content->features->feature[i].name, content->features->feature[i].spec);
    json_close_object(&json);
    json_uint(&json, "decode_scale", content->decode_scale);
    if (content->preset)
        json_string(&json, "preset", content->preset);
    json_share(&json, &content->share);
    json_close_object(&json);
    const char *text = json_finish(&json);
    char *copy = text ? strdup(text) : NULL;
    if (!copy)
        error_memory(err, json.length, "the parameters");
    json_clear(&json);
    return copy;
}

/* Copies the texts of a list, and a NULL. */
static enum status copy_texts(char ***out, const struct parameters *parameters, const char *key,
                              struct error *err)
{
    unsigned count = 0;
    while (parameters_entry(parameters, key, count, NULL))
        count++;
    *out = calloc(count + 1, sizeof **out);
    for (unsigned i = 0; *out && i < count; i++)
        if (!((*out)[i] = strdup(parameters_entry(parameters, key, i, NULL))))
            return error_memory(err, count * sizeof **out, "the sources");
    return *out ? STATUS_OK : error_memory(err, count * sizeof **out, "the sources");
}

static enum status copy_sources(struct signature_parts *parts, const struct parameters *parameters,
                                struct error *err)
{
    struct content *content = &parts->content;
    unsigned directories = 0;
    if (copy_texts(&parts->sources, parameters, "sources", err) ||
        copy_texts(&parts->directories, parameters, "directories", err))
        return STATUS_FAILED;
    while (parts->sources[content->source_count])
        content->source_count++;
    while (parts->directories[directories])
        directories++;
    content->sources = (const char *const *)parts->sources;
    if (directories == content->source_count)
        content->directories = (const char *const *)parts->directories;
    return STATUS_OK;
}

static enum status add_features(struct feature_set *features, const struct parameters *parameters,
                                struct error *err)
{
    const char *spec, *name = "";
    for (unsigned i = 0; (spec = parameters_entry(parameters, "features", i, &name)); i++) {
        char *named;
        if (asprintf(&named, "%s=%s", name, spec) < 0)
            return error_memory(err, strlen(spec), "a feature");
        enum status status = feature_set_add(features, named, NORMALIZE_L1, err);
        free(named);
        if (status)
            return status;
    }
    return STATUS_OK;
}

enum status signature_parse(struct signature_parts *parts, const char *signature, struct error *err)
{
    *parts = (struct signature_parts){.content = {.decode_scale = 1}};
    enum status status = STATUS_FAILED;
    struct parameters *parameters = NULL;
    size_t length = strncmp(signature, BEGINNING, strlen(BEGINNING)) == 0
                        ? parameters_length(signature + strlen(BEGINNING))
                        : 0;
    if (length == 0 || parameters_open(&parameters, signature, NULL)) {
        error_set(err, STATUS_FAILED, "the log's parameters cannot be read");
        goto out;
    }
    parts->parameters = strndup(signature + strlen(BEGINNING), length);
    if (!parts->parameters) {
        error_memory(err, length, "the parameters");
        goto out;
    }
    if (copy_sources(parts, parameters, err) ||
        (status = add_features(&parts->features, parameters, err)))
        goto out;
    parts->content.decode_scale = parameters_number(parameters, "decode_scale", 1);
    parts->content.parameters = parts->parameters;
    parts->content.features = &parts->features;
    const char *preset = parameters_member(parameters, "preset");
    if (preset && !(parts->content.preset = parts->preset = strdup(preset))) {
        status = error_memory(err, strlen(preset), "the preset");
        goto out;
    }
    const char *shard = parameters_member(parameters, "shard");
    unsigned long long index, count;
    if (shard && sscanf(shard, "%llu/%llu", &index, &count) == 2 && index < count)
        parts->content.share = (struct list_share){.index = index, .count = count};
    if (parts->content.source_count == 0 || parts->features.count == 0 ||
        parts->content.decode_scale == 0)
        status = error_set(err, STATUS_FAILED, "the log's parameters cannot be read");
out:
    parameters_close(&parameters);
    return status;
}

enum status signature_parts_of(struct signature_parts *parts, const struct result *result,
                               struct error *err)
{
    *parts = (struct signature_parts){.parameters = strdup(result->parameters),
                                      .content = {.decode_scale = 1}};
    if (!parts->parameters)
        return error_memory(err, strlen(result->parameters), "the parameters");
    for (unsigned i = 0; i < result->feature_count; i++) {
        const struct result_feature *feature = &result->features[i];
        if (result_feature_imported(feature))
            continue;
        char named[sizeof feature->name + sizeof feature->spec];
        snprintf(named, sizeof named, "%s=%s", feature->name, feature->spec);
        enum status status = feature_set_add(&parts->features, named, NORMALIZE_L1, err);
        const struct feature *made = &parts->features.feature[parts->features.count - 1];
        if (status)
            return status;
        if (made->dimension != feature->dimension ||
            (made->normalize != NORMALIZE_NONE) != feature->is_float ||
            made->store != feature->store) {
            h5_damaged(err, result->path, "/features/%s contradicts itself", feature->name);
            return error_remedy(err, REMEDY_START_OVER);
        }
        parts->content.decode_scale = feature->decode_scale;
    }
    parts->content.preset = result->preset;
    parts->content.share = result->share;
    parts->content.thumbnail_size = result->thumbnail_size;
    parts->content.sources = (const char *const *)result->sources;
    parts->content.source_count = result->source_count;
    parts->content.directories = (const char *const *)result->directories;
    parts->content.parameters = parts->parameters;
    parts->content.features = &parts->features;
    return STATUS_OK;
}

void signature_parts_clear(struct signature_parts *parts)
{
    texts_free(parts->sources);
    texts_free(parts->directories);
    free(parts->parameters);
    free(parts->preset);
    *parts = (struct signature_parts){.content = {.source_count = 0}};
}

/* signature.c: builds and compares signatures. */
#include "file/signature.h"
#include "base/json.h"
#include "base/path.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The value of a member as it is shown: longer ones are cut. */
#define SHOWN 72

static char *take(struct json *json, struct error *err)
{
    const char *text = json_finish(json);
    char *copy = text ? strdup(text) : NULL;
    if (!copy)
        error_memory(err, json->length, "the parameters");
    json_clear(json);
    return copy;
}

static void add_text(struct json *json, const char *text)
{
    size_t length = strlen(text), size = 4 * length + 1;
    char *utf8 = malloc(size);
    if (utf8)
        path_to_utf8(utf8, size, text, length);
    else
        json->failed = true;
    json_string(json, NULL, utf8 ? utf8 : "");
    free(utf8);
}

char *signature_of_config(const struct store_config *config, struct error *err)
{
    struct json json;
    json_init(&json, true);
    json_open_object(&json, NULL);
    json_raw(&json, "parameters", config->parameters);
    json_open_array(&json, "sources");
    for (unsigned i = 0; i < config->source_count; i++)
        add_text(&json, config->sources[i]);
    json_close_array(&json);
    json_open_object(&json, "features");
    for (unsigned i = 0; i < config->features->count; i++)
        json_string(&json, config->features->feature[i].name, config->features->feature[i].spec);
    json_close_object(&json);
    json_uint(&json, "decode_scale", config->decode_scale);
    json_close_object(&json);
    return take(&json, err);
}

char *signature_of_result(const struct result *result, const struct store_config *config,
                          struct error *err)
{
    struct json json;
    uint32_t decode_scale = config->decode_scale;
    json_init(&json, true);
    json_open_object(&json, NULL);
    json_raw(&json, "parameters", result_parameters(result));
    json_open_array(&json, "sources");
    for (unsigned i = 0; i < result_source_count(result); i++)
        json_string(&json, NULL, result_source(result, i));
    json_close_array(&json);
    json_open_object(&json, "features");
    for (unsigned i = 0; i < config->features->count; i++) {
        const struct result_feature *feature =
            result_feature_find(result, config->features->feature[i].name);
        if (feature && feature->dimension == config->features->feature[i].dimension)
            json_string(&json, feature->name, feature->spec);
    }
    for (unsigned i = 0; i < result_feature_count(result); i++) {
        const struct result_feature *feature = result_feature_at(result, i);
        bool wanted = false;
        for (unsigned j = 0; j < config->features->count; j++)
            wanted = wanted || strcmp(config->features->feature[j].name, feature->name) == 0;
        if (!wanted)
            json_string(&json, feature->name, feature->spec);
        decode_scale = feature->decode_scale;
    }
    json_close_object(&json);
    json_uint(&json, "decode_scale", decode_scale);
    json_close_object(&json);
    return take(&json, err);
}

/* One member of a JSON object: where its key and its value lie. */
struct member {
    const char *key, *value;
    size_t key_length, value_length;
};

/* Past a string that begins at `at`; the end of the text if it does not end. */
static const char *skip_string(const char *at)
{
    for (at++; *at && *at != '"'; at++)
        if (*at == '\\' && at[1])
            at++;
    return *at ? at + 1 : at;
}

/* Past a value: up to the comma or bracket that ends it. */
static const char *skip_value(const char *at)
{
    int depth = 0;
    while (*at) {
        if (*at == '"') {
            at = skip_string(at);
            continue;
        }
        if (depth == 0 && (*at == ',' || *at == '}' || *at == ']'))
            break;
        depth += *at == '{' || *at == '[';
        depth -= *at == '}' || *at == ']';
        at++;
    }
    return at;
}

/* The member at *cursor (just after the opening bracket, at first), which moves on. */
static bool next_member(struct member *member, const char **cursor)
{
    const char *at = *cursor;
    if (*at == ',')
        at++;
    if (*at != '"')
        return false;
    const char *end = skip_string(at);
    member->key = at + 1;
    member->key_length = (size_t)(end - at) - 2;
    if (*end != ':')
        return false;
    member->value = end + 1;
    end = skip_value(member->value);
    member->value_length = (size_t)(end - member->value);
    *cursor = end;
    return true;
}

static bool find_member(struct member *found, const char *object, const struct member *like)
{
    const char *cursor = object + (*object == '{');
    while (next_member(found, &cursor))
        if (found->key_length == like->key_length &&
            memcmp(found->key, like->key, like->key_length) == 0)
            return true;
    return false;
}

static void show(char *buffer, const struct member *member)
{
    if (!member)
        snprintf(buffer, SHOWN + 4, "not given");
    else if (member->value_length <= SHOWN)
        snprintf(buffer, SHOWN + 4, "%.*s", (int)member->value_length, member->value);
    else
        snprintf(buffer, SHOWN + 4, "%.*s...", SHOWN, member->value);
}

/* Says how two members of one key differ; objects are looked into. */
static void describe(char *buffer, size_t size, const struct member *name,
                     const struct member *there, const struct member *here)
{
    char a[SHOWN + 4], b[SHOWN + 4];
    show(a, there);
    show(b, here);
    snprintf(buffer, size, "%.*s is %s there and %s here", (int)name->key_length, name->key, a, b);
}

/* The first member that differs between two objects. */
static bool first_difference(char *buffer, size_t size, const char *there, const char *here)
{
    const char *objects[2] = {there, here};
    for (int side = 0; side < 2; side++) {
        const char *cursor = objects[side] + (*objects[side] == '{');
        struct member mine, other;
        while (next_member(&mine, &cursor)) {
            bool both = find_member(&other, objects[!side], &mine);
            if (both && mine.value_length == other.value_length &&
                memcmp(mine.value, other.value, mine.value_length) == 0)
                continue;
            if (both && *mine.value == '{' && *other.value == '{' &&
                first_difference(buffer, size, side ? other.value : mine.value,
                                 side ? mine.value : other.value))
                return true;
            const struct member *m = &mine, *o = both ? &other : NULL;
            describe(buffer, size, m, side ? o : m, side ? m : o);
            return true;
        }
    }
    return false;
}

bool signature_difference(char *buffer, size_t size, const char *there, const char *here)
{
    if (strcmp(there, here) == 0)
        return false;
    snprintf(buffer, size, "the parameters are in another order or form");
    first_difference(buffer, size, there, here);
    return true;
}

/* --- parsing -------------------------------------------------------------------------------------
 */

/* The text of a JSON string that json_string wrote; free it. */
static char *unescape(const char *value, size_t length)
{
    char *text = malloc(length + 1), *out = text;
    if (!text || length < 2 || *value != '"') {
        free(text);
        return NULL;
    }
    for (const char *at = value + 1; at < value + length - 1; at++) {
        unsigned code;
        if (*at != '\\') {
            *out++ = *at;
            continue;
        }
        at++;
        /* Only control characters are written by number. */
        if (*at == 'u' && sscanf(at + 1, "%4x", &code) == 1) {
            *out++ = (char)code;
            at += 4;
        } else {
            *out++ = *at == 'n' ? '\n' : *at == 't' ? '\t' : *at;
        }
    }
    *out = 0;
    return text;
}

static enum status parse_sources(struct signature_parts *parts, const struct member *list,
                                 struct error *err)
{
    unsigned room = 0;
    const char *at = list->value + 1, *end = list->value + list->value_length - 1;
    if (*list->value != '[' || parts->sources)
        return error_set(err, STATUS_FAILED, "the log's sources cannot be read");
    while (at < end) {
        if (parts->config.source_count == room) {
            room = room ? 2 * room : 16;
            char **more = realloc(parts->sources, room * sizeof *more);
            if (!more)
                return error_memory(err, room * sizeof *more, "the sources");
            parts->sources = more;
        }
        const char *next = *at == '"' ? skip_string(at) : end;
        char *source = unescape(at, (size_t)(next - at));
        if (!source)
            return error_set(err, STATUS_FAILED, "the log's sources cannot be read");
        parts->sources[parts->config.source_count++] = source;
        at = next + 1;
    }
    parts->config.sources = (const char *const *)parts->sources;
    return STATUS_OK;
}

static enum status parse_features(struct signature_parts *parts, const struct member *object,
                                  struct error *err)
{
    const char *cursor = object->value + 1;
    struct member member;
    enum status status = STATUS_OK;
    if (*object->value != '{')
        return error_set(err, STATUS_FAILED, "the log's features cannot be read");
    while (!status && next_member(&member, &cursor)) {
        char *spec = unescape(member.value, member.value_length), *named = NULL;
        if (!spec || asprintf(&named, "%.*s=%s", (int)member.key_length, member.key, spec) < 0)
            status = error_memory(err, member.value_length, "a feature");
        else
            status = feature_set_add(&parts->features, named, NORMALIZE_L1, err);
        free(named);
        free(spec);
    }
    return status;
}

enum status signature_parse(struct signature_parts *parts, const char *signature, struct error *err)
{
    *parts = (struct signature_parts){.config = {.decode_scale = 1}};
    const char *cursor = signature + (*signature == '{');
    struct member member;
    enum status status = STATUS_OK;
    while (!status && next_member(&member, &cursor)) {
        if (strncmp(member.key, "parameters\"", 11) == 0 && !parts->parameters)
            parts->parameters = strndup(member.value, member.value_length);
        else if (strncmp(member.key, "sources\"", 8) == 0)
            status = parse_sources(parts, &member, err);
        else if (strncmp(member.key, "features\"", 9) == 0)
            status = parse_features(parts, &member, err);
        else if (strncmp(member.key, "decode_scale\"", 13) == 0)
            parts->config.decode_scale = (unsigned)strtoul(member.value, NULL, 10);
    }
    if (!status && (!parts->parameters || parts->config.source_count == 0 ||
                    parts->features.count == 0 || parts->config.decode_scale == 0))
        status = error_set(err, STATUS_FAILED, "the log's parameters cannot be read");
    parts->config.parameters = parts->parameters;
    parts->config.features = &parts->features;
    return status;
}

void signature_parts_clear(struct signature_parts *parts)
{
    for (unsigned i = 0; i < parts->config.source_count; i++)
        free(parts->sources[i]);
    free(parts->sources);
    free(parts->parameters);
    *parts = (struct signature_parts){.config = {.source_count = 0}};
}

/* cmd_codebook.c: clpipe codebook: writes a file of the codebooks that an ingest would learn before
 * its first image. */
#include "base/parse.h"
#include "base/path.h"
#include "cli/commands.h"
#include "cli/compute.h"
#include "cli/ingest_step.h"
#include "cli/option_rows.h"
#include "cli/report_json.h"
#include "cli/signals.h"
#include "cli/summary.h"
#include "decode/isolate.h"
#include "features/kind.h"
#include "features/preset.h"
#include "result/codebooks.h"
#include "result/parameters.h"
#include <stdlib.h>
#include <string.h>

/* The options of the command. */
struct codebook_options {
    struct image_options image;
    struct text_list features;
    uint64_t sample;
    int preset;
};

#define OWN struct codebook_options

/* The given features, or those of a preset that need codebooks. */
static enum status read_features(struct feature_set *features, const struct codebook_options *own,
                                 struct error *err)
{
    const struct preset *preset = own->preset >= 0 ? &presets[own->preset] : NULL;
    const unsigned given = own->features.count, count = preset ? preset_count(preset) : given;
    if (preset && given > 0)
        return misuse(err, "--preset and --feature cannot be combined");
    if (count == 0)
        return misuse(err, "the feature is missing: give --feature SPEC");
    for (unsigned i = 0; i < count; i++) {
        const char *spec = preset ? preset->feature[i].spec : own->features.text[i];
        struct feature_set one = {.count = 0};
        enum status status = feature_set_add(&one, spec, NORMALIZE_L1, err);
        const bool learns = status == STATUS_OK && one.feature->kind->descriptor;
        if (learns && one.feature->codebook_digest[0])
            return error_set(
                err, STATUS_USAGE,
                "feature '%s': its codebook is given, so none is learned: leave out codebook=",
                spec);
        if (status == STATUS_OK && !learns && !preset)
            return error_set(err, STATUS_USAGE, "feature '%s': %s needs no codebook", spec,
                             one.feature->kind->name);
        if (learns)
            status = feature_set_add(features, spec, NORMALIZE_L1, err);
        if (status != STATUS_OK)
            return status;
    }
    return features->count > 0
               ? STATUS_OK
               : error_set(err, STATUS_USAGE, "the preset %s needs no codebooks", preset->name);
}

/* The parameters stored in the file: what the codebooks were learned from, and how. */
static enum status write_parameters(char **parameters, const struct feature_set *features,
                                    uint32_t pictures, const struct options *options,
                                    struct error *err)
{
    const struct codebook_options *own = (const struct codebook_options *)options;
    struct json json;
    json_init(&json, true);
    json_open_object(&json, NULL);
    json_open_array(&json, "codebooks");
    for (unsigned i = 0; i < features->count; i++)
        json_string(&json, NULL, features->feature[i].spec);
    json_close_array(&json);
    json_uint(&json, "images", pictures);
    json_uint(&json, "sample", own->sample);
    json_string(&json, "alpha", CHOICE_WORD(options, "alpha"));
    json_string(&json, "icc", CHOICE_WORD(options, "icc"));
    json_uint(&json, "decode_scale", 1u << own->image.decode_scale);
    json_close_object(&json);
    *parameters = json_take(&json);
    return *parameters ? STATUS_OK : error_memory(err, 1024, "the parameters");
}

/* The parameters of an existing output with codebooks of these features, made with these options: the same
 * command may have written it. Else NULL. The caller frees them. */
static char *read_earlier(const struct feature_set *features, const struct options *options)
{
    static const char *const choices[] = {"alpha", "icc"};
    const struct codebook_options *own = (const struct codebook_options *)options;
    uint64_t sample = 0, scale = 0;
    struct result *result = NULL;
    struct parameters *parameters = NULL;
    char asked[sizeof features->feature->spec], *earlier = NULL;
    bool same = !options->force && !result_open(&result, options->output, NULL) &&
                result_images(result) == 0 &&
                !parameters_open(&parameters, result->parameters, NULL) &&
                parameters_integer(parameters, "sample", &sample) && sample == own->sample &&
                parameters_integer(parameters, "decode_scale", &scale) &&
                scale == 1u << own->image.decode_scale;
    for (unsigned i = 0; same && i < sizeof choices / sizeof *choices; i++) {
        const char *there = parameters_member(parameters, choices[i]);
        same = there && strcmp(there, CHOICE_WORD(options, choices[i])) == 0;
    }
    for (unsigned i = 0; same && i <= features->count; i++) {
        const char *spec = parameters_entry(parameters, "codebooks", i, NULL);
        codebooks_spec_asked(asked, sizeof asked, spec ? spec : "");
        same = strcmp(asked, i < features->count ? features->feature[i].spec : "") == 0;
    }
    if (same)
        earlier = strdup(result->parameters);
    parameters_close(&parameters);
    result_close(&result);
    return earlier;
}

/* --force replaces codebooks, never images or clusterings. */
static enum status check_output(const struct options *options, struct error *err)
{
    struct result *result = NULL;
    enum status status = options_check_output(options, "-o", options->output, err);
    if (status == STATUS_OK && result_open(&result, options->output, NULL) == STATUS_OK &&
        (result_images(result) > 0 || result->clusters_count > 0))
        status = error_set(
            err, STATUS_USAGE, "%s holds %s, so it is not overwritten; name another file",
            PATH_TEXT(options->output), result_images(result) > 0 ? "images" : "clusterings");
    result_close(&result);
    return status;
}

static void report(const struct feature_set *features, uint32_t pictures, bool found,
                   const struct options *options)
{
    struct json *json = report_open(options);
    const char *shown = PATH_TEXT(options->output);
    json_open_array(json, "codebooks");
    for (unsigned i = 0; i < features->count; i++) {
        const struct feature *feature = &features->feature[i];
        summary_line(options, "%s: %u words learned from %s, in %s", feature->name,
                     feature->codebook_words, NUMBER_OF(pictures, "image"), shown);
        json_open_object(json, NULL);
        json_string(json, "name", feature->name);
        json_string(json, "spec", feature->spec);
        json_string(json, "digest", feature->codebook_digest);
        json_uint(json, "words", feature->codebook_words);
        json_close_object(json);
    }
    if (found)
        summary_line(options, "  %-11s the file already holds them", "up to date");
    json_close_array(json);
    json_uint(json, "images", pictures);
    report_bytes(json, "output", options->output);
}

static enum status run_codebook(const struct options *options, struct error *err)
{
    const struct codebook_options *own = (const struct codebook_options *)options;
    struct codebooks codebooks = {.stored = NULL};
    struct feature_set given = {.count = 0}, features;
    struct isolate *isolate = NULL;
    char *parameters = NULL, *earlier = NULL;
    bool found = false;
    uint32_t pictures = 0, unread = 0;
    if (!options->output)
        return misuse(err, "the output is missing: give -o C.h5");
    enum status status = read_features(&given, own, err);
    if (status == STATUS_OK)
        earlier = read_earlier(&given, options);
    if (status == STATUS_OK && !earlier)
        status = check_output(options, err);
    if (status == STATUS_OK)
        status = ingest_isolate(&isolate, &own->image, err);
    if (status == STATUS_OK) {
        call_start(options, signals_time_limit(options));
        status = compute_open(options, false, err);
    }
    if (status == STATUS_OK)
        status = ingest_learn(&codebooks, &features, &pictures, &unread, &given,
                              (uint32_t)own->sample, &own->image, isolate, err);
    progress_stage(&options->call->progress, "writing");
    if (status == STATUS_OK)
        status = write_parameters(&parameters, &features, pictures, options, err);
    /* They include the digests. */
    found = status == STATUS_OK && earlier && strcmp(earlier, parameters) == 0;
    if (status == STATUS_OK && earlier && !found)
        status = check_output(options, err);
    if (status == STATUS_OK && !found)
        status = codebooks_write_file(options->output, &features, parameters, err);
    if (status == STATUS_OK)
        report(&features, pictures, found, options);
    free(earlier);
    free(parameters);
    codebooks_clear(&codebooks);
    isolate_close(&isolate);
    return status == STATUS_OK && unread > 0 ? STATUS_PARTIAL : status;
}

static const struct option rows[] = {
    OUTPUT_ROW(NULL, NULL, "HDF5 file to write; required"),
    LIST("feature", features, "SPEC",
         "feature to learn a codebook for, repeatable; required, or --preset"),
    CHOICE("preset", preset, "color|fast|good|best", "all features of a preset that need codebooks",
           .note = "none"),
    NUMBER("sample", sample, "N", "number of images to learn from", .initial = "512", .min = 1,
           .max = 10000000),
    FORCE_ROW("replace existing codebooks"),
    {.name = NULL}};

const struct command command_codebook = {
    .name = "codebook",
    .goal = GOAL_STEPS,
    .arguments = "SOURCE... -o C.h5 --feature SPEC|--preset NAME [OPTIONS]",
    .summary = "learn the codebooks of features from a sample of images",
    .about =
        "An ingest learns the codebooks that its features need from its own images. This command "
        "learns them once for several files: give C.h5 to ingest with --codebook C.h5, or for one "
        "feature with --feature SPEC,codebook=C.h5. The sample depends only on the files.",
    .examples = "  clpipe codebook photos -o words.h5 --feature dct:words=512\n"
                "  clpipe ingest more -o more.h5 --feature dct:words=512,codebook=words.h5\n"
                "  clpipe codebook photos -o fast.h5 --preset fast",
    .operand_name = "SOURCE",
    .operands = {1, 65535},
    .computes = true,
    .group = {{"Codebooks", rows}, {GROUP_IMAGES}},
    .size = sizeof(OWN),
    .run = run_codebook};

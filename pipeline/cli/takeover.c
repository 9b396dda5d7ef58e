/* takeover.c: an update's sources, features and options, from the command line and the file. */
#include "cli/takeover.h"
#include "base/log.h"
#include "base/path.h"
#include "base/text.h"
#include "cli/stored_options.h"
#include "device/blur_step.h"
#include "features/kind.h"
#include "ingest/ingest_config.h"
#include "result/records.h"
#include "result/result.h"
#include "result/signature.h"
#include "result/workdir.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- what is there --------------------------------------------------------------------------- */

static const struct feature *find_feature(const struct feature_set *features, const char *name)
{
    for (unsigned i = 0; i < features->count; i++)
        if (strcmp(features->feature[i].name, name) == 0)
            return &features->feature[i];
    return NULL;
}

/* The features in their original order, which an HDF5 group does not keep. */
static enum status order_features(struct takeover *t, const struct result *result,
                                  struct error *err)
{
    const struct feature_set found = t->old.features;
    const char *entry;
    t->old.features = (struct feature_set){.count = 0};
    for (unsigned i = 0; (entry = parameters_entry(t->parameters, "features", i, NULL)); i++) {
        struct feature_set one = {.count = 0};
        char asked[sizeof one.feature->spec] = "", named[sizeof one.feature->name + sizeof asked];
        enum status status = feature_set_add(&one, entry, NORMALIZE_L1, err);
        if (status != STATUS_OK)
            return status;
        const struct feature *there = find_feature(&found, one.feature->name);
        /* The parameters have the specification as given, without the learned codebook. */
        if (there)
            codebooks_spec_asked(asked, sizeof asked, there->spec);
        if (!there || strcmp(asked, one.feature->spec) != 0) {
            error_set(err, STATUS_FAILED, "%s: its parameters do not list its features",
                      PATH_TEXT(result->path));
            return error_remedy(err, REMEDY_START_OVER);
        }
        snprintf(named, sizeof named, "%s=%s", there->name, there->spec);
        status = feature_set_add(&t->old.features, named, NORMALIZE_L1, err);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static enum status read_codebooks(struct takeover *t, struct result *result, struct error *err)
{
    struct error why = ERROR_INIT;
    const char *shown = PATH_TEXT(result->path);
    if (codebooks_read(&t->codebooks, result, NULL, &why) == STATUS_OK &&
        codebooks_bind(&t->codebooks, &t->old.features, shown, &why) == STATUS_OK)
        return STATUS_OK;
    if (err)
        *err = why;
    return error_remedy(err, REMEDY_RETRAIN);
}

/* Whether one run made the file, with the same --preset, of enough images to learn from. */
static bool found_too_alike(struct result *result, const struct ingest_options *ingest)
{
    char asked[32];
    struct store_run run;
    if (ingest->preset < 0 || result->run_count != 1 || result_images(result) < INGEST_FEW ||
        result_run_at(result, 0, &run, NULL) != STATUS_OK)
        return false;
    snprintf(asked, sizeof asked, "%s", CHOICE_WORD(&ingest->image.common, "preset"));
    const char *at = strstr(run.command, "--preset");
    return at && strncmp(at + strlen("--preset="), asked, strlen(asked)) == 0;
}

static enum status read_file(struct takeover *t, struct result *result, struct error *err)
{
    struct signature_parts parts;
    char *text = NULL;
    t->too_alike = found_too_alike(result, &t->options);
    enum status status = signature_parts_of(&parts, result, err);
    if (status == STATUS_OK && !(text = signature_of_content(&parts.content, err)))
        status = STATUS_FAILED;
    signature_parts_clear(&parts);
    if (status == STATUS_OK)
        status = signature_parse(&t->old, text, err);
    free(text);
    if (status == STATUS_OK)
        status = parameters_open(&t->parameters, t->old.parameters, err);
    if (status == STATUS_OK)
        status = order_features(t, result, err);
    return status == STATUS_OK && !t->options.retrain ? read_codebooks(t, result, err) : status;
}

/* The beginning of the log of a run that was interrupted; *read: is there one? Fails if it cannot be read; the
 * store reports what is wrong with its contents. */
static enum status read_signature(bool *read, struct signature_parts *parts,
                                  struct codebooks *codebooks, const char *output,
                                  struct error *err)
{
    char *work = NULL;
    struct records log = {.directory = -1};
    struct error why = ERROR_INIT;
    *read = false;
    *parts = (struct signature_parts){0};
    const int directory = workdir_name(&work, output, NULL) == STATUS_OK
                              ? open(work, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                              : -1;
    if (directory >= 0 && records_open(&log, directory, work, false, &why) == STATUS_OK &&
        log.signature)
        *read = signature_parse(parts, log.signature, NULL) == STATUS_OK;
    if (*read && codebooks)
        codebooks_read_log(codebooks, work, NULL);
    else if (!*read)
        signature_parts_clear(parts);
    records_clear(&log);
    if (directory >= 0)
        close(directory);
    free(work);
    if (why.native == 0)
        return STATUS_OK;
    *err = why;
    return why.status;
}

/* For an update without a file. */
static enum status read_log(struct takeover *t, const char *output, struct error *err)
{
    const enum status status = read_signature(&t->unfinished, &t->old, &t->codebooks, output, err);
    if (status != STATUS_OK || !t->unfinished)
        return status;
    codebooks_bind(&t->codebooks, &t->old.features, output, NULL);
    t->unfinished = parameters_open(&t->parameters, t->old.parameters, NULL) == STATUS_OK;
    return STATUS_OK;
}

static enum status look_at_output(struct takeover *t, struct error *err)
{
    const char *output = t->options.image.common.output;
    struct result *result = NULL;
    struct stat st;
    enum status status = STATUS_OK;
    if (!output || t->options.fresh)
        return STATUS_OK;
    if (stat(output, &st) != 0) {
        status = read_log(t, output, err);
    } else if (S_ISREG(st.st_mode) && result_open(&result, output, NULL) == STATUS_OK &&
               result->source_count > 0) {
        status = read_file(t, result, err);
        t->file = status == STATUS_OK;
    }
    result_close(&result);
    return status;
}

/* --- options --------------------------------------------------------------------------------- */

/* Completes the options with those of the file. */
static enum status take_options(struct takeover *t, struct error *err)
{
    struct image_options *image = &t->options.image;
    parameters_integer(t->parameters, "limit", &t->limit);
    enum status status = stored_take(&image->common, t->parameters, err);
    if (image->max_decode_seconds > 0 && !options_given(&image->common, "max-decode-seconds"))
        image->isolate = true;
    return status;
}

bool takeover_raises_limits(const struct takeover *t)
{
    char differences[480];
    bool raised = false;
    if (t->file)
        stored_differences(differences, sizeof differences, &raised, &t->options.image.common,
                           t->parameters);
    return raised;
}

enum status takeover_check(const struct takeover *t, struct error *err)
{
    const struct options *options = &t->options.image.common;
    char differences[480];
    bool raised;
    if (!t->file ||
        !*stored_differences(differences, sizeof differences, &raised, options, t->parameters))
        return STATUS_OK;
    error_set(err, STATUS_USAGE, "%s was made with other options: %s", PATH_TEXT(options->output),
              differences);
    return error_remedy(err, REMEDY_SAME_OPTIONS);
}

static enum status take_share(struct takeover *t, struct error *err)
{
    const struct options *options = &t->options.image.common;
    const struct list_share *theirs = &t->old.content.share, *mine = &options->share;
    char what[64] = "no shard";
    t->share = (struct list_share){.index = mine->index, .count = mine->count};
    if (!t->file && !t->unfinished)
        return STATUS_OK;
    if (mine->count == 0 && theirs->count > 0 && options_given(options, "limit"))
        return misuse(err, "the file is a shard: --limit cannot be combined with it");
    if (mine->count == 0)
        t->share = (struct list_share){.index = theirs->index, .count = theirs->count};
    if (mine->count == 0 || (mine->count == theirs->count && mine->index == theirs->index))
        return STATUS_OK;
    if (theirs->count > 0)
        snprintf(what, sizeof what, "shard %llu/%llu", (unsigned long long)theirs->index,
                 (unsigned long long)theirs->count);
    return error_set(
        err, STATUS_USAGE,
        "%s is %s, but the command asks for shard %llu/%llu: give each shard an output of its own",
        PATH_TEXT(options->output), what, (unsigned long long)mine->index,
        (unsigned long long)mine->count);
}

/* --- features -------------------------------------------------------------------------------- */

/* Leaves out learned codebooks: they will be learned again. */
static void forget_codebook(struct feature *feature)
{
    feature->codebook = NULL;
    feature->codebook_digest[0] = '\0';
    feature_write_spec(feature);
}

/* Sets *plain to the SPEC without codebook=FILE, and *file to FILE or NULL; the caller frees both.
 * false: no memory. */
static bool split_spec(char **plain, char **file, const char *spec)
{
    const char *option = strstr(spec, "codebook=");
    *file = NULL;
    *plain = strdup(spec);
    if (!*plain || !option || option == spec || (option[-1] != ',' && option[-1] != ':'))
        return *plain;
    /* The name of a file may have commas: it ends where another option begins. */
    const char *value = option + strlen("codebook=");
    size_t length = strcspn(value, ",");
    while (value[length]) {
        const char *next = value + length + 1;
        const size_t key = strspn(next, "abcdefghijklmnopqrstuvwxyz");
        if (key > 0 && next[key] == '=')
            break;
        length += 1 + strcspn(next, ",");
    }
    if (length == FEATURE_DIGEST - 1 && strspn(value, "0123456789abcdef") >= length)
        return true;
    *file = strndup(value, length);
    /* The rest keeps the separator in front of the option. */
    if (value[length])
        strcpy(*plain + (option - spec), value + length + 1);
    else
        (*plain)[option - spec - 1] = '\0';
    return *file;
}

/* Binds a feature to its codebook from a file. */
static enum status take_codebook(struct feature *feature, struct takeover *t, const char *file,
                                 const char *spec, struct error *err)
{
    struct result *result = NULL;
    const char *shown = PATH_TEXT(file);
    if (!*file)
        return error_set(err, STATUS_USAGE, "feature '%s': codebook= needs a file", spec);
    if (!feature->kind->descriptor)
        return error_set(err, STATUS_USAGE, "feature '%s': %s needs no codebook", spec,
                         feature->kind->name);
    if (t->given_count == FEATURE_MAX)
        return error_set(err, STATUS_USAGE, "feature '%s': more than %d features", spec,
                         FEATURE_MAX);
    enum status status = result_open(&result, file, err);
    if (status != STATUS_OK)
        return status;
    struct codebooks *codebooks = &t->given[t->given_count++];
    status = codebooks_read(codebooks, result, NULL, err);
    result_close(&result);
    return status == STATUS_OK ? codebooks_choose(codebooks, feature, shown, err) : status;
}

static bool same_asked(const struct feature *a, const struct feature *b)
{
    char asked[2][sizeof a->spec];
    codebooks_spec_asked(asked[0], sizeof asked[0], a->spec);
    codebooks_spec_asked(asked[1], sizeof asked[1], b->spec);
    return strcmp(asked[0], asked[1]) == 0;
}

/* One SPEC of the command. */
static enum status resolve_feature(struct feature *out, struct takeover *t, const char *spec,
                                   struct error *err)
{
    const struct ingest_options *ingest = &t->options;
    const struct options *options = &ingest->image.common;
    const bool normalised = options_given(options, "normalize"),
               blurred = options_given(options, "blur"), stored = options_given(options, "store");
    struct feature_set one = {.blur = ingest->blur ? BLUR_SIZE : 0,
                              .store = (enum feature_store)ingest->store,
                              .store_all = stored && ingest->preset >= 0};
    const struct feature *theirs = NULL;
    char *plain, *file;
    enum status status = split_spec(&plain, &file, spec)
                             ? STATUS_OK
                             : error_memory(err, strlen(spec), "a specification");
    if (status == STATUS_OK)
        status = feature_set_add(&one, plain, (enum feature_normalize)ingest->normalize, err);
    if (status != STATUS_OK)
        goto out;
    *out = one.feature[0];
    theirs = find_feature(&t->old.features, out->name);
    if (theirs && !same_asked(theirs, out)) {
        one = (struct feature_set){.blur = blurred ? one.blur : theirs->image.blur,
                                   .store = stored ? one.store : theirs->store};
        if (feature_set_add(&one, plain,
                            normalised ? (enum feature_normalize)ingest->normalize
                                       : theirs->normalize,
                            NULL) == STATUS_OK &&
            same_asked(&one.feature[0], theirs))
            *out = one.feature[0];
    }
    if (file)
        status = take_codebook(out, t, file, spec, err);
    else if (ingest->codebook && out->kind->descriptor)
        status = take_codebook(out, t, ingest->codebook, spec, err);
    else if (theirs && same_asked(theirs, out) && !ingest->retrain)
        *out = *theirs;
out:
    free(plain);
    free(file);
    return status;
}

/* --normalize, --blur and --store without --feature must match the file's features, except those of quality, which
 * have none of them. */
static enum status check_without_specs(const struct takeover *t, struct error *err)
{
    const struct ingest_options *ingest = &t->options;
    const struct options *options = &ingest->image.common;
    const char *shown = PATH_TEXT(options->output);
    for (unsigned i = 0; i < t->old.features.count; i++) {
        const struct feature *feature = &t->old.features.feature[i];
        if (feature->kind == &feature_quality)
            continue;
        const char *option = options_given(options, "normalize") &&
                                     feature->normalize != (enum feature_normalize)ingest->normalize
                                 ? "--normalize"
                             : options_given(options, "blur") &&
                                     feature->image.blur != (ingest->blur ? BLUR_SIZE : 0)
                                 ? "--blur"
                             : options_given(options, "store") &&
                                     feature->normalize != NORMALIZE_NONE &&
                                     feature->store != (enum feature_store)ingest->store
                                 ? "--store"
                                 : NULL;
        if (!option)
            continue;
        error_set(err, STATUS_USAGE, "%s differs from the features of %s: %s is %s", option, shown,
                  feature->name, feature->spec);
        return error_remedy(err, REMEDY_SAME_OPTIONS);
    }
    return STATUS_OK;
}

void takeover_advise_add(struct error *err, const struct takeover *t)
{
    const size_t used = strlen(err->sentence);
    const char *line = t->options.image.common.command_line;
    snprintf(err->sentence + used, sizeof err->sentence - used, "; to add it: %s --add",
             strlen(line) < 400 ? line : "the same command with");
}

/* For a feature that the file lacks or has with another specification. */
static enum status refuse_feature(const struct takeover *t, const struct feature *asked,
                                  const char *missing, struct error *err)
{
    const struct feature *theirs = find_feature(&t->old.features, asked->name);
    const char *shown = PATH_TEXT(t->options.image.common.output);
    if (theirs && same_asked(theirs, asked)) {
        error_set(err, STATUS_USAGE,
                  "the feature %s of %s has a codebook other than that of the command", asked->name,
                  shown);
        return error_remedy(err, REMEDY_RETRAIN_GIVEN);
    }
    if (theirs)
        return error_set(err, STATUS_USAGE,
                         "the feature %s of %s is %s; the command asks for %s: give it another "
                         "name, --feature NAME=KIND..., and add it with --add",
                         asked->name, shown, theirs->spec, asked->spec);
    error_set(err, STATUS_USAGE, "%s does not have the feature %s", shown, missing);
    takeover_advise_add(err, t);
    return STATUS_USAGE;
}

enum status takeover_features(struct feature_set *all, char first[FEATURE_NAME_MAX],
                              struct takeover *t, const char *const *specs, unsigned count,
                              struct error *err)
{
    const struct ingest_options *ingest = &t->options;
    const struct feature *lacking = NULL;
    struct feature asked;
    char missing[256] = "";
    const bool given = count > 0;
    *all = t->file || t->unfinished ? t->old.features : (struct feature_set){.count = 0};
    for (unsigned i = 0; ingest->retrain && i < all->count; i++)
        if (all->feature[i].kind->descriptor)
            forget_codebook(&all->feature[i]);
    /* An unfinished run has only the features of its log: others mean another command. */
    if (t->unfinished && given)
        *all = (struct feature_set){.count = 0};
    for (unsigned i = 0; i < count; i++) {
        enum status status = resolve_feature(&asked, t, specs[i], err);
        if (status != STATUS_OK)
            return status;
        if (i == 0)
            snprintf(first, FEATURE_NAME_MAX, "%s", asked.name);
        struct feature *there = (struct feature *)(uintptr_t)find_feature(all, asked.name);
        const bool theirs = t->file && find_feature(&t->old.features, asked.name);
        /* A given codebook replaces one that would be learned again. */
        if (there && theirs && ingest->retrain && same_asked(there, &asked)) {
            asked.offset = there->offset;
            *there = asked;
        }
        if (there && theirs && strcmp(there->spec, asked.spec) == 0)
            continue;
        if (theirs)
            return refuse_feature(t, &asked, NULL, err);
        if (strcmp(asked.name, RESULT_PRESET) == 0)
            return misuse(err, RESULT_PRESET_TAKEN);
        char named[sizeof asked.name + sizeof asked.spec + 1];
        snprintf(named, sizeof named, "%s=%s", asked.name, asked.spec);
        status = feature_set_add(all, named, NORMALIZE_L1, err);
        if (status != STATUS_OK)
            return status;
        all->feature[all->count - 1].codebook = asked.codebook;
        if (t->file && !ingest->add) {
            lacking = find_feature(all, asked.name);
            text_add_name(missing, sizeof missing, asked.name);
        }
    }
    if (count == 0)
        snprintf(first, FEATURE_NAME_MAX, "%s", t->old.features.feature[0].name);
    if (lacking)
        return refuse_feature(t, lacking, missing, err);
    /* The same features in a different order match the log. */
    if (t->unfinished && given && all->count == t->old.features.count) {
        bool same = true;
        for (unsigned i = 0; i < all->count && same; i++) {
            const struct feature *there = find_feature(&t->old.features, all->feature[i].name);
            same = there && strcmp(there->spec, all->feature[i].spec) == 0;
        }
        if (same)
            *all = t->old.features;
    }
    return t->file && count == 0 ? check_without_specs(t, err) : STATUS_OK;
}

/* --- all of it ------------------------------------------------------------------------------- */

/* A resumed run has the sources of its log; other sources are those of another command. */
static enum status place_sources(struct takeover *t, struct error *err)
{
    const struct ingest_options *ingest = &t->options;
    const struct options *options = &ingest->image.common;
    struct stored_sources theirs = {t->old.content.sources, t->old.content.directories,
                                    t->old.content.source_count};
    if (!t->file && !t->unfinished)
        theirs.count = 0;
    enum status status =
        places_update(&t->places, &theirs, options->operand, options->operand_count,
                      ingest->drop_source.text, ingest->drop_source.count, ingest->relocate, err);
    if (status == STATUS_OK && t->file) {
        bool read = false;
        if (t->places.added > 0)
            status = read_signature(&read, &t->log, NULL, options->output, err);
        if (!read)
            return status;
        const struct content *log = &t->log.content;
        const struct stored_sources spelled = {log->sources, log->directories, log->source_count};
        return places_spell(&t->places, &spelled, err);
    }
    if (status != STATUS_OK || !t->unfinished || (t->places.added == 0 && t->places.unread == 0))
        return status;
    places_clear(&t->places);
    theirs.count = 0;
    return places_update(&t->places, &theirs, options->operand, options->operand_count, NULL, 0,
                         NULL, err);
}

enum status takeover_open(struct takeover *out, const struct ingest_options *given,
                          struct error *err)
{
    *out = (struct takeover){.options = *given};
    enum status status = look_at_output(out, err);
    if (status != STATUS_OK)
        return status;
    if (out->file || out->unfinished)
        status = take_options(out, err);
    if (status == STATUS_OK)
        status = take_share(out, err);
    if (status == STATUS_OK)
        status = place_sources(out, err);
    return status;
}

void takeover_close(struct takeover *t)
{
    if (t->parameters) {
        if (!options_given(&t->options.image.common, "include"))
            free(t->options.image.walk.include.text);
        if (!options_given(&t->options.image.common, "exclude"))
            free(t->options.image.walk.exclude.text);
    }
    places_clear(&t->places);
    parameters_close(&t->parameters);
    signature_parts_clear(&t->old);
    signature_parts_clear(&t->log);
    codebooks_clear(&t->codebooks);
    for (unsigned i = 0; i < t->given_count; i++)
        codebooks_clear(&t->given[i]);
    *t = (struct takeover){.file = false};
}

/* "a, b": the sources that are new (walked) or stay as they are. */
static const char *list_places(char *text, size_t size, const struct places *places, bool added)
{
    unsigned count = 0;
    text[0] = 0;
    for (unsigned i = 0; i < places->count; i++) {
        if (added ? places->source_before[i] >= 0 : places->walked[i] != NULL)
            continue;
        if (++count <= 4)
            text_add_name(text, size, PATH_TEXT_IN(120, places->stored[i]));
    }
    if (count > 4)
        text_add(text, size, " and ", "%u more", count - 4);
    return text;
}

void takeover_tell(const struct takeover *t)
{
    char added[640], kept[640];
    const struct places *places = &t->places;
    if (places->repeated > 0)
        log_message(LOG_NOTICE, "notice: a source that is given more than once counts once");
    const unsigned nested = places_nested(added, kept, places);
    if (nested > 0)
        log_message(LOG_NOTICE,
                    "notice: the source %s lies below %s%s: a file below both counts twice", added,
                    kept, nested > 1 ? " (and others likewise)" : "");
    if (!t->file)
        return;
    const char *output = PATH_TEXT(t->options.image.common.output);
    list_places(added, sizeof added, places, true);
    list_places(kept, sizeof kept, places, false);
    if (places->added > 0 && places->unread > 0)
        log_message(LOG_NOTICE,
                    "notice: %s is added to %s; %s stays as it is and is not read again", added,
                    output, kept);
    else if (places->added > 0)
        log_message(LOG_NOTICE, "notice: %s is added to %s", added, output);
    else if (places->unread > 0)
        log_message(LOG_NOTICE, "notice: %s in %s stays as it is and is not read again", kept,
                    output);
    if (places->dropped > 0)
        log_message(LOG_NOTICE, "notice: %u source%s removed from %s, with all images of %s",
                    places->dropped, places->dropped == 1 ? " is" : "s are", output,
                    places->dropped == 1 ? "it" : "them");
}

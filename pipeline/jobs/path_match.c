/* path_match.c: looks each image up in the list under all of its names. */
#include "jobs/path_match.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/source_name.h"
#include "base/text.h"
#include "sources/filelist.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMED 3
/* As given; absolute, from the working directory; absolute, without symbolic links; absolute, from
 * where it was given. */
#define PREFIXES 4

/* The possible prefixes of the paths of one source. */
struct prefixes {
    char *text[PREFIXES]; /* or NULL */
    bool whole;           /* the source is a file: the prefix is its path */
};

struct finder {
    const struct path_list *list;
    struct result *result;
    struct prefixes *sources;
    char *working; /* the working directory */
};

/* A few names for a message. */
struct names {
    uint64_t count;
    char *text;
    size_t size;
};

static void note(struct names *names, const char *shown)
{
    if (names->count <= NAMED)
        text_add_name(names->text, names->size, names->count < NAMED ? shown : "...");
    names->count++;
}

/* --- the names of an image ------------------------------------------------------------------- */

static char *join(const char *directory, const char *name)
{
    const size_t size = strlen(directory) + strlen(name) + 2;
    char *path = malloc(size);
    if (path) {
        snprintf(path, size, "%s/%s", directory, name);
        path[filelist_normalize(path, strlen(path))] = 0;
    }
    return path;
}

/* Removes trailing slashes; "/" becomes "". */
static void trim(char *path)
{
    size_t length = path ? strlen(path) : 0;
    while (length > 0 && path[length - 1] == '/')
        path[--length] = 0;
}

static enum status open_source(struct prefixes *out, const struct finder *finder, unsigned number,
                               struct error *err)
{
    const struct result *result = finder->result;
    const char *source = result->source_names[number], *directory = result->directories[number];
    const bool list = source_is_list(source);
    struct stat st;
    if (directory[0] &&
        !(out->text[3] = source_path(list ? "." : result->sources[number], directory)))
        return error_memory(err, PATH_MAX, "a file name");
    if (list) {
        /* Paths of a list are used unchanged or relative to a directory. */
        out->text[1] = strdup(finder->working);
        out->text[2] = realpath(".", NULL);
        return out->text[1] ? STATUS_OK : error_memory(err, PATH_MAX, "a file name");
    }
    out->text[0] = strdup(source);
    out->text[1] = source[0] == '/' ? strdup(source) : join(finder->working, source);
    out->text[2] = realpath(source, NULL);
    if (!out->text[0] || !out->text[1])
        return error_memory(err, PATH_MAX, "a file name");
    out->text[0][filelist_normalize(out->text[0], strlen(out->text[0]))] = 0;
    for (int i = 0; i < PREFIXES; i++)
        trim(out->text[i]);
    /* "." adds nothing: the path itself is looked up anyway. */
    if (strcmp(out->text[0], ".") == 0)
        out->text[0][0] = 0;
    out->whole = stat(source, &st) == 0 && !S_ISDIR(st.st_mode);
    return STATUS_OK;
}

static enum status open_sources(struct finder *finder, struct error *err)
{
    const unsigned count = finder->result->source_count;
    finder->working = getcwd(NULL, 0);
    finder->sources = calloc(count ? count : 1, sizeof *finder->sources);
    if (!finder->working || !finder->sources)
        return error_memory(err, count * sizeof *finder->sources, "sources");
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < count && status == STATUS_OK; i++)
        status = open_source(&finder->sources[i], finder, i, err);
    return status;
}

static void close_sources(struct finder *finder)
{
    for (unsigned i = 0; finder->sources && i < finder->result->source_count; i++)
        for (int p = 0; p < PREFIXES; p++)
            free(finder->sources[i].text[p]);
    free(finder->sources);
    free(finder->working);
}

/* --- matching -------------------------------------------------------------------------------- */

static bool is_used(const uint8_t *used, uint64_t i)
{
    return used[i / 8] >> i % 8 & 1;
}

/* The row of an image, whose paths it marks as used. *ambiguous: more than one path names it and the
 * list has no repeats, or a path was used by another image. */
static enum status find_image(uint64_t *row, bool *ambiguous, struct finder *finder, uint8_t *used,
                              const struct result_image *image, struct error *err)
{
    const struct prefixes *source = &finder->sources[image->source];
    uint64_t found[PREFIXES + 2];
    unsigned count = 0;
    *row = PATH_LIST_NONE;
    *ambiguous = false;
    found[count++] = path_list_find(finder->list, image->path_raw, strlen(image->path_raw));
    /* clpipe's own tables have \xHH for bytes that are not UTF-8. */
    if (image->path != image->path_raw)
        found[count++] = path_list_find(finder->list, image->path, strlen(image->path));
    for (int i = 0; i < PREFIXES; i++) {
        char *path;
        if (!source->text[i] || (i > 0 && image->path_raw[0] == '/'))
            continue;
        const int length = asprintf(&path, "%s%s%s", source->text[i], source->whole ? "" : "/",
                                    source->whole ? "" : image->path_raw);
        if (length < 0)
            return error_memory(err, strlen(image->path_raw) + PATH_MAX, "a file name");
        found[count++] = path_list_find(finder->list, path, (size_t)length);
        free(path);
    }
    for (unsigned i = 0; i < count; i++) {
        const bool other = *row != PATH_LIST_NONE && found[i] != *row;
        if (found[i] == PATH_LIST_NONE)
            continue;
        *ambiguous = *ambiguous || is_used(used, found[i]) || (other && !finder->list->repeats);
        *row = found[i];
    }
    for (unsigned i = 0; i < count; i++)
        if (found[i] != PATH_LIST_NONE)
            used[found[i] / 8] = (uint8_t)(used[found[i] / 8] | 1u << found[i] % 8);
    return STATUS_OK;
}

/* Counts the paths whose bit is not set in `used`, and names the first. */
static void count_unused(struct path_match *out, const struct path_list *list, const uint8_t *used)
{
    struct names names = {0, out->first_unused, sizeof out->first_unused};
    char shown[96];
    for (uint64_t i = 0; i < list->count; i++) {
        size_t length;
        const char *path = path_list_at(list, i, &length);
        if (!is_used(used, list->repeats ? path_list_find(list, path, length) : i))
            note(&names, names.count < NAMED ? path_list_shown(shown, sizeof shown, list, i) : "");
    }
    out->unused = names.count;
}

static enum status match_images(struct path_match *out, struct finder *finder, uint8_t *used,
                                struct error *err)
{
    const uint64_t images = result_images(finder->result);
    char ambiguous_text[320] = "", shown[96];
    struct names ambiguous = {0, ambiguous_text, sizeof ambiguous_text};
    struct names missing = {0, out->first_missing, sizeof out->first_missing};
    for (uint64_t i = 0; i < images; i++) {
        struct result_image image;
        bool ambiguous_here;
        if (result_image_at(finder->result, i, &image, err))
            return STATUS_FAILED;
        enum status status = find_image(&out->row[i], &ambiguous_here, finder, used, &image, err);
        if (status != STATUS_OK)
            return status;
        if (out->row[i] == PATH_LIST_NONE)
            note(&missing, PATH_TEXT_IN(96, image.path_raw));
        else if (ambiguous_here)
            note(&ambiguous, PATH_TEXT_IN(96, image.path_raw));
    }
    const char *list = PATH_TEXT(finder->list->name);
    if (ambiguous.count > 0)
        return error_set(err, STATUS_FAILED,
                         "%s in %s %s ambiguous (%s): give paths with their source in front, or "
                         "absolute ones",
                         NUMBER_OF(ambiguous.count, "path"), list,
                         ambiguous.count == 1 ? "is" : "are", ambiguous_text);
    out->missing = missing.count;
    count_unused(out, finder->list, used);
    if (missing.count == images) {
        struct result_image image;
        char first[96] = "";
        if (images > 0 && result_image_at(finder->result, 0, &image, err) == STATUS_OK)
            path_for_message(first, sizeof first, image.path_raw);
        return error_set(err, STATUS_FAILED,
                         "no path in %s belongs to an image: its first is '%s', the first image is "
                         "'%s'; relative paths are relative to the source of the images",
                         list, path_list_shown(shown, sizeof shown, finder->list, 0), first);
    }
    return STATUS_OK;
}

enum status path_match_make(struct path_match *out, const struct path_list *list,
                            struct result *result, struct error *err)
{
    const uint64_t images = result_images(result);
    struct finder finder = {.list = list, .result = result};
    *out = (struct path_match){.row = malloc((size_t)images * sizeof *out->row + 1)};
    uint8_t *used = calloc(list->count / 8 + 1, 1);
    enum status status = out->row && used
                             ? open_sources(&finder, err)
                             : error_memory(err, (size_t)images * sizeof *out->row, "rows by path");
    if (status == STATUS_OK)
        status = match_images(out, &finder, used, err);
    close_sources(&finder);
    free(used);
    return status;
}

void path_match_tell_unused(const struct path_match *match, const struct path_list *list)
{
    if (match->unused > 0)
        log_message(LOG_NOTICE, "notice: %s lists %llu path%s that belong%s to no image: %s",
                    PATH_TEXT(list->name), (unsigned long long)match->unused,
                    match->unused == 1 ? "" : "s", match->unused == 1 ? "s" : "",
                    match->first_unused);
}

void path_match_clear(struct path_match *match)
{
    free(match->row);
    *match = (struct path_match){0};
}

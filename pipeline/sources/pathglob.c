/* pathglob.c: include and exclude globs.
 *
 * fnmatch() matches single components, so only "**" is implemented here, and paths may have any
 * length. */
#include "sources/pathglob.h"
#include <fnmatch.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct glob {
    char *components; /* NUL-terminated, contiguous */
    size_t count;
    bool whole;       /* matches the path, not its last component */
    bool directories; /* ended in '/': directories only */
};

struct glob_list {
    struct glob *glob;
    unsigned count;
};

struct pathglob {
    struct glob_list include, exclude;
};

/* Splits `text` into NUL-terminated components, without empty and "." ones; returns their
 * number. */
static size_t split(char *text)
{
    size_t count = 0;
    char *out = text;
    for (const char *in = text; *in;) {
        size_t length = strcspn(in, "/");
        const char *next = in + length + (in[length] == '/');
        if (length > 0 && !(length == 1 && *in == '.')) {
            memmove(out, in, length);
            out[length] = 0;
            out += length + 1;
            count++;
        }
        in = next;
    }
    return count;
}

static enum status compile(struct glob *glob, const char *text, const char *purpose,
                           struct error *err)
{
    size_t length = strlen(text);
    glob->components = malloc(length + 2);
    if (!glob->components)
        return error_memory(err, length + 2, "a glob");
    memcpy(glob->components, text, length + 1);
    glob->directories = length > 0 && text[length - 1] == '/';
    const char *slash = strchr(text, '/');
    glob->whole = slash && slash[strspn(slash, "/")] != 0;
    glob->count = split(glob->components);
    if (glob->count == 0)
        return error_set(err, STATUS_USAGE,
                         "the %s glob \"%s\" names nothing: give one such as \"*.jpg\"", purpose,
                         text);
    return STATUS_OK;
}

static enum status compile_all(struct glob_list *list, const char *const *texts, unsigned count,
                               const char *purpose, struct error *err)
{
    enum status status = STATUS_OK;
    list->glob = calloc(count ? count : 1, sizeof *list->glob);
    if (!list->glob)
        return error_memory(err, count * sizeof *list->glob, "globs");
    while (list->count < count && status == STATUS_OK) {
        status = compile(&list->glob[list->count], texts[list->count], purpose, err);
        list->count++;
    }
    return status;
}

enum status pathglob_open(struct pathglob **out, const char *const *include, unsigned include_count,
                          const char *const *exclude, unsigned exclude_count, struct error *err)
{
    struct pathglob *globs = calloc(1, sizeof *globs);
    if (!globs)
        return error_memory(err, sizeof *globs, "globs");
    enum status status = compile_all(&globs->include, include, include_count, "include", err);
    if (status == STATUS_OK)
        status = compile_all(&globs->exclude, exclude, exclude_count, "exclude", err);
    if (status == STATUS_OK)
        *out = globs;
    else
        pathglob_close(&globs);
    return status;
}

static const char *after(const char *component)
{
    return component + strlen(component) + 1;
}

/* Matches one component; names longer than a file's name can be never match. */
static bool match_component(const char *pattern, const char *name, size_t length)
{
    char terminated[4096];
    if (length >= sizeof terminated)
        return false;
    memcpy(terminated, name, length);
    terminated[length] = 0;
    return fnmatch(pattern, terminated, 0) == 0;
}

/* The next component of [*path, end), skipping empty and "." ones; false at the end. */
static bool next_component(const char **name, size_t *length, const char **path, const char *end)
{
    const char *at = *path;
    do {
        while (at < end && *at == '/')
            at++;
        const char *slash = at < end ? memchr(at, '/', (size_t)(end - at)) : NULL;
        *name = at;
        *length = (size_t)((slash ? slash : end) - at);
        at += *length;
    } while (*length == 1 && **name == '.');
    *path = at;
    return *length > 0;
}

/* Matches component by component; on a mismatch backtracks to the last "**". */
static bool match_whole(const struct glob *glob, const char *path, const char *end)
{
    const char *pattern = glob->components, *retry_pattern = NULL, *retry_path = NULL, *name;
    size_t count = glob->count, retry_count = 0, length;
    for (;;) {
        if (count > 0 && strcmp(pattern, "**") == 0) {
            pattern = after(pattern);
            if (--count == 0)
                return next_component(&name, &length, &path, end);
            retry_pattern = pattern;
            retry_count = count;
            retry_path = path;
            continue;
        }
        bool more = next_component(&name, &length, &path, end);
        if (count == 0 && !more)
            return true;
        if (count > 0 && more && match_component(pattern, name, length)) {
            pattern = after(pattern);
            count--;
            continue;
        }
        /* Let the last "**" match one more component. */
        if (!retry_pattern || !next_component(&name, &length, &retry_path, end))
            return false;
        path = retry_path;
        pattern = retry_pattern;
        count = retry_count;
    }
}

enum want { WANT_ANY, WANT_FILE_GLOBS, WANT_DIRECTORY_GLOBS };

static bool any_matches(const struct glob_list *list, const char *path, size_t length,
                        enum want want)
{
    const char *slash = memrchr(path, '/', length);
    const char *name = slash ? slash + 1 : path, *end = path + length;
    for (const struct glob *glob = list->glob; glob < list->glob + list->count; glob++) {
        if ((want == WANT_FILE_GLOBS && glob->directories) ||
            (want == WANT_DIRECTORY_GLOBS && !glob->directories))
            continue;
        if (glob->whole ? match_whole(glob, path, end)
                        : match_component(glob->components, name, (size_t)(end - name)))
            return true;
    }
    return false;
}

bool pathglob_excludes_directory(const struct pathglob *globs, const char *path, size_t length)
{
    return any_matches(&globs->exclude, path, length, WANT_ANY);
}

bool pathglob_includes_directory(const struct pathglob *globs, const char *path, size_t length)
{
    return any_matches(&globs->include, path, length, WANT_DIRECTORY_GLOBS);
}

bool pathglob_takes(const struct pathglob *globs, const char *path, size_t length, bool included)
{
    if (any_matches(&globs->exclude, path, length, WANT_FILE_GLOBS))
        return false;
    return included || globs->include.count == 0 ||
           any_matches(&globs->include, path, length, WANT_FILE_GLOBS);
}

bool pathglob_takes_alone(const struct pathglob *globs, const char *path, size_t length)
{
    bool included = false;
    if (globs->include.count == 0 && globs->exclude.count == 0)
        return true;
    for (size_t i = 1; i < length; i++) {
        if (path[i] != '/' || path[i - 1] == '/')
            continue;
        if (pathglob_excludes_directory(globs, path, i))
            return false;
        included = included || pathglob_includes_directory(globs, path, i);
    }
    return pathglob_takes(globs, path, length, included);
}

static void clear(struct glob_list *list)
{
    for (unsigned i = 0; i < list->count; i++)
        free(list->glob[i].components);
    free(list->glob);
}

void pathglob_close(struct pathglob **globs)
{
    if (!globs || !*globs)
        return;
    clear(&(*globs)->include);
    clear(&(*globs)->exclude);
    free(*globs);
    *globs = NULL;
}

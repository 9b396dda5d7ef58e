/* place.c: compares SOURCEs by the place that they refer to. Each real path is looked up once. */
#include "sources/place.h"
#include "base/path.h"
#include "base/source_name.h"
#include "sources/walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_special(const char *name)
{
    return source_is_list(name) || name[0] == 0;
}

/* Writes the normalised path; `out` has strlen(path) + 1 bytes. */
static void normalise(char *out, const char *path)
{
    const char *rest = path;
    while (rest[0] == '.' && rest[1] == '/') {
        rest += 1 + strspn(rest + 1, "/");
        /* "./@x" is a file with that name, "@x" a list. */
        if (is_special(rest) || walk_knows_name(rest) != walk_knows_name(path))
            break;
        path = rest;
    }
    if (strcmp(path, "./") == 0 || (path[0] == '.' && path[1 + strspn(path + 1, "/")] == 0))
        path = ".";
    size_t length = 0;
    for (; *path; path++)
        if (*path != '/' || length == 0 || out[length - 1] != '/')
            out[length++] = *path;
    while (length > 1 && out[length - 1] == '/')
        length--;
    out[length] = 0;
}

char *place_text(const char *source)
{
    const bool list = source[0] == '@';
    char *bytes = strdup(source);
    if (!bytes)
        return NULL;
    normalise(bytes + list, source + list);
    char *text = path_utf8(bytes, strlen(bytes));
    free(bytes);
    return text;
}

/* A SOURCE in the forms that are compared. */
struct place {
    char *text; /* from place_text */
    char *path; /* path valid from any directory; for names that are not paths, the name */
    char *real; /* NULL: there is no such file */
    bool list;
};

/* Takes `text`; false if out of memory. */
static bool place_open(struct place *place, char *text, const char *directory)
{
    *place = (struct place){.text = text};
    if (!text || !(place->path = source_path(text, directory)))
        return false;
    place->list = text[0] == '@';
    if (place->path[place->list] == '/')
        place->real = realpath(place->path + place->list, NULL);
    return true;
}

static void place_close(struct place *place)
{
    free(place->text);
    free(place->path);
    free(place->real);
}

static int compare_places(const struct place *a, const struct place *b)
{
    const int order = strcmp(a->real ? a->real : a->path, b->real ? b->real : b->path);
    return order ? order : a->list - b->list;
}

/* --- updates --------------------------------------------------------------------------------- */

/* SOURCEs, and their numbers by place: a shell pattern can give tens of thousands. */
struct index {
    struct place *place;
    unsigned *order;
    unsigned count;
};

static int compare_numbers(const void *a, const void *b, void *context)
{
    const struct place *place = context;
    const unsigned i = *(const unsigned *)a, j = *(const unsigned *)b;
    const int order = compare_places(&place[i], &place[j]);
    return order ? order : (i > j) - (i < j);
}

static const char *known_directory(const struct stored_sources *sources, unsigned i)
{
    return sources->directory && sources->directory[i] && sources->directory[i][0]
               ? sources->directory[i]
               : NULL;
}

/* Indexes SOURCEs of the command, given in `working`; or of `stored`, if not NULL. */
static bool index_open(struct index *index, const char *const *source, unsigned count,
                       const struct stored_sources *stored, const char *working)
{
    *index = (struct index){.place = calloc(count + 1, sizeof *index->place),
                            .order = calloc(count + 1, sizeof *index->order)};
    for (unsigned i = 0; index->place && index->order && i < count; i++) {
        const char *directory = stored ? known_directory(stored, i) : NULL;
        index->order[i] = index->count++;
        if (!place_open(&index->place[i], stored ? strdup(source[i]) : place_text(source[i]),
                        directory ? directory : working))
            return false;
    }
    if (index->place && index->order)
        qsort_r(index->order, count, sizeof *index->order, compare_numbers, index->place);
    return index->place && index->order;
}

static void index_close(struct index *index)
{
    for (unsigned i = 0; i < index->count; i++)
        place_close(&index->place[i]);
    free(index->place);
    free(index->order);
}

/* The first place with a number under `below` that equals `wanted` and is not taken; equal spelling
 * has precedence. index->count: none. */
static unsigned find_place(const struct index *index, const struct place *wanted, unsigned below,
                           const bool *taken)
{
    unsigned first = 0, last = index->count, found = index->count;
    while (first < last) {
        const unsigned middle = first + (last - first) / 2;
        if (compare_places(&index->place[index->order[middle]], wanted) < 0)
            first = middle + 1;
        else
            last = middle;
    }
    for (; first < index->count; first++) {
        const unsigned i = index->order[first];
        const struct place *place = &index->place[i];
        if (compare_places(place, wanted) != 0)
            break;
        if (i >= below || (taken && taken[i]))
            continue;
        if (strcmp(place->path, wanted->path) == 0)
            return i;
        found = found < index->count ? found : i;
    }
    return found;
}

/* "a, b and 3 more" */
static const char *list_sources(char *text, size_t size, const char *const *sources, unsigned count)
{
    size_t used = 0;
    text[0] = 0;
    for (unsigned i = 0; i < count && i < 5 && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "",
                                 PATH_TEXT_IN(80, sources[i]));
    if (count > 5 && used < size)
        snprintf(text + used, size - used, " and %u more", count - 5);
    return text;
}

struct merge {
    const struct stored_sources *theirs;
    const char *const *given;
    const char *const *drop;
    unsigned given_count, drop_count;
    struct index their_place, given_place, drop_place, moved_place;
    bool *dropped, *taken; /* per source of the file: dropped; matched by one of the command */
    bool *repeated, *found;
    unsigned *taker; /* per source of the file: by which one */
    unsigned moved;  /* number of the file's source that has moved; the count of its sources:
                      * none */
};

/* The source of the file named by `option`: the same place, else the only one with that text. */
static enum status find_named(unsigned *at, const struct merge *m, const struct index *named,
                              unsigned number, const char *option, struct error *err)
{
    const struct index *theirs = &m->their_place;
    const unsigned none = theirs->count;
    char names[512];
    unsigned same = 0;
    *at = find_place(theirs, &named->place[number], none, m->dropped);
    for (unsigned i = 0; *at == none && i < none; i++)
        same += !m->dropped[i] && strcmp(theirs->place[i].text, named->place[number].text) == 0;
    for (unsigned i = 0; same == 1 && i < none; i++)
        if (!m->dropped[i] && strcmp(theirs->place[i].text, named->place[number].text) == 0)
            *at = i;
    if (*at < none)
        return STATUS_OK;
    return error_set(err, STATUS_USAGE, "the file has no %ssource %s %s; its sources: %s",
                     same > 1 ? "single " : "", PATH_TEXT(named->place[number].text), option,
                     none > 0 ? list_sources(names, sizeof names, m->theirs->source, none)
                              : "none");
}

static enum status mark_dropped(struct merge *m, struct error *err)
{
    for (unsigned i = 0; i < m->drop_count; i++) {
        const struct place *place = &m->drop_place.place[i];
        unsigned at;
        if (find_place(&m->given_place, place, m->given_count, NULL) < m->given_count)
            return error_set(err, STATUS_USAGE, "the source %s is both given and to be dropped",
                             PATH_TEXT(m->drop[i]));
        if (find_named(&at, m, &m->drop_place, i, "to drop", err) != STATUS_OK)
            return err->status;
        m->dropped[at] = m->taken[at] = true;
    }
    return STATUS_OK;
}

/* A source with the name of one of the file must be the same place, else the update is refused. */
static enum status check_name(const struct merge *m, unsigned given, struct error *err)
{
    char name[256];
    const struct index *theirs = &m->their_place;
    const struct place *place = &m->given_place.place[given];
    for (unsigned i = 0; i < theirs->count; i++) {
        if (m->dropped[i] || i == m->moved ||
            strcmp(theirs->place[i].text, m->given_place.place[given].text) != 0)
            continue;
        return error_set(err, STATUS_USAGE,
                         "%s leads to %s here, but to %s in the file: give the right one by its "
                         "absolute path or, if it has moved, add --relocate %s",
                         path_for_message(name, sizeof name, theirs->place[i].text),
                         PATH_TEXT(place->path), PATH_TEXT(theirs->place[i].path), name);
    }
    return STATUS_OK;
}

/* Matches the command's sources with those of the file. */
static enum status find_given(struct merge *m, struct places *out, struct error *err)
{
    const unsigned none = m->their_place.count;
    unsigned fresh = 0, last = 0;
    if (m->moved < none)
        m->taken[m->moved] = true;
    for (unsigned i = 0; i < m->given_count; i++) {
        const struct place *place = &m->given_place.place[i];
        const unsigned at = find_place(&m->their_place, place, none, m->taken);
        if (at < none) {
            m->taken[at] = m->found[i] = true;
            m->taker[at] = i;
        } else if (find_place(&m->given_place, place, i, NULL) < i) {
            m->repeated[i] = true;
            out->repeated++;
        } else if (check_name(m, i, err) != STATUS_OK) {
            return err->status;
        } else {
            fresh++;
            last = i;
        }
    }
    if (m->moved == none)
        return STATUS_OK;
    if (fresh != 1)
        return error_set(
            err, STATUS_USAGE,
            "--relocate: give the SOURCE that %s has become, and no other that the file lacks",
            m->moved_place.place[0].text);
    m->found[last] = true;
    m->taker[m->moved] = last;
    return STATUS_OK;
}

static enum status copy_text(struct places *out, unsigned i, const char *text, struct error *err)
{
    free(out->texts[i]);
    out->stored[i] = out->texts[i] = strdup(text);
    return out->texts[i] ? STATUS_OK : error_memory(err, strlen(text), "a source");
}

static enum status take_theirs(struct places *out, struct merge *m, struct error *err)
{
    for (unsigned i = 0; i < m->theirs->count; i++) {
        if (m->dropped[i]) {
            out->dropped++;
            continue;
        }
        const unsigned n = out->count++;
        const char *directory = i == m->moved ? NULL : known_directory(m->theirs, i);
        out->stored[n] = m->theirs->source[i];
        out->directory[n] = directory ? directory : out->working;
        out->source_before[n] = (int)i;
        out->walked[n] = m->taken[i] ? m->given[m->taker[i]] : NULL;
        out->unread += !m->taken[i];
        if (!(out->path[n] = source_path(out->stored[n], out->directory[n])))
            return error_memory(err, strlen(out->stored[n]), "a source");
        if (i == m->moved &&
            copy_text(out, n, m->given_place.place[m->taker[i]].text, err) != STATUS_OK)
            return err->status;
    }
    return STATUS_OK;
}

static enum status merge_all(struct places *out, struct merge *m, struct error *err)
{
    const unsigned most = m->theirs->count + m->given_count;
    enum status status;
    if ((status = mark_dropped(m, err)))
        return status;
    m->moved = m->theirs->count;
    if (m->moved_place.count > 0 &&
        (status = find_named(&m->moved, m, &m->moved_place, 0, "to relocate", err)))
        return status;
    out->stored = held_array(&out->held, most, sizeof *out->stored);
    out->directory = held_array(&out->held, most, sizeof *out->directory);
    out->walked = held_array(&out->held, most, sizeof *out->walked);
    out->path = held_array(&out->held, most, sizeof *out->path);
    out->source_before = held_array(&out->held, most, sizeof *out->source_before);
    out->texts = held_array(&out->held, most, sizeof *out->texts);
    if ((status = held_check(&out->held, "the sources", err)) ||
        (status = find_given(m, out, err)) || (status = take_theirs(out, m, err)))
        return status;
    for (unsigned i = 0; i < m->given_count; i++) {
        if (m->found[i] || m->repeated[i])
            continue;
        if ((status = copy_text(out, out->count, m->given_place.place[i].text, err)))
            return status;
        out->directory[out->count] = out->working;
        out->source_before[out->count] = -1;
        out->walked[out->count] = m->given[i];
        out->added++;
        out->count++;
    }
    return out->count > 0
               ? STATUS_OK
               : error_set(err, STATUS_USAGE,
                           "no source would be left: remove the file instead, or give a SOURCE");
}

enum status places_update(struct places *out, const struct stored_sources *theirs,
                          const char *const *given, unsigned given_count, const char *const *drop,
                          unsigned drop_count, const char *moved, struct error *err)
{
    struct error own = ERROR_INIT;
    SCOPED_HELD held = {0};
    struct merge m = {.theirs = theirs,
                      .given = given,
                      .drop = drop,
                      .given_count = given_count,
                      .drop_count = drop_count,
                      .dropped = held_array(&held, theirs->count, sizeof(bool)),
                      .taken = held_array(&held, theirs->count, sizeof(bool)),
                      .repeated = held_array(&held, given_count, sizeof(bool)),
                      .found = held_array(&held, given_count, sizeof(bool)),
                      .taker = held_array(&held, theirs->count, sizeof(unsigned))};
    *out = (struct places){.working = path_working_directory()};
    const char *here = out->working;
    const bool opened = !held.failed && here &&
                        index_open(&m.their_place, theirs->source, theirs->count, theirs, here) &&
                        index_open(&m.given_place, given, given_count, NULL, here) &&
                        index_open(&m.drop_place, drop, drop_count, NULL, here) &&
                        index_open(&m.moved_place, &moved, moved != NULL, NULL, here);
    enum status status = opened ? merge_all(out, &m, &own)
                                : error_memory(&own, theirs->count + given_count, "the sources");
    if (status && err)
        *err = own;
    index_close(&m.their_place);
    index_close(&m.given_place);
    index_close(&m.drop_place);
    index_close(&m.moved_place);
    return status;
}

enum status places_spell(struct places *places, const struct stored_sources *log, struct error *err)
{
    bool same = places->added > 0 && log->count == places->count;
    enum status status = STATUS_OK;
    for (unsigned i = 0; same && i < places->count; i++) {
        const char *there = known_directory(log, i);
        struct place one = {.path = NULL}, two = {.path = NULL};
        same =
            places->source_before[i] >= 0
                ? strcmp(places->stored[i], log->source[i]) == 0
                : place_open(&one, strdup(places->stored[i]), places->directory[i]) &&
                      place_open(&two, strdup(log->source[i]), there ? there : places->working) &&
                      compare_places(&one, &two) == 0;
        place_close(&one);
        place_close(&two);
    }
    for (unsigned i = 0; same && i < places->count && status == STATUS_OK; i++) {
        if (places->source_before[i] >= 0)
            continue;
        status = copy_text(places, i, log->source[i], err);
        /* Its paths are looked up in the directory in which it was given. */
        if (known_directory(log, i))
            places->directory[i] = known_directory(log, i);
    }
    return status;
}

/* Sources without a path come first. */
static int compare_paths(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    return x && y ? strcmp(x, y) : (x != NULL) - (y != NULL);
}

unsigned places_nested(char inner[256], char outer[256], const struct places *places)
{
    char **real = calloc(places->count + 1, sizeof *real);
    unsigned count = 0, above = 0;
    for (unsigned i = 0; real && i < places->count; i++) {
        const char *name = places->walked[i] ? places->walked[i] : places->path[i];
        char *path = is_special(name) ? NULL : realpath(name, NULL);
        if (!path || asprintf(&real[i], "%s/", strcmp(path, "/") == 0 ? "" : path) < 0)
            real[i] = NULL;
        free(path);
    }
    /* With a trailing slash, paths below a directory sort directly after it. */
    if (real)
        qsort(real, places->count, sizeof *real, compare_paths);
    for (unsigned i = 1; real && i < places->count; i++) {
        if (!real[above] || strncmp(real[i], real[above], strlen(real[above])) != 0)
            above = i;
        else if (count++ == 0) {
            path_for_message(inner, 256, real[i]);
            path_for_message(outer, 256, real[above]);
        }
    }
    for (unsigned i = 0; real && i < places->count; i++)
        free(real[i]);
    free(real);
    return count;
}

void places_clear(struct places *places)
{
    for (unsigned i = 0; i < places->count; i++) {
        free(places->texts[i]);
        free(places->path[i]);
    }
    free(places->working);
    held_free(&places->held);
    *places = (struct places){.count = 0};
}

/* place.c: SOURCEs as places. The real path of each is looked up once. */
#include "walk/place.h"
#include "base/path.h"
#include "base/source_name.h"
#include "walk/walk.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_special(const char *name)
{
    return source_is_list(name) || name[0] == 0;
}

/* Writes the normalised bytes of a path; `out` has room for all of `path`. */
static void normalise(char *out, const char *path)
{
    const char *rest = path;
    while (rest[0] == '.' && rest[1] == '/') {
        rest += 1 + strspn(rest + 1, "/");
        /* "./@x" is a file of that name, "@x" a list. */
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
    const size_t length = strlen(source), size = 4 * length + 2;
    char *bytes = malloc(length + 1), *text = malloc(size);
    if (bytes && text) {
        const bool list = source[0] == '@';
        bytes[0] = '@';
        normalise(bytes + list, source + list);
        path_to_utf8(text, size, bytes, strlen(bytes));
    } else {
        free(text);
        text = NULL;
    }
    free(bytes);
    return text;
}

/* What is compared of a SOURCE; NULLs where there is no memory, or, for `real`, no such file. */
struct place {
    char *text, *real;
    bool list;
};

/* stored: `source` is what place_text has given. */
static void place_open(struct place *place, const char *source, bool stored)
{
    char *name = strdup(source);
    *place = (struct place){.text = stored ? strdup(source) : place_text(source),
                            .list = source[0] == '@'};
    if (stored && name)
        path_from_utf8(name);
    if (name && strcmp(source, "-") != 0 && source[0])
        place->real = realpath(name + place->list, NULL);
    free(name);
}

static void place_close(struct place *place)
{
    free(place->text);
    free(place->real);
}

static bool same_text(const struct place *a, const struct place *b)
{
    return a->text && b->text && strcmp(a->text, b->text) == 0;
}

static bool same_real(const struct place *a, const struct place *b)
{
    return a->list == b->list && a->real && b->real && strcmp(a->real, b->real) == 0;
}

bool place_same(const char *a, const char *b)
{
    struct place one, two;
    place_open(&one, a, true);
    place_open(&two, b, true);
    const bool same = same_text(&one, &two) || same_real(&one, &two);
    place_close(&one);
    place_close(&two);
    return same;
}

/* --- an update ------------------------------------------------------------------------------- */

/* Some SOURCEs, and their numbers in the order of their texts and of their real paths: a shell's
 * pattern can give ten thousands. */
struct index {
    struct place *place;
    unsigned *by_text, *by_real;
    unsigned count;
};

static int compare_names(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) : (a != NULL) - (b != NULL);
}

static int compare_texts(const void *a, const void *b, void *context)
{
    const struct place *place = context;
    const unsigned i = *(const unsigned *)a, j = *(const unsigned *)b;
    const int order = compare_names(place[i].text, place[j].text);
    return order ? order : (i > j) - (i < j);
}

static int compare_reals(const void *a, const void *b, void *context)
{
    const struct place *place = context;
    const unsigned i = *(const unsigned *)a, j = *(const unsigned *)b;
    const int order = compare_names(place[i].real, place[j].real);
    return order ? order : (i > j) - (i < j);
}

static bool index_open(struct index *index, const char *const *source, unsigned count, bool stored)
{
    *index = (struct index){.place = calloc(count + 1, sizeof *index->place),
                            .by_text = calloc(count + 1, sizeof *index->by_text),
                            .by_real = calloc(count + 1, sizeof *index->by_real)};
    if (!index->place || !index->by_text || !index->by_real)
        return false;
    for (; index->count < count; index->count++) {
        const unsigned i = index->count;
        place_open(&index->place[i], source[i], stored);
        index->by_text[i] = index->by_real[i] = i;
    }
    qsort_r(index->by_text, count, sizeof *index->by_text, compare_texts, index->place);
    qsort_r(index->by_real, count, sizeof *index->by_real, compare_reals, index->place);
    return true;
}

static void index_close(struct index *index)
{
    for (unsigned i = 0; i < index->count; i++)
        place_close(&index->place[i]);
    free(index->place);
    free(index->by_text);
    free(index->by_real);
}

static const char *name_of(const struct place *place, bool real)
{
    return real ? place->real : place->text;
}

/* The first one below number `below` with this text, or this real path, which is not taken. */
static unsigned search(const struct index *index, const struct place *wanted, bool real,
                       unsigned below, const bool *taken)
{
    const unsigned *order = real ? index->by_real : index->by_text;
    unsigned first = 0, last = index->count;
    if (!name_of(wanted, real))
        return index->count;
    while (first < last) {
        const unsigned middle = first + (last - first) / 2;
        if (compare_names(name_of(&index->place[order[middle]], real), name_of(wanted, real)) < 0)
            first = middle + 1;
        else
            last = middle;
    }
    for (; first < index->count; first++) {
        const unsigned i = order[first];
        const struct place *place = &index->place[i];
        if (compare_names(name_of(place, real), name_of(wanted, real)) != 0)
            break;
        if (i < below && !(taken && taken[i]) && place->list == wanted->list)
            return i;
    }
    return index->count;
}

/* The first of the places below number `below` that is `wanted`; one that is spelled the same goes
 * first. Those that are taken are passed over. index->count: there is none. */
static unsigned find_place(const struct index *index, const struct place *wanted, unsigned below,
                           const bool *taken)
{
    const unsigned at = search(index, wanted, false, below, taken);
    return at < index->count ? at : search(index, wanted, true, below, taken);
}

/* "a, b and 3 more" */
static const char *list_sources(char *text, size_t size, const char *const *sources, unsigned count)
{
    size_t used = 0;
    char shown[80];
    text[0] = 0;
    for (unsigned i = 0; i < count && i < 5 && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "",
                                 path_for_message(shown, sizeof shown, sources[i]));
    if (count > 5 && used < size)
        snprintf(text + used, size - used, " and %u more", count - 5);
    return text;
}

struct merge {
    const char *const *theirs;
    const char *const *given;
    const char *const *drop;
    unsigned their_count, given_count, drop_count;
    struct index their_place, given_place, drop_place;
    bool *dropped, *taken; /* of theirs: taken by one of the command */
    unsigned *taker;       /* of theirs: by which */
};

static enum status mark_dropped(struct merge *m, struct error *err)
{
    char shown[256], names[512];
    for (unsigned i = 0; i < m->drop_count; i++) {
        path_for_message(shown, sizeof shown, m->drop[i]);
        const struct place *place = &m->drop_place.place[i];
        if (find_place(&m->given_place, place, m->given_count, NULL) < m->given_count)
            return error_set(err, STATUS_USAGE, "the source %s is given and to be dropped", shown);
        const unsigned at = find_place(&m->their_place, place, m->their_count, m->dropped);
        if (at == m->their_count)
            return error_set(err, STATUS_USAGE,
                             "the file has no source %s to drop; its sources: %s", shown,
                             m->their_count > 0
                                 ? list_sources(names, sizeof names, m->theirs, m->their_count)
                                 : "none");
        m->dropped[at] = m->taken[at] = true;
    }
    return STATUS_OK;
}

static enum status merge_all(struct places *out, struct merge *m, struct error *err)
{
    const unsigned most = m->their_count + m->given_count;
    if (mark_dropped(m, err))
        return err->status;
    bool *repeated = calloc(m->given_count + 1, sizeof *repeated);
    bool *found = calloc(m->given_count + 1, sizeof *found);
    out->stored = calloc(most + 1, sizeof *out->stored);
    out->walked = calloc(most + 1, sizeof *out->walked);
    out->earlier = calloc(most + 1, sizeof *out->earlier);
    out->texts = calloc(most + 1, sizeof *out->texts);
    enum status status = STATUS_FAILED;
    if (!repeated || !found || !out->stored || !out->walked || !out->earlier || !out->texts) {
        error_memory(err, most * sizeof *out->stored, "the sources");
        goto out;
    }
    for (unsigned i = 0; i < m->given_count; i++) {
        const struct place *place = &m->given_place.place[i];
        const unsigned at = find_place(&m->their_place, place, m->their_count, m->taken);
        if (at < m->their_count) {
            m->taken[at] = found[i] = true;
            m->taker[at] = i;
        } else if (find_place(&m->given_place, place, i, NULL) < i) {
            repeated[i] = true;
            out->repeated++;
        }
    }
    for (unsigned i = 0; i < m->their_count; i++) {
        if (m->dropped[i]) {
            out->dropped++;
            continue;
        }
        out->stored[out->count] = m->theirs[i];
        out->earlier[out->count] = (int)i;
        out->walked[out->count] = m->taken[i] ? m->given[m->taker[i]] : NULL;
        out->unwalked += !m->taken[i];
        out->count++;
    }
    for (unsigned i = 0; i < m->given_count; i++) {
        if (found[i] || repeated[i])
            continue;
        out->texts[out->count] = place_text(m->given[i]);
        if (!out->texts[out->count]) {
            error_memory(err, strlen(m->given[i]), "a source");
            goto out;
        }
        out->stored[out->count] = out->texts[out->count];
        out->earlier[out->count] = -1;
        out->walked[out->count] = m->given[i];
        out->added++;
        out->count++;
    }
    status = out->count > 0
                 ? STATUS_OK
                 : error_set(err, STATUS_USAGE,
                             "no source would be left: remove the file instead, or give a SOURCE");
out:
    free(repeated);
    free(found);
    return status;
}

enum status places_update(struct places *out, const char *const *theirs, unsigned their_count,
                          const char *const *given, unsigned given_count, const char *const *drop,
                          unsigned drop_count, struct error *err)
{
    struct error own = ERROR_INIT;
    struct merge m = {.theirs = theirs,
                      .given = given,
                      .drop = drop,
                      .their_count = their_count,
                      .given_count = given_count,
                      .drop_count = drop_count,
                      .dropped = calloc(their_count + 1, sizeof(bool)),
                      .taken = calloc(their_count + 1, sizeof(bool)),
                      .taker = calloc(their_count + 1, sizeof(unsigned))};
    *out = (struct places){.count = 0};
    const bool opened = m.dropped && m.taken && m.taker &&
                        index_open(&m.their_place, theirs, their_count, true) &&
                        index_open(&m.given_place, given, given_count, false) &&
                        index_open(&m.drop_place, drop, drop_count, false);
    enum status status = opened ? merge_all(out, &m, &own)
                                : error_memory(&own, their_count + given_count, "the sources");
    if (status && err)
        *err = own;
    index_close(&m.their_place);
    index_close(&m.given_place);
    index_close(&m.drop_place);
    free(m.dropped);
    free(m.taken);
    free(m.taker);
    return status;
}

static int compare_paths(const void *a, const void *b)
{
    return compare_names(*(char *const *)a, *(char *const *)b);
}

unsigned places_nested(char inner[256], char outer[256], const struct places *places)
{
    char **real = calloc(places->count + 1, sizeof *real);
    unsigned count = 0, above = 0;
    for (unsigned i = 0; real && i < places->count; i++) {
        const char *name = places->walked[i] ? places->walked[i] : places->stored[i];
        char *path = is_special(name) ? NULL : realpath(name, NULL);
        if (!path || asprintf(&real[i], "%s/", strcmp(path, "/") == 0 ? "" : path) < 0)
            real[i] = NULL;
        free(path);
    }
    /* With slashes at their ends, what lies below a directory follows it. */
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
    for (unsigned i = 0; places->texts && i < places->count + 1; i++)
        free(places->texts[i]);
    free(places->texts);
    free(places->stored);
    free(places->walked);
    free(places->earlier);
    *places = (struct places){.count = 0};
}

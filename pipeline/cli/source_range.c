/* source_range.c: ranges of numbers in names. */
#include "cli/source_range.h"

#include "base/path.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DIGITS_MAX 9

struct range {
    const char *open, *behind; /* the '{', and behind the '}' */
    unsigned first, last;
    int width;
};

/* Reads decimal digits; returns how many. */
static int read_number(unsigned *out, const char *text)
{
    const int digits = (int)strspn(text, "0123456789");
    *out = digits > 0 && digits <= DIGITS_MAX ? (unsigned)strtoul(text, NULL, 10) : 0;
    return digits <= DIGITS_MAX ? digits : 0;
}

/* The first range of the name. */
static bool find_range(struct range *out, const char *name)
{
    for (const char *open = strchr(name, '{'); open; open = strchr(open + 1, '{')) {
        *out = (struct range){.open = open};
        const int digits = read_number(&out->first, open + 1);
        const char *dots = open + 1 + digits;
        if (digits == 0 || strncmp(dots, "..", 2) != 0)
            continue;
        const int more = read_number(&out->last, dots + 2);
        if (more == 0 || dots[2 + more] != '}')
            continue;
        if (open[1] == '0' || dots[2] == '0')
            out->width = digits > more ? digits : more;
        out->behind = dots + 2 + more + 1;
        return true;
    }
    return false;
}

struct expansion {
    char **made;
    unsigned count, room, most;
};

static enum status add_name(struct expansion *expansion, char *name, struct error *err)
{
    if (expansion->count == expansion->room) {
        const unsigned room = expansion->room ? 2 * expansion->room : 64;
        char **larger = realloc(expansion->made, room * sizeof *larger);
        if (!larger) {
            free(name);
            return error_memory(err, room * sizeof *larger, "the sources");
        }
        expansion->made = larger;
        expansion->room = room;
    }
    expansion->made[expansion->count++] = name;
    return STATUS_OK;
}

/* Adds what the name stands for. */
static enum status expand_name(struct expansion *expansion, const char *name, struct error *err)
{
    struct range range;
    enum status status = STATUS_OK;
    if (!find_range(&range, name)) {
        char *copy = strdup(name);
        return copy ? add_name(expansion, copy, err)
                    : error_memory(err, strlen(name) + 1, "the sources");
    }
    const int step = range.first <= range.last ? 1 : -1;
    for (unsigned i = range.first; status == STATUS_OK; i += (unsigned)step) {
        char *one;
        if (expansion->count >= expansion->most)
            return error_set(err, STATUS_USAGE,
                             "a range of SOURCEs stands for more than %u names: write them to a file "
                             "and give @FILE",
                             expansion->most);
        if (asprintf(&one, "%.*s%0*u%s", (int)(range.open - name), name, range.width, i,
                     range.behind) < 0)
            return error_memory(err, strlen(name) + 16, "the sources");
        status = expand_name(expansion, one, err);
        free(one);
        if (i == range.last)
            break;
    }
    return status;
}

enum status source_range_expand(const char ***names, unsigned *count, char ***made,
                                unsigned *made_count, unsigned most, struct error *err)
{
    struct expansion expansion = {.most = most};
    enum status status = STATUS_OK;
    bool any = false;
    for (unsigned i = 0; i < *count; i++)
        any |= find_range(&(struct range){0}, (*names)[i]);
    if (!any)
        return STATUS_OK;
    for (unsigned i = 0; i < *count && status == STATUS_OK; i++) {
        const char *name = (*names)[i];
        struct stat st;
        if (name[0] != '@' && path_stat_at(AT_FDCWD, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
            status = expand_name(&expansion, name, err);
        } else {
            char *copy = strdup(name);
            status = copy ? add_name(&expansion, copy, err)
                          : error_memory(err, strlen(name) + 1, "the sources");
        }
    }
    *made = expansion.made;
    *made_count = expansion.count;
    const char **all = status == STATUS_OK ? calloc(expansion.count + 1, sizeof *all) : NULL;
    if (status == STATUS_OK && !all)
        status = error_memory(err, expansion.count * sizeof *all, "the sources");
    if (status != STATUS_OK)
        return status;
    for (unsigned i = 0; i < expansion.count; i++)
        all[i] = expansion.made[i];
    free(*names);
    *names = all;
    *count = expansion.count;
    return STATUS_OK;
}

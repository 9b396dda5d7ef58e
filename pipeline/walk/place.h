/* place.h: which SOURCEs are the same place, and what an update makes of a file's sources.
 *
 * A place is what a SOURCE leads to from the working directory: "photos", "photos/", "./photos", its
 * absolute name and a symbolic link to it are one. "@LIST" is the place of the file LIST, whatever
 * it lists, and never that of a directory; "-" is a place of its own. Names that lead nowhere are
 * compared as texts. */
#ifndef CLPIPE_WALK_PLACE_H
#define CLPIPE_WALK_PLACE_H

#include "base/error.h"
#include <stdbool.h>

/* SOURCE without doubled and trailing slashes and leading "./", as UTF-8 text (path_to_utf8): the
 * form that files store. A relative one stays relative. Free it; NULL: out of memory. */
char *place_text(const char *source);

/* Whether two SOURCEs, as place_text gives them, are one place. */
bool place_same(const char *a, const char *b);

/* The sources of a file after an update: those of before that stay, in their order, then those that
 * the command adds, in its order. */
struct places {
    unsigned count;
    const char **stored; /* as the file stores them */
    const char **walked; /* as the command spells them; NULL: not walked, its rows stay */
    int *earlier;        /* the source's number in the file before; -1: it is new */
    unsigned added, dropped, unwalked;
    unsigned repeated; /* SOURCEs of the command that are the place of another one */
    char **texts;      /* what `stored` points to, where it is new */
};

/* `theirs`: the file's sources, none for a new file; `given`: the command's; `drop`: those to be
 * removed. Both must outlive `out`. STATUS_USAGE: what is to be dropped is not in the file, is given
 * as well, or leaves nothing. Clear it also after a failure. */
enum status places_update(struct places *out, const char *const *theirs, unsigned their_count,
                          const char *const *given, unsigned given_count, const char *const *drop,
                          unsigned drop_count, struct error *err);
void places_clear(struct places *places);

/* How many of the sources lie below another one, and, if any, the names of such two for a message. */
unsigned places_nested(char inner[256], char outer[256], const struct places *places);

#endif

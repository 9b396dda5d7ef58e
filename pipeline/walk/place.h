/* place.h: which SOURCEs are the same place, and what an update makes of a file's sources.
 *
 * A place is what a SOURCE leads to from the directory that it was given in: "photos", "photos/", "./photos",
 * its absolute name and a symbolic link to it are one, "photos" in another directory is none of them.
 * "@LIST" is the place of the file LIST, whatever it lists, and never that of a directory; "-" is a place of
 * its own. Names that lead nowhere are compared as texts. */
#ifndef CLPIPE_WALK_PLACE_H
#define CLPIPE_WALK_PLACE_H

#include "base/error.h"
#include <stdbool.h>

/* SOURCE without doubled and trailing slashes and leading "./", as UTF-8 text (path_to_utf8): the
 * form that files store. A relative one stays relative. Free it; NULL: out of memory. */
char *place_text(const char *source);

/* SOURCEs as files store them: texts of place_text, and of path_working_directory for where each was given (""
 * or NULL: unknown; the working directory is taken). */
struct stored_sources {
    const char *const *source, *const *directory;
    unsigned count;
};

/* The sources of a file after an update: those of before that stay, in their order, then those that
 * the command adds, in its order. */
struct places {
    unsigned count;
    const char **stored;    /* as the file stores them */
    const char **directory; /* where each was given; what it lists is looked up from there */
    const char **walked; /* as the command spells them; NULL: not walked, its rows stay */
    char **path;         /* bytes that lead to it from here, where it is not new */
    int *earlier;        /* the source's number in the file before; -1: it is new */
    unsigned added, dropped, unwalked;
    unsigned repeated; /* SOURCEs of the command that are the place of another one */
    char **texts;      /* what `stored` points to, where it is new */
    char *working;
};

/* `theirs`: the file's sources, none for a new file; `given`: the command's; `drop`: those to be
 * removed; `moved`: the one that is now the only one of `given` that the file lacks, or NULL. All must outlive
 * `out`. STATUS_USAGE: what is to be dropped or has moved is not in the file, or is given as well; nothing is
 * left; what is given has the name of a source of the file, but is another place. Clear it also after a
 * failure. */
enum status places_update(struct places *out, const struct stored_sources *theirs,
                          const char *const *given, unsigned given_count, const char *const *drop,
                          unsigned drop_count, const char *moved, struct error *err);
void places_clear(struct places *places);

/* An update that was interrupted goes on, however the sources that it adds are spelled now: they are stored as
 * in `log`, which must outlive them, if all are the same places. */
enum status places_spell(struct places *places, const struct stored_sources *log,
                         struct error *err);

/* How many of the sources lie below another one, and, if any, the names of such two for a message. */
unsigned places_nested(char inner[256], char outer[256], const struct places *places);

#endif

/* place.h: decides which SOURCEs are the same place, and computes a file's sources after an update.
 *
 * The place of a SOURCE depends on the directory in which it was given: "photos", "photos/",
 * "./photos", its absolute path and a symbolic link to it are the same, while "photos" in another
 * directory is not. The place of "@LIST" is that of the file LIST, whatever it contains, and
 * differs from that of a directory; "-" is a separate place. Names of missing files are compared as
 * text. */
#ifndef CLPIPE_SOURCES_PLACE_H
#define CLPIPE_SOURCES_PLACE_H

#include "base/error.h"
#include "base/held.h"

/* SOURCE without repeated and trailing slashes and leading "./", as UTF-8 text (path_to_utf8), in
 * the form stored in files. Relative names stay relative. The caller frees it; NULL: out of
 * memory. */
char *place_text(const char *source);

/* SOURCEs as stored in files: texts from place_text, and the directory in which each was given,
 * from path_working_directory ("" or NULL: unknown; the working directory is used). */
struct stored_sources {
    const char *const *source, *const *directory;
    unsigned count;
};

/* The sources of a file after an update: remaining old ones in their order, then new ones in the
 * command's order. */
struct places {
    unsigned count;
    const char **stored;    /* as stored in the file */
    const char **directory; /* where each was given; paths of lists are relative to it */
    const char **walked;    /* as spelled in the command; NULL: unread, rows are kept */
    char **path;            /* path from here, if not new */
    int *source_before;     /* number in the existing file; -1: new */
    unsigned added, dropped, unread;
    unsigned repeated; /* SOURCEs of the command with the same place as another one */
    char **texts;      /* owned texts that `stored` points to, for new ones */
    char *working;
    struct held held; /* the arrays */
};

/* `theirs`: the file's sources, empty for a new file; `given`: the command's; `drop`: those to
 * remove; `moved`: the source whose place is now the only one of `given` that the file lacks, or
 * NULL. All must outlive `out`. STATUS_USAGE: a dropped or moved source is not in the file or is
 * also given; no sources remain; a given source has the name of one in the file but is a different
 * place. Call places_clear even after a failure. */
enum status places_update(struct places *out, const struct stored_sources *theirs,
                          const char *const *given, unsigned given_count, const char *const *drop,
                          unsigned drop_count, const char *moved, struct error *err);
void places_clear(struct places *places);

/* For resuming an interrupted update when the added sources are spelled differently: stores them as
 * in `log`, which must outlive `places`, if all are the same places. */
enum status places_spell(struct places *places, const struct stored_sources *log,
                         struct error *err);

/* The number of sources below another one, and the names of two such sources for a message. */
unsigned places_nested(char inner[256], char outer[256], const struct places *places);

#endif

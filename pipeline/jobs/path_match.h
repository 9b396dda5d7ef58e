/* path_match.h: which row of a matrix belongs to which image, by path.
 *
 * A path of the list is an image's if it is
 *   - its path in the file, relative to its source;
 *   - the same with the source, as given, in front ("photos/a.jpg");
 *   - the absolute form of that, in the working directory (with or without symbolic links in the
 *     source resolved) or in the directory where the source was given. */
#ifndef CLPIPE_JOBS_PATH_MATCH_H
#define CLPIPE_JOBS_PATH_MATCH_H

#include "jobs/path_list.h"
#include "result/result.h"

struct path_match {
    uint64_t *row;    /* per image: the index of its path; PATH_LIST_NONE: none */
    uint64_t missing; /* images without a path */
    uint64_t unused;  /* paths without an image, each time that they occur */
    /* The first three of each, separated by commas. */
    char first_missing[320], first_unused[320];
};

/* STATUS_FAILED: a path matches several images or, unless list->repeats, an image several paths (with
 * the number and the first three), or no path matches. Clear it even after a failure. */
enum status path_match_make(struct path_match *out, const struct path_list *list,
                            struct result *result, struct error *err);
/* A notice of paths without an image, if there are any. */
void path_match_tell_unused(const struct path_match *match, const struct path_list *list);
/* Frees the rows and zeroes the struct. */
void path_match_clear(struct path_match *match);

#endif

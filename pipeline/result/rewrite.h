/* rewrite.h: a result file from its beginning to its end, in one way for all commands: rows of inputs in
 * the order of a list (move_rows.h), then what else the file has.
 *
 *   logs, finished files ─> lists of rows ─> columns and features ─┐
 *   content: parameters, sources, codebooks ───────────────────────┼─> F.h5.tmp ─> sync ─> rename
 *   the file that is replaced: objects, runs, data of others ──────┘ */
#ifndef CLPIPE_RESULT_REWRITE_H
#define CLPIPE_RESULT_REWRITE_H

#include "result/content.h"
#include "result/foreign.h"
#include "result/row_inputs.h"
#include "result/sidecars.h"

struct carry;
struct row_map;

/* Files whose rows are shown (parts.h) instead of being copied. */
struct rewrite_refer {
    const struct part *part;
    unsigned count;
};

struct rewrite {
    const char *output;
    bool unnamed; /* `output` is the path of an open file without a name, which gets no other one */
    const struct content *content;
    const struct row_input *input;
    const struct row_list *images, *failures;
    bool codes;                        /* all images have one: /images/code is written */
    bool compress;                     /* features are deflated */
    unsigned threads;                  /* that read, deflate and write rows */
    const struct rewrite_refer *refer; /* NULL: all rows are in the file */
    struct sidecars
        *sidecars; /* what lies beside the pictures, in the order of the rows; NULL: nothing */
    const struct store_run *run;
    int64_t
        began; /* clock_now() when it began, from which its seconds are counted; 0: it has them */
    /* The file that is there now, or NULL: what others have stored in it is kept. */
    struct result *replaced;
    const struct row_map *map; /* where `replaced` is: which of its rows each row was */
    /* other objects kept from `replaced` (this sets its file and path); NULL: none */
    struct carry *carry;
    struct result *classes_of; /* without `carry`: result whose classes are copied; NULL: none */
    struct result *runs_of;    /* the result whose runs precede this one; NULL: none */
    struct stop *stop;         /* may be NULL */
    void (*progress)(void *context, uint64_t done, uint64_t total);
    void *progress_context;
};

struct rewrite_report {
    struct foreign_copied foreign;
    uint64_t run; /* the number of this run */
};

/* Writes the file; nothing under its name has changed after a failure. */
enum status rewrite_file(struct rewrite_report *report, const struct rewrite *rewrite,
                         struct error *err);

#endif

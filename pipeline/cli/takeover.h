/* takeover.h: what an ingest takes over from the file that it updates, or from the unfinished run
 * that it resumes: sources, features, and every option that the command line does not give. */
#ifndef CLPIPE_CLI_TAKEOVER_H
#define CLPIPE_CLI_TAKEOVER_H

#include "cli/ingest_options.h"
#include "result/codebooks.h"
#include "result/signature.h"
#include "sources/place.h"

struct takeover {
    bool file;                  /* there is a file to update */
    bool unfinished;            /* there is no file, but a log of an unfinished run */
    struct signature_parts old; /* what the file or the log was made from */
    bool too_alike; /* the images of the file were too few or too much alike to learn the preset's
                     * features */
    struct codebooks codebooks; /* of its features */
    /* From the files named by SPECs of the command (codebook=FILE). */
    struct codebooks given[FEATURE_MAX];
    unsigned given_count;
    struct parameters *parameters; /* those of `old` */

    struct ingest_options
        options;             /* the command's, completed by those of the file; its pointers belong
                              * to the command or to this struct */
    struct list_share share; /* index and count: of the command, else of the file */
    uint64_t limit;          /* used for the file; 0: none */
    struct places places;
    struct signature_parts log; /* of the resumed run; zeroed: there is none */
};

/* Reads the output of a command with these options, if it exists and --fresh is not given. The store refuses files
 * that cannot be updated. Close it even after a failure. */
enum status takeover_open(struct takeover *out, const struct ingest_options *given,
                          struct error *err);
void takeover_close(struct takeover *takeover);

/* The features of the new file: those of the existing one in its order, then, with --add, those of
 * the command that it lacks. Without an existing file, those of the command: its SPECs, else
 * `specs`. Codebooks come from the file or from the file named by a SPEC and belong to `t`; with
 * --retrain, and for new features, they are still missing. Normalisation and blur missing from a
 * SPEC are those of the file's feature of that name. *first: the name of the first feature that the
 * command gives, or that the file has. STATUS_USAGE: the file lacks one and --add is not given, or
 * has another one of that name. */
enum status takeover_features(struct feature_set *all, char first[FEATURE_NAME_MAX],
                              struct takeover *t, const char *const *specs, unsigned count,
                              struct error *err);

/* Appends to an error: the command as it was typed, with --add. */
void takeover_advise_add(struct error *err, const struct takeover *t);

/* Whether the command raises a limit on files (--max-pixels...) above the file's. */
bool takeover_raises_limits(const struct takeover *t);

/* STATUS_USAGE: an option that affects values differs from the file's, unless it raises a limit. */
enum status takeover_check(const struct takeover *t, struct error *err);

/* Prints notices about what an update does to the sources. */
void takeover_tell(const struct takeover *t);

#endif

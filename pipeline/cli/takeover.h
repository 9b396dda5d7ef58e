/* takeover.h: what an ingest takes over from the file that it updates, or from the unfinished run
 * that it resumes: sources, features, and every option that the command line does not give. */
#ifndef CLPIPE_CLI_TAKEOVER_H
#define CLPIPE_CLI_TAKEOVER_H

#include "cli/ingest_options.h"
#include "result/codebooks.h"
#include "result/parameters.h"
#include "result/signature.h"
#include "sources/place.h"

struct takeover {
    bool file;                  /* there is a file to update */
    bool unfinished;            /* there is no file, but a log of an unfinished run */
    struct signature_parts old; /* what the file or the log was made from */
    bool too_alike; /* the file's images were, or too small, to learn the features of the preset */
    struct codebooks codebooks; /* of its features */
    /* Of the files that SPECs of the command name (codebook=FILE). */
    struct codebooks given[FEATURE_MAX];
    unsigned given_count;
    struct parameters *parameters; /* those of `old` */

    struct ingest_options
        options;             /* the command's, completed by those of the file; what it points to is
                               the command's or this struct's */
    struct list_share share; /* index and count: of the command, or else of the file */
    uint64_t limit;          /* that the file was made with; 0: none */
    struct places places;
    struct signature_parts log; /* of the run that is resumed; zeroed: there is none */
};

/* Reads options->output, if it is there and nothing speaks against it (--fresh). A file that cannot
 * be updated at all is left for the store to refuse. Close it also after a failure. */
enum status takeover_open(struct takeover *out, const struct options *options, struct error *err);
void takeover_close(struct takeover *takeover);

/* The features of the file to be: those of the file in its order, then, with --add, those of the
 * command that it lacks; without a file the command's: of its SPECs, or `specs` where it has none.
 * Codebooks are those of the file, or of the file that a SPEC names; with --retrain, and of features
 * that are new, there are none yet. They belong to `t`. What a SPEC does not say of normalisation and
 * blur is as in the file's feature of that name. *first: the name of the first feature that the
 * command gives, or that the file has. STATUS_USAGE: without --add the file lacks one, or has
 * another one of that name. */
enum status takeover_features(struct feature_set *all, char first[FEATURE_NAME_MAX],
                              struct takeover *t, const char *const *specs, unsigned count,
                              const struct options *options, struct error *err);

/* Appends to an error: the command as it was typed, with --add. */
void takeover_advise_add(struct error *err, const struct options *options);

/* Whether the command raises a limit on files that the file was made with (--max-pixels...). */
bool takeover_raises_limits(const struct takeover *t);

/* STATUS_USAGE where the command gives an option that shapes values otherwise than the file has it,
 * unless it raises a limit. */
enum status takeover_check(const struct takeover *t, const struct options *options,
                           struct error *err);

/* Notices of what an update does to the sources. */
void takeover_tell(const struct takeover *t, const struct options *options);

#endif

/* codebooks.h: stored codebooks of features: in a file, as /codebooks/NAME, and beside the log of
 * an unfinished run. */
#ifndef CLPIPE_RESULT_CODEBOOKS_H
#define CLPIPE_RESULT_CODEBOOKS_H

#include "features/codebook.h"
#include "result/result.h"
#include <hdf5.h>

/* Their owner. Features that are bound to them must not outlive it, and it must not move. */
struct codebooks {
    struct stored_codebook {
        char name[FEATURE_NAME_MAX];                  /* of the feature that it was learned for */
        char spec[sizeof((struct feature *)0)->spec]; /* what was asked for: without codebook= */
        struct feature_codebook codebook;
    } * stored; /* FEATURE_MAX of them; NULL: none */
    unsigned count;
};
void codebooks_clear(struct codebooks *codebooks);

/* The specification without codebook=: what was asked for. */
void codebooks_spec_asked(char *asked, size_t size, const char *spec);

/* Takes over a codebook that was learned for a feature, and binds it; *codebook is empty then. */
enum status codebooks_add(struct codebooks *codebooks, struct feature *feature,
                          struct feature_codebook *codebook, struct error *err);

/* Reads those of a file, all of them or (`name`) one; there may be none. STATUS_FAILED: one is damaged:
 * its values are not those of its digest. */
enum status codebooks_read(struct codebooks *out, struct result *result, const char *name,
                           struct error *err);

/* Binds every feature that names a digest and has no codebook to the codebook of that digest.
 * STATUS_FAILED: `where` has none. */
enum status codebooks_bind(const struct codebooks *codebooks, struct feature_set *features,
                           const char *where, struct error *err);

/* Binds a feature to the codebook among them that fits: that of its name, else the only one.
 * STATUS_USAGE: none fits, or several. */
enum status codebooks_choose(const struct codebooks *codebooks, struct feature *feature,
                             const char *where, struct error *err);

/* Writes a file that holds nothing but the codebooks of the features, and `parameters` (JSON). */
enum status codebooks_write_file(const char *output, const struct feature_set *features,
                                 const char *parameters, struct error *err);

/* /codebooks of a file that is written: those of the features that have one; no group where none has. */
enum status codebook_groups_write(hid_t file, const struct feature_set *features, const char *path,
                                  struct error *err);
/* Each codebook can be used and is that of its digest; each feature that names one has it. */
struct verify;
enum status codebook_groups_verify(struct verify *verify, struct error *err);

/* A file of its own beside a log, in a work directory: complete or not at all, whenever the process is killed. Reading gives
 * none where nothing was written. */
enum status codebooks_write_log(const struct feature_set *features, const char *directory,
                                struct error *err);
enum status codebooks_read_log(struct codebooks *out, const char *directory, struct error *err);

#endif

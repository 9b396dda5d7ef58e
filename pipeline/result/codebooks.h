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
        char name[FEATURE_NAME_MAX];                  /* of the feature for which it was learned */
        char spec[sizeof((struct feature *)0)->spec]; /* as requested: without codebook= */
        struct feature_codebook codebook;
    } * stored; /* FEATURE_MAX of them; NULL: none */
    unsigned count;
};
void codebooks_clear(struct codebooks *codebooks);

/* The specification as requested: without codebook=. */
void codebooks_spec_asked(char *asked, size_t size, const char *spec);

/* Takes ownership of a codebook learned for a feature, leaving *codebook empty, and binds it. */
enum status codebooks_add(struct codebooks *codebooks, struct feature *feature,
                          struct feature_codebook *codebook, struct error *err);

/* Reads the codebooks of a file: all, or the one called `name`; there may be none. STATUS_FAILED: one
 * is damaged, or its values do not match its digest. */
enum status codebooks_read(struct codebooks *out, struct result *result, const char *name,
                           struct error *err);

/* Binds every feature whose specification has a digest, and that has no codebook, to the codebook
 * with that digest. STATUS_FAILED: `where` has none. */
enum status codebooks_bind(const struct codebooks *codebooks, struct feature_set *features,
                           const char *where, struct error *err);

/* Binds a feature to the matching codebook: the one with its name, else the only one. STATUS_USAGE:
 * none matches, or several do. */
enum status codebooks_choose(const struct codebooks *codebooks, struct feature *feature,
                             const char *where, struct error *err);

/* Writes a file with only the codebooks of the features and `parameters` (JSON). */
enum status codebooks_write_file(const char *output, const struct feature_set *features,
                                 const char *parameters, struct error *err);

/* Writes /codebooks, with those of the features that have one; if none has, there is no group. */
enum status codebook_groups_write(hid_t file, const struct feature_set *features,
                                  struct error *err);
/* Verifies that each codebook is usable and matches its digest, and that no feature's codebook is
 * missing. */
struct verify;
enum status codebook_groups_verify(struct verify *verify, struct error *err);

/* Write and read a separate file beside a log, in a work directory; it is either complete or
 * missing, even if the process is killed. Without that file, reading returns no codebooks. */
enum status codebooks_write_log(const struct feature_set *features, const char *directory,
                                struct error *err);
enum status codebooks_read_log(struct codebooks *out, const char *directory, struct error *err);

#endif

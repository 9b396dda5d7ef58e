/* verify_report.h: the parts of verify that repair uses, and reports of problems. */
#ifndef CLPIPE_RESULT_VERIFY_REPORT_H
#define CLPIPE_RESULT_VERIFY_REPORT_H

#include "result/result_internal.h"

struct verify {
    struct result *result;
    void (*broken)(const char *line, void *context);
    void *context;
    uint64_t count;
    /* A byte for each row of /images and of /failures, set if the row itself is wrong (not just out
     * of order); may be NULL. */
    uint8_t *bad_images, *bad_failures;
    /* If those are not NULL: ranges in which checksums have found damaged rows. */
    struct verify_range {
        bool failures;
        bool unreadable; /* some cannot be read at all */
        uint64_t first, last;
    } * range;
    unsigned ranges;
};

/* Verifies images, failures and features. */
enum status verify_content(struct verify *verify, struct error *err);
/* Verifies one clustering, its sweep, and that it was made from its feature's rows. */
enum status verify_clustering(struct verify *verify, const struct result_clusters *clusters,
                              struct error *err);

/* Reports that an HDF5 call has failed since the file was opened, unless other problems were found: in an
 * intact file, none fails. */
void verify_calls(struct verify *verify);

/* Reports one broken invariant. */
void verify_broken(struct verify *verify, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif

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

/* Marks all rows of the ranges that are unreadable, or in which no other check has found the damaged
 * rows; frees the ranges. */
void verify_mark_ranges(struct verify *verify);

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

/* The data of `where` could not be read: reports that as damage if damage is the cause, else
 * returns the error. */
enum status verify_unreadable(struct verify *verify, const char *where, const struct error *why,
                              struct error *err);

/* Rows that break one rule, which are counted and reported in one line with the first of them. */
struct verify_rows {
    uint64_t count, first;
    uint8_t *bad; /* of the table, or NULL */
};
void verify_row(struct verify_rows *rows, uint64_t row);
/* "WHERE: 12 rows WHAT, the first is 7". */
void verify_report_rows(struct verify *verify, const struct verify_rows *rows, const char *where,
                        const char *what);

#endif

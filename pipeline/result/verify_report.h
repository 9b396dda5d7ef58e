/* verify_report.h: the parts of verify that repair uses, and how all say what is wrong. */
#ifndef CLPIPE_RESULT_VERIFY_REPORT_H
#define CLPIPE_RESULT_VERIFY_REPORT_H

#include "result/result_internal.h"

struct verify {
    struct result *result;
    void (*broken)(const char *line, void *context);
    void *context;
    uint64_t count;
    /* A byte for each row of /images and of /failures, set where something is wrong with the row
     * itself (not with its place among the others); may be NULL. */
    uint8_t *bad_images, *bad_failures;
    /* Where those are not NULL: rows of which some are damaged, by their checksums. */
    struct verify_range {
        bool failures;
        bool unreadable; /* some cannot be read at all */
        uint64_t first, last;
    } * range;
    unsigned ranges;
};

/* Sets all rows of those ranges that are unreadable, or in which nothing else has found the damaged ones,
 * and frees them. */
void verify_mark_ranges(struct verify *verify);

/* Images, failures and features. */
enum status verify_content(struct verify *verify, struct error *err);
/* One clustering, its sweep, and that it was made from the rows of its feature. */
enum status verify_clustering(struct verify *verify, const struct result_cluster_entry *entry,
                              struct error *err);

/* Reports that a call of HDF5 has failed since the file was opened, unless something else was found: of a
 * file that is whole none does. */
void verify_calls(struct verify *verify);

/* Reports one broken invariant. */
void verify_broken(struct verify *verify, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The data of `where` could not be read. If that is due to damage, it is reported like other
 * damage; else it is the error. */
enum status verify_unreadable(struct verify *verify, const char *where, const struct error *why,
                              struct error *err);

/* Rows that break one rule: they are counted, and reported as one line with the first of them. */
struct verify_rows {
    uint64_t count, first;
    uint8_t *bad; /* of the table, or NULL */
};
void verify_row(struct verify_rows *rows, uint64_t row);
/* "WHERE: 12 rows WHAT, the first is 7". */
void verify_report_rows(struct verify *verify, const struct verify_rows *rows, const char *where,
                        const char *what);

#endif

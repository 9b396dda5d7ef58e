/* pages_data.h: the steps of a report, which pages.c runs in order, and the data files they write. */
#ifndef CLPIPE_REPORT_PAGES_DATA_H
#define CLPIPE_REPORT_PAGES_DATA_H

#include "base/json.h"
#include "base/output_directory.h"
#include "jobs/thumbs.h"
#include "report/album.h"
#include "report/pages_config.h"
#include "result/flags.h"
#include "result/words.h"

/* Maximum number of a group's pictures on the first page. */
#define PAGES_STRIP 14u
/* Rows per data file. */
#define PAGES_CHUNK 1000u

struct pages {
    const struct pages_config *config;
    struct pages_counts *counts;
    struct result *result;
    const struct result_clusters *clusters; /* NULL: there are none */
    struct output_directory *directory;
    struct album album;
    enum grouping grouping;
    struct words *words; /* of the clusters and the pictures; NULL: there are none */

    struct thumbs *thumbs;
    struct sheet_grid grid;
    struct thumb_place *places;       /* per picture, in page order */
    struct thumb_place *strip_places; /* PAGES_STRIP per group, in group order */
    uint32_t strip_sheets;            /* sheets of strips come first */

    bool has_similar, has_map;
    char similar_feature[FEATURE_NAME_MAX]; /* the feature that defines similarity */
    char similar_note[512];                 /* why there are none, or "" */

    bool has_duplicates;
    uint64_t duplicates[3];    /* groups, by enum duplicates_kind */
    uint32_t near_limit;       /* maximum number of bits in which codes of near copies differ */
    char duplicates_note[512]; /* why there are none, or "" */

    struct flags flags; /* of quality */

    uint64_t by_reason[REASON_COUNT]; /* failures */
};

/* Data files are scripts that call clpipe(KIND, NUMBER, VALUE). script_begin: starts the value. */
void script_begin(struct json *json);
/* Writes the finished value as data/KIND.js, or data/KIND-NUMBER.js if `number` is not negative, and
 * clears it. Adds the size of the file to the counts. */
enum status script_write(struct json *json, const char *kind, int64_t number, struct pages *pages,
                         struct error *err);
/* A member with this many significant digits; NaN becomes null. */
void script_number(struct json *json, const char *key, double value, int digits);

/* sheets/NNNNN.jpg: thumbnails. */
enum status pages_make_sheets(struct pages *pages, struct error *err);
/* data/find-N.js */
enum status pages_make_addresses(struct pages *pages, struct error *err);
/* data/images-N.js */
enum status pages_make_images(struct pages *pages, struct error *err);
/* data/similar-N.js, data/map.js */
enum status pages_make_similar(struct pages *pages, struct error *err);
/* data/duplicates.js */
enum status pages_make_duplicates(struct pages *pages, struct error *err);
/* data/quality.js */
enum status pages_make_quality(struct pages *pages, struct error *err);
/* data/failures-N.js */
enum status pages_make_failures(struct pages *pages, struct error *err);
/* data/summary.js */
enum status pages_make_summary(struct pages *pages, struct error *err);

/* Whether to compare all rows, for similar pictures, and all codes, for near copies: not if it
 * would take more than minutes on two cores. */
bool pages_compare_rows(uint64_t rows, uint32_t dimension, const struct cluster_devices *devices);
bool pages_compare_codes(uint64_t images);

/* Frees everything except the result and the directory. */
void pages_clear(struct pages *pages);

#endif

/* pages_data.h: the steps of a report; pages.c runs them in order. */
#ifndef CLPIPE_REPORT_PAGES_DATA_H
#define CLPIPE_REPORT_PAGES_DATA_H

#include "base/output_directory.h"
#include "cluster/cluster_types.h"
#include "file/words.h"
#include "report/album.h"
#include "report/pages_config.h"
#include "thumbs/thumbs.h"

/* Pictures of a group on the first page, at most. */
#define PAGES_STRIP 14u
/* Rows in a data file. */
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
    struct thumb_place *places;       /* of each picture, in the order of the pages */
    struct thumb_place *strip_places; /* PAGES_STRIP of each group, in their order */
    uint32_t strip_sheets, sheets;    /* sheets of strips come first */

    bool has_similar, has_map;
    char similar_feature[FEATURE_NAME_MAX]; /* by which pictures are similar */
    char similar_note[512];                 /* why there are none, or "" */

    bool has_duplicates;
    uint64_t duplicates[3];    /* groups, by enum duplicates_kind */
    uint32_t near_limit;       /* bits by which codes of near ones differ at most */
    char duplicates_note[512]; /* why there are none, or "" */

    uint64_t failed, skipped; /* files; skipped: that are no images */
    uint64_t by_reason[REASON_COUNT];
};

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
/* data/failures-N.js */
enum status pages_make_failures(struct pages *pages, struct error *err);
/* data/summary.js */
enum status pages_make_summary(struct pages *pages, struct error *err);

/* Whether all rows are compared with each other, for similar pictures, and all codes, for near copies: not
 * where it would take more than minutes on two cores. */
bool pages_compare_rows(uint64_t rows, uint32_t dimension, const struct cluster_devices *devices);
bool pages_compare_codes(uint64_t images);

/* Frees everything but the result and the directory. */
void pages_clear(struct pages *pages);

#endif

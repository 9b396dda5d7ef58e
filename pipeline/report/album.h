/* album.h: the pictures of a report: their data and their order on the pages.
 *
 * A picture's place in that order is its number in the pages: group by group, and within a group by
 * distance from the centre. The number may differ in the next report; the id, used in addresses, is
 * a digest of source and path. A group is a cluster or, without a clustering, a folder or all
 * pictures. */
#ifndef CLPIPE_REPORT_ALBUM_H
#define CLPIPE_REPORT_ALBUM_H

#include "base/held.h"
#include "base/stop.h"
#include "result/result.h"
#include <stdint.h>

struct picture {
    uint64_t name; /* index of its shown path in the names, UTF-8 */
    uint64_t id, bytes;
    uint32_t width, height, folder;
    int32_t label;  /* its group; -1: none */
    float distance; /* length, to the centre; 0 without a clustering */
    uint16_t source;
    uint8_t format; /* a number below format_count */
};

struct picture_folder {
    uint64_t name; /* as shown, index in the names */
    uint64_t id;   /* of its source and path */
};

struct picture_group {
    int32_t label;                  /* of the cluster or folder; -1: pictures without a label */
    uint64_t first, size, outliers; /* the last `outliers` are far outside (Tukey's upper fence) */
    uint32_t folders;               /* number of distinct ones */
    struct {
        uint32_t folder;
        uint64_t count;
    } commonest[3]; /* by count; count 0: fewer */
};

#define ALBUM_FORMATS UINT8_MAX

struct album {
    uint64_t count;
    struct picture *row; /* indexed by the row in the file */
    uint64_t *order;     /* rows in the order of the pages */
    uint64_t *number;    /* per row: its place in that order */
    char *names;
    uint64_t names_used, names_room;

    struct picture_folder *folder;
    uint32_t folder_count;
    struct {
        char name[8];   /* NUL-padded */
        uint64_t count; /* of pictures */
    } format[ALBUM_FORMATS];
    unsigned format_count;
    uint64_t pixels, bytes;

    /* Groups, the largest first. */
    struct picture_group *group;
    uint32_t group_count;

    size_t *skip; /* per source: bytes at the beginning of its paths that are not shown */
    unsigned source_count;
    struct held held; /* row, order, number, group, skip */
};

enum grouping { GROUPS_CLUSTERS, GROUPS_FOLDERS, GROUPS_NONE };

/* Reads all rows and sorts them. clusters: to group by; NULL: groups by folder if there are 2 to
 * 1,000 and fewer than pictures, else makes one group; *how is the choice made. Clear it even after
 * a failure. STATUS_FAILED, STATUS_INTERRUPTED. */
enum status album_read(struct album *out, enum grouping *how, struct result *result,
                       const struct result_clusters *clusters, struct stop *stop,
                       struct error *err);
void album_clear(struct album *album);

static inline const char *album_name(const struct album *album, uint64_t row)
{
    return album->names + album->row[row].name;
}

/* A path as shown on pages: never absolute and, if the paths of its source lead outside it (as
 * those of lists may), without their common prefix. Points into `path`. */
const char *album_shown(const struct album *album, const char *path, unsigned source);

/* Copies the last component of a source, without slashes, to buffer and returns it; "" if the
 * source has no name. */
const char *album_source(char *buffer, size_t size, const char *source);

#endif

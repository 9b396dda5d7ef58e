/* album.h: the pictures of a report: what a page says about each, and the order in which
 * pages show them.
 *
 * A picture's place in that order is its number in the pages: groups follow each other, and within a
 * group its members, nearest to the centre first. The number is another in the next report; the id,
 * which addresses carry, is a digest of source and path. A group is a cluster; without a clustering, a folder
 * or all pictures. */
#ifndef CLPIPE_REPORT_ALBUM_H
#define CLPIPE_REPORT_ALBUM_H

#include "base/error.h"
#include "base/stop.h"
#include "file/result.h"
#include <stdint.h>

struct picture {
    uint64_t name; /* where its shown path begins in the names, UTF-8 */
    uint64_t id, bytes;
    uint32_t width, height, folder;
    int32_t label;  /* its group; -1: none */
    float distance; /* a length, to the centre; 0 without a clustering */
    uint16_t source;
    uint8_t format; /* a number below format_count */
};

struct picture_folder {
    uint64_t name; /* shown, in the names */
    uint64_t id;   /* of its source and path */
    uint64_t count;
};

struct picture_group {
    int32_t label; /* the number of the cluster or folder; -1: pictures without a label */
    uint64_t first, size, outliers; /* the last `outliers` are far outside (Tukey's upper fence) */
    uint32_t folders;               /* how many different ones */
    struct {
        uint32_t folder;
        uint64_t count;
    } commonest[3]; /* by count; count 0: fewer */
};

struct album {
    uint64_t count;
    struct picture *row; /* by the row in the file */
    uint64_t *order;     /* rows in the order of the pages */
    uint64_t *number;    /* of each row: its place in that order */
    char *names;
    uint64_t names_used, names_room;

    struct picture_folder *folder;
    uint32_t folder_count, folder_room;
    char (*format)[8];
    unsigned format_count;
    uint64_t *of_format; /* pictures of each */
    uint64_t pixels, bytes;

    /* Groups, the largest first. */
    struct picture_group *group;
    uint32_t group_count;

    size_t *skip; /* of each source: bytes at the beginning of its paths that are not shown */
    unsigned source_count;
};

enum grouping { GROUPS_CLUSTERS, GROUPS_FOLDERS, GROUPS_NONE };

/* Reads all rows and puts them in order. clusters: which to group by; NULL: by folder where there are
 * 2 to 1,000 of them and fewer than pictures, else one group; *how is told. Clear also after a
 * failure. */
enum status album_read(struct album *out, enum grouping *how, struct result *result,
                       const struct result_clusters *clusters, struct stop *stop,
                       struct error *err);
void album_clear(struct album *album);

static inline const char *album_name(const struct album *album, uint64_t row)
{
    return album->names + album->row[row].name;
}

/* A path as pages show it: never absolute, and without what all paths of its source have in common
 * where they lead outside of it (those of lists). Points into `path`. */
const char *album_shown(const struct album *album, const char *path, unsigned source);

/* The last component of a source, without its slashes; "" for one without a name. Into buffer,
 * returned. */
const char *album_source(char *buffer, size_t size, const char *source);

#endif

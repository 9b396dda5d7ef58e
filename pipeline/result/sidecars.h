/* sidecars.h: the sidecar files of pictures (base/sample_name.h), as columns of /images.
 *
 *     sidecars_add      for each picture of the walk, in its order: key and texts
 *     sidecars_row      for each image that gets a row, in the order of rows
 *     sidecars_columns  /images/key, cls, json, txt
 *
 * Texts are kept in unnamed files in `directory`, so memory does not grow with their number. cls is
 * int64 if all existing ones are decimal integers as printed by %lld, and text otherwise. Missing
 * texts are "" or SIDECAR_NO_CLS. Key and cls are UTF-8 (path_to_utf8), the others any bytes except
 * NUL. */
#ifndef CLPIPE_RESULT_SIDECARS_H
#define CLPIPE_RESULT_SIDECARS_H

#include "base/error.h"
#include "base/sample_name.h"
#include "result/result.h"

#define SIDECAR_NO_CLS     INT64_MIN
#define SIDECAR_NO_ROW     UINT64_MAX
#define SIDECAR_MOST_BYTES (1u << 20) /* longer ones count as missing */

#define SIDECAR_MOST_CLASS 1024u /* likewise of cls */

/* Columns: the key, then by enum sidecar. The last ones are blobs (blobs.h). */
#define SIDECAR_COLUMNS (1 + SIDECARS)
#define SIDECAR_BLOBS   2
extern const char *const sidecar_names[SIDECAR_COLUMNS];
extern const struct sidecar_blob {
    const char *group, *axis;
} sidecar_blob[SIDECAR_BLOBS];

struct sidecars;

enum status sidecars_open(struct sidecars **out, const char *directory, struct error *err);
void sidecars_close(struct sidecars **sidecars);

/* `text`: in the order of the columns; NULL or "": missing. */
enum status sidecars_add(struct sidecars *sidecars, uint16_t source, const char *path,
                         uint32_t path_length, const char *const text[SIDECAR_COLUMNS],
                         struct error *err);
/* Rows of the earlier file keep its texts if it has the columns and their pictures were not added.
 * Call it before the first row; `earlier` must outlive the last one. compare: the rows to come are those of the
 * file, in its order, for sidecars_same. */
enum status sidecars_keep(struct sidecars *sidecars, struct result *earlier, bool compare,
                          struct error *err);
/* `earlier_row`: its row in the earlier file, or SIDECAR_NO_ROW. Any other row whose picture was
 * not added has only a key. */
enum status sidecars_row(struct sidecars *sidecars, uint16_t source, const char *path,
                         uint32_t path_length, uint64_t earlier_row, struct error *err);
/* Whether the texts of all rows equal those of the earlier file. */
bool sidecars_same(const struct sidecars *sidecars);
/* The same with the texts themselves. */
enum status sidecars_row_of(struct sidecars *sidecars, const char *const text[SIDECAR_COLUMNS],
                            struct error *err);
/* After the last row: the columns to move (move_rows.h), valid until sidecars_close; their rows are those of one
 * input. */
struct move_column;
enum status sidecars_columns(struct move_column *column, struct sidecars *sidecars,
                             struct error *err);
/* Whether cls is a number. */
bool sidecars_numbered(const struct sidecars *sidecars);

/* The key of a picture in UTF-8; for a member, without the archive in front. The caller frees it;
 * NULL: no memory. */
char *sidecars_key(const char *path, size_t length);

/* --- reading --------------------------------------------------------------------------------- */

struct sidecar_reader;

/* Whether the file has the columns. */
bool sidecars_stored(const struct result *result);

/* *out is NULL if the file has none. */
enum status sidecar_reader_open(struct sidecar_reader **out, struct result *result,
                                struct error *err);
/* The texts of a row, "" if missing; an integer cls as %lld. Valid until the next call. */
enum status sidecar_reader_row(struct sidecar_reader *reader, uint64_t row,
                               const char *text[SIDECAR_COLUMNS], struct error *err);
void sidecar_reader_close(struct sidecar_reader **reader);

#endif

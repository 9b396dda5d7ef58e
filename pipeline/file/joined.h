/* joined.h: several features of a file taken as one: "NAME[:WEIGHT]+NAME[:WEIGHT]...".
 *
 * A row is the rows of the features one after another, each value times the weight of its feature,
 * in float64, rounded once to float32. Nothing of it is stored: rows are put together as they are
 * read. */
#ifndef CLPIPE_FILE_JOINED_H
#define CLPIPE_FILE_JOINED_H

#include "file/result.h"

struct joined;

/* True for a text that can only name several features, or one with a weight. */
bool joined_is_meant(const char *text);

/* Puts them together under a name that is the same however the weights were written, and the
 * feature of that name becomes one that result_feature_find finds. STATUS_USAGE: it holds no such
 * feature, one is named twice, a weight is none. */
enum status joined_open(const struct result_feature **out, struct result *result, const char *text,
                        struct error *err);

/* The joined feature of that canonical name, or NULL. */
const struct result_feature *joined_find(const struct result *result, const char *name);

/* What `feature` is put together of, or NULL where it is a feature of the file. */
struct joined *joined_of(const struct result *result, const struct result_feature *feature);

/* As result_feature_read and result_feature_identity. */
enum status joined_read(struct joined *joined, struct result *result, uint64_t first,
                        uint64_t count, float *rows, struct error *err);
enum status joined_identity(struct joined *joined, struct result *result, char hex[65],
                            struct error *err);

/* Of a result that is closed. */
void joined_free(struct joined *all);

#endif

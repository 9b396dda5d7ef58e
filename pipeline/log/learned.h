/* learned.h: what a run has learned from its sources before its first record, kept in the work
 * directory, so that a run that resumes does not learn something else. */
#ifndef CLPIPE_LOG_LEARNED_H
#define CLPIPE_LOG_LEARNED_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

#define LEARNED_NAME "learned"
#define LEARNED_NEW  "learned.new" /* until it is complete */
/* More is taken for damage. */
#define LEARNED_MOST_BYTES (1u << 30)

/* Writes it: complete and durable, or not at all, whenever the process is killed. `path` is that of
 * the directory, for messages. */
enum status learned_write(int directory, const void *bytes, size_t size, const char *path,
                          struct error *err);

/* Reads what is there; free *bytes. STATUS_END: there is nothing. */
enum status learned_read(uint8_t **bytes, size_t *size, int directory, const char *path,
                         struct error *err);

#endif

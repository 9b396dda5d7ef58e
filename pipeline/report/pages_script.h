/* pages_script.h: data files of the pages: scripts that call clpipe(KIND, NUMBER, VALUE).
 *
 * "<" and Unicode's line separators are escaped, so that no text can end a script element or a
 * string. */
#ifndef CLPIPE_REPORT_PAGES_SCRIPT_H
#define CLPIPE_REPORT_PAGES_SCRIPT_H

#include "base/json.h"
#include "base/output_directory.h"
#include <stdint.h>

/* Writes the finished value of `json` as data/KIND.js, or data/KIND-NUMBER.js if `number` is not
 * negative, and clears it. Adds the size of the file to *bytes. */
enum status script_write(struct json *json, const char *kind, int64_t number,
                         struct output_directory *directory, uint64_t *bytes, struct error *err);

/* A member with this many significant digits; NaN becomes null. */
void script_number(struct json *json, const char *key, double value, int digits);

#endif

/* pages_script.h: data files of the pages: scripts that call clpipe(KIND, NUMBER, VALUE).
 *
 * Whatever a text holds, it stays a text: "<" and the line separators of Unicode are written as
 * escapes, so that no text ends a script element or a string. */
#ifndef CLPIPE_REPORT_PAGES_SCRIPT_H
#define CLPIPE_REPORT_PAGES_SCRIPT_H

#include "base/json.h"
#include "base/output_directory.h"
#include <stdint.h>

/* Writes the finished value of `json` as data/KIND.js, or data/KIND-NUMBER.js where `number` is not
 * negative, and clears it. *bytes grows by the size of the file. */
enum status script_write(struct json *json, const char *kind, int64_t number,
                         struct output_directory *directory, uint64_t *bytes, struct error *err);

/* A member with so many significant digits; NaN becomes null. */
void script_number(struct json *json, const char *key, double value, int digits);

#endif

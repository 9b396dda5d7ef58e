/* parameters.h: how a clustering was made, as one canonical JSON object that is equal for equal
 * results of equal rows. */
#ifndef CLPIPE_CLUSTERING_PARAMETERS_H
#define CLPIPE_CLUSTERING_PARAMETERS_H

#include <stdbool.h>
#include <stddef.h>

/* Says in `text` how two of them differ ("k is 10 there and 5 here"); false: they are equal. */
bool parameters_differ(char *text, size_t size, const char *there, const char *here);

/* The text of a key, "" where it has none. */
void parameters_text(char *text, size_t size, const char *json, const char *key);

#endif

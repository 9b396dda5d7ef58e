/* clean.h: text from files on its way to a terminal or into a table. */
#ifndef CLPIPE_CLI_CLEAN_H
#define CLPIPE_CLI_CLEAN_H

#include "cli/sink.h"

/* Writes `text` whole, hidden characters (base/text.h) and bytes that are not UTF-8 escaped. */
void sink_clean(struct sink *sink, const char *text);

/* Writes `text` as a field of a table with this separator: quoted as RFC 4180 says where it holds
 * the separator, a quote or a line end. */
void sink_field(struct sink *sink, const char *text, char separator);

#endif

/* quote.h: words for a shell. */
#ifndef CLPIPE_CLI_QUOTE_H
#define CLPIPE_CLI_QUOTE_H

#include <stddef.h>

/* `word` as a POSIX shell reads it back: as it is where nothing in it is special, else in single
 * quotes; control characters and bytes that are not UTF-8 as $'\ooo' (bash, zsh, ksh). A word that
 * begins with a dash is the caller's business. Returns buffer; a word that does not fit is cut, so
 * give it 4 * length + 8 bytes. */
char *quote_word(char *buffer, size_t size, const char *word);

/* argv as one line, each word quoted, the program as "clpipe" wherever it lies; the caller frees
 * it. NULL: out of memory. */
char *quote_command(int argc, char *const *argv);

#endif

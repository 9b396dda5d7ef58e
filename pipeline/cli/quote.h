/* quote.h: words for a shell. */
#ifndef CLPIPE_CLI_QUOTE_H
#define CLPIPE_CLI_QUOTE_H

#include <stddef.h>

/* Quotes `word` for a POSIX shell: unchanged if it has no special characters, else in single
 * quotes; control characters and bytes that are not UTF-8 as $'\ooo' (bash, zsh, ksh). A leading
 * dash is up to the caller. Returns buffer; a word that does not fit is cut, so give it 4 * length
 * + 8 bytes. */
char *quote_word(char *buffer, size_t size, const char *word);
/* The same as an expression, in at most 1,023 bytes. The text lives until the end of the enclosing block. */
#define QUOTED(word) quote_word((char[1024]){0}, 1024, word)

/* argv as one line, each word quoted, the program as "clpipe" whatever its path; the caller frees
 * it. NULL: out of memory. */
char *quote_command(int argc, char *const *argv);

#endif

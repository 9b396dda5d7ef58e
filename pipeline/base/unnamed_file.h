/* unnamed_file.h: temporary files without a name, which no crash leaves behind. */
#ifndef CLPIPE_BASE_UNNAMED_FILE_H
#define CLPIPE_BASE_UNNAMED_FILE_H

/* Creates an empty unnamed file in a directory, open for reading and writing. If the file system
 * does not support that, it briefly has a name beginning with ".clpipe-". Returns the descriptor,
 * which the caller closes, or -1 with errno. */
int unnamed_file(const char *directory);

#endif

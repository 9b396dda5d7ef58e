/* unnamed_file.h: temporary files that nobody finds and no crash leaves behind. */
#ifndef CLPIPE_BASE_UNNAMED_FILE_H
#define CLPIPE_BASE_UNNAMED_FILE_H

/* Creates an empty file without a name in a directory, to be read and written by the caller, who
 * closes it. Where the file system has no such files, it has a name for a moment, which begins with
 * ".clpipe-". Returns the descriptor; -1 with errno where that fails. */
int unnamed_file(const char *directory);

#endif

/* source_files.h: SOURCEs in the file system: a directory, with everything below it, a file, a list
 * of paths ("@LIST", "-"), and a tar on standard input ("tar:-"). */
#ifndef CLPIPE_SOURCES_SOURCE_FILES_H
#define CLPIPE_SOURCES_SOURCE_FILES_H

#include "sources/source.h"

extern const struct source_kind source_directory, source_file, source_list, source_stream;

#endif

/* beside.h: reads the sidecar files of pictures: .cls, .json and .txt files of their samples. */
#ifndef CLPIPE_INGEST_BESIDE_H
#define CLPIPE_INGEST_BESIDE_H

#include "result/sidecars.h"
#include "sources/walk.h"

/* Adds every picture of the walk to `out`. Reads the walk from its first item; it must not be used
 * meanwhile. Files that are unreadable, too long or not text count as missing, with a notice. */
enum status beside_read(struct sidecars *out, struct walk *walk, struct stop *stop,
                        struct error *err);

#endif

/* beside.h: reads what lies beside the pictures of a walk: .cls, .json and .txt of their samples. */
#ifndef CLPIPE_INGEST_BESIDE_H
#define CLPIPE_INGEST_BESIDE_H

#include "file/sidecars.h"
#include "walk/walk.h"

/* Adds every picture of the walk, from its first item on, to `out`. One thread; nobody else uses the walk.
 * What is too long or no text counts as missing, what cannot be read, too, with a notice. */
enum status beside_read(struct sidecars *out, struct walk *walk, struct stop *stop,
                        struct error *err);

#endif

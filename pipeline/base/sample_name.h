/* sample_name.h: samples in the sense of WebDataset: files of one folder, or of one archive, whose
 * names agree up to the first dot of the last component: "cats/17.jpg", "cats/17.cls",
 * "cats/17.json". That common part is the sample's key, "cats/17". */
#ifndef CLPIPE_BASE_SAMPLE_NAME_H
#define CLPIPE_BASE_SAMPLE_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of `path` that are its key. A leading dot of the last component belongs to the name. */
size_t sample_key(const char *path, size_t length);

/* The kind of metadata in a file beside a picture, by its extension. */
enum sidecar { SIDECAR_NONE = -1, SIDECAR_CLS, SIDECAR_JSON, SIDECAR_TXT, SIDECARS };
enum sidecar sample_sidecar(const char *path, size_t length);

/* Are these two files of one sample, and one of them a sidecar? */
bool sample_tied(const char *a, size_t a_length, const char *b, size_t b_length);

#endif

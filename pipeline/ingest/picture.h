/* picture.h: an item between walk and store.
 *
 * A picture has holders: the thread that decodes it and each of its parts that is in progress on a
 * device. The last one to release it passes it to the sink: to the store, or back to the decoders
 * if a device with a part of it failed or refused one. Until then its fields belong to the decode
 * thread, except those under the lock. */
#ifndef CLPIPE_INGEST_PICTURE_H
#define CLPIPE_INGEST_PICTURE_H

#include "base/blob.h"
#include "ingest/ingest_config.h"
#include "sources/walk.h"
#include <pthread.h>
#include <stdatomic.h>

struct picture;

/* Where released pictures go; both functions take ownership. Any thread. */
struct picture_sink {
    uint32_t counters; /* per picture */
    uint32_t code;     /* index of the first of the CODE_WORDS counters for its code */
    uint32_t
        thumbnail_size; /* devices append a thumbnail's pixels to the counters; 0: they do not */
    void (*finished)(void *context, struct picture *picture);
    void (*again)(void *context, struct picture *picture); /* with one holder, without counters */
    void *context;
};

struct picture {
    const struct picture_sink *sink;
    struct store_record record;
    char *path;
    uint64_t where;               /* as in walk_item */
    struct blob blob;             /* open if the picture is to be decoded */
    uint32_t *counters;           /* NULL until the first part is decoded; meaningful if
                                   * `counted` */
    uint8_t *thumbnail;           /* referred to by the record, or NULL */
    uint8_t *pixels_of_thumbnail; /* from a device, as stored, or NULL; under the lock */
    bool resumed, unchanged;
    struct store_record *prior; /* of an earlier run, if bytes must be compared; or NULL */
    bool compared, differs;     /* compared, or impossible to compare; and the bytes differ */
    bool once;      /* its bytes cannot be read again: the blob stays open until it is finished */
    bool dropped;   /* the run ends without it: free it instead of storing it */
    bool counted;   /* counters hold the values of a part; until then they are uninitialised */
    bool lost;      /* a part's values will not arrive: decode it again */
    bool host_only; /* a device refused a part: the host must compute the pixels */
    bool no_stream; /* its stream must not be submitted */
    enum jpeg_way way;
    struct picture *next;   /* in a list of the owner */
    bool handed_back;       /* by a device */
    bool progressive;       /* a JPEG */
    unsigned display_scale; /* scale at which to decode it again for its thumbnail; 0: do not */
    bool only_profile;      /* only if its profile changes colours */
    uint64_t pixels, bytes_read;
    int64_t short_since; /* when the process first lacked resources for it; 0: never */
    atomic_uint holders;
    pthread_mutex_t lock; /* guards counters, counted, lost, host_only, no_stream */
};

/* A new picture with one holder; NULL: no memory. The sink must outlive it. */
struct picture *picture_new(const struct picture_sink *sink, const struct walk_item *item);

/* The size of its thumbnail in stored orientation. */
void picture_thumbnail_size(uint32_t *width, uint32_t *height, const struct picture *picture);

/* Clears the failure of a picture that failed for lack of resources, so that it is opened and
 * decoded again once released. The caller holds it. */
void picture_begin_again(struct picture *picture);

/* Add and remove a holder. When the last one is removed, the picture is dropped or passed on. */
void picture_hold(struct picture *picture);
void picture_release(struct picture *picture);

/* Callbacks of staging: the values of one part, or its loss. Releases the part's hold. Any thread;
 * context is unused. If a part is not proven, the picture is decoded again on the host: only its
 * entropy code if it was a stream, else everything. */
void picture_deliver(void *context, void *picture, const struct part_result *result);
void picture_lost(void *context, void *picture);

/* Frees a picture that no part holds, and closes its blob. Accepts NULL. */
void picture_free(struct picture *picture);
/* The same for all of a list, linked by `next`. */
void picture_free_list(struct picture *list);

#endif

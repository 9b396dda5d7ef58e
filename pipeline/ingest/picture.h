/* picture.h: one item on its way from the walk to the store.
 *
 * A picture has holders: the thread that decodes it and each of its parts that is in progress on a
 * device. The last one to release it sends it on through the sink: to the store, or back to be
 * decoded again if a device that had a part of it failed or could not prove one. Until then its
 * fields belong to the decode thread, except those under the lock. */
#ifndef CLPIPE_INGEST_PICTURE_H
#define CLPIPE_INGEST_PICTURE_H

#include "base/blob.h"
#include "file/store.h"
#include "ingest/ingest_config.h"
#include "staging/staging.h"
#include "walk/walk.h"
#include <pthread.h>
#include <stdatomic.h>

struct picture;

/* Seconds that a thread has waited: for pictures, and for room. */
struct picture_waits {
    double starved, blocked;
};

/* Where pictures go; either function takes over the picture. Any thread. */
struct picture_sink {
    uint32_t counters; /* of each picture */
    uint32_t code;     /* of them, the first of the CODE_WORDS of its code */
    uint32_t
        thumbnail_size; /* devices give a thumbnail's pixels behind the counters; 0: they do not */
    void (*finished)(void *context, struct picture *picture);
    void (*again)(void *context, struct picture *picture); /* one holder, no counters */
    void *context;
};

struct picture {
    const struct picture_sink *sink;
    struct store_record record;
    char *path;
    uint64_t where;               /* of walk_item */
    struct blob blob;             /* open: to be decoded */
    uint32_t *counters;           /* NULL until the first part is decoded; then as `counted` says */
    uint8_t *thumbnail;           /* that the record refers to, or NULL */
    uint8_t *pixels_of_thumbnail; /* from a device, as stored, or NULL; under the lock */
    bool resumed, unchanged;
    struct store_record *prior; /* of an earlier run, if its bytes are to be compared first; or NULL */
    bool compared, differs;     /* they were, or could not; they are others */
    bool once;      /* its bytes cannot be had again: the blob stays open until it is finished */
    bool dropped;   /* the run ends without it */
    bool counted;   /* counters hold the values of a part; until then they are not initialised */
    bool lost;      /* a part's values will not come: it is decoded again */
    bool host_only; /* a device could not prove a part: pixels are to be made on the host */
    bool no_stream; /* its entropy code is not for a device */
    enum jpeg_way way;
    struct picture *next; /* in a list of its owner */
    bool handed_back;     /* by a device */
    bool progressive;     /* a JPEG */
    unsigned
        for_people;    /* the scale at which it is decoded again, for its thumbnail; 0: it is not */
    bool only_profile; /* only if its profile changes colours */
    uint64_t pixels, bytes_read;
    int64_t short_since; /* when the process first lacked what it needs; 0: never */
    atomic_uint holders;
    pthread_mutex_t lock; /* guards counters, counted, lost, host_only, no_stream: several lanes
                             * may deliver parts of it */
};

/* A picture with one holder and nothing open; NULL without memory. The sink must outlive it. */
struct picture *picture_new(const struct picture_sink *sink, const struct walk_item *item);

/* The size of its thumbnail as stored. */
void picture_thumbnail_size(uint32_t *width, uint32_t *height, const struct picture *picture);

/* Makes room for counters, unless there is; false without memory. */
bool picture_make_counters(struct picture *picture);

/* The caller holds it: it is opened and decoded once more, and did not fail. */
void picture_begin_again(struct picture *picture);

/* One holder more; one holder less. The last one drops it or sends it on. */
void picture_hold(struct picture *picture);
void picture_release(struct picture *picture);

/* staging's deliver and lost: the values of one part, or that they will not come. The part holds the
 * picture no longer. Any thread; context is not used. A picture of which a part is not proven is
 * decoded again on the host, whose verdict counts: its entropy code, if it was a stream, or all. */
void picture_deliver(void *context, void *picture, const struct part_result *result);
void picture_lost(void *context, void *picture);

/* Frees a picture that no part holds any more, and closes its blob. Accepts NULL. */
void picture_free(struct picture *picture);

#endif

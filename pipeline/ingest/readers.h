/* readers.h: opens the files of the walk for the decode threads.
 *
 * Reader threads take items in the walk's order, look them up in an earlier run, open their files
 * and request readahead. The queue is limited in files and bytes, and the window limits pictures in
 * flight to the store. Images that the walk could not read stay in the file: the failure of an item
 * is accompanied by the earlier run's images of that item or below it. */
#ifndef CLPIPE_INGEST_READERS_H
#define CLPIPE_INGEST_READERS_H

#include "ingest/ingest_job.h"
#include "ingest/picture.h"
#include "sources/walk.h"

struct readers;

/* Opens; job, walk, store (NULL: no store and no window) and sink must outlive the readers.
 * `window`: limit on pictures in flight. `open_files`: limit on queued open files per decode
 * thread, for `threads` of them. */
enum status readers_open(struct readers **out, struct ingest_job *job, struct walk *walk,
                         struct store *store, const struct picture_sink *sink, uint64_t window,
                         unsigned open_files, struct error *err);

/* Instead of all items of the walk, takes some: those of `next`, in the walk's order; STATUS_END at
 * the end. One thread at a time. Before readers_start, and before readers_take. */
void readers_choose(struct readers *readers,
                    enum status (*next)(void *context, struct walk_item *item), void *context);

/* Starts as many threads as the system allows; zero is not an error. */
void readers_start(struct readers *readers);

/* The next picture for a decode thread, with its file open if it is to be decoded. NULL at the end,
 * after a stop or an error, and without `wait` also if none is ready: a thread that holds pictures
 * must not wait. Any thread; `readers` as for decoders_config.take. */
struct picture *readers_take(void *readers, struct stage_times *times, bool wait);

/* Queues a picture to be decoded again, before the rest of the walk. Any thread. */
void readers_again(struct readers *readers, struct picture *picture);
/* Are there such pictures? They are decoded even after a stop. Any thread. */
bool readers_have_again(struct readers *readers);

/* Images of the file kept because the walk could not read them; after readers_join. */
uint64_t readers_kept(const struct readers *readers);

/* Call when the window may have moved, or after a stop. Any thread. */
void readers_wake(struct readers *readers);

/* Aborts: readers_take returns no more pictures that were opened ahead. Any thread. */
void readers_abort(struct readers *readers);

/* Ends the threads and frees what they have opened; call after the decode threads have ended.
 * readers_take still returns pictures of readers_again. */
void readers_join(struct readers *readers);

/* Frees the rest; after readers_join, or without readers_start. Accepts NULL. */
void readers_close(struct readers **readers);

#endif

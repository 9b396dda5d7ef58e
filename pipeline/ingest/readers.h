/* readers.h: from the walk to pictures whose files are open, for the decode threads.
 *
 * Reader threads take items in the walk's order, look up what an earlier run knows of them, open
 * their files and tell the system to read them. What waits is bounded in number and in bytes of
 * files, and pictures on their way to the store are bounded by the window. What the walk could not
 * look at stays in the file: a failure of an item comes with what an earlier run knows of the item,
 * or below it. */
#ifndef CLPIPE_INGEST_READERS_H
#define CLPIPE_INGEST_READERS_H

#include "ingest/ingest_job.h"
#include "ingest/picture.h"
#include "walk/walk.h"

struct readers;

/* Opens; the job, the walk, the store (NULL: none, and no window) and the sink must outlive the
 * readers. `window`: pictures on their way. `open_files`: as many as each of `threads` decode
 * threads may have open, of those that wait for it. */
enum status readers_open(struct readers **out, struct ingest_job *job, struct walk *walk,
                         struct store *store, const struct picture_sink *sink, uint64_t window,
                         unsigned open_files, struct error *err);

/* Starts as many threads as the system allows; zero is not an error. */
void readers_start(struct readers *readers);

/* The next picture for a decode thread, with its file open if it is to be decoded; NULL at the end,
 * on a stop and on an error, and without `wait` also if none is ready: a thread that holds pictures
 * must not wait for others. Any thread. */
struct picture *readers_take(struct readers *readers, struct picture_waits *waits, bool wait);

/* Queues a picture to be decoded again, before the remaining ones of the walk. Any thread. */
void readers_again(struct readers *readers, struct picture *picture);
/* Are there such pictures, to be decoded even if a stop was asked for? Any thread. */
bool readers_have_again(struct readers *readers);

/* Images of the file that stay because the walk could not look at them; after readers_join. */
uint64_t readers_kept(const struct readers *readers);

/* The window may have moved, or a stop been asked for. Any thread. */
void readers_wake(struct readers *readers);

/* Nothing more is wanted: readers_take gives no more pictures that were opened ahead. Any thread. */
void readers_abort(struct readers *readers);

/* Ends the threads and frees what they have opened; after the decode threads have ended.
 * readers_take still gives pictures of readers_again. */
void readers_join(struct readers *readers);

/* Frees what is left; after readers_join, or without readers_start. Accepts NULLs. */
void readers_close(struct readers **readers);

#endif

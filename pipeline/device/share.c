/* share.c: chooses the device for the next part.
 *
 * The part goes to the device that would finish it first: (bytes in its slots + bytes of the part)
 * / its rate, measured on its last slots. So a device that is twice as fast gets twice as much, and
 * a very slow one gets nothing that a faster one would finish sooner, even after a wait. Streams
 * count with the bytes of their pixels. A device's slots have at most the work of HORIZON seconds,
 * which bounds how long it can delay the end of the run or an image that the store waits for.
 *
 * A device's rate is measured with parts of PROBE_BYTES, one at a time; the first slot is ignored,
 * since runtimes defer work until then. A device that is not chosen is probed again after being
 * idle for PROBE_IDLE times the time of its last slot, so a temporarily slow one recovers, and a
 * slow one costs little. A device that is not open yet or is still building its kernels gets
 * nothing while there are others.
 *
 * Equal devices are assumed to be equally fast until measured and need no probes; while none of
 * them has built its kernels, open ones get pixels as a single device would.
 *
 * A single device, or the last one that has not failed, gets everything as soon as it is open. */
#include "device/ring.h"

#include "base/clock.h"
#include "base/minmax.h"

#define HORIZON      0.2
#define PROBE_BYTES  (32ull << 10)
#define PROBE_IDLE   16
#define UNKNOWN_RATE 1e9

unsigned share_alive(const struct staging *staging)
{
    unsigned alive = 0;
    for (unsigned i = 0; i < staging->ring_count; i++)
        alive += !staging->ring[i].failed;
    return alive;
}

/* Do all rings that have not failed have equal devices? */
static bool are_alike(const struct staging *staging)
{
    unsigned number = 0;
    for (unsigned i = 0; i < staging->ring_count; i++) {
        const struct ring *ring = &staging->ring[i];
        if (ring->failed)
            continue;
        if (ring->alike == 0 || (number > 0 && ring->alike != number))
            return false;
        number = ring->alike;
    }
    return true;
}

/* The highest rate measured so far, for a ring that has not been measured; 0: none. All devices are
 * equal. */
static double rate_of_others(const struct staging *staging)
{
    double rate = 0;
    for (unsigned i = 0; i < staging->ring_count; i++)
        rate =
            staging->ring[i].failed || staging->ring[i].rate < rate ? rate : staging->ring[i].rate;
    return rate;
}

static bool is_any_built(const struct staging *staging)
{
    bool any = false;
    for (unsigned i = 0; i < staging->ring_count; i++)
        any = any || (!staging->ring[i].failed && staging->ring[i].built);
    return any;
}

struct ring *share_choose(uint64_t *bytes, const struct staging *staging)
{
    const bool several = share_alive(staging) > 1;
    const int64_t now = clock_now();
    const bool alike = several && are_alike(staging);
    const double others = alike ? rate_of_others(staging) : 0;
    const bool early = alike && !is_any_built(staging);
    struct ring *best = NULL, *probe = NULL;
    double least = 0;
    for (unsigned i = 0; i < staging->ring_count; i++) {
        struct ring *ring = &staging->ring[i];
        if (ring->failed)
            continue;
        if (!several)
            return ring->opened ? ring : NULL;
        if (!ring->opened || (!ring->built && !early))
            continue;
        if (!alike && !probe && ring->pending == 0 &&
            (ring->rate == 0 || now - ring->last_end > PROBE_IDLE * ring->last_took))
            probe = ring;
        const double rate = ring->rate > 0 ? ring->rate : others;
        if (rate == 0 && !alike)
            continue;
        /* Without any measured rate, the ring with the least work; HORIZON does not apply. */
        const double seconds = (double)(ring->pending + *bytes) / (rate > 0 ? rate : UNKNOWN_RATE);
        if (!best || seconds < least) {
            best = ring;
            least = seconds;
        }
    }
    if (probe && probe != best) {
        *bytes = min_u64(*bytes, PROBE_BYTES);
        return probe;
    }
    if (!best || least <= HORIZON || (alike && others == 0))
        return best;
    if (best->pending > 0)
        return NULL;
    const uint64_t most = (uint64_t)(HORIZON * (best->rate > 0 ? best->rate : others));
    *bytes = min_u64(*bytes, most > PROBE_BYTES ? most : PROBE_BYTES);
    return best;
}

void share_measure(struct ring *ring, uint64_t bytes, int64_t started)
{
    const int64_t now = clock_now();
    const int64_t since = started > ring->last_end ? started : ring->last_end;
    const bool first = ring->last_end == 0;
    ring->last_end = now;
    ring->last_took = now > since ? now - since : 1;
    const double rate = (double)bytes / ((double)ring->last_took * 1e-9);
    if (!first)
        ring->rate = ring->rate > 0 ? (ring->rate + rate) / 2 : rate;
}

/* host_vectors.h: convolutions with the vectors of one instruction set. host_kernels.c includes it
 * once per set, with these macros, of which it undefines the first three:
 *
 * SET(name): the set's function of that name
 * TAPS: values of k, or taps, in a lane: 4 bytes, or 2 values of 16 bits
 * DOT(sum, values, weights): adds the products of each lane to its sum
 * TARGET, VECTOR, LANES: the compiler's attributes; type and int32 lanes of a vector
 * MM(name): the intrinsic function of that name
 * LOAD(from): an unaligned vector
 * TAKE_ODD(even, odd): the even lanes of one vector and the odd ones of the other
 * STORE_ALL(out, bytes, count): the first bytes of a vector
 * STORE_SOME(out, vectors, v, block): fewer than four vectors of values before the clamp */

VECTOR_INLINE VECTOR SET(requantise)(VECTOR sum, const struct host_parameters *p, unsigned v)
{
    const unsigned at = v * LANES;
    const VECTOR m = LOAD(p->mul + at);
    sum = MM(sllv_epi32)(sum, LOAD(p->pre + at));
    const VECTOR even = MM(mul_epi32)(sum, m);
    const VECTOR odd = MM(mul_epi32)(MM(srli_epi64)(sum, 32), MM(srli_epi64)(m, 32));
    const VECTOR high = TAKE_ODD(MM(srli_epi64)(even, 32), odd);
    return MM(srav_epi32)(MM(add_epi32)(high, LOAD(p->add + at)), LOAD(p->shift + at));
}

/* Stores the channels of a pixel of a block. */
VECTOR_INLINE void SET(store)(uint8_t *out, unsigned vectors, const VECTOR *sums,
                              const struct host_block *block)
{
    VECTOR v[4];
    out += block->first;
    UNROLL
    for (unsigned i = 0; i < vectors; i++)
        v[i] = SET(requantise)(sums[i], block->parameters, i);
    if (vectors < 4) {
        STORE_SOME(out, vectors, v, block);
        return;
    }
    VECTOR bytes = MM(packus_epi16)(MM(packs_epi32)(v[0], v[1]), MM(packs_epi32)(v[2], v[3]));
    bytes = MM(max_epu8)(bytes, MM(set1_epi8)((char)block->low));
    bytes = MM(min_epu8)(bytes, MM(set1_epi8)((char)block->high));
    STORE_ALL(out, bytes, block->count);
}

VECTOR_INLINE void SET(tile)(unsigned rows, unsigned vectors, const struct host_work *work,
                             unsigned pixel)
{
    const uint8_t *q = work->panel + pixel * work->stride;
    const VECTOR *w = work->block->weights;
    VECTOR sums[HOST_TILE][4];
    UNROLL
    for (unsigned r = 0; r < rows; r++)
        UNROLL
    for (unsigned v = 0; v < vectors; v++)
        sums[r][v] = LOAD(work->block->parameters->bias + v * LANES);
    for (size_t k = 0; k < work->steps; k++, q += 4, w += vectors) {
        VECTOR weights[4];
        UNROLL
        for (unsigned v = 0; v < vectors; v++)
            weights[v] = w[v];
        UNROLL
        for (unsigned r = 0; r < rows; r++) {
            const VECTOR values = MM(set1_epi32)(four_bytes(q + r * work->stride));
            UNROLL
            for (unsigned v = 0; v < vectors; v++)
                DOT(sums[r][v], values, weights[v]);
        }
    }
    UNROLL
    for (unsigned r = 0; r < rows; r++)
        SET(store)(work->out[pixel + r], vectors, sums[r], work->block);
}

VECTOR_INLINE void SET(tiles)(unsigned rows, unsigned vectors, const struct host_work *work)
{
    if (work->pixels < rows)
        for (unsigned p = 0; p < work->pixels; p++)
            SET(tile)(1, vectors, work, p);
    else
        for (unsigned p = 0; p < work->pixels; p += rows)
            SET(tile)(rows, vectors, work, p + rows <= work->pixels ? p : work->pixels - rows);
}

/* Blocks of four vectors: interleaves the channels of TAPS taps. */
TARGET static void SET(depthwise)(const struct host_work *work)
{
    for (unsigned x = 0; x < work->pixels; x++) {
        const uint8_t *in = work->in[x] + work->block->first;
        const VECTOR *w = work->block->weights;
        const size_t *taps = work->taps;
        VECTOR sums[4];
        UNROLL
        for (unsigned v = 0; v < 4; v++)
            sums[v] = LOAD(work->block->parameters->bias + v * LANES);
        for (size_t s = 0; s < work->steps; s++, taps += TAPS, w += 4) {
            const VECTOR a = LOAD(in + taps[0]), b = LOAD(in + taps[1]);
            const VECTOR low = MM(unpacklo_epi8)(a, b), high = MM(unpackhi_epi8)(a, b);
#if TAPS == 4
            const VECTOR c = LOAD(in + taps[2]), e = LOAD(in + taps[3]);
            const VECTOR low_2 = MM(unpacklo_epi8)(c, e), high_2 = MM(unpackhi_epi8)(c, e);
            DOT(sums[0], MM(unpacklo_epi16)(low, low_2), w[0]);
            DOT(sums[1], MM(unpackhi_epi16)(low, low_2), w[1]);
            DOT(sums[2], MM(unpacklo_epi16)(high, high_2), w[2]);
            DOT(sums[3], MM(unpackhi_epi16)(high, high_2), w[3]);
#else
            const VECTOR zero = {0};
            DOT(sums[0], MM(unpacklo_epi8)(low, zero), w[0]);
            DOT(sums[1], MM(unpackhi_epi8)(low, zero), w[1]);
            DOT(sums[2], MM(unpacklo_epi8)(high, zero), w[2]);
            DOT(sums[3], MM(unpackhi_epi8)(high, zero), w[3]);
#endif
        }
        SET(store)(work->out[x], 4, sums, work->block);
    }
}

#undef SET
#undef TAPS
#undef DOT

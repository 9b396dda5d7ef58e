/* hash.c: MurmurHash3_x64_128, SHA-256 and CRC-32C.
 *
 * Many x86 CPUs have instructions for SHA-256 and CRC-32C; they are detected at run time, and plain
 * C gives the same answer elsewhere. */
#include "base/hash.h"
#include <endian.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#define HASH_X86 1
#include <cpuid.h>
#include <immintrin.h>
#endif

/* Integers in blocks have a fixed byte order. memcpy(), because the data may be unaligned. */
static uint64_t load_le64(const uint8_t *p)
{
    uint64_t value;
    memcpy(&value, p, sizeof value);
    return le64toh(value);
}

static uint32_t load_be32(const uint8_t *p)
{
    uint32_t value;
    memcpy(&value, p, sizeof value);
    return be32toh(value);
}

static void store_be32(uint8_t *p, uint32_t value)
{
    value = htobe32(value);
    memcpy(p, &value, sizeof value);
}

/* --- murmur3 ---------------------------------------------------------------------------------- */

#define MURMUR_C1 UINT64_C(0x87c37b91114253d5)
#define MURMUR_C2 UINT64_C(0x4cf5ad432745937f)

static uint64_t rotate_left64(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

static uint64_t murmur3_k1(uint64_t k1)
{
    return rotate_left64(k1 * MURMUR_C1, 31) * MURMUR_C2;
}

static uint64_t murmur3_k2(uint64_t k2)
{
    return rotate_left64(k2 * MURMUR_C2, 33) * MURMUR_C1;
}

static void murmur3_blocks(struct murmur3 *state, const uint8_t *data, size_t blocks)
{
    uint64_t h1 = state->h1, h2 = state->h2;
    for (size_t i = 0; i < blocks; i++) {
        h1 ^= murmur3_k1(load_le64(data + 16 * i));
        h1 = (rotate_left64(h1, 27) + h2) * 5 + 0x52dce729;
        h2 ^= murmur3_k2(load_le64(data + 16 * i + 8));
        h2 = (rotate_left64(h2, 31) + h1) * 5 + 0x38495ab5;
    }
    state->h1 = h1;
    state->h2 = h2;
}

void murmur3_init(struct murmur3 *state)
{
    *state = (struct murmur3){0};
}

void murmur3_update(struct murmur3 *state, const void *data, size_t size)
{
    const uint8_t *at = data;
    size_t held = state->length % sizeof state->tail;
    if (size == 0)
        return;
    state->length += size;
    if (held > 0) {
        size_t n = sizeof state->tail - held;
        if (n > size)
            n = size;
        memcpy(state->tail + held, at, n);
        if (held + n < sizeof state->tail)
            return;
        murmur3_blocks(state, state->tail, 1);
        at += n;
        size -= n;
    }
    murmur3_blocks(state, at, size / 16);
    memcpy(state->tail, at + size / 16 * 16, size % 16);
}

static uint64_t murmur3_mix(uint64_t k)
{
    k = (k ^ k >> 33) * UINT64_C(0xff51afd7ed558ccd);
    k = (k ^ k >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return k ^ k >> 33;
}

void murmur3_final(const struct murmur3 *state, uint64_t digest[2])
{
    /* A missing half of the last block is zeros, which the mixing leaves zeros. */
    uint8_t tail[16] = {0};
    memcpy(tail, state->tail, state->length % 16);
    uint64_t h1 = state->h1 ^ murmur3_k1(load_le64(tail));
    uint64_t h2 = state->h2 ^ murmur3_k2(load_le64(tail + 8));
    h1 ^= state->length;
    h2 ^= state->length;
    h1 += h2;
    h2 += h1;
    h1 = murmur3_mix(h1);
    h2 = murmur3_mix(h2);
    h1 += h2;
    h2 += h1;
    digest[0] = h1;
    digest[1] = h2;
}

void murmur3_of_path(uint64_t digest[2], uint16_t source, const char *path, size_t length)
{
    struct murmur3 state;
    murmur3_init(&state);
    murmur3_update(&state, &source, sizeof source);
    murmur3_update(&state, path, length);
    murmur3_final(&state, digest);
}

/* --- what the CPU has ------------------------------------------------------------------------ */

static pthread_once_t features_once = PTHREAD_ONCE_INIT;
static bool has_sha, has_crc32, has_avx2, has_avx512;

static void features_ask(void)
{
#ifdef HASH_X86
    /* __builtin_cpu_supports() knows "sha" only in recent compilers. */
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d))
        return;
    bool sse41 = c >> 19 & 1, sse42 = c >> 20 & 1;
    has_crc32 = sse42;
    has_avx2 = __builtin_cpu_supports("avx2");
    has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f");
    has_sha = sse41 && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 29 & 1);
#endif
}

/* --- sha256 ---------------------------------------------------------------------------------- */

static const uint32_t sha256_k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate_right32(uint32_t value, int bits)
{
    return value >> bits | value << (32 - bits);
}

static void sha256_blocks_plain(uint32_t state[8], const uint8_t *data, size_t blocks)
{
    for (; blocks > 0; blocks--, data += 64) {
        uint32_t w[64];
        for (int i = 0; i < 16; i++)
            w[i] = load_be32(data + 4 * i);
        for (int i = 16; i < 64; i++) {
            uint32_t x = w[i - 15], y = w[i - 2];
            w[i] = w[i - 16] + w[i - 7] + (rotate_right32(x, 7) ^ rotate_right32(x, 18) ^ x >> 3) +
                   (rotate_right32(y, 17) ^ rotate_right32(y, 19) ^ y >> 10);
        }
        uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
        uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
        for (int i = 0; i < 64; i++) {
            uint32_t t1 = h +
                          (rotate_right32(e, 6) ^ rotate_right32(e, 11) ^ rotate_right32(e, 25)) +
                          (g ^ (e & (f ^ g))) + sha256_k[i] + w[i];
            uint32_t t2 = (rotate_right32(a, 2) ^ rotate_right32(a, 13) ^ rotate_right32(a, 22)) +
                          ((a & b) ^ (c & (a ^ b)));
            h = g;
            g = f;
            f = e;
            e = d + t1;
            d = c;
            c = b;
            b = a;
            a = t1 + t2;
        }
        state[0] += a;
        state[1] += b;
        state[2] += c;
        state[3] += d;
        state[4] += e;
        state[5] += f;
        state[6] += g;
        state[7] += h;
    }
}

#ifdef HASH_X86
/* The SHA extensions keep the state as the words ABEF and CDGH and do two rounds per
 * instruction. */
__attribute__((target("sha,sse4.1"))) static void
sha256_blocks_sha(uint32_t h[8], const uint8_t *data, size_t blocks)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
    __m128i dcba = _mm_loadu_si128((const __m128i *)(const void *)h);
    __m128i hgfe = _mm_loadu_si128((const __m128i *)(const void *)(h + 4));
    __m128i cdab = _mm_shuffle_epi32(dcba, 0xb1), efgh = _mm_shuffle_epi32(hgfe, 0x1b);
    __m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);

    for (; blocks > 0; blocks--, data += 64) {
        __m128i abef_before = abef, cdgh_before = cdgh;
        /* w[i % 4] holds the four schedule words of round group i. */
        __m128i w[4];
        for (int i = 0; i < 16; i++) {
            if (i < 4) {
                w[i] = _mm_loadu_si128((const __m128i *)(const void *)(data + 16 * i));
                w[i] = _mm_shuffle_epi8(w[i], swap);
            } else {
                __m128i last = w[(i + 3) % 4], before = w[(i + 2) % 4];
                __m128i sum = _mm_sha256msg1_epu32(w[i % 4], w[(i + 1) % 4]);
                sum = _mm_add_epi32(sum, _mm_alignr_epi8(last, before, 4));
                w[i % 4] = _mm_sha256msg2_epu32(sum, last);
            }
            __m128i k = _mm_loadu_si128((const __m128i *)(const void *)(sha256_k + 4 * i));
            __m128i wk = _mm_add_epi32(w[i % 4], k);
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, wk);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(wk, 0x0e));
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }

    __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    dcba = _mm_blend_epi16(feba, dchg, 0xf0);
    hgfe = _mm_alignr_epi8(dchg, feba, 8);
    _mm_storeu_si128((__m128i *)(void *)h, dcba);
    _mm_storeu_si128((__m128i *)(void *)(h + 4), hgfe);
}
#endif

static void sha256_blocks(uint32_t h[8], const uint8_t *data, size_t blocks)
{
    pthread_once(&features_once, features_ask);
#ifdef HASH_X86
    if (has_sha) {
        sha256_blocks_sha(h, data, blocks);
        return;
    }
#endif
    sha256_blocks_plain(h, data, blocks);
}

void sha256_init(struct sha256 *state)
{
    *state = (struct sha256){.h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                   0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sha256_update(struct sha256 *state, const void *data, size_t size)
{
    const uint8_t *at = data;
    size_t held = state->length % sizeof state->block;
    if (size == 0)
        return;
    state->length += size;
    if (held > 0) {
        size_t n = sizeof state->block - held;
        if (n > size)
            n = size;
        memcpy(state->block + held, at, n);
        if (held + n < sizeof state->block)
            return;
        sha256_blocks(state->h, state->block, 1);
        at += n;
        size -= n;
    }
    sha256_blocks(state->h, at, size / 64);
    memcpy(state->block, at + size / 64 * 64, size % 64);
}

void sha256_final(struct sha256 *state, uint8_t digest[32])
{
    uint64_t bits = state->length * 8;
    size_t held = state->length % 64;
    uint8_t last[128] = {0};
    memcpy(last, state->block, held);
    last[held] = 0x80;
    size_t size = held < 56 ? 64 : 128;
    store_be32(last + size - 8, (uint32_t)(bits >> 32));
    store_be32(last + size - 4, (uint32_t)bits);
    sha256_blocks(state->h, last, size / 64);
    for (int i = 0; i < 8; i++)
        store_be32(digest + 4 * i, state->h[i]);
}

void sha256_hex(char hex[65], const uint8_t digest[32])
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < 32; i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hex[64] = 0;
}

/* --- sha256 of several messages ---------------------------------------------------------------- */

#ifdef HASH_X86
typedef uint32_t lanes8 __attribute__((vector_size(32)));
typedef uint32_t lanes16 __attribute__((vector_size(64)));

#define ROTATE(x, n) ((x) >> (n) | (x) << (32 - (n)))

/* A round, and the next word of the schedule. */
#define SHA256_STEP(lanes, a, b, c, d, e, f, g, h, i)                                              \
    do {                                                                                           \
        const lanes t1 = h + (ROTATE(e, 6) ^ ROTATE(e, 11) ^ ROTATE(e, 25)) +                      \
                         (g ^ (e & (f ^ g))) + sha256_k[i] + w.word[(i) % 16];                     \
        d += t1;                                                                                   \
        h = t1 + (ROTATE(a, 2) ^ ROTATE(a, 13) ^ ROTATE(a, 22)) + ((a & b) ^ (c & (a ^ b)));       \
    } while (0)
#define SHA256_SCHEDULE(lanes, i)                                                                  \
    do {                                                                                           \
        const lanes x = w.word[((i) + 1) % 16], y = w.word[((i) + 14) % 16];                       \
        w.word[(i) % 16] += w.word[((i) + 9) % 16] + (ROTATE(x, 7) ^ ROTATE(x, 18) ^ x >> 3) +     \
                            (ROTATE(y, 17) ^ ROTATE(y, 19) ^ y >> 10);                             \
    } while (0)

/* As sha256_blocks_plain, word by word in vectors of which each lane belongs to one message. */
#define SHA256_SIDE_BY_SIDE(function, lanes, count, isa)                                           \
    __attribute__((target(isa))) static void function(uint32_t states[][8],                        \
                                                      const uint8_t *const data[], size_t blocks)  \
    {                                                                                              \
        union {                                                                                    \
            lanes word[16];                                                                        \
            uint32_t lane[16][count];                                                              \
        } w, state;                                                                                \
        for (int i = 0; i < 8; i++)                                                                \
            for (int l = 0; l < count; l++)                                                        \
                state.lane[i][l] = states[l][i];                                                   \
        for (size_t block = 0; block < blocks; block++) {                                          \
            for (int l = 0; l < count; l++)                                                        \
                for (int i = 0; i < 16; i++)                                                       \
                    w.lane[i][l] = load_be32(data[l] + 64 * block + 4 * i);                        \
            lanes a = state.word[0], b = state.word[1], c = state.word[2], d = state.word[3];      \
            lanes e = state.word[4], f = state.word[5], g = state.word[6], h = state.word[7];      \
            for (int i = 0; i < 64; i += 16) {                                                     \
                if (i > 0) {                                                                       \
                    SHA256_SCHEDULE(lanes, 0);                                                     \
                    SHA256_SCHEDULE(lanes, 1);                                                     \
                    SHA256_SCHEDULE(lanes, 2);                                                     \
                    SHA256_SCHEDULE(lanes, 3);                                                     \
                    SHA256_SCHEDULE(lanes, 4);                                                     \
                    SHA256_SCHEDULE(lanes, 5);                                                     \
                    SHA256_SCHEDULE(lanes, 6);                                                     \
                    SHA256_SCHEDULE(lanes, 7);                                                     \
                    SHA256_SCHEDULE(lanes, 8);                                                     \
                    SHA256_SCHEDULE(lanes, 9);                                                     \
                    SHA256_SCHEDULE(lanes, 10);                                                    \
                    SHA256_SCHEDULE(lanes, 11);                                                    \
                    SHA256_SCHEDULE(lanes, 12);                                                    \
                    SHA256_SCHEDULE(lanes, 13);                                                    \
                    SHA256_SCHEDULE(lanes, 14);                                                    \
                    SHA256_SCHEDULE(lanes, 15);                                                    \
                }                                                                                  \
                SHA256_STEP(lanes, a, b, c, d, e, f, g, h, i + 0);                                 \
                SHA256_STEP(lanes, h, a, b, c, d, e, f, g, i + 1);                                 \
                SHA256_STEP(lanes, g, h, a, b, c, d, e, f, i + 2);                                 \
                SHA256_STEP(lanes, f, g, h, a, b, c, d, e, i + 3);                                 \
                SHA256_STEP(lanes, e, f, g, h, a, b, c, d, i + 4);                                 \
                SHA256_STEP(lanes, d, e, f, g, h, a, b, c, i + 5);                                 \
                SHA256_STEP(lanes, c, d, e, f, g, h, a, b, i + 6);                                 \
                SHA256_STEP(lanes, b, c, d, e, f, g, h, a, i + 7);                                 \
                SHA256_STEP(lanes, a, b, c, d, e, f, g, h, i + 8);                                 \
                SHA256_STEP(lanes, h, a, b, c, d, e, f, g, i + 9);                                 \
                SHA256_STEP(lanes, g, h, a, b, c, d, e, f, i + 10);                                \
                SHA256_STEP(lanes, f, g, h, a, b, c, d, e, i + 11);                                \
                SHA256_STEP(lanes, e, f, g, h, a, b, c, d, i + 12);                                \
                SHA256_STEP(lanes, d, e, f, g, h, a, b, c, i + 13);                                \
                SHA256_STEP(lanes, c, d, e, f, g, h, a, b, i + 14);                                \
                SHA256_STEP(lanes, b, c, d, e, f, g, h, a, i + 15);                                \
            }                                                                                      \
            state.word[0] += a;                                                                    \
            state.word[1] += b;                                                                    \
            state.word[2] += c;                                                                    \
            state.word[3] += d;                                                                    \
            state.word[4] += e;                                                                    \
            state.word[5] += f;                                                                    \
            state.word[6] += g;                                                                    \
            state.word[7] += h;                                                                    \
        }                                                                                          \
        for (int i = 0; i < 8; i++)                                                                \
            for (int l = 0; l < count; l++)                                                        \
                states[l][i] = state.lane[i][l];                                                   \
    }

SHA256_SIDE_BY_SIDE(sha256_blocks_8, lanes8, 8, "avx2")
SHA256_SIDE_BY_SIDE(sha256_blocks_16, lanes16, 16, "avx512f")
#endif

void sha256_group_init(struct sha256_group *group, unsigned count, unsigned lanes)
{
    struct sha256 one;
    pthread_once(&features_once, features_ask);
    const unsigned most = has_avx512 ? 16 : has_avx2 ? 8 : 1;
    /* Vectors are as expensive for few messages as for many. Sixteen lanes are twice as fast as the
     * instructions for SHA-256. */
    if (lanes == 0)
        lanes = has_sha && (!has_avx512 || count <= SHA256_GROUP / 2) ? 1 : most;
    if (lanes > most || count < 3)
        lanes = count < 3 ? 1 : most;
    sha256_init(&one);
    *group = (struct sha256_group){.count = count, .lanes = lanes};
    for (unsigned i = 0; i < SHA256_GROUP; i++)
        memcpy(group->h[i], one.h, sizeof one.h);
}

static void sha256_group_blocks(struct sha256_group *group, const uint8_t *const data[SHA256_GROUP],
                                size_t blocks)
{
    if (group->lanes == 1) {
        for (unsigned i = 0; i < group->count; i++)
            sha256_blocks(group->h[i], data[i], blocks);
        return;
    }
#ifdef HASH_X86
    /* Lanes without a message of their own repeat the first one's. */
    const uint8_t *all[SHA256_GROUP];
    for (unsigned i = 0; i < SHA256_GROUP; i++)
        all[i] = data[i < group->count ? i : 0];
    if (group->lanes == 16) {
        sha256_blocks_16(group->h, all, blocks);
        return;
    }
    for (unsigned i = 0; i < group->count; i += 8)
        sha256_blocks_8(group->h + i, all + i, blocks);
#endif
}

void sha256_group_update(struct sha256_group *group, const uint8_t *const data[SHA256_GROUP],
                         size_t size)
{
    sha256_group_blocks(group, data, size / 64);
    group->length += size;
}

void sha256_group_final(const struct sha256_group *group, uint8_t digest[SHA256_GROUP][32])
{
    struct sha256_group ended = *group;
    const uint8_t *data[SHA256_GROUP];
    uint8_t last[64] = {0x80};
    store_be32(last + 56, (uint32_t)(group->length * 8 >> 32));
    store_be32(last + 60, (uint32_t)(group->length * 8));
    for (unsigned i = 0; i < SHA256_GROUP; i++)
        data[i] = last;
    sha256_group_blocks(&ended, data, 1);
    for (unsigned i = 0; i < group->count; i++)
        for (int word = 0; word < 8; word++)
            store_be32(digest[i] + 4 * word, ended.h[i][word]);
}

/* --- crc32c ---------------------------------------------------------------------------------- */

#define CRC32C_REFLECTED 0x82f63b78u

/* Slicing by eight: crc_table[j][b] is byte b followed by j zero bytes. */
static uint32_t crc_table[8][256];
static pthread_once_t crc_once = PTHREAD_ONCE_INIT;

static void crc_table_fill(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? CRC32C_REFLECTED : 0);
        crc_table[0][byte] = crc;
    }
    for (int j = 1; j < 8; j++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t crc = crc_table[j - 1][byte];
            crc_table[j][byte] = crc >> 8 ^ crc_table[0][crc & 255];
        }
}

static uint32_t crc32c_plain(uint32_t crc, const uint8_t *at, size_t size)
{
    pthread_once(&crc_once, crc_table_fill);
    for (; size >= 8; size -= 8, at += 8) {
        uint64_t x = load_le64(at) ^ crc;
        crc = 0;
        for (int i = 0; i < 8; i++)
            crc ^= crc_table[7 - i][x >> (8 * i) & 255];
    }
    for (; size > 0; size--, at++)
        crc = crc >> 8 ^ crc_table[0][(crc ^ *at) & 255];
    return crc;
}

#ifdef HASH_X86
__attribute__((target("sse4.2"))) static uint32_t crc32c_sse(uint32_t crc, const uint8_t *at,
                                                             size_t size)
{
    uint64_t wide = crc;
    for (; size >= 8; size -= 8, at += 8)
        wide = _mm_crc32_u64(wide, load_le64(at));
    crc = (uint32_t)wide;
    for (; size > 0; size--, at++)
        crc = _mm_crc32_u8(crc, *at);
    return crc;
}
#endif

uint32_t crc32c(uint32_t crc, const void *data, size_t size)
{
    pthread_once(&features_once, features_ask);
#ifdef HASH_X86
    if (has_crc32)
        return ~crc32c_sse(~crc, data, size);
#endif
    return ~crc32c_plain(~crc, data, size);
}

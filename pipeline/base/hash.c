/* hash.c: MurmurHash3_x64_128 and CRC-32C; SHA-256 is libcrypto's.
 *
 * x86 CPUs since 2008 have an instruction for CRC-32C; it is detected at run time, and plain C
 * computes the same elsewhere. */
#include "base/hash.h"
#include <endian.h>
#include <pthread.h>
#include <string.h>

#if defined(__x86_64__)
#define HASH_X86 1
#include <immintrin.h>
#endif

/* Integers in blocks have a fixed byte order. memcpy(), because the data may be unaligned. */
static uint64_t load_le64(const uint8_t *p)
{
    uint64_t value;
    memcpy(&value, p, sizeof value);
    return le64toh(value);
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
    /* A missing half of the last block counts as zeros, which mixing does not change. */
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

void murmur3_of(uint64_t digest[2], const void *data, size_t size)
{
    struct murmur3 state;
    murmur3_init(&state);
    murmur3_update(&state, data, size);
    murmur3_final(&state, digest);
}

void murmur3_of_path(uint64_t digest[2], uint16_t source, const char *path, size_t length)
{
    struct murmur3 state;
    murmur3_init(&state);
    murmur3_update(&state, &source, sizeof source);
    murmur3_update(&state, path, length);
    murmur3_final(&state, digest);
}

uint64_t hash_of_path(uint16_t source, const char *path, size_t length)
{
    uint64_t digest[2];
    murmur3_of_path(digest, source, path, length);
    return digest[0];
}

/* --- sha256 ---------------------------------------------------------------------------------- */

void sha256_init(struct sha256 *state)
{
    SHA256_Init(&state->context);
}

void sha256_update(struct sha256 *state, const void *data, size_t size)
{
    SHA256_Update(&state->context, data, size);
}

void sha256_final(struct sha256 *state, uint8_t digest[32])
{
    SHA256_Final(digest, &state->context);
}

void sha256_of(uint8_t digest[32], const void *data, size_t size)
{
    SHA256(data, size, digest);
}

static void write_hex(char hex[65], const uint8_t digest[32])
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < 32; i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hex[64] = 0;
}

void sha256_hex(char hex[65], struct sha256 *state)
{
    uint8_t digest[32];
    sha256_final(state, digest);
    write_hex(hex, digest);
}

void sha256_hex_of(char hex[65], const void *data, size_t size)
{
    uint8_t digest[32];
    sha256_of(digest, data, size);
    write_hex(hex, digest);
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
__attribute__((target("sse4.2,crc32"))) static uint32_t crc32c_sse(uint32_t crc, const uint8_t *at,
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
#ifdef HASH_X86
    if (__builtin_cpu_supports("sse4.2"))
        return ~crc32c_sse(~crc, data, size);
#endif
    return ~crc32c_plain(~crc, data, size);
}

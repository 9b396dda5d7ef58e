/* hash.h: three digests and their uses.
 *
 * murmur3: MurmurHash3_x64_128 (Austin Appleby, public domain, 2011), seed 0, streaming: the
 * content digest of image files. It detects duplicates and changes, but does not resist attacks.
 * sha256 (FIPS 180-4, computed by libcrypto): identities, checksums and cache keys. crc32c
 * (Castagnoli; RFC 3720 B.4): records in logs.
 *
 * The caller owns the state: init, any number of updates, final once. */
#ifndef CLPIPE_BASE_HASH_H
#define CLPIPE_BASE_HASH_H

/* libcrypto's functions on a caller-owned context cannot fail; the newer ones allocate. */
#define OPENSSL_API_COMPAT 10101
#include <openssl/sha.h>

#include <stddef.h>
#include <stdint.h>

struct murmur3 {
    uint64_t h1, h2, length;
    uint8_t tail[16];
};

/* Begins a new digest. */
void murmur3_init(struct murmur3 *state);
void murmur3_update(struct murmur3 *state, const void *data, size_t size);
/* digest[0] is h1 and digest[1] h2 of the reference implementation. */
void murmur3_final(const struct murmur3 *state, uint64_t digest[2]);
/* Digests one message. */
void murmur3_of(uint64_t digest[2], const void *data, size_t size);

/* Digests a path of `length` bytes in a source, for tables in memory and temporary files. */
void murmur3_of_path(uint64_t digest[2], uint16_t source, const char *path, size_t length);
/* Half of it. */
uint64_t hash_of_path(uint16_t source, const char *path, size_t length);

struct sha256 {
    SHA256_CTX context;
};

/* The same; the digest has the byte order of the standard. */
void sha256_init(struct sha256 *state);
void sha256_update(struct sha256 *state, const void *data, size_t size);
void sha256_final(struct sha256 *state, uint8_t digest[32]);
/* The same as 64 lower-case hexadecimal digits and a NUL. */
void sha256_hex(char hex[65], struct sha256 *state);
/* Digest one message. */
void sha256_of(uint8_t digest[32], const void *data, size_t size);
void sha256_hex_of(char hex[65], const void *data, size_t size);

/* CRC-32C of data, continuing from `crc` (0 to start). */
uint32_t crc32c(uint32_t crc, const void *data, size_t size);

#endif

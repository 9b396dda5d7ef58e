/* test_hash.c: the digests compared with published and independently computed values, in one piece
 * and in pieces of odd sizes; and the plain C variant compared with the CPU's instructions.
 *
 * The test includes the source file to reach the variants that this machine would not choose. */
#include "runner.h"

#include "../../pipeline/base/hash.c"

#include <stdio.h>
#include <stdlib.h>

#define PATTERN 5000
static uint8_t pattern[PATTERN];

/* Output of a linear congruential generator, so that any program can reproduce the data. */
static int fill(void **state)
{
    (void)state;
    uint32_t x = 12345;
    for (size_t i = 0; i < PATTERN; i++) {
        x = x * 1103515245u + 12345u;
        pattern[i] = (uint8_t)(x >> 16);
    }
    return 0;
}

static void murmur3_vectors(void **state)
{
    (void)state;
    /* Computed with mmh3, which wraps the reference implementation. */
    static const struct {
        size_t size;
        uint64_t h1, h2;
    } vectors[] = {
        {0, UINT64_C(0x0000000000000000), UINT64_C(0x0000000000000000)},
        {1, UINT64_C(0x7eb4121b3eb80c70), UINT64_C(0x7f0efb0faf61446a)},
        {2, UINT64_C(0x9aeca98b03ac786f), UINT64_C(0x8b51ff472c8a22df)},
        {3, UINT64_C(0x120f3e1aaadd72c7), UINT64_C(0xcd6ddd67ff5848a0)},
        {4, UINT64_C(0x64474098c04ee4e3), UINT64_C(0x667a7312e2bcdcf9)},
        {5, UINT64_C(0xbc8f1c012e6d4947), UINT64_C(0x008973f939e13b9a)},
        {6, UINT64_C(0x14bfa76157a824c4), UINT64_C(0x6ea37075b8c5799d)},
        {7, UINT64_C(0xe863327981002597), UINT64_C(0x6aff65afb70993ff)},
        {8, UINT64_C(0x660a9186c98f2c06), UINT64_C(0x23236f37d8ace1f1)},
        {9, UINT64_C(0x639f90a63288032e), UINT64_C(0x2f80aca8cb6b8f38)},
        {10, UINT64_C(0xf2bf6d2eb120f0bf), UINT64_C(0xd29afd712d3dd796)},
        {11, UINT64_C(0xc18c81a1ef044c6c), UINT64_C(0x9d6d3f3a9b79e891)},
        {12, UINT64_C(0x7909a6f924abec90), UINT64_C(0xcad4bda790f96c1f)},
        {13, UINT64_C(0x0659e86116baa84f), UINT64_C(0xbe24a9f62e784c1b)},
        {14, UINT64_C(0xbaff37e7cadd6c4f), UINT64_C(0x35a07482a9ca8da6)},
        {15, UINT64_C(0x43aa1ce5c913f927), UINT64_C(0x393a717668e9ca85)},
        {16, UINT64_C(0x5386d79f7b4a00a8), UINT64_C(0xa2df8e8e6be0f33c)},
        {17, UINT64_C(0x42b4d9ced8e0f8b9), UINT64_C(0xc217526d0bac4a95)},
        {18, UINT64_C(0x9202a16d4f698717), UINT64_C(0xbbdbc442ee45dba7)},
        {19, UINT64_C(0xaeca2d37cab68cbd), UINT64_C(0x9ea3e974d9f80153)},
        {20, UINT64_C(0xcaaa45735d4e648c), UINT64_C(0xcc7f23a0aca4c74c)},
        {21, UINT64_C(0x89efac5530bbcb43), UINT64_C(0xcf6fcca183551394)},
        {22, UINT64_C(0x4aab5882981fea86), UINT64_C(0x965d06cc49899045)},
        {23, UINT64_C(0x1bfe75ade2a4fe32), UINT64_C(0xa4be851ace0ba909)},
        {24, UINT64_C(0x74ffee193dbfb510), UINT64_C(0x3a96f0e3dacac98e)},
        {25, UINT64_C(0xd5e6fca38a2eb3b5), UINT64_C(0x24a260bd43978192)},
        {26, UINT64_C(0x77d28147738076d4), UINT64_C(0x540502ebe708f24a)},
        {27, UINT64_C(0x12e04cc55a886850), UINT64_C(0xba02b69cbb349315)},
        {28, UINT64_C(0x426a25f39801b960), UINT64_C(0xd290c9ba2bdb95bf)},
        {29, UINT64_C(0xf549237e28850dc3), UINT64_C(0x788bbd1086aaabae)},
        {30, UINT64_C(0x45e765b6c9ed0c51), UINT64_C(0x610da235c90758ad)},
        {31, UINT64_C(0xb49700b4685fca21), UINT64_C(0x866c84da6af60ae3)},
        {32, UINT64_C(0x90a4a491378f66b0), UINT64_C(0x86cd69df98f91013)},
        {33, UINT64_C(0xe9c910bd95fbd854), UINT64_C(0xc39c9067a9241135)},
        {63, UINT64_C(0x153650708974fe9e), UINT64_C(0x7b6656951287af6f)},
        {64, UINT64_C(0x7f4560c57a8c0e6f), UINT64_C(0x67eac3126e86751c)},
        {65, UINT64_C(0x3f3e46993a9f688c), UINT64_C(0x0a5f7a30d8a6ace3)},
        {1000, UINT64_C(0x41a89b3258d41225), UINT64_C(0x70170e73aa6c6f26)},
        {4099, UINT64_C(0x00bc0e8094416d67), UINT64_C(0x867c227ded1550bb)},
    };
    static const struct {
        const char *text;
        uint64_t h1, h2;
    } texts[] = {
        {"", 0, 0},
        {"a", UINT64_C(0x85555565f6597889), UINT64_C(0xe6b53a48510e895a)},
        {"hello", UINT64_C(0xcbd8a7b341bd9b02), UINT64_C(0x5b1e906a48ae1d19)},
        {"The quick brown fox jumps over the lazy dog", UINT64_C(0xe34bbc7bbc071b6c),
         UINT64_C(0x7a433ca9c49a9347)},
    };
    uint64_t digest[2];
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        murmur3_of(digest, pattern, vectors[i].size);
        assert_int_equal(digest[0], vectors[i].h1);
        assert_int_equal(digest[1], vectors[i].h2);
    }
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        murmur3_of(digest, texts[i].text, strlen(texts[i].text));
        assert_int_equal(digest[0], texts[i].h1);
        assert_int_equal(digest[1], texts[i].h2);
    }
}

static void sha256_vectors(void **state)
{
    (void)state;
    /* The examples of FIPS 180-4 (from NIST's "SHA256.pdf" and the long message) and the empty
     * message. */
    static const struct {
        const char *text, *hex;
    } vectors[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqr"
         "lmnopqrsmnopqrstnopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    char hex[65];
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        sha256_hex_of(hex, vectors[i].text, strlen(vectors[i].text));
        assert_string_equal(hex, vectors[i].hex);
    }
    sha256_hex_of(hex, pattern, 1000);
    assert_string_equal(hex, "a7f1195b5dd581399ef111007e6b3c49a3542cefeb4fdd1d5338eb6dff8d7e9e");

    struct sha256 s;
    uint8_t as[1000];
    memset(as, 'a', sizeof as);
    sha256_init(&s);
    for (int i = 0; i < 1000; i++)
        sha256_update(&s, as, sizeof as);
    sha256_hex(hex, &s);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* For all lengths around the limits of the padding, hashing in pieces of varying size gives the
 * digest of the whole. */
static void pieces_equal_the_whole(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 3, 7, 15, 16, 17, 31, 55, 63, 64, 65, 127, 1000};
    for (size_t length = 0; length <= 300; length++) {
        uint64_t whole[2], pieces[2];
        char whole_hex[65], pieces_hex[65];
        murmur3_of(whole, pattern, length);
        sha256_hex_of(whole_hex, pattern, length);
        uint32_t whole_crc = crc32c(0, pattern, length);
        for (size_t p = 0; p < sizeof sizes / sizeof sizes[0]; p++) {
            struct murmur3 m;
            struct sha256 s;
            uint32_t crc = 0;
            murmur3_init(&m);
            sha256_init(&s);
            size_t at = 0;
            for (size_t step = p; at < length; step++) {
                size_t n = sizes[step % (sizeof sizes / sizeof sizes[0])];
                if (n > length - at)
                    n = length - at;
                murmur3_update(&m, pattern + at, n);
                murmur3_update(&m, NULL, 0);
                sha256_update(&s, pattern + at, n);
                sha256_update(&s, NULL, 0);
                crc = crc32c(crc, pattern + at, n);
                at += n;
            }
            murmur3_final(&m, pieces);
            sha256_hex(pieces_hex, &s);
            assert_memory_equal(pieces, whole, sizeof whole);
            assert_string_equal(pieces_hex, whole_hex);
            assert_int_equal(crc, whole_crc);
        }
    }
}

static void final_may_be_called_twice(void **state)
{
    (void)state;
    struct murmur3 m;
    uint64_t first[2], second[2];
    murmur3_init(&m);
    murmur3_update(&m, "hel", 3);
    murmur3_final(&m, first);
    murmur3_final(&m, second);
    assert_memory_equal(first, second, sizeof first);
    murmur3_update(&m, "lo", 2);
    murmur3_final(&m, first);
    assert_int_equal(first[0], UINT64_C(0xcbd8a7b341bd9b02));
}

static void crc32c_vectors(void **state)
{
    (void)state;
    uint8_t zeros[32] = {0}, ones[32], up[32], down[32];
    for (int i = 0; i < 32; i++) {
        ones[i] = 0xff;
        up[i] = (uint8_t)i;
        down[i] = (uint8_t)(31 - i);
    }
    /* RFC 3720, section B.4, and the check value of the CRC catalogue. */
    assert_int_equal(crc32c(0, zeros, 32), 0x8a9136aa);
    assert_int_equal(crc32c(0, ones, 32), 0x62a8ab43);
    assert_int_equal(crc32c(0, up, 32), 0x46dd794e);
    assert_int_equal(crc32c(0, down, 32), 0x113fdb5c);
    assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(crc32c(0, NULL, 0), 0);
}

static void variants_agree(void **state)
{
    (void)state;
    for (size_t offset = 0; offset < 9; offset++)
        for (size_t size = 0; size < 200; size++) {
            uint32_t plain = crc32c_plain(~0u, pattern + offset, size);
            assert_int_equal(~plain, crc32c(0, pattern + offset, size));
        }
#ifdef HASH_X86
    if (!__builtin_cpu_supports("sse4.2"))
#endif
        print_message(
            "plain C was compared with itself: this CPU has no instruction for CRC-32C\n");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(murmur3_vectors),        cmocka_unit_test(sha256_vectors),
    cmocka_unit_test(pieces_equal_the_whole), cmocka_unit_test(final_may_be_called_twice),
    cmocka_unit_test(crc32c_vectors),         cmocka_unit_test(variants_agree),
};
TEST_GROUP(hash, fill, NULL)

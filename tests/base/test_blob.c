/* test_blob.c: reading blobs from a file, from a range of a file and from memory. */
#include "runner.h"

#include "base/blob.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIGITS "0123456789"

static int digits_file(void)
{
    int fd = memfd_create("digits", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, DIGITS, 10), 10);
    return fd;
}

static struct blob digits_memory(size_t bytes)
{
    char *memory = malloc(bytes + 1);
    assert_non_null(memory);
    memcpy(memory, DIGITS, bytes);
    return blob_of_memory(memory, bytes);
}

static void assert_reads(const struct blob *blob, uint64_t position, size_t size,
                         const char *expected)
{
    char got[32] = "";
    memset(got, 'x', sizeof got);
    const ssize_t count = blob_read(blob, got, size, position);
    assert_int_equal(count, strlen(expected));
    assert_memory_equal(got, expected, strlen(expected));
    assert_int_equal(got[strlen(expected)], 'x');
}

static void range_ends_at_its_limit(void **state)
{
    (void)state;
    int fd = digits_file();
    struct blob blob = blob_of_range(fd, 3, 4, 10, 0);
    assert_true(blob_is_open(&blob));
    assert_reads(&blob, 0, 20, "3456");
    assert_reads(&blob, 1, 2, "45");
    assert_reads(&blob, 3, 20, "6");
    assert_reads(&blob, 4, 20, "");
    assert_reads(&blob, UINT64_MAX, 20, "");
    struct blob past = blob_of_range(fd, 8, 4, 10, 0);
    assert_reads(&past, 0, 20, "89");
    blob_close(&blob);
    assert_false(blob_is_open(&blob));
    assert_true(fcntl(fd, F_GETFD) >= 0); /* the blob only borrowed the descriptor */
    close(fd);
}

static void growth_of_a_whole_file_is_seen(void **state)
{
    (void)state;
    int fd = digits_file();
    struct blob blob = blob_of_file(fd, 9, 0);
    assert_reads(&blob, 0, 20, DIGITS);
    assert_reads(&blob, 10, 20, "");
    assert_reads(&blob, (uint64_t)INT64_MAX + 1, 20, "");
    blob_close(&blob);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static void bytes_in_memory(void **state)
{
    (void)state;
    struct blob blob = digits_memory(10), empty = digits_memory(0);
    assert_true(blob_is_open(&blob) && blob_is_open(&empty));
    assert_reads(&blob, 0, 20, DIGITS);
    assert_reads(&blob, 7, 2, "78");
    assert_reads(&blob, 10, 20, "");
    assert_reads(&empty, 0, 20, "");
    blob_close(&blob);
    blob_close(&empty);
    assert_false(blob_is_open(&blob));
}

static void reading_a_closed_blob_fails(void **state)
{
    (void)state;
    struct blob nothing = BLOB_NOTHING, closed = {.fd = -1, .bytes = 4};
    char byte;
    assert_false(blob_is_open(&nothing));
    assert_int_equal(blob_read(&closed, &byte, 1, 0), -1);
    assert_int_equal(errno, EBADF);
    blob_close(&nothing);
}

static void shared_bytes_are_the_same(void **state)
{
    (void)state;
    int fd = digits_file();
    struct blob range = blob_of_range(fd, 3, 4, 10, 0), memory = digits_memory(10);
    struct blob empty = digits_memory(0), shared;
    assert_int_equal(blob_share(&shared, &range), 0);
    assert_int_equal(shared.fd, fd);
    assert_reads(&shared, 0, 20, "3456");
    blob_close(&shared);
    assert_true(fcntl(fd, F_GETFD) >= 0);
    close(fd);

    struct stat st;
    assert_int_equal(blob_share(&shared, &memory), 0);
    assert_reads(&shared, 0, 20, DIGITS);
    assert_int_equal(fstat(shared.fd, &st), 0);
    assert_int_equal(shared.file_bytes, 10);
    assert_int_equal(shared.mtime_ns, st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec);
    assert_int_equal(pwrite(shared.fd, "x", 1, 0), -1); /* the memory file is sealed */
    blob_close(&shared);
    assert_int_equal(blob_share(&shared, &empty), 0);
    assert_reads(&shared, 0, 20, "");
    blob_close(&shared);
    blob_close(&memory);
    blob_close(&empty);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(range_ends_at_its_limit),   cmocka_unit_test(growth_of_a_whole_file_is_seen),
    cmocka_unit_test(bytes_in_memory),           cmocka_unit_test(reading_a_closed_blob_fails),
    cmocka_unit_test(shared_bytes_are_the_same),
};
TEST_GROUP(blob, NULL, NULL)

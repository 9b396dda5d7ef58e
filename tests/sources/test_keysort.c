/* test_keysort.c: sorts records by key with a small stack, whatever prefixes the keys share, and
 * checks the order pairwise. */
#include "runner.h"

#include "sources/keysort.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define STACK  (128 * 1024)
#define LEVELS 8192 /* levels of 8 bytes; sorting each recursively would overflow the stack */

struct job {
    struct record_reference *references;
    size_t count, used;
    char *arena;
};

static void job_open(struct job *job, size_t count, size_t bytes)
{
    job->count = job->used = 0;
    job->references = calloc(count, sizeof *job->references);
    job->arena = calloc(count, sizeof(struct record_header) + bytes + RECORD_ALIGNMENT);
    assert_non_null(job->references);
    assert_non_null(job->arena);
}

static void job_add(struct job *job, const void *key, size_t length)
{
    const struct record_header header = {(uint32_t)length, 0};
    job->references[job->count++].place = (uint32_t)(job->used / RECORD_ALIGNMENT);
    memcpy(job->arena + job->used, &header, sizeof header);
    memcpy(job->arena + job->used + sizeof header, key, length);
    job->used += (sizeof header + length + RECORD_ALIGNMENT - 1) & ~(size_t)(RECORD_ALIGNMENT - 1);
}

static const char *key_at(const struct job *job, size_t i, uint32_t *length)
{
    const char *record = job->arena + (size_t)job->references[i].place * RECORD_ALIGNMENT;
    memcpy(length, record, sizeof *length);
    return record + sizeof(struct record_header);
}

static void *sort(void *job)
{
    const struct job *work = job;
    keysort(work->references, work->count, work->arena, NULL);
    return NULL;
}

/* Sorts in a thread with a stack of the given size, compares neighbours, and frees the job. */
static void job_check(struct job *job)
{
    pthread_t thread;
    pthread_attr_t attributes;
    bool *seen = calloc(job->used / RECORD_ALIGNMENT, sizeof *seen);
    assert_non_null(seen);
    pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstacksize(&attributes, STACK), 0);
    assert_int_equal(pthread_create(&thread, &attributes, sort, job), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    for (size_t i = 0; i < job->count; i++) {
        uint32_t length, before;
        const char *key = key_at(job, i, &length);
        assert_false(seen[job->references[i].place]);
        seen[job->references[i].place] = true;
        if (i > 0) {
            const char *previous = key_at(job, i - 1, &before);
            assert_true(key_compare(previous, before, key, length) <= 0);
        }
    }
    free(seen);
    free(job->references);
    free(job->arena);
}

static void words_and_prefixes(void **state)
{
    (void)state;
    uint64_t random = test_seed();
    struct job job;
    job_open(&job, 5000, 40);
    for (unsigned i = 0; i < 5000; i++) {
        char key[40];
        random = random * 6364136223846793005u + 1442695040888963407u;
        const size_t length = random >> 33 & 31;
        for (size_t j = 0; j < length; j++) /* few values, including the bytes 0 and 255 */
            key[j] = (char)((random >> (j + 8) & 3) - 1);
        job_add(&job, key, length);
    }
    job_check(&job);
}

/* All keys share a long prefix, and at each level only a few differ. */
static void long_common_prefixes_on_a_small_stack(void **state)
{
    (void)state;
    static char key[8 * LEVELS];
    struct job job;
    job_open(&job, 64, sizeof key);
    memset(key, 'a', sizeof key);
    for (unsigned i = 0; i < 64; i++) {
        key[sizeof key - 1] = (char)(i * 37 % 64);
        job_add(&job, key, sizeof key);
    }
    job_check(&job);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(words_and_prefixes),
    cmocka_unit_test(long_common_prefixes_on_a_small_stack),
};
TEST_GROUP(keysort, NULL, NULL)

/* test_source.c: a new kind of source needs only one file and one table row. This file has two
 * kinds, whose table replaces that of source_kinds.c: "count:N" is N pictures in memory, and a file
 * that ends in ".chain" contains pictures one after another, each preceded by its length. */
#include "runner.h"

#include "base/clock.h"
#include "decode/isolate.h"
#include "sources/source.h"
#include "sources/walk.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- pictures that are generated from their number, in listing order ------------------------- */

#define SIDE 5

/* Makes a picture of SIDE x SIDE pixels whose samples are all `number`. */
static size_t make_ppm(uint8_t **out, unsigned number)
{
    uint8_t *ppm = malloc(32 + SIDE * SIDE * 3);
    assert_non_null(ppm);
    size_t size = (size_t)sprintf((char *)ppm, "P6 %u %u 255\n", SIDE, SIDE);
    memset(ppm + size, (int)number, SIDE * SIDE * 3);
    *out = ppm;
    return size + SIDE * SIDE * 3;
}

static bool is_count(const char *name, const struct stat *st)
{
    (void)st;
    return strncmp(name, "count:", 6) == 0;
}

static enum status open_count(struct source *source, struct error *err)
{
    source->state = calloc(1, sizeof(uint64_t)); /* number of the next member that can be opened */
    return source->state ? STATUS_OK : error_memory(err, sizeof(uint64_t), "a count");
}

static enum status list_count(struct source *source, struct source_listing *listing,
                              struct error *err)
{
    const unsigned count = (unsigned)strtoul(source->name + 6, NULL, 10);
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < count && status == STATUS_OK; i++) {
        uint8_t *ppm;
        char name[32];
        const struct entry entry = {
            .bytes = make_ppm(&ppm, i), .mtime_ns = i, .where = i | SOURCE_WHERE_IN_ORDER};
        free(ppm);
        listing->found(listing);
        const int length = snprintf(name, sizeof name, "%u.ppm", i);
        if (pathglob_takes_alone(listing->globs, name, (size_t)length))
            status = listing->add(listing, name, (size_t)length, &entry, err);
    }
    return status;
}

static enum reason open_counted(struct blob *out, const struct source *source,
                                const struct source_member *member, struct failure *failure)
{
    uint64_t *next = source->state;
    uint8_t *ppm;
    const uint64_t number = member->where & ~SOURCE_WHERE_IN_ORDER;
    assert_true(number >= *next);
    *next = number + 1;
    if (number == 13)
        return failure_set(failure, REASON_UNREADABLE, "there is no number 13");
    const size_t size = make_ppm(&ppm, (unsigned)number);
    *out = blob_of_memory(ppm, size);
    return REASON_NONE;
}

static void close_count(struct source *source)
{
    free(source->state);
}

static const struct source_kind source_count = {
    .recognise = is_count,
    .prepare = open_count,
    .list = list_count,
    .open = open_counted,
    .close = close_count,
};

/* --- pictures in one file, opened by offset -------------------------------------------------- */

struct chain {
    uint64_t bytes;
    int64_t mtime_ns;
};

static bool is_chain(const char *name, const struct stat *st)
{
    const char *end = strrchr(name, '.');
    return st && S_ISREG(st->st_mode) && end && strcmp(end, ".chain") == 0;
}

static enum status list_chain(struct source *source, struct source_listing *listing,
                              struct error *err)
{
    struct chain *chain = source->state = calloc(1, sizeof *chain);
    struct stat st;
    source->fd = open(source->name, O_RDONLY | O_CLOEXEC);
    if (!chain || source->fd < 0 || fstat(source->fd, &st) != 0)
        return error_set(err, STATUS_FAILED, "cannot read the chain");
    *chain = (struct chain){(uint64_t)st.st_size, clock_file_time(&st.st_mtim)};
    enum status status = STATUS_OK;
    uint32_t length;
    unsigned number = 0;
    for (uint64_t at = 0; status == STATUS_OK &&
                          pread(source->fd, &length, sizeof length, (off_t)at) == sizeof length;
         at += sizeof length + length) {
        char name[32];
        const struct entry entry = {
            .bytes = length, .mtime_ns = chain->mtime_ns, .where = at + sizeof length};
        const int size = snprintf(name, sizeof name, "link%u", number++);
        listing->found(listing);
        status = listing->add(listing, name, (size_t)size, &entry, err);
    }
    return status;
}

static enum reason open_link(struct blob *out, const struct source *source,
                             const struct source_member *member, struct failure *failure)
{
    const struct chain *chain = source->state;
    (void)failure;
    *out = blob_of_range(source->fd, member->where, member->bytes, chain->bytes, chain->mtime_ns);
    return REASON_NONE;
}

static void close_chain(struct source *source)
{
    free(source->state);
}

static const struct source_kind source_chain = {
    .recognise = is_chain,
    .list = list_chain,
    .open = open_link,
    .close = close_chain,
};

const struct source_kind *const source_kinds[] = {
    &source_count, &source_list, &source_directory, &source_chain, &source_file, NULL,
};

/* --- from sources to rows -------------------------------------------------------------------- */

/* Decodes an item whose pixels must all be `sample`. */
static void check_item(struct walk *walk, struct decode *decode, const struct walk_item *item,
                       int sample)
{
    struct blob blob = BLOB_NOTHING;
    struct failure failure = {.reason = REASON_NONE};
    struct image_info info;
    uint8_t rows[SIDE * SIDE * 3];
    uint64_t digest[2];
    const struct source_member member = {item->path, item->entry.where, item->entry.bytes,
                                         item->entry.mtime_ns};
    struct error err = ERROR_INIT;
    assert_int_equal(walk_open_member(&blob, walk, item->source, &member, &failure), REASON_NONE);
    assert_int_equal(blob.bytes, item->entry.bytes);
    assert_int_equal(decode_ready(decode, &err), STATUS_OK);
    assert_int_equal(decode_begin(decode, &blob, item->path, &info, &failure), REASON_NONE);
    assert_int_equal(info.out_width, SIDE);
    assert_int_equal(info.out_height, SIDE);
    assert_int_equal(decode_rows(decode, rows, SIDE * 3, SIDE, &failure), REASON_NONE);
    assert_int_equal(decode_end(decode, digest, &failure), REASON_NONE);
    assert_int_equal(decode_bytes_read(decode), item->entry.bytes);
    for (unsigned i = 0; i < sizeof rows; i++)
        assert_int_equal(rows[i], sample);
    blob_close(&blob);
}

static struct walk *open_walk(const char *const *sources, unsigned count, uint64_t limit)
{
    const struct walk_config config = {
        .options = {.sources = sources, .source_count = count, .limit = limit},
        .spool_directory = "/tmp",
        .promises_image = format_promised};
    struct walk *walk;
    struct error err = ERROR_INIT;
    assert_int_equal(walk_open(&walk, &config, &err), STATUS_OK);
    return walk;
}

static struct walk_item next_item(struct walk *walk)
{
    struct walk_item item;
    struct error err = ERROR_INIT;
    assert_int_equal(walk_next(walk, &item, &err), STATUS_OK);
    return item;
}

static void write_chain(const char *path, unsigned count)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    assert_true(fd >= 0);
    for (unsigned i = 0; i < count; i++) {
        uint8_t *ppm;
        const uint32_t length = (uint32_t)make_ppm(&ppm, 100 + i);
        assert_int_equal(write(fd, &length, sizeof length), sizeof length);
        assert_int_equal(write(fd, ppm, length), length);
        free(ppm);
    }
    close(fd);
}

static void decode_all_sources(struct decode *decode)
{
    char directory[] = "/tmp/clpipe-test-source-XXXXXX", chain[64];
    assert_non_null(mkdtemp(directory));
    snprintf(chain, sizeof chain, "%s/x.chain", directory);
    write_chain(chain, 4);
    const char *const sources[] = {"count:3", chain, "count:2"};
    struct walk *walk = open_walk(sources, 3, 0);
    assert_int_equal(walk_count(walk), 9);
    for (unsigned i = 0; i < 9; i++) {
        const struct walk_item item = next_item(walk);
        assert_int_equal(item.sequence, i);
        assert_int_equal(walk_opens_in_order(item.entry.where), item.source != 1);
        assert_int_equal(item.source, i < 3 ? 0 : i < 7 ? 1 : 2);
        check_item(walk, decode, &item, i < 3 ? (int)i : i < 7 ? 97 + (int)i : (int)i - 7);
    }
    walk_close(&walk);
    assert_int_equal(unlink(chain), 0);
    assert_int_equal(rmdir(directory), 0);
}

static void members_become_rows(void **state)
{
    (void)state;
    struct isolate_config config = {.slot_bytes = 1 << 16};
    struct isolate *isolate;
    struct decode *local, *isolated;
    struct error err = ERROR_INIT;
    decode_options_default(&config.options);
    assert_int_equal(isolate_open(&isolate, &config, &err), STATUS_OK);
    assert_int_equal(decode_open(&local, &config.options, &err), STATUS_OK);
    assert_int_equal(decode_open_isolated(&isolated, isolate, &err), STATUS_OK);
    decode_all_sources(local);
    decode_all_sources(isolated);
    decode_close(&local);
    decode_close(&isolated);
    isolate_close(&isolate);
}

static void a_member_that_cannot_be_opened(void **state)
{
    (void)state;
    const char *const sources[] = {"count:20"};
    struct walk *walk = open_walk(sources, 1, 14);
    struct walk_item item = {0};
    struct blob blob = BLOB_NOTHING;
    struct failure failure = {.reason = REASON_NONE};
    assert_int_equal(walk_count(walk), 14);
    for (unsigned i = 0; i < 14; i++)
        item = next_item(walk);
    assert_string_equal(item.path, "13.ppm");
    const struct source_member member = {item.path, item.entry.where, item.entry.bytes,
                                         item.entry.mtime_ns};
    assert_int_equal(walk_open_member(&blob, walk, 0, &member, &failure), REASON_UNREADABLE);
    assert_string_equal(failure.message, "there is no number 13");
    assert_false(blob_is_open(&blob));
    walk_close(&walk);
}

static void names_are_known(void **state)
{
    (void)state;
    assert_true(walk_knows_name("count:3"));
    assert_true(walk_knows_name("@list") && walk_knows_name("-"));
    assert_false(walk_knows_name("x.chain") || walk_knows_name("./count:3"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(members_become_rows),
    cmocka_unit_test(a_member_that_cannot_be_opened),
    cmocka_unit_test(names_are_known),
};
TEST_GROUP(source, NULL, NULL)

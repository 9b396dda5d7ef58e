/* walk.c: lists the sources in order, each in its final order, into one spool.
 *
 *   source 1 ── list ──┐
 *   source 2 ── list ──┼──> spool ── walk_next ──> items ── walk_open_member ──> blobs
 *   ...                │
 *
 * Everything is listed before the first item is returned, as required by the order, the total and
 * the ETA. Kinds of sources: source.h.
 *
 * A share depends on the total weight, so everything goes to the spool; but a list of clpipe list
 * has its weight and the starts of shares, and only the share is read. From a complete spool shares
 * can be passed to other processes. */
#include "sources/walk.h"

#include "base/path.h"
#include "base/process.h"
#include "base/sample_name.h"
#include "sources/archives.h"
#include "sources/bytes.h"
#include "sources/portion.h"
#include "sources/source.h"
#include "sources/spool.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MEMORY_MIN     (1024 * 1024)
#define READ_BUFFER    (64 * 1024)
#define PROGRESS_EVERY 256 /* items */

/* Result of listing a source. */
struct listed {
    uint64_t count;
    bool unseen; /* as in walk_count_of */
};

/* Position of an item in a division into shards: totals before it. */
struct division {
    uint64_t before, position, shard;
};

/* A share in the spool; or all of it. */
struct range {
    struct list_share share;
    uint64_t from, to, count, bytes;
    struct division end; /* after the share, if it was divided in the spool */
};

struct walk {
    struct source *sources;
    struct listed *listed;
    unsigned source_count;
    struct source_shared shared;

    struct spool *spool;
    struct spool_reader reader;
    uint64_t looked_at, limit; /* items that count towards the limit; UINT64_MAX: no limit */
    struct walk_passed passed;
    struct range own;        /* returned by this walk */
    struct range given;      /* the last share passed on; initially its own */
    struct walking *walking; /* NULL: all sources are listed */
    bool divides;            /* all shares are in the spool: */
    uint64_t weight;         /* total weight of its items */
    uint64_t sequence;       /* of the next item */
    size_t taken;            /* bytes of the last returned item, not consumed yet */
};

/* State needed only while listing. */
struct walking {
    struct source_listing listing; /* must be first: kinds only know this part */
    struct walk *walk;
    struct walk_config config;
    uint16_t source;
    uint64_t found;
    struct portion_total total; /* if there are shares */
    struct bytes last;          /* likewise, the previous path */
    struct source_start start;  /* storage for listing.start */
    struct division division;   /* likewise */
};

/* An item in the spool, followed by entry_size() bytes of its entry, the path and NUL. */
struct packed {
    uint32_t path_length;
    uint16_t entry_size, source;
    uint64_t weight; /* and PACKED_TIED */
};

/* In packed.weight: belongs to the same piece (portion.h) as the previous item. */
#define PACKED_TIED ((uint64_t)1 << 63)

/* --- listing --------------------------------------------------------------------------------- */

static void count_found(struct source_listing *listing)
{
    struct walking *walking = (struct walking *)listing;
    if (++walking->found % PROGRESS_EVERY == 0)
        watch_show(&walking->config.watch, "walking", walking->found, 0);
}

/* The weight of an item in a division into shards. */
static enum status weigh_item(uint64_t *weight, struct walking *walking, const char *path,
                              size_t length, const struct entry *entry, struct error *err)
{
    struct bytes *last = &walking->last;
    const bool tied =
        entry->share == ENTRY_SHARE_REST ||
        (walking->total.count > 0 && sample_tied(last->data, last->length, path, length));
    *weight = portion_add(&walking->total, path, length, entry) | (tied ? PACKED_TIED : 0);
    return bytes_set(last, path, length, err);
}

/* Does the next item belong to the share? -1: to an earlier one, 1: to a later one. Updates the
 * share's ends. `weight`: as in struct packed, in a list of weight `total`. */
static int divide_item(struct list_share *share, struct division *division, uint64_t weight,
                       uint64_t total)
{
    if (!(weight & PACKED_TIED))
        division->shard = portion_shard(division->before, weight, total, share->count);
    division->before += weight & ~PACKED_TIED;
    division->position++;
    if (division->shard > share->index)
        return 1;
    share->last = division->position;
    if (division->shard == share->index)
        return 0;
    share->first = division->position;
    return -1;
}

static void count_item(struct walk *walk, uint16_t source, const char *path, size_t length,
                       const struct entry *entry)
{
    walk->listed[source].count++;
    if (length == 2 && memcmp(path, "./", 2) == 0 && entry_is_unseen(&entry->failure))
        walk->listed[source].unseen = true;
    walk->looked_at += walk->sources[source].name != NULL;
}

/* Appends an item to the spool; STATUS_END at the limit. */
static enum status write_item(struct source_listing *listing, const char *path, size_t length,
                              const struct entry *entry, struct error *err)
{
    struct walking *walking = (struct walking *)listing;
    struct walk *walk = walking->walk;
    struct packed packed = {.path_length = (uint32_t)length,
                            .entry_size = (uint16_t)entry_size(entry),
                            .source = walking->source};
    const bool known = !walk->sources[walking->source].name;
    if (entry->failure.reason != REASON_NONE && process_is_short(entry->failure.error_number))
        return error_set(err, STATUS_FAILED, "%s: %s%s", PATH_TEXT(path), entry->failure.message,
                         process_limits());
    if (!known && walk->looked_at >= walk->limit)
        return STATUS_END;
    if (walk->own.share.count > 0 &&
        weigh_item(&packed.weight, walking, path, length, entry, err) != STATUS_OK)
        return STATUS_FAILED;
    if (walking->listing.start) {
        const int side = divide_item(&walk->own.share, &walking->division, packed.weight,
                                     walking->start.list_weight);
        if (side != 0)
            return side > 0 ? STATUS_END : STATUS_OK;
    } else {
        count_item(walk, walking->source, path, length, entry);
    }
    if (spool_write(walk->spool, &packed, sizeof packed, err) != STATUS_OK ||
        spool_write(walk->spool, entry, packed.entry_size, err) != STATUS_OK ||
        spool_write(walk->spool, path, length, err) != STATUS_OK ||
        spool_write(walk->spool, "", 1, err) != STATUS_OK)
        return STATUS_FAILED;
    walk->own.count++;
    walk->own.bytes += entry->bytes;
    return STATUS_OK;
}

/* Finds a share in the spool, after the previous one, `range`. */
static enum status next_share(struct range *range, uint64_t index, const struct walk *walk,
                              struct error *err)
{
    struct division division = range->end;
    struct spool_reader reader;
    struct packed packed;
    struct entry entry;
    const char *bytes;
    range->share.index = index;
    range->share.first = range->share.last = division.position;
    range->from = range->to;
    range->count = range->bytes = 0;
    enum status status =
        spool_reader_init(&reader, walk->spool, range->from, SPOOL_END, READ_BUFFER, err);
    if (status != STATUS_OK)
        return status;
    while ((status = spool_peek(&bytes, &reader, sizeof packed, err)) == STATUS_OK) {
        memcpy(&packed, bytes, sizeof packed);
        const size_t size = sizeof packed + packed.entry_size + packed.path_length + 1;
        const int side = divide_item(&range->share, &division, packed.weight, walk->weight);
        if (side > 0 || (status = spool_peek(&bytes, &reader, size, err)) != STATUS_OK)
            break;
        range->end = division;
        range->to += size;
        if (side < 0) {
            range->from = range->to;
        } else {
            memcpy(&entry, bytes + sizeof packed, offsetof(struct entry, failure));
            range->count++;
            range->bytes += entry.bytes;
        }
        spool_take(&reader, size);
    }
    spool_reader_clear(&reader);
    return status == STATUS_END ? STATUS_OK : status;
}

/* Lists sources from walking->source on, up to a stream. */
static enum status list_each(struct walking *walking, struct error *err)
{
    struct walk *walk = walking->walk;
    const struct walk_config *config = &walking->config;
    for (; walking->source < walk->source_count; walking->source++) {
        struct source *source = &walk->sources[walking->source];
        if (source->name && walk->looked_at >= walk->limit)
            continue;
        if (source->name && source->kind->next)
            break;
        enum status status = watch_check(&config->watch, "listing the sources", err);
        if (status != STATUS_OK)
            return status;
        status = source->name ? source->kind->list(source, &walking->listing, err)
                              : config->list_unread(config->list_unread_context, walking->source,
                                                    &walking->listing, err);
        if (status != STATUS_OK && status != STATUS_END)
            return status;
    }
    return STATUS_OK;
}

/* If only a share of one source is needed, that source may know its start. */
static enum status begin_share(struct walking *walking, struct error *err)
{
    struct walk *walk = walking->walk;
    const struct walk_options *options = &walking->config.options;
    struct source *source = &walk->sources[0];
    struct source_start *start = &walking->start;
    struct list_share *share = &walk->own.share;
    if (share->count == 0 || walk->source_count > 1 || !source->name ||
        !source->kind->begin_share || options->include_count > 0 || options->exclude_count > 0 ||
        options->limit > 0)
        return STATUS_OK;
    const enum status status =
        source->kind->begin_share(start, source, share->index, share->count, err);
    if (status != STATUS_OK)
        return status == STATUS_END ? STATUS_OK : status;
    walking->listing.start = start;
    walking->division = (struct division){.before = start->weight, .position = start->count};
    share->first = share->last = start->count;
    share->list_count = walk->listed[0].count = start->list_count;
    memcpy(share->list_digest, start->list_digest, sizeof share->list_digest);
    return STATUS_OK;
}

static void end_listing(struct walk *walk)
{
    struct walking *walking = walk->walking;
    if (!walking)
        return;
    walk->passed = walking->listing.passed;
    pathglob_close(&walking->listing.globs);
    skip_close(&walking->listing.skip);
    bytes_clear(&walking->last);
    free(walking);
    walk->walking = NULL;
}

static enum status list_sources(struct walk *walk, const struct walk_config *config,
                                struct error *err)
{
    const struct walk_options *options = &config->options;
    struct walking *walking = walk->walking = calloc(1, sizeof *walking);
    if (!walking)
        return error_memory(err, sizeof *walking, "the walk");
    walking->walk = walk;
    walking->config = *config;
    walking->listing =
        (struct source_listing){.options = &walking->config.options,
                                .spool_directory = config->spool_directory,
                                .promises_image = config->promises_image,
                                .memory = config->memory < MEMORY_MIN ? MEMORY_MIN : config->memory,
                                .stop = config->watch.stop,
                                .found = count_found,
                                .add = write_item};
    portion_begin(&walking->total);
    enum status status =
        pathglob_open(&walking->listing.globs, options->include, options->include_count,
                      options->exclude, options->exclude_count, err);
    if (status == STATUS_OK)
        status = skip_open(&walking->listing.skip, config->skip_paths, config->skip_count, err);
    if (status == STATUS_OK)
        status = begin_share(walking, err);
    if (status == STATUS_OK)
        status = list_each(walking, err);
    if (status == STATUS_OK && walk->own.share.count > 0 && !walking->listing.start) {
        portion_digest(walk->own.share.list_digest, &walking->total);
        walk->own.share.list_count = walking->total.count;
        walk->divides = true;
        walk->weight = walking->total.weight;
        walk->own.to = 0;
        status = next_share(&walk->own, walk->own.share.index, walk, err);
        walk->given = walk->own;
    }
    walking->config.watch.show = NULL; /* readers count later items */
    if (status != STATUS_OK || walking->source == walk->source_count)
        end_listing(walk);
    return status;
}

/* Lists the next members of a stream, or the sources after it. */
static enum status list_more(struct walk *walk, struct error *err)
{
    struct walking *walking = walk->walking;
    struct source *source = &walk->sources[walking->source];
    enum status status = source->kind->next(source, &walking->listing, err);
    if (status != STATUS_END)
        return status;
    walking->source++;
    status = list_each(walking, err);
    if (walking->source == walk->source_count)
        end_listing(walk);
    return status;
}

/* --- sources --------------------------------------------------------------------------------- */

static const struct source_kind *find_kind(const char *name, const struct stat *st)
{
    for (unsigned i = 0; source_kinds[i]; i++) {
        if (source_kinds[i]->recognise(name, st))
            return source_kinds[i];
    }
    return NULL;
}

bool walk_knows_name(const char *name)
{
    return find_kind(name, NULL) != NULL;
}

static enum status find_source_kind(struct source *source, const struct walk_config *config,
                                    struct error *err)
{
    const char *name = source->name;
    struct stat st;
    source->kind = find_kind(name, NULL);
    if (source->kind)
        return STATUS_OK;
    if (name[0] == 0)
        return error_set(err, STATUS_USAGE,
                         "a SOURCE is an empty name: give a directory, a file, @LIST or -");
    const int number = path_stat_at(AT_FDCWD, name, &st, 0) == 0 ? 0 : errno;
    const bool link = number != 0 && path_stat_at(AT_FDCWD, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (number == 0 || (link && config->promises_image(name)))
        source->kind = find_kind(name, &st);
    if (source->kind)
        return STATUS_OK;
    const char *shown = PATH_TEXT(name);
    if (number == 0)
        return error_set(err, STATUS_USAGE, "the source %s is of an unknown kind", shown);
    if (number == ENOENT || number == ENOTDIR || number == ELOOP)
        return error_errno(err, STATUS_USAGE, number, "stat",
                           link ? "the source %s is a broken symbolic link"
                                : "the source %s does not exist (misspelled, or not mounted?)",
                           shown);
    return error_errno(err, STATUS_FAILED, number, "stat", "cannot read the source %s", shown);
}

static enum status check_stream(const char *name, const struct walk_config *config,
                                struct error *err)
{
    if (config->options.shard_count > 0)
        return error_set(
            err, STATUS_USAGE,
            "%s is one stream, which processes cannot share: give each its own, and merge "
            "their files",
            name);
    return config->again
               ? error_set(err, STATUS_USAGE, "%s can be read only once: %s", name, config->again)
               : STATUS_OK;
}

/* Checks every source before listing the first, to report misspelt ones at once. */
static enum status open_sources(struct walk *walk, const struct walk_config *config,
                                struct error *err)
{
    const struct walk_options *options = &config->options;
    walk->sources = calloc(options->source_count, sizeof *walk->sources);
    walk->listed = calloc(options->source_count, sizeof *walk->listed);
    if (!walk->sources || !walk->listed)
        return error_memory(err, options->source_count * sizeof *walk->sources, "the sources");
    while (walk->source_count < options->source_count) {
        const char *name = options->sources[walk->source_count];
        struct source *source = &walk->sources[walk->source_count++];
        *source = (struct source){.shared = &walk->shared, .fd = -1};
        if (options->directories)
            source->directory = options->directories[walk->source_count - 1];
        if (!name)
            continue;
        source->name = strdup(name);
        if (!source->name)
            return error_memory(err, strlen(name) + 1, "a source's name");
        enum status status = find_source_kind(source, config, err);
        if (status == STATUS_OK && source->kind->next)
            status = check_stream(name, config, err);
        if (status == STATUS_OK && source->kind->prepare)
            status = source->kind->prepare(source, err);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

/* A walk with its sources and an empty spool. */
static enum status open_unlisted(struct walk **out, const struct walk_config *config,
                                 struct error *err)
{
    const struct walk_options *options = &config->options;
    assert(options->source_count >= 1);
    if (options->source_count > UINT16_MAX)
        return error_set(err, STATUS_USAGE,
                         "%u SOURCEs are more than 65535: write them to a file and give @FILE",
                         options->source_count);
    struct walk *walk = calloc(1, sizeof *walk);
    if (!walk)
        return error_memory(err, sizeof *walk, "the walk");
    walk->limit = options->limit ? options->limit : UINT64_MAX;
    walk->own.to = SPOOL_END;
    walk->own.share =
        (struct list_share){.index = options->shard_index, .count = options->shard_count};
    walk->shared.working_directory = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    enum status status =
        walk->shared.working_directory < 0
            ? error_errno(err, STATUS_FAILED, errno, "open", "cannot open the working directory")
            : archives_open(&walk->shared.archives, err);
    if (status == STATUS_OK)
        status = open_sources(walk, config, err);
    if (status == STATUS_OK)
        status = spool_open(&walk->spool, config->spool_directory, err);
    if (status == STATUS_OK)
        *out = walk;
    else
        walk_close(&walk);
    return status;
}

/* Returns the walk after listing, or the failure. */
static enum status finish_open(struct walk **out, struct walk *walk, enum status status,
                               struct error *err)
{
    if (status == STATUS_OK)
        status = spool_flush(walk->spool, err);
    if (status == STATUS_OK)
        status = walk_rewind(walk, err);
    if (status == STATUS_OK)
        *out = walk;
    else
        walk_close(&walk);
    return status;
}

enum status walk_open(struct walk **out, const struct walk_config *config, struct error *err)
{
    struct walk *walk = NULL;
    enum status status = open_unlisted(&walk, config, err);
    if (status == STATUS_OK)
        status = list_sources(walk, config, err);
    return finish_open(out, walk, status, err);
}

/* --- shares of other processes --------------------------------------------------------------- */

/* Header of a passed share, followed by a struct listed per source, the archives, and the items. */
struct given {
    struct list_share share;
    uint64_t count, bytes, size; /* size: bytes of the items in the spool */
    struct walk_passed passed;
    uint64_t archives, sources;
};

/* An archive, followed by `name_size` bytes of its name including NUL. */
struct given_archive {
    uint64_t name_size, path_length, bytes;
    int64_t mtime_ns;
    uint32_t source; /* base of `name`; UINT32_MAX: the working directory */
    uint32_t in_order;
};

bool walk_divides(const struct walk *walk)
{
    return walk->divides;
}

static enum status give_archives(const struct walk *walk, walk_give_fn give, void *context,
                                 struct error *err)
{
    enum status status = STATUS_OK;
    for (uint64_t i = 0; i < archives_count(walk->shared.archives) && status == STATUS_OK; i++) {
        const struct archive_file *file = archives_at(walk->shared.archives, i);
        struct given_archive archive = {.name_size = strlen(file->name) + 1,
                                        .path_length = file->length,
                                        .bytes = file->bytes,
                                        .mtime_ns = file->mtime_ns,
                                        .source = UINT32_MAX,
                                        .in_order = file->in_order};
        for (unsigned s = 0; s < walk->source_count; s++)
            if (walk->sources[s].fd == file->directory)
                archive.source = s;
        status = give(context, &archive, sizeof archive, err);
        if (status == STATUS_OK)
            status = give(context, file->name, archive.name_size, err);
    }
    return status;
}

enum status walk_give_next(struct walk *walk, walk_give_fn give, void *context, struct error *err)
{
    struct range *range = &walk->given;
    assert(walk->divides);
    enum status status = next_share(range, range->share.index + 1, walk, err);
    char *buffer = malloc(READ_BUFFER);
    if (status == STATUS_OK && !buffer)
        status = error_memory(err, READ_BUFFER, "a share of the list");
    const struct given given = {.share = range->share,
                                .count = range->count,
                                .bytes = range->bytes,
                                .size = range->to - range->from,
                                .passed = walk->passed,
                                .archives = archives_count(walk->shared.archives),
                                .sources = walk->source_count};
    if (status == STATUS_OK)
        status = give(context, &given, sizeof given, err);
    if (status == STATUS_OK)
        status = give(context, walk->listed, walk->source_count * sizeof *walk->listed, err);
    if (status == STATUS_OK)
        status = give_archives(walk, give, context, err);
    for (uint64_t at = 0; at < given.size && status == STATUS_OK; at += READ_BUFFER) {
        const uint64_t left = given.size - at;
        const size_t piece = left < READ_BUFFER ? (size_t)left : READ_BUFFER;
        status = spool_read(walk->spool, buffer, piece, range->from + at, err);
        if (status == STATUS_OK)
            status = give(context, buffer, piece, err);
    }
    free(buffer);
    return status;
}

static enum status take_archive(struct walk *walk, walk_take_fn take, void *context,
                                struct error *err)
{
    struct given_archive archive;
    uint64_t number;
    enum status status = take(context, &archive, sizeof archive, err);
    if (status != STATUS_OK)
        return status;
    char *name = malloc(archive.name_size);
    if (!name)
        return error_memory(err, archive.name_size, "an archive's name");
    status = take(context, name, archive.name_size, err);
    const struct archive_file file = {.directory = archive.source < walk->source_count
                                                       ? walk->sources[archive.source].fd
                                                       : walk->shared.working_directory,
                                      .name = name,
                                      .length = archive.path_length,
                                      .bytes = archive.bytes,
                                      .mtime_ns = archive.mtime_ns,
                                      .in_order = archive.in_order};
    if (status == STATUS_OK)
        status = archives_register(&number, walk->shared.archives, &file, err);
    free(name);
    return status;
}

static enum status take_all(struct walk *walk, walk_take_fn take, void *context, struct error *err)
{
    struct given given;
    char *buffer = NULL;
    enum status status = take(context, &given, sizeof given, err);
    if (status == STATUS_OK && given.sources != walk->source_count)
        status = error_set(err, STATUS_FAILED, "another walk has %llu sources, this one %u",
                           (unsigned long long)given.sources, walk->source_count);
    if (status != STATUS_OK)
        return status;
    walk->own = (struct range){
        .share = given.share, .to = given.size, .count = given.count, .bytes = given.bytes};
    walk->passed = given.passed;
    status = take(context, walk->listed, walk->source_count * sizeof *walk->listed, err);
    for (uint64_t i = 0; i < given.archives && status == STATUS_OK; i++)
        status = take_archive(walk, take, context, err);
    if (status == STATUS_OK && !(buffer = malloc(READ_BUFFER)))
        status = error_memory(err, READ_BUFFER, "a share of the list");
    for (uint64_t at = 0; at < given.size && status == STATUS_OK; at += READ_BUFFER) {
        const uint64_t left = given.size - at;
        const size_t piece = left < READ_BUFFER ? (size_t)left : READ_BUFFER;
        status = take(context, buffer, piece, err);
        if (status == STATUS_OK)
            status = spool_write(walk->spool, buffer, piece, err);
    }
    free(buffer);
    return status;
}

enum status walk_take(struct walk **out, const struct walk_config *config, walk_take_fn take,
                      void *context, struct error *err)
{
    struct walk *walk = NULL;
    enum status status = open_unlisted(&walk, config, err);
    if (status == STATUS_OK)
        status = take_all(walk, take, context, err);
    return finish_open(out, walk, status, err);
}

/* --- results --------------------------------------------------------------------------------- */

uint64_t walk_count(const struct walk *walk)
{
    return walk->own.count;
}

bool walk_is_counted(const struct walk *walk)
{
    return !walk->walking;
}

uint64_t walk_bytes(const struct walk *walk)
{
    return walk->own.bytes;
}

uint64_t walk_count_of(const struct walk *walk, uint16_t source, bool *unseen)
{
    *unseen = walk->listed[source].unseen;
    return walk->listed[source].count;
}

const struct list_share *walk_share(const struct walk *walk)
{
    return &walk->own.share;
}

struct walk_passed walk_passed(const struct walk *walk)
{
    return walk->passed;
}

enum status walk_next(struct walk *walk, struct walk_item *item, struct error *err)
{
    struct packed packed;
    const char *bytes;
    spool_take(&walk->reader, walk->taken);
    walk->taken = 0;
    enum status status = spool_peek(&bytes, &walk->reader, sizeof packed, err);
    while (status == STATUS_END && walk->walking) {
        status = list_more(walk, err);
        if (status == STATUS_OK)
            status = spool_peek(&bytes, &walk->reader, sizeof packed, err);
    }
    if (status != STATUS_OK)
        return status;
    memcpy(&packed, bytes, sizeof packed);
    const size_t size = sizeof packed + packed.entry_size + packed.path_length + 1;
    status = spool_peek(&bytes, &walk->reader, size, err);
    assert(status != STATUS_END);
    if (status != STATUS_OK)
        return status;
    walk->taken = size;
    *item = (struct walk_item){.sequence = walk->sequence++,
                               .source = packed.source,
                               .path = bytes + sizeof packed + packed.entry_size,
                               .path_length = packed.path_length};
    memcpy(&item->entry, bytes + sizeof packed, packed.entry_size);
    return STATUS_OK;
}

enum status walk_rewind(struct walk *walk, struct error *err)
{
    spool_reader_clear(&walk->reader);
    walk->sequence = 0;
    walk->taken = 0;
    return spool_reader_init(&walk->reader, walk->spool, walk->own.from, walk->own.to, READ_BUFFER,
                             err);
}

enum reason walk_open_member(struct blob *out, const struct walk *walk, uint16_t source,
                             const struct source_member *member, struct failure *failure)
{
    assert(source < walk->source_count);
    const struct source *from = &walk->sources[source];
    if (archives_member(member->where))
        return archives_open_member(out, walk->shared.archives, member, failure);
    return from->kind->open(out, from, member, failure);
}

const struct source *walk_source(const struct walk *walk, uint16_t source)
{
    return source < walk->source_count ? &walk->sources[source] : NULL;
}

bool walk_reads_once(const struct walk *walk, uint16_t source)
{
    return walk->sources[source].name && walk->sources[source].kind->next;
}

bool walk_is_unread(const struct walk *walk, uint16_t source)
{
    return !walk->sources[source].name;
}

void walk_close(struct walk **walk)
{
    if (!walk || !*walk)
        return;
    end_listing(*walk);
    archives_close(&(*walk)->shared.archives);
    for (unsigned i = 0; i < (*walk)->source_count; i++) {
        struct source *source = &(*walk)->sources[i];
        if (source->kind && source->kind->close)
            source->kind->close(source);
        if (source->fd >= 0)
            close(source->fd);
        free(source->name);
    }
    free((*walk)->sources);
    free((*walk)->listed);
    if ((*walk)->shared.working_directory >= 0)
        close((*walk)->shared.working_directory);
    spool_reader_clear(&(*walk)->reader);
    spool_close(&(*walk)->spool);
    free(*walk);
    *walk = NULL;
}

/* pages_data.c: the contents of a report's data files, except the map and neighbours. */
#include "report/pages_data.h"
#include "base/compare.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/parse.h"
#include "base/text.h"
#include "decode/thumbnail.h"
#include "jobs/original.h"
#include "report/pages_palette.h"
#include "result/locate.h"
#include "version_generated.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Thumbnails used for a swatch. */
#define SWATCH_THUMBNAILS 24u
/* Members considered for the first page's pictures, and the minimum number shown. */
#define STRIP_REACH 10000u
#define STRIP_LEAST 3u

void pages_clear(struct pages *pages)
{
    flags_clear(&pages->flags);
    thumbs_close(&pages->thumbs);
    free(pages->places);
    free(pages->strip_places);
    pages->places = pages->strip_places = NULL;
    words_close(&pages->words);
    album_clear(&pages->album);
}

/* --- scripts ----------------------------------------------------------------------------------- */

void script_begin(struct json *json)
{
    json_init(json, true);
    json->script = true;
}

enum status script_write(struct json *json, const char *kind, int64_t number, struct pages *pages,
                         struct error *err)
{
    char name[96], *script = NULL;
    const char *text = json_finish(json);
    if (number >= 0)
        snprintf(name, sizeof name, "data/%s-%lld.js", kind, (long long)number);
    else
        snprintf(name, sizeof name, "data/%s.js", kind);
    const int size = text ? asprintf(&script, "clpipe(\"%s\",%lld,%s);\n", kind,
                                     (long long)(number < 0 ? 0 : number), text)
                          : -1;
    enum status status = STATUS_OK;
    if (size < 0) {
        status = error_memory(err, json->length, "data of the pages");
    } else {
        pages->counts->bytes += (uint64_t)size;
        status = output_directory_write(pages->directory, name, script, (size_t)size, err);
        free(script);
    }
    json_clear(json);
    return status;
}

void script_number(struct json *json, const char *key, double value, int digits)
{
    char text[40];
    if (!isfinite(value)) {
        json_null(json, key);
        return;
    }
    locale_t before = uselocale(text_c_locale());
    snprintf(text, sizeof text, "%.*g", digits, value);
    uselocale(before);
    json_raw(json, key, text);
}

/* [[word, share]...], best first. */
static void add_words(struct json *json, const char *key, const struct word *word, unsigned count)
{
    json_open_array(json, key);
    for (unsigned i = 0; i < count && word[i].text; i++) {
        json_open_array(json, NULL);
        json_string(json, NULL, word[i].text);
        script_number(json, NULL, word[i].share, 3);
        json_close_array(json);
    }
    json_close_array(json);
}

/* [name, number] */
static void add_pair(struct json *json, const char *name, uint64_t number)
{
    json_open_array(json, NULL);
    json_string(json, NULL, name);
    json_uint(json, NULL, number);
    json_close_array(json);
}

/* --- thumbnails -------------------------------------------------------------------------------- */

static enum status write_sheet(void *context, uint32_t sheet, const uint8_t *data, size_t bytes,
                               struct error *err)
{
    struct pages *pages = context;
    char name[32];
    enum status status = watch_check(&pages->config->machine.watch, "writing thumbnails", err);
    if (status != STATUS_OK)
        return status;
    snprintf(name, sizeof name, "sheets/%05u.jpg", sheet);
    __atomic_fetch_add(&pages->counts->bytes, bytes, __ATOMIC_RELAXED);
    return output_directory_write(pages->directory, name, data, bytes, err);
}

static bool looks_the_same(const struct picture *a, const struct picture *b)
{
    return a->distance == b->distance && a->bytes == b->bytes && a->width == b->width &&
           a->height == b->height;
}

/* Chooses a group's pictures for the first page, by number: the first ones without copies, unless
 * fewer than three remain. */
static uint64_t strip_of(uint64_t picked[PAGES_STRIP], const struct album *album,
                         const struct picture_group *group)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < min_u64(group->size, STRIP_REACH) && count < PAGES_STRIP; i++) {
        const struct picture *picture = &album->row[album->order[group->first + i]];
        if (count > 0 && group->label >= 0 &&
            looks_the_same(picture, &album->row[album->order[picked[count - 1]]]))
            continue;
        picked[count++] = group->first + i;
    }
    if (count < STRIP_LEAST)
        for (count = 0; count < min_u64(group->size, STRIP_LEAST); count++)
            picked[count] = group->first + count;
    return count;
}

static enum status write_sheets(struct thumb_place **places, struct pages *pages,
                                const uint64_t *rows, uint64_t count, uint32_t first,
                                struct error *err)
{
    *places = malloc((size_t)(count ? count : 1) * sizeof **places);
    if (!*places)
        return error_memory(err, (size_t)count * sizeof **places, "thumbnails");
    const struct sheets_config config = {
        .rows = rows, .count = count, .first = first, .write = write_sheet, .context = pages};
    return thumbs_sheets(*places, pages->thumbs, &config, err);
}

/* The first page has sheets of its own; otherwise it would load one for each cluster. */
enum status pages_make_sheets(struct pages *pages, struct error *err)
{
    const struct album *album = &pages->album;
    enum status status =
        thumbs_open(&pages->thumbs, pages->result, output_directory_temporary(pages->directory),
                    &pages->config->machine, err);
    if (status != STATUS_OK)
        return status;
    pages->grid = thumbs_grid(pages->thumbs);
    pages->counts->without_thumbnail = pages->thumbs->missing;
    uint64_t *strips = malloc(((size_t)album->group_count * PAGES_STRIP + 1) * sizeof *strips),
             count = 0;
    uint64_t picked[PAGES_STRIP];
    if (!strips)
        return error_memory(err, (size_t)album->group_count * PAGES_STRIP * 8, "thumbnails");
    for (uint32_t i = 0; i < album->group_count; i++)
        for (uint64_t j = 0, n = strip_of(picked, album, &album->group[i]); j < n; j++)
            strips[count++] = album->order[picked[j]];
    const uint64_t cells = (uint64_t)pages->grid.columns * pages->grid.rows;
    pages->strip_sheets = (uint32_t)((count + cells - 1) / cells);
    status = write_sheets(&pages->strip_places, pages, strips, count, 0, err);
    free(strips);
    if (status == STATUS_OK)
        status = write_sheets(&pages->places, pages, album->order, album->count,
                              pages->strip_sheets, err);
    return status;
}

/* --- addresses --------------------------------------------------------------------------------- */

static void add_id(struct json *json, const char *key, uint64_t id)
{
    char text[17];
    snprintf(text, sizeof text, "%016" PRIx64, id);
    json_string(json, key, text);
}

struct address {
    uint64_t id, number;
};

static int compare_addresses(const void *a, const void *b)
{
    const struct address *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* data/find-N.js: id and number of each picture, ordered by id, split equally into files. */
enum status pages_make_addresses(struct pages *pages, struct error *err)
{
    const struct album *album = &pages->album;
    const uint64_t n = album->count, files = (n + PAGES_CHUNK - 1) / PAGES_CHUNK;
    struct address *address = malloc((size_t)n * sizeof *address);
    enum status status = STATUS_OK;
    if (!address)
        return error_memory(err, (size_t)n * sizeof *address, "addresses");
    for (uint64_t i = 0; i < n; i++)
        address[i] = (struct address){album->row[album->order[i]].id, i};
    qsort(address, (size_t)n, sizeof *address, compare_addresses);
    for (uint64_t file = 0, i = 0; file < files && status == STATUS_OK; file++) {
        struct json json;
        script_begin(&json);
        json_open_array(&json, NULL);
        for (; i < n && ((address[i].id >> 32) * files) >> 32 == file; i++) {
            add_id(&json, NULL, address[i].id);
            json_uint(&json, NULL, address[i].number);
        }
        json_close_array(&json);
        status = script_write(&json, "find", (int64_t)file, pages, err);
    }
    free(address);
    return status;
}

/* --- pictures ---------------------------------------------------------------------------------- */

/* One member of an images file: a value for each picture of [first, end). */
#define COLUMN(json, key, first, end, write)                                                       \
    do {                                                                                           \
        json_open_array(json, key);                                                                \
        for (uint64_t i = first; i < end; i++) {                                                   \
            const uint64_t row = pages->album.order[i];                                            \
            const struct picture *picture = &pages->album.row[row];                                \
            (void)picture;                                                                         \
            write;                                                                                 \
        }                                                                                          \
        json_close_array(json);                                                                    \
    } while (0)

/* file:// and the absolute path of a picture, with all but unreserved bytes escaped (RFC 3986);
 * null, and counted, if the picture is not a file or has changed. */
static enum status add_link(struct json *json, struct pages *pages, struct locator *locator,
                            uint64_t row, uint64_t *unlinked, struct error *err)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
    struct result_image image;
    const char *path;
    bool member;
    enum status status = result_image_at(pages->result, row, &image, err);
    if (status == STATUS_OK)
        status = locate_image(locator, &path, pages->result, image.source, image.path_raw, err);
    if (status != STATUS_OK)
        return status;
    /* Browsers remove "link/..", whatever the link leads to. */
    char *real = original_check(path, &image, &member) == ORIGINAL_THERE && !member
                     ? realpath(path, NULL)
                     : NULL;
    if (!real) {
        ++*unlinked;
        json_null(json, NULL);
        return STATUS_OK;
    }
    char *link = malloc(3 * strlen(real) + sizeof "file://"), *to;
    if (!link) {
        free(real);
        return error_memory(err, 3 * strlen(path), "a link");
    }
    to = stpcpy(link, "file://");
    for (const char *at = real; *at; at++)
        if (strchr(plain, *at))
            *to++ = *at;
        else
            to += sprintf(to, "%%%02X", (unsigned)(unsigned char)*at);
    *to = 0;
    json_string(json, NULL, link);
    free(link);
    free(real);
    return STATUS_OK;
}

static enum status add_links(struct json *json, struct pages *pages, uint64_t first, uint64_t end,
                             uint64_t *unlinked, struct error *err)
{
    struct locator locator = {0};
    enum status status = STATUS_OK;
    json_open_array(json, "link");
    for (uint64_t i = first; i < end && status == STATUS_OK; i++)
        status = add_link(json, pages, &locator, pages->album.order[i], unlinked, err);
    json_close_array(json);
    locator_clear(&locator);
    return status;
}

/* Words of the pictures [first, end), if the file has classes. */
static enum status add_picture_words(struct json *json, struct pages *pages, uint64_t first,
                                     uint64_t end, struct error *err)
{
    struct word(*word)[WORDS_MOST] = malloc((size_t)(end - first) * sizeof *word);
    if (!word)
        return error_memory(err, (size_t)(end - first) * sizeof *word, "words for pictures");
    const enum status status =
        words_of_pictures(word, pages->words, pages->album.order + first, end - first, err);
    json_open_array(json, "words");
    for (uint64_t i = 0; i < end - first && status == STATUS_OK; i++)
        add_words(json, NULL, word[i], WORDS_MOST);
    json_close_array(json);
    free(word);
    return status;
}

enum status pages_make_images(struct pages *pages, struct error *err)
{
    const uint64_t n = pages->album.count;
    uint64_t unlinked = 0;
    char number[40];
    for (uint64_t first = 0; first < n; first += PAGES_CHUNK) {
        const uint64_t end = min_u64(n, first + PAGES_CHUNK);
        struct json json;
        enum status status = watch_check(&pages->config->machine.watch, "writing the report", err);
        if (status != STATUS_OK)
            return status;
        script_begin(&json);
        json_open_object(&json, NULL);
        COLUMN(&json, "name", first, end, json_string(&json, NULL, album_name(&pages->album, row)));
        COLUMN(&json, "id", first, end, add_id(&json, NULL, picture->id));
        COLUMN(&json, "row", first, end, json_uint(&json, NULL, row));
        COLUMN(&json, "width", first, end, json_uint(&json, NULL, picture->width));
        COLUMN(&json, "height", first, end, json_uint(&json, NULL, picture->height));
        COLUMN(&json, "bytes", first, end, json_uint(&json, NULL, picture->bytes));
        COLUMN(&json, "format", first, end, json_uint(&json, NULL, picture->format));
        COLUMN(&json, "source", first, end, json_uint(&json, NULL, picture->source));
        if (pages->clusters)
            COLUMN(&json, "distance", first, end,
                   script_number(&json, NULL, (double)picture->distance, 5));
        COLUMN(&json, "w", first, end, json_uint(&json, NULL, pages->places[i].width));
        COLUMN(&json, "h", first, end, json_uint(&json, NULL, pages->places[i].height));
        if (words_have_classes(pages->words))
            status = add_picture_words(&json, pages, first, end, err);
        if (status == STATUS_OK && pages->config->link_originals)
            status = add_links(&json, pages, first, end, &unlinked, err);
        json_close_object(&json);
        if (status != STATUS_OK) {
            json_clear(&json);
            return status;
        }
        status = script_write(&json, "images", (int64_t)(first / PAGES_CHUNK), pages, err);
        if (status != STATUS_OK)
            return status;
    }
    if (unlinked > 0)
        log_message(LOG_NOTICE,
                    "notice: no link to the original of %s: gone, changed since, in an archive, or "
                    "read in another directory",
                    format_number_of(number, sizeof number, unlinked, "image"));
    return STATUS_OK;
}

/* --- failures ---------------------------------------------------------------------------------- */

static void add_failure(struct json *json, const struct pages *pages,
                        const struct result_failure *failure)
{
    json_open_array(json, NULL);
    json_string(json, NULL, album_shown(&pages->album, failure->row->path, failure->row->source));
    json_string(json, NULL, reason_name(failure->reason));
    json_string(json, NULL, failure->row->message);
    json_uint(json, NULL, failure->row->bytes);
    json_close_array(json);
}

/* Files that are not images are counted, not listed. */
enum status pages_make_failures(struct pages *pages, struct error *err)
{
    struct json json = {0};
    enum status status = STATUS_OK;
    uint64_t listed = 0;
    for (uint64_t row = 0; row < result_failures(pages->result) && status == STATUS_OK; row++) {
        struct result_failure failure;
        status = result_failure_at(pages->result, row, &failure, err);
        if (status != STATUS_OK)
            break;
        pages->by_reason[failure.reason < REASON_COUNT ? failure.reason : REASON_NONE]++;
        if (failure.reason == REASON_NOT_AN_IMAGE)
            continue;
        if (listed % PAGES_CHUNK == 0) {
            script_begin(&json);
            json_open_array(&json, NULL);
        }
        add_failure(&json, pages, &failure);
        if (++listed % PAGES_CHUNK == 0) {
            json_close_array(&json);
            status =
                script_write(&json, "failures", (int64_t)(listed / PAGES_CHUNK - 1), pages, err);
        }
    }
    if (listed % PAGES_CHUNK != 0 && status == STATUS_OK) {
        json_close_array(&json);
        status = script_write(&json, "failures", (int64_t)(listed / PAGES_CHUNK), pages, err);
    }
    json_clear(&json);
    pages->counts->failed = listed;
    return status;
}

/* --- the summary ------------------------------------------------------------------------------- */

/* Minimum, median and maximum of the longest side, in pixels. */
static enum status add_sizes(struct json *json, const struct pages *pages, struct error *err)
{
    const size_t n = (size_t)pages->album.count;
    uint32_t *sides = malloc(n * sizeof *sides);
    if (!sides)
        return error_memory(err, n * sizeof *sides, "the sizes of pictures");
    for (size_t i = 0; i < n; i++)
        sides[i] = max_u32(pages->album.row[i].width, pages->album.row[i].height);
    qsort(sides, n, sizeof *sides, compare_u32);
    json_open_array(json, "sides");
    json_uint(json, NULL, sides[0]);
    json_uint(json, NULL, sides[n / 2]);
    json_uint(json, NULL, sides[n - 1]);
    json_close_array(json);
    free(sides);
    return STATUS_OK;
}

static enum status add_taken(struct json *json, const struct pages *pages, struct error *err)
{
    const struct album *album = &pages->album;
    uint64_t *of_source = calloc(album->source_count + 1u, sizeof *of_source);
    if (!of_source)
        return error_memory(err, album->source_count * sizeof *of_source, "sources");
    for (uint64_t row = 0; row < album->count; row++)
        of_source[min_u32(album->row[row].source, album->source_count)]++;
    json_uint(json, "images", album->count);
    json_uint(json, "bytes", album->bytes);
    json_uint(json, "pixels", album->pixels);
    json_open_array(json, "sources");
    for (unsigned i = 0; i < album->source_count; i++) {
        char name[256];
        add_pair(json, album_source(name, sizeof name, pages->result->sources[i]), of_source[i]);
    }
    json_close_array(json);
    free(of_source);
    json_open_array(json, "formats");
    for (unsigned i = 0; i < album->format_count; i++) {
        char format[sizeof album->format[0].name + 1] = "";
        memcpy(format, album->format[i].name, sizeof album->format[0].name);
        add_pair(json, format, album->format[i].count);
    }
    json_close_array(json);
    json_uint(json, "folders", album->folder_count);
    json_uint(json, "failed", pages->counts->failed);
    json_uint(json, "skipped", pages->by_reason[REASON_NOT_AN_IMAGE]);
    json_open_array(json, "reasons");
    for (int i = REASON_NONE + 1; i < REASON_COUNT; i++) {
        if (i == REASON_NOT_AN_IMAGE || pages->by_reason[i] == 0)
            continue;
        add_pair(json, reason_name((enum reason)i), pages->by_reason[i]);
    }
    json_close_array(json);
    return add_sizes(json, pages, err);
}

static enum status add_swatch(struct json *json, struct pages *pages,
                              const struct picture_group *group, const float *centroids,
                              struct palette_cells *cells, struct decode *decode, struct error *err)
{
    const struct result_clusters *clusters = pages->clusters;
    const struct result_feature *feature =
        clusters ? result_feature_find(pages->result, clusters->feature) : NULL;
    struct palette palette;
    bool made = false;
    memset(cells, 0, sizeof *cells);
    if (feature && centroids && group->label >= 0 && clusters->columns == 0)
        made = palette_add_centroid(cells, feature, clusters->metric,
                                    centroids + (size_t)group->label * clusters->dimension,
                                    clusters->dimension);
    uint8_t *data = NULL;
    size_t room = 0;
    enum status status = STATUS_OK;
    for (uint64_t i = 0; !made && i < min_u64(group->size, SWATCH_THUMBNAILS); i++) {
        const uint64_t row = pages->album.order[group->first + i];
        status = thumbs_read(&data, &room, pages->thumbs, row, err);
        if (status != STATUS_OK)
            break;
        if (pages->thumbs->length[row])
            palette_add_jpeg(cells, decode, data, pages->thumbs->length[row]);
    }
    free(data);
    if (status != STATUS_OK)
        return status;
    palette_find(&palette, cells);
    json_open_array(json, "colours");
    for (unsigned i = 0; i < palette.count; i++) {
        char hex[16];
        snprintf(hex, sizeof hex, "#%02x%02x%02x", palette.colour[i].rgb[0],
                 palette.colour[i].rgb[1], palette.colour[i].rgb[2]);
        json_open_array(json, NULL);
        json_string(json, NULL, hex);
        script_number(json, NULL, (double)palette.colour[i].share, 3);
        json_close_array(json);
    }
    json_close_array(json);
    return STATUS_OK;
}

/* [name, width and height of the thumbnail, id] of a group's first pictures; returns how many. */
static uint64_t add_strip(struct json *json, const struct pages *pages,
                          const struct picture_group *group, uint64_t cell)
{
    uint64_t picked[PAGES_STRIP];
    const uint64_t count = strip_of(picked, &pages->album, group);
    json_uint(json, "cell", cell);
    json_open_array(json, "strip");
    for (uint64_t i = 0; i < count; i++) {
        json_open_array(json, NULL);
        json_string(json, NULL, album_name(&pages->album, pages->album.order[picked[i]]));
        json_uint(json, NULL, pages->strip_places[cell + i].width);
        json_uint(json, NULL, pages->strip_places[cell + i].height);
        add_id(json, NULL, pages->album.row[pages->album.order[picked[i]]].id);
        json_close_array(json);
    }
    json_close_array(json);
    return count;
}

static enum status add_groups(struct json *json, struct pages *pages, struct error *err)
{
    const struct album *album = &pages->album;
    const struct result_clusters *clusters = pages->clusters;
    struct palette_cells *cells = malloc(sizeof *cells);
    struct decode_options options;
    struct decode *decode = NULL;
    float *centroids = NULL;
    uint64_t cell = 0;
    decode_options_default(&options);
    options.max_pixels = (uint64_t)THUMBNAIL_MOST * THUMBNAIL_MOST;
    options.scale = 4; /* a quarter of the pixels in each direction, their mean */
    enum status status =
        cells ? decode_open(&decode, &options, err) : error_memory(err, sizeof *cells, "a palette");
    if (clusters && status == STATUS_OK) {
        const size_t values = (size_t)clusters->k * clusters->dimension;
        centroids = malloc((values ? values : 1) * sizeof *centroids);
        status = centroids ? result_part_read(centroids, clusters, PART_CENTROIDS, err)
                           : error_memory(err, values * sizeof *centroids, "centroids");
    }
    json_open_array(json, "groups");
    for (uint32_t i = 0; i < album->group_count && status == STATUS_OK; i++) {
        const struct picture_group *group = &album->group[i];
        json_open_object(json, NULL);
        json_int(json, "label", group->label);
        if (group->size > 0)
            add_id(json, "id",
                   pages->grouping == GROUPS_FOLDERS ? album->folder[group->label].id
                                                     : album->row[album->order[group->first]].id);
        if (pages->grouping == GROUPS_FOLDERS && group->label >= 0)
            json_string(json, "title", album->names + album->folder[group->label].name);
        struct word word[WORDS_MOST];
        const bool named = pages->grouping == GROUPS_CLUSTERS && group->label >= 0;
        add_words(json, "words", word,
                  named ? words_of_cluster(word, pages->words, (uint32_t)group->label) : 0);
        json_uint(json, "first", group->first);
        json_uint(json, "size", group->size);
        json_uint(json, "outliers", group->outliers);
        json_uint(json, "folderCount", group->folders);
        json_open_array(json, "folders");
        for (int j = 0; j < 3 && group->commonest[j].count; j++) {
            add_pair(json, album->names + album->folder[group->commonest[j].folder].name,
                     group->commonest[j].count);
        }
        json_close_array(json);
        cell += add_strip(json, pages, group, cell);
        status = add_swatch(json, pages, group, centroids, cells, decode, err);
        json_close_object(json);
    }
    json_close_array(json);
    decode_close(&decode);
    free(centroids);
    free(cells);
    return status;
}

/* data/quality.js: the pictures of each flag. */
enum status pages_make_quality(struct pages *pages, struct error *err)
{
    const struct flags *flags = &pages->flags;
    struct json json;
    const enum status status = flags_read(&pages->flags, pages->result, err);
    if (status != STATUS_OK || !flags->feature)
        return status;
    script_begin(&json);
    json_open_object(&json, NULL);
    for (unsigned f = 0; f < FLAGS; f++) {
        if (flags->count[f] == 0)
            continue;
        json_open_array(&json, flag_names[f]);
        for (uint64_t i = 0; i < pages->album.count; i++)
            if (flags->of[pages->album.order[i]] >> f & 1)
                json_uint(&json, NULL, i);
        json_close_array(&json);
    }
    json_close_object(&json);
    return script_write(&json, "quality", -1, pages, err);
}

/* Levels above the clusters shown, the finest first: for each, the parents of those below. */
static enum status add_levels(struct json *json, struct pages *pages, struct error *err)
{
    const struct result_clusters *below =
                                     pages->grouping == GROUPS_CLUSTERS ? pages->clusters : NULL,
                                 *above;
    enum status status = STATUS_OK;
    json_open_array(json, "levels");
    for (; below && below->parents && status == STATUS_OK; below = above) {
        int32_t *parents = NULL;
        status = result_parents_read(&parents, &above, pages->result, below, err);
        if (status != STATUS_OK)
            break;
        json_open_object(json, NULL);
        json_uint(json, "k", above->k);
        json_open_array(json, "parents");
        for (uint32_t i = 0; i < below->k; i++)
            json_int(json, NULL, parents[i]);
        json_close_array(json);
        json_close_object(json);
        free(parents);
    }
    json_close_array(json);
    return status;
}

static enum status add_sweep(struct json *json, struct pages *pages, struct error *err)
{
    struct cluster_sweep sweep = {0};
    enum status status = result_sweep_read(&sweep, pages->result, pages->clusters, err);
    if (status == STATUS_OK && sweep.values) {
        json_open_object(json, "sweep");
        json_string(json, "measure", sweep.measure);
        json_string(json, "reason", sweep.reason);
        json_open_array(json, "values");
        for (uint32_t i = 0; i < sweep.count; i++) {
            const struct cluster_sweep_value *value = &sweep.values[i];
            json_open_object(json, NULL);
            json_uint(json, "k", value->k);
            script_number(json, "silhouette", value->measures.silhouette, 6);
            script_number(json, "simplified_silhouette", value->measures.simplified_silhouette, 6);
            script_number(json, "davies_bouldin", value->measures.davies_bouldin, 6);
            script_number(json, "calinski_harabasz", value->measures.calinski_harabasz, 6);
            script_number(json, "inertia", value->inertia, 6);
            if (sweep.has_classes)
                script_number(json, "nmi", value->agreement.nmi, 6);
            json_close_object(json);
        }
        json_close_array(json);
        json_close_object(json);
    }
    cluster_sweep_clear(&sweep);
    return status;
}

static enum status add_clustering(struct json *json, struct pages *pages, struct error *err)
{
    const struct result_clusters *clusters = pages->clusters;
    enum status status = STATUS_OK;
    if (!clusters)
        return STATUS_OK;
    json_open_object(json, "clustering");
    json_string(json, "name", clusters->name);
    json_string(json, "feature", clusters->feature);
    json_string(json, "metric", clusters->metric);
    json_uint(json, "k", clusters->k);
    json_uint(json, "iterations", clusters->iterations);
    json_bool(json, "converged", clusters->converged);
    if (clusters->folders > 0) {
        json_open_object(json, "agreement");
        json_uint(json, "folders", clusters->folders);
        script_number(json, "purity", clusters->agreement.purity, 4);
        script_number(json, "nmi", clusters->agreement.nmi, 4);
        script_number(json, "ari", clusters->agreement.ari, 4);
        json_close_object(json);
    }
    json_open_array(json, "others");
    for (unsigned i = 0; i < pages->result->clusters_count; i++)
        if (&pages->result->clusters[i] != clusters)
            json_string(json, NULL, pages->result->clusters[i].name);
    json_close_array(json);
    status = add_sweep(json, pages, err);
    json_close_object(json);
    return status;
}

static void add_title(struct json *json, const char *file)
{
    char title[256];
    album_source(title, sizeof title, file);
    const size_t length = strlen(title);
    if (length > 3 && strcmp(title + length - 3, ".h5") == 0)
        title[length - 3] = 0;
    json_string(json, "title", title);
}

enum status pages_make_summary(struct pages *pages, struct error *err)
{
    static const char *const groupings[] = {"clusters", "folders", "none"};
    struct json json;
    script_begin(&json);
    json_open_object(&json, NULL);
    add_title(&json, pages->config->file);
    json_string(&json, "version", CLPIPE_VERSION);
    json_string(&json, "created", pages->result->created);
    json_string(&json, "grouping", groupings[pages->grouping]);
    json_uint(&json, "chunk", PAGES_CHUNK);
    json_open_object(&json, "sheets");
    json_uint(&json, "cell", pages->grid.cell);
    json_uint(&json, "columns", pages->grid.columns);
    json_uint(&json, "rows", pages->grid.rows);
    json_uint(&json, "size", pages->thumbs->size);
    json_uint(&json, "strips", pages->strip_sheets);
    json_uint(&json, "missing", pages->thumbs->missing);
    json_close_object(&json);
    enum status status = add_taken(&json, pages, err);
    if (pages->has_similar) {
        json_open_object(&json, "similar");
        json_string(&json, "feature", pages->similar_feature);
        json_close_object(&json);
    }
    if (pages->has_duplicates) {
        json_open_object(&json, "duplicates");
        json_uint(&json, "bytes", pages->duplicates[0]);
        json_uint(&json, "pixels", pages->duplicates[1]);
        json_uint(&json, "near", pages->duplicates[2]);
        json_uint(&json, "limit", pages->near_limit);
        json_close_object(&json);
    }
    json_bool(&json, "map", pages->has_map);
    if (pages->flags.feature) {
        json_open_object(&json, "quality");
        for (unsigned f = 0; f < FLAGS; f++)
            if (pages->flags.known >> f & 1)
                json_uint(&json, flag_names[f], pages->flags.count[f]);
        json_close_object(&json);
    }
    json_open_array(&json, "notes");
    if (pages->duplicates_note[0])
        json_string(&json, NULL, pages->duplicates_note);
    if (pages->similar_note[0])
        json_string(&json, NULL, pages->similar_note);
    json_close_array(&json);
    if (status == STATUS_OK)
        status = add_clustering(&json, pages, err);
    if (status == STATUS_OK)
        status = add_groups(&json, pages, err);
    if (status == STATUS_OK)
        status = add_levels(&json, pages, err);
    json_close_object(&json);
    if (status != STATUS_OK) {
        json_clear(&json);
        return status;
    }
    return script_write(&json, "summary", -1, pages, err);
}

/* album.c: one pass finds common prefixes of paths, one reads the rows, then they are sorted. */
#include "report/album.h"
#include "base/array.h"
#include "base/compare.h"
#include "base/hash.h"
#include "base/held.h"
#include "base/numbering.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_FOLDER_GROUPS 1000
#define STOP_EVERY         1024 /* rows */

/* --- what is shown of a path ------------------------------------------------------------------- */

/* Paths in lists may lead anywhere and would reveal users and hosts. */
static bool leads_outside(const char *path)
{
    return path[0] == '/' || strncmp(path, "../", 3) == 0;
}

static size_t directory_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

const char *album_shown(const struct album *album, const char *path, unsigned source)
{
    if (leads_outside(path) && source < album->source_count) {
        const size_t skip = album->skip[source];
        path += skip <= directory_length(path) ? skip : 0;
    }
    for (;;) {
        if (path[0] == '/')
            path++;
        else if (strncmp(path, "./", 2) == 0)
            path += 2;
        else if (strncmp(path, "../", 3) == 0)
            path += 3;
        else
            break;
    }
    return path;
}

/* Skips a home directory together with the name of its user. */
static size_t skip_home(const char *path, size_t common)
{
    static const char *const homes[] = {"home/", "Users/", "users/"};
    const char *rest = path + common;
    rest += *rest == '/';
    for (size_t i = 0; i < sizeof homes / sizeof *homes; i++) {
        const size_t length = strlen(homes[i]);
        const char *user = rest + length;
        if (strncmp(rest, homes[i], length) == 0 && strchr(user, '/'))
            return (size_t)(user - path);
    }
    return common;
}

/* Shortens *common, the length of a directory of `first`, to what `path` has in common with it. */
static void shorten(size_t *common, const char *first, const char *path)
{
    size_t same = 0, end = 0;
    for (; same < *common && first[same] == path[same]; same++)
        if (first[same] == '/')
            end = same + 1;
    *common = same == *common ? same : end;
}

/* first: per source, the first path that leads outside. */
static enum status add_prefix(struct album *album, char **first, const char *path, unsigned source,
                              struct error *err)
{
    if (source >= album->source_count || !leads_outside(path))
        return STATUS_OK;
    if (first[source]) {
        shorten(&album->skip[source], first[source], path);
        return STATUS_OK;
    }
    first[source] = strdup(path);
    album->skip[source] = directory_length(path);
    return first[source] ? STATUS_OK : error_memory(err, strlen(path), "a file name");
}

static enum status find_prefixes(struct album *album, struct result *result, struct stop *stop,
                                 struct error *err)
{
    album->source_count = result->source_count;
    const size_t sources = album->source_count + 1;
    album->skip = held_array(&album->held, sources, sizeof *album->skip);
    char **first = held_array(&album->held, sources, sizeof *first);
    enum status status = held_check(&album->held, "the names of sources", err);
    for (uint64_t row = 0; status == STATUS_OK && row < result_images(result); row++) {
        struct result_image image;
        status = row % STOP_EVERY ? STATUS_OK : stop_check(stop, "reading rows", err);
        if (status == STATUS_OK)
            status = result_image_at(result, row, &image, err);
        if (status == STATUS_OK)
            status = add_prefix(album, first, image.path, image.source, err);
    }
    for (uint64_t row = 0; status == STATUS_OK && row < result_failures(result); row++) {
        struct result_failure failure;
        status = result_failure_at(result, row, &failure, err);
        if (status == STATUS_OK)
            status = add_prefix(album, first, failure.row->path, failure.row->source, err);
    }
    for (unsigned i = 0; first && i < album->source_count; i++) {
        if (first[i])
            album->skip[i] = skip_home(first[i], album->skip[i]);
        free(first[i]);
    }
    return status;
}

const char *album_source(char *buffer, size_t size, const char *source)
{
    size_t length = strlen(source);
    if (source[0] == '@')
        source++, length--;
    while (length > 0 && source[length - 1] == '/')
        length--;
    size_t begin = length;
    while (begin > 0 && source[begin - 1] != '/')
        begin--;
    snprintf(buffer, size, "%.*s", (int)(length - begin < size ? length - begin : size - 1),
             source + begin);
    if (strcmp(buffer, ".") == 0 || strcmp(buffer, "..") == 0 || strcmp(buffer, "-") == 0)
        buffer[0] = 0;
    return buffer;
}

/* --- rows -------------------------------------------------------------------------------------- */

static enum status add_name(uint64_t *at, struct album *album, const char *name, size_t length,
                            struct error *err)
{
    if (album->names_room - album->names_used < length + 1) {
        const uint64_t room = 2 * album->names_room + length + 4096;
        char *grown = realloc(album->names, (size_t)room);
        if (!grown)
            return error_memory(err, (size_t)room, "the names of pictures");
        album->names = grown;
        album->names_room = room;
    }
    *at = album->names_used;
    memcpy(album->names + *at, name, length);
    album->names[*at + length] = 0;
    album->names_used += length + 1;
    return STATUS_OK;
}

/* The folder of a shown path: the part before its last slash, or its source. */
static enum status find_folder(uint32_t *number, struct album *album, struct numbering *numbers,
                               const char *shown, unsigned source, const char *source_name,
                               struct error *err)
{
    size_t length = directory_length(shown);
    length -= length > 0;
    enum status status = numbering_look(number, numbers, (uint16_t)source, shown, length,
                                        "the folders of pictures", err);
    if (status != STATUS_OK)
        return status;
    if (*number == album->folder_count) {
        if (array_grow(&album->folder, album->folder_count, sizeof *album->folder,
                       "the folders of pictures", err))
            return STATUS_FAILED;
        struct picture_folder *folder = &album->folder[album->folder_count++];
        status = length ? add_name(&folder->name, album, shown, length, err)
                        : add_name(&folder->name, album, source_name, strlen(source_name), err);
    }
    return status;
}

static uint8_t find_format(struct album *album, const struct result_image *image)
{
    unsigned i = 0;
    while (i < album->format_count &&
           memcmp(album->format[i].name, image->format, sizeof image->format) != 0)
        i++;
    if (i == ALBUM_FORMATS) /* a file not written by clpipe */
        i--;
    else if (i == album->format_count)
        memcpy(album->format[album->format_count++].name, image->format, sizeof image->format);
    album->format[i].count++;
    return (uint8_t)i;
}

/* Id of the first `length` bytes of a path below a source, as in the file. */
static uint64_t id_of(const char *source, const char *path, size_t length)
{
    struct murmur3 state;
    uint64_t digest[2];
    murmur3_init(&state);
    murmur3_update(&state, source, strlen(source) + 1);
    murmur3_update(&state, path, length);
    murmur3_final(&state, digest);
    return digest[0];
}

static enum status read_row(struct album *album, struct numbering *numbers, struct result *result,
                            uint64_t row, struct error *err)
{
    struct picture *picture = &album->row[row];
    struct result_image image;
    char name[256];
    enum status status = result_image_at(result, row, &image, err);
    if (status != STATUS_OK)
        return status;
    const char *shown = album_shown(album, image.path, image.source);
    const char *source = image.source < album->source_count ? result->sources[image.source] : "";
    *picture = (struct picture){.id = id_of(source, image.path_raw, strlen(image.path_raw)),
                                .bytes = image.bytes,
                                .width = image.width,
                                .height = image.height,
                                .source = image.source,
                                .format = find_format(album, &image)};
    album->bytes += image.bytes;
    album->pixels += (uint64_t)image.width * image.height;
    status = add_name(&picture->name, album, shown, strlen(shown), err);
    if (status == STATUS_OK)
        status = find_folder(&picture->folder, album, numbers, shown, image.source,
                             album_source(name, sizeof name, source), err);
    if (status == STATUS_OK)
        album->folder[picture->folder].id =
            id_of(source, image.path_raw, directory_length(image.path_raw));
    return status;
}

/* --- order ------------------------------------------------------------------------------------- */

static enum status read_labels(struct album *album, const struct result_clusters *clusters,
                               struct error *err)
{
    const size_t n = (size_t)album->count;
    SCOPED_HELD held = {0};
    int32_t *labels = held_array(&held, n, sizeof *labels);
    float *distances = held_array(&held, n, sizeof *distances);
    enum status status = held_check(&held, "labels", err);
    if (status == STATUS_OK)
        status = result_clusters_read_rows(clusters, 0, clusters->rows, labels, distances, err);
    for (size_t row = 0; status == STATUS_OK && row < n; row++) {
        const bool valid = labels[row] >= 0 && (uint32_t)labels[row] < clusters->k;
        album->row[row].label = valid ? labels[row] : -1;
        album->row[row].distance =
            isfinite(distances[row]) && distances[row] > 0 ? sqrtf(distances[row]) : 0;
    }
    return status;
}

/* Groups by descending size, those without a label last; then by number. */
static int compare_groups(const void *a, const void *b)
{
    const struct picture_group *x = a, *y = b;
    if ((x->label < 0) != (y->label < 0))
        return x->label < 0 ? 1 : -1;
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    return (x->label > y->label) - (x->label < y->label);
}

struct ordered {
    float distance;
    uint64_t row;
};

static int compare_rows(const void *a, const void *b)
{
    const struct ordered *x = a, *y = b;
    if (x->distance != y->distance)
        return x->distance < y->distance ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* The number of `size` ascending distances above the third quartile plus 1.5 times the
 * interquartile range. */
static uint64_t count_outliers(const struct ordered *at, uint64_t size)
{
    if (size < 8)
        return 0;
    const float low = at[size / 4].distance, high = at[size - 1 - size / 4].distance;
    const float fence = high + 1.5f * (high - low);
    uint64_t outliers = 0;
    while (outliers < size && at[size - 1 - outliers].distance > fence)
        outliers++;
    return outliers;
}

static void add_commonest(struct picture_group *group, uint32_t folder, uint64_t count)
{
    group->folders++;
    for (size_t i = 0; i < 3; i++) {
        if (count <= group->commonest[i].count)
            continue;
        memmove(&group->commonest[i + 1], &group->commonest[i],
                (2 - i) * sizeof group->commonest[0]);
        group->commonest[i].folder = folder;
        group->commonest[i].count = count;
        return;
    }
}

/* scratch: one entry per member of the group. */
static void find_commonest(struct picture_group *group, const struct album *album,
                           uint32_t *scratch)
{
    for (uint64_t i = 0; i < group->size; i++)
        scratch[i] = album->row[album->order[group->first + i]].folder;
    qsort(scratch, (size_t)group->size, sizeof *scratch, compare_u32);
    for (uint64_t i = 0, begin = 0; i < group->size; i++)
        if (i + 1 == group->size || scratch[i + 1] != scratch[i]) {
            add_commonest(group, scratch[i], i + 1 - begin);
            begin = i + 1;
        }
}

static enum status put_in_order(struct album *album, uint32_t groups, bool by_distance,
                                struct error *err)
{
    const size_t n = (size_t)album->count;
    SCOPED_HELD held = {0};
    struct ordered *sorted = held_array(&held, n, sizeof *sorted);
    uint64_t *next = held_array(&held, groups + 1ull, sizeof *next);
    uint32_t *scratch = held_array(&held, n, sizeof *scratch);
    album->group = held_array(&album->held, groups + 1ull, sizeof *album->group);
    album->order = held_array(&album->held, n, sizeof *album->order);
    album->number = held_array(&album->held, n, sizeof *album->number);
    enum status status = held_check(&held, "the order of pictures", err);
    if (status == STATUS_OK)
        status = held_check(&album->held, "the order of pictures", err);
    if (status != STATUS_OK)
        return status;
    for (uint32_t i = 0; i <= groups; i++)
        album->group[i].label = i < groups ? (int32_t)i : -1;
    for (size_t row = 0; row < n; row++)
        album->group[album->row[row].label < 0 ? groups : (uint32_t)album->row[row].label].size++;
    qsort(album->group, (size_t)groups + 1, sizeof *album->group, compare_groups);
    uint64_t first = 0;
    for (uint32_t i = 0; i <= groups; i++) {
        struct picture_group *group = &album->group[i];
        group->first = first;
        next[group->label < 0 ? groups : (uint32_t)group->label] = first;
        first += group->size;
    }
    album->group_count = album->group[groups].size ? groups + 1 : groups;
    for (size_t row = 0; row < n; row++) {
        const int32_t label = album->row[row].label;
        sorted[next[label < 0 ? groups : (uint32_t)label]++] =
            (struct ordered){album->row[row].distance, row};
    }
    for (uint32_t i = 0; i < album->group_count; i++) {
        struct picture_group *group = &album->group[i];
        struct ordered *at = sorted + group->first;
        if (by_distance && group->label >= 0) {
            qsort(at, (size_t)group->size, sizeof *at, compare_rows);
            group->outliers = count_outliers(at, group->size);
        }
        for (uint64_t j = 0; j < group->size; j++)
            album->order[group->first + j] = at[j].row;
        for (uint64_t j = 0; j < group->size; j++)
            album->number[at[j].row] = group->first + j;
        find_commonest(group, album, scratch);
    }
    return status;
}

enum status album_read(struct album *out, enum grouping *how, struct result *result,
                       const struct result_clusters *clusters, struct stop *stop, struct error *err)
{
    struct numbering numbers = {0};
    *out = (struct album){.count = result_images(result)};
    const size_t n = (size_t)out->count;
    enum status status = find_prefixes(out, result, stop, err);
    if (status != STATUS_OK)
        goto out;
    out->row = held_array(&out->held, n, sizeof *out->row);
    status = held_check(&out->held, "pictures", err);
    if (status != STATUS_OK)
        goto out;
    for (uint64_t row = 0; row < out->count; row++) {
        status = row % STOP_EVERY ? STATUS_OK : stop_check(stop, "reading rows", err);
        if (status == STATUS_OK)
            status = read_row(out, &numbers, result, row, err);
        if (status != STATUS_OK)
            goto out;
    }
    uint32_t groups = 1;
    *how = GROUPS_NONE;
    if (clusters) {
        *how = GROUPS_CLUSTERS;
        groups = clusters->k;
        status = read_labels(out, clusters, err);
        if (status != STATUS_OK)
            goto out;
    } else if (out->folder_count >= 2 && out->folder_count <= MOST_FOLDER_GROUPS &&
               out->folder_count < out->count) {
        *how = GROUPS_FOLDERS;
        groups = out->folder_count;
        for (size_t row = 0; row < n; row++)
            out->row[row].label = (int32_t)out->row[row].folder;
    }
    status = put_in_order(out, groups, clusters != NULL, err);
out:
    free(numbers.slot);
    return status;
}

void album_clear(struct album *album)
{
    held_free(&album->held);
    free(album->names);
    free(album->folder);
    *album = (struct album){0};
}

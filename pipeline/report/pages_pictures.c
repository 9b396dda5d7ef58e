/* pages_pictures.c: one pass finds what paths have in common, one reads the rows, then they are
 * sorted. */
#include "report/pages_pictures.h"
#include "base/hash.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_FOLDER_GROUPS 1000
#define STOP_EVERY         1024 /* rows */

/* --- what is shown of a path ------------------------------------------------------------------- */

/* Paths of lists may lead anywhere, and then tell of users and hosts. */
static bool leads_outside(const char *path)
{
    return path[0] == '/' || strncmp(path, "../", 3) == 0;
}

static size_t directory_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

const char *pictures_shown(const struct pictures *pictures, const char *path, unsigned source)
{
    if (leads_outside(path) && source < pictures->source_count) {
        const size_t skip = pictures->skip[source];
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

/* A home directory is skipped with the name of its user. */
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

/* Shortens *common, the length of a directory of `first`, to what `path` shares with it. */
static void shorten(size_t *common, const char *first, const char *path)
{
    size_t same = 0, end = 0;
    for (; same < *common && first[same] == path[same]; same++)
        if (first[same] == '/')
            end = same + 1;
    *common = same == *common ? same : end;
}

struct prefixes {
    char **first; /* of each source: the first path that leads outside, */
    size_t *common;
};

static enum status add_prefix(struct prefixes *prefixes, const struct pictures *pictures,
                              const char *path, unsigned source, struct error *err)
{
    if (source >= pictures->source_count || !leads_outside(path))
        return STATUS_OK;
    if (prefixes->first[source]) {
        shorten(&prefixes->common[source], prefixes->first[source], path);
        return STATUS_OK;
    }
    prefixes->first[source] = strdup(path);
    prefixes->common[source] = directory_length(path);
    return prefixes->first[source] ? STATUS_OK : error_memory(err, strlen(path), "a file name");
}

static enum status find_prefixes(struct pictures *pictures, struct result *result,
                                 struct stop *stop, struct error *err)
{
    struct prefixes prefixes;
    pictures->source_count = result_source_count(result);
    const size_t sources = pictures->source_count + 1;
    pictures->skip = calloc(sources, sizeof *pictures->skip);
    prefixes.first = calloc(sources, sizeof *prefixes.first);
    prefixes.common = pictures->skip;
    enum status status = STATUS_OK;
    if (!pictures->skip || !prefixes.first)
        status = error_memory(err, sources * sizeof *prefixes.first, "the names of sources");
    for (uint64_t row = 0; status == STATUS_OK && row < result_images(result); row++) {
        struct result_image image;
        status = row % STOP_EVERY ? STATUS_OK : stop_check(stop, "reading rows", err);
        if (status == STATUS_OK)
            status = result_image_at(result, row, &image, err);
        if (status == STATUS_OK)
            status = add_prefix(&prefixes, pictures, image.path, image.source, err);
    }
    for (uint64_t row = 0; status == STATUS_OK && row < result_failures(result); row++) {
        struct result_failure failure;
        status = result_failure_at(result, row, &failure, err);
        if (status == STATUS_OK)
            status = add_prefix(&prefixes, pictures, failure.path, failure.source, err);
    }
    for (unsigned i = 0; prefixes.first && i < pictures->source_count; i++) {
        if (prefixes.first[i] && pictures->skip)
            pictures->skip[i] = skip_home(prefixes.first[i], pictures->skip[i]);
        free(prefixes.first[i]);
    }
    free(prefixes.first);
    return status;
}

const char *pictures_source(char *buffer, size_t size, const char *source)
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

static enum status add_name(uint64_t *at, struct pictures *pictures, const char *name,
                            size_t length, struct error *err)
{
    if (pictures->names_room - pictures->names_used < length + 1) {
        const uint64_t room = 2 * pictures->names_room + length + 4096;
        char *grown = realloc(pictures->names, (size_t)room);
        if (!grown)
            return error_memory(err, (size_t)room, "the names of pictures");
        pictures->names = grown;
        pictures->names_room = room;
    }
    *at = pictures->names_used;
    memcpy(pictures->names + *at, name, length);
    pictures->names[*at + length] = 0;
    pictures->names_used += length + 1;
    return STATUS_OK;
}

/* Folders by the digests of their names: open addressing, at most half full. */
struct folder_slots {
    struct folder_slot {
        uint64_t digest[2];
        uint32_t number; /* from 1 on; 0: free */
    } * slot;
    size_t count; /* a power of two */
};

static struct folder_slot *find_slot(const struct folder_slots *slots, const uint64_t digest[2])
{
    size_t at = (size_t)digest[0] & (slots->count - 1);
    while (slots->slot[at].number != 0 &&
           memcmp(slots->slot[at].digest, digest, sizeof slots->slot[at].digest) != 0)
        at = (at + 1) & (slots->count - 1);
    return &slots->slot[at];
}

static enum status grow_slots(struct folder_slots *slots, struct error *err)
{
    struct folder_slots larger = {.count = slots->count ? 2 * slots->count : 256};
    larger.slot = calloc(larger.count, sizeof *larger.slot);
    if (!larger.slot)
        return error_memory(err, larger.count * sizeof *larger.slot, "the folders of pictures");
    for (size_t i = 0; i < slots->count; i++)
        if (slots->slot[i].number != 0)
            *find_slot(&larger, slots->slot[i].digest) = slots->slot[i];
    free(slots->slot);
    *slots = larger;
    return STATUS_OK;
}

/* The folder of a shown path: what is before its last slash, or its source. */
static enum status find_folder(uint32_t *number, struct pictures *pictures,
                               struct folder_slots *slots, const char *shown, unsigned source,
                               const char *source_name, struct error *err)
{
    size_t length = directory_length(shown);
    length -= length > 0;
    uint64_t digest[2];
    struct murmur3 state;
    murmur3_init(&state);
    murmur3_update(&state, &source, sizeof source);
    murmur3_update(&state, shown, length);
    murmur3_final(&state, digest);
    enum status status = STATUS_OK;
    if (2 * ((size_t)pictures->folder_count + 1) > slots->count)
        status = grow_slots(slots, err);
    if (status != STATUS_OK)
        return status;
    struct folder_slot *slot = find_slot(slots, digest);
    if (slot->number == 0) {
        if (pictures->folder_count == pictures->folder_room) {
            const uint32_t room = 2 * pictures->folder_room + 64;
            struct picture_folder *grown =
                realloc(pictures->folder, (size_t)room * sizeof *pictures->folder);
            if (!grown)
                return error_memory(err, (size_t)room * sizeof *grown, "the folders of pictures");
            pictures->folder = grown;
            pictures->folder_room = room;
        }
        struct picture_folder *folder = &pictures->folder[pictures->folder_count];
        folder->count = 0;
        status = length ? add_name(&folder->name, pictures, shown, length, err)
                        : add_name(&folder->name, pictures, source_name, strlen(source_name), err);
        if (status != STATUS_OK)
            return status;
        memcpy(slot->digest, digest, sizeof digest);
        slot->number = ++pictures->folder_count;
    }
    *number = slot->number - 1;
    pictures->folder[*number].count++;
    return STATUS_OK;
}

static enum status find_format(uint8_t *number, struct pictures *pictures,
                               const struct result_image *image, struct error *err)
{
    unsigned i = 0;
    while (i < pictures->format_count &&
           memcmp(pictures->format[i], image->format, sizeof image->format) != 0)
        i++;
    if (i == UINT8_MAX) /* a file that no clpipe wrote */
        i--;
    if (i == pictures->format_count) {
        void *formats = realloc(pictures->format, (i + 1) * sizeof *pictures->format);
        if (formats)
            pictures->format = formats;
        uint64_t *of = realloc(pictures->of_format, (i + 1) * sizeof *pictures->of_format);
        if (of)
            pictures->of_format = of;
        if (!formats || !of)
            return error_memory(err, (i + 1) * 8, "the formats of pictures");
        memcpy(pictures->format[i], image->format, sizeof image->format);
        pictures->of_format[i] = 0;
        pictures->format_count++;
    }
    pictures->of_format[i]++;
    *number = (uint8_t)i;
    return STATUS_OK;
}

static enum status read_row(struct pictures *pictures, struct folder_slots *slots,
                            struct result *result, uint64_t row, struct error *err)
{
    struct picture *picture = &pictures->row[row];
    struct result_image image;
    char source[256] = "";
    enum status status = result_image_at(result, row, &image, err);
    if (status != STATUS_OK)
        return status;
    const char *shown = pictures_shown(pictures, image.path, image.source);
    if (image.source < pictures->source_count)
        pictures_source(source, sizeof source, result_source(result, image.source));
    *picture = (struct picture){.bytes = image.bytes,
                                .width = image.width,
                                .height = image.height,
                                .source = image.source,
                                .label = 0};
    pictures->bytes += image.bytes;
    pictures->pixels += (uint64_t)image.width * image.height;
    status = add_name(&picture->name, pictures, shown, strlen(shown), err);
    if (status == STATUS_OK)
        status = find_format(&picture->format, pictures, &image, err);
    if (status == STATUS_OK)
        status = find_folder(&picture->folder, pictures, slots, shown, image.source, source, err);
    return status;
}

/* --- order ------------------------------------------------------------------------------------- */

static enum status read_labels(struct pictures *pictures, struct result *result,
                               const struct result_clusters *clusters, struct error *err)
{
    const size_t n = (size_t)pictures->count;
    int32_t *labels = malloc(n * sizeof *labels);
    float *distances = malloc(n * sizeof *distances);
    enum status status = labels && distances ? STATUS_OK : error_memory(err, 8 * n, "labels");
    if (status == STATUS_OK)
        status = result_clusters_read(result, clusters, NULL, labels, distances, NULL, NULL, err);
    for (size_t row = 0; status == STATUS_OK && row < n; row++) {
        const bool valid = labels[row] >= 0 && (uint32_t)labels[row] < clusters->k;
        pictures->row[row].label = valid ? labels[row] : -1;
        pictures->row[row].distance =
            isfinite(distances[row]) && distances[row] > 0 ? sqrtf(distances[row]) : 0;
    }
    free(labels);
    free(distances);
    return status;
}

/* Groups by falling size, those without a label last; then by number. */
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

/* How many of `size` ascending distances are above the third quartile by more than one and a half
 * times what lies between the quartiles. */
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

static int compare_folders(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
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

/* scratch: as many as the group has members. */
static void find_commonest(struct picture_group *group, const struct pictures *pictures,
                           uint32_t *scratch)
{
    for (uint64_t i = 0; i < group->size; i++)
        scratch[i] = pictures->row[pictures->order[group->first + i]].folder;
    qsort(scratch, (size_t)group->size, sizeof *scratch, compare_folders);
    for (uint64_t i = 0, begin = 0; i < group->size; i++)
        if (i + 1 == group->size || scratch[i + 1] != scratch[i]) {
            add_commonest(group, scratch[i], i + 1 - begin);
            begin = i + 1;
        }
}

static enum status put_in_order(struct pictures *pictures, uint32_t groups, bool by_distance,
                                struct error *err)
{
    const size_t n = (size_t)pictures->count;
    enum status status = STATUS_OK;
    struct ordered *sorted = malloc(n * sizeof *sorted);
    uint64_t *next = malloc(((size_t)groups + 1) * sizeof *next);
    uint32_t *scratch = malloc(n * sizeof *scratch);
    pictures->group = calloc((size_t)groups + 1, sizeof *pictures->group);
    pictures->order = malloc(n * sizeof *pictures->order);
    if (!sorted || !next || !scratch || !pictures->group || !pictures->order) {
        status = error_memory(err, n * sizeof *sorted, "the order of pictures");
        goto out;
    }
    for (uint32_t i = 0; i <= groups; i++)
        pictures->group[i].label = i < groups ? (int32_t)i : -1;
    for (size_t row = 0; row < n; row++)
        pictures->group[pictures->row[row].label < 0 ? groups : (uint32_t)pictures->row[row].label]
            .size++;
    qsort(pictures->group, (size_t)groups + 1, sizeof *pictures->group, compare_groups);
    uint64_t first = 0;
    for (uint32_t i = 0; i <= groups; i++) {
        struct picture_group *group = &pictures->group[i];
        group->first = first;
        next[group->label < 0 ? groups : (uint32_t)group->label] = first;
        first += group->size;
    }
    pictures->group_count = pictures->group[groups].size ? groups + 1 : groups;
    for (size_t row = 0; row < n; row++) {
        const int32_t label = pictures->row[row].label;
        sorted[next[label < 0 ? groups : (uint32_t)label]++] =
            (struct ordered){pictures->row[row].distance, row};
    }
    for (uint32_t i = 0; i < pictures->group_count; i++) {
        struct picture_group *group = &pictures->group[i];
        struct ordered *at = sorted + group->first;
        if (by_distance && group->label >= 0) {
            qsort(at, (size_t)group->size, sizeof *at, compare_rows);
            group->outliers = count_outliers(at, group->size);
        }
        for (uint64_t j = 0; j < group->size; j++)
            pictures->order[group->first + j] = at[j].row;
        find_commonest(group, pictures, scratch);
    }
out:
    free(sorted);
    free(next);
    free(scratch);
    return status;
}

enum status pictures_read(struct pictures *out, enum grouping *how, struct result *result,
                          const struct result_clusters *clusters, struct stop *stop,
                          struct error *err)
{
    struct folder_slots slots = {0};
    *out = (struct pictures){.count = result_images(result)};
    const size_t n = (size_t)out->count;
    enum status status = find_prefixes(out, result, stop, err);
    if (status != STATUS_OK)
        goto out;
    out->row = malloc((n ? n : 1) * sizeof *out->row);
    if (!out->row) {
        status = error_memory(err, n * sizeof *out->row, "pictures");
        goto out;
    }
    for (uint64_t row = 0; row < out->count; row++) {
        status = row % STOP_EVERY ? STATUS_OK : stop_check(stop, "reading rows", err);
        if (status == STATUS_OK)
            status = read_row(out, &slots, result, row, err);
        if (status != STATUS_OK)
            goto out;
    }
    uint32_t groups = 1;
    *how = GROUPS_NONE;
    if (clusters) {
        *how = GROUPS_CLUSTERS;
        groups = clusters->k;
        status = read_labels(out, result, clusters, err);
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
    free(slots.slot);
    return status;
}

void pictures_clear(struct pictures *pictures)
{
    free(pictures->row);
    free(pictures->order);
    free(pictures->names);
    free(pictures->folder);
    free(pictures->format);
    free(pictures->of_format);
    free(pictures->group);
    free(pictures->skip);
    *pictures = (struct pictures){0};
}

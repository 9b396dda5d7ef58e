/* find_duplicates.c: finds groups of copies among the rows.
 *
 *   rows ── same size and digest of bytes ──────────────────────────────────┐
 *     ├──── same size, same code ── decoded: digest of pixels ──────────────┼──> stars
 *     └──── similar codes ── all pairs ── decoded: aligned, contradicted ───┘
 *
 * Rows with the same code and, if pictures are compared, the same pixels form a class. Pairs are
 * pairs of classes; a class is compared by its row that comes first in the order of references. */
#include "base/array.h"
#include "base/held.h"
#include "base/log.h"
#include "base/minmax.h"
#include "features/code.h"
#include "jobs/code_pairs.h"
#include "jobs/confirm.h"
#include "jobs/duplicates.h"
#include "jobs/redecode.h"

#include <stdlib.h>
#include <string.h>

#define NONE       UINT32_MAX
#define PAIRS_EACH 128u /* per image; the limit is lowered so that there are no more */
#define PLAIN_BITS 48u  /* a code with fewer ones or zeros belongs to an image without structure */

struct row {
    uint64_t pixels, bytes, digest[2];
    uint32_t width, height;
    uint32_t same_bytes, same_pixels; /* the first row in order with the same; possibly itself */
    uint32_t class;                   /* NONE: no structure */
};

struct link {
    uint32_t class;
    uint16_t distance, mirrored;
};

struct finding {
    struct result *result;
    const struct duplicates_config *config;
    struct duplicates *out;
    uint32_t rows, classes;
    struct row *row;
    uint8_t *codes;   /* per row */
    uint32_t *order;  /* the order in which rows become references */
    uint32_t *sorted; /* scratch: sorted rows */
    uint32_t *rank;   /* of each row in `order` */
    /* Classes: class c has the rows members[class_first[c]..class_first[c + 1]), in order. */
    uint32_t *members, *class_first;
    uint8_t *class_codes;
    struct code_pairs pairs;
    bool *linked; /* per pair */
    uint64_t *link_first;
    struct link *link;
    struct workers *workers;
    struct reopen *pictures;
    struct held held; /* the arrays above */
};

/* --- rows ------------------------------------------------------------------------------------ */

static enum status read_rows(struct finding *f, struct error *err)
{
    enum status status = STATUS_OK;
    struct result_image image;
    for (uint32_t i = 0; i < f->rows && status == STATUS_OK; i++) {
        struct row *row = &f->row[i];
        status = result_image_at(f->result, i, &image, err);
        if (status != STATUS_OK)
            break;
        *row = (struct row){.pixels = (uint64_t)image.width * image.height,
                            .bytes = image.bytes,
                            .digest = {image.digest[0], image.digest[1]},
                            .width = image.width,
                            .height = image.height,
                            .same_bytes = i,
                            .same_pixels = i,
                            .class = NONE};
        f->order[i] = f->sorted[i] = i;
    }
    return status == STATUS_OK ? result_codes_read(f->result, 0, f->rows, f->codes, err) : status;
}

/* qsort_r with a table in hand. */
static int by_order(const void *x, const void *y, void *context)
{
    const struct finding *f = context;
    const uint32_t i = *(const uint32_t *)x, j = *(const uint32_t *)y;
    const struct row *a = &f->row[i], *b = &f->row[j];
    if (a->pixels != b->pixels)
        return a->pixels > b->pixels ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return i < j ? -1 : i > j;
}

static int compare_bytes(const struct row *a, const struct row *b)
{
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    return memcmp(a->digest, b->digest, sizeof a->digest);
}

static int by_bytes(const void *x, const void *y, void *context)
{
    const struct finding *f = context;
    const uint32_t i = *(const uint32_t *)x, j = *(const uint32_t *)y;
    const int differ = compare_bytes(&f->row[i], &f->row[j]);
    return differ ? differ : (f->rank[i] < f->rank[j] ? -1 : f->rank[i] > f->rank[j]);
}

static void find_same_bytes(struct finding *f)
{
    qsort_r(f->sorted, f->rows, sizeof *f->sorted, by_bytes, f);
    for (uint32_t i = 1; i < f->rows; i++) {
        struct row *before = &f->row[f->sorted[i - 1]], *here = &f->row[f->sorted[i]];
        if (compare_bytes(before, here) == 0)
            here->same_bytes = before->same_bytes;
        here->same_pixels = here->same_bytes;
    }
}

static int compare_codes(const struct finding *f, uint32_t i, uint32_t j)
{
    return memcmp(f->codes + (size_t)i * CODE_BYTES, f->codes + (size_t)j * CODE_BYTES, CODE_BYTES);
}

/* Without `compare`, by the codes alone. */
static int compare_classes(const struct finding *f, uint32_t i, uint32_t j)
{
    const uint32_t a = f->row[i].same_pixels, b = f->row[j].same_pixels;
    const int differ = compare_codes(f, i, j);
    return differ || !f->config->compare ? differ : a < b ? -1 : a > b;
}

static int by_class(const void *x, const void *y, void *context)
{
    const struct finding *f = context;
    const uint32_t i = *(const uint32_t *)x, j = *(const uint32_t *)y;
    const int differ = compare_classes(f, i, j);
    return differ ? differ : (f->rank[i] < f->rank[j] ? -1 : f->rank[i] > f->rank[j]);
}

/* By code, then size, then order. */
static int by_shape(const void *x, const void *y, void *context)
{
    const struct finding *f = context;
    const uint32_t i = *(const uint32_t *)x, j = *(const uint32_t *)y;
    const struct row *a = &f->row[i], *b = &f->row[j];
    const int differ = compare_codes(f, i, j);
    if (differ)
        return differ;
    if (a->width != b->width)
        return a->width < b->width ? -1 : 1;
    if (a->height != b->height)
        return a->height < b->height ? -1 : 1;
    return f->rank[i] < f->rank[j] ? -1 : f->rank[i] > f->rank[j];
}

static bool same_shape(const struct finding *f, uint32_t i, uint32_t j)
{
    return compare_codes(f, i, j) == 0 && f->row[i].width == f->row[j].width &&
           f->row[i].height == f->row[j].height;
}

/* Finds equal pixels among different files with the same code and size. */
static void compare_pixels(struct finding *f, const uint64_t *rows, uint64_t (*digest)[2],
                           uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (digest[i][0] == 0 && digest[i][1] == 0) {
            f->out->pixels_unknown++;
            continue;
        }
        /* Finds the first one with the same pixels; groups with one code and size are small. */
        for (uint64_t j = 0; j < i; j++) {
            if (memcmp(digest[i], digest[j], sizeof *digest) == 0) {
                f->row[rows[i]].same_pixels = (uint32_t)rows[j];
                break;
            }
        }
    }
}

/* A single call decodes all pictures, so that archives are read once. */
static enum status find_same_pixels(struct finding *f, struct error *err)
{
    SCOPED_HELD held = {0};
    uint64_t count = 0, end;
    uint64_t(*digest)[2] = NULL;
    uint64_t *rows = held_array(&held, f->rows, sizeof *rows);
    enum status status = held_check(&held, "images", err);
    qsort_r(f->sorted, f->rows, sizeof *f->sorted, by_shape, f);
    for (uint32_t i = 0, first = 0; i < f->rows && status == STATUS_OK; i++) {
        const uint64_t begun = count;
        for (first = i; i + 1 < f->rows && same_shape(f, f->sorted[first], f->sorted[i + 1]); i++)
            ;
        for (uint32_t j = first; j <= i; j++)
            if (f->row[f->sorted[j]].same_bytes == f->sorted[j])
                rows[count++] = f->sorted[j];
        if (count - begun == 1)
            count = begun;
    }
    if (status == STATUS_OK) {
        digest = held_array(&held, count, sizeof *digest);
        status = held_check(&held, "images", err);
    }
    if (status == STATUS_OK)
        status = redecode_read(f->pictures, f->config->watch.stop, rows, count, NULL, digest, err);
    for (uint64_t first = 0; first < count && status == STATUS_OK; first = end) {
        for (end = first + 1;
             end < count && same_shape(f, (uint32_t)rows[first], (uint32_t)rows[end]);)
            end++;
        compare_pixels(f, rows + first, digest + first, end - first);
    }
    /* Copies of a file have its pixels. */
    for (uint32_t i = 0; i < f->rows; i++)
        f->row[i].same_pixels = f->row[f->row[i].same_bytes].same_pixels;
    return status;
}

/* --- classes and pairs ----------------------------------------------------------------------- */

static bool has_structure(const uint8_t *code)
{
    uint32_t ones = 0;
    for (uint32_t i = 0; i < CODE_BYTES; i++)
        ones += (uint32_t)__builtin_popcount(code[i]);
    return ones >= PLAIN_BITS && ones <= CODE_BITS - PLAIN_BITS;
}

static void make_classes(struct finding *f)
{
    uint32_t used = 0;
    qsort_r(f->sorted, f->rows, sizeof *f->sorted, by_class, f);
    for (uint32_t i = 0; i < f->rows; i++) {
        const uint32_t row = f->sorted[i];
        const uint8_t *code = f->codes + (size_t)row * CODE_BYTES;
        if (!has_structure(code))
            continue;
        if (used == 0 || compare_classes(f, f->members[used - 1], row) != 0) {
            memcpy(f->class_codes + (size_t)f->classes * CODE_BYTES, code, CODE_BYTES);
            f->class_first[f->classes++] = used;
        }
        f->row[row].class = f->classes - 1;
        f->members[used++] = row;
    }
    f->class_first[f->classes] = used;
}

static enum status compare_pictures(struct finding *f, struct error *err)
{
    const struct duplicates_config *config = f->config;
    SCOPED_HELD held = {0};
    uint32_t *rank = held_array(&held, f->classes, sizeof *rank);
    uint32_t *row = held_array(&held, f->classes, sizeof *row);
    enum status status = held_check(&held, "images", err);
    for (uint32_t c = 0; c < f->classes && status == STATUS_OK; c++) {
        row[c] = f->members[f->class_first[c]];
        rank[c] = f->rank[row[c]];
    }
    const struct confirm_config confirm = {.pairs = &f->pairs,
                                           .rank = rank,
                                           .row = row,
                                           .classes = f->classes,
                                           .pictures = f->pictures,
                                           .workers = f->workers,
                                           .memory = config->memory / 4,
                                           .watch = config->watch};
    if (status == STATUS_OK)
        status = confirm_pairs(f->linked, &f->out->near_unknown, &confirm, err);
    return status;
}

static enum status find_pairs(struct finding *f, struct error *err)
{
    const struct duplicates_config *config = f->config;
    const struct code_pairs_config pairs = {
        .codes = f->class_codes,
        .count = f->classes,
        .limit = config->near,
        .floor = config->near < DUPLICATES_FLOOR ? config->near : DUPLICATES_FLOOR,
        .most = config->compare ? min_u64((uint64_t)PAIRS_EACH * f->classes,
                                          config->memory / 4 / sizeof(struct code_pair))
                                : UINT64_MAX,
        .memory = config->memory,
        .workers = f->workers,
        .watch = config->watch,
    };
    struct error of_device = ERROR_INIT;
    enum status status = STATUS_FAILED;
    if (config->context) {
        status = device_code_pairs_find(&f->pairs, config->context, &pairs, &of_device);
        if (status == STATUS_INTERRUPTED && err)
            *err = of_device;
        if (status == STATUS_FAILED)
            log_message(LOG_NOTICE, "notice: the host compares codes: %s", of_device.sentence);
    }
    if (status == STATUS_FAILED)
        status = code_pairs_find(&f->pairs, &pairs, err);
    if (status != STATUS_OK)
        return status;
    f->out->limit = f->pairs.limit;
    f->linked = held_array(&f->held, f->pairs.count, sizeof *f->linked);
    status = held_check(&f->held, "images", err);
    for (uint64_t i = 0; i < f->pairs.count && status == STATUS_OK; i++)
        f->linked[i] = !config->compare;
    return status == STATUS_OK && config->compare ? compare_pictures(f, err) : status;
}

/* Builds each class's list of pairs. */
static enum status make_links(struct finding *f, struct error *err)
{
    uint64_t total = 0;
    f->link_first = held_array(&f->held, (uint64_t)f->classes + 2, sizeof *f->link_first);
    enum status status = held_check(&f->held, "images", err);
    for (uint64_t i = 0; i < f->pairs.count && status == STATUS_OK; i++) {
        if (!f->linked[i])
            continue;
        f->link_first[f->pairs.pair[i].a + 2]++;
        f->link_first[f->pairs.pair[i].b + 2]++;
        total += 2;
    }
    if (status != STATUS_OK)
        return status;
    f->link = held_array(&f->held, total, sizeof *f->link);
    status = held_check(&f->held, "images", err);
    if (status != STATUS_OK)
        return status;
    for (uint32_t c = 2; c < f->classes + 2; c++)
        f->link_first[c] += f->link_first[c - 1];
    for (uint64_t i = 0; i < f->pairs.count; i++) {
        const struct code_pair *p = &f->pairs.pair[i];
        if (!f->linked[i])
            continue;
        f->link[f->link_first[p->a + 1]++] = (struct link){p->b, p->distance, p->mirrored};
        f->link[f->link_first[p->b + 1]++] = (struct link){p->a, p->distance, p->mirrored};
    }
    return STATUS_OK;
}

/* --- stars ----------------------------------------------------------------------------------- */

struct stars {
    struct finding *f;
    bool *taken;
    uint32_t *with_bytes, *with_pixels; /* scratch of set_kinds: zeros */
};

static enum status add_member(struct stars *stars, struct duplicates_member member,
                              struct error *err)
{
    struct duplicates *out = stars->f->out;
    if (array_grow(&out->member, out->members, sizeof *out->member, "groups", err))
        return STATUS_FAILED;
    out->member[out->members++] = member;
    stars->taken[member.row] = true;
    return STATUS_OK;
}

/* Adds the rows of a class that is in no group yet. */
static enum status add_class(struct stars *stars, uint32_t class, uint32_t distance, bool mirrored,
                             struct error *err)
{
    const struct finding *f = stars->f;
    enum status status = STATUS_OK;
    for (uint32_t i = f->class_first[class]; i < f->class_first[class + 1]; i++) {
        const struct duplicates_member member = {.row = f->members[i],
                                                 .kind = DUPLICATES_NEAR,
                                                 .distance = distance,
                                                 .mirrored = mirrored};
        if (!stars->taken[f->members[i]] && status == STATUS_OK)
            status = add_member(stars, member, err);
    }
    return status;
}

static int by_row(const void *x, const void *y)
{
    const struct duplicates_member *a = x, *b = y;
    return a->row < b->row ? -1 : a->row > b->row;
}

/* Sets the kinds of the group's members, counting how many share bytes, and pixels, under the row
 * that represents them. */
static void set_kinds(struct stars *stars, struct duplicates_group *group)
{
    const struct finding *f = stars->f;
    struct duplicates_member *member = f->out->member + group->first;
    for (uint64_t i = 0; i < group->count; i++) {
        stars->with_bytes[f->row[member[i].row].same_bytes]++;
        stars->with_pixels[f->row[member[i].row].same_pixels]++;
    }
    for (uint64_t i = 0; i < group->count; i++) {
        const struct row *row = &f->row[member[i].row];
        member[i].kind = stars->with_bytes[row->same_bytes] > 1     ? DUPLICATES_BYTES
                         : stars->with_pixels[row->same_pixels] > 1 ? DUPLICATES_PIXELS
                                                                    : DUPLICATES_NEAR;
        member[i].pixels = row->same_pixels;
        group->kind = member[i].kind > group->kind ? member[i].kind : group->kind;
    }
    for (uint64_t i = 0; i < group->count; i++) {
        stars->with_bytes[f->row[member[i].row].same_bytes] = 0;
        stars->with_pixels[f->row[member[i].row].same_pixels] = 0;
    }
}

static enum status add_star(struct stars *stars, uint32_t reference, struct error *err)
{
    struct finding *f = stars->f;
    struct duplicates *out = f->out;
    const struct row *row = &f->row[reference];
    const uint64_t first = out->members;
    enum status status = add_member(stars, (struct duplicates_member){.row = reference}, err);
    if (f->config->near > 0 && row->class != NONE) {
        status = add_class(stars, row->class, 0, false, err);
        for (uint64_t l = f->link_first[row->class];
             l < f->link_first[row->class + 1] && status == STATUS_OK; l++)
            status =
                add_class(stars, f->link[l].class, f->link[l].distance, f->link[l].mirrored, err);
    } else {
        /* Equal files have equal pixels. Files without structure have no class, but are near in
         * order. */
        const bool plain = row->class == NONE;
        const uint32_t *at =
            plain ? f->order + f->rank[reference] + 1 : f->members + f->class_first[row->class];
        const uint32_t *end =
            plain ? f->order + f->rows : f->members + f->class_first[row->class + 1];
        for (; at < end && status == STATUS_OK; at++) {
            if (plain && f->row[*at].pixels != row->pixels)
                break;
            if (!stars->taken[*at] && f->row[*at].same_pixels == row->same_pixels)
                status = add_member(stars, (struct duplicates_member){.row = *at}, err);
        }
    }
    if (status != STATUS_OK)
        return status;
    if (out->members - first < 2) {
        out->members = first;
        stars->taken[reference] = false;
        return STATUS_OK;
    }
    if (array_grow(&out->group, out->groups, sizeof *out->group, "groups", err))
        return STATUS_FAILED;
    struct duplicates_group *group = &out->group[out->groups++];
    *group = (struct duplicates_group){.first = first, .count = out->members - first};
    qsort(out->member + first + 1, group->count - 1, sizeof *out->member, by_row);
    set_kinds(stars, group);
    return STATUS_OK;
}

static uint64_t lowest_row(const struct duplicates *out, const struct duplicates_group *group)
{
    const struct duplicates_member *member = out->member + group->first;
    return member[0].row < member[1].row ? member[0].row : member[1].row;
}

static int by_lowest_row(const void *x, const void *y, void *context)
{
    const uint64_t a = lowest_row(context, x), b = lowest_row(context, y);
    return a < b ? -1 : a > b;
}

static enum status make_stars(struct finding *f, struct error *err)
{
    struct stars stars = {.f = f};
    stars.taken = held_array(&f->held, f->rows, sizeof *stars.taken);
    stars.with_bytes = held_array(&f->held, f->rows, sizeof *stars.with_bytes);
    stars.with_pixels = held_array(&f->held, f->rows, sizeof *stars.with_pixels);
    enum status status = held_check(&f->held, "images", err);
    for (uint32_t i = 0; i < f->rows && status == STATUS_OK; i++)
        if (!stars.taken[f->order[i]])
            status = add_star(&stars, f->order[i], err);
    if (status == STATUS_OK && f->out->groups > 1)
        qsort_r(f->out->group, f->out->groups, sizeof *f->out->group, by_lowest_row, f->out);
    return status;
}

/* --- all of it ------------------------------------------------------------------------------- */

static enum status find_all(struct finding *f, struct error *err)
{
    const struct duplicates_config *config = f->config;
    enum status status = read_rows(f, err);
    if (status == STATUS_OK)
        status = workers_open(&f->workers, config->threads, err);
    if (status == STATUS_OK)
        status = reopen_open(&f->pictures,
                             &(struct reopen_config){.result = f->result,
                                                     .workers = f->workers,
                                                     .memory = config->memory / 2,
                                                     .watch = config->watch},
                             err);
    if (status != STATUS_OK)
        return status;
    qsort_r(f->order, f->rows, sizeof *f->order, by_order, f);
    for (uint32_t i = 0; i < f->rows; i++)
        f->rank[f->order[i]] = i;
    find_same_bytes(f);
    if (config->compare)
        status = find_same_pixels(f, err);
    if (status == STATUS_OK)
        make_classes(f);
    if (status == STATUS_OK && config->near > 0)
        status = find_pairs(f, err);
    if (status == STATUS_OK)
        status = make_links(f, err);
    return status == STATUS_OK ? make_stars(f, err) : status;
}

enum status duplicates_find(struct duplicates *out, struct result *result,
                            const struct duplicates_config *config, struct error *err)
{
    const uint64_t rows = result_images(result);
    struct finding f = {.result = result, .config = config, .out = out, .rows = (uint32_t)rows};
    memset(out, 0, sizeof *out);
    out->limit = config->near;
    if (rows >= NONE)
        return error_set(err, STATUS_FAILED, "the file has too many images to compare: at most %u",
                         NONE - 1);
    if (!result_has_codes(result)) {
        error_set(err, STATUS_FAILED, "%s has no perceptual codes", result->path);
        return error_remedy(err, REMEDY_ADD_CODES);
    }
    f.row = held_array(&f.held, rows, sizeof *f.row);
    f.codes = held_array(&f.held, rows, CODE_BYTES);
    f.class_codes = held_array(&f.held, rows, CODE_BYTES);
    f.order = held_array(&f.held, rows, sizeof *f.order);
    f.sorted = held_array(&f.held, rows, sizeof *f.sorted);
    f.rank = held_array(&f.held, rows, sizeof *f.rank);
    f.members = held_array(&f.held, rows, sizeof *f.members);
    f.class_first = held_array(&f.held, rows + 1, sizeof *f.class_first);
    enum status status = held_check(&f.held, "images", err);
    if (status == STATUS_OK)
        status = find_all(&f, err);
    reopen_close(&f.pictures);
    workers_close(&f.workers);
    code_pairs_clear(&f.pairs);
    held_free(&f.held);
    if (status != STATUS_OK)
        duplicates_clear(out);
    return status;
}

const char *duplicates_kind_name(enum duplicates_kind kind)
{
    static const char *const name[DUPLICATES_KINDS] = {"bytes", "pixels", "near"};
    return name[kind];
}

void duplicates_clear(struct duplicates *duplicates)
{
    free(duplicates->group);
    free(duplicates->member);
    memset(duplicates, 0, sizeof *duplicates);
}

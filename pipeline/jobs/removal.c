/* removal.c: finds the members of groups that can be removed.
 *
 *   members ── checked ── kept and removed ── compared ── read, and checked again */
#include "jobs/removal.h"

#include "base/array.h"
#include "base/held.h"
#include "jobs/confirm.h"
#include "jobs/reopen.h"
#include "result/locate.h"

#include <stdlib.h>
#include <string.h>

const char *const removal_names[REMOVAL_VERDICTS] = {"kept", "safe",    "same-file", "uncertain",
                                                     "gone", "changed", "unproven",  "alone"};
const char *const removal_texts[REMOVAL_VERDICTS] = {
    "kept",
    "safe to remove",
    "the same file as one that is kept, by another path or link: removing it frees nothing",
    "perhaps the same file as one that is kept: its file system cannot tell",
    "gone, or not to be found from this directory",
    "changed since it was read, or unreadable",
    "not proven to be a copy of one that is kept",
    "no copy is kept that is certainly a different file"};

#define PICTURES_EACH 64u /* that one picture is compared with, at most */

struct finding {
    struct removal_entry *entry;
    const struct duplicates *found;
    const struct removal_config *config;
    const struct duplicates_config *how;
    struct reopen_config reopen;    /* with the result and the workers */
    uint64_t *rows, *member, reads; /* rows to read, and the members they belong to */
};

/* --- what is kept, and what is to go ----------------------------------------------------------- */

static enum status look_at_files(const struct finding *f, struct error *err)
{
    struct locator locator = {0};
    enum status status = STATUS_OK;
    for (uint64_t i = 0; i < f->found->members && status == STATUS_OK; i++) {
        struct removal_entry *entry = &f->entry[i];
        const char *path;
        if (i % 1024 == 0)
            watch_show(&f->how->watch, "looking at files", i, f->found->members);
        status = watch_check(&f->how->watch, "checking files", err);
        if (status == STATUS_OK)
            status = result_image_at(f->reopen.result, f->found->member[i].row, &entry->image, err);
        if (status == STATUS_OK)
            status = locate_image(&locator, &path, f->reopen.result, entry->image.source,
                                  entry->image.path_raw, err);
        if (status != STATUS_OK)
            break;
        original_look(&entry->file, path, &entry->image);
        entry->verdict = entry->file.state == ORIGINAL_THERE     ? REMOVAL_UNPROVEN
                         : entry->file.state == ORIGINAL_CHANGED ? REMOVAL_CHANGED
                                                                 : REMOVAL_GONE;
    }
    locator_clear(&locator);
    return status;
}

static bool is_better(const struct finding *f, uint64_t i, uint64_t j)
{
    const struct result_image *a = &f->entry[i].image, *b = &f->entry[j].image;
    const uint64_t pixels = (uint64_t)a->width * a->height, others = (uint64_t)b->width * b->height;
    if (f->config->keep == REMOVAL_BEST && pixels != others)
        return pixels > others;
    if (f->config->keep == REMOVAL_BEST && a->bytes != b->bytes)
        return a->bytes > b->bytes;
    if (!f->entry[i].file.member != !f->entry[j].file.member)
        return !f->entry[i].file.member;
    if (f->config->keep == REMOVAL_NEWEST && a->mtime_ns != b->mtime_ns)
        return a->mtime_ns > b->mtime_ns;
    return f->found->member[i].row < f->found->member[j].row;
}

static int find_name(const void *key, const void *at)
{
    return strcmp(key, *(const char *const *)at);
}

static void divide(const struct finding *f, const struct duplicates_group *group)
{
    struct removal_entry *entry = f->entry;
    const struct removal_config *config = f->config;
    const uint64_t end = group->first + group->count;
    uint64_t best[2] = {end, end};       /* of all; of files */
    uint64_t *some = f->rows, count = 0; /* certainly kept, or listed */
    for (uint64_t i = group->first; i < end; i++) {
        if (entry[i].verdict != REMOVAL_UNPROVEN)
            continue;
        entry[i].going = config->listed && bsearch(entry[i].file.name, config->listed,
                                                   config->listed_count, sizeof(char *), find_name);
        if (entry[i].going)
            some[count++] = i;
        for (int k = entry[i].file.member ? 1 : 2; k-- > 0 && !config->listed;)
            if (best[k] == end || is_better(f, i, best[k]))
                best[k] = i;
    }
    for (int k = 0; k < 2; k++)
        if (best[k] < end)
            entry[some[count++] = best[k]].verdict = REMOVAL_KEPT;
    for (uint64_t i = group->first; i < end; i++) {
        enum originals all = ORIGINALS_TWO;
        if (entry[i].verdict != REMOVAL_UNPROVEN || entry[i].going)
            continue;
        for (uint64_t k = 0; k < count && all != ORIGINALS_ONE; k++) {
            const enum originals pair = originals_compare(&entry[i].file, &entry[some[k]].file);
            all = pair == ORIGINALS_TWO ? all : pair;
        }
        if (all != ORIGINALS_TWO)
            entry[i].verdict = all == ORIGINALS_ONE ? REMOVAL_SAME : REMOVAL_UNCERTAIN;
        else if (config->listed)
            entry[i].verdict = REMOVAL_KEPT;
        else
            entry[i].going = true;
    }
}

/* --- proof ------------------------------------------------------------------------------------- */

static bool has_bytes_of(const struct removal_entry *a, const struct removal_entry *b)
{
    return a->image.bytes == b->image.bytes &&
           memcmp(a->image.digest, b->image.digest, sizeof a->image.digest) == 0;
}

/* Compares bytes and pixels; failing proof, adds pairs of one kept and one removed member. */
static enum status prove_group(struct code_pairs *pairs, const struct finding *f,
                               const struct duplicates_group *group, struct error *err)
{
    const struct duplicates_member *member = f->found->member;
    const uint64_t end = group->first + group->count;
    uint64_t *kept = f->rows, count = 0;
    for (uint64_t j = group->first; j < end; j++)
        if (f->entry[j].verdict == REMOVAL_KEPT)
            kept[count++] = j;
    for (uint64_t i = group->first; i < end; i++) {
        struct removal_entry *entry = &f->entry[i];
        const uint64_t before = pairs->count;
        if (!entry->going)
            continue;
        entry->verdict = REMOVAL_ALONE;
        for (uint64_t k = 0; k < count && entry->verdict != REMOVAL_SAFE; k++) {
            entry->kept = kept[k];
            if (!entry->file.member && f->entry[kept[k]].file.member)
                continue;
            const bool equal = has_bytes_of(entry, &f->entry[kept[k]]) || !f->config->prove ||
                               (f->how->compare && member[i].pixels == member[kept[k]].pixels);
            entry->verdict = equal ? REMOVAL_SAFE : REMOVAL_UNPROVEN;
            if (pairs->count - before >= 2 * PICTURES_EACH)
                continue;
            for (uint16_t mirrored = 0; mirrored < 2 && !equal; mirrored++) {
                if (array_grow(&pairs->pair, pairs->count, sizeof *pairs->pair, "pairs of images",
                               err))
                    return err->status;
                pairs->pair[pairs->count++] = (struct code_pair){(uint32_t)kept[k], (uint32_t)i,
                                                                 (uint16_t)f->how->near, mirrored};
            }
        }
        pairs->count = entry->verdict == REMOVAL_SAFE ? before : pairs->count;
    }
    return STATUS_OK;
}

/* Compares pictures. The classes of confirm.h are members here; those kept become references. */
static enum status prove_near(struct code_pairs *pairs, const struct finding *f, struct error *err)
{
    const uint64_t members = f->found->members;
    struct reopen *pictures = NULL;
    uint64_t unknown = 0;
    SCOPED_HELD held = {0};
    uint32_t *rank = held_array(&held, members, sizeof *rank);
    uint32_t *row = held_array(&held, members, sizeof *row);
    bool *linked = held_array(&held, pairs->count, sizeof *linked);
    enum status status = held_check(&held, "groups", err);
    for (uint64_t i = 0; i < members && status == STATUS_OK; i++) {
        row[i] = (uint32_t)f->found->member[i].row;
        rank[i] = (uint32_t)(f->entry[i].going ? members + i : i);
    }
    if (status == STATUS_OK)
        status = reopen_open(&pictures, &f->reopen, err);
    const struct confirm_config confirm = {.pairs = pairs,
                                           .rank = rank,
                                           .row = row,
                                           .classes = (uint32_t)members,
                                           .pictures = pictures,
                                           .workers = f->reopen.workers,
                                           .certain = true,
                                           .memory = f->how->memory / 4,
                                           .watch = f->how->watch};
    if (status == STATUS_OK)
        status = confirm_pairs(linked, &unknown, &confirm, err);
    for (uint64_t p = 0; p < pairs->count && status == STATUS_OK; p++) {
        struct removal_entry *entry = &f->entry[pairs->pair[p].b];
        if (!linked[p] || entry->verdict == REMOVAL_SAFE)
            continue;
        entry->verdict = REMOVAL_SAFE;
        entry->kept = pairs->pair[p].a;
    }
    reopen_close(&pictures);
    return status;
}

/* --- the last look ------------------------------------------------------------------------------ */

static void read_file(void *context, const struct reopened *reopened)
{
    const struct finding *f = context;
    struct removal_entry *entry = &f->entry[f->member[reopened->index]];
    struct original now;
    uint64_t digest[2];
    const bool good = blob_digest(reopened->blob, digest, entry->sha) &&
                      memcmp(digest, entry->image.digest, sizeof digest) == 0;
    entry->more = original_has_more(reopened->blob);
    original_look(&now, entry->file.name, &entry->image);
    entry->proven = good && original_same(&entry->file, &now);
    original_clear(&now);
}

static enum status read_files(struct finding *f, struct error *err)
{
    const struct reopen_use use = {.picture = read_file, .context = f, .phase = "reading files"};
    struct reopen *reopen = NULL;
    for (uint64_t i = 0; i < f->found->members; i++)
        if (f->entry[i].verdict == REMOVAL_SAFE)
            f->entry[i].read = f->entry[f->entry[i].kept].read = true;
    for (uint64_t i = 0; i < f->found->members; i++) {
        if (!f->entry[i].read)
            continue;
        f->rows[f->reads] = f->found->member[i].row;
        f->member[f->reads++] = i;
    }
    enum status status = reopen_open(&reopen, &f->reopen, err);
    if (status == STATUS_OK)
        status = reopen_rows(reopen, f->rows, f->reads, &use, err);
    reopen_close(&reopen);
    for (uint64_t i = 0; i < f->found->members; i++) {
        struct removal_entry *entry = &f->entry[i], *kept = &f->entry[entry->kept];
        if (entry->verdict == REMOVAL_SAFE &&
            (!entry->proven || !kept->proven ||
             (has_bytes_of(entry, kept) && memcmp(entry->sha, kept->sha, sizeof kept->sha) != 0)))
            entry->verdict = REMOVAL_CHANGED;
        else if (entry->verdict == REMOVAL_SAFE && entry->more && !has_bytes_of(entry, kept))
            entry->verdict = REMOVAL_UNPROVEN;
    }
    for (uint64_t i = 0; i < f->reads; i++)
        if (!f->entry[f->member[i]].proven)
            f->entry[f->member[i]].verdict = REMOVAL_CHANGED;
    return status;
}

static int by_name(const void *x, const void *y, void *context)
{
    const struct removal_entry *entry = context;
    return strcmp(entry[*(const uint64_t *)x].file.name, entry[*(const uint64_t *)y].file.name);
}

/* Counts each name once. */
static void add_up(struct removal *out, const struct duplicates_group *group, uint64_t *sorted)
{
    struct removal_entry *entry = out->entry;
    uint64_t count = 0;
    for (uint64_t i = group->first; i < group->first + group->count; i++) {
        out->count[entry[i].verdict]++;
        if (entry[i].verdict == REMOVAL_SAFE)
            sorted[count++] = i;
    }
    qsort_r(sorted, count, sizeof *sorted, by_name, entry);
    for (uint64_t k = 0; k < count; k++) {
        struct removal_entry *here = &entry[sorted[k]];
        here->repeated = k > 0 && by_name(&sorted[k - 1], &sorted[k], entry) == 0;
        if (here->repeated)
            continue;
        out->members += here->file.member > 0;
        out->files += here->file.member == 0;
        if (!here->file.member && !here->file.real && here->file.st.st_nlink == 1)
            out->bytes += here->image.bytes;
    }
}

static enum status find_all(struct finding *f, struct removal *out, struct error *err)
{
    const struct duplicates *found = f->found;
    struct code_pairs pairs = {0};
    enum status status = look_at_files(f, err);
    for (uint64_t g = 0; g < found->groups && status == STATUS_OK; g++) {
        divide(f, &found->group[g]);
        status = prove_group(&pairs, f, &found->group[g], err);
    }
    if (status == STATUS_OK && pairs.count > 0 && f->how->compare)
        status = prove_near(&pairs, f, err);
    code_pairs_clear(&pairs);
    if (status == STATUS_OK && f->config->prove)
        status = read_files(f, err);
    for (uint64_t g = 0; g < found->groups && status == STATUS_OK; g++)
        add_up(out, &found->group[g], f->rows);
    return status;
}

enum status removal_find(struct removal *out, struct result *result, const struct duplicates *found,
                         const struct removal_config *config, const struct duplicates_config *how,
                         struct error *err)
{
    *out = (struct removal){0};
    out->entry = held_array(&out->held, found->members, sizeof *out->entry);
    struct finding f = {
        .entry = out->entry,
        .found = found,
        .config = config,
        .how = how,
        .reopen = {.result = result, .memory = how->memory / 2, .watch = how->watch}};
    f.rows = held_array(&out->held, found->members, sizeof *f.rows);
    f.member = held_array(&out->held, found->members, sizeof *f.member);
    enum status status = held_check(&out->held, "groups", err);
    if (status == STATUS_OK)
        status = workers_open(&f.reopen.workers, how->threads, err);
    if (status == STATUS_OK)
        status = find_all(&f, out, err);
    workers_close(&f.reopen.workers);
    return status;
}

void removal_clear(struct removal *removal, const struct duplicates *found)
{
    for (uint64_t i = 0; removal->entry && i < found->members; i++)
        original_clear(&removal->entry[i].file);
    held_free(&removal->held);
    *removal = (struct removal){0};
}

/* losses.c: one pass over the rows of the existing file. Rows of a top-level directory of a source
 * are contiguous, except for lists, which are only judged as a whole. */
#include "ingest/losses.h"

#include "base/clock.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/source_name.h"
#include "base/text.h"
#include "result/locate.h"
#include "result/row_map.h"
#include "sources/pathglob.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FREELY       20 /* this many may be removed, */
#define ONE_OF_THESE 10 /* or 1 in ONE_OF_THESE */

const char *const loss_names[LOSSES] = {"gone",   "excluded", "not_listed",    "archive",
                                        "failed", "passed",   "dropped_source"};

struct judging {
    const struct ingest_config *config;
    struct result *old;
    struct pathglob *globs;
    struct locator locator;
    int64_t *rows, *gone; /* per source of the walk */
    /* The directory of the previous row: its source and number of rows. */
    char *directory;
    unsigned source;
    uint64_t kept, lost;
    char whole[256]; /* a directory with all rows removed */
};

char *losses_text(char *text, size_t size, const uint64_t removed[LOSSES])
{
    static const char *const what[LOSSES] = {
        "gone or not mounted",        "no longer included",           "no longer listed",
        "no longer in their archive", "no longer readable as images", "passed over",
        "in sources that are dropped"};
    text[0] = 0;
    for (int i = 0; i < LOSSES; i++)
        if (removed[i] > 0)
            text_add(text, size, ", ", "%s %s", COUNT_TEXT(removed[i]), what[i]);
    return text;
}

/* *out is LOSSES for a row that now belongs to another shard. */
static enum status find_reason(enum loss *out, struct judging *j, const struct result_image *image,
                               bool failed, struct error *err)
{
    const struct walk_options *walk = &j->config->walk;
    const size_t length = strlen(image->path_raw), archive = archive_prefix(image->path_raw);
    const bool shared = walk->shard_count > 1;
    const char *path;
    struct stat st;
    *out = LOSS_EXCLUDED;
    if (!pathglob_takes_alone(j->globs, image->path_raw, length))
        return STATUS_OK;
    enum status status =
        locate_image(&j->locator, &path, j->old, image->source, image->path_raw, err);
    if (status != STATUS_OK)
        return status;
    *out = LOSS_GONE;
    if (path_stat_at(AT_FDCWD, path, &st, 0) == 0) {
        *out = failed                                           ? LOSS_FAILED
               : shared                                         ? LOSSES
               : source_is_list(j->old->sources[image->source]) ? LOSS_UNLISTED
                                                                : LOSS_PASSED;
    } else if (archive > 0) {
        char *outer = strndup(path, strlen(path) - length + archive - 1);
        const bool there = outer && path_stat_at(AT_FDCWD, outer, &st, 0) == 0;
        if (there && !S_ISDIR(st.st_mode))
            *out = failed                                                      ? LOSS_FAILED
                   : shared && clock_file_time(&st.st_mtim) == image->mtime_ns ? LOSSES
                                                                               : LOSS_ARCHIVE;
        free(outer);
    }
    return STATUS_OK;
}

static void end_directory(struct judging *j)
{
    if (j->directory && j->kept == 0 && j->lost > 0 && !j->whole[0])
        snprintf(j->whole, sizeof j->whole, "%s in %s", PATH_TEXT_IN(160, j->directory),
                 PATH_TEXT_IN(80, j->old->sources[j->source]));
    free(j->directory);
    j->directory = NULL;
    j->kept = j->lost = 0;
}

static enum status judge_row(struct judging *j, uint64_t removed[LOSSES], uint64_t row,
                             const int *numbers, uint8_t there, struct error *err)
{
    struct result_image image;
    enum loss why = LOSS_DROPPED;
    if (result_image_at(j->old, row, &image, err) != STATUS_OK)
        return STATUS_FAILED;
    const int now = numbers ? numbers[image.source] : image.source;
    const bool kept = there & ROW_THERE;
    if (now >= 0 && !kept && find_reason(&why, j, &image, there & ROW_FAILED, err) != STATUS_OK)
        return STATUS_FAILED;
    const bool lost = !kept && why != LOSSES;
    removed[why] += lost;
    if (now < 0 || !j->config->walk.sources[now])
        return STATUS_OK;
    j->rows[now]++;
    j->gone[now] += lost;
    const char *slash =
        source_is_list(j->old->sources[image.source]) ? NULL : strchr(image.path_raw, '/');
    const size_t top = slash ? (size_t)(slash - image.path_raw) + 1 : 0;
    if (j->directory && (image.source != j->source || strlen(j->directory) != top ||
                         strncmp(j->directory, image.path_raw, top) != 0))
        end_directory(j);
    if (top > 0 && !j->directory && !(j->directory = strndup(image.path_raw, top)))
        return error_memory(err, top, "a file name");
    j->source = image.source;
    j->kept += !lost;
    j->lost += lost;
    return STATUS_OK;
}

static enum status refuse(const struct judging *j, const uint64_t removed[LOSSES], uint64_t rows,
                          uint64_t gone, struct error *err)
{
    char text[400];
    error_set(err, STATUS_USAGE, "%s of %s of %s would be removed%s%s: %s; nothing is changed",
              COUNT_TEXT(gone), NUMBER_OF(rows, "image"), PATH_TEXT(j->config->store.output),
              j->whole[0] ? ", among them all of " : "", j->whole,
              losses_text(text, sizeof text, removed));
    return error_remedy(err, REMEDY_ALLOW_REMOVAL);
}

size_t losses_numbers(const struct ingest_config *config)
{
    return 2 * (size_t)config->walk.source_count + LOSSES + 2;
}

enum status losses_judge(struct ingest_report *report, const struct ingest_config *config,
                         struct result *old, const int *now, const uint8_t *there,
                         struct error *err)
{
    const struct walk_options *walk = &config->walk;
    const unsigned sources = walk->source_count;
    const size_t numbers = losses_numbers(config);
    struct judging j = {.config = config, .old = old};
    int64_t rows = 0, gone = 0, *sums = calloc(numbers, sizeof *sums);
    uint64_t removed[LOSSES];
    if (!sums)
        return error_memory(err, numbers * sizeof *sums, "the sources");
    /* For each source its rows and its removed rows; for each reason its rows; directories;
     * processes that have stopped. */
    int64_t *reasons = sums + 2 * (size_t)sources, *whole = reasons + LOSSES;
    j.rows = sums;
    j.gone = sums + sources;
    enum status status = pathglob_open(&j.globs, walk->include, walk->include_count, walk->exclude,
                                       walk->exclude_count, err);
    for (uint64_t row = 0; status == STATUS_OK && old && row < result_images(old); row++)
        status = judge_row(&j, report->removed, row, now, there ? there[row] : ROW_THERE, err);
    end_directory(&j);
    for (int i = 0; i < LOSSES; i++)
        reasons[i] = (int64_t)report->removed[i];
    whole[0] = j.whole[0] != 0;
    if (status == STATUS_OK && config->sum)
        status = config->sum(config->ranks, sums, numbers, err);
    if (status == STATUS_OK && whole[1] > 0)
        status = error_set(err, STATUS_INTERRUPTED, "interrupted");
    for (unsigned i = 0; status == STATUS_OK && i < sources; i++) {
        rows += j.rows[i];
        gone += j.gone[i];
        if (j.gone[i] == 0 || j.gone[i] < j.rows[i])
            continue;
        whole[0] = 1;
        path_for_message(j.whole, sizeof j.whole, walk->sources[i]);
    }
    for (int i = 0; i < LOSSES; i++)
        removed[i] = (uint64_t)reasons[i];
    if (status == STATUS_OK && !config->allow_removal &&
        (whole[0] || (gone > FREELY && ONE_OF_THESE * gone > rows))) {
        memcpy(report->removed, removed, sizeof removed);
        status = refuse(&j, removed, (uint64_t)rows, (uint64_t)gone, err);
    }
    pathglob_close(&j.globs);
    locator_clear(&j.locator);
    free(sums);
    return status;
}

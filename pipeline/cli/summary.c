/* summary.c: summaries of finished commands. */
#include "cli/summary.h"
#include "base/cpus.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/output.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/text.h"
#include "cli/call.h"
#include "cli/ingest_options.h"
#include "cli/quote.h"
#include "cli/signals.h"
#include "cli/sink.h"
#include "cli/sweep_plot.h"
#include "ingest/losses.h"
#include "net/runtime.h"
#include "result/parameters.h"
#include "result/preset_join.h"
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CLUSTERS_SHOWN 20
#define WORDS_SHOWN    40 /* bytes of the words of a cluster, with a NUL */

/* A growing text; out of memory, the summary is truncated. */
struct text {
    FILE *stream;
    char *bytes;
    size_t size;
    int descriptor; /* standard output, or standard error if something else owns that */
    bool colour;
};

bool summary_is_aside(const struct options *options)
{
    static const char *const names[] = {"plot", "to-list", "to-list-members"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        const char *const *file = option_at(options, names[i]);
        if (file && *file && sink_is_stdout(*file))
            return true;
    }
    return json_owns_stdout(options);
}

static bool text_open(struct text *text, const struct options *options)
{
    memset(text, 0, sizeof *text);
    progress_end(&options->call->progress);
    text->descriptor = summary_is_aside(options) ? STDERR_FILENO : STDOUT_FILENO;
    text->colour = log_wants_colour(text->descriptor);
    if (log_get_level() < LOG_INFO)
        return false;
    text->stream = open_memstream(&text->bytes, &text->size);
    options->call->summarised = true;
    return text->stream != NULL;
}

/* The first summary that could not be written. */
static struct error trouble;

static void text_show(struct text *text)
{
    struct error err = ERROR_INIT;
    if (fclose(text->stream) == 0) {
        log_status_line(NULL);
        if (write_all(text->descriptor, text->bytes, text->size, "the summary", &err) !=
                STATUS_OK &&
            err.native != EPIPE && err.native != EBADF && trouble.status == STATUS_OK)
            trouble = err;
    }
    free(text->bytes);
}

enum status summary_outcome(enum status status, struct error *err)
{
    if (trouble.status == STATUS_OK || (status != STATUS_OK && status != STATUS_PARTIAL))
        return status;
    *err = trouble;
    return err->status;
}

static const char *bold(const struct text *text)
{
    return text->colour ? "\033[1m" : "";
}

static const char *plain(const struct text *text)
{
    return text->colour ? "\033[0m" : "";
}

/* "  label      value" */
static void line(struct text *text, const char *label, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void line(struct text *text, const char *label, const char *format, ...)
{
    va_list arguments;
    fprintf(text->stream, "  %-11s ", label);
    va_start(arguments, format);
    vfprintf(text->stream, format, arguments);
    va_end(arguments);
    fputc('\n', text->stream);
}

/* The time spent in each stage. */
static void wall_line(struct text *text, const struct options *options)
{
    const struct stages *stages = &options->call->progress.stages;
    const char *sign = ": ";
    double all = 0;
    options->call->wall_told = true;
    for (unsigned i = 0; i < stages->count; i++)
        all += (double)stages->stage[i].spent * 1e-9;
    fprintf(text->stream, "  %-11s %.2f s", "wall time", all);
    for (unsigned i = 1; i <= stages->count; i++) {
        const double seconds = (double)stages->stage[i % stages->count].spent * 1e-9;
        if (seconds < 0.005)
            continue;
        fprintf(text->stream, "%s%s %.2f", sign, stages->stage[i % stages->count].name, seconds);
        sign = ", ";
    }
    fputc('\n', text->stream);
}

void summary_wall(const struct options *options)
{
    struct text text;
    if (!options->call->summarised || options->call->wall_told || !text_open(&text, options))
        return;
    wall_line(&text, options);
    text_show(&text);
}

/* --- ingest ---------------------------------------------------------------------------------- */

static const struct stage_times *stage_named(const struct ingest_report *report, const char *name)
{
    for (unsigned i = 0; i < INGEST_STAGES; i++)
        if (report->stage[i].name && strcmp(report->stage[i].name, name) == 0)
            return &report->stage[i];
    return NULL;
}

static int busy_per_cent(const struct stage_times *stage)
{
    const double whole = stage->busy + stage->starved + stage->blocked;
    return whole > 0 ? (int)lround(100 * stage->busy / whole) : 0;
}

static const char *what_to_change(const char *bound, const struct ingest_report *report,
                                  const struct options *options, char *buffer, size_t size)
{
    const struct ingest_options *ingest = (const struct ingest_options *)options;
    const struct stage_times *decode = stage_named(report, "decode");
    unsigned cpus = cpus_available();
    if (strcmp(bound, "decode") == 0) {
        if (decode && decode->threads < cpus)
            snprintf(buffer, size, "give it --threads %u", cpus);
        else if (ingest->image.decode_scale == 0)
            snprintf(buffer, size,
                     "more CPU cores make it faster, or --decode-scale 2 (other counts)");
        else
            snprintf(buffer, size, "more CPU cores make it faster");
        return buffer;
    }
    if (strcmp(bound, "walk") == 0)
        return "listing the files takes longest: a list of paths (@LIST) saves the walk";
    if (strcmp(bound, "upload") == 0)
        return "uploads to the device are the limit: try --device cpu";
    if (strcmp(bound, "histogram") == 0)
        return "the device is the limit: try another --device (clpipe devices), or fewer features";
    return "the output's disk is slow: write to a faster one";
}

/* One line on the bottleneck of the run and what to change. */
static void find_bottleneck(char *text, size_t size, const struct ingest_report *report,
                            const struct options *options)
{
    const struct stage_times *stage = &report->stage[report->bottleneck];
    char advice[160];
    text[0] = 0;
    if (!stage->name || stage->busy + stage->starved + stage->blocked <= 0)
        return;
    if (busy_per_cent(stage) < 50) {
        snprintf(text, size,
                 "no stage was busy for half the time (%s: %d %%); starting the device and "
                 "building its kernels once takes the same time for any number of images",
                 stage->name, busy_per_cent(stage));
        return;
    }
    /* Its counterpart: the idlest stage of the other side, devices or decoders. */
    const struct stage_times *other =
        stage_named(report, strcmp(stage->name, "decode") == 0 ? "histogram" : "decode");
    size_t used =
        (size_t)snprintf(text, size, "%s-bound: %u thread%s at %d %%", stage->name, stage->threads,
                         stage->threads == 1 ? "" : "s", busy_per_cent(stage));
    if (other && other != stage && used < size)
        used += (size_t)snprintf(text + used, size - used, "; %s idle %d %%", other->name,
                                 100 - busy_per_cent(other));
    if (used < size)
        snprintf(text + used, size - used, "; %s",
                 what_to_change(stage->name, report, options, advice, sizeof advice));
}

/* "corrupt 2, truncated 1", most frequent first. */
static void reasons_text(char *out, size_t size, const uint64_t by_reason[REASON_COUNT])
{
    bool shown[REASON_COUNT] = {false};
    out[0] = 0;
    shown[REASON_NONE] = shown[REASON_NOT_AN_IMAGE] = true;
    for (;;) {
        int most = -1;
        for (int i = 0; i < REASON_COUNT; i++)
            if (!shown[i] && by_reason[i] && (most < 0 || by_reason[i] > by_reason[most]))
                most = i;
        if (most < 0)
            return;
        shown[most] = true;
        text_add(out, size, ", ", "%s %s", reason_name((enum reason)most),
                 COUNT_TEXT(by_reason[most]));
    }
}

/* `clpipe COMMAND WORD REST`, quoted, bytes escaped; ./ before a word that looks like an option. */
static void command_line(struct text *text, const char *label, const char *command,
                         const char *word, const char *rest)
{
    size_t size = 4 * strlen(word) + 10;
    char *quoted = malloc(size);
    if (!quoted)
        return;
    quote_word(quoted, size, word);
    line(text, label, "%sclpipe %s %s%s%s%s", bold(text), command, word[0] == '-' ? "./" : "",
         quoted, rest, plain(text));
    free(quoted);
}

/* The next step for a new file: clustering, by the first feature if there are several. */
static void next_line(struct text *text, const struct ingest_report *report,
                      const struct options *options)
{
    const struct ingest_options *ingest = (const struct ingest_options *)options;
    const uint32_t k = clustering_usual_k(report->summary.images);
    char rest[FEATURE_NAME_MAX + 64];
    int used = snprintf(rest, sizeof rest, " -k %u", k);
    if (ingest->features.count > (ingest->add ? 0 : 1)) {
        struct feature_set set = {.count = 0};
        if (feature_set_add(&set, ingest->features.text[0],
                            (enum feature_normalize)ingest->normalize, NULL) != STATUS_OK)
            return;
        snprintf(rest + used, sizeof rest - (size_t)used, " --feature %s", set.feature[0].name);
    }
    command_line(text, "next", "cluster", options->output, rest);
}

char *skipped_text(char *buffer, size_t size, uint64_t count)
{
    snprintf(buffer, size, "%s that %s", NUMBER_OF(count, "file"),
             count == 1 ? "is not an image" : "are not images");
    return buffer;
}

uint64_t images_done(const struct ingest_report *report)
{
    return report->images_ok - report->images_unchanged - report->images_resumed;
}

static const char *stop_text(void)
{
    switch (stop_requested(signals_stop())) {
    case STOP_TIME:
        return signals_limit_is_job() ? "the Slurm job is about to end"
                                      : "the time of --max-time has passed";
    case STOP_STRICT:
        return "a file failed (--strict)";
    default:
        return "interrupted";
    }
}

static void counts_lines(struct text *text, const struct ingest_report *report, bool finished,
                         bool unchanged)
{
    char count[80], reasons[300];
    const uint64_t *by_reason = unchanged ? report->summary.by_reason : report->by_reason;
    uint64_t failed = failures_counted(by_reason);
    uint64_t skipped = by_reason[REASON_NOT_AN_IMAGE];
    if (failed) {
        reasons_text(reasons, sizeof reasons, by_reason);
        line(text, "failed", "%s%s%s   %s", text->colour ? "\033[31m" : "", COUNT_TEXT(failed),
             plain(text), reasons);
    }
    if (skipped)
        line(text, "skipped", "%s", skipped_text(count, sizeof count, skipped));
    if (finished && *losses_text(reasons, sizeof reasons, report->removed))
        line(text, "removed", "%s", reasons);
    if (report->images_resumed)
        line(text, "resumed", "%s from an earlier run", COUNT_TEXT(report->images_resumed));
    if (report->files_compared)
        line(text, "compared", "%s of the same size and time read again: %s changed",
             NUMBER_OF(report->files_compared, "file"), COUNT_TEXT(report->files_differ));
    /* The file's total is known at the end. */
    if (report->images_unchanged && !unchanged)
        line(text, "unchanged", "%s%s%s already in the file", COUNT_TEXT(report->images_unchanged),
             finished ? " of " : "", finished ? COUNT_TEXT(report->summary.images) : "");
}

void summary_stopped(struct error *err, const struct ingest_report *report)
{
    if (report->sealed)
        error_set(err, err->status, "%s; %s %s kept: run the same command again to resume",
                  stop_text(), NUMBER_OF(report->sealed, "finished file"),
                  report->sealed == 1 ? "is" : "are");
    else
        error_set(err, err->status,
                  "%s before a file was finished; run the same command again to resume",
                  stop_text());
}

static void shard_line(struct text *text, const struct list_share *share)
{
    line(text, "shard", "%llu/%llu: %s of %s, from number %llu", (unsigned long long)share->index,
         (unsigned long long)share->count, NUMBER_OF(share->last - share->first, "file"),
         COUNT_TEXT(share->list_count), (unsigned long long)share->first);
}

void summary_ingest(const struct ingest_report *report, const struct options *options,
                    enum status status, bool next)
{
    struct text text;
    if (!text_open(&text, options))
        return;
    char bottleneck[400];
    bool finished = status == STATUS_OK && !options->dry_run;
    bool unchanged = finished && report->summary.unchanged;
    uint64_t done = images_done(report);
    uint64_t shown = unchanged ? report->summary.images : report->images_ok;
    const char *images = NUMBER_OF(shown, "image");
    const char *time = DURATION_TEXT(report->seconds);
    fprintf(text.stream, "\n%s%s%s", bold(&text), images, plain(&text));
    if (unchanged) {
        fprintf(text.stream, ", nothing new; checked in %s\n", time);
    } else {
        fprintf(text.stream, " in %s", time);
        if (report->seconds > 0 && done)
            fprintf(text.stream, "   %.*f images/s, %s/s",
                    (double)done < 10 * report->seconds ? 1 : 0, (double)done / report->seconds,
                    BYTES_TEXT((uint64_t)((double)report->bytes_read / report->seconds)));
        fputc('\n', text.stream);
    }
    counts_lines(&text, report, finished, unchanged);
    if (report->share.count > 0)
        shard_line(&text, &report->share);
    if (options->dry_run) {
        line(&text, "dry run", "only headers were read and nothing was written");
        text_show(&text);
        return;
    }
    if (report->device[0])
        line(&text, "device", "%s", report->device);
    if (*runtime_tell(bottleneck, sizeof bottleneck))
        line(&text, "network", "%s", bottleneck);
    find_bottleneck(bottleneck, sizeof bottleneck, report, options);
    if (bottleneck[0] && !unchanged)
        line(&text, "speed", "%s", bottleneck);
    if (finished) {
        struct stat st;
        if (stat(options->output, &st) == 0)
            line(&text, "file", "%s (%s%s)", PATH_TEXT_IN(300, options->output),
                 BYTES_TEXT((uint64_t)st.st_size), unchanged ? ", unchanged" : "");
        if (report->ranks > 0)
            line(&text, "parts", "%u in %s.parts, which the file refers to: keep them together",
                 report->ranks, PATH_TEXT_IN(300, options->output));
        if (next)
            wall_line(&text, options);
        if (failures_counted(report->summary.by_reason))
            command_line(&text, "details", "info", options->output, " --failures");
        if (next && report->share.count <= 1)
            next_line(&text, report, options);
    }
    text_show(&text);
}

/* --- clusters -------------------------------------------------------------------------------- */

static unsigned summary_width(const struct text *text)
{
    const unsigned width = log_columns(text->descriptor, 120);
    return width < 60 ? 60 : width;
}

/* About as many as there are characters. */
static int text_columns(const char *text)
{
    int columns = 0;
    for (; *text; text++)
        columns += ((unsigned char)*text & 0xc0) != 0x80;
    return columns;
}

/* The three rows nearest to a centroid, by name if there are names. */
static void nearest_text(char *out, size_t size, const int64_t nearest[3], struct result *images,
                         size_t room)
{
    size_t used = 0;
    out[0] = 0;
    for (int i = 0; i < 3 && used < size; i++) {
        struct result_image image;
        char name[200];
        if (nearest[i] < 0)
            continue;
        if (images && (uint64_t)nearest[i] < result_images(images) &&
            result_image_at(images, (uint64_t)nearest[i], &image, NULL) == STATUS_OK)
            path_for_message(name, room < sizeof name ? room : sizeof name, image.path);
        else
            snprintf(name, sizeof name, "row %lld", (long long)nearest[i]);
        used += (size_t)snprintf(out + used, size - used, "%s%*s", name,
                                 i < 2 ? (int)room + 1 - text_columns(name) : 0, "");
    }
    while (used > 0 && used < size && out[used - 1] == ' ')
        out[--used] = 0;
}

/* Bytes for each name, with its NUL: enough for the longest, but three must fit on the line. */
static size_t nearest_room(const struct text *text, const struct clustering_report *result,
                           struct result *images, size_t taken)
{
    const struct cluster_outcome *of = &result->level[0].outcome;
    const size_t width = summary_width(text) - 32;
    size_t most = width > taken ? (width - taken) / 3 - 1 : 0, longest = 12;
    if (width <= taken || most < 12)
        most = 12;
    if (most > 80)
        most = 80;
    for (uint64_t i = 0; i < 3 * (uint64_t)of->k && longest < most; i++) {
        struct result_image image;
        int64_t row = of->nearest[i];
        if (images && row >= 0 && (uint64_t)row < result_images(images) &&
            result_image_at(images, (uint64_t)row, &image, NULL) == STATUS_OK &&
            strlen(image.path) + 1 > longest)
            longest = strlen(image.path) + 1;
    }
    return longest < most ? longest : most;
}

static void cluster_table(struct text *text, const struct clustering_report *result,
                          struct result *images)
{
    const struct cluster_outcome *of = &result->level[0].outcome;
    uint32_t *order = clusters_by_size(of->sizes, of->k);
    if (!order)
        return;
    const uint32_t shown = of->k < CLUSTERS_SHOWN ? of->k : CLUSTERS_SHOWN;
    char words[CLUSTERS_SHOWN][WORDS_SHOWN];
    int width = 0; /* of the words */
    for (uint32_t i = 0; i < shown; i++) {
        struct word best[WORDS_MOST];
        unsigned count = words_of_cluster(best, result->words, order[i]);
        char all[500];
        while (strlen(words_text(all, sizeof all, best, count)) >= WORDS_SHOWN && count > 1)
            count--;
        path_for_message(words[i], WORDS_SHOWN, all);
        const int columns = *all ? (int)max_u32((uint32_t)text_columns(words[i]), 18) + 2 : 0;
        width = columns > width ? columns : width;
    }
    size_t room = nearest_room(text, result, images, (size_t)width);
    fprintf(text->stream, "\n  %scluster  %10s   share   %-*snearest to its centre%s\n", bold(text),
            images ? "images" : "rows", width, width ? "what sets it apart" : "", plain(text));
    for (uint32_t i = 0; i < shown; i++) {
        char nearest[700];
        uint32_t cluster = order[i];
        nearest_text(nearest, sizeof nearest, of->nearest + 3 * (size_t)cluster, images, room);
        fprintf(text->stream, "  %7u  %10s  %4.1f %%   %s%*s%s\n", cluster,
                COUNT_TEXT(of->sizes[cluster]),
                of->rows ? 100.0 * (double)of->sizes[cluster] / (double)of->rows : 0, words[i],
                width - text_columns(words[i]), "", nearest);
    }
    if (of->k > CLUSTERS_SHOWN)
        fprintf(text->stream, "  and %u more\n", of->k - CLUSTERS_SHOWN);
    fputc('\n', text->stream);
    free(order);
}

static const char *restarts_text(char *buffer, size_t size, uint32_t restarts)
{
    buffer[0] = 0;
    if (restarts > 1)
        snprintf(buffer, size, " (best of %u runs)", restarts);
    return buffer;
}

/* The second best k of a sweep by its measure; 0: there is none. */
static uint32_t next_best(const struct clustering_report *result, double *measure)
{
    const struct cluster_outcome *of = &result->level[0].outcome;
    const struct cluster_sweep *sweep = &result->sweep;
    uint32_t best = 0;
    for (uint32_t i = 0; i < sweep->count; i++) {
        const double silhouette = cluster_sweep_score(sweep, i);
        if (sweep->values[i].k == of->k || isnan(silhouette) || (best && silhouette <= *measure))
            continue;
        best = sweep->values[i].k;
        *measure = silhouette;
    }
    return best;
}

/* If one cluster holds most of the images, the others say little. */
static void dominance_line(struct text *text, const struct clustering_report *result)
{
    const struct cluster_outcome *of = &result->level[0].outcome;
    uint32_t largest = 0;
    double measure = 0;
    for (uint32_t i = 1; i < of->k; i++)
        if (of->sizes[i] > of->sizes[largest])
            largest = i;
    /* One of two clusters always holds half. */
    if (of->k < 2 || 2 * of->sizes[largest] <= of->rows ||
        (of->k == 2 && 4 * of->sizes[largest] <= 3 * of->rows))
        return;
    const double share = 100.0 * (double)of->sizes[largest] / (double)of->rows;
    const uint32_t other = result->sweep.values ? next_best(result, &measure) : 0;
    if (other)
        line(text, "note",
             "cluster %u holds %.0f %% of the %s; the next best k is %u (%s %.4f): -k %u", largest,
             share, result->images ? "images" : "rows", other,
             strcmp(result->sweep.measure, "silhouette") == 0 ? "silhouette"
                                                              : "simplified silhouette",
             measure, other);
    else
        line(text, "note",
             "cluster %u holds %.0f %% of the %s: a larger k or another feature may separate more",
             largest, share, result->images ? "images" : "rows");
}

/* Options to try if the result is not satisfactory. */
static void other_line(struct text *text, const struct clustering_report *result)
{
    const struct cluster_outcome *of = &result->level[0].outcome;
    const uint64_t half = of->rows / 2;
    const uint64_t most = half < 2 ? 2 : half < 20 ? half : 20;
    char more[40] = "", range[60] = "";
    if (2 * (uint64_t)of->k <= half)
        snprintf(more, sizeof more, "-k %u (more clusters), ", 2 * of->k);
    if (!result->sweep.values && most > 2)
        snprintf(range, sizeof range, "-k 2:%u (tries each k), ", (unsigned)most);
    line(text, "or", "the same command with %s%s%s--feature %s --add (by colours)", more, range,
         more[0] || range[0] ? "or " : "",
         strncmp(result->clusters.feature, "hsv", 3) == 0 ? "rgb" : "hsv");
}

/* Suggests other presets; the numbers are from docs/features.md. */
static void semantic_line(struct text *text, const struct clustering_report *result)
{
    const char *json = result->images ? result->images->preset : NULL;
    char name[32] = "";
    if (json)
        parameters_text(name, sizeof name, json, "name");
    if (*name && strcmp(name, "semantic") != 0)
        line(text, "",
             "--preset semantic --add (by a network's output: mAP .74 on 12 kinds of photographs, "
             "where fast has .35 and best .35)");
}

void summary_clusters(const struct clustering_report *result, const struct options *options)
{
    const struct cluster_outcome *of = &result->level[0].outcome;
    const struct result_clusters *clusters = &result->clusters;
    struct result *images = result->images;
    struct text text;
    if (!text_open(&text, options))
        return;
    char time[32], feature[2 * FEATURE_NAME_MAX];
    fprintf(text.stream, "\n%s%s%s of %s by %s (%s)\n", bold(&text), NUMBER_OF(of->k, "cluster"),
            plain(&text), NUMBER_OF(of->rows, images ? "image" : "row"),
            preset_join_title(feature, sizeof feature, images, clusters->feature),
            clusters->metric);
    if (result->mini_batch && of->iterations)
        line(&text, "k-means", "%s of %u rows%s, inertia %.7g", NUMBER_OF(of->iterations, "batch"),
             result->mini_batch, of->converged ? ", converged" : "", of->inertia);
    else if (of->iterations)
        line(&text, "k-means", "%s%s, %s, inertia %.7g", NUMBER_OF(of->iterations, "iteration"),
             restarts_text(time, sizeof time, result->n_init),
             of->converged ? "converged" : "not converged (raise --max-iter)", of->inertia);
    else
        line(&text, "labels", "from given centroids, inertia %.7g", of->inertia);
    for (unsigned i = 1; i < result->level_count; i++)
        if (of->iterations == 0)
            line(&text, i == 1 ? "levels" : "", "%s in /clusters/%s: labels of the parents",
                 NUMBER_OF(result->level[i].outcome.k, "cluster"), result->level_name[i]);
        else
            line(&text, i == 1 ? "levels" : "", "%s in /clusters/%s: %s, %s",
                 NUMBER_OF(result->level[i].outcome.k, "cluster"), result->level_name[i],
                 NUMBER_OF(result->level[i].outcome.iterations, "iteration"),
                 result->level[i].outcome.converged ? "converged"
                                                    : "not converged (raise --max-iter)");
    if (result->sweep.values)
        line(&text, "why", "k = %u: %s", of->k, result->sweep.reason);
    if (clusters->folders > 0)
        line(&text, "folders", "%u: purity %.3f, NMI %.3f, ARI %.3f", clusters->folders,
             clusters->agreement.purity, clusters->agreement.nmi, clusters->agreement.ari);
    if (result->found)
        line(&text, "up to date", "the file already holds this clustering");
    else
        line(&text, "time", "%s on %s", DURATION_TEXT(result->seconds), result->device);
    if (result->sweep.values) {
        const struct plot_style style = {summary_width(&text), locale_is_utf8(), text.colour};
        fputc('\n', text.stream);
        sweep_plot_text(text.stream, &result->sweep, of->k, &style);
    }
    cluster_table(&text, result, images);
    dominance_line(&text, result);
    line(&text, "stored", "/clusters/%s in %s", clusters->name, PATH_TEXT_IN(300, result->output));
    if (strcmp(options->command->name, "run") != 0)
        wall_line(&text, options);
    char rest[FEATURE_NAME_MAX + 40];
    snprintf(rest, sizeof rest, " --name %s --what %s", clusters->name,
             images && result->in_input ? "tree --to by-cluster" : "labels");
    command_line(&text, "next", "export", result->output, rest);
    if (strcmp(options->command->name, "run") == 0) {
        other_line(&text, result);
        semantic_line(&text, result);
    }
    text_show(&text);
}

void summary_line(const struct options *options, const char *format, ...)
{
    struct text text;
    va_list arguments;
    if (!text_open(&text, options))
        return;
    va_start(arguments, format);
    vfprintf(text.stream, format, arguments);
    va_end(arguments);
    fputc('\n', text.stream);
    text_show(&text);
}

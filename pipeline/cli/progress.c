/* progress.c: the live line and its plain substitute.
 *
 * Rates are smoothed over about RATE_SECONDS, so that the time left reflects the disk and not the
 * first second; the time left is estimated from bytes, since decoding time depends on them more
 * than on the number of files. */
#include "cli/progress.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/output.h"
#include "base/parse.h"
#include "cli/call.h"
#include "cli/signals.h"
#include "ocl/ocl.h"
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RATE_SECONDS  8.0
#define PLAIN_SECONDS 10.0
#define LIVE_SECONDS  0.1
#define PARTS         7
#define BAR_CELLS     24u

/* Kernels were compiled, but none has finished yet: some drivers continue compiling when a kernel is
 * first launched. */
static atomic_bool compiling;
static atomic_bool live; /* a live line is shown */

static const char compiling_text[] = "compiling kernels (first run on this device)";

/* Called on the thread that compiles. */
static void begin_compiling(const char *name)
{
    (void)name;
    if (!atomic_exchange(&compiling, true) && atomic_load(&live))
        log_status_line(compiling_text);
}

/* Maps a step and the phase that follows it to one name of a stage. */
static const char *stage_of(const char *text)
{
    if (strncmp(text, "k-means: ", 9) == 0)
        text += 9;
    return strcmp(text, "rows read") == 0                                      ? "reading rows"
           : strcmp(text, "rows labelled") == 0                                ? "labelling rows"
           : strcmp(text, "looking for the nearest centroid of each row") == 0 ? "labelling rows"
                                                                               : text;
}

/* The place of a stage, the first if there are too many. */
static unsigned place_of(struct stages *stages, const char *name)
{
    unsigned at = 1;
    while (at < stages->count && strcmp(stages->stage[at].name, name) != 0)
        at++;
    if (at == STAGES_MOST)
        return 0;
    if (at == stages->count)
        snprintf(stages->stage[stages->count++].name, sizeof stages->stage->name, "%s", name);
    return at;
}

void progress_stage(struct progress *progress, const char *name)
{
    struct stages *stages = &progress->stages;
    const int64_t now = clock_now(), compiled = ocl_program_compiled();
    if (stages->count == 0)
        *stages = (struct stages){
            .stage = {{.name = "other"}}, .count = 1, .since = clock_process_start()};
    const int64_t spent = compiled - stages->compiled;
    if (spent > 0)
        stages->stage[place_of(stages, "compiling kernels")].spent += spent;
    stages->stage[stages->at].spent += now - stages->since - spent;
    stages->since = now;
    stages->compiled = compiled;
    stages->at = name ? place_of(stages, stage_of(name)) : 0;
}

void progress_init(struct progress *progress, const struct options *options)
{
    const struct stages stages = progress->stages;
    *progress = (struct progress){.stages = stages};
    progress->forced = options->progress == PROGRESS_ALWAYS;
    bool wanted = progress->forced || (options->progress == PROGRESS_AUTO && !options->quiet);
    progress->live = wanted && log_is_terminal();
    progress->plain = wanted && !progress->live;
    progress->phase = "";
    const uint64_t *most = option_at(options, "max-iter");
    progress->max_iter = most ? (uint32_t)*most : 0;
    atomic_store(&live, progress->live);
    ocl_program_observe(begin_compiling);
}

/* Shows the parts that fit, in order; those with the highest rank are dropped first. */
struct part {
    char text[96];
    unsigned rank;
};

static void join_parts(char *line, size_t size, const struct part *part, unsigned count,
                       unsigned columns)
{
    unsigned worst = PARTS;
    for (;;) {
        size_t used = 0;
        for (unsigned i = 0; i < count; i++) {
            if (!part[i].text[0] || part[i].rank > worst)
                continue;
            size_t room = used < size ? size - used : 0;
            used += (size_t)snprintf(room ? line + used : NULL, room, "%s%s", used ? "  " : "",
                                     part[i].text);
        }
        if (used < columns && used < size)
            return;
        if (worst == 0) {
            line[columns > 0 && columns - 1 < size ? columns - 1 : size - 1] = 0;
            return;
        }
        worst--;
    }
}

static void draw_bar(char text[BAR_CELLS + 3], double fraction)
{
    unsigned full = (unsigned)(fraction * BAR_CELLS + 0.5);
    full = full > BAR_CELLS ? BAR_CELLS : full;
    text[0] = '[';
    memset(text + 1, '=', full);
    memset(text + 1 + full, ' ', BAR_CELLS - full);
    if (full > 0 && full < BAR_CELLS)
        text[full] = '>';
    text[BAR_CELLS + 1] = ']';
    text[BAR_CELLS + 2] = 0;
}

static void plain_line(const struct progress *progress, const char *text)
{
    if (!progress->forced) {
        log_message(LOG_INFO, "%s", text);
        return;
    }
    /* With -q the log would drop it. */
    char line[600];
    int length = snprintf(line, sizeof line, "%s\n", text);
    if (length > 0)
        write_all(STDERR_FILENO, line, (size_t)length, "standard error", NULL);
}

/* The last part is reserved for information that belongs on every line. */
static void show_parts(const struct progress *progress, struct part part[PARTS])
{
    char line[600];
    const unsigned count = PARTS;
    part[PARTS - 1].rank = 1;
    if (atomic_load(&compiling))
        snprintf(part[PARTS - 1].text, sizeof part->text, "%s", compiling_text);
    join_parts(line, sizeof line, part, count,
               progress->live ? log_columns(STDERR_FILENO, 80) : sizeof line);
    if (progress->live)
        log_status_line(line);
    else
        plain_line(progress, line);
}

/* True if a plain line is due: after some time, or after a tenth of the work. */
static bool plain_due(struct progress *progress, double seconds, double fraction)
{
    uint64_t tenth = (uint64_t)(fraction * 10);
    double pause = progress->forced ? 1 : PLAIN_SECONDS;
    bool due = seconds - progress->shown_seconds >= pause ||
               (tenth > progress->shown_tenth && seconds - progress->shown_seconds >= 1);
    if (due) {
        progress->shown_seconds = seconds;
        progress->shown_tenth = tenth;
    }
    return due;
}

static void update_rates(struct progress *progress, const struct ingest_progress *report)
{
    double passed = report->seconds - progress->last_seconds;
    if (passed < 0.05)
        return;
    double items = (double)(report->done - progress->last_items) / passed;
    double bytes = (double)(report->bytes_done - progress->last_bytes) / passed;
    /* While the phase is younger than the window, this is its plain mean. */
    double weight = 1 - exp(-passed / fmin(RATE_SECONDS, fmax(report->seconds, 0.05)));
    if (!progress->has_rate)
        weight = 1;
    progress->items_rate += weight * (items - progress->items_rate);
    progress->bytes_rate += weight * (bytes - progress->bytes_rate);
    progress->has_rate = true;
    progress->last_seconds = report->seconds;
    progress->last_items = report->done;
    progress->last_bytes = report->bytes_done;
}

static double seconds_left(const struct progress *progress, const struct ingest_progress *report)
{
    if (report->bytes_total && progress->bytes_rate > 0)
        return (double)(report->bytes_total - report->bytes_done) / progress->bytes_rate;
    if (report->total && progress->items_rate > 0)
        return (double)(report->total - report->done) / progress->items_rate;
    return -1;
}

void progress_ingest(void *context, const struct ingest_progress *report)
{
    struct progress *progress = context;
    progress_stage(progress, report->phase);
    if (!progress->live && !progress->plain)
        return;
    if (strcmp(progress->phase, report->phase) != 0) {
        progress->phase = report->phase;
        progress->last_seconds = progress->shown_seconds = 0;
        progress->last_items = progress->last_bytes = 0;
        progress->shown_tenth = 0;
        progress->has_rate = false;
    }
    update_rates(progress, report);
    double fraction = 0;
    if (report->bytes_total)
        fraction = (double)report->bytes_done / (double)report->bytes_total;
    else if (report->total)
        fraction = (double)report->done / (double)report->total;
    if (progress->plain && !plain_due(progress, report->seconds, fraction))
        return;

    char left[32];
    const char *done = COUNT_TEXT(report->done);
    const char *total = COUNT_TEXT(report->total);
    struct part part[PARTS] = {{{0}, 0}};
    if (!report->total) {
        /* While walking, the total is unknown. */
        snprintf(part[0].text, sizeof part[0].text, "%s: %s%s", report->phase, done,
                 strcmp(report->phase, "walking") == 0 ? " files" : "");
    } else {
        if (progress->live)
            draw_bar(part[0].text, fraction);
        else
            snprintf(part[0].text, sizeof part[0].text, "%3.0f %%", fraction * 100);
        part[0].rank = 4;
        snprintf(part[1].text, sizeof part[1].text, "%s/%s %s", done, total,
                 strcmp(report->phase, "images") == 0 ? "files" : report->phase);
        if (progress->has_rate && report->bytes_total) {
            snprintf(part[2].text, sizeof part[2].text, "%.*f images/s",
                     progress->items_rate < 10 ? 1 : 0, progress->items_rate);
            part[2].rank = 3;
            snprintf(part[3].text, sizeof part[3].text, "%s/s",
                     BYTES_TEXT((uint64_t)progress->bytes_rate));
            part[3].rank = 5;
        }
        double eta = seconds_left(progress, report);
        if (progress->has_rate && eta >= 0 && report->done < report->total) {
            if (eta < 100)
                snprintf(left, sizeof left, "%.0f s", ceil(eta));
            else
                format_duration(left, sizeof left, eta);
            snprintf(part[4].text, sizeof part[4].text, "%s left", left);
            part[4].rank = 1;
        }
        if (report->failed) {
            snprintf(part[5].text, sizeof part[5].text, "%s failed", COUNT_TEXT(report->failed));
            part[5].rank = 2;
        }
    }
    if (report->total && report->done > 0 && report->bytes_total)
        atomic_store(&compiling, false);
    show_parts(progress, part);
}

void progress_phase(void *context, const char *phase, uint64_t done, uint64_t total)
{
    struct progress *progress = context;
    progress_stage(progress, phase);
    if (!progress->live && !progress->plain)
        return;
    const int64_t now = clock_now();
    if (strcmp(progress->phase, phase) != 0)
        progress->step_start = now;
    else if (progress->live && now - progress->phase_drawn < (int64_t)(LIVE_SECONDS * 1e9))
        return;
    progress->phase_drawn = now;
    struct ingest_progress report = {.phase = phase,
                                     .done = done,
                                     .total = total,
                                     .seconds = (double)(now - progress->step_start) * 1e-9};
    progress_ingest(progress, &report);
}

void progress_cluster(void *context, uint32_t iteration, double inertia, uint64_t moved,
                      double pruned, double seconds)
{
    struct progress *progress = context;
    progress_stage(progress, "k-means");
    if (!progress->live && !progress->plain)
        return;
    if (progress->phase[0]) { /* the iterations have a step of their own */
        progress->phase = "";
        progress->shown_seconds = 0;
        progress->step_start = clock_now();
    }
    double passed = (double)(clock_now() - progress->step_start) * 1e-9;
    if (progress->plain && !plain_due(progress, passed, 0))
        return;
    /* Iterations may be too short to see. */
    if (progress->live && iteration > 1 && passed - progress->shown_seconds < LIVE_SECONDS)
        return;
    progress->shown_seconds = passed;
    struct part part[PARTS] = {{{0}, 0}};
    snprintf(part[0].text, sizeof part[0].text, "k-means: %siteration %u of at most %u",
             progress->sweep, iteration, progress->max_iter);
    snprintf(part[1].text, sizeof part[1].text, "%s moved", COUNT_TEXT(moved));
    part[1].rank = 1;
    snprintf(part[2].text, sizeof part[2].text, "inertia %.6g", inertia);
    part[2].rank = 3;
    snprintf(part[3].text, sizeof part[3].text, "%.3g s each", seconds);
    part[3].rank = 2;
    /* Most runs end before the last iteration. */
    const double most = (double)(progress->max_iter - iteration) * seconds;
    snprintf(part[4].text, sizeof part[4].text, "at most %s left", DURATION_TEXT(most));
    part[4].rank = 4;
    snprintf(part[5].text, sizeof part[5].text, "%.0f %% pruned", pruned * 100);
    part[5].rank = 5;
    atomic_store(&compiling, false);
    show_parts(progress, part);
}

void progress_sweep(void *context, uint32_t k, uint32_t done, uint32_t count)
{
    struct progress *progress = context;
    snprintf(progress->sweep, sizeof progress->sweep, "k = %u (%u of %u), ", k, done + 1, count);
    /* Each k may take too little time for a line about its iterations. */
    const int64_t now = clock_now();
    const double pause = progress->forced ? 1 : PLAIN_SECONDS;
    if (done == 0)
        progress->sweep_shown = now;
    if (!progress->plain || (double)(now - progress->sweep_shown) * 1e-9 < pause)
        return;
    char line[80];
    snprintf(line, sizeof line, "k-means: k = %u, %u of %u", k, done + 1, count);
    plain_line(progress, line);
    progress->sweep_shown = now;
}

void progress_step(void *context, const char *text)
{
    struct progress *progress = context;
    progress_stage(progress, text);
    progress->phase = "";
    progress->shown_seconds = 0;
    progress->step_start = clock_now();
    if (progress->plain && progress->forced)
        plain_line(progress, text);
    if (!progress->live)
        return;
    struct part part[PARTS] = {{{0}, 0}};
    snprintf(part[0].text, sizeof part[0].text, "%s", text);
    show_parts(progress, part);
}

void progress_end(struct progress *progress)
{
    atomic_store(&live, false);
    if (progress->live)
        log_status_line(NULL);
    progress->live = progress->plain = false;
    progress_stage(progress, NULL);
}

void call_start(const struct options *options, double seconds)
{
    signals_install(seconds);
    progress_init(&options->call->progress, options);
    progress_stage(&options->call->progress, "opening");
}

struct watch options_watch(const struct options *options)
{
    return (struct watch){signals_stop(), progress_phase, &options->call->progress};
}

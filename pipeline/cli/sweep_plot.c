/* sweep_plot.c: one panel for each measure. In a terminal, the measure by which k was chosen has
 * several lines, the others one; each panel is scaled to its own range of values. */
#include "cli/sweep_plot.h"
#include "base/path.h"
#include "cli/sink.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define AT(field) offsetof(struct cluster_sweep_value, field)

enum better { BETTER_NONE, BETTER_HIGHER, BETTER_LOWER };

static const struct measure {
    const char *key, *title; /* key: as in the file */
    size_t offset;
    enum better better;
    bool of_folders;
} measures[] = {
    {"silhouette", "silhouette", AT(measures.silhouette), BETTER_HIGHER, false},
    {"simplified_silhouette", "simplified silh.", AT(measures.simplified_silhouette), BETTER_HIGHER,
     false},
    {"davies_bouldin", "Davies-Bouldin", AT(measures.davies_bouldin), BETTER_LOWER, false},
    {"calinski_harabasz", "Calinski-Harabasz", AT(measures.calinski_harabasz), BETTER_HIGHER,
     false},
    {"inertia", "inertia", AT(inertia), BETTER_NONE, false},
    {"nmi", "folders (NMI)", AT(agreement.nmi), BETTER_HIGHER, true},
};
#define MEASURES (sizeof measures / sizeof measures[0])

static double value_of(const struct cluster_sweep *sweep, const struct measure *measure, uint32_t i)
{
    double value;
    memcpy(&value, (const char *)&sweep->values[i] + measure->offset, sizeof value);
    return value;
}

/* Least and largest value, and the best one's index; false if the measure is defined nowhere. */
struct range {
    double least, most;
    uint32_t best;
};

static bool range_of(struct range *range, const struct cluster_sweep *sweep,
                     const struct measure *measure)
{
    bool found = false;
    if (measure->of_folders && !sweep->has_classes)
        return false;
    for (uint32_t i = 0; i < sweep->count; i++) {
        const double value = value_of(sweep, measure, i);
        if (!isfinite(value))
            continue;
        if (!found)
            *range = (struct range){value, value, i};
        const double best = value_of(sweep, measure, range->best);
        if (measure->better == BETTER_LOWER ? value < best : value > best)
            range->best = i;
        range->least = fmin(range->least, value);
        range->most = fmax(range->most, value);
        found = true;
    }
    return found;
}

/* The position of a value in its range, from 0 to 1. */
static double height_of(const struct range *range, double value)
{
    return range->most > range->least ? (value - range->least) / (range->most - range->least) : 1;
}

bool locale_is_utf8(void)
{
    static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *value = getenv(variables[i]);
        if (value && value[0])
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

/* --- the terminal ---------------------------------------------------------------------------- */

#define LABEL_COLUMNS 20 /* before the cells */
#define RIGHT_COLUMNS 26 /* after them */
#define TALL_LINES    4
#define CELLS_WIDEST  3

/* Selects the values to draw: as many as fit, including the suggested one. */
struct plot {
    const struct cluster_sweep *sweep;
    const struct plot_style *style;
    FILE *stream;
    uint32_t count, suggested; /* values drawn; index of the suggested k among all */
    unsigned wide;             /* columns of a value */
};

static uint32_t drawn_value(const struct plot *plot, uint32_t column)
{
    const uint64_t all = plot->sweep->count;
    const uint32_t first = (uint32_t)(column * all / plot->count);
    const uint32_t next = (uint32_t)((column + 1) * all / plot->count);
    return plot->suggested >= first && plot->suggested < next ? plot->suggested : first;
}

/* One cell, filled up to `level` of plot_levels. */
static unsigned plot_levels(const struct plot *plot)
{
    return plot->style->blocks ? 8 : 3;
}

static const char *cell(const struct plot *plot, unsigned level)
{
    static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const letters[] = {" ", ".", ":", "#"};
    return plot->style->blocks ? blocks[level] : letters[level];
}

/* Line `line` of `lines`, counted from the bottom. */
static void draw_cells(const struct plot *plot, const struct measure *measure,
                       const struct range *range, unsigned line, unsigned lines)
{
    const unsigned levels = plot_levels(plot);
    for (uint32_t column = 0; column < plot->count; column++) {
        const uint32_t i = drawn_value(plot, column);
        const double value = value_of(plot->sweep, measure, i);
        unsigned level = 0;
        /* Even the least value has a mark: an empty cell means that there is no value. */
        if (isfinite(value))
            level = 1 + (unsigned)lround(height_of(range, value) * (lines * levels - 1));
        level = level > line * levels ? level - line * levels : 0;
        const bool marked = plot->style->colour && i == plot->suggested;
        fputs(marked ? "\033[1;32m" : "", plot->stream);
        for (unsigned w = 0; w < plot->wide; w++)
            fputs(w + 1 < plot->wide || plot->wide == 1
                      ? cell(plot, level < levels ? level : levels)
                      : " ",
                  plot->stream);
        fputs(marked ? "\033[0m" : "", plot->stream);
    }
}

static void draw_tall(const struct plot *plot, const struct measure *measure,
                      const struct range *range)
{
    for (unsigned line = TALL_LINES; line-- > 0;) {
        fprintf(plot->stream, "  %-*s", LABEL_COLUMNS - 2,
                line == TALL_LINES - 1 ? measure->title : "");
        draw_cells(plot, measure, range, line, TALL_LINES);
        if (line == TALL_LINES - 1)
            fprintf(plot->stream, "  %.4g", range->most);
        else if (line == 0)
            fprintf(plot->stream, "  %.4g", range->least);
        fputc('\n', plot->stream);
    }
}

static void draw_flat(const struct plot *plot, const struct measure *measure,
                      const struct range *range)
{
    fprintf(plot->stream, "  %-*s", LABEL_COLUMNS - 2, measure->title);
    draw_cells(plot, measure, range, 0, 1);
    if (measure->better == BETTER_NONE)
        fprintf(plot->stream, "  %.4g to %.4g\n", range->most, range->least);
    else
        fprintf(plot->stream, "  %s %.4g at %u\n",
                measure->better == BETTER_LOWER ? "lowest" : "highest",
                value_of(plot->sweep, measure, range->best), plot->sweep->values[range->best].k);
}

/* The first, the suggested and the last k under their values, as far as they fit. */
static void draw_axis(const struct plot *plot)
{
    char line[512];
    size_t length = (size_t)plot->count * plot->wide, end = 0;
    if (length > sizeof line - 16)
        length = sizeof line - 16;
    memset(line, ' ', sizeof line);
    for (uint32_t column = 0; column < plot->count; column++) {
        const uint32_t i = drawn_value(plot, column);
        const size_t at = (size_t)column * plot->wide;
        char text[16];
        const size_t digits = (size_t)snprintf(text, sizeof text, "%u", plot->sweep->values[i].k);
        const bool last = column + 1 == plot->count;
        if ((column > 0 && !last && i != plot->suggested) || at >= length ||
            (end > 0 && at < end + 1))
            continue;
        memcpy(line + at, text, digits);
        end = at + digits;
    }
    fprintf(plot->stream, "  %-*s%.*s\n", LABEL_COLUMNS - 2, "k", (int)end, line);
}

void sweep_plot_text(FILE *stream, const struct cluster_sweep *sweep, uint32_t k,
                     const struct plot_style *style)
{
    struct plot plot = {.sweep = sweep, .style = style, .stream = stream, .count = sweep->count};
    struct range range;
    const unsigned room = style->width > LABEL_COLUMNS + RIGHT_COLUMNS + 16
                              ? style->width - LABEL_COLUMNS - RIGHT_COLUMNS
                              : 16;
    while (plot.suggested + 1 < sweep->count && sweep->values[plot.suggested].k != k)
        plot.suggested++;
    if (plot.count > room)
        plot.count = room;
    plot.wide = room / plot.count < CELLS_WIDEST ? room / plot.count : CELLS_WIDEST;
    for (size_t m = 0; m < MEASURES; m++)
        if (strcmp(measures[m].key, sweep->measure) == 0 && range_of(&range, sweep, &measures[m]))
            draw_tall(&plot, &measures[m], &range);
    draw_axis(&plot);
    for (size_t m = 0; m < MEASURES; m++)
        if (strcmp(measures[m].key, sweep->measure) != 0 && range_of(&range, sweep, &measures[m]))
            draw_flat(&plot, &measures[m], &range);
}

/* --- SVG ------------------------------------------------------------------------------------- */

#define SVG_WIDTH  720
#define SVG_LEFT   190
#define SVG_RIGHT  700
#define SVG_PANEL  96 /* from one panel to the next */
#define SVG_HEIGHT 60 /* of a panel's curve */
#define SVG_TOP    64

enum status sweep_plot_check(const struct options *options, const char *plot,
                             const struct number_range *k, struct error *err)
{
    static const char *const svg[] = {"<svg", "<?xml", NULL};
    if (!plot)
        return STATUS_OK;
    if (k->last == k->first)
        return misuse(err, "--plot requires several values of k: give -k A:B");
    if (sink_is_stdout(plot) && json_owns_stdout(options))
        return misuse(err, "the plot and --json - cannot both use standard output: name a file");
    if ((options->json && strcmp(options->json, plot) == 0) ||
        (options->profile && strcmp(options->profile, plot) == 0) ||
        (options->output && strcmp(options->output, plot) == 0))
        return misuse(err, "--plot and another option both name %s", PATH_TEXT(plot));
    return sink_is_stdout(plot) ? STATUS_OK : sink_check("--plot", plot, svg, "an SVG", err);
}

static double svg_x(const struct cluster_sweep *sweep, uint32_t i)
{
    const double first = sweep->values[0].k, last = sweep->values[sweep->count - 1].k;
    const double part = last > first ? (sweep->values[i].k - first) / (last - first) : 0;
    return SVG_LEFT + part * (SVG_RIGHT - SVG_LEFT);
}

static void svg_curve(struct sink *sink, const struct cluster_sweep *sweep,
                      const struct measure *measure, const struct range *range, unsigned top,
                      uint32_t suggested)
{
    bool open = false;
    for (uint32_t i = 0; i < sweep->count; i++) {
        const double value = value_of(sweep, measure, i);
        if (isfinite(value)) {
            sink_printf(sink, "%s%.1f,%.1f", open ? " " : "<polyline points=\"", svg_x(sweep, i),
                        top + SVG_HEIGHT * (1 - height_of(range, value)));
            open = true;
        } else if (open) {
            sink_text(sink, "\"/>\n");
            open = false;
        }
    }
    sink_text(sink, open ? "\"/>\n" : "");
    for (uint32_t i = 0; i < sweep->count; i++) {
        const double value = value_of(sweep, measure, i);
        if (isfinite(value))
            sink_printf(sink,
                        "<circle%s cx=\"%.1f\" cy=\"%.1f\" r=\"%s\"><title>k = %u: %.9g"
                        "</title></circle>\n",
                        i == suggested ? " class=\"chosen\"" : "", svg_x(sweep, i),
                        top + SVG_HEIGHT * (1 - height_of(range, value)),
                        i == suggested ? "4.5" : "2.5", sweep->values[i].k, value);
    }
}

static void svg_panel(struct sink *sink, const struct cluster_sweep *sweep,
                      const struct measure *measure, const struct range *range, unsigned top,
                      uint32_t suggested)
{
    static const char *const words[] = {"", "higher is better", "lower is better"};
    sink_printf(sink, "<text x=\"16\" y=\"%u\">%s</text>\n", top + 26, measure->title);
    if (measure->better != BETTER_NONE)
        sink_printf(sink, "<text class=\"small\" x=\"16\" y=\"%u\">%s</text>\n", top + 43,
                    words[measure->better]);
    sink_printf(sink, "<path d=\"M%d %uH%dM%d %uH%d\"/>\n", SVG_LEFT, top, SVG_RIGHT, SVG_LEFT,
                top + SVG_HEIGHT, SVG_RIGHT);
    sink_printf(sink, "<text class=\"small end\" x=\"%d\" y=\"%u\">%.4g</text>\n", SVG_LEFT - 10,
                top + 4, range->most);
    sink_printf(sink, "<text class=\"small end\" x=\"%d\" y=\"%u\">%.4g</text>\n", SVG_LEFT - 10,
                top + SVG_HEIGHT + 4, range->least);
    svg_curve(sink, sweep, measure, range, top, suggested);
}

/* The first, the last and up to ten values of k between them, and the suggested one. */
static void svg_axis(struct sink *sink, const struct cluster_sweep *sweep, unsigned top,
                     uint32_t suggested)
{
    const uint32_t every = (sweep->count + 10) / 11;
    for (uint32_t i = 0; i < sweep->count; i++) {
        /* Not if it would overlap the label of the suggested k. */
        const bool near = fabs(svg_x(sweep, i) - svg_x(sweep, suggested)) < 30;
        if (i == suggested || (i % every == 0 && !near))
            sink_printf(sink, "<text class=\"small middle%s\" x=\"%.1f\" y=\"%u\">%u</text>\n",
                        i == suggested ? " bold" : "", svg_x(sweep, i), top, sweep->values[i].k);
    }
    sink_printf(sink, "<text x=\"16\" y=\"%u\">k</text>\n", top);
}

static void svg_begin(struct sink *sink, const struct cluster_sweep *sweep, unsigned height)
{
    sink_printf(sink,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
                "viewBox=\"0 0 %u %u\" role=\"img\">\n"
                "<title>Measures of k-means for k from %u to %u</title>\n",
                SVG_WIDTH, height, SVG_WIDTH, height, sweep->values[0].k,
                sweep->values[sweep->count - 1].k);
    sink_text(sink, "<style>text{font:14px sans-serif;fill:#222}.small{font-size:12px}"
                    ".end{text-anchor:end}.middle{text-anchor:middle}.bold{font-weight:bold}"
                    "path{stroke:#ccc;fill:none}polyline{stroke:#2166ac;stroke-width:1.5;fill:none}"
                    "circle{fill:#2166ac}.chosen{fill:#b2182b}"
                    "line{stroke:#b2182b;stroke-dasharray:4 4}"
                    "</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
}

enum status sweep_plot_svg(const char *path, const struct cluster_sweep *sweep, uint32_t k,
                           struct error *err)
{
    struct sink sink = {0};
    struct range range;
    unsigned top = SVG_TOP, panels = 0;
    uint32_t suggested = 0;
    while (suggested + 1 < sweep->count && sweep->values[suggested].k != k)
        suggested++;
    for (size_t m = 0; m < MEASURES; m++)
        panels += range_of(&range, sweep, &measures[m]);
    const unsigned height = SVG_TOP + panels * SVG_PANEL + 10;
    enum status status = sink_open(&sink, path, err);
    if (status != STATUS_OK)
        return status;
    svg_begin(&sink, sweep, height);
    sink_printf(&sink, "<text class=\"bold\" x=\"16\" y=\"28\">k = %u</text>\n", k);
    sink_printf(&sink, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%u\"/>\n",
                svg_x(sweep, suggested), SVG_TOP - 12, svg_x(sweep, suggested),
                height - SVG_PANEL + SVG_HEIGHT - 6);
    for (size_t m = 0; m < MEASURES; m++)
        if (range_of(&range, sweep, &measures[m])) {
            svg_panel(&sink, sweep, &measures[m], &range, top, suggested);
            top += SVG_PANEL;
        }
    svg_axis(&sink, sweep, top - SVG_PANEL + SVG_HEIGHT + 22, suggested);
    sink_text(&sink, "</svg>\n");
    return sink_close(&sink, true, err);
}

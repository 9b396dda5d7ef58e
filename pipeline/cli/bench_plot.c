/* bench_plot.c: bars, on one scale for each device. What reading the same bytes gave is a line
 * across the bars of a group: no histogram gets beyond it. */
#include "cli/bench_plot.h"
#include "cli/sink.h"
#include "cli/svg.h"
#include <stdlib.h>
#include <string.h>

#define WIDTH 820
#define LEFT  250 /* of the bars */
#define RIGHT 680
#define ROW   18
#define TOP   34

enum status bench_plot_add(struct bench_plot *plot, const struct bench_plot_line *line,
                           struct error *err)
{
    if (plot->count == plot->room) {
        const size_t room = plot->room ? 2 * plot->room : 64;
        struct bench_plot_line *grown = realloc(plot->line, room * sizeof *grown);
        if (!grown)
            return error_memory(err, room * sizeof *grown, "the plot");
        plot->line = grown;
        plot->room = room;
    }
    plot->line[plot->count++] = *line;
    return STATUS_OK;
}

void bench_plot_clear(struct bench_plot *plot)
{
    free(plot->line);
    *plot = (struct bench_plot){0};
}

static bool same_device(const struct bench_plot *plot, size_t i, size_t j)
{
    return strcmp(plot->line[i].device, plot->line[j].device) == 0;
}

static bool same_group(const struct bench_plot *plot, size_t i, size_t j)
{
    return same_device(plot, i, j) && strcmp(plot->line[i].shape, plot->line[j].shape) == 0 &&
           strcmp(plot->line[i].fill, plot->line[j].fill) == 0;
}

/* Rows of text and bars: one for a device, one and a half for a group, one for each line. */
static unsigned height_of(const struct bench_plot *plot)
{
    unsigned height = TOP;
    for (size_t i = 0; i < plot->count; i++) {
        if (i == 0 || !same_device(plot, i - 1, i))
            height += 2 * ROW;
        if (i == 0 || !same_group(plot, i - 1, i))
            height += 3 * ROW / 2;
        height += ROW;
    }
    return height;
}

static double fastest(const struct bench_plot *plot, size_t first)
{
    double most = 0;
    for (size_t i = first; i < plot->count && same_device(plot, first, i); i++)
        most = plot->line[i].rate > most ? plot->line[i].rate : most;
    return most > 0 ? most : 1;
}

static void draw_heading(struct sink *sink, const struct bench_plot *plot, size_t i, unsigned *y)
{
    const struct bench_plot_line *line = &plot->line[i];
    if (i == 0 || !same_device(plot, i - 1, i)) {
        *y += 2 * ROW;
        sink_printf(sink, "<text class=\"bold\" x=\"16\" y=\"%u\">", *y - ROW / 2);
        svg_escaped(sink, line->device);
        sink_text(sink, "</text>\n");
    }
    if (i == 0 || !same_group(plot, i - 1, i)) {
        *y += 3 * ROW / 2;
        sink_printf(sink, "<text class=\"small\" x=\"16\" y=\"%u\">%s pictures, %s pixels</text>\n",
                    *y - 5, line->shape, line->fill);
    }
}

static void draw_bar(struct sink *sink, const struct bench_plot_line *line, double most, unsigned y)
{
    const double scale = (RIGHT - LEFT) / most;
    sink_printf(sink, "<text class=\"small end\" x=\"%d\" y=\"%u\">%s", LEFT - 8, y + 13,
                line->what);
    if (strcmp(line->feature, "-") != 0) {
        sink_text(sink, " ");
        svg_escaped(sink, line->feature);
    }
    sink_printf(sink,
                "</text>\n<rect class=\"%s\" x=\"%d\" y=\"%u\" width=\"%.1f\" height=\"%d\"/>\n",
                line->wrong      ? "wrong"
                : line->read > 0 ? "count"
                                 : "floor",
                LEFT, y + 2, line->rate * scale, ROW - 4);
    if (line->read > 0)
        sink_printf(sink, "<path d=\"M%.1f %uv%d\"/>\n", LEFT + line->read * scale, y, ROW);
    sink_printf(sink, "<text class=\"small\" x=\"%d\" y=\"%u\">%.2f GB/s", RIGHT + 10, y + 13,
                line->rate * 1e-9);
    if (line->wrong)
        sink_text(sink, " WRONG");
    else if (line->read > 0)
        sink_printf(sink, " %.0f %%", line->rate / line->read * 100);
    sink_text(sink, "</text>\n");
}

enum status bench_plot_svg(const char *path, const struct bench_plot *plot, struct error *err)
{
    struct sink sink = {0};
    enum status status = sink_open(&sink, path, err);
    if (status != STATUS_OK)
        return status;
    svg_begin(&sink, WIDTH, height_of(plot) + 16, "Histogram kernels beside reading the same bytes",
              ".count{fill:#2166ac}.floor{fill:#b5bcc4}.wrong{fill:#b2182b}"
              "path{stroke:#b2182b;stroke-width:2}");
    sink_text(&sink, "<text class=\"small\" x=\"16\" y=\"24\">Bytes counted a second; the red line "
                     "is what reading them gives, the share is of that</text>\n");
    unsigned y = TOP;
    double most = 1;
    for (size_t i = 0; i < plot->count; i++) {
        if (i == 0 || !same_device(plot, i - 1, i))
            most = fastest(plot, i);
        draw_heading(&sink, plot, i, &y);
        draw_bar(&sink, &plot->line[i], most, y);
        y += ROW;
    }
    sink_text(&sink, "</svg>\n");
    return sink_close(&sink, true, err);
}

/* bench_plot.h: the rates that clpipe bench has measured, drawn. */
#ifndef CLPIPE_CLI_BENCH_PLOT_H
#define CLPIPE_CLI_BENCH_PLOT_H

#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>

struct bench_plot_line {
    char device[160], what[16], feature[64], shape[16], fill[16];
    double rate, read; /* bytes a second; read: of reading the same, 0 where not compared */
    bool wrong;
};

/* All lines, in the order in which they were measured; zeroed at first. One thread. */
struct bench_plot {
    struct bench_plot_line *line;
    size_t count, room;
};

/* Adds a copy of the line. STATUS_FAILED: out of memory; the others stay. */
enum status bench_plot_add(struct bench_plot *plot, const struct bench_plot_line *line,
                           struct error *err);
/* Frees the lines; the plot may be used again. */
void bench_plot_clear(struct bench_plot *plot);

/* A bar for each line, those of one device, shape and fill together, in a new file. */
enum status bench_plot_svg(const char *path, const struct bench_plot *plot, struct error *err);

#endif

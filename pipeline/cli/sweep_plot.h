/* sweep_plot.h: the measures of several k, drawn: in a few lines of a terminal, and as SVG. */
#ifndef CLPIPE_CLI_SWEEP_PLOT_H
#define CLPIPE_CLI_SWEEP_PLOT_H

#include "cli/options.h"
#include "result/result.h"
#include <stdio.h>

/* How the terminal is drawn on. */
struct plot_style {
    unsigned width; /* columns */
    bool blocks;    /* block elements of Unicode; else ASCII */
    bool colour;
};

/* Whether the locale's texts are UTF-8, by LC_ALL, LC_CTYPE and LANG. */
bool locale_is_utf8(void);

/* Lines that begin with two spaces; k is the suggested one. */
void sweep_plot_text(FILE *stream, const struct result_sweep *sweep, uint32_t k,
                     const struct plot_style *style);

/* Before anything is computed: `plot`, that of --plot or NULL, needs a range of k, and a file that may be written: a new one
 * or an SVG of before. */
enum status sweep_plot_check(const struct options *options, const char *plot,
                             const struct number_range *k, struct error *err);

/* Writes the file of --plot. */
enum status sweep_plot_svg(const char *path, const struct result_sweep *sweep, uint32_t k,
                           struct error *err);

#endif

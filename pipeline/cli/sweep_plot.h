/* sweep_plot.h: the measures of several k, drawn: in a few lines of a terminal, and as SVG. */
#ifndef CLPIPE_CLI_SWEEP_PLOT_H
#define CLPIPE_CLI_SWEEP_PLOT_H

#include "cli/options.h"
#include "result/result.h"
#include <stdio.h>

/* The characters for drawing. */
struct plot_style {
    unsigned width; /* columns */
    bool blocks;    /* block elements of Unicode; else ASCII */
    bool colour;
};

/* Whether the locale uses UTF-8, according to LC_ALL, LC_CTYPE and LANG. */
bool locale_is_utf8(void);

/* Lines that begin with two spaces; k is the suggested one. */
void sweep_plot_text(FILE *stream, const struct cluster_sweep *sweep, uint32_t k,
                     const struct plot_style *style);

/* Checks `plot`, the value of --plot or NULL, before anything is computed: it requires a range of k and a file
 * that may be written: a new one or an earlier SVG. */
enum status sweep_plot_check(const struct options *options, const char *plot,
                             const struct number_range *k, struct error *err);

/* Writes the file of --plot. */
enum status sweep_plot_svg(const char *path, const struct cluster_sweep *sweep, uint32_t k,
                           struct error *err);

#endif

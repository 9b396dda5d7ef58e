/* svg.h: files of --plot. */
#ifndef CLPIPE_CLI_SVG_H
#define CLPIPE_CLI_SVG_H

#include "cli/options.h"
#include "cli/sink.h"

/* Before anything is computed: --plot must name a file that may be written: a new one or an SVG of
 * before. Nothing to check where it was not given. */
enum status svg_check(const struct options *options, struct error *err);

/* Everything before the first shape: white ground, and text of 14 pixels (classes small, bold, end
 * and middle); `style` is CSS for the rest. The caller ends with "</svg>\n". */
void svg_begin(struct sink *sink, unsigned width, unsigned height, const char *title,
               const char *style);

/* Text with what XML sets apart escaped. */
void svg_escaped(struct sink *sink, const char *text);

#endif

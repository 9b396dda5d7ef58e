/* svg.c: which files may be overwritten, and what every plot begins with. */
#include "cli/svg.h"
#include "base/output.h"
#include "base/path.h"
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether a file begins as an SVG does, or is empty. */
static bool looks_like_svg(const char *path)
{
    char start[64] = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    ssize_t size = read(fd, start, sizeof start - 1);
    close(fd);
    return size == 0 || strncmp(start, "<svg", 4) == 0 || strncmp(start, "<?xml", 5) == 0;
}

enum status svg_check(const struct options *options, struct error *err)
{
    char shown[256];
    struct stat st;
    if (!options->plot)
        return STATUS_OK;
    path_for_message(shown, sizeof shown, options->plot);
    if (stat(options->plot, &st) == 0 && S_ISREG(st.st_mode) && !looks_like_svg(options->plot))
        return error_set(
            err, STATUS_FAILED,
            "--plot: %s exists and is not an SVG, so it is not overwritten; name another "
            "file",
            shown);
    if ((options->json && strcmp(options->json, options->plot) == 0) ||
        (options->profile && strcmp(options->profile, options->plot) == 0) ||
        (options->output && strcmp(options->output, options->plot) == 0))
        return misuse(err, options->command, "--plot and another option both name %s", shown);
    /* A pipe or a device takes what comes. */
    if (sink_is_stdout(options->plot) ||
        (stat(options->plot, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
        return STATUS_OK;
    struct output *trial = NULL;
    enum status status = output_open(&trial, options->plot, err);
    output_close(&trial);
    return status;
}

void svg_escaped(struct sink *sink, const char *text)
{
    for (; *text; text++) {
        const char *entity = *text == '&' ? "&amp;" : *text == '<' ? "&lt;" : NULL;
        if (entity)
            sink_text(sink, entity);
        else
            sink_write(sink, text, 1);
    }
}

void svg_begin(struct sink *sink, unsigned width, unsigned height, const char *title,
               const char *style)
{
    sink_printf(sink,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
                "viewBox=\"0 0 %u %u\" role=\"img\">\n<title>",
                width, height, width, height);
    svg_escaped(sink, title);
    sink_printf(sink,
                "</title>\n<style>text{font:14px sans-serif;fill:#222}.small{font-size:12px}"
                ".end{text-anchor:end}.middle{text-anchor:middle}.bold{font-weight:bold}%s"
                "</style>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
                style);
}

/* cmd_formats.c: clpipe formats. */
#include "cli/call.h"
#include "cli/commands.h"
#include "cli/report_json.h"
#include "cli/sink.h"
#include "decode/decode.h"
#include <string.h>

static void print_rows(struct sink *sink, bool readable)
{
    const struct format *format;
    int width = 0; /* of the longest list of extensions */
    for (unsigned i = 0; (format = format_at(i)); i++)
        if ((int)strlen(format->extensions) > width)
            width = (int)strlen(format->extensions);
    for (unsigned i = 0; (format = format_at(i)); i++) {
        if ((format->library != NULL) != readable)
            continue;
        if (readable)
            sink_printf(sink, "  %-5s  %-*s  %s\n  %-5s  %-*s  %s\n", format->name, width,
                        format->extensions, format->library, "", width, "", format->notes);
        else
            sink_printf(sink, "  %-5s  %-*s  %s\n", format->name, width, format->extensions,
                        format->notes);
    }
}

static enum status print_table(struct error *err)
{
    struct sink sink;
    enum status status = sink_open(&sink, NULL, err);
    if (status != STATUS_OK)
        return status;
    sink_text(&sink, "read\n");
    print_rows(&sink, true);
    sink_text(&sink, "\nrecognised, but not read by this build (such files are listed as "
                     "unsupported)\n");
    print_rows(&sink, false);
    return sink_close(&sink, true, err);
}

static void report_format(struct json *json, const struct format *format)
{
    json_open_object(json, NULL);
    json_string(json, "name", format->name);
    json_open_array(json, "extensions");
    for (const char *at = format->extensions; at && *at;) {
        char word[16];
        size_t length = strcspn(at, " ");
        if (length < sizeof word) {
            memcpy(word, at, length);
            word[length] = 0;
            json_string(json, NULL, word);
        }
        at += length;
        at += strspn(at, " ");
    }
    json_close_array(json);
    json_bool(json, "readable", format->library != NULL);
    report_bytes(json, "library", format->library);
    report_bytes(json, "notes", format->notes);
    json_close_object(json);
}

static enum status run_formats(const struct options *options, struct error *err)
{
    struct json *json = &options->call->json;
    const struct format *format;
    json_open_array(json, NULL);
    for (unsigned i = 0; (format = format_at(i)); i++)
        report_format(json, format);
    json_close_array(json);
    return json_owns_stdout(options) ? STATUS_OK : print_table(err);
}

const struct command command_formats = {.name = "formats",
                                        .goal = GOAL_MACHINE,
                                        .arguments = "[OPTIONS]",
                                        .summary = "list the image formats that this build reads",
                                        .operand_name = "",
                                        .ranks_apart = true,
                                        .run = run_formats};

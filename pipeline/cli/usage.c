/* usage.c: help texts. */
#include "cli/usage.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/sink.h"
#include "version_generated.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TERM_COLUMN  26 /* where the explanations begin */
#define LINE_COLUMNS 80

static unsigned help_width(void)
{
    const unsigned width = log_columns(STDOUT_FILENO, 80);
    return width < 60 ? 60 : width > 100 ? 100 : width;
}

/* A space at which lines are not broken. */
#define HARD_SPACE '\001'

/* Prints `text` wrapped between `column` and the width; the first line begins at `at`. */
static void wrap(struct sink *sink, const char *text, unsigned at, unsigned column)
{
    unsigned width = help_width();
    for (bool start = true; *text; start = false) {
        size_t word = strcspn(text, " ");
        if (start) {
            sink_printf(sink, "%*s", (int)(column - at), "");
            at = column;
        } else if (at + 1 + word > width) {
            sink_printf(sink, "\n%*s", (int)column, "");
            at = column;
        } else {
            sink_text(sink, " ");
            at++;
        }
        for (size_t i = 0; i < word; i++)
            sink_write(sink, text[i] == HARD_SPACE ? " " : text + i, 1);
        at += (unsigned)word;
        text += word;
        text += strspn(text, " ");
    }
    sink_text(sink, "\n");
}

/* Prints `term`, then `text` beside it, or below if the term is long. */
static void describe(struct sink *sink, const char *term, const char *text, unsigned column)
{
    unsigned at = (unsigned)strlen(term);
    sink_text(sink, term);
    if (at + 2 > column) {
        sink_text(sink, "\n");
        at = 0;
    }
    wrap(sink, text, at, column);
}

static void describe_option(struct sink *sink, const struct option *row)
{
    char term[320], letter[8] = "    ", text[700];
    if (row->letter)
        snprintf(letter, sizeof letter, "-%c, ", row->letter);
    snprintf(term, sizeof term, "  %s--%s%s%s", letter, row->name, row->value ? " " : "",
             row->value ? row->value : "");
    if (strlen(term) > LINE_COLUMNS) { /* many words: the last ones on a line of their own */
        char rest[160];
        size_t at = LINE_COLUMNS;
        while (term[at - 1] != '|')
            at--;
        snprintf(rest, sizeof rest, "%s", term + at);
        snprintf(term + at, sizeof term - at, "\n%*s%s", TERM_COLUMN, "", rest);
    }
    const char *initial = row->note ? row->note : row->initial;
    if (initial)
        snprintf(text, sizeof text, "%s [default:%c%s]", row->help, HARD_SPACE, initial);
    else
        snprintf(text, sizeof text, "%s", row->help);
    describe(sink, term, text, TERM_COLUMN);
}

static void describe_group(struct sink *sink, const struct option_group *group)
{
    sink_printf(sink, "\n%s\n", group->title);
    for (const struct option *row = group->row; row->name; row++)
        describe_option(sink, row);
}

enum status usage_command(const struct command *command, struct error *err)
{
    struct sink sink;
    enum status status = sink_open(&sink, NULL, err);
    if (status != STATUS_OK)
        return status;
    sink_printf(&sink, "clpipe %s: %s\n\nusage: clpipe %s %s\n", command->name, command->summary,
                command->name, command->arguments);
    for (const char *text = command->about; text && *text;) { /* each line is a paragraph */
        size_t length = strcspn(text, "\n");
        char *paragraph = strndup(text, length);
        sink_text(&sink, "\n");
        if (paragraph)
            wrap(&sink, paragraph, 0, 0);
        free(paragraph);
        text += length;
        text += strspn(text, "\n");
    }
    for (unsigned i = 0; i < OPTION_GROUPS && command->group[i].row; i++)
        describe_group(&sink, &command->group[i]);
    const struct option *threads = command->threads ? option_find(command, "threads", 7) : NULL;
    if (threads) {
        sink_text(&sink, "\nMachine\n");
        describe_option(&sink, threads);
    }
    if (command->computes)
        describe_group(&sink, &group_compute);
    describe_group(&sink, &group_general);
    describe(&sink, "  -h, --help", "print this help", TERM_COLUMN);
    if (!command->computes) {
        sink_text(&sink, "\nAccepted by every command, without effect here\n ");
        for (const struct option *row = group_compute.row; row->name; row++)
            if (row != threads && option_find(command, row->name, strlen(row->name)) == row)
                sink_printf(&sink, " --%s", row->name);
        sink_text(&sink, "\n");
    }
    if (command->examples)
        sink_printf(&sink, "\nExamples\n%s\n", command->examples);
    return sink_close(&sink, true, err);
}

/* --- for programs ---------------------------------------------------------------------------- */

static void list_option(struct json *json, const struct option *row)
{
    static const char *const types[] = {
        [OPTION_FLAG] = "flag",      [OPTION_TEXT] = "text",      [OPTION_OUTPUT] = "text",
        [OPTION_LIST] = "texts",     [OPTION_NUMBER] = "integer", [OPTION_NUMBERS] = "integers",
        [OPTION_MAYBE] = "integer?", [OPTION_SIZE] = "size",      [OPTION_SECONDS] = "seconds",
        [OPTION_EVERY] = "seconds",  [OPTION_REAL] = "real",      [OPTION_SHARE] = "share",
        [OPTION_CHOICE] = "choice"};
    const char letter[2] = {row->letter, '\0'};
    json_open_object(json, NULL);
    json_string(json, "name", row->name);
    json_string(json, "type", types[row->type]);
    if (row->letter)
        json_string(json, "letter", letter);
    if (row->value)
        json_string(json, "value", row->value);
    if (row->note || row->initial)
        json_string(json, "default", row->note ? row->note : row->initial);
    json_string(json, "help", row->help);
    json_bool(json, "repeatable", row->type == OPTION_LIST);
    json_close_object(json);
}

static void list_group(struct json *json, const struct option_group *group)
{
    json_open_object(json, NULL);
    json_string(json, "title", group->title);
    json_open_array(json, "options");
    for (const struct option *row = group->row; row->name; row++)
        list_option(json, row);
    json_close_array(json);
    json_close_object(json);
}

enum status usage_json(struct error *err)
{
    struct json json;
    struct sink sink = {0};
    enum status status = STATUS_FAILED;
    json_init(&json, false);
    json_open_object(&json, NULL);
    json_string(&json, "version", CLPIPE_VERSION);
    json_open_array(&json, "commands");
    for (unsigned c = 0; commands[c]; c++) {
        const struct command *command = commands[c];
        json_open_object(&json, NULL);
        json_string(&json, "name", command->name);
        json_string(&json, "arguments", command->arguments);
        json_string(&json, "summary", command->summary);
        if (command->about)
            json_string(&json, "about", command->about);
        json_open_array(&json, "groups");
        for (unsigned i = 0; i < OPTION_GROUPS && command->group[i].row; i++)
            list_group(&json, &command->group[i]);
        json_close_array(&json);
        json_close_object(&json);
    }
    json_close_array(&json);
    json_open_array(&json, "common");
    list_group(&json, &group_compute);
    list_group(&json, &group_general);
    json_close_array(&json);
    json_close_object(&json);
    const char *text = json_finish(&json);
    if (!text) {
        error_memory(err, json.length, "the description of the commands");
        goto out;
    }
    status = sink_open(&sink, NULL, err);
    if (status != STATUS_OK)
        goto out;
    sink_printf(&sink, "%s\n", text);
    status = sink_close(&sink, true, err);
out:
    json_clear(&json);
    return status;
}

enum status usage_program(struct error *err)
{
    struct sink sink;
    enum status status = sink_open(&sink, NULL, err);
    if (status != STATUS_OK)
        return status;
    sink_text(&sink, "clpipe: extract features from images and cluster them with OpenCL\n"
                     "\nusage: clpipe COMMAND [ARGUMENTS] [OPTIONS]\n");
    const char *goal = "";
    for (unsigned c = 0; commands[c]; c++) {
        const struct command *command = commands[c];
        if (strcmp(goal, command->goal) != 0)
            sink_printf(&sink, "\n%s\n", command->goal);
        goal = command->goal;
        char term[64];
        snprintf(term, sizeof term, "  %s", command->name);
        describe(&sink, term, command->summary, 14);
    }
    sink_text(&sink,
              "\nStart here\n"
              "  clpipe run ~/Pictures          features and 10 clusters, in clpipe.h5\n"
              "  clpipe info clpipe.h5          what the file holds, and what failed\n"
              "\nRun clpipe COMMAND --help for a command and its options, clpipe --version for\n"
              "the libraries of this build.\n"
              "\nExit status: 0 success; 1 finished, but some files failed; 2 usage error; 3 the\n"
              "command failed; 4 interrupted: run the same command again to resume.\n");
    return sink_close(&sink, true, err);
}

void usage_short(void)
{
    char names[400] = "";
    for (unsigned i = 0; commands[i]; i++)
        text_add_name(names, sizeof names, commands[i]->name);
    log_message(LOG_ERROR, "no command given");
    log_message(
        LOG_INFO,
        "usage: clpipe COMMAND [ARGUMENTS] [OPTIONS]\n"
        "  clpipe run DIRECTORY     extract features from a directory of images and cluster them\n"
        "commands: %s\n"
        "see clpipe --help",
        names);
}

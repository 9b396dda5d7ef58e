/* cmd_verify.c: clpipe verify: checks a file. */
#include "base/child.h"
#include "base/parse.h"
#include "base/path.h"
#include "cli/call.h"
#include "cli/commands.h"
#include "cli/report_json.h"
#include "cli/summary.h"
#include "result/result.h"

struct reading {
    const char *path;
    bool parts;
};

struct verdict {
    struct transcript transcript;
    uint64_t count;
};

static void broken(const char *line, void *context)
{
    struct verdict *verdict = context;
    transcript_line(line, &verdict->transcript);
    verdict->count++;
}

static enum status read_all(void *answer, void (*line)(const char *line, void *context),
                            void *context, struct error *err)
{
    struct reading *reading = answer;
    struct result *result = NULL;
    uint64_t count = 0;
    enum status status = result_open(&result, reading->path, err);
    if (status == STATUS_OK) {
        reading->parts = result_parts(result) > 0;
        status = result_verify(result, line, context, &count, err);
    }
    result_close(&result);
    return status;
}

static enum status run_verify(const struct options *options, struct error *err)
{
    struct verdict verdict = {.count = 0};
    struct reading reading = {.path = options->operand[0]};
    const struct child child = {read_all, &reading, sizeof reading, broken, &verdict};
    const char *died;
    enum status status = transcript_open(&verdict.transcript, options, err);
    if (status != STATUS_OK)
        return status;
    struct json *json = report_open(options);
    report_bytes(json, "file", options->operand[0]);
    json_open_array(json, "broken");
    status = child_run(&child, &died, err);
    json_close_array(json);
    json_bool(json, "ok", verdict.count == 0);
    status = sink_end(&verdict.transcript.sink, status, err);
    if (status != STATUS_OK)
        return status;
    const char *shown = PATH_TEXT(options->operand[0]);
    options->call->wall_told = true; /* the verdict is one line */
    if (verdict.count == 0)
        summary_line(options, "%s: no problems found", shown);
    else
        summary_line(options, "%s: %s failed; %s", shown, NUMBER_OF(verdict.count, "check"),
                     reading.parts ? "repair the parts and run clpipe merge again"
                                   : "clpipe repair recovers the intact rows");
    return verdict.count == 0 ? STATUS_OK : STATUS_PARTIAL;
}

const struct command command_verify = {
    .name = "verify",
    .goal = GOAL_RESULTS,
    .arguments = "F.h5 [OPTIONS]",
    .summary = "check a file for damage and inconsistencies",
    .about = "Prints a line for each check that fails, and exits with 1 if one does.",
    .operand_name = "F.h5",
    .operands = {1, 1},
    .run = run_verify};

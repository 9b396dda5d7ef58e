/* cmd_verify.c: clpipe verify: whether a file keeps its promises. */
#include "base/log.h"
#include "base/path.h"
#include "cli/clean.h"
#include "cli/commands.h"
#include "cli/report_json.h"
#include "file/verify.h"
#include "file/result.h"

/* Where broken promises go: standard output, and the JSON report. */
struct verdict {
    struct sink sink;
    struct json json;
    bool to_sink;
};

static void broken(const char *line, void *context)
{
    struct verdict *verdict = context;
    report_bytes(&verdict->json, NULL, line);
    if (verdict->to_sink) {
        sink_clean(&verdict->sink, line);
        sink_text(&verdict->sink, "\n");
    }
}

enum status command_verify(const struct options *options, struct error *err)
{
    struct result *result = NULL;
    struct verdict verdict = {.to_sink = !report_owns_stdout(options)};
    uint64_t count = 0;
    enum status status = result_open(&result, options->operand[0], err);
    if (status == STATUS_OK && verdict.to_sink)
        status = sink_open(&verdict.sink, NULL, err);
    if (status != STATUS_OK) {
        result_close(&result);
        return status;
    }
    json_init(&verdict.json, false);
    json_open_object(&verdict.json, NULL);
    report_bytes(&verdict.json, "file", options->operand[0]);
    json_open_array(&verdict.json, "broken");
    status = result_verify(result, broken, &verdict, &count, err);
    json_close_array(&verdict.json);
    json_bool(&verdict.json, "ok", count == 0);
    json_close_object(&verdict.json);
    status = report_end(options, &verdict.json, &verdict.sink, status, err);
    result_close(&result);
    if (status != STATUS_OK)
        return status;
    char shown[256];
    path_for_message(shown, sizeof shown, options->operand[0]);
    if (count == 0)
        log_message(LOG_INFO, "%s: everything holds", shown);
    else
        log_message(LOG_INFO, "%s: %llu promise%s broken; clpipe repair saves the rows that hold",
                    shown, (unsigned long long)count, count == 1 ? " is" : "s are");
    return count == 0 ? STATUS_OK : STATUS_PARTIAL;
}

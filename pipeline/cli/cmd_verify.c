/* cmd_verify.c: clpipe verify: whether a file is as it must be. */
#include "base/parse.h"
#include "base/path.h"
#include "cli/commands.h"
#include "cli/report_json.h"
#include "cli/summary.h"
#include "file/result.h"
#include "file/verify.h"

enum status command_verify(const struct options *options, struct error *err)
{
    struct result *result = NULL;
    struct transcript verdict;
    uint64_t count = 0;
    enum status status = result_open(&result, options->operand[0], err);
    if (status == STATUS_OK)
        status = transcript_open(&verdict, options, err);
    if (status != STATUS_OK) {
        result_close(&result);
        return status;
    }
    json_init(&verdict.json, false);
    json_open_object(&verdict.json, NULL);
    report_bytes(&verdict.json, "file", options->operand[0]);
    json_open_array(&verdict.json, "broken");
    status = result_verify(result, transcript_line, &verdict, &count, err);
    json_close_array(&verdict.json);
    json_bool(&verdict.json, "ok", count == 0);
    json_close_object(&verdict.json);
    status = report_end(options, &verdict.json, &verdict.sink, status, err);
    const bool parts = result_parts(result) > 0;
    result_close(&result);
    if (status != STATUS_OK)
        return status;
    char shown[256], checks[40];
    path_for_message(shown, sizeof shown, options->operand[0]);
    if (count == 0)
        summary_line(options, "%s: no problems found", shown);
    else
        summary_line(options, "%s: %s failed; %s", shown,
                     format_number_of(checks, sizeof checks, count, "check"),
                     parts ? "repair the parts and run clpipe merge again"
                           : "clpipe repair recovers the intact rows");
    return count == 0 ? STATUS_OK : STATUS_PARTIAL;
}

/* call.c: the beginning and the end of a command. */
#include "cli/call.h"
#include "cli/report_json.h"
#include "cli/signals.h"

void call_start(const struct options *options, double seconds)
{
    signals_install(seconds);
    progress_init(&options->call->progress, options);
}

enum status call_end(const struct options *options, enum status status, struct error *err)
{
    struct call *call = options->call;
    progress_end(&call->progress);
    if (status == STATUS_OK || status == STATUS_PARTIAL || call->tells_errors) {
        struct error trouble = ERROR_INIT;
        if (report_write(options, &trouble) != STATUS_OK) {
            *err = trouble;
            status = trouble.status;
        }
    }
    json_clear(&call->json);
    return compute_close(&call->compute, status, err);
}

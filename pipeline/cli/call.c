/* call.c: the beginning of a command that takes a while. */
#include "cli/call.h"
#include "cli/signals.h"

void call_start(const struct options *options, double seconds)
{
    signals_install(seconds);
    progress_init(&options->call->progress, options);
    progress_stage(&options->call->progress, "opening");
}

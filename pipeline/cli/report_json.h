/* report_json.h: --json: the outcome for programs, with the keys of the contract. */
#ifndef CLPIPE_CLI_REPORT_JSON_H
#define CLPIPE_CLI_REPORT_JSON_H

#include "base/json.h"
#include "cli/options.h"
#include "cli/sink.h"
#include "ingest/ingest_config.h"
#include "jobs/clustering.h"

/* Looks before any work whether the files of --json and --profile can be written without harm:
 * STATUS_USAGE for an input or the output of this command, STATUS_FAILED for an existing file that
 * is not JSON and for a name that cannot be written. */
enum status report_check(const struct options *options, struct error *err);

/* Opens the object that is the report of a command; main closes it, behind the time by stages. Returns the
 * writer of its members. */
struct json *report_open(const struct options *options);
/* Closes it: where call->tells_errors is set, `err` is its member "error": {"message", "exit_code", and, of
 * report_refused, "removed"}, completed by its remedy; nothing where there is none. */
void report_end(const struct options *options, struct error *err);
/* The images that an update would have removed, and was refused for. */
void report_refused(const uint64_t removed[LOSSES]);
/* Where a command has failed and nothing was written where --json says: an object with the error
 * alone. */
void report_failure(const struct options *options, struct error *err);
/* The same for a command line that could not be parsed. */
void report_misuse(const struct command *command, int argc, char *const *argv, struct error *err);

/* The member "shard", unless there is none. */
void report_share(struct json *json, const struct list_share *share);

/* Members of the object that is open. Of an ingest: output NULL: nothing was written; done: it went through. */
void report_ingest(const struct options *options, const struct ingest_report *report,
                   const char *output, bool done);
/* Members of the object that is open: what a clustering came to. */
void report_cluster(struct json *json, const struct clustering_report *result);
/* sizes: of k clusters; words, agreement: may be NULL; sweep: may have no values. */
void report_clusters(struct json *json, const uint64_t *sizes, uint32_t k, struct words *words,
                     const struct result_agreement *agreement, const struct result_sweep *sweep);

/* Writes the command's report where --json says, if it is whole and --json was given. */
enum status report_write(const struct options *options, struct error *err);

/* json_string of bytes that may not be UTF-8; NULL becomes null. */
void report_bytes(struct json *json, const char *key, const char *bytes);

/* What a command prints, and its report. */
struct transcript {
    struct sink sink;
    struct json *json; /* of the call */
};

/* Opens standard output; where the JSON owns it, the sink drops everything. */
enum status transcript_open(struct transcript *out, const struct options *options,
                            struct error *err);
/* A line on standard output, and an element of the open array of the JSON; context: a transcript. */
void transcript_line(const char *line, void *context);

#endif

/* report_json.h: --json: the outcome for programs, with the keys of the contract. */
#ifndef CLPIPE_CLI_REPORT_JSON_H
#define CLPIPE_CLI_REPORT_JSON_H

#include "base/json.h"
#include "cli/options.h"
#include "cli/sink.h"
#include "ingest/ingest_config.h"
#include "jobs/clustering.h"

/* Checks, before any work, that the files of --json and --profile can be written. STATUS_USAGE: one
 * is an input or output of this command. STATUS_FAILED: an existing file that is not JSON, or a
 * name that cannot be written. */
enum status report_check(const struct options *options, struct error *err);

/* Opens the object of a command's report, which main closes after adding the time by stage. Returns the
 * writer for its members. */
struct json *report_open(const struct options *options);
/* Closes it, if it is open. If call->tells_errors is set, `err` with its remedy becomes its member "error":
 * {"message", "exit_code" and, after report_refused, "removed"}. */
void report_end(const struct options *options, struct error *err);
/* The images that a refused update would have removed. */
void report_refused(const uint64_t removed[LOSSES]);
/* For a command that failed without writing JSON: writes an object with the error alone. */
void report_failure(const struct options *options, struct error *err);
/* The same for a command line that could not be parsed. */
void report_misuse(const struct command *command, int argc, char *const *argv, struct error *err);

/* The member "shard", unless there is none. */
void report_share(struct json *json, const struct list_share *share);

/* Writes the members for an ingest to the open object. output NULL: nothing was written; done: it completed. */
void report_ingest(const struct options *options, const struct ingest_report *report,
                   const char *output, bool done);
/* Writes the members for a clustering to the open object. */
void report_cluster(struct json *json, const struct clustering_report *result);
/* sizes: of k clusters; words: may be NULL; clusters: for their agreement with folders; sweep: may
 * have no values. */
void report_clusters(struct json *json, const uint64_t *sizes, uint32_t k, struct words *words,
                     const struct result_clusters *clusters, const struct cluster_sweep *sweep);
/* Writes purity, NMI and ARI to the open object. */
void report_agreement(struct json *json, const struct cluster_agreement *agreement);

/* Writes the command's report to the file of --json, if given and the report is complete. */
enum status report_write(const struct options *options, struct error *err);

/* json_string of bytes that may not be UTF-8; NULL becomes null. */
void report_bytes(struct json *json, const char *key, const char *bytes);

/* The output of a command, as text and JSON. */
struct transcript {
    struct sink sink;
    struct json *json; /* of the call */
};

/* Opens standard output; if the JSON owns it, the sink drops everything. */
enum status transcript_open(struct transcript *out, const struct options *options,
                            struct error *err);
/* Writes a line to standard output and an element to the open JSON array; context: a transcript. */
void transcript_line(const char *line, void *context);

#endif

/* option_rows.h: options that several commands have, for the tables of their options. */
#ifndef CLPIPE_CLI_OPTION_ROWS_H
#define CLPIPE_CLI_OPTION_ROWS_H

#include "cli/options.h"

#define AT(member) offsetof(struct options, member)
#define VARIANTS   "auto, private, local, replicated, packed, partial, staged, global"

/* --- groups ---------------------------------------------------------------------------------- */

extern const struct option ingest_rows[], image_rows[], tuning_rows[], ingest_output_rows[],
    run_output_rows[], cluster_rows[], cluster_run_rows[], select_rows[], carried_rows[];

#define GROUP_INGEST        "Features and updates", ingest_rows
#define GROUP_IMAGES        "Images", image_rows
#define GROUP_TUNING        "Tuning and tests (affect speed, never results)", tuning_rows
#define GROUP_INGEST_OUTPUT "Result", ingest_output_rows
#define GROUP_RUN_OUTPUT    "Result", run_output_rows
#define GROUP_CLUSTER       "Clustering", cluster_rows
#define GROUP_CLUSTER_RUN   "Clustering", cluster_run_rows
#define GROUP_SELECT        "What to choose", select_rows
#define GROUP_CARRIED       "Data of other programs", carried_rows

/* --- rows: what each type of option needs, then its help, then what it has besides: .letter, .initial,
 * .note, .min, .max ----------------------------------------------------------------------------- */

#define ROW(kind, option, member, words, ...)                                                      \
    {                                                                                              \
        .name = option, .type = kind, .at = AT(member), .value = words, .help = __VA_ARGS__        \
    }
#define FLAG(option, member, ...)           ROW(OPTION_FLAG, option, member, NULL, __VA_ARGS__)
#define TEXT(option, member, words, ...)    ROW(OPTION_TEXT, option, member, words, __VA_ARGS__)
#define OUTPUT(option, member, words, ...)  ROW(OPTION_OUTPUT, option, member, words, __VA_ARGS__)
#define LIST(option, member, words, ...)    ROW(OPTION_LIST, option, member, words, __VA_ARGS__)
#define NUMBER(option, member, words, ...)  ROW(OPTION_NUMBER, option, member, words, __VA_ARGS__)
#define NUMBERS(option, member, words, ...) ROW(OPTION_NUMBERS, option, member, words, __VA_ARGS__)
#define MAYBE(option, member, words, ...)   ROW(OPTION_MAYBE, option, member, words, __VA_ARGS__)
#define SIZE(option, member, words, ...)    ROW(OPTION_SIZE, option, member, words, __VA_ARGS__)
#define SECONDS(option, member, words, ...) ROW(OPTION_SECONDS, option, member, words, __VA_ARGS__)
#define EVERY(option, member, words, ...)   ROW(OPTION_EVERY, option, member, words, __VA_ARGS__)
#define REAL(option, member, words, ...)    ROW(OPTION_REAL, option, member, words, __VA_ARGS__)
#define SHARE(option, member, words, ...)   ROW(OPTION_SHARE, option, member, words, __VA_ARGS__)
#define CHOICE(option, member, words, ...)  ROW(OPTION_CHOICE, option, member, words, __VA_ARGS__)

/* --- options ------------------------------------------------------------------------------------ */

#define ONNXRUNTIME_ROW                                                                            \
    TEXT("onnxruntime", onnxruntime, "PATH",                                                       \
         "library of ONNX Runtime, or a directory with it, such as that of the Python package "    \
         "onnxruntime, for features net:model=FILE.onnx",                                          \
         .note = "$CLPIPE_ONNXRUNTIME, else libonnxruntime.so.1 of the system")

/* What is taken of the sources. */
#define WALK_ROWS                                                                                  \
    FLAG("follow-symlinks", follow_symlinks, "follow symbolic links to directories"),              \
        FLAG("archives", archives,                                                                 \
             "read the images in tar and zip archives below directories; an archive that is a "    \
             "SOURCE is always opened"),                                                           \
        FLAG("hidden", hidden, "include names that begin with a dot"),                             \
        LIST("include", include, "GLOB",                                                           \
             "read only files that match, repeatable; a pattern without / is matched against the " \
             "file name"),                                                                         \
        LIST("exclude", exclude, "GLOB", "skip files that match, repeatable")

#define OUTPUT_ROW(usual, told, ...)                                                               \
    OUTPUT("output", output, "F.h5", __VA_ARGS__, .letter = 'o', .initial = usual, .note = told)

#define TABLE_ROW                                                                                  \
    TEXT("output", output, "FILE", "file to write; - is standard output", .letter = 'o',           \
         .note = "standard output")

#define VERIFY_INPUT_ROW                                                                           \
    FLAG("verify-input", verify_input,                                                             \
         "read all rows to see whether a result is there already; otherwise size, modification "   \
         "time and a sample vouch for them")

#define PATHS_ROW                                                                                  \
    TEXT("paths", paths, "LIST",                                                                   \
         "paths of the rows of a .npy or HDF5 matrix, stored with the result: a file with the "    \
         "path of each row, one per line or separated by NUL; - is standard input")

#endif

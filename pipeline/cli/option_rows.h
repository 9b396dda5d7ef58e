/* option_rows.h: rows of options shared by several commands, for their tables. */
#ifndef CLPIPE_CLI_OPTION_ROWS_H
#define CLPIPE_CLI_OPTION_ROWS_H

#include "cli/options.h"

/* A file with rows defines OWN: the struct of its command, or of several, whose first member is `common`. */
#define AT(member)     offsetof(OWN, member)
#define COMMON(member) offsetof(struct options, member)
#define VARIANTS       "auto, private, local, replicated, packed, partial, staged, global"

#define GROUP_CARRIED "Data of other programs", carried_rows
extern const struct option carried_rows[];

/* --- rows: what each type of option needs, then its help, then what it has besides: .letter, .initial,
 * .note, .min, .max ----------------------------------------------------------------------------- */

#define ROW(kind, option, place, words, ...)                                                       \
    {                                                                                              \
        .name = option, .type = kind, .at = place, .value = words, .help = __VA_ARGS__             \
    }
#define FLAG(option, member, ...)        ROW(OPTION_FLAG, option, AT(member), NULL, __VA_ARGS__)
#define TEXT(option, member, words, ...) ROW(OPTION_TEXT, option, AT(member), words, __VA_ARGS__)
#define OUTPUT(option, member, words, ...)                                                         \
    ROW(OPTION_OUTPUT, option, AT(member), words, __VA_ARGS__)
#define LIST(option, member, words, ...) ROW(OPTION_LIST, option, AT(member), words, __VA_ARGS__)
#define NUMBER(option, member, words, ...)                                                         \
    ROW(OPTION_NUMBER, option, AT(member), words, __VA_ARGS__)
#define NUMBERS(option, member, words, ...)                                                        \
    ROW(OPTION_NUMBERS, option, AT(member), words, __VA_ARGS__)
#define MAYBE(option, member, words, ...) ROW(OPTION_MAYBE, option, AT(member), words, __VA_ARGS__)
#define SIZE(option, member, words, ...)  ROW(OPTION_SIZE, option, AT(member), words, __VA_ARGS__)
#define SECONDS(option, member, words, ...)                                                        \
    ROW(OPTION_SECONDS, option, AT(member), words, __VA_ARGS__)
#define EVERY(option, member, words, ...) ROW(OPTION_EVERY, option, AT(member), words, __VA_ARGS__)
#define REAL(option, member, words, ...)  ROW(OPTION_REAL, option, AT(member), words, __VA_ARGS__)
#define SHARE(option, member, words, ...) ROW(OPTION_SHARE, option, AT(member), words, __VA_ARGS__)
#define CHOICE(option, member, words, ...)                                                         \
    ROW(OPTION_CHOICE, option, AT(member), words, __VA_ARGS__)

/* --- options ------------------------------------------------------------------------------------ */

#define ONNXRUNTIME_ROW                                                                            \
    TEXT("onnxruntime", onnxruntime, "PATH",                                                       \
         "the ONNX Runtime library, or a directory that holds it, such as that of the Python "     \
         "package onnxruntime, for features net:model=FILE.onnx",                                  \
         .note = "$CLPIPE_ONNXRUNTIME, else libonnxruntime.so.1 of the system")

#define OUTPUT_ROW(usual, told, ...)                                                               \
    ROW(OPTION_OUTPUT, "output", COMMON(output), "F.h5", __VA_ARGS__, .letter = 'o',               \
        .initial = usual, .note = told)

#define TABLE_ROW                                                                                  \
    ROW(OPTION_TEXT, "output", COMMON(output), "FILE", "file to write; - is standard output",      \
        .letter = 'o', .note = "standard output")

#define FORCE_ROW(...)   ROW(OPTION_FLAG, "force", COMMON(force), NULL, __VA_ARGS__)
#define DRY_RUN_ROW(...) ROW(OPTION_FLAG, "dry-run", COMMON(dry_run), NULL, __VA_ARGS__)

#define MAX_TIME_ROW                                                                               \
    ROW(OPTION_SECONDS, "max-time", COMMON(max_time), "SECONDS",                                   \
        "stop cleanly after this time (also 90m, 01:30:00 or 1-12:00:00, as in Slurm; 0: no "      \
        "time is left, exit status 4); the same command resumes",                                  \
        .note = "none; in a Slurm job, two minutes before its end")

#define VERIFY_INPUT_ROW(member)                                                                   \
    FLAG("verify-input", member,                                                                   \
         "read all rows to see whether the result already exists; otherwise only size, "           \
         "modification time and a sample are compared")

#define PATHS_ROW                                                                                  \
    ROW(OPTION_TEXT, "paths", COMMON(paths), "LIST",                                               \
        "paths of the rows of a .npy or HDF5 matrix, stored with the result: a file with the "     \
        "path of each row, one per line or separated by NUL; - is standard input")

#endif

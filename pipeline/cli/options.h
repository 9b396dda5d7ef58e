/* options.h: the command line. One table of option rows feeds the parser, the help texts and the
 * defaults, so that they cannot contradict each other.
 *
 * GNU style: --opt=value, --opt value, -o value, -ovalue, -qv, options and operands in any order,
 * "--" ends the options. If an option is given twice, the last one counts, unless it is a list. */
#ifndef CLPIPE_CLI_OPTIONS_H
#define CLPIPE_CLI_OPTIONS_H

#include "base/error.h"
#include "base/list_share.h"
#include "base/parse.h"
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct call;
struct command;

enum progress_mode { PROGRESS_AUTO, PROGRESS_ALWAYS, PROGRESS_NEVER };
enum export_format { FORMAT_CSV, FORMAT_TSV, FORMAT_JSONL, FORMAT_NPY };
enum export_link { LINK_SYMBOLIC, LINK_HARD, LINK_COPY };

#define OPTIONS_MAX_GIVEN 64

/* The parsed command line; texts point into the caller's argv. Each command has a struct of its own options
 * that begins with this one: struct options *, cast, is a pointer to it. A choice is the index of the word
 * in its row, -1 for one that was not given and has no default. */
struct options {
    const struct command *command;
    struct call *call; /* call.h */
    const char **operand;
    unsigned operand_count;
    bool made_operands; /* their texts are copies: ranges of SOURCEs were expanded */
    char *command_line; /* as typed, quoted for a shell, UTF-8 */
    const struct option *given[OPTIONS_MAX_GIVEN];
    unsigned given_count;

    /* every command */
    const char *device, *profile, *json;
    uint64_t threads, memory, device_memory;
    int progress;
    bool quiet, verbose;
    int mpi;                     /* 0 auto, 1 openmpi, 2 mpich, 3 off */
    struct processes *processes; /* set by launch_open; NULL: this process alone */

    /* common options that only some commands have */
    const char *output, *paths;
    bool force, dry_run, drop_references;
    double max_time;
    const char *shard;       /* as given */
    struct list_share share; /* the share requested; count 0: everything */
    char *made_output;       /* `output`, if {shard} in it was replaced */
    bool merges_shards;      /* ingest --shard mpi without {shard}: all ranks share `output` */
};

enum option_type {
    OPTION_FLAG,    /* bool */
    OPTION_TEXT,    /* const char *, not empty */
    OPTION_OUTPUT,  /* the same: a file to write, in the format whose extension is `value` */
    OPTION_LIST,    /* struct text_list */
    OPTION_NUMBER,  /* uint64_t from min to max */
    OPTION_NUMBERS, /* struct number_range from min to max: A, A:B or A:B:STEP */
    OPTION_MAYBE,   /* the same as a number; without a value 0 */
    OPTION_SIZE,    /* uint64_t, with K, M, G */
    OPTION_SECONDS, /* double */
    OPTION_EVERY,   /* the same; without a value that is a time, the initial one */
    OPTION_REAL,    /* double */
    OPTION_SHARE,   /* struct share: N or P% */
    OPTION_CHOICE,  /* int: which of the words in `value` */
};

struct option {
    const char *name; /* without the dashes */
    char letter;      /* 0: none */
    enum option_type type;
    size_t at;           /* in the command's struct */
    const char *value;   /* the value's name in help; for a choice its words, "a|b|c" */
    const char *initial; /* the default, as typed; NULL: none */
    const char *note;    /* help text of a default that is not constant; NULL: `initial` is shown */
    uint64_t min, max;   /* OPTION_NUMBER; max 0: no bound */
    const char *help;
};

/* Rows that belong together, ended by a row whose name is NULL. */
struct option_group {
    const char *title; /* in help */
    const struct option *row;
};

#define OPTION_GROUPS 6

#define GOAL_JOB     "All in one step"
#define GOAL_STEPS   "Step by step"
#define GOAL_RESULTS "Results"
#define GOAL_MACHINE "This machine"

struct command {
    const char *name;
    const char *goal;         /* GOAL_...: commands of one goal follow each other */
    const char *arguments;    /* "SOURCE... -o F.h5 [OPTIONS]" */
    const char *summary;      /* one line for the list of commands */
    const char *about;        /* paragraphs of the command's own help, a line each */
    const char *examples;     /* lines of examples, or NULL */
    const char *operand_name; /* "SOURCE" */
    struct {
        unsigned least, most;
    } operands;
    /* From this operand on (counted from 1; 0: none), several clpipe files are joined as one: all
     * operands, or those before the first that is not a clpipe file. The result then requires a
     * separate file. */
    unsigned char joins;
    bool joins_first, joins_output;
    bool computes; /* uses a device: --device and similar options have an effect */
    bool threads;  /* of these, only --threads has an effect */
    /* Whether processes started by a launcher share the work, or may work independently. If
     * neither, they are refused, since each would do all of the work. */
    bool ranks_share, ranks_apart;
    bool ranks_merge; /* with --shard mpi, the launcher's ranks make one output */
    const struct option_group group[OPTION_GROUPS]; /* its own; NULL after the last */
    size_t size;                                    /* size of its struct; 0: only struct options */
    enum status (*run)(const struct options *options, struct error *err);
};

/* All commands, ended by NULL. */
extern const struct command *const commands[];
/* Groups of options common to all commands. */
extern const struct option_group group_general, group_compute;

/* The row of a command's option by its long name, or NULL. */
const struct option *option_find(const struct command *command, const char *name, size_t length);

/* Parses argv[2..] for `command` (argv[1]) into a struct of the command. STATUS_USAGE: one line that names
 * the option, says what is wrong and points to the help. */
enum status options_parse(struct options **out, const struct command *command, int argc,
                          char *const *argv, struct error *err);
/* Frees what options_parse has allocated, even if it failed, and sets *options to NULL. */
void options_close(struct options **options);

/* The value of the option with this long name, of the type given by its row; NULL: no such option. */
const void *option_at(const struct options *options, const char *name);

/* True if the option with this long name stood on the command line. */
bool options_given(const struct options *options, const char *name);

/* Sets an option from a text, which must outlive the options; sets a flag. The option does not count as
 * given. */
enum status option_set(struct options *options, const struct option *row, const char *text,
                       struct error *err);

/* Sets an option that was not given from `text`, which must outlive the options, as if it had been
 * given. False: it was given, or `text` is not a valid value. */
bool options_take(struct options *options, const char *name, const char *text);

/* True with --json -: standard output is reserved for the JSON. */
bool json_owns_stdout(const struct options *options);

/* Copies the word of a choice to `buffer`, of at least 32 bytes; returns buffer. */
const char *option_choice(char *buffer, size_t size, const struct options *options,
                          const char *name);
/* The same as an expression. The word lives until the end of the enclosing block. */
#define CHOICE_WORD(options, name) option_choice((char[32]){0}, 32, options, name)

/* Returns STATUS_USAGE, with the sentence and REMEDY_SEE_HELP. */
enum status misuse(struct error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The number of edits (insert, remove, replace, swap neighbours) that turn a into b. */
unsigned name_edits(const char *a, const char *b);

/* The command of that name, or NULL; *nearest: a suggestion, or NULL. */
const struct command *command_find(const char *name, const char **nearest);

/* Checks that the file named by `option` may be written. An existing file may be replaced only with
 * --force or if it is empty, and never if it is the command's input (its first operand). From now
 * on it must stay unchanged until it is written (output_claim). path NULL: no file. STATUS_USAGE:
 * it is the input. STATUS_FAILED: it exists. */
enum status options_check_output(const struct options *options, const char *option,
                                 const char *path, struct error *err);

/* Call it before a command with --drop-references rewrites `path` (NULL: no file). STATUS_USAGE: other
 * programs have added objects that cannot be carried (result/foreign.h). The command reports other problems
 * of the file. */
enum status carried_check(const struct options *options, const char *path, struct error *err);

/* Whether an option of type OPTION_OUTPUT may write a file of that name: not if it has the
 * extension of another format. */
bool option_fits_name(const struct option *row, const char *path);

/* Where a command's table goes, *output (NULL: standard output), and its format: that of --format, else
 * of the extension of the file, else CSV in a file, and `usual` on standard output. STATUS_USAGE: the
 * command does not write the extension's format. */
enum status options_table(const char **output, int *format, const struct options *options,
                          int usual, struct error *err);

#endif

/* options.h: the command line. One table of option rows feeds the parser, the help texts and the
 * defaults, so that none of them can say something else than the others.
 *
 * GNU style: --opt=value, --opt value, -o value, -ovalue, -qv, options and operands in any order,
 * "--" ends the options. An option given twice: the last one counts, unless it is a list. */
#ifndef CLPIPE_CLI_OPTIONS_H
#define CLPIPE_CLI_OPTIONS_H

#include "base/error.h"
#include "base/list_share.h"
#include "base/parse.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct call;
struct command;

/* The values of a repeatable option, in the order given. */
struct text_list {
    const char **text;
    unsigned count;
};

enum progress_mode { PROGRESS_AUTO, PROGRESS_ALWAYS, PROGRESS_NEVER };
enum export_what {
    WHAT_FEATURES,
    WHAT_LABELS,
    WHAT_FAILURES,
    WHAT_IMAGES,
    WHAT_CENTROIDS,
    WHAT_CLUSTERS,
    WHAT_SWEEP,
    WHAT_TREE,
    WHAT_SELECTION,
    WHAT_SHARDS,
    WHAT_QUALITY
};
enum export_format { FORMAT_CSV, FORMAT_TSV, FORMAT_JSONL, FORMAT_NPY };
enum keep_rule { KEEP_BEST, KEEP_FIRST, KEEP_NEWEST };
enum export_link { LINK_SYMBOLIC, LINK_HARD, LINK_COPY };

#define OPTIONS_MAX_GIVEN 64

/* What a command was told; texts are the caller's argv. Each command has a struct of its own options that
 * begins with this one: struct options *, cast, is a pointer to it. A choice is the index of the word in its
 * row, -1 for one that was not given and has no default. */
struct options {
    const struct command *command;
    struct call *call; /* call.h */
    const char **operand;
    unsigned operand_count;
    char **made_operand; /* those of `operand` that ranges of SOURCEs gave */
    unsigned made_count;
    char *command_line; /* as typed, quoted for a shell, UTF-8 */
    const struct option *given[OPTIONS_MAX_GIVEN];
    unsigned given_count;

    /* every command */
    const char *device, *profile, *json;
    uint64_t threads, memory, device_memory;
    int progress;
    bool quiet, verbose;
    int mpi;                     /* 0 auto, 1 openmpi, 2 mpich, 3 off */
    struct processes *processes; /* set by launch.h; NULL: this one alone */

    /* commands that have them: what all treat alike */
    const char *output, *paths;
    bool force, dry_run, drop_references;
    double max_time;
    const char *shard;       /* as given */
    struct list_share share; /* what it asks for; count 0: everything */
    char *made_output;       /* `output`, if {shard} in it was replaced */
    bool merges_shards;      /* ingest --shard mpi without {shard}: `output` is of all ranks */
};

enum option_type {
    OPTION_FLAG,    /* bool */
    OPTION_TEXT,    /* const char *, not empty */
    OPTION_OUTPUT,  /* the same: a file to write, in the format that `value` has as its extension */
    OPTION_LIST,    /* struct text_list */
    OPTION_NUMBER,  /* uint64_t from min to max */
    OPTION_NUMBERS, /* struct number_range from min to max: A, A:B or A:B:STEP */
    OPTION_MAYBE,   /* the same as a number; the value may be left out, and is 0 then */
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
    const char *value;   /* the value's name in help; of a choice its words, "a|b|c" */
    const char *initial; /* the default, as it would be typed; NULL: none */
    const char *note;    /* how help tells a default that depends; NULL: initial is shown */
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
    const char *examples;     /* lines, or NULL */
    const char *operand_name; /* "SOURCE" */
    unsigned min_operands, max_operands;
    /* From this operand on (counted from 1; 0: none) several clpipe files are taken as one: all
     * operands, or those before the first that is none; with a result that needs a file of its own. */
    unsigned char joins;
    bool joins_first, joins_output;
    bool computes; /* uses a device: --device and its like have an effect */
    bool threads;  /* of these only --threads has */
    /* Several processes that a launcher has started: share the work, or may each do what they are for.
     * Else they would do the same work several times, and are refused. */
    bool ranks_share, ranks_apart;
    bool ranks_merge; /* with --shard mpi, the launcher's ranks make one output */
    const struct option_group group[OPTION_GROUPS]; /* its own; behind them rows are NULL */
    size_t size; /* of its struct; 0: it has none but struct options */
    enum status (*run)(const struct options *options, struct error *err);
};

/* All commands, ended by NULL. */
extern const struct command *const commands[];
/* Groups that every command takes. */
extern const struct option_group group_general, group_compute;

/* The row of a command's option by its long name, or NULL. */
const struct option *option_find(const struct command *command, const char *name, size_t length);

/* Parses argv[2..] for `command` (argv[1]) into a struct of the command. STATUS_USAGE: one line that names
 * the option, says what is wrong and points to the help. */
enum status options_parse(struct options **out, const struct command *command, int argc,
                          char *const *argv, struct error *err);
/* Frees what options_parse allocated, after a failed one, too, and sets *options to NULL. */
void options_close(struct options **options);

/* Where the option with this long name has its value, of the type of its row; NULL: the command has none. */
const void *option_at(const struct options *options, const char *name);

/* True if the option with this long name stood on the command line. */
bool options_given(const struct options *options, const char *name);

/* Sets an option by a text, which outlives the options; a flag is on then. It does not count as given. */
enum status option_set(struct options *options, const struct option *row, const char *text,
                       struct error *err);

/* Takes `text`, which outlives the options, for an option as if it were given, unless it was. False: it
 * was, or the option has no such value. */
bool options_take(struct options *options, const char *name, const char *text);

/* True if --json - : standard output belongs to the JSON. */
bool json_owns_stdout(const struct options *options);

/* The word that a choice stands for, into buffer of at least 32 bytes; returns buffer. */
const char *option_choice(char *buffer, size_t size, const struct options *options,
                          const char *name);

/* STATUS_USAGE with a sentence that ends in "; see clpipe COMMAND --help". */
enum status misuse(struct error *err, const struct command *command, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Edits (insert, remove, replace, swap neighbours) that turn a into b. */
unsigned name_edits(const char *a, const char *b);

/* The command of that name, or NULL; *nearest is one that may have been meant, or NULL. */
const struct command *command_find(const char *name, const char **nearest);

/* The file that `option` names may be written: an existing one is replaced only with --force, and the
 * command's input, its first operand, never; an empty one is nobody's work. From now on it must stay as
 * it is until it is written (output_claim). path NULL: no file.
 * STATUS_USAGE: it is the input. STATUS_FAILED: it exists. */
enum status options_check_output(const struct options *options, const char *option,
                                 const char *path, struct error *err);

/* Before a command that has --drop-references writes `path` anew (NULL: none): STATUS_USAGE where other
 * programs have added what cannot be carried (result/foreign.h). What is wrong with the file otherwise, the
 * command says. */
enum status carried_check(const struct options *options, const char *path, struct error *err);

/* Whether a file of that name can be what an option of type OPTION_OUTPUT writes: not where its
 * extension is that of another format. */
bool option_fits_name(const struct option *row, const char *path);

/* The format of the table that a command writes: that of --format, else the one that the extension of
 * `output` (NULL: none) names, else `usual`. STATUS_USAGE: the extension is of a format that the
 * command does not write. */
enum status options_table_format(int *format, const struct options *options, const char *output,
                                 int usual, struct error *err);

#endif

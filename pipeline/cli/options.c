/* options.c: the parser of the command line. */
#include "cli/options.h"
#include "base/array.h"
#include "base/error.h"
#include "base/log.h"
#include "base/output.h"
#include "base/parse.h"
#include "base/path.h"
#include "cli/quote.h"
#include "cli/shard_option.h"
#include "cli/sink.h"
#include "result/foreign.h"
#include <assert.h>
#include <ctype.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Longest name that is compared for suggestions. */
#define NAME_LONGEST 32

enum status misuse(struct error *err, const char *format, ...)
{
    char sentence[600];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    error_set(err, STATUS_USAGE, "%s", sentence);
    error_remedy(err, REMEDY_SEE_HELP);
    return STATUS_USAGE;
}

/* --- names ----------------------------------------------------------------------------------- */

unsigned name_edits(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    if (n > NAME_LONGEST || m > NAME_LONGEST)
        return NAME_LONGEST;
    unsigned cost[NAME_LONGEST + 1][NAME_LONGEST + 1];
    for (size_t i = 0; i <= n; i++)
        cost[i][0] = (unsigned)i;
    for (size_t j = 0; j <= m; j++)
        cost[0][j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++)
        for (size_t j = 1; j <= m; j++) {
            unsigned best = cost[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (cost[i - 1][j] + 1 < best)
                best = cost[i - 1][j] + 1;
            if (cost[i][j - 1] + 1 < best)
                best = cost[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                cost[i - 2][j - 2] + 1 < best)
                best = cost[i - 2][j - 2] + 1;
            cost[i][j] = best;
        }
    return cost[n][m];
}

/* Keeps in *best the candidate nearest to `typed` if it is near enough for a suggestion: up to a
 * third of its letters may be wrong, and `typed` may be its beginning. */
static void consider(const char **best, unsigned *best_cost, const char *typed,
                     const char *candidate)
{
    size_t length = strlen(typed);
    unsigned cost = name_edits(typed, candidate);
    if (length >= 2 && strncmp(typed, candidate, length) == 0)
        cost = 1;
    if (cost <= (strlen(candidate) + 1) / 3 && cost < strlen(candidate) && cost < *best_cost) {
        *best = candidate;
        *best_cost = cost;
    }
}

const struct command *command_find(const char *name, const char **nearest)
{
    unsigned cost = NAME_LONGEST;
    *nearest = NULL;
    for (unsigned i = 0; commands[i]; i++) {
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
        consider(nearest, &cost, name, commands[i]->name);
    }
    return NULL;
}

/* Group i of a command, its own groups first, then those of all commands; NULL past the last. */
static const struct option_group *option_group_at(const struct command *command, unsigned i)
{
    unsigned own = 0;
    while (own < OPTION_GROUPS && command->group[own].row)
        own++;
    if (i < own)
        return &command->group[i];
    return i == own ? &group_compute : i == own + 1 ? &group_general : NULL;
}

const struct option *option_find(const struct command *command, const char *name, size_t length)
{
    const struct option_group *group;
    for (unsigned i = 0; (group = option_group_at(command, i)); i++)
        for (const struct option *row = group->row; row->name; row++)
            if (strlen(row->name) == length && strncmp(row->name, name, length) == 0)
                return row;
    return NULL;
}

static const struct option *find_letter(const struct command *command, char letter)
{
    const struct option_group *group;
    for (unsigned i = 0; (group = option_group_at(command, i)); i++)
        for (const struct option *row = group->row; row->name; row++)
            if (row->letter && row->letter == letter)
                return row;
    return NULL;
}

/* Options of other programs, and hints for them. */
static const struct {
    const char *typed, *ours, *hint;
} others[] = {{"jobs", "threads", "--threads"},
              {"j", "threads", "--threads"},
              {"workers", "threads", "--threads"},
              {"cores", "threads", "--threads"},
              {"clusters", "k", "-k"},
              {"n-clusters", "k", "-k"},
              {"n", "k", "-k"},
              {"n_init", "n-init", "--n-init"},
              {"gpu", "device", "--device gpu"},
              {"cpu", "device", "--device cpu"},
              {"overwrite", "force", "--force"},
              {"overwrite", "fresh", "--fresh"},
              {"verbosity", "verbose", "--verbose"},
              {"silent", "quiet", "--quiet"},
              {"recursive", "follow-symlinks", NULL},
              {"recurse", "follow-symlinks", NULL},
              {"r", "follow-symlinks", NULL},
              {"R", "follow-symlinks", NULL}};

/* The hint for an option as typed, or "". */
static const char *hint_for(char *hint, size_t size, const struct command *command,
                            const char *typed, size_t length)
{
    *hint = '\0';
    for (size_t i = 0; i < sizeof others / sizeof *others && !*hint; i++)
        if (strlen(others[i].typed) == length && strncmp(others[i].typed, typed, length) == 0 &&
            option_find(command, others[i].ours, strlen(others[i].ours))) {
            if (others[i].hint)
                snprintf(hint, size, " (did you mean %s?)", others[i].hint);
            else
                snprintf(hint, size, " (directories are read with everything below them)");
        }
    return hint;
}

static enum status unknown_option(const struct command *command, const char *typed, size_t length,
                                  struct error *err)
{
    char name[NAME_LONGEST + 1];
    snprintf(name, sizeof name, "%.*s", (int)length, typed);
    char *text = strndup(typed, length);
    const char *shown = PATH_TEXT_IN(120, text ? text : name);
    free(text);
    const char *nearest = NULL;
    unsigned cost = NAME_LONGEST;
    const struct option_group *group;
    char hint[80];
    if (*hint_for(hint, sizeof hint, command, typed, length))
        return misuse(err, "unknown option --%s%s", shown, hint);
    for (unsigned i = 0; (group = option_group_at(command, i)); i++)
        for (const struct option *row = group->row; row->name; row++)
            consider(&nearest, &cost, name, row->name);
    if (nearest)
        return misuse(err, "unknown option --%s (did you mean --%s?)", shown, nearest);
    /* It may be an option of another command. */
    for (unsigned i = 0; commands[i]; i++)
        if (option_find(commands[i], typed, length))
            return misuse(err, "--%s is an option of clpipe %s, not of clpipe %s", shown,
                          commands[i]->name, command->name);
    return misuse(err, "unknown option --%s", shown);
}

/* --- values ---------------------------------------------------------------------------------- */

/* The index of `word` among "a|b|c", or -1. */
static int choice_index(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (int i = 0;; i++) {
        size_t span = strcspn(words, "|");
        if (span == length && strncmp(words, word, length) == 0)
            return i;
        if (!words[span])
            return -1;
        words += span + 1;
    }
}

/* Extensions of known formats, those that clpipe writes and others. */
static const char known_formats[] =
    "csv|tsv|tab|jsonl|ndjson|json|geojson|npy|npz|h5|parquet|feather|arrow|orc|avro|xls|xlsx|xlsm|"
    "ods|sqlite|sqlite3|db|duckdb|pkl|pickle|pt|safetensors|mat|rds|dta|sav|xml|yaml|yml|toml|html|"
    "htm|md|tex|pdf|svg|png|jpg|jpeg|gif|webp|zip|tar|tgz|gz|bz2|xz|zst|lz4|7z";

/* The extension of a file's name in lower case; "" for one that is not in known_formats. */
static const char *known_extension(char buffer[16], const char *path)
{
    const char *dot = strrchr(path, '.');
    snprintf(buffer, 16, "%s", dot ? dot + 1 : "");
    for (char *at = buffer; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    if (strcmp(buffer, "hdf5") == 0)
        strcpy(buffer, "h5");
    if (choice_index(known_formats, buffer) < 0)
        *buffer = 0;
    return buffer;
}

bool option_fits_name(const struct option *row, const char *path)
{
    char buffer[16];
    const char *own = strrchr(row->value, '.'), *extension = known_extension(buffer, path);
    return !*extension || (own && strcmp(own + 1, extension) == 0);
}

enum status options_table(const char **output, int *format, const struct options *options,
                          int usual, struct error *err)
{
    const char *file = options->output && !sink_is_stdout(options->output) ? options->output : NULL;
    const struct option *row = option_find(options->command, "format", strlen("format"));
    char buffer[16];
    const char *extension = known_extension(buffer, file ? file : "");
    const int named = choice_index(row->value, extension);
    const char *shown = PATH_TEXT(file ? file : "");
    *output = file;
    if (options_given(options, "format")) {
        *format = *(const int *)option_at(options, "format");
        if (*extension && named != *format)
            log_message(LOG_NOTICE, "notice: %s is written as %s, as --format says", shown,
                        CHOICE_WORD(options, "format"));
        return STATUS_OK;
    }
    *format = named >= 0 ? named : file ? FORMAT_CSV : usual;
    return named >= 0 || !*extension
               ? STATUS_OK
               : misuse(err, "-o %s: the formats are %s, not %s; --format chooses one for any name",
                        shown, row->value, extension);
}

/* "A", "A:B" or "A:B:STEP" with A < B. */
static bool parse_range(struct number_range *out, const char *text, uint64_t min, uint64_t max)
{
    char part[3][24];
    unsigned parts = 0;
    for (const char *at = text;; at++) {
        const size_t length = strcspn(at, ":");
        if (parts == 3 || length >= sizeof part[0])
            return false;
        snprintf(part[parts++], sizeof part[0], "%.*s", (int)length, at);
        at += length;
        if (!*at)
            break;
    }
    struct number_range range = {.step = 1};
    if (!parse_u64(&range.first, part[0], min, max))
        return false;
    range.last = range.first;
    if (parts > 1 && (range.first == max || !parse_u64(&range.last, part[1], range.first + 1, max)))
        return false;
    if (parts > 2 && !parse_u64(&range.step, part[2], 1, max))
        return false;
    range.last -= (range.last - range.first) % range.step;
    *out = range;
    return true;
}

/* Stores `text` as the value of a row. `typed` is how the option was written, for messages. */
static enum status set_value(struct options *options, const struct option *row, const char *typed,
                             const char *text, struct error *err)
{
    void *place = (char *)options + row->at;
    const char *shown = PATH_TEXT_IN(120, text);
    if (!text[0])
        return misuse(err, "%s has an empty value", typed);
    switch (row->type) {
    case OPTION_FLAG: /* accepts any text */
        *(bool *)place = true;
        return STATUS_OK;
    case OPTION_TEXT:
        *(const char **)place = text;
        return STATUS_OK;
    case OPTION_OUTPUT: {
        const char *own = strrchr(row->value, '.');
        if (!option_fits_name(row, text))
            return misuse(err, "%s %s: the file is %s, not %s: choose another name", typed, shown,
                          own ? own + 1 : "a list of paths", strrchr(text, '.') + 1);
        *(const char **)place = text;
        return STATUS_OK;
    }
    case OPTION_LIST: {
        struct text_list *list = place;
        if (array_grow(&list->text, list->count, sizeof *list->text, "the command line", err))
            return err->status;
        list->text[list->count++] = text;
        return STATUS_OK;
    }
    case OPTION_NUMBER:
    case OPTION_MAYBE:
        if (parse_u64(place, text, row->min, row->max ? row->max : UINT64_MAX))
            return STATUS_OK;
        if (row->max)
            return misuse(err, "%s expects a number from %llu to %llu, not '%s'", typed,
                          (unsigned long long)row->min, (unsigned long long)row->max, shown);
        return misuse(err, "%s expects a number of at least %llu, not '%s'", typed,
                      (unsigned long long)row->min, shown);
    case OPTION_NUMBERS:
        if (parse_range(place, text, row->min, row->max))
            return STATUS_OK;
        return misuse(err,
                      "%s expects a number from %llu to %llu, or a range A:B or A:B:STEP with A "
                      "below B, not '%s'",
                      typed, (unsigned long long)row->min, (unsigned long long)row->max, shown);
    case OPTION_SIZE:
        if (parse_size(place, text))
            return STATUS_OK;
        return misuse(err, "%s expects a size such as 64M or 2G, not '%s'", typed, shown);
    case OPTION_SECONDS:
    case OPTION_EVERY:
        if (parse_seconds(place, text))
            return STATUS_OK;
        return misuse(err, "%s expects a time such as 90, 15m, 01:30:00 or 1-12:00:00, not '%s'",
                      typed, shown);
    case OPTION_REAL:
        if (parse_double(place, text))
            return STATUS_OK;
        return misuse(err, "%s expects a number of at least 0, not '%s'", typed, shown);
    case OPTION_SHARE:
        if (parse_share(place, text))
            return STATUS_OK;
        return misuse(err, "%s expects a number or a percentage such as 0.5%%, not '%s'", typed,
                      shown);
    case OPTION_CHOICE: {
        int index = choice_index(row->value, text);
        if (index < 0)
            return misuse(err, "%s must be one of %s, not '%s'", typed, row->value, shown);
        *(int *)place = index;
        return STATUS_OK;
    }
    }
    assert(!"every type of value is handled above");
    return STATUS_FAILED;
}

static enum status mark_given(struct options *options, const struct option *row, struct error *err)
{
    for (unsigned i = 0; i < options->given_count; i++)
        if (options->given[i] == row)
            return STATUS_OK;
    if (options->given_count == OPTIONS_MAX_GIVEN)
        return misuse(err, "more than %d different options", OPTIONS_MAX_GIVEN);
    options->given[options->given_count++] = row;
    return STATUS_OK;
}

enum status option_set(struct options *options, const struct option *row, const char *text,
                       struct error *err)
{
    return set_value(options, row, row->name, text, err);
}

bool options_take(struct options *options, const char *name, const char *text)
{
    const struct option *row = option_find(options->command, name, strlen(name));
    struct error ignored = ERROR_INIT;
    return row && !options_given(options, name) &&
           set_value(options, row, name, text, &ignored) == STATUS_OK &&
           mark_given(options, row, &ignored) == STATUS_OK;
}

bool options_given(const struct options *options, const char *name)
{
    for (unsigned i = 0; i < options->given_count; i++)
        if (strcmp(options->given[i]->name, name) == 0)
            return true;
    return false;
}

const void *option_at(const struct options *options, const char *name)
{
    const struct option *row = option_find(options->command, name, strlen(name));
    return row ? (const char *)options + row->at : NULL;
}

bool json_owns_stdout(const struct options *options)
{
    return options->json &&
           (strcmp(options->json, "-") == 0 || strcmp(options->json, "/dev/stdout") == 0);
}

const char *option_choice(char *buffer, size_t size, const struct options *options,
                          const char *name)
{
    const struct option *row = option_find(options->command, name, strlen(name));
    assert(row && row->type == OPTION_CHOICE);
    int index = *(const int *)option_at(options, name);
    const char *word = row->value;
    for (int i = 0; i < index; i++)
        word += strcspn(word, "|") + 1;
    snprintf(buffer, size, "%.*s", index < 0 ? 0 : (int)strcspn(word, "|"), word);
    return buffer;
}

/* --- ranges of numbers in names ------------------------------------------------------------- */

#define DIGITS_MAX 9

struct name_range {
    const char *open, *behind; /* the '{', and the place after the '}' */
    unsigned first, last;
    int width;
};

/* Reads decimal digits; returns how many. */
static int read_digits(unsigned *out, const char *text)
{
    const int digits = (int)strspn(text, "0123456789");
    *out = digits > 0 && digits <= DIGITS_MAX ? (unsigned)strtoul(text, NULL, 10) : 0;
    return digits <= DIGITS_MAX ? digits : 0;
}

/* The first range of the name. */
static bool find_range(struct name_range *out, const char *name)
{
    for (const char *open = strchr(name, '{'); open; open = strchr(open + 1, '{')) {
        *out = (struct name_range){.open = open};
        const int digits = read_digits(&out->first, open + 1);
        const char *dots = open + 1 + digits;
        if (digits == 0 || strncmp(dots, "..", 2) != 0)
            continue;
        const int more = read_digits(&out->last, dots + 2);
        if (more == 0 || dots[2 + more] != '}')
            continue;
        if (open[1] == '0' || dots[2] == '0')
            out->width = digits > more ? digits : more;
        out->behind = dots + 2 + more + 1;
        return true;
    }
    return false;
}

struct expansion {
    const char **made;
    unsigned count, most;
};

static enum status add_name(struct expansion *expansion, const char *name, struct error *err)
{
    if (array_grow(&expansion->made, expansion->count, sizeof *expansion->made, "the sources", err))
        return STATUS_FAILED;
    expansion->made[expansion->count] = strdup(name);
    if (!expansion->made[expansion->count])
        return error_memory(err, strlen(name) + 1, "the sources");
    expansion->count++;
    return STATUS_OK;
}

/* Adds the names that a range stands for. */
static enum status expand_name(struct expansion *expansion, const char *name, struct error *err)
{
    struct name_range name_range;
    enum status status = STATUS_OK;
    if (!find_range(&name_range, name))
        return add_name(expansion, name, err);
    const int step = name_range.first <= name_range.last ? 1 : -1;
    for (unsigned i = name_range.first; status == STATUS_OK; i += (unsigned)step) {
        char *one;
        if (expansion->count >= expansion->most)
            return error_set(
                err, STATUS_USAGE,
                "a range of SOURCEs stands for more than %u names: write them to a file "
                "and give @FILE",
                expansion->most);
        if (asprintf(&one, "%.*s%0*u%s", (int)(name_range.open - name), name, name_range.width, i,
                     name_range.behind) < 0)
            return error_memory(err, strlen(name) + 16, "the sources");
        status = expand_name(expansion, one, err);
        free(one);
        if (i == name_range.last)
            break;
    }
    return status;
}

/* Expands operands with a range {FIRST..LAST} of decimal numbers, in ascending or descending order,
 * with as many digits as the longer number if one begins with 0. The name of an existing file is not
 * changed; of several ranges the last varies fastest. STATUS_USAGE: more names than the command takes. */
static enum status expand_operands(struct options *out, struct error *err)
{
    struct expansion expansion = {.most = out->command->operands.most};
    enum status status = STATUS_OK;
    bool any = false;
    for (unsigned i = 0; i < out->operand_count; i++)
        any |= find_range(&(struct name_range){0}, out->operand[i]);
    if (!any)
        return STATUS_OK;
    for (unsigned i = 0; i < out->operand_count && status == STATUS_OK; i++) {
        const char *name = out->operand[i];
        struct stat st;
        status = name[0] != '@' && path_stat_at(AT_FDCWD, name, &st, AT_SYMLINK_NOFOLLOW) != 0
                     ? expand_name(&expansion, name, err)
                     : add_name(&expansion, name, err);
    }
    free(out->operand);
    out->operand = expansion.made;
    out->operand_count = expansion.count;
    out->made_operands = true;
    return status;
}

/* --- the line -------------------------------------------------------------------------------- */

/* argv[*at] is a long option. */
static enum status parse_long(struct options *options, int argc, char *const *argv, int *at,
                              struct error *err)
{
    const char *text = argv[*at] + 2;
    size_t length = strcspn(text, "=");
    const struct option *row = option_find(options->command, text, length);
    if (!row)
        return unknown_option(options->command, text, length, err);
    char typed[NAME_LONGEST + 3];
    snprintf(typed, sizeof typed, "--%s", row->name);
    enum status status = mark_given(options, row, err);
    if (status != STATUS_OK)
        return status;
    if (row->type == OPTION_FLAG) {
        if (text[length])
            return misuse(err, "%s takes no value", typed);
        return set_value(options, row, typed, "on", err);
    }
    if (text[length])
        return set_value(options, row, typed, text + length + 1, err);
    const bool none = *at + 1 >= argc;
    double time;
    if (row->type == OPTION_EVERY && (none || !parse_seconds(&time, argv[*at + 1])))
        return set_value(options, row, typed, row->initial, err);
    uint64_t number;
    if (row->type == OPTION_MAYBE && (none || !parse_u64(&number, argv[*at + 1], 0, UINT64_MAX)))
        return STATUS_OK;
    if (none)
        return misuse(err, "%s requires a value: %s", typed, row->value);
    return set_value(options, row, typed, argv[++*at], err);
}

/* argv[*at] is one short option or several flags: "-k", "-k5", "-qv". */
static enum status parse_short(struct options *options, int argc, char *const *argv, int *at,
                               struct error *err)
{
    for (const char *text = argv[*at] + 1; *text; text++) {
        const struct option *row = find_letter(options->command, *text);
        char hint[80];
        if (!row)
            return misuse(err, "unknown option -%c in '%s'%s",
                          *text > ' ' && *text < 127 ? *text : '?', PATH_TEXT_IN(120, argv[*at]),
                          hint_for(hint, sizeof hint, options->command, text, 1));
        enum status status = mark_given(options, row, err);
        if (status != STATUS_OK)
            return status;
        char typed[3] = {'-', row->letter, 0};
        if (row->type == OPTION_FLAG) {
            set_value(options, row, typed, "on", err);
            continue;
        }
        if (text[1])
            return set_value(options, row, typed, text + 1 + (text[1] == '='), err);
        if (*at + 1 >= argc)
            return misuse(err, "%s requires a value: %s", typed, row->value);
        return set_value(options, row, typed, argv[++*at], err);
    }
    return STATUS_OK;
}

static enum status check_operands(const struct options *options, struct error *err)
{
    const struct command *command = options->command;
    if (options->operand_count < command->operands.least && !options_given(options, "drop-source"))
        return misuse(err, "%s is missing; usage: clpipe %s %s", command->operand_name,
                      command->name, command->arguments);
    if (options->operand_count > command->operands.most)
        return misuse(err, "unexpected argument '%s'; usage: clpipe %s %s",
                      PATH_TEXT(options->operand[command->operands.most]), command->name,
                      command->arguments);
    for (unsigned i = 0; i < options->operand_count; i++)
        if (!options->operand[i][0])
            return misuse(err, "the name given for %s is empty", command->operand_name);
    return STATUS_OK;
}

static enum status take_shard(struct options *out, struct error *err)
{
    if (options_given(out, "limit"))
        return misuse(err, "--shard and --limit cannot be combined");
    enum status status = shard_option_read(&out->share, out->shard, err);
    out->merges_shards = out->command->ranks_merge && strcmp(out->shard, "mpi") == 0 &&
                         !out->dry_run && !(out->output && strstr(out->output, SHARD_PLACE));
    if (status != STATUS_OK || !out->output || out->merges_shards)
        return status;
    out->made_output = shard_option_name(out->output, &out->share);
    if (!out->made_output)
        return error_memory(err, strlen(out->output), "the output's name");
    out->output = out->made_output;
    return STATUS_OK;
}

/* Sets all options to their defaults. */
static void set_initial(struct options *out)
{
    const struct option_group *group;
    for (unsigned i = 0; (group = option_group_at(out->command, i)); i++)
        for (const struct option *row = group->row; row->name; row++) {
            /* A command's own row takes precedence over a row of all commands with the same
             * name. */
            if (option_find(out->command, row->name, strlen(row->name)) != row)
                continue;
            if (row->type == OPTION_CHOICE)
                *(int *)((char *)out + row->at) = -1;
            /* A list's default applies only if the list stays empty, so its reader applies it. */
            if (row->initial && row->type != OPTION_LIST) {
                enum status status = set_value(out, row, row->name, row->initial, NULL);
                assert(status == STATUS_OK);
                (void)status;
            }
        }
}

enum status options_parse(struct options **made, const struct command *command, int argc,
                          char *const *argv, struct error *err)
{
    struct options *out = *made = calloc(1, command->size ? command->size : sizeof *out);
    if (!out)
        return error_memory(err, command->size, "the command line");
    out->command = command;
    set_initial(out);
    out->operand = calloc((size_t)argc + 1, sizeof *out->operand);
    out->command_line = quote_command(argc, argv);
    if (!out->operand || !out->command_line)
        return error_memory(err, (size_t)argc * sizeof *out->operand, "the command line");
    bool ended = false;
    for (int at = 2; at < argc; at++) {
        enum status status = STATUS_OK;
        if (ended || argv[at][0] != '-' || !argv[at][1])
            out->operand[out->operand_count++] = argv[at];
        else if (strcmp(argv[at], "--") == 0)
            ended = true;
        else if (argv[at][1] == '-')
            status = parse_long(out, argc, argv, &at, err);
        else
            status = parse_short(out, argc, argv, &at, err);
        if (status != STATUS_OK)
            return status;
    }
    enum status status = STATUS_OK;
    if (strcmp(command->operand_name, "SOURCE") == 0)
        status = expand_operands(out, err);
    if (status == STATUS_OK)
        status = check_operands(out, err);
    return status == STATUS_OK && out->shard ? take_shard(out, err) : status;
}

void options_close(struct options **options)
{
    struct options *out = *options;
    const struct option_group *group;
    if (!out)
        return;
    for (unsigned i = 0; (group = option_group_at(out->command, i)); i++)
        for (const struct option *row = group->row; row->name; row++)
            if (row->type == OPTION_LIST)
                free(((struct text_list *)((char *)out + row->at))->text);
    for (unsigned i = 0; out->made_operands && i < out->operand_count; i++)
        free((char *)(uintptr_t)out->operand[i]);
    free(out->operand);
    free(out->command_line);
    free(out->made_output);
    free(out);
    *options = NULL;
}

enum status options_check_output(const struct options *options, const char *option,
                                 const char *path, struct error *err)
{
    struct output *claim;
    struct stat st, input;
    if (path && sink_is_stdout(path) && json_owns_stdout(options))
        return misuse(err, "%s and --json - cannot both use standard output: name a file", option);
    /* Held until the process ends; a failure is reported when the file is written. */
    if (path && !sink_is_stdout(path))
        output_claim(&claim, path, NULL, NULL, NULL);
    if (!path || stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return STATUS_OK;
    const char *shown = PATH_TEXT(path);
    if (stat(options->operand[0], &input) == 0 && input.st_dev == st.st_dev &&
        input.st_ino == st.st_ino)
        return misuse(err, "%s %s is the input of this command", option, shown);
    if (options->force || st.st_size == 0)
        return STATUS_OK;
    return error_set(err, STATUS_FAILED,
                     "%s exists; replace it with --force, or name another file with %s", shown,
                     option);
}

enum status carried_check(const struct options *options, const char *path, struct error *err)
{
    if (options->drop_references)
        foreign_drop_references();
    return path && !options->dry_run ? foreign_check_file(path, err) : STATUS_OK;
}

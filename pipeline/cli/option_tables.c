/* option_tables.c: the table of commands, and options of all or many of them. */
#include "cli/commands.h"
#include "cli/option_rows.h"

#define COMMAND_AT(name) &command_##name,

const struct command *const commands[] = {COMMANDS(COMMAND_AT) NULL};

#define OWN struct options

static const struct option general_rows[] = {
    CHOICE("progress", progress, "auto|always|never",
           "auto: a live line on a terminal, otherwise a plain line every few seconds; always: "
           "even with -q, and every second without a terminal",
           .initial = "auto"),
    OUTPUT("json", json, "FILE.json",
           "write the result as JSON; - is standard output, which then holds nothing else"),
    FLAG("quiet", quiet, "print errors only", .letter = 'q'),
    FLAG("verbose", verbose, "print more detail", .letter = 'v'),
    CHOICE("mpi", mpi, "auto|openmpi|mpich|off",
           "auto: processes started by mpirun, mpiexec or srun share the work if the command can "
           "do that, else they are refused; off: each works on its own",
           .initial = "auto"),
    {.name = NULL}};
const struct option_group group_general = {"General", general_rows};

static const struct option compute_rows[] = {
    TEXT("device", device, "cpu|gpu|all|SEL",
         "a type, all, numbers from clpipe devices (0,2), or part of a name",
         .note = "the best one, GPU before CPU"),
    NUMBER("threads", threads, "N", "number of decode and host threads",
           .note = "the CPUs this process may use", .min = 1, .max = 4096),
    SIZE("memory", memory, "SIZE", "limit on clpipe's own host buffers", .initial = "256M",
         .note = "256M, or 16M per thread of an ingest if that is more; up to 1G with a GPU that "
                 "decodes JPEG"),
    SIZE("device-memory", device_memory, "SIZE", "limit on the buffers on each device",
         .note = "the memory of the device"),
    OUTPUT("profile", profile, "TRACE.json", "record a timeline, for ui.perfetto.dev"),
    {.name = NULL}};
const struct option_group group_compute = {"Device and machine", compute_rows};

const struct option carried_rows[] = {
    FLAG("drop-references", drop_references,
         "leave out objects that cannot be kept: those with references, and virtual datasets"),
    {.name = NULL}};

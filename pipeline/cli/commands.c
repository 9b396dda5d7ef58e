/* commands.c: the table of commands, with their help texts. */
#include "cli/commands.h"
#include "cli/option_rows.h"

const struct command command_run = {.name = "run",
     .goal = GOAL_JOB,
     .arguments = "SOURCE... [-k K] [-o F.h5] [OPTIONS]",
     .summary = "extract features from a directory of images and cluster them",
     .about =
         "Decodes every image in the sources, computes its features, clusters the images with "
         "k-means and writes one HDF5 file, which also lists the files that failed and why. "
         "Run the same command again to add new files, or to resume after an interruption. A "
         "further source is added to those that the file has; options that are not given are taken "
         "from the file.\n"
         "SOURCE is a directory, a file, a tar or zip archive, @LIST (a file of paths, one per "
         "line or separated by NUL), - (such a list on standard input) or tar:- (a tar on standard "
         "input, which is not kept).",
     .examples = "  clpipe run ~/Pictures\n"
                 "  clpipe run photos scans -k 24 -o archive.h5\n"
                 "  clpipe run photos --feature hsv:bins=8x4x4,grid=3x3 --exclude '*.png'",
     .operand_name = "SOURCE",
     .min_operands = 1,
     .max_operands = 65535,
     .computes = true,
     .group = {{GROUP_RUN_OUTPUT}, {GROUP_INGEST}, {GROUP_IMAGES}, {GROUP_CLUSTER_RUN}, {GROUP_TUNING}, {GROUP_CARRIED}},
     .run = run_run};

const struct command command_ingest = {.name = "ingest",
     .goal = GOAL_STEPS,
     .arguments = "SOURCE... -o F.h5 [OPTIONS]",
     .summary = "extract features from images into a file",
     .about =
         "Decodes every image in the sources and writes its features to F.h5. If F.h5 exists, it "
         "is updated: only new and changed files are read, a further source is added, a source "
         "that is not given stays as it is, and options that are not given are taken from the "
         "file. Run the same command again to resume after an interruption.\n"
         "SOURCE is a directory, a file, a tar or zip archive, @LIST (a file of paths, one per "
         "line or separated by NUL), - (such a list on standard input) or tar:- (a tar on standard "
         "input, which is not kept).",
     .examples = "  clpipe ingest photos -o photos.h5\n"
                 "  clpipe ingest photos -o photos.h5 --feature rgb:bins=8x8x8 --feature gray\n"
                 "  find /data -name '*.jpg' -print0 | clpipe ingest - -o data.h5",
     .operand_name = "SOURCE",
     .min_operands = 1,
     .max_operands = 65535,
     .computes = true,
     .ranks_apart = true,
     .group = {{GROUP_INGEST_OUTPUT}, {GROUP_INGEST}, {GROUP_IMAGES}, {GROUP_TUNING}, {GROUP_CARRIED}},
     .run = run_ingest};

const struct command command_cluster = {.name = "cluster",
     .goal = GOAL_STEPS,
     .arguments = "INPUT... -k K [OPTIONS]",
     .summary = "cluster rows with k-means",
     .about = "INPUT is a clpipe file, a dataset of any HDF5 file (FILE.h5:/dataset) or FILE.npy. "
              "The clusters are stored in the clpipe file, which is replaced by a new copy and "
              "never changed in place; for the other inputs, -o names the file to write. Several clpipe "
              "files are taken as merge would join them; that requires -o, too.",
     .examples = "  clpipe cluster photos.h5 -k 24\n"
                 "  clpipe cluster photos.h5 -k 2:40 --plot k.svg\n"
                 "  clpipe cluster photos.h5 -k 100 --name fine --n-init 5\n"
                 "  clpipe cluster embeddings.npy -k 256 --metric cosine -o groups.h5\n"
                 "  clpipe cluster shards/*.h5 -k 1000 -o groups.h5",
     .operand_name = "INPUT",
     .min_operands = 1,
     .max_operands = 65535,
     .joins = 1,
     .joins_output = true,
     .computes = true,
     .ranks_share = true,
     .group = {{GROUP_CLUSTER}, {GROUP_CARRIED}},
     .run = run_cluster};

const struct command command_select = {.name = "select",
     .goal = GOAL_RESULTS,
     .arguments = "F.h5 [N] [OPTIONS]",
     .summary = "choose images: balanced, diverse, of those that are alike one",
     .about =
         "Chooses N images and stores the choice in the file as selections/NAME, with the reason for each. "
         "balanced takes as many from each cluster as is possible, at random within it, and gives what small "
         "clusters leave over to the others; where clusters have levels, so at each of them. nearest takes "
         "those nearest to the centres, from all clusters in turn. diverse takes the image that is farthest "
         "from all before, again and again. random takes any. The choice depends on the file, the options "
         "and --seed alone; with balanced, nearest and random that of a smaller N is its beginning.",
     .examples = "  clpipe select photos.h5 1000\n"
                 "  clpipe select photos.h5 500 --method diverse --name varied\n"
                 "  clpipe select photos.h5 --semantic 0.95 --name unlike --to-list unlike.list\n"
                 "  clpipe export photos.h5 --what selection --name varied",
     .operand_name = "F.h5 or N",
     .min_operands = 1,
     .max_operands = 2,
     .threads = true,
     .group = {{GROUP_SELECT}, {GROUP_CARRIED}},
     .run = run_select};

const struct command *const commands[] = {&command_run,        &command_ingest,
                                          &command_list,       &command_codebook,
                                          &command_cluster,    &command_assign,
                                          &command_import,     &command_merge,
                                          &command_info,       &command_report,
                                          &command_export,     &command_similar,
                                          &command_evaluate,   &command_select,
                                          &command_remove,     &command_rename,
                                          &command_duplicates, &command_verify,
                                          &command_repair,     &command_devices,
                                          &command_formats,    &command_self_test,
                                          &command_bench,      &command_tune,
                                          &command_ndrange,    NULL};

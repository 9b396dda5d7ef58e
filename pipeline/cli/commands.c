/* commands.c: the table of commands, with their help texts. */
#include "cli/commands.h"

#define JOB     "The whole job"
#define STEPS   "Step by step"
#define RESULTS "Look at results"
#define MACHINE "This machine"

const struct command commands[] = {
    {.name = "run",
     .goal = JOB,
     .arguments = "SOURCE... [-k K] [-o F.h5] [OPTIONS]",
     .summary = "features and clusters of the images in a directory",
     .about = "Reads every image under the sources, computes its colour features, groups the "
              "images with k-means and writes everything into one HDF5 file, with a list of the "
              "files that failed and why. The same command again takes in only what is new; "
              "interrupted, it goes on from there.\n"
              "SOURCE is a directory, a file, @LIST (a file with one path for each line, or "
              "separated by NUL) or - (such a list on standard input).",
     .examples = "  clpipe run ~/Pictures\n"
                 "  clpipe run photos scans -k 24 -o archive.h5\n"
                 "  clpipe run photos --feature hsv:bins=8x4x4,grid=3x3 --exclude '*.png'",
     .operand_name = "SOURCE",
     .min_operands = 1,
     .max_operands = 65535,
     .computes = true,
     .group = {&group_run_output, &group_ingest, &group_cluster_run, &group_tuning},
     .run = command_run},
    {.name = "ingest",
     .goal = STEPS,
     .arguments = "SOURCE... -o F.h5 [OPTIONS]",
     .summary = "features of images into a file",
     .about = "Reads every image under the sources and writes its features into F.h5. An existing "
              "clpipe file of the same sources and options is updated: only what is new or changed "
              "is read. Interrupted, the same command goes on from there.\n"
              "SOURCE is a directory, a file, @LIST (a file with one path for each line, or "
              "separated by NUL) or - (such a list on standard input).",
     .examples = "  clpipe ingest photos -o photos.h5\n"
                 "  clpipe ingest photos -o photos.h5 --feature rgb:bins=8x8x8 --feature gray\n"
                 "  find /data -name '*.jpg' -print0 | clpipe ingest - -o data.h5",
     .operand_name = "SOURCE",
     .min_operands = 1,
     .max_operands = 65535,
     .computes = true,
     .group = {&group_ingest_output, &group_ingest, &group_tuning},
     .run = command_ingest},
    {.name = "cluster",
     .goal = STEPS,
     .arguments = "INPUT -k K [OPTIONS]",
     .summary = "group rows by k-means",
     .about = "INPUT is a clpipe file (the clusters are stored in it), FILE.h5:/dataset of any "
              "HDF5 file, or FILE.npy (both with -o). A clpipe file is written anew and renamed, "
              "never changed in place.",
     .examples = "  clpipe cluster photos.h5 -k 24\n"
                 "  clpipe cluster photos.h5 -k 2:40 --plot k.svg\n"
                 "  clpipe cluster photos.h5 -k 100 --name fine --n-init 5\n"
                 "  clpipe cluster embeddings.npy -k 256 --metric cosine -o groups.h5",
     .operand_name = "INPUT",
     .min_operands = 1,
     .max_operands = 1,
     .computes = true,
     .group = {&group_cluster},
     .run = command_cluster},
    {.name = "assign",
     .goal = STEPS,
     .arguments = "C.h5 INPUT [OPTIONS]",
     .summary = "label rows by the centroids of another file",
     .about =
         "Gives each row of INPUT the label of the nearest centroid in C.h5. INPUT is a clpipe "
         "file of the same feature (the labels are stored in it), FILE.h5:/dataset of any "
         "HDF5 file, or FILE.npy (both with -o).",
     .examples = "  clpipe ingest new-photos -o new.h5\n"
                 "  clpipe assign photos.h5 new.h5\n"
                 "  clpipe assign groups.h5 new.npy -o labels.h5",
     .operand_name = "C.h5 or INPUT",
     .min_operands = 2,
     .max_operands = 2,
     .computes = true,
     .group = {&group_assign},
     .run = command_assign},
    {.name = "info",
     .goal = RESULTS,
     .arguments = "F.h5 [OPTIONS]",
     .summary = "what is inside a file, what failed and why",
     .operand_name = "F.h5",
     .min_operands = 1,
     .max_operands = 1,
     .group = {&group_info},
     .run = command_info},
    {.name = "export",
     .goal = RESULTS,
     .arguments = "F.h5 --what features|labels|failures|images|tree [OPTIONS]",
     .summary = "tables for other programs, or a folder per cluster",
     .about = "Tables go to standard output or to -o FILE. A tree is a new directory with one "
              "folder for each cluster, in which every image appears as a link or a copy.",
     .examples = "  clpipe export photos.h5 --what labels > labels.csv\n"
                 "  clpipe export photos.h5 --what features --format npy -o features.npy\n"
                 "  clpipe export photos.h5 --what tree --to sorted",
     .operand_name = "F.h5",
     .min_operands = 1,
     .max_operands = 1,
     .group = {&group_export},
     .run = command_export},
    {.name = "verify",
     .goal = RESULTS,
     .arguments = "F.h5 [OPTIONS]",
     .summary = "check a file for damage and contradictions",
     .about = "Prints a line for each check that fails, and exits with 1 if there is one.",
     .operand_name = "F.h5",
     .min_operands = 1,
     .max_operands = 1,
     .group = {NULL},
     .run = command_verify},
    {.name = "repair",
     .goal = RESULTS,
     .arguments = "F.h5 [OPTIONS]",
     .summary = "save the intact rows of a damaged or unfinished file",
     .about =
         "Checks F.h5 as verify does and writes a new file with the intact rows; the old one is "
         "kept as F.h5.damaged. If F.h5 is missing or cannot be read, the finished work in "
         "F.h5.partial is written. Run the command that made the file again to add what is "
         "missing. Exits with 1 if something was wrong.",
     .examples = "  clpipe repair photos.h5 --dry-run\n"
                 "  clpipe repair photos.h5\n"
                 "  clpipe repair photos.h5 -o saved.h5",
     .operand_name = "F.h5",
     .min_operands = 1,
     .max_operands = 1,
     .group = {&group_repair},
     .run = command_repair},
    {.name = "devices",
     .goal = MACHINE,
     .arguments = "[OPTIONS]",
     .summary = "list OpenCL devices and show which one is used",
     .operand_name = "",
     .computes = true,
     .group = {NULL},
     .run = command_devices},
    {.name = "formats",
     .goal = MACHINE,
     .arguments = "[OPTIONS]",
     .summary = "list the image formats that this program reads",
     .operand_name = "",
     .group = {NULL},
     .run = command_formats},
    {.name = "self-test",
     .goal = MACHINE,
     .arguments = "[OPTIONS]",
     .summary = "compare the results of a device with plain C",
     .about = "Runs every histogram variant that the device can run, on synthetic images, "
              "the blur and a small k-means, and compares the results bit by bit. Exits with 1 if "
              "one is wrong.",
     .operand_name = "",
     .computes = true,
     .group = {NULL},
     .run = command_self_test},
    {.name = "bench",
     .goal = MACHINE,
     .arguments = "[OPTIONS]",
     .summary = "measure how fast a device computes histograms",
     .about =
         "Computes histograms of synthetic images with every variant and compares the time, by the "
         "device's own clock, with that of a kernel that only reads them; on CPU devices "
         "also with a plain C loop on as many threads. Every count is compared with plain C; "
         "exits with 1 if one is wrong. Whole ingests are measured by tools/bench.",
     .examples = "  clpipe bench\n"
                 "  clpipe bench --device gpu --feature rgb:bins=256 --fill all --shape all",
     .operand_name = "",
     .computes = true,
     .group = {&group_bench},
     .run = command_bench},
    {.name = "tune",
     .goal = MACHINE,
     .arguments = "[OPTIONS]",
     .summary = "select the fastest kernels for later ingests",
     .about = "Computes histograms of synthetic images (constant, natural and random, large and "
              "small) with every variant that suits the device and with work-groups, copies and "
              "tiles of several sizes. The fastest for each kind of feature is stored until the "
              "driver or clpipe's kernels change; ingest and run use it unless --histogram-variant "
              "chooses another. This changes speed, never results. Exits with 1 if a variant gives "
              "wrong counts; it is then never used.",
     .examples = "  clpipe tune --device all\n"
                 "  clpipe tune --feature rgb:bins=8x8x8\n"
                 "  clpipe tune --show",
     .operand_name = "",
     .computes = true,
     .group = {&group_tune},
     .run = command_tune},
    {.name = "ndrange",
     .goal = MACHINE,
     .arguments = "[WxH] [OPTIONS]",
     .summary = "work-groups that a device accepts for any range",
     .about = "Launches a range of W x H work-items (default: 638x478) in four cases, built as "
              "OpenCL C 1.2 and as 2.0 or 3.0, with the work-group left to the driver and given, "
              "and prints what the work-items at the corners see, or why the launch was refused. "
              "With --image, each case blurs an image over its interior and compares the result "
              "with plain C. Exits with 1 if one is wrong.",
     .examples = "  clpipe ndrange\n"
                 "  clpipe ndrange 1000x700 --local 32x8\n"
                 "  clpipe ndrange --image photo.jpg --out blurred",
     .operand_name = "",
     .max_operands = 1,
     .computes = true,
     .group = {&group_ndrange},
     .run = command_ndrange},
    {.name = NULL},
};

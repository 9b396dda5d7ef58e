/* commands.c: the table of commands, with their help texts. */
#include "cli/commands.h"

#define JOB     "All in one step"
#define STEPS   "Step by step"
#define RESULTS "Results"
#define MACHINE "This machine"

const struct command commands[] = {
    {.name = "run",
     .goal = JOB,
     .arguments = "SOURCE... [-k K] [-o F.h5] [OPTIONS]",
     .summary = "extract features from a directory of images and cluster them",
     .about =
         "Decodes every image in the sources, computes its features, clusters the images with "
         "k-means and writes one HDF5 file, which also lists the files that failed and why. "
         "Run the same command again to add new files, or to resume after an interruption. A "
         "further source is added to those that the file has; options that are not given are taken "
         "from the file.\n"
         "SOURCE is a directory, a file, a tar or zip archive, @LIST (a file of paths, one per "
         "line or separated by NUL) or - (such a list on standard input).",
     .examples = "  clpipe run ~/Pictures\n"
                 "  clpipe run photos scans -k 24 -o archive.h5\n"
                 "  clpipe run photos --feature hsv:bins=8x4x4,grid=3x3 --exclude '*.png'",
     .operand_name = "SOURCE",
     .min_operands = 1,
     .max_operands = 65535,
     .computes = true,
     .group = {&group_run_output, &group_ingest, &group_images, &group_cluster_run, &group_tuning,
               &group_carried},
     .run = command_run},
    {.name = "ingest",
     .goal = STEPS,
     .arguments = "SOURCE... -o F.h5 [OPTIONS]",
     .summary = "extract features from images into a file",
     .about =
         "Decodes every image in the sources and writes its features to F.h5. If F.h5 exists, it "
         "is updated: only new and changed files are read, a further source is added, a source "
         "that is not given stays as it is, and options that are not given are taken from the "
         "file. Run the same command again to resume after an interruption.\n"
         "SOURCE is a directory, a file, a tar or zip archive, @LIST (a file of paths, one per "
         "line or separated by NUL) or - (such a list on standard input).",
     .examples = "  clpipe ingest photos -o photos.h5\n"
                 "  clpipe ingest photos -o photos.h5 --feature rgb:bins=8x8x8 --feature gray\n"
                 "  find /data -name '*.jpg' -print0 | clpipe ingest - -o data.h5",
     .operand_name = "SOURCE",
     .min_operands = 1,
     .max_operands = 65535,
     .computes = true,
     .ranks_apart = true,
     .group = {&group_ingest_output, &group_ingest, &group_images, &group_tuning, &group_carried},
     .run = command_ingest},
    {.name = "list",
     .goal = STEPS,
     .arguments = "SOURCE... -o LIST [OPTIONS]",
     .summary = "list the files of sources once, for many ingests",
     .about =
         "Walks the sources, looks into archives, and writes the paths, sizes and times of all files, and "
         "the places of members, to LIST. A command that is given @LIST walks nothing: so each of "
         "many shards begins at once. Paths are relative to the directory in which list runs; use "
         "LIST there. A file that has changed since is a failure.",
     .examples = "  clpipe list photos 'shard-{0000..0999}.tar' -o all.list\n"
                 "  clpipe ingest @all.list -o 'part-{shard}.h5' --shard slurm/64",
     .operand_name = "SOURCE",
     .min_operands = 1,
     .max_operands = 65535,
     .group = {&group_list},
     .run = command_list},
    {.name = "codebook",
     .goal = STEPS,
     .arguments = "SOURCE... -o C.h5 --feature SPEC|--preset NAME [OPTIONS]",
     .summary = "learn the codebooks of features from a sample of images",
     .about =
         "An ingest learns the codebooks that its features need from its own images. This command "
         "does so once, so that several files have the same: ingest takes the codebooks of C.h5 with "
         "--codebook C.h5, or that of one feature with --feature SPEC,codebook=C.h5. The sample depends on the files alone.",
     .examples = "  clpipe codebook photos -o words.h5 --feature dct:words=512\n"
                 "  clpipe ingest more -o more.h5 --feature dct:words=512,codebook=words.h5\n"
                 "  clpipe codebook photos -o fast.h5 --preset fast",
     .operand_name = "SOURCE",
     .min_operands = 1,
     .max_operands = 65535,
     .computes = true,
     .group = {&group_codebook, &group_images},
     .run = command_codebook},
    {.name = "cluster",
     .goal = STEPS,
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
     .group = {&group_cluster, &group_carried},
     .run = command_cluster},
    {.name = "assign",
     .goal = STEPS,
     .arguments = "C.h5 INPUT... [OPTIONS]",
     .summary = "label rows with the centroids of an earlier clustering",
     .about =
         "Labels each row of INPUT with its nearest centroid in C.h5. INPUT is a clpipe file with "
         "the same feature, a dataset of any HDF5 file (FILE.h5:/dataset) or FILE.npy. The labels "
         "are stored in the clpipe file; for the other inputs, and several clpipe files as one, "
         "-o names the file to write.",
     .examples = "  clpipe ingest new-photos -o new.h5\n"
                 "  clpipe assign photos.h5 new.h5\n"
                 "  clpipe assign groups.h5 new.npy -o labels.h5",
     .operand_name = "C.h5 or INPUT",
     .min_operands = 2,
     .max_operands = 65535,
     .joins = 2,
     .joins_output = true,
     .computes = true,
     .ranks_share = true,
     .group = {&group_assign, &group_carried},
     .run = command_assign},
    {.name = "import",
     .goal = STEPS,
     .arguments = "F.h5 NAME=MATRIX [OPTIONS]",
     .summary = "add rows that were computed elsewhere as a feature",
     .about =
         "Stores the rows of MATRIX (FILE.npy, or FILE.h5:/dataset of any HDF5 file) as the feature "
         "NAME of the clpipe file, so that other commands use them like its own features. Row i "
         "belongs to image i, or with --paths to the image of path i: relative to its source, with "
         "the source in front, or absolute. Values are stored as float32.",
     .examples = "  clpipe import photos.h5 clip=clip.npy\n"
                 "  clpipe import photos.h5 clip=clip.npy --paths clip.txt --allow-missing\n"
                 "  clpipe import photos.h5 dino=embeddings.h5:/dino/vectors\n"
                 "  clpipe cluster photos.h5 --feature clip -k 24 --metric cosine",
     .operand_name = "F.h5 or NAME=MATRIX",
     .min_operands = 2,
     .max_operands = 2,
     .computes = true,
     .group = {&group_import, &group_carried},
     .run = command_import},
    {.name = "merge",
     .goal = STEPS,
     .arguments = "A.h5 B.h5... -o ALL.h5 [OPTIONS]",
     .summary = "join the results of several ingests to one",
     .about =
         "Takes all shards of an ingest (ingest --shard), in any order, or ingests of different "
         "sources, whose rows follow each other as the files are given. ALL.h5 has the rows, the "
         "failures and the identity of one ingest of everything, and every command takes it. It "
         "refers to the rows of its parts by relative paths (HDF5 virtual datasets) and holds "
         "their sizes and digests, which are checked before they are read; with --copy it holds "
         "the rows themselves. Clusterings, imported features and neighbours are not merged.",
     .examples = "  clpipe merge shards/*.h5 -o all.h5\n"
                 "  clpipe merge 2023.h5 2024.h5 -o photos.h5 --copy",
     .operand_name = "FILE",
     .min_operands = 2,
     .max_operands = 65535,
     .group = {&group_merge, &group_carried},
     .run = command_merge},
    {.name = "info",
     .goal = RESULTS,
     .arguments = "F.h5 [OPTIONS]",
     .summary = "show the contents of a file, and what failed and why",
     .operand_name = "F.h5",
     .min_operands = 1,
     .max_operands = 1,
     .group = {&group_info},
     .run = command_info},
    {.name = "report",
     .goal = RESULTS,
     .arguments = "F.h5 [-o DIR] [OPTIONS]",
     .summary = "write pages that show the images, for a browser",
     .about = "Writes a directory of static pages with thumbnails: the clusters, a map of all images, "
              "similar images, duplicates, and the files that failed. Open DIR/index.html; no "
              "server or network is needed. The pages name no user, host or absolute path.",
     .examples = "  clpipe report photos.h5\n"
                 "  clpipe report photos.h5 --name fine -o fine-report",
     .operand_name = "F.h5",
     .min_operands = 1,
     .max_operands = 1,
     .computes = true,
     .group = {&group_report},
     .run = command_report},
    {.name = "export",
     .goal = RESULTS,
     .arguments = "F.h5... --what WHAT [OPTIONS]",
     .summary = "write tables, a folder per cluster, or shards to train on",
     .about = "Tables are written to standard output or to -o FILE, which is not replaced without "
              "--force. A tree is a directory with one folder per cluster, the largest cluster "
              "first; a folder holds a link to each of its images, or a copy, the nearest to the "
              "centre first. Shards are tar archives to train on (WebDataset): each image as it is, with "
              "its path, clusters and, with --feature, row. Several files are taken as merge would join them.",
     .examples = "  clpipe export photos.h5 --what labels > labels.csv\n"
                 "  clpipe export photos.h5 --what features --format npy -o features.npy\n"
                 "  clpipe export photos.h5 --what clusters -o clusters.csv\n"
                 "  clpipe export photos.h5 --what tree --to sorted\n"
                 "  clpipe export photos.h5 --what shards --selection train --shuffle --to shards",
     .operand_name = "F.h5",
     .min_operands = 1,
     .max_operands = 65535,
     .joins = 1,
     .threads = true,
     .group = {&group_export},
     .run = command_export},
    {.name = "similar",
     .goal = RESULTS,
     .arguments = "F.h5... PICTURE|row:N... | --class C | --all [OPTIONS]",
     .summary = "find the images most similar to a picture, or to every image",
     .about =
         "PICTURE is an image of the file (its path as export lists it, or any path that leads to "
         "it), or any other picture, which is decoded and described exactly as those of the file "
         "were; row:N is image N. The nearest images are exact, in the order of their distance, "
         "and of their row where it is equal; an image is never its own neighbour. With --all the "
         "neighbours of every image are stored in the file, which is replaced by a new copy. Of several "
         "pictures those that cannot be compared are named, and the exit status is 1. "
         "Several files before PICTURE are taken as merge would join them.",
     .examples = "  clpipe similar photos.h5 holiday/beach.jpg\n"
                 "  clpipe similar photos.h5 row:17 ~/new.png -n 5 -o similar.csv\n"
                 "  clpipe similar photos.h5 --class castle\n"
                 "  clpipe similar photos.h5 --all --feature clip --metric cosine",
     .operand_name = "F.h5 or PICTURE",
     .min_operands = 1,
     .max_operands = 65535,
     .joins = 1,
     .joins_first = true,
     .computes = true,
     .group = {&group_similar, &group_carried},
     .run = command_similar},
    {.name = "evaluate",
     .goal = RESULTS,
     .arguments = "F.h5 [OPTIONS]",
     .summary = "measure how well features and clusters agree with classes",
     .about =
         "Takes the folders of the images as their classes, or the classes of a table. Retrieval: every "
         "image is a query, and all others are ranked by their distance from it; mAP (mean average "
         "precision) is of the whole ranking, P@1, P@5 and P@10 are the shares of the query's class "
         "among the first, MMAP@10 is the average precision of the first 10, as tables of image "
         "retrieval have it. Clusters: purity, NMI (normalised mutual information) and ARI (adjusted "
         "Rand index) of stored clusterings. Every measure is exact; the device plays no part.",
     .examples = "  clpipe evaluate photos.h5\n"
                 "  clpipe evaluate photos.h5 --feature hsv_8x4x4 --feature hsv_8x4x4+gray_100:0.5\n"
                 "  clpipe evaluate photos.h5 --classes classes.csv --metric cosine --json -",
     .operand_name = "F.h5",
     .min_operands = 1,
     .max_operands = 1,
     .threads = true,
     .group = {&group_evaluate},
     .run = command_evaluate},
    {.name = "select",
     .goal = RESULTS,
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
     .group = {&group_select, &group_carried},
     .run = command_select},
    {.name = "remove",
     .goal = RESULTS,
     .arguments = "F.h5 [NAME...] [OPTIONS]",
     .summary = "remove clusterings, imported features and the like from a file",
     .about = "NAME is clusters/NAME, features/NAME, neighbours/NAME or selections/NAME, or the last "
              "part of it where that is unambiguous. Without NAME, lists what can be removed. Features that clpipe "
              "computed belong to the file and stay. The file is replaced by a new copy.",
     .examples = "  clpipe remove photos.h5\n"
                 "  clpipe remove photos.h5 clusters/kmeans\n"
                 "  clpipe remove photos.h5 features/clip --force",
     .operand_name = "F.h5",
     .min_operands = 1,
     .max_operands = 65535,
     .group = {&group_remove, &group_carried},
     .run = command_remove},
    {.name = "rename",
     .goal = RESULTS,
     .arguments = "F.h5 OLD NEW [OPTIONS]",
     .summary = "rename a clustering",
     .about = "The clustering /clusters/OLD becomes /clusters/NEW. The file is replaced by a new copy.",
     .examples = "  clpipe rename photos.h5 kmeans by-colour",
     .operand_name = "F.h5, OLD or NEW",
     .min_operands = 3,
     .max_operands = 3,
     .group = {&group_carried},
     .run = command_rename},
    {.name = "duplicates",
     .goal = RESULTS,
     .arguments = "F.h5 [OPTIONS]",
     .summary = "find images with the same bytes or pixels, and near copies",
     .about =
         "Prints groups of images: with the same bytes; with the same pixels; and near, that is "
         "encoded again, scaled, cropped, brightened, mirrored, turned a little or captioned. Near "
         "copies are found by the perceptual codes in F.h5; unless the codes almost agree, the "
         "pictures are decoded again and compared. Each image of a group is a copy of its first. "
         "Columns of the table are group, row, path, kind (bytes, pixels or near) and distance (bits "
         "of 256 in which the codes differ from that of the first), with --keep also keep (1; 0: can go; "
         "nothing: that is not proven). Lists and keep follow the files as they are now: what can go is a "
         "file of its own and a proven copy of one that is kept. Nothing is ever deleted.",
     .examples = "  clpipe duplicates photos.h5 --keep best --to-list others\n"
                 "  clpipe duplicates --check others photos.h5 &&\n"
                 "      xargs -0r mv --backup=t -t elsewhere < others\n"
                 "  clpipe duplicates photos.h5\n"
                 "  clpipe duplicates photos.h5 --near 0 -o exact.csv",
     .operand_name = "F.h5",
     .min_operands = 1,
     .max_operands = 1,
     .computes = true,
     .group = {&group_duplicates},
     .run = command_duplicates},
    {.name = "verify",
     .goal = RESULTS,
     .arguments = "F.h5 [OPTIONS]",
     .summary = "check a file for damage and inconsistencies",
     .about = "Prints a line for each check that fails, and exits with 1 if one does.",
     .operand_name = "F.h5",
     .min_operands = 1,
     .max_operands = 1,
     .group = {NULL},
     .run = command_verify},
    {.name = "repair",
     .goal = RESULTS,
     .arguments = "F.h5 [OPTIONS]",
     .summary = "recover the intact rows of a damaged or unfinished file",
     .about = "Checks F.h5 like verify and writes a new file with the intact rows; the old file is "
              "kept as F.h5.damaged. If F.h5 is missing or unreadable, the new file is made from "
              "the finished work in F.h5.partial. To restore the missing rows, run the command "
              "that made the file again. Exits with 1 if a problem was found.",
     .examples = "  clpipe repair photos.h5 --dry-run\n"
                 "  clpipe repair photos.h5\n"
                 "  clpipe repair photos.h5 -o saved.h5",
     .operand_name = "F.h5",
     .min_operands = 1,
     .max_operands = 1,
     .group = {&group_repair, &group_carried},
     .run = command_repair},
    {.name = "devices",
     .goal = MACHINE,
     .arguments = "[OPTIONS]",
     .summary = "list OpenCL devices and show which one is used",
     .operand_name = "",
     .computes = true,
     .ranks_apart = true,
     .group = {NULL},
     .run = command_devices},
    {.name = "formats",
     .goal = MACHINE,
     .arguments = "[OPTIONS]",
     .summary = "list the image formats that this build reads",
     .operand_name = "",
     .ranks_apart = true,
     .group = {NULL},
     .run = command_formats},
    {.name = "self-test",
     .goal = MACHINE,
     .arguments = "[OPTIONS]",
     .summary = "check the results of a device against plain C",
     .about = "Runs every histogram variant that the device supports and the other kernels on "
              "synthetic images, and a small k-means, and compares the results bit by bit. Exits "
              "with 1 if one differs.",
     .operand_name = "",
     .computes = true,
     .ranks_apart = true,
     .group = {NULL},
     .run = command_self_test},
    {.name = "bench",
     .goal = MACHINE,
     .arguments = "[OPTIONS]",
     .summary = "measure how fast a device computes histograms",
     .about =
         "Computes histograms of synthetic images with every variant, and compares the time on the "
         "device's clock with that of a kernel that only reads the pixels; on CPU devices also "
         "with a plain C loop on the same number of threads. All counts are checked against plain "
         "C. Exits with 1 if one differs. To measure whole ingests, use tools/bench.",
     .examples = "  clpipe bench\n"
                 "  clpipe bench --device gpu --feature rgb:bins=256 --fill all --shape all",
     .operand_name = "",
     .computes = true,
     .ranks_apart = true,
     .group = {&group_bench},
     .run = command_bench},
    {.name = "tune",
     .goal = MACHINE,
     .arguments = "[OPTIONS]",
     .summary = "find the fastest histogram kernels of a device",
     .about = "Computes histograms of synthetic images (constant, natural and random; large and "
              "small) with every variant that the device supports, with several numbers of "
              "work-groups and private copies and several tile sizes. The fastest for each kind of "
              "feature is stored until the driver or clpipe's kernels change; run and ingest use "
              "it unless --histogram-variant selects another. This affects speed, never results. A "
              "variant that counts wrong is never used, and the exit status is 1.",
     .examples = "  clpipe tune --device all\n"
                 "  clpipe tune --feature rgb:bins=8x8x8\n"
                 "  clpipe tune --show",
     .operand_name = "",
     .computes = true,
     .ranks_apart = true,
     .group = {&group_tune},
     .run = command_tune},
    {.name = "ndrange",
     .goal = MACHINE,
     .arguments = "[WxH] [OPTIONS]",
     .summary = "show how a device runs ranges that work-groups do not divide",
     .about = "Launches a range of W x H work-items (default: 638x478) in four cases: compiled as "
              "OpenCL C 1.2 and as 2.0 (or 3.0), each with a work-group size chosen by the driver "
              "and with the size of --local. Prints what the work-items at the corners see, or why "
              "the launch was refused. With --image, each case blurs the interior of an image, and "
              "the result is compared with plain C. Exits with 1 if one differs.",
     .examples = "  clpipe ndrange\n"
                 "  clpipe ndrange 1000x700 --local 32x8\n"
                 "  clpipe ndrange --image photo.jpg --out blurred",
     .operand_name = "",
     .max_operands = 1,
     .computes = true,
     .ranks_apart = true,
     .group = {&group_ndrange},
     .run = command_ndrange},
    {.name = NULL},
};

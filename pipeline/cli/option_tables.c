/* option_tables.c: every option of every command, with its default and its help. */
#include "cli/options.h"

#define AT(field) offsetof(struct options, field)
#define VARIANTS  "auto, private, local, replicated, packed, partial, staged, global"
#define END                                                                                        \
    {                                                                                              \
        0                                                                                          \
    }

static const struct option general_rows[] = {
    {"progress", 0, OPTION_CHOICE, AT(progress), "auto|always|never", "auto", NULL, 0, 0,
     "auto: a live line on a terminal, a plain line now and then elsewhere; always: also with -q, "
     "and every second where there is no terminal"},
    {"json", 0, OPTION_TEXT, AT(json), "FILE", NULL, NULL, 0, 0,
     "write the result as JSON; - is standard output, and nothing else goes there"},
    {"quiet", 'q', OPTION_FLAG, AT(quiet), NULL, NULL, NULL, 0, 0, "print errors only"},
    {"verbose", 'v', OPTION_FLAG, AT(verbose), NULL, NULL, NULL, 0, 0, "print more"},
    END};
const struct option_group group_general = {"General", general_rows};

static const struct option compute_rows[] = {
    {"device", 0, OPTION_TEXT, AT(device), "cpu|gpu|all|SEL", NULL, "the best one, GPU before CPU",
     0, 0, "a type, all, numbers from clpipe devices (0,2), or part of a name"},
    {"threads", 0, OPTION_NUMBER, AT(threads), "N", NULL, "the CPUs this process may use", 1, 4096,
     "decode and host threads"},
    {"memory", 0, OPTION_SIZE, AT(memory), "SIZE", "256M", NULL, 0, 0,
     "bound on clpipe's own host buffers"},
    {"device-memory", 0, OPTION_SIZE, AT(device_memory), "SIZE", NULL, "what the device has", 0, 0,
     "bound on buffers of each device"},
    {"profile", 0, OPTION_TEXT, AT(profile), "TRACE.json", NULL, NULL, 0, 0,
     "record what ran when; opens in ui.perfetto.dev"},
    END};
const struct option_group group_compute = {"Device and machine", compute_rows};

#define MAX_TIME_ROW                                                                               \
    {                                                                                              \
        "max-time", 0, OPTION_SECONDS, AT(max_time), "SECONDS", NULL, "none", 0, 0,                \
            "stop cleanly after this time (also 90m or 01:30:00); the same command goes on from "  \
            "there"                                                                                \
    }

static const struct option ingest_rows[] = {
    {"feature", 0, OPTION_LIST, AT(features), "SPEC", "rgb:bins=256", NULL, 0, 0,
     "what to compute, repeatable: [NAME=]KIND[:bins=B|AxBxC][,grid=RxC][,normalize=...]; KIND is "
     "rgb (bins=B three histograms, bins=AxBxC one joint), gray or hsv"},
    {"normalize", 0, OPTION_CHOICE, AT(normalize), "l1|none|hellinger", "l1", NULL, 0, 0,
     "l1: shares of the pixels; none: counts; hellinger: square roots of shares"},
    {"alpha", 0, OPTION_CHOICE, AT(alpha), "white|black|drop", "white", NULL, 0, 0,
     "what transparent pixels are laid over; drop ignores transparency"},
    {"icc", 0, OPTION_CHOICE, AT(icc), "ignore|apply", "ignore", NULL, 0, 0,
     "apply: pictures with an ICC profile are converted to sRGB by it"},
    {"max-pixels", 0, OPTION_NUMBER, AT(max_pixels), "N", "268435456", NULL, 1, 0,
     "larger pictures are failures"},
    {"max-scans", 0, OPTION_NUMBER, AT(max_scans), "N", "100", NULL, 1, UINT32_MAX,
     "JPEG files with more scans are failures; over 10 megapixels fewer in proportion, at least "
     "20"},
    {"blur", 0, OPTION_CHOICE, AT(blur), "off|3", "off", NULL, 0, 0,
     "3: features of the 3x3 box blur of each picture, which is two columns and rows smaller; in a "
     "SPEC: blur=3"},
    {"decode-scale", 0, OPTION_CHOICE, AT(decode_scale), "1|2|4|8", "1", NULL, 0, 0,
     "decode JPEG at a fraction of its size: faster, other counts"},
    {"isolate", 0, OPTION_FLAG, AT(isolate), NULL, NULL, NULL, 0, 0,
     "decode in separate processes, for untrusted files: a crash costs one file"},
    {"max-decode-seconds", 0, OPTION_SECONDS, AT(max_decode_seconds), "SECONDS", NULL, "none", 0, 0,
     "files that take longer to decode are failures; needs --isolate"},
    {"follow-symlinks", 0, OPTION_FLAG, AT(follow_symlinks), NULL, NULL, NULL, 0, 0,
     "go into directories behind symbolic links"},
    {"hidden", 0, OPTION_FLAG, AT(hidden), NULL, NULL, NULL, 0, 0,
     "take names that begin with a dot, too"},
    {"include", 0, OPTION_LIST, AT(include), "GLOB", NULL, NULL, 0, 0,
     "only files that match, repeatable; without / it is matched with the last part of the path"},
    {"exclude", 0, OPTION_LIST, AT(exclude), "GLOB", NULL, NULL, 0, 0,
     "no files that match, repeatable"},
    {"limit", 0, OPTION_NUMBER, AT(limit), "N", NULL, "all", 1, 0, "only the first N files"},
    {"dry-run", 0, OPTION_FLAG, AT(dry_run), NULL, NULL, NULL, 0, 0,
     "read headers only and write nothing: count what would be taken and what would fail"},
    {"strict", 0, OPTION_FLAG, AT(strict), NULL, NULL, NULL, 0, 0, "stop at the first failure"},
    {"fresh", 0, OPTION_FLAG, AT(fresh), NULL, NULL, NULL, 0, 0,
     "start over: use nothing of an earlier run or result"},
    {"add", 0, OPTION_FLAG, AT(add), NULL, NULL, NULL, 0, 0,
     "add the features to those that the file has: every image is decoded again"},
    {"retry-failed", 0, OPTION_FLAG, AT(retry_failed), NULL, NULL, NULL, 0, 0,
     "try files again that failed before"},
    MAX_TIME_ROW,
    END};
const struct option_group group_ingest = {"Images and features", ingest_rows};

static const struct option tuning_rows[] = {
    {"slot-size", 0, OPTION_SIZE, AT(slot_size), "SIZE", NULL, "chosen for the device", 0, 0,
     "staging buffer"},
    {"slots", 0, OPTION_NUMBER, AT(slots), "N", NULL, "chosen for the device", 2, 64,
     "staging buffers of each device"},
    {"histogram-variant", 0, OPTION_TEXT, AT(histogram_variant), "NAME", "auto", NULL, 0, 0,
     "the kernel that counts (" VARIANTS ")"},
    {"jpeg-pixels", 0, OPTION_CHOICE, AT(jpeg_pixels), "auto|host|device", "auto", NULL, 0, 0,
     "where JPEG's coefficients become pixels; auto: on the device, unless it is a CPU"},
    END};
const struct option_group group_tuning = {"Tuning and tests (these change speed, never results)",
                                          tuning_rows};

#define OUTPUT_ROW(initial, note, help)                                                            \
    {                                                                                              \
        "output", 'o', OPTION_TEXT, AT(output), "FILE", initial, note, 0, 0, help                  \
    }

static const struct option ingest_output_rows[] = {
    OUTPUT_ROW(NULL, NULL, "the HDF5 file to write or update; required but for --dry-run"), END};
const struct option_group group_ingest_output = {"Result", ingest_output_rows};

static const struct option run_output_rows[] = {
    OUTPUT_ROW("clpipe.h5", NULL, "the HDF5 file to write or update"), END};
const struct option_group group_run_output = {"Result", run_output_rows};

#define NAME_ROW                                                                                   \
    {                                                                                              \
        "name", 0, OPTION_TEXT, AT(name), "NAME", "kmeans", NULL, 0, 0,                            \
            "the result is /clusters/NAME in the file"                                             \
    }
#define PLOT_ROW                                                                                   \
    {                                                                                              \
        "plot", 0, OPTION_TEXT, AT(plot), "FILE.svg", NULL, NULL, 0, 0,                            \
            "draw the measures of each k of A:B into an SVG file"                                  \
    }
#define CLUSTERING_ROWS                                                                            \
    {"init",     0,    OPTION_TEXT, AT(init), "kmeans++|kmeans-parallel|random|FILE.npy",          \
     "kmeans++", NULL, 0,           0,        "first centroids; kmeans++ is the greedy one"},      \
        {"seed",        0,                                                                         \
         OPTION_NUMBER, AT(seed),                                                                  \
         "N",           "0",                                                                       \
         NULL,          0,                                                                         \
         INT64_MAX,     "of the random choices: the same seed gives the same result"},             \
        {"n-init",      0,                                                                         \
         OPTION_NUMBER, AT(n_init),                                                                \
         "N",           "1",                                                                       \
         NULL,          1,                                                                         \
         UINT32_MAX,    "runs from different first centroids; the best is kept"},                  \
        {"max-iter",    0,                                                                         \
         OPTION_NUMBER, AT(max_iter),                                                              \
         "N",           "100",                                                                     \
         NULL,          0,                                                                         \
         UINT32_MAX,    "iterations at most; 0: label by the first centroids"},                    \
        {"tol",                                                                                    \
         0,                                                                                        \
         OPTION_REAL,                                                                              \
         AT(tol),                                                                                  \
         "X",                                                                                      \
         "0",                                                                                      \
         NULL,                                                                                     \
         0,                                                                                        \
         0,                                                                                        \
         "stop when the centroids move less than this share of the variance; 0: when no label "    \
         "changes"},                                                                               \
        {"metric",                                                                                 \
         0,                                                                                        \
         OPTION_CHOICE,                                                                            \
         AT(metric),                                                                               \
         "euclidean|cosine|hellinger",                                                             \
         NULL,                                                                                     \
         "hellinger for l1 histograms of clpipe, else euclidean",                                  \
         0,                                                                                        \
         0,                                                                                        \
         "how distance is measured"},                                                              \
    {                                                                                              \
        "mini-batch", 0, OPTION_NUMBER, AT(mini_batch), "N", NULL, "off", 1, UINT32_MAX,           \
            "approximate: an iteration is a batch of N random rows"                                \
    }

#define CHECKPOINT_ROW                                                                             \
    {                                                                                              \
        "checkpoint", 0, OPTION_EVERY, AT(checkpoint), "SECONDS", "60", NULL, 0, 0,                \
            "how often what is needed to go on after a kill is kept beside the result; 0: never"   \
    }

static const struct option cluster_rows[] = {
    {"k", 'k', OPTION_NUMBERS, AT(k), "K|A:B", NULL, NULL, 1, INT32_MAX,
     "number of clusters; required. A:B or A:B:STEP tries all from A to B, keeps the best, and "
     "stores what speaks for each"},
    PLOT_ROW,
    {"feature", 0, OPTION_TEXT, AT(feature), "NAME", NULL, "the only one", 0, 0,
     "which /features/NAME of a clpipe file; NAME:WEIGHT+NAME:WEIGHT joins several"},
    NAME_ROW,
    CLUSTERING_ROWS,
    {"weights", 0, OPTION_TEXT, AT(weights), "FILE.npy|FILE.h5:/dataset", NULL, "1 each", 0, 0,
     "how often each row counts: as many numbers from 0 on as there are rows"},
    CHECKPOINT_ROW,
    MAX_TIME_ROW,
    OUTPUT_ROW(NULL, "the clpipe file itself",
               "write the result to a file of its own; required for .npy and foreign HDF5"),
    {"force", 0, OPTION_FLAG, AT(force), NULL, NULL, NULL, 0, 0,
     "replace an earlier result of that name"},
    END};
const struct option_group group_cluster = {"Clustering", cluster_rows};

static const struct option cluster_run_rows[] = {
    {"k", 'k', OPTION_NUMBERS, AT(k), "K|A:B", "10", "10, or as many as there are different images",
     1, INT32_MAX, "number of clusters; A:B or A:B:STEP tries all from A to B and keeps the best"},
    PLOT_ROW,
    {"cluster-feature", 0, OPTION_TEXT, AT(feature), "NAME", NULL, "the first", 0, 0,
     "which feature to cluster by; NAME:WEIGHT+NAME:WEIGHT joins several"},
    NAME_ROW,
    CLUSTERING_ROWS,
    CHECKPOINT_ROW,
    {"force", 0, OPTION_FLAG, AT(force), NULL, NULL, NULL, 0, 0,
     "replace an earlier clustering of that name made with other options"},
    END};
const struct option_group group_cluster_run = {"Clustering", cluster_run_rows};

static const struct option assign_rows[] = {
    {"name", 0, OPTION_TEXT, AT(name), "NAME", NULL, "the only one in C.h5", 0, 0,
     "which /clusters/NAME; the labels get the same name"},
    {"feature", 0, OPTION_TEXT, AT(feature), "NAME", NULL, "the one that was clustered", 0, 0,
     "which /features/NAME of INPUT, where it is a clpipe file"},
    OUTPUT_ROW(NULL, "INPUT itself, if it is a clpipe file",
               "write the labels to a file of their own; required for .npy and foreign HDF5"),
    {"force", 0, OPTION_FLAG, AT(force), NULL, NULL, NULL, 0, 0,
     "replace an earlier result of that name"},
    END};
const struct option_group group_assign = {"Labels", assign_rows};

static const struct option info_rows[] = {
    {"failures", 0, OPTION_FLAG, AT(failures), NULL, NULL, NULL, 0, 0,
     "list every file that failed: path, reason, message, separated by tabs"},
    {"digest", 0, OPTION_FLAG, AT(digest), NULL, NULL, NULL, 0, 0,
     "print the identity of the contents: SHA-256 of everything but /runs and the date"},
    END};
const struct option_group group_info = {"What to print", info_rows};

static const struct option repair_rows[] = {
    OUTPUT_ROW(NULL, "F.h5 itself", "the file to write; F.h5 stays as it is"),
    {"dry-run", 0, OPTION_FLAG, AT(dry_run), NULL, NULL, NULL, 0, 0,
     "say what can be saved, and write nothing"},
    END};
const struct option_group group_repair = {"What to write", repair_rows};

static const struct option export_rows[] = {
    {"what", 0, OPTION_CHOICE, AT(what), "features|labels|failures|images|tree", NULL, NULL, 0, 0,
     "required"},
    {"format", 0, OPTION_CHOICE, AT(format), "csv|tsv|jsonl|npy", "csv",
     "the extension of -o, else csv", 0, 0, "npy holds numbers: features and labels only"},
    {"feature", 0, OPTION_TEXT, AT(feature), "NAME", NULL, "the only one", 0, 0,
     "which feature, where there are several"},
    {"name", 0, OPTION_TEXT, AT(name), "NAME", NULL, "the only one", 0, 0,
     "which clustering, where there are several"},
    OUTPUT_ROW(NULL, "standard output", "the file to write; - is standard output"),
    {"to", 0, OPTION_TEXT, AT(to), "DIR", NULL, NULL, 0, 0,
     "tree: the directory to make, new or empty; required"},
    {"link", 0, OPTION_CHOICE, AT(link), "symlink|hard|copy", "symlink", NULL, 0, 0,
     "tree: what the entries are"},
    END};
const struct option_group group_export = {"What to write", export_rows};

static const struct option ndrange_rows[] = {
    {"local", 0, OPTION_TEXT, AT(local_size), "AxB", "16x16", NULL, 0, 0,
     "work-group of the cases in which it is given"},
    {"image", 0, OPTION_TEXT, AT(image), "IN", NULL, NULL, 0, 0,
     "blur this image by 3x3 pixels in each case; needs --out"},
    {"out", 0, OPTION_TEXT, AT(out_prefix), "PREFIX", NULL, NULL, 0, 0,
     "write the blurred images to PREFIX_0.bmp to PREFIX_3.bmp"},
    END};
const struct option_group group_ndrange = {"Range", ndrange_rows};

static const struct option bench_rows[] = {
    {"feature", 0, OPTION_LIST, AT(features), "SPEC", NULL,
     "rgb:bins=256, gray:bins=256, rgb:bins=8x8x8, hsv", 0, 0, "what to count, repeatable"},
    {"variant", 0, OPTION_TEXT, AT(variant), "NAME", NULL, "all that suit the device", 0, 0,
     "measure one kernel only (" VARIANTS "); auto: the one that an ingest uses"},
    {"fill", 0, OPTION_TEXT, AT(fill), "constant|two|natural|random|sorted|all", NULL,
     "constant, natural and random", 0, 0, "the pixels"},
    {"shape", 0, OPTION_TEXT, AT(shape), "large|512x384|224x224|all", NULL, "large", 0, 0,
     "the pictures; large: one that fills the buffer"},
    {"bytes", 0, OPTION_SIZE, AT(bytes), "SIZE", NULL, "64M on CPU devices, else 1G", 0, 0,
     "pixels of one launch"},
    {"rounds", 0, OPTION_NUMBER, AT(rounds), "N", "9", NULL, 1, 1000,
     "launches, of which the median is shown; at least 3, but no more after 2 seconds"},
    END};
const struct option_group group_bench = {"What to measure", bench_rows};

static const struct option tune_rows[] = {
    {"feature", 0, OPTION_LIST, AT(features), "SPEC", NULL, "one of each kind", 0, 0,
     "what to count, repeatable; the result is used for all features of that kind"},
    {"bytes", 0, OPTION_SIZE, AT(bytes), "SIZE", NULL, "a slot of the device", 0, 0,
     "pixels of one launch"},
    {"rounds", 0, OPTION_NUMBER, AT(rounds), "N", "9", NULL, 1, 1000,
     "launches, of which the median counts; at least 3, but no more after 2 seconds"},
    {"show", 0, OPTION_FLAG, AT(show), NULL, NULL, NULL, 0, 0,
     "measure nothing: print what an ingest takes on the device"},
    {"forget", 0, OPTION_FLAG, AT(forget), NULL, NULL, NULL, 0, 0,
     "measure nothing: drop what was kept for the device"},
    END};
const struct option_group group_tune = {"What to measure", tune_rows};

/* option_tables.c: every option of every command, with its default and its help. */
#include "cli/option_rows.h"

#define END                                                                                        \
    {                                                                                              \
        0                                                                                          \
    }

static const struct option general_rows[] = {
    {"progress", 0, OPTION_CHOICE, AT(progress), "auto|always|never", "auto", NULL, 0, 0,
     "auto: a live line on a terminal, otherwise a plain line every few seconds; always: even with "
     "-q, and every second without a terminal"},
    {"json", 0, OPTION_OUTPUT, AT(json), "FILE.json", NULL, NULL, 0, 0,
     "write the result as JSON; - is standard output, which then holds nothing else"},
    {"quiet", 'q', OPTION_FLAG, AT(quiet), NULL, NULL, NULL, 0, 0, "print errors only"},
    {"verbose", 'v', OPTION_FLAG, AT(verbose), NULL, NULL, NULL, 0, 0, "print more detail"},
    {"mpi", 0, OPTION_CHOICE, AT(mpi), "auto|openmpi|mpich|off", "auto", NULL, 0, 0,
     "auto: processes that mpirun, mpiexec or srun has started share the work, if the command can do "
     "that, else they are refused; off: each works by itself"},
    END};
const struct option_group group_general = {"General", general_rows};

static const struct option compute_rows[] = {
    {"device", 0, OPTION_TEXT, AT(device), "cpu|gpu|all|SEL", NULL, "the best one, GPU before CPU",
     0, 0, "a type, all, numbers from clpipe devices (0,2), or part of a name"},
    {"threads", 0, OPTION_NUMBER, AT(threads), "N", NULL, "the CPUs this process may use", 1, 4096,
     "number of decode and host threads"},
    {"memory", 0, OPTION_SIZE, AT(memory), "SIZE", "256M",
     "256M; of an ingest 16M for each thread if that is more, up to 1G with a GPU that decodes JPEG", 0,
     0, "limit on clpipe's own host buffers"},
    {"device-memory", 0, OPTION_SIZE, AT(device_memory), "SIZE", NULL, "the memory of the device",
     0, 0, "limit on the buffers on each device"},
    {"profile", 0, OPTION_OUTPUT, AT(profile), "TRACE.json", NULL, NULL, 0, 0,
     "record a timeline, for ui.perfetto.dev"},
    END};
const struct option_group group_compute = {"Device and machine", compute_rows};

#define MAX_TIME_ROW                                                                               \
    {                                                                                              \
        "max-time", 0, OPTION_SECONDS, AT(max_time), "SECONDS", NULL,                              \
            "none; in a Slurm job, two minutes before its end", 0, 0,                              \
            "stop cleanly after this time (also 90m, 01:30:00 or 1-12:00:00, as Slurm has it; 0: no "  \
            "time is left, exit status 4); the same command resumes"        \
    }

const struct option ingest_rows[] = {
    {"feature", 0, OPTION_LIST, AT(features), "SPEC", NULL, "those of --preset", 0, 0,
     "feature to compute, repeatable: [NAME=]KIND[:OPTION,...] with bins=B or bins=AxBxC, grid=RxC or "
     "levels=1+2+3, scale=N, normalize=..., store=..., codebook=C.h5; KIND "
     "is rgb (bins=B: three histograms; bins=AxBxC: one joint histogram), gray, hsv, lab, lbp, oplbp, "
     "hog, gradient, coledge, quality; with words=K or fisher=K instead of bins= dct, sift, opsift or patch; "
     "net:model=FILE: a network"},
    ONNXRUNTIME_ROW,
    {"preset", 0, OPTION_CHOICE, AT(preset), "color|fast|good|best|semantic", NULL,
     "fast; for an existing file, what it has", 0, 0,
     "features that measurements have chosen, with weights, instead of --feature: color: "
     "hsv:bins=16x4x4; fast: frequencies, texture and shape; good: SIFT and frequencies; best: SIFT "
     "in grey and colour, and patches; semantic: what a network sees (clpipe-network lite0 makes its "
     "model); for fewer than 64 images features that learn nothing"},
    {"quality", 0, OPTION_FLAG, AT(quality), NULL, NULL, NULL, 0, 0,
     "beside the other features: brightness, contrast, sharpness, colour and borders of each image, from "
     "which info, export, report and select tell those that are dark, blurry and so on; for a file made "
     "without, with --add"},
    {"codebook", 0, OPTION_TEXT, AT(codebook), "C.h5", NULL, "learned from the images", 0, 0,
     "take the codebooks of all features from a file that clpipe codebook has made"},
    {"normalize", 0, OPTION_CHOICE, AT(normalize), "l1|none|hellinger", "l1", NULL, 0, 0,
     "l1: shares of the pixels; none: counts; hellinger: square roots of shares"},
    {"blur", 0, OPTION_CHOICE, AT(blur), "off|3", "off", NULL, 0, 0,
     "3: blur each image with a 3x3 box first, which removes its outermost pixels; for one "
     "feature: blur=3 in its SPEC"},
    {"store", 0, OPTION_CHOICE, AT(store), "float32|float16|uint8", "float32", NULL, 0, 0,
     "type in which values are stored; float16 takes half of the space, uint8 a quarter, with an error "
     "that docs/features.md states; counts stay uint32; for one feature: store=TYPE in its SPEC"},
    {"compress", 0, OPTION_FLAG, AT(compress), NULL, NULL, NULL, 0, 0,
     "store features compressed (HDF5's deflate), also in later updates; for files that would not fit "
     "otherwise: docs/guide.md has sizes and times"},
    {"thumbnails", 0, OPTION_MAYBE, AT(thumbnails), "[SIZE]", NULL,
     "those that the file has; run makes them for a new file", 16, 1024,
     "store a thumbnail of each image, at most SIZE pixels on its longest side (without SIZE: 160 "
     "up to 10,000 images, 64 from 100,000, else 96)"},
    {"dry-run", 0, OPTION_FLAG, AT(dry_run), NULL, NULL, NULL, 0, 0,
     "read only headers and write nothing; report how many files would be read and how many would "
     "fail"},
    {"strict", 0, OPTION_FLAG, AT(strict), NULL, NULL, NULL, 0, 0, "stop at the first failure"},
    {"allow-failures", 0, OPTION_SHARE, AT(allow_failures), "N|P%", "0", NULL, 0, 0,
     "exit with 0 if at most this many files, or this part of them, failed"},
    {"fresh", 0, OPTION_FLAG, AT(fresh), NULL, NULL, NULL, 0, 0,
     "start over: ignore earlier work and replace the file"},
    {"add", 0, OPTION_FLAG, AT(add), NULL, NULL, NULL, 0, 0,
     "add these features to those in the file; every image is decoded again"},
    {"drop-source", 0, OPTION_LIST, AT(drop_source), "SOURCE", NULL, NULL, 0, 0,
     "remove a source and its images from the file, repeatable; no other SOURCE is needed then"},
    {"relocate", 0, OPTION_TEXT, AT(relocate), "SOURCE", NULL, NULL, 0, 0,
     "this source of the file has moved to the SOURCE of the command that the file does not have; its "
     "images stay"},
    {"allow-removal", 0, OPTION_FLAG, AT(allow_removal), NULL, NULL, NULL, 0, 0,
     "go on where all images of a source or of one of its directories at the top would be removed, or "
     "over 20 and a tenth, for whatever reason"},
    {"retrain", 0, OPTION_FLAG, AT(retrain), NULL, NULL, NULL, 0, 0,
     "learn the codebooks of the file anew from the images that it has now; every image is decoded "
     "again"},
    {"add-codes", 0, OPTION_FLAG, AT(add_codes), NULL, NULL, NULL, 0, 0,
     "add the perceptual codes that duplicates needs to a file made without; images without one are "
     "decoded again"},
    {"checksum", 0, OPTION_FLAG, AT(checksum), NULL, NULL, NULL, 0, 0,
     "compare the bytes of each file of the SOURCEs with their digest: without it, only where size and time "
     "are the same, but inode or change time are not"},
    {"retry-failed", 0, OPTION_FLAG, AT(retry_failed), NULL, NULL, NULL, 0, 0,
     "retry files that failed before"},
    {"sidecar", 0, OPTION_FLAG, AT(sidecar), NULL, NULL, NULL, 0, 0,
     "store what lies beside each image as key, cls, json and txt: files of the same name up to its "
     "first dot, as in WebDataset"},
    {"shard", 0, OPTION_TEXT, AT(shard), "I/N|slurm/N|mpi", NULL, "everything", 0, 0,
     "take share I of N (from 0) of the files, by their sizes; slurm: I is the task's number in the "
     "array; mpi: the launcher's ranks take one each, and their files are merged as the output. {shard} "
     "in the name of the output becomes I; with it mpi merges nothing"},
    END};

const struct option image_rows[] = {
    {"alpha", 0, OPTION_CHOICE, AT(alpha), "white|black|drop", "white", NULL, 0, 0,
     "background of transparent pixels; drop: ignore transparency"},
    {"icc", 0, OPTION_CHOICE, AT(icc), "ignore|apply", "ignore", NULL, 0, 0,
     "apply: convert images with an ICC profile to sRGB"},
    {"max-pixels", 0, OPTION_NUMBER, AT(max_pixels), "N", "268435456", NULL, 1, 0,
     "images with more pixels are failures"},
    {"max-scans", 0, OPTION_NUMBER, AT(max_scans), "N", "100", NULL, 1, UINT32_MAX,
     "JPEG files with more scans are failures; above 10 megapixels the limit falls in proportion, "
     "to at least 20"},
    {"decode-scale", 0, OPTION_CHOICE, AT(decode_scale), "1|2|4|8", "1", NULL, 0, 0,
     "decode JPEG at 1/2, 1/4 or 1/8 of its size: faster, but the counts differ"},
    {"isolate", 0, OPTION_FLAG, AT(isolate), NULL, NULL, NULL, 0, 0,
     "decode in separate processes, for untrusted files: a crash loses only one file"},
    {"max-decode-seconds", 0, OPTION_SECONDS, AT(max_decode_seconds), "SECONDS", NULL, "none", 0, 0,
     "files that take longer to decode are failures; needs --isolate"},
    WALK_ROWS,
    {"limit", 0, OPTION_NUMBER, AT(limit), "N", NULL, "all", 1, 0, "read only the first N files"},
    MAX_TIME_ROW,
    END};



const struct option tuning_rows[] = {
    {"slot-size", 0, OPTION_SIZE, AT(slot_size), "SIZE", NULL, "chosen for the device", 0, 0,
     "size of a staging buffer"},
    {"slots", 0, OPTION_NUMBER, AT(slots), "N", NULL, "chosen for the device", 2, 64,
     "number of staging buffers per device"},
    {"histogram-variant", 0, OPTION_TEXT, AT(histogram_variant), "NAME", "auto", NULL, 0, 0,
     "kernel that computes the histograms (" VARIANTS ")"},
    {"jpeg-pixels", 0, OPTION_CHOICE, AT(jpeg_pixels), "auto|host|coefficients|device", "auto",
     NULL, 0, 0,
     "what decodes JPEG files: the host alone, or the device from their coefficients or their "
     "entropy code on; auto: a GPU with memory of its own from the entropy code on, other devices "
     "from coefficients on, a CPU nothing"},
    END};

const struct option ingest_output_rows[] = {
    OUTPUT_ROW(NULL, NULL, "HDF5 file to write or update; required unless --dry-run is given"),
    END};

const struct option run_output_rows[] = {
    OUTPUT_ROW("clpipe.h5", NULL, "HDF5 file to write or update"),
    {"no-report", 0, OPTION_FLAG, AT(no_report), NULL, NULL, NULL, 0, 0,
     "make no thumbnails, and no pages in F-report beside the file"},
    END};

#define NAME_ROW                                                                                   \
    {                                                                                              \
        "name", 0, OPTION_TEXT, AT(name), "NAME", "kmeans", NULL, 0, 0,                            \
            "store the result as /clusters/NAME"                                                   \
    }
#define PLOT_ROW                                                                                   \
    {                                                                                              \
        "plot", 0, OPTION_OUTPUT, AT(plot), "FILE.svg", NULL, NULL, 0, 0,                          \
            "plot the quality measures of each k of A:B"                                           \
    }
#define CLUSTERING_ROWS(restarts, restarts_note)                                                   \
    {                                                                                              \
        "init",                                                                                    \
        0,                                                                                         \
        OPTION_TEXT,                                                                               \
        AT(init),                                                                                  \
        "kmeans++|kmeans-parallel|random|FILE.npy",                                                \
        "kmeans++",                                                                                \
        NULL,                                                                                      \
        0,                                                                                         \
        0,                                                                                         \
        "initial centroids; kmeans++ is the greedy variant"},                                      \
        {"seed",        0,                                                                         \
         OPTION_NUMBER, AT(seed),                                                                  \
         "N",           "0",                                                                       \
         NULL,          0,                                                                         \
         INT64_MAX,     "seed of the random choices; the same seed gives the same result"},        \
        {"n-init",      0,                                                                         \
         OPTION_NUMBER, AT(n_init),                                                                \
         "N",           restarts,                                                                  \
         restarts_note, 1,                                                                         \
         UINT32_MAX,    "number of runs from different initial centroids; the best is kept"},      \
        {"max-iter",    0,                                                                         \
         OPTION_NUMBER, AT(max_iter),                                                              \
         "N",           "100",                                                                     \
         NULL,          0,                                                                         \
         UINT32_MAX,    "maximum number of iterations; 0: label by the initial centroids"},        \
        {"tol",                                                                                    \
         0,                                                                                        \
         OPTION_REAL,                                                                              \
         AT(tol),                                                                                  \
         "X",                                                                                      \
         "1e-4",                                                                                   \
         NULL,                                                                                     \
         0,                                                                                        \
         0,                                                                                        \
         "stop when the squared centroid shift is at most X times the mean variance of the "       \
         "columns; 0: when no label changes, the default of --mini-batch"},                           \
        {"metric",                                                                                 \
         0,                                                                                        \
         OPTION_CHOICE,                                                                            \
         AT(metric),                                                                               \
         "euclidean|cosine|hellinger",                                                             \
         NULL,                                                                                     \
         "hellinger for clpipe's l1 histograms, else euclidean",                                   \
         0,                                                                                        \
         0,                                                                                        \
         "distance measure"},                                                                      \
    {"pca", 0, OPTION_NUMBER, AT(pca), "N", NULL, "as the preset says, else 0", 0, 256,             \
     "cluster by the first N principal components of the rows, divided by their length; 0: by the "   \
     "rows"},                                                                                      \
        {"whiten", 0, OPTION_REAL, AT(whiten), "X", NULL, "as the preset says, else 0", 0, 0,      \
         "divide each component by its variance to the power of X/2, 0 to 1; with --pca"},         \
        {"center", 0, OPTION_FLAG, AT(center), NULL, NULL, NULL, 0, 0,                             \
         "subtract the mean of the rows and divide them by their length; --pca does so"},          \
    {                                                                                              \
        "mini-batch", 0, OPTION_NUMBER, AT(mini_batch), "N", NULL, "off", 1, UINT32_MAX,           \
            "approximate k-means: each iteration uses N random rows"                               \
    }

#define CHECKPOINT_ROW                                                                             \
    {                                                                                              \
        "checkpoint", 0, OPTION_EVERY, AT(checkpoint), "SECONDS", "60", NULL, 0, 0,                \
            "save the state beside the result at this interval, so that a killed clustering can "  \
            "resume; 0: never"                                                                     \
    }

const struct option cluster_rows[] = {
    {"k", 'k', OPTION_NUMBERS, AT(k), "K|A:B", NULL, NULL, 1, INT32_MAX,
     "number of clusters; required, or --levels. A:B or A:B:STEP tries each k from A to B, keeps the best, "
     "and stores the quality measures of all"},
    {"levels", 0, OPTION_TEXT, AT(levels), "K1,K2,...", NULL, NULL, 0, 0,
     "K1 clusters of the rows, K2 clusters of their centroids, and so on; stored as /clusters/NAME, NAME-2, "
     "..."},
    {"resample", 0, OPTION_TEXT, AT(resample), "N:R", NULL, NULL, 0, 0,
     "cluster the N rows nearest to each centroid R times in place of all rows, and assign all to the result"},
    PLOT_ROW,
    {"feature", 0, OPTION_TEXT, AT(feature), "NAME", NULL, "the preset's, or the only one", 0, 0,
     "feature of a clpipe file to cluster by; NAME:WEIGHT+NAME:WEIGHT joins several"},
    NAME_ROW,
    CLUSTERING_ROWS("1", NULL),
    {"weights", 0, OPTION_TEXT, AT(weights), "FILE.npy|FILE.h5:/dataset", NULL, "1 each", 0, 0,
     "weight of each row: one non-negative number per row"},
    PATHS_ROW,
    CHECKPOINT_ROW,
    MAX_TIME_ROW,
    OUTPUT_ROW(NULL, "the clpipe file itself",
               "write the result to a separate file; required for .npy and other HDF5 files"),
    VERIFY_INPUT_ROW,
    {"force", 0, OPTION_FLAG, AT(force), NULL, NULL, NULL, 0, 0,
     "replace an existing result of the same name"},
    END};

const struct option cluster_run_rows[] = {
    {"k", 'k', OPTION_NUMBERS, AT(k), "K|A:B", "10",
     "10; for fewer than 50 images a fifth of their number; for an existing file, what it has", 1,
     INT32_MAX,
     "number of clusters; A:B or A:B:STEP tries each k from A to B and keeps the best"},
    PLOT_ROW,
    {"cluster-feature", 0, OPTION_TEXT, AT(feature), "NAME", NULL, "the preset's, or the first", 0, 0,
     "feature to cluster by; NAME:WEIGHT+NAME:WEIGHT joins several"},
    NAME_ROW,
    CLUSTERING_ROWS(NULL, "10 if rows x values x k is at most 2^31, else 1"),
    CHECKPOINT_ROW,
    {"force", 0, OPTION_FLAG, AT(force), NULL, NULL, NULL, 0, 0,
     "replace a clustering of the same name made with other options"},
    END};






const struct option select_rows[] = {
    {"method", 0, OPTION_CHOICE, AT(method), "balanced|nearest|diverse|random", "balanced", NULL, 0, 0,
     "how to choose"},
    {"name", 0, OPTION_TEXT, AT(name), "NAME", "selection", NULL, 0, 0, "name of the selection"},
    {"clusters", 0, OPTION_TEXT, AT(clusters), "NAME", NULL, "the only one", 0, 0,
     "clustering to choose by"},
    {"per-cluster", 0, OPTION_NUMBER, AT(per_cluster), "M", "0", "any number", 0, 0,
     "take at most M images of a cluster"},
    {"semantic", 0, OPTION_REAL, AT(semantic), "X", NULL, "none are left out", 0, 0,
     "leave out an image if one of its cluster that stays has a cosine of at least X with it"},
    {"prefer", 0, OPTION_CHOICE, AT(prefer), "nearest|best", "nearest", NULL, 0, 0,
     "which image stays: nearest to the centre, or best picture (most pixels, then most bytes); with "
     "--semantic"},
    {"within", 0, OPTION_TEXT, AT(within), "LIST", NULL, "all images", 0, 0,
     "choose from these: a file of paths, one per line or separated by NUL"},
    {"without", 0, OPTION_TEXT, AT(without), "FLAG,...", NULL, NULL, 0, 0,
     "not from images with one of these flags: dark, light, low-contrast, low-information, blurry, grey, "
     "bordered (of files made with --quality), odd-aspect, odd-size, outlier (of files with the neighbours "
     "of similar --all)"},
    {"feature", 0, OPTION_TEXT, AT(feature), "NAME", NULL, "that of the clustering", 0, 0,
     "feature whose rows diverse and --semantic compare"},
    {"metric", 0, OPTION_CHOICE, AT(metric), "euclidean|cosine|hellinger", NULL,
     "hellinger for l1 histograms, else euclidean", 0, 0, "distance of diverse"},
    {"seed", 0, OPTION_NUMBER, AT(seed), "N", "0", NULL, 0, 0, "of random choices"},
    {"to-list", 0, OPTION_TEXT, AT(to_list), "FILE", NULL, NULL, 0, 0,
     "also write the absolute path of each image, ended by NUL"},
    {"dry-run", 0, OPTION_FLAG, AT(dry_run), NULL, NULL, NULL, 0, 0, "store nothing"},
    {"force", 0, OPTION_FLAG, AT(force), NULL, NULL, NULL, 0, 0,
     "replace a selection of the same name, and an existing list"},
    {"memory", 0, OPTION_SIZE, AT(memory), "SIZE", "1G", NULL, 0, 0,
     "limit on rows that are compared"},
    END};


const struct option carried_rows[] = {
    {"drop-references", 0, OPTION_FLAG, AT(drop_references), NULL, NULL, NULL, 0, 0,
     "leave out what cannot be carried: references between objects, and virtual datasets"},
    END};









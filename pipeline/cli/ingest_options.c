/* ingest_options.c: tables of the options of ingest and run. */
#include "cli/ingest_options.h"
#include "features/kind.h"

#define OWN struct image_options

const struct option image_rows[] = {
    CHOICE("alpha", alpha, "white|black|drop",
           "background of transparent pixels; drop: ignore transparency", .initial = "white"),
    CHOICE("icc", icc, "ignore|apply", "apply: convert images with an ICC profile to sRGB",
           .initial = "ignore"),
    NUMBER("max-pixels", max_pixels, "N", "images with more pixels are failures",
           .initial = "268435456", .min = 1),
    NUMBER("max-scans", max_scans, "N",
           "JPEG files with more scans are failures; above 10 megapixels the limit falls in "
           "proportion, to at least 20",
           .initial = "100", .min = 1, .max = UINT32_MAX),
    CHOICE("decode-scale", decode_scale, "1|2|4|8",
           "decode JPEG at 1/2, 1/4 or 1/8 of its size: faster, but the counts differ",
           .initial = "1"),
    FLAG("isolate", isolate,
         "decode in separate processes, for untrusted files: a crash loses only one file"),
    SECONDS("max-decode-seconds", max_decode_seconds, "SECONDS",
            "files that take longer to decode are failures; needs --isolate", .note = "none"),
    WALK_ROWS,
    NUMBER("limit", limit, "N", "read only the first N files", .note = "all", .min = 1),
    MAX_TIME_ROW,
    {.name = NULL}};

#undef OWN
#define OWN struct ingest_options

#define KIND_TEXT(name, text) text

const struct option ingest_rows[] = {
    LIST("feature", features, "SPEC",
         "feature to compute, repeatable: [NAME=]KIND[:OPTION,...] with bins=B or bins=AxBxC, "
         "grid=RxC or levels=1+2+3, scale=N, normalize=..., store=..., codebook=C.h5; KIND "
         "is " FEATURE_KINDS(KIND_TEXT),
         .note = "those of --preset"),
    ONNXRUNTIME_ROW,
    CHOICE(
        "preset", preset, "color|fast|good|best|semantic",
        "features and weights that were chosen by measurement, instead of --feature: color: "
        "hsv:bins=16x4x4; fast: frequencies, texture and shape; good: SIFT and frequencies; best: "
        "SIFT in grey and colour, and patches; semantic: a network's output (clpipe-network lite0 "
        "makes its model); for fewer than 64 images, features without codebooks",
        .note = "fast; for an existing file, its own"),
    FLAG("quality", quality,
         "in addition to the features: brightness, contrast, sharpness, colour and borders of each "
         "image, from which info, export, report and select find those that are dark, blurry and "
         "so on; --add adds it to an existing file"),
    TEXT("codebook", codebook, "C.h5",
         "take the codebooks of all features from a file made by clpipe codebook",
         .note = "learned from the images"),
    CHOICE("normalize", normalize, "l1|none|hellinger",
           "l1: shares of the pixels; none: counts; hellinger: square roots of shares",
           .initial = "l1"),
    CHOICE("blur", blur, "off|3",
           "3: blur each image with a 3x3 box first, which removes its outermost pixels; for "
           "one feature: blur=3 in its SPEC",
           .initial = "off"),
    CHOICE("store", store, "float32|float16|uint8",
           "type in which values are stored; float16 takes half the space, uint8 a quarter, "
           "with an error that docs/features.md states; counts stay uint32; for one feature: "
           "store=TYPE in its SPEC; presets fast, good and best use float16, semantic uint8",
           .initial = "float32"),
    FLAG("compress", compress,
         "store features compressed (HDF5's deflate), in later updates, too; for files that would "
         "not fit otherwise: docs/guide.md has sizes and times"),
    MAYBE("thumbnails", thumbnails, "[SIZE]",
          "store a thumbnail of each image, at most SIZE pixels on its longest side (without "
          "SIZE: 160 up to 10,000 images, 64 from 100,000, else 96)",
          .note = "those that the file has; run makes them for a new file", .min = 16, .max = 1024),
    DRY_RUN_ROW(
        "read only headers and write nothing; report how many files would be read and how many "
        "would fail"),
    FLAG("strict", strict, "stop at the first failure"),
    SHARE("allow-failures", allow_failures, "N|P%",
          "exit with 0 if at most this many files, or this part of them, failed", .initial = "0"),
    FLAG("fresh", fresh, "start over: ignore earlier work and replace the file"),
    FLAG("add", add, "add these features to those in the file; every image is decoded again"),
    LIST("drop-source", drop_source, "SOURCE",
         "remove a source and its images from the file, repeatable; no other SOURCE is needed "
         "then"),
    TEXT("relocate", relocate, "SOURCE",
         "this source of the file has moved to the SOURCE of the command that the file does not "
         "have; its images stay"),
    FLAG("allow-removal", allow_removal,
         "continue even if all images of a source or of one of its top directories would be "
         "removed, or more than 20 that are over a tenth of all, for whatever reason"),
    FLAG("retrain", retrain,
         "learn the codebooks of the file again from the images that it has now; every image is "
         "decoded again"),
    FLAG("add-codes", add_codes,
         "add the perceptual codes that duplicates needs to a file that lacks them; images without "
         "one are decoded again"),
    FLAG("checksum", checksum,
         "compare the bytes of each file of the SOURCEs with their digest; without this option, "
         "only if size and time are the same but inode or change time are not"),
    FLAG("retry-failed", retry_failed, "retry files that failed before"),
    FLAG("sidecar", sidecar,
         "store the sidecar files of each image as key, cls, json and txt: those of the same name "
         "up to its first dot, as in WebDataset"),
    TEXT("shard", image.common.shard, "I/N|slurm/N|mpi",
         "take share I of N (from 0) of the files, by their sizes; slurm: I is the task's number "
         "in the array; mpi: each of the launcher's ranks takes one, and their files are merged as "
         "the output. {shard} in the name of the output becomes I; with it, mpi merges nothing",
         .note = "everything"),
    {.name = NULL}};

const struct option tuning_rows[] = {
    SIZE("slot-size", slot_size, "SIZE", "size of a staging buffer",
         .note = "chosen for the device"),
    NUMBER("slots", slots, "N", "number of staging buffers per device",
           .note = "chosen for the device", .min = 2, .max = 64),
    TEXT("histogram-variant", histogram_variant, "NAME",
         "kernel that computes the histograms (" VARIANTS ")", .initial = "auto"),
    CHOICE("jpeg-pixels", jpeg_pixels, "auto|host|coefficients|device",
           "which part of JPEG decoding the device does: none, from the coefficients on, or from "
           "the entropy code on; auto: all from the entropy code on for a GPU with its own memory, "
           "none for a CPU, from the coefficients on for others",
           .initial = "auto"),
    {.name = NULL}};

/* pages.c: the report, step by step; see pages.h. */
#include "report/pages.h"
#include "base/hash.h"
#include "base/output.h"
#include "base/output_directory.h"
#include "base/path.h"
#include "report/embedded_asset.h"
#include "report/pages_data.h"
#include "result/choose.h"
#include "version_generated.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const page_names[] = {".clpipe-report", "index.html", "app.js",
                                         "views.js",       "map.js",     "style.css",
                                         "data",           "sheets",     NULL};

#define MARKER_TEXT "clpipe wrote this directory and replaces it as a whole.\n"
#define MARKER_SIZE 160

/* Identifies what the report is made from: the file's size and time, the options and the assets. */
static void marker_of(char marker[MARKER_SIZE], const struct pages *pages)
{
    const struct pages_config *config = pages->config;
    const char *clustering = pages->clusters ? pages->clusters->name : "";
    struct murmur3 state;
    uint64_t digest[2];
    struct stat st = {0};
    if (stat(config->file, &st) != 0)
        st.st_size = -1;
    const int64_t of_file[] = {st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
                               config->link_originals};
    murmur3_init(&state);
    murmur3_update(&state, of_file, sizeof of_file);
    murmur3_update(&state, config->file, strlen(config->file) + 1);
    murmur3_update(&state, clustering, strlen(clustering) + 1);
    murmur3_update(&state, CLPIPE_VERSION, sizeof CLPIPE_VERSION);
    for (const struct embedded_asset *asset = embedded_assets; asset->name; asset++)
        murmur3_update(&state, asset->data, asset->size);
    murmur3_final(&state, digest);
    snprintf(marker, MARKER_SIZE, MARKER_TEXT "%016" PRIx64 "%016" PRIx64 "\n", digest[0],
             digest[1]);
}

static bool is_current(const struct pages *pages)
{
    char marker[MARKER_SIZE], *path = NULL;
    size_t size = 0;
    if (asprintf(&path, "%s/%s", pages->config->directory, page_names[0]) < 0)
        return false;
    char *there = read_small(&size, AT_FDCWD, path);
    marker_of(marker, pages);
    const bool same = there && size == strlen(marker) && memcmp(there, marker, size) == 0;
    free(path);
    free(there);
    return same;
}

enum status pages_check(const char *directory, struct error *err)
{
    return output_directory_check(directory, page_names, err);
}

/* The clustering to show; NULL if the file has none, or none of its images. */
static enum status choose(struct pages *pages, struct error *err)
{
    const char *name = pages->config->name;
    struct result *result = pages->result;
    const char *shown = PATH_TEXT(pages->config->file);
    if (result_images(result) == 0)
        return error_set(err, STATUS_FAILED,
                         "%s has no images for a report to show; see clpipe info and clpipe export",
                         shown);
    if (!name && result->clusters_count == 0)
        return STATUS_OK;
    if (!name && result_clusters_find(result, "kmeans"))
        name = "kmeans";
    enum status status = choose_clusters(&pages->clusters, result, name, err);
    if (status != STATUS_OK)
        return status;
    if (pages->clusters->rows != result_images(result))
        return error_set(err, STATUS_FAILED,
                         "%s: /clusters/%s does not label the images of this file; export it with "
                         "clpipe export --what labels",
                         shown, pages->clusters->name);
    return STATUS_OK;
}

static enum status write_assets(struct pages *pages, struct error *err)
{
    for (const struct embedded_asset *asset = embedded_assets; asset->name; asset++) {
        enum status status =
            output_directory_write(pages->directory, asset->name, asset->data, asset->size, err);
        pages->counts->bytes += asset->size;
        if (status != STATUS_OK)
            return status;
    }
    char marker[MARKER_SIZE];
    marker_of(marker, pages);
    return output_directory_write(pages->directory, page_names[0], marker, strlen(marker), err);
}

static enum status make(struct pages *pages, struct error *err)
{
    static enum status (*const steps[])(struct pages *, struct error *) = {
        pages_make_sheets,   pages_make_addresses,  pages_make_images,
        pages_make_similar,  pages_make_duplicates, pages_make_quality,
        pages_make_failures, pages_make_summary,    write_assets};
    enum status status = output_directory_add(pages->directory, "data", err);
    if (status == STATUS_OK)
        status = output_directory_add(pages->directory, "sheets", err);
    for (size_t i = 0; status == STATUS_OK && i < sizeof steps / sizeof *steps; i++) {
        watch_show(&pages->config->machine.watch, "pages", i, sizeof steps / sizeof *steps);
        status = watch_check(&pages->config->machine.watch,
                             "writing the report: no part of it is kept", err);
        if (status == STATUS_OK)
            status = steps[i](pages, err);
    }
    return status;
}

enum status pages_write(struct pages_counts *counts, const struct pages_config *config,
                        struct error *err)
{
    struct pages pages = {.config = config, .counts = counts};
    memset(counts, 0, sizeof *counts);
    enum status status = result_open(&pages.result, config->file, err);
    if (status == STATUS_OK)
        status = choose(&pages, err);
    if (status == STATUS_OK) {
        counts->images = result_images(pages.result);
        if (pages.clusters)
            snprintf(counts->clustering, sizeof counts->clustering, "%s", pages.clusters->name);
        counts->kept = config->keep_current && is_current(&pages);
    }
    if (counts->kept) {
        result_close(&pages.result);
        return STATUS_OK;
    }
    if (status == STATUS_OK)
        status = words_open(&pages.words, pages.result, pages.clusters, err);
    if (status == STATUS_OK)
        status = output_directory_open(&pages.directory, config->directory, page_names, err);
    if (status == STATUS_OK)
        status = album_read(&pages.album, &pages.grouping, pages.result, pages.clusters,
                            config->machine.watch.stop, err);
    if (status == STATUS_OK)
        status = make(&pages, err);
    if (status == STATUS_OK)
        status = output_directory_commit(pages.directory, err);
    counts->groups = pages.album.group_count;
    pages_clear(&pages);
    output_directory_close(&pages.directory);
    result_close(&pages.result);
    return status;
}

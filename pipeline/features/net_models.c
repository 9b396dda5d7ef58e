/* net_models.c: the list of open models, and the search in the models' directory. */
#include "features/net_models.h"

#include "base/hash.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_SIZE 4096u
#define SUFFIX    ".net"

struct open_model {
    struct net_model *model;
    struct open_model *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct open_model *models;

void net_models_directory(char *path, size_t size)
{
    const char *own = getenv("CLPIPE_MODELS"), *data = getenv("XDG_DATA_HOME");
    const char *home = getenv("HOME");
    if (own && *own)
        snprintf(path, size, "%s", own);
    else if (data && *data == '/')
        snprintf(path, size, "%s/clpipe/models", data);
    else
        snprintf(path, size, "%s/.local/share/clpipe/models", home ? home : "");
}

static const struct net_model *find_open(const char *digest)
{
    for (const struct open_model *open = models; open; open = open->next)
        if (strcmp(open->model->digest, digest) == 0)
            return open->model;
    return NULL;
}

/* Takes ownership of the model. */
static const struct net_model *keep(struct net_model *model)
{
    const struct net_model *there = find_open(model->digest);
    struct open_model *open = there ? NULL : malloc(sizeof *open);
    if (!open) {
        net_model_close(&model);
        return there;
    }
    *open = (struct open_model){model, models};
    models = open;
    return model;
}

static bool ends_in(const char *path, const char *suffix)
{
    const size_t length = strlen(path), end = strlen(suffix);
    return length > end && strcmp(path + length - end, suffix) == 0;
}

enum status net_models_open(const struct net_model **out, struct runtime **runtime,
                            const char *file, struct error *err)
{
    static const char *const suffixes[] = {SUFFIX, RUNTIME_SUFFIX};
    char path[PATH_SIZE], directory[PATH_SIZE - 256];
    struct net_model *model;
    snprintf(path, sizeof path, "%s", file);
    if (!strchr(file, '/') && access(file, F_OK) != 0) {
        net_models_directory(directory, sizeof directory);
        for (int i = 0; i < 2 && access(path, F_OK) != 0; i++)
            snprintf(path, sizeof path, "%s/%.240s%s", directory, file, suffixes[i]);
        if (access(path, F_OK) != 0)
            return error_set(err, STATUS_USAGE,
                             "there is no model %s: neither a file of that name nor %.*s" SUFFIX
                             "; 'clpipe-network lite0' makes one",
                             file, (int)(strlen(path) - strlen(RUNTIME_SUFFIX)), path);
    }
    if (ends_in(path, RUNTIME_SUFFIX)) {
        *runtime = runtime_of(path);
        return *runtime ? STATUS_OK : error_memory(err, PATH_SIZE, "a model");
    }
    if (net_model_open(&model, path, err) != STATUS_OK)
        return err->status;
    pthread_mutex_lock(&lock);
    *out = keep(model);
    pthread_mutex_unlock(&lock);
    return *out ? STATUS_OK : error_memory(err, sizeof(struct open_model), "a model");
}

/* Does the file have that digest? */
static bool has_digest(const char *path, const char *wanted)
{
    struct sha256 state;
    uint8_t bytes[1 << 14], digest[32];
    char hex[65];
    FILE *file = fopen(path, "rb");
    sha256_init(&state);
    for (size_t got; file && (got = fread(bytes, 1, sizeof bytes, file)) > 0;)
        sha256_update(&state, bytes, got);
    if (file)
        fclose(file);
    sha256_final(&state, digest);
    sha256_hex(hex, digest);
    return strcmp(hex, wanted) == 0;
}

/* Finds the file in the directory with that suffix and digest. */
static bool look_for(char path[PATH_SIZE], const char *suffix, const char *digest)
{
    char directory[PATH_SIZE - 256];
    net_models_directory(directory, sizeof directory);
    DIR *entries = opendir(directory);
    bool found = false;
    for (struct dirent *entry; entries && !found && (entry = readdir(entries));) {
        snprintf(path, PATH_SIZE, "%s/%.255s", directory, entry->d_name);
        found = ends_in(path, suffix) && has_digest(path, digest);
    }
    if (entries)
        closedir(entries);
    return found;
}

const struct net_model *net_models_find(const char *digest)
{
    char path[PATH_SIZE];
    struct net_model *model;
    pthread_mutex_lock(&lock);
    const struct net_model *found = find_open(digest);
    if (!found && look_for(path, SUFFIX, digest) && net_model_open(&model, path, NULL) == STATUS_OK)
        found = keep(model);
    pthread_mutex_unlock(&lock);
    return found;
}

struct runtime *net_models_find_onnx(const char *digest)
{
    char path[PATH_SIZE];
    struct runtime *open = runtime_find(digest);
    return open ? open : look_for(path, RUNTIME_SUFFIX, digest) ? runtime_of(path) : NULL;
}

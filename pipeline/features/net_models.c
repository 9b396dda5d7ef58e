/* net_models.c: a list of open models, and the directory in which others are looked for. */
#include "features/net_models.h"

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

/* Takes the model. */
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

enum status net_models_open(const struct net_model **out, const char *file, struct error *err)
{
    char path[PATH_SIZE], directory[PATH_SIZE - 256];
    struct net_model *model;
    snprintf(path, sizeof path, "%s", file);
    if (!strchr(file, '/') && access(file, F_OK) != 0) {
        net_models_directory(directory, sizeof directory);
        snprintf(path, sizeof path, "%s/%.240s" SUFFIX, directory, file);
        if (access(path, F_OK) != 0)
            return error_set(err, STATUS_USAGE,
                             "there is no model %s: neither a file of that name nor %s; "
                             "'clpipe-network lite0' makes one",
                             file, path);
    }
    if (net_model_open(&model, path, err) != STATUS_OK)
        return err->status;
    pthread_mutex_lock(&lock);
    *out = keep(model);
    pthread_mutex_unlock(&lock);
    return *out ? STATUS_OK : error_memory(err, sizeof(struct open_model), "a model");
}

const struct net_model *net_models_find(const char *digest)
{
    char path[PATH_SIZE], directory[PATH_SIZE - 256];
    net_models_directory(directory, sizeof directory);
    pthread_mutex_lock(&lock);
    const struct net_model *found = find_open(digest);
    DIR *entries = found ? NULL : opendir(directory);
    for (struct dirent *entry; entries && !found && (entry = readdir(entries));) {
        struct net_model *model;
        const size_t length = strlen(entry->d_name);
        if (length <= strlen(SUFFIX) || strcmp(entry->d_name + length - strlen(SUFFIX), SUFFIX) != 0)
            continue;
        snprintf(path, sizeof path, "%s/%.255s", directory, entry->d_name);
        if (net_model_open(&model, path, NULL) != STATUS_OK)
            continue;
        if (strcmp(model->digest, digest) == 0)
            found = keep(model);
        else
            net_model_close(&model);
    }
    if (entries)
        closedir(entries);
    pthread_mutex_unlock(&lock);
    return found;
}

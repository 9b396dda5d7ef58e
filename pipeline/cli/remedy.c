/* remedy.c: the options that help against an error; the library below knows none of them. */
#include "cli/remedy.h"

#include <stdio.h>
#include <string.h>

void remedy_append(struct error *err)
{
    static const char *const text[REMEDY_COUNT] = {
        [REMEDY_LESS_MEMORY] = "close other programs, or lower --memory or --threads",
        [REMEDY_OTHER_DEVICE] = "choose another device with --device",
        [REMEDY_DEVICE_MEMORY] = "lower --device-memory",
        [REMEDY_RUN_AGAIN] = "finished work is kept: run the same command again, or choose another "
                             "device with --device",
        [REMEDY_START_OVER] = "start over with --fresh",
        [REMEDY_OTHER_OUTPUT] = "name another output with -o",
        [REMEDY_REPLACE_OUTPUT] = "replace it with --force, or name another output with -o",
        [REMEDY_REPLACE_FILE] = "name another output with -o, or start over with --fresh",
        [REMEDY_REPLACE] = "replace it with --force, or store under another name with --name",
        [REMEDY_FEWER_SAMPLES] = "lower --mini-batch or --max-iter",
        [REMEDY_OTHER_METRIC] = "choose another --metric",
        [REMEDY_LEAVE_OUT_FEATURE] = "leave out --feature",
        [REMEDY_CHOOSE_FEATURE] = "choose one with --feature",
        [REMEDY_CHOOSE_CLUSTERS] = "choose one with --name",
        [REMEDY_OWN_OUTPUT] = "give -o R.h5",
        [REMEDY_OTHER_NAME] = "give another --name",
        [REMEDY_REPLACE_LABELS] = "replace it with --force",
        [REMEDY_FIRST_CENTROIDS] = "--init takes kmeans++, kmeans-parallel, random or FILE.npy",
        [REMEDY_SMALLER_LAUNCHES] = "lower --bytes",
        [REMEDY_MAKE_CLUSTERS] = "make them with clpipe cluster F.h5 -k K",
    };
    const size_t used = strlen(err->sentence);
    if (text[err->remedy])
        snprintf(err->sentence + used, sizeof err->sentence - used, "; %s", text[err->remedy]);
}

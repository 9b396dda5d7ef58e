/* remedy.c: advice on errors and failed files, in terms of the command line; the layers below know
 * no options. */
#include "cli/remedy.h"

#include <stdio.h>
#include <string.h>

void remedy_append(struct error *err, const struct command *command)
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
        [REMEDY_SAME_OPTIONS] =
            "leave these options out to update it as it is, name another output "
            "with -o, or start over with --fresh",
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
        [REMEDY_REPLACE_FEATURE] = "replace it with --force, or choose another name",
        [REMEDY_REMOVE_DEPENDENTS] = "name them too, or remove them with --force",
        [REMEDY_ALLOW_MISSING] = "--allow-missing gives them rows of NaN",
        [REMEDY_NO_REPORT] = "or run with --no-report",
        [REMEDY_SMALLER_LAUNCHES] = "lower --bytes",
        [REMEDY_ADD_CODES] = "add them with clpipe ingest SOURCE... -o FILE --add-codes",
        [REMEDY_ALLOW_REMOVAL] = "if this is intended, give --allow-removal",
        [REMEDY_GIVE_CLASSES] = "name the classes with --classes FILE.csv",
        [REMEDY_RETRAIN] = "learn a new one, and compute all rows again, with --retrain",
        [REMEDY_RETRAIN_GIVEN] =
            "leave out codebook= to keep it, or replace it, and compute all rows "
            "again, with --retrain",
        [REMEDY_OTHER_WRITER] = "wait for it, or name another output",
        [REMEDY_SHARE] =
            "several processes of this command have been started: with --shard mpi they "
            "share the work, else each needs an output of its own",
        [REMEDY_OTHER_RANKS] =
            "name another output with -o, start as many ranks as before, or start "
            "over with --fresh",
        [REMEDY_SAME_PARTS] = "start over with --fresh",
        [REMEDY_ALONE] = "with --mpi off each process works on its own",
        [REMEDY_MAKE_CLUSTERS] = "make them with clpipe cluster F.h5 -k K",
    };
    const size_t used = strlen(err->sentence);
    if (err->remedy == REMEDY_SEE_HELP)
        snprintf(err->sentence + used, sizeof err->sentence - used, "; see clpipe %s%s--help",
                 command ? command->name : "", command ? " " : "");
    else if (text[err->remedy])
        snprintf(err->sentence + used, sizeof err->sentence - used, "; %s", text[err->remedy]);
    else if (err->status == STATUS_INTERRUPTED && !strstr(err->sentence, "same command"))
        snprintf(err->sentence + used, sizeof err->sentence - used, "; run the same command again");
    err->remedy = REMEDY_NONE;
}

const char *remedy_of_reason(enum reason reason)
{
    static const char *const text[REASON_COUNT] = {
        [REASON_UNREADABLE] = "The file could not be read: check its permissions and "
                              "the disk or network it is on.",
        [REASON_VANISHED] = "The file was removed or renamed while clpipe ran: run again "
                            "when nothing else changes the directory.",
        [REASON_CHANGED] = "The file changed while it was read: run again with --retry-failed when "
                           "it is no longer being written.",
        [REASON_EMPTY] = "The file has no bytes, as after an interrupted copy or download: fetch "
                         "it again or delete it.",
        [REASON_UNKNOWN_FORMAT] = "The name is that of an image, but clpipe does not recognise the "
                                  "content: check it with file(1).",
        [REASON_UNSUPPORTED] =
            "This build cannot decode this format or variant: see clpipe formats, "
            "or convert the file.",
        [REASON_CORRUPT] = "The data is inconsistent: restore the file from a good copy.",
        [REASON_TRUNCATED] = "The data ends early: copy or download the file again.",
        [REASON_TOO_LARGE] = "The image has more pixels than --max-pixels allows, or the file far "
                             "more bytes than they "
                             "need: raise it if you trust the file.",
        [REASON_TOO_MANY_SCANS] = "The progressive JPEG has more scans than --max-scans allows: "
                                  "raise it if you trust the file.",
        [REASON_TIMEOUT] =
            "Decoding took longer than --max-decode-seconds: raise the limit or leave it out.",
        [REASON_OUT_OF_MEMORY] = "The decoder ran out of memory: run again with "
                                 "--retry-failed and fewer --threads.",
        [REASON_DECODER_CRASHED] =
            "The decoder crashed on this file: treat the file as malicious, and "
            "update the image libraries.",
        [REASON_NOT_AN_IMAGE] = "Neither the name nor the content is that of an image: skipped.",
    };
    return text[reason];
}

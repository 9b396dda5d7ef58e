/* cmd_remove.c: clpipe remove and clpipe rename: objects that a file can do without. */
#include "base/parse.h"
#include "base/path.h"
#include "cli/call.h"
#include "cli/commands.h"
#include "cli/option_rows.h"
#include "cli/report_json.h"
#include "cli/signals.h"
#include "cli/summary.h"
#include "result/choose.h"
#include "result/objects.h"
#include "result/workdir.h"
#include <stdlib.h>
#include <string.h>

/* Opens the file and keeps other writers away. */
static enum status open_file(struct result **result, struct workdir **lock,
                             const struct options *options, struct error *err)
{
    signals_install(0);
    enum status status = carried_check(options, options->operand[0], err);
    if (status == STATUS_OK)
        status = result_open(result, options->operand[0], err);
    if (status == STATUS_OK)
        status = workdir_open(lock, options->operand[0], err);
    return status == STATUS_OK ? result_check_current(*result, err) : status;
}

/* --- remove ---------------------------------------------------------------------------------- */

static void write_object(struct json *json, const struct object *object)
{
    json_open_object(json, NULL);
    json_string(json, "name", object->name);
    json_string(json, "feature", object->feature);
    json_uint(json, "bytes", object->bytes);
    json_close_object(json);
}

static enum status list_objects(const struct options *options, struct error *err)
{
    struct result *result = NULL;
    struct objects objects = {0};
    struct json *json = &options->call->json;
    options->call->wall_told = true; /* a list, one object per line */
    enum status status = result_open(&result, options->operand[0], err);
    if (status == STATUS_OK)
        status = objects_list(&objects, result->file, err);
    json_open_array(json, NULL);
    for (unsigned i = 0; i < objects.count && status == STATUS_OK; i++) {
        const struct object *object = &objects.object[i];
        const char *size = BYTES_TEXT(object->bytes);
        if (object->kind == OBJECT_FEATURE)
            summary_line(options, "%-24s %10s   imported", object->name, size);
        else
            summary_line(options, "%-24s %10s   %s%s", object->name, size,
                         *object->feature ? "made from " : "chosen by select", object->feature);
        write_object(json, object);
    }
    json_close_array(json);
    if (status == STATUS_OK && objects.count == 0)
        summary_line(
            options,
            "%s holds neither clusterings nor imported features nor neighbours nor selections",
            PATH_TEXT(options->operand[0]));
    objects_clear(&objects);
    result_close(&result);
    return status;
}

static void report_removed(const struct objects *objects, const bool *remove,
                           const struct options *options)
{
    struct json *json = report_open(options);
    json_open_array(json, "removed");
    for (unsigned i = 0; i < objects->count; i++)
        if (remove[i]) {
            summary_line(options, "removed %s from %s", objects->object[i].name,
                         PATH_TEXT(options->operand[0]));
            write_object(json, &objects->object[i]);
        }
    json_close_array(json);
    report_bytes(json, "output", options->operand[0]);
}

static enum status run_remove(const struct options *options, struct error *err)
{
    struct result *result = NULL;
    struct workdir *lock = NULL;
    struct objects objects = {0};
    bool *remove = NULL;
    if (options->operand_count == 1 && options->force)
        return misuse(err, "--force requires a NAME to remove");
    if (options->operand_count == 1)
        return list_objects(options, err);
    enum status status = open_file(&result, &lock, options, err);
    if (status == STATUS_OK)
        status = objects_list(&objects, result->file, err);
    if (status == STATUS_OK && !(remove = calloc(objects.count + 1u, sizeof *remove)))
        status = error_memory(err, objects.count, "a list of objects");
    for (unsigned i = 1; i < options->operand_count && status == STATUS_OK; i++) {
        const struct object *object;
        status = objects_find(&object, &objects, result, options->operand[i], err);
        if (status == STATUS_OK)
            remove[object - objects.object] = true;
    }
    if (status == STATUS_OK)
        status = objects_remove(result, &objects, remove, options->force, err);
    if (status == STATUS_OK)
        report_removed(&objects, remove, options);
    free(remove);
    objects_clear(&objects);
    result_close(&result);
    workdir_release(&lock);
    return status;
}

/* --- rename ---------------------------------------------------------------------------------- */

static enum status run_rename(const struct options *options, struct error *err)
{
    struct result *result = NULL;
    struct workdir *lock = NULL;
    const struct result_clusters *clusters;
    char old[FEATURE_NAME_MAX];
    const char *from = options->operand[1], *to = options->operand[2];
    /* The names accepted by clpipe remove. */
    from += strncmp(from, "/clusters/", 10) == 0 ? 10 : strncmp(from, "clusters/", 9) == 0 ? 9 : 0;
    to += strncmp(to, "/clusters/", 10) == 0 ? 10 : strncmp(to, "clusters/", 9) == 0 ? 9 : 0;
    enum status status = open_file(&result, &lock, options, err);
    if (status == STATUS_OK)
        status = choose_clusters(&clusters, result, from, err);
    if (status == STATUS_OK) {
        memcpy(old, clusters->name, sizeof old);
        status = objects_rename(result, clusters, to, err);
    }
    if (status == STATUS_OK) {
        summary_line(options, "%s: clusters/%s is now clusters/%s", PATH_TEXT(options->operand[0]),
                     old, PATH_TEXT_IN(128, to));
        struct json *json = report_open(options);
        json_string(json, "from", old);
        json_string(json, "to", to);
        report_bytes(json, "output", options->operand[0]);
    }
    result_close(&result);
    workdir_release(&lock);
    return status;
}

static const struct option rows[] = {
    FORCE_ROW("also remove the clusterings and neighbours made from a removed feature"),
    {.name = NULL}};

const struct command command_remove = {
    .name = "remove",
    .goal = GOAL_RESULTS,
    .arguments = "F.h5 [NAME...] [OPTIONS]",
    .summary = "remove clusterings, imported features and the like from a file",
    .about =
        "NAME is clusters/NAME, features/NAME, neighbours/NAME or selections/NAME, or its last "
        "part where that is unambiguous. Without NAME, lists what can be removed. Features "
        "that clpipe "
        "computed belong to the file and stay. The file is replaced by a new copy.",
    .examples = "  clpipe remove photos.h5\n"
                "  clpipe remove photos.h5 clusters/kmeans\n"
                "  clpipe remove photos.h5 features/clip --force",
    .operand_name = "F.h5",
    .operands = {1, 65535},
    .group = {{"What to remove", rows}, {GROUP_CARRIED}},
    .run = run_remove};

const struct command command_rename = {
    .name = "rename",
    .goal = GOAL_RESULTS,
    .arguments = "F.h5 OLD NEW [OPTIONS]",
    .summary = "rename a clustering",
    .about =
        "The clustering /clusters/OLD becomes /clusters/NEW. The file is replaced by a new copy.",
    .examples = "  clpipe rename photos.h5 kmeans by-colour",
    .operand_name = "F.h5, OLD or NEW",
    .operands = {3, 3},
    .group = {{GROUP_CARRIED}},
    .run = run_rename};

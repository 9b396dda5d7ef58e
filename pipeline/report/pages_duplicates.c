/* pages_duplicates.c: data/duplicates.js: groups of pictures that are copies of each other, by
 * bytes and codes: pictures are not decoded again for a report. */
#include "base/log.h"
#include "jobs/duplicates.h"
#include "report/pages_data.h"
#include <stdio.h>

/* Maximum number of pairs for near copies: half a minute on two cores, 245,000 pictures. */
#define MOST_PAIRS 3e10

bool pages_compare_codes(uint64_t images)
{
    return 0.5 * (double)images * (double)images <= MOST_PAIRS;
}

static void add_group(struct json *json, const struct pages *pages, const struct duplicates *found,
                      const struct duplicates_group *group)
{
    json_open_object(json, NULL);
    json_string(json, "kind", duplicates_kind_name(group->kind));
    /* [number, kind, distance of codes, mirrored?]: the last three relative to the first member. */
    json_open_array(json, "members");
    for (uint64_t i = group->first; i < group->first + group->count; i++) {
        const struct duplicates_member *member = &found->member[i];
        json_open_array(json, NULL);
        json_uint(json, NULL, pages->album.number[member->row]);
        if (i > group->first) {
            json_string(json, NULL, duplicates_kind_name(member->kind));
            json_uint(json, NULL, member->distance);
            json_bool(json, NULL, member->mirrored);
        }
        json_close_array(json);
    }
    json_close_array(json);
    json_close_object(json);
}

enum status pages_make_duplicates(struct pages *pages, struct error *err)
{
    const struct pages_config *config = pages->config;
    const bool near = pages_compare_codes(pages->album.count);
    const struct duplicates_config search = {.near = near ? DUPLICATES_BLIND : 0,
                                             .threads = config->machine.threads,
                                             .memory = config->machine.memory,
                                             .watch = config->machine.watch};
    struct duplicates found = {0};
    struct error why = ERROR_INIT;
    struct json json;
    if (!result_has_codes(pages->result)) {
        snprintf(
            pages->duplicates_note, sizeof pages->duplicates_note,
            "Duplicates: this file has no codes of its pictures. clpipe ingest with --add-codes "
            "adds them.");
        return STATUS_OK;
    }
    enum status status = duplicates_find(&found, pages->result, &search, &why);
    if (status == STATUS_INTERRUPTED) {
        *err = why;
        return status;
    }
    if (status != STATUS_OK) {
        snprintf(pages->duplicates_note, sizeof pages->duplicates_note,
                 "Duplicates: the search for them failed.");
        log_message(LOG_NOTICE, "notice: the report has no duplicates: %s", why.sentence);
        return STATUS_OK;
    }
    if (!near) {
        snprintf(pages->duplicates_note, sizeof pages->duplicates_note,
                 "Near copies: comparing %llu pictures with each other takes too long; use clpipe "
                 "duplicates.",
                 (unsigned long long)pages->album.count);
        log_message(LOG_NOTICE,
                    "notice: the report has no near copies: comparing %llu pictures with each "
                    "other takes too long; use clpipe duplicates",
                    (unsigned long long)pages->album.count);
    }
    pages->has_duplicates = true;
    pages->near_limit = search.near;
    script_begin(&json);
    json_open_array(&json, NULL);
    for (uint64_t i = 0; i < found.groups; i++) {
        pages->duplicates[found.group[i].kind]++;
        add_group(&json, pages, &found, &found.group[i]);
    }
    json_close_array(&json);
    duplicates_clear(&found);
    return script_write(&json, "duplicates", -1, pages, err);
}

/* tuning.c: the cache entry of a device, with a line for each measured class:
 *
 *   clpipe tuning 1
 *   NVIDIA H200, driver 580.159.03
 *   gray replicated 1024 16 147456 1000
 *
 * variant, work-items per work-group, copies, pixels per tile, speed in thousandths of the
 * default's. The digest before it (ocl_cache.h) detects damage; lines are still validated, since an
 * impossible shape would cost a failed build in every run. */
#include "device/tuning.h"

#include "base/log.h"
#include "features/kind.h"
#include "ocl/ocl_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER     "tuning"
#define KERNELS    "histogram_"
#define TITLE      "clpipe tuning 1\n"
#define LARGE_BINS 1024u

static const struct {
    const char *name, *spec;
    const struct feature_kind *kind;
    bool large; /* more than LARGE_BINS bins */
} classes[TUNING_CLASSES] = {
    {"rgb", "rgb:bins=256", &feature_rgb, false},
    {"joint", "rgb:bins=8x8x8", &feature_rgb_joint, false},
    {"joint-large", "rgb:bins=16x16x16", &feature_rgb_joint, true},
    {"gray", "gray:bins=256", &feature_gray, false},
    {"hsv", "hsv:bins=8x4x4", &feature_hsv, false},
    {"hsv-large", "hsv:bins=16x16x16", &feature_hsv, true},
};

unsigned tuning_class_of(const struct feature *feature)
{
    const bool large = feature->cell_bins > LARGE_BINS;
    unsigned c = 0;
    while (c < TUNING_CLASSES && (classes[c].kind != feature->kind || classes[c].large != large))
        c++;
    return c;
}

const char *tuning_class_name(unsigned class)
{
    return classes[class].name;
}

const char *tuning_class_spec(unsigned class)
{
    return classes[class].spec;
}

/* --- the cache ------------------------------------------------------------------------------- */

static bool parse_line(struct tuning *tuning, const char *line, const struct ocl_device *device)
{
    char class[16], variant[16];
    struct histogram_shape shape;
    unsigned gain;
    int end = 0;
    if (sscanf(line, "%15s %15s %u %u %u %u%n", class, variant, &shape.group, &shape.copies,
               &shape.tile_pixels, &gain, &end) != 6 ||
        line[end] != '\0')
        return false;
    unsigned c = 0;
    while (c < TUNING_CLASSES && strcmp(class, classes[c].name) != 0)
        c++;
    enum histogram_variant choice;
    if (c == TUNING_CLASSES || !histogram_variant_parse(&choice, variant) ||
        choice == HISTOGRAM_AUTO || !histogram_shape_fits(&shape, choice, 1, device))
        return false;
    tuning->entry[c].variant = choice;
    tuning->entry[c].shape = shape;
    tuning->entry[c].gain = gain;
    return true;
}

static bool parse(struct tuning *tuning, char *text, const struct ocl_device *device)
{
    char *rest = text;
    if (strncmp(text, TITLE, strlen(TITLE)) != 0)
        return false;
    rest += strlen(TITLE);
    strsep(&rest, "\n"); /* the device's name is only informative */
    for (char *line; rest && *rest;) {
        line = strsep(&rest, "\n");
        if (!parse_line(tuning, line, device))
            return false;
    }
    return true;
}

void tuning_load(struct tuning *out, const struct ocl_device *device)
{
    char key[OCL_KEY], *text;
    size_t size;
    *out = (struct tuning){0};
    ocl_device_key(key, device, KERNELS);
    enum ocl_cache_state state = ocl_cache_load(&text, &size, FOLDER, key);
    if (state == OCL_CACHE_DAMAGED || (state == OCL_CACHE_FOUND && !parse(out, text, device))) {
        *out = (struct tuning){0};
        log_message(
            LOG_NOTICE,
            "notice: the results of clpipe tune for %s are damaged and not used; run it again",
            device->name);
    }
    free(text);
}

enum status tuning_save(const struct tuning *tuning, const struct ocl_device *device,
                        struct error *err)
{
    char key[OCL_KEY], text[1024];
    ocl_device_key(key, device, KERNELS);
    size_t used =
        (size_t)snprintf(text, sizeof text, TITLE "%s, driver %s\n", device->name, device->driver);
    for (unsigned c = 0; c < TUNING_CLASSES; c++) {
        const struct histogram_shape *shape = &tuning->entry[c].shape;
        if (tuning->entry[c].variant != HISTOGRAM_AUTO)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s %s %u %u %u %u\n",
                                     classes[c].name,
                                     histogram_variant_name(tuning->entry[c].variant), shape->group,
                                     shape->copies, shape->tile_pixels, tuning->entry[c].gain);
    }
    return ocl_cache_save(FOLDER, key, text, used, err);
}

enum status tuning_forget(bool *found, const struct ocl_device *device, struct error *err)
{
    char key[OCL_KEY];
    ocl_device_key(key, device, KERNELS);
    return ocl_cache_remove(found, FOLDER, key, err);
}

/* --- choosing -------------------------------------------------------------------------------- */

struct histogram_choice tuning_choice(const struct tuning *tuning, const struct feature *feature,
                                      const struct ocl_device *device)
{
    const unsigned class = tuning_class_of(feature);
    struct histogram_choice choice = {.variant = HISTOGRAM_AUTO, .tuned = true};
    char reason[128];
    if (class < TUNING_CLASSES) {
        choice.variant = tuning->entry[class].variant;
        choice.shape = tuning->entry[class].shape;
    }
    if (choice.variant == HISTOGRAM_AUTO ||
        !histogram_variant_takes(reason, sizeof reason, choice.variant, feature, device))
        return (struct histogram_choice){.variant = histogram_variant_usual(feature, device)};
    /* The shape was measured with the table of another feature of the class. */
    while (choice.shape.copies > 1 &&
           !histogram_shape_fits(&choice.shape, choice.variant, feature->cell_bins, device))
        choice.shape.copies /= 2;
    if (!histogram_shape_fits(&choice.shape, choice.variant, feature->cell_bins, device))
        choice.shape = (struct histogram_shape){0};
    return choice;
}

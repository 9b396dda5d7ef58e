/* variant.c: the table of the variants and their launches. The numbers were measured: on an H200
 * those of GPUs, on a CPU with PoCL those of CPUs; docs/features.md has them. */
#include "histogram/variant.h"

#include <stdio.h>
#include <string.h>

/* On CPUs a picture in one tile stores its counters instead of adding them with atomics (768 of
 * them cost 5 microseconds, a picture of 512 x 384 takes 270), so tiles are as long as a launch
 * still gives every thread four. */
#define TILES_A_THREAD          4u
#define TILE_PIXELS_PRIVATE_MIN (32u << 10)
#define TILE_PIXELS_PRIVATE_MAX (256u << 10)
#define TABLES_PRIVATE          (192u << 10) /* what a second-level cache holds */

/* On GPUs, what the tiles of one large picture add to its counters meets in a few cache lines: in
 * launches of 1 GiB, tiles of 32,000 pixels cost 15 %, and with tiles of 250,000 the last
 * work-groups leave the device half empty. In launches of a slot of 32 MiB there are too few tiles
 * for that to matter, and each compute unit should have one. A unit runs three of packed's
 * work-groups at a time, so it gets as many tiles, or a multiple: none is left over, and they can be
 * as long as its fields allow. */
#define TILES_AT_A_TIME_PACKED 3u
#define TILE_PIXELS_PACKED_MAX (495u << 10)
#define TILE_PIXELS_PACKED_MIN (16u << 10)
#define TILE_PIXELS_GROUP_MAX  (144u << 10)
#define TILE_PIXELS_GROUP_MIN  (32u << 10)

#define GROUP_MOST     1024u
#define GROUP_MOST_CPU 128u /* work-items take turns there */
#define COPIES_MOST    16u

#define LINE_PIXELS 128u /* what a tile begins at a multiple of: three cache lines */

/* What tuning may try. */
#define GROUP_LEAST       16u
#define COPIES_MOST_TUNED 32u
#define TILE_PIXELS_LEAST 2048u
#define TILE_PIXELS_MOST  (1u << 20)

#define STAGED_GROUP 128u
#define STAGE_BYTES  96u /* of local memory a work-item, as the kernel has it */

#define SUBGROUP_GROUP_LEAST 32u /* a warp */

#define PACKED_GROUP       512u
#define PACKED_GROUP_LEAST 256u
#define PACKED_TABLE       (48u << 10)
#define PACKED_PIXELS_MOST 507904u /* of a tile of one row, as the kernel has it */

static const struct {
    const char *name, *kernel;
} variants[] = {
    {"auto", ""},
    {"private", "histogram_private"},
    {"local", "histogram_local"},
    {"replicated", "histogram_replicated"},
    {"packed", "histogram_packed"},
    {"runs", "histogram_runs"},
    {"subgroup", "histogram_subgroup"},
    {"partial", "histogram_partial"},
    {"staged", "histogram_staged"},
    {"global", "histogram_global"},
};
_Static_assert(sizeof variants / sizeof *variants == HISTOGRAM_VARIANTS, "one row a variant");

const char *histogram_variant_name(enum histogram_variant variant)
{
    return variants[variant].name;
}

const char *histogram_variant_kernel(enum histogram_variant variant)
{
    return variants[variant].kernel;
}

bool histogram_variant_parse(enum histogram_variant *out, const char *name)
{
    for (int v = 0; v < HISTOGRAM_VARIANTS; v++) {
        if (strcmp(name, variants[v].name) == 0) {
            *out = (enum histogram_variant)v;
            return true;
        }
    }
    return false;
}

bool histogram_variant_suits(enum histogram_variant variant, const struct ocl_device *device)
{
    return variant != HISTOGRAM_PRIVATE || device->type & CL_DEVICE_TYPE_CPU;
}

bool histogram_variant_copies(enum histogram_variant variant)
{
    return variant == HISTOGRAM_REPLICATED || variant == HISTOGRAM_PARTIAL;
}

/* The largest power of two that is at most `most` and that the device takes. */
static uint32_t group_size(uint32_t most, const struct ocl_device *device)
{
    uint32_t group = 1;
    while (group * 2 <= most && group * 2 <= device->max_work_group &&
           group * 2 <= device->max_work_item[0])
        group *= 2;
    return group;
}

uint64_t histogram_variant_table(enum histogram_variant variant, const struct feature *feature)
{
    switch (variant) {
    case HISTOGRAM_GLOBAL:
        return 0;
    case HISTOGRAM_PACKED:
        return PACKED_TABLE;
    case HISTOGRAM_PRIVATE:
        /* Channels have four sub-tables, as the kernel has it. */
        if (feature->kind == FEATURE_RGB)
            return 4u * 4 * 3 * 272;
        if (feature->kind == FEATURE_GRAY)
            return 4u * 4 * 272;
        return 4ull * feature->cell_bins;
    default:
        return 4ull * feature->cell_bins;
    }
}

uint64_t histogram_variant_tables_most(enum histogram_variant variant,
                                       const struct ocl_device *device)
{
    switch (variant) {
    case HISTOGRAM_PRIVATE:
        return TABLES_PRIVATE;
    case HISTOGRAM_GLOBAL:
        return UINT64_MAX;
    case HISTOGRAM_PACKED:
        return PACKED_TABLE; /* one feature */
    case HISTOGRAM_REPLICATED:
    case HISTOGRAM_PARTIAL:
        /* Room for four copies: fewer cost more than a second reading of the pixels. */
        return device->local_memory / 8;
    case HISTOGRAM_STAGED:
        return device->local_memory / 4; /* beside the stage */
    default:
        return device->local_memory / 2;
    }
}

bool histogram_variant_takes(char *reason, size_t size, enum histogram_variant variant,
                             const struct feature *feature, const struct ocl_device *device)
{
    uint64_t bytes = histogram_variant_table(variant, feature);
    if (variant == HISTOGRAM_AUTO || variant == HISTOGRAM_PRIVATE || variant == HISTOGRAM_GLOBAL)
        return true;
    if (variant == HISTOGRAM_PACKED && feature->kind != FEATURE_RGB) {
        snprintf(reason, size, "it counts separate channels (rgb:bins=B) only");
        return false;
    }
    if (variant == HISTOGRAM_PACKED && group_size(PACKED_GROUP, device) < PACKED_GROUP_LEAST) {
        snprintf(reason, size, "it needs work-groups of %u, the device takes %u",
                 PACKED_GROUP_LEAST, group_size(PACKED_GROUP, device));
        return false;
    }
    if (variant == HISTOGRAM_SUBGROUP && !ocl_subgroup_options(device)) {
        snprintf(reason, size, "it needs subgroups, or an NVIDIA GPU of compute capability 7.0");
        return false;
    }
    if (variant == HISTOGRAM_STAGED)
        bytes += (uint64_t)STAGE_BYTES * group_size(STAGED_GROUP, device);
    if (bytes > device->local_memory) {
        snprintf(reason, size, "it needs %llu bytes of local memory, the device has %llu",
                 (unsigned long long)bytes, (unsigned long long)device->local_memory);
        return false;
    }
    return true;
}

/* What was measured to be the fastest, for rgb:bins=B and for features of one counter a pixel. */
static const struct {
    const char *platform;
    cl_device_type type;
    enum histogram_variant channels, single;
} known[] = {
    {"Portable Computing Language", CL_DEVICE_TYPE_CPU, HISTOGRAM_PRIVATE, HISTOGRAM_PRIVATE},
    {"Intel(R) OpenCL", CL_DEVICE_TYPE_CPU, HISTOGRAM_PRIVATE, HISTOGRAM_PRIVATE},
    {"NVIDIA CUDA", CL_DEVICE_TYPE_GPU, HISTOGRAM_PACKED, HISTOGRAM_LOCAL},
};

enum histogram_variant histogram_variant_usual(const struct feature *feature,
                                               const struct ocl_device *device)
{
    char reason[128];
    enum histogram_variant best =
        device->type & CL_DEVICE_TYPE_CPU ? HISTOGRAM_PRIVATE : HISTOGRAM_REPLICATED;
    for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(device->platform, known[i].platform) == 0 && device->type & known[i].type)
            best = feature->kind == FEATURE_RGB ? known[i].channels : known[i].single;
    if (histogram_variant_takes(reason, sizeof reason, best, feature, device))
        return best;
    if (histogram_variant_takes(reason, sizeof reason, HISTOGRAM_REPLICATED, feature, device))
        return HISTOGRAM_REPLICATED;
    return HISTOGRAM_GLOBAL;
}

static uint32_t clamp(uint32_t value, uint32_t least, uint32_t most)
{
    return value < least ? least : value > most ? most : value;
}

struct histogram_shape histogram_variant_shape(enum histogram_variant variant, uint32_t bins,
                                               uint64_t launch_bytes,
                                               const struct ocl_device *device)
{
    const bool cpu = device->type & CL_DEVICE_TYPE_CPU;
    const uint32_t units = device->compute_units > 0 ? device->compute_units : 1;
    const uint64_t most = launch_bytes / 3 / units;
    const uint32_t share = most < UINT32_MAX ? (uint32_t)most : UINT32_MAX; /* of a unit, pixels */
    struct histogram_shape shape = {
        .group = group_size(cpu ? GROUP_MOST_CPU : GROUP_MOST, device),
        .copies = 1,
        .tile_pixels =
            clamp(share, TILE_PIXELS_GROUP_MIN, TILE_PIXELS_GROUP_MAX) & ~(LINE_PIXELS - 1),
    };
    if (variant == HISTOGRAM_PRIVATE) {
        shape.group = 1;
        shape.tile_pixels =
            clamp(share / TILES_A_THREAD, TILE_PIXELS_PRIVATE_MIN, TILE_PIXELS_PRIVATE_MAX) & ~15u;
    }
    if (variant == HISTOGRAM_PACKED) {
        const uint32_t third = share / TILES_AT_A_TIME_PACKED;
        const uint32_t turns = third / TILE_PIXELS_PACKED_MAX + 1;
        shape.group = group_size(PACKED_GROUP, device);
        shape.tile_pixels = clamp((third / turns + LINE_PIXELS) & ~(LINE_PIXELS - 1),
                                  TILE_PIXELS_PACKED_MIN, TILE_PIXELS_PACKED_MAX);
    }
    if (variant == HISTOGRAM_STAGED)
        shape.group = group_size(STAGED_GROUP, device);
    if (histogram_variant_copies(variant))
        while (shape.copies < COPIES_MOST && shape.copies < shape.group &&
               8ull * bins * shape.copies <= device->local_memory / 2)
            shape.copies *= 2;
    return shape;
}

static bool is_power_of_two(uint32_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

bool histogram_shape_fits(const struct histogram_shape *shape, enum histogram_variant variant,
                          uint32_t bins, const struct ocl_device *device)
{
    uint64_t local = 4ull * bins * shape->copies;
    uint32_t least = GROUP_LEAST, most = GROUP_MOST, pixels = TILE_PIXELS_MOST;
    if (variant == HISTOGRAM_PRIVATE) {
        least = most = 1;
        local = 0;
    } else if (variant == HISTOGRAM_GLOBAL) {
        local = 0;
    } else if (variant == HISTOGRAM_PACKED) {
        least = PACKED_GROUP_LEAST;
        local = PACKED_TABLE;
        pixels = PACKED_PIXELS_MOST;
    } else if (variant == HISTOGRAM_SUBGROUP) {
        least = SUBGROUP_GROUP_LEAST;
    } else if (variant == HISTOGRAM_STAGED) {
        local += (uint64_t)STAGE_BYTES * shape->group;
    }
    return is_power_of_two(shape->group) && shape->group >= least &&
           shape->group <= group_size(most, device) && is_power_of_two(shape->copies) &&
           shape->copies <= (histogram_variant_copies(variant) ? COPIES_MOST_TUNED : 1) &&
           shape->copies <= shape->group && local <= device->local_memory &&
           shape->tile_pixels % 16 == 0 && shape->tile_pixels >= TILE_PIXELS_LEAST &&
           shape->tile_pixels <= pixels;
}

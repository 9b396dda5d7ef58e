/* variant.c: the table of variants and their launch shapes. The numbers were measured, for GPUs on
 * an H200 and for CPUs with PoCL; docs/features.md has the measurements. */
#include "device/variant.h"

#include "features/kind.h"

#include <stdio.h>
#include <string.h>

/* On CPUs a picture in one tile stores its counters instead of adding them atomically (5
 * microseconds for 768 of them; a picture of 512 x 384 takes 270). So tiles are as long as possible
 * with four tiles per thread. */
#define TILES_A_THREAD          4u
#define TILE_PIXELS_PRIVATE_MIN (32u << 10)
#define TILE_PIXELS_PRIVATE_MAX (256u << 10)
#define TABLES_PRIVATE          (192u << 10) /* the size of a second-level cache */

/* On GPUs, the tiles of a large picture contend for a few cache lines of counters. In launches of 1
 * GiB, tiles of 32,000 pixels cost 15 %; with tiles of 250,000 the last work-groups leave most of
 * the device idle. A slot of 32 MiB has too few tiles for contention to matter, and each compute
 * unit should have one. A compute unit runs three work-groups of `packed` at a time, so it gets a
 * multiple of three tiles, as long as its bit fields allow. */
#define TILES_AT_A_TIME_PACKED 3u
#define TILE_PIXELS_PACKED_MAX (495u << 10)
#define TILE_PIXELS_PACKED_MIN (16u << 10)
#define TILE_PIXELS_GROUP_MAX  (144u << 10)
#define TILE_PIXELS_GROUP_MIN  (32u << 10)

#define GROUP_MOST     1024u
#define GROUP_MOST_CPU 128u /* work-items run in turn on a CPU */
#define COPIES_MOST    16u

#define LINE_PIXELS 128u /* tiles begin at multiples of this: three cache lines */

/* The range that tuning tries. */
#define GROUP_LEAST       16u
#define COPIES_MOST_TUNED 32u
#define TILE_PIXELS_LEAST 2048u
#define TILE_PIXELS_MOST  (1u << 20)

#define STAGED_GROUP 128u
#define STAGE_BYTES  96u /* of local memory per work-item, as in the kernel */

#define PACKED_GROUP       512u
#define PACKED_GROUP_LEAST 256u
#define PACKED_TABLE       (48u << 10)
#define PACKED_PIXELS_MOST 507904u /* of a tile of one row, as in the kernel */

/* A row of the table. */
struct variant {
    const char *name, *kernel, *reduce;
    bool cpu_only; /* one work-item per tile leaves a GPU idle */
    bool copies;   /* the kernel has COPIES copies of the table */
    /* Bytes of one table: table_bytes for any feature, else table(), else the bytes of its
     * counters. */
    uint32_t table_bytes;
    uint64_t (*table)(const struct feature *feature);
    /* Upper bound on the bytes of a pass's tables: tables_most, or local memory / tables_share. */
    uint64_t tables_most;
    uint32_t tables_share;
    /* Tables are in local memory, with item_bytes more per work-item. */
    bool local;
    uint32_t item_bytes;
    /* Further requirements; NULL: none. */
    bool (*takes)(char *reason, size_t size, const struct feature *feature,
                  const struct ocl_device *device);
    /* Adjusts the default shape; `share`: pixels per compute unit in a launch. NULL: unchanged. */
    void (*shape)(struct histogram_shape *shape, uint32_t share, const struct ocl_device *device);
    const char *(*language)(const struct ocl_device *device); /* NULL: OpenCL C 1.2 */
    const char *(*define)(const struct ocl_device *device);   /* NULL: nothing */
    uint32_t group_least, group_most, tile_pixels_most;       /* the range that tuning tries */
};

/* The largest power of two up to `most` that the device supports. */
static uint32_t group_size(uint32_t most, const struct ocl_device *device)
{
    uint32_t group = 1;
    while (group * 2 <= most && group * 2 <= device->max_work_group &&
           group * 2 <= device->max_work_item[0])
        group *= 2;
    return group;
}

static uint32_t clamp(uint32_t value, uint32_t least, uint32_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* Each channel has four sub-tables, as in the kernel. */
static uint64_t private_table(const struct feature *feature)
{
    return 4ull *
           (feature->kind->channels ? 4 * 272 * feature->kind->channels : feature->cell_bins);
}

static void private_shape(struct histogram_shape *shape, uint32_t share,
                          const struct ocl_device *device)
{
    (void)device;
    shape->group = 1;
    shape->tile_pixels =
        clamp(share / TILES_A_THREAD, TILE_PIXELS_PRIVATE_MIN, TILE_PIXELS_PRIVATE_MAX) & ~15u;
}

/* PoCL 5.0 aborts in LLVM on kernels with inline assembly, so the extensions are used only with
 * drivers known to support them. */
static const char *private_define(const struct ocl_device *device)
{
    const bool takes = strncmp(device->platform, "Intel", 5) == 0 || device->pocl_major == 3;
    return takes ? " -DEXTENSIONS" : "";
}

static bool packed_takes(char *reason, size_t size, const struct feature *feature,
                         const struct ocl_device *device)
{
    if (feature->kind != &feature_rgb) {
        snprintf(reason, size, "it counts separate channels (rgb:bins=B) only");
        return false;
    }
    if (group_size(PACKED_GROUP, device) < PACKED_GROUP_LEAST) {
        snprintf(reason, size, "it needs work-groups of %u, the device takes %u",
                 PACKED_GROUP_LEAST, group_size(PACKED_GROUP, device));
        return false;
    }
    return true;
}

static void packed_shape(struct histogram_shape *shape, uint32_t share,
                         const struct ocl_device *device)
{
    const uint32_t third = share / TILES_AT_A_TIME_PACKED;
    const uint32_t turns = third / TILE_PIXELS_PACKED_MAX + 1;
    shape->group = group_size(PACKED_GROUP, device);
    shape->tile_pixels = clamp((third / turns + LINE_PIXELS) & ~(LINE_PIXELS - 1),
                               TILE_PIXELS_PACKED_MIN, TILE_PIXELS_PACKED_MAX);
}

/* ld.global with L1::no_allocate came with compute capability 7.0 (PTX ISA, 9.7.9.8). */
static const char *packed_define(const struct ocl_device *device)
{
    return device->nvidia_major >= 7 ? " -DNO_ALLOCATE" : "";
}

static void staged_shape(struct histogram_shape *shape, uint32_t share,
                         const struct ocl_device *device)
{
    (void)share;
    shape->group = group_size(STAGED_GROUP, device);
}

/* --- the table ------------------------------------------------------------------------------- */

#define TUNED_AS_USUAL                                                                             \
    .group_least = GROUP_LEAST, .group_most = GROUP_MOST, .tile_pixels_most = TILE_PIXELS_MOST

static const struct variant variants[HISTOGRAM_VARIANTS] = {
    [HISTOGRAM_AUTO] = {.name = "auto", .kernel = ""},
    [HISTOGRAM_PRIVATE] = {.name = "private",
                           .kernel = "histogram_private",
                           .cpu_only = true,
                           .table = private_table,
                           .tables_most = TABLES_PRIVATE,
                           .shape = private_shape,
                           .define = private_define,
                           .group_least = 1,
                           .group_most = 1,
                           .tile_pixels_most = TILE_PIXELS_MOST},
    [HISTOGRAM_LOCAL] = {.name = "local",
                         .kernel = "histogram_local",
                         .tables_share = 2,
                         .local = true,
                         TUNED_AS_USUAL},
    /* At least four copies: fewer cost more than reading the pixels a second time. */
    [HISTOGRAM_REPLICATED] = {.name = "replicated",
                              .kernel = "histogram_replicated",
                              .copies = true,
                              .tables_share = 8,
                              .local = true,
                              TUNED_AS_USUAL},
    [HISTOGRAM_PACKED] = {.name = "packed",
                          .kernel = "histogram_packed",
                          .table_bytes = PACKED_TABLE,
                          .tables_most = PACKED_TABLE,
                          .local = true,
                          .takes = packed_takes,
                          .shape = packed_shape,
                          .define = packed_define,
                          .group_least = PACKED_GROUP_LEAST,
                          .group_most = GROUP_MOST,
                          .tile_pixels_most = PACKED_PIXELS_MOST},
    [HISTOGRAM_PARTIAL] = {.name = "partial",
                           .kernel = "histogram_partial",
                           .reduce = "histogram_reduce",
                           .copies = true,
                           .tables_share = 8,
                           .local = true,
                           TUNED_AS_USUAL},
    [HISTOGRAM_STAGED] = {.name = "staged",
                          .kernel = "histogram_staged",
                          .tables_share = 4,
                          .local = true,
                          .item_bytes = STAGE_BYTES,
                          .shape = staged_shape,
                          .language = ocl_copy_option,
                          TUNED_AS_USUAL},
    [HISTOGRAM_GLOBAL] = {.name = "global",
                          .kernel = "histogram_global",
                          .tables_most = UINT64_MAX,
                          TUNED_AS_USUAL},
};

const char *histogram_variant_name(enum histogram_variant variant)
{
    return variants[variant].name;
}

const char *histogram_variant_kernel(enum histogram_variant variant)
{
    return variants[variant].kernel;
}

const char *histogram_variant_reduce(enum histogram_variant variant)
{
    return variants[variant].reduce;
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
    return !variants[variant].cpu_only || device->type & CL_DEVICE_TYPE_CPU;
}

uint64_t histogram_variant_table(enum histogram_variant variant, const struct feature *feature)
{
    const struct variant *v = &variants[variant];
    return v->table_bytes ? v->table_bytes
           : v->table     ? v->table(feature)
                          : 4ull * feature->cell_bins;
}

uint64_t histogram_variant_tables_most(enum histogram_variant variant,
                                       const struct ocl_device *device)
{
    const struct variant *v = &variants[variant];
    return v->tables_most ? v->tables_most : device->local_memory / v->tables_share;
}

/* Local memory of a work-group; `tables` is ignored if the variant's tables have a fixed size. */
static uint64_t local_bytes(const struct variant *variant, uint64_t tables, uint32_t group)
{
    if (!variant->local)
        return 0;
    return (variant->table_bytes ? variant->table_bytes : tables) +
           (uint64_t)variant->item_bytes * group;
}

bool histogram_variant_takes(char *reason, size_t size, enum histogram_variant variant,
                             const struct feature *feature, const struct ocl_device *device)
{
    const struct variant *v = &variants[variant];
    if (variant == HISTOGRAM_AUTO)
        return true;
    if (feature->kind->kernel && variant != HISTOGRAM_GLOBAL) {
        snprintf(reason, size, "%s has a kernel of its own", feature->kind->name);
        return false;
    }
    if (v->takes && !v->takes(reason, size, feature, device))
        return false;
    const uint64_t bytes =
        local_bytes(v, histogram_variant_table(variant, feature), group_size(STAGED_GROUP, device));
    if (bytes > device->local_memory) {
        snprintf(reason, size, "it needs %llu bytes of local memory, the device has %llu",
                 (unsigned long long)bytes, (unsigned long long)device->local_memory);
        return false;
    }
    return true;
}

/* The fastest variants as measured, for rgb:bins=B and for features with one counter per pixel. */
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
            best = feature->kind == &feature_rgb ? known[i].channels : known[i].single;
    if (feature->kind->kernel)
        return HISTOGRAM_GLOBAL;
    if (histogram_variant_takes(reason, sizeof reason, best, feature, device))
        return best;
    if (histogram_variant_takes(reason, sizeof reason, HISTOGRAM_REPLICATED, feature, device))
        return HISTOGRAM_REPLICATED;
    return HISTOGRAM_GLOBAL;
}

struct histogram_shape histogram_variant_shape(enum histogram_variant variant, uint32_t bins,
                                               uint64_t launch_bytes,
                                               const struct ocl_device *device)
{
    const struct variant *v = &variants[variant];
    const bool cpu = device->type & CL_DEVICE_TYPE_CPU;
    const uint32_t units = device->compute_units > 0 ? device->compute_units : 1;
    const uint64_t most = launch_bytes / 3 / units;
    const uint32_t share = most < UINT32_MAX ? (uint32_t)most : UINT32_MAX; /* pixels per unit */
    struct histogram_shape shape = {
        .group = group_size(cpu ? GROUP_MOST_CPU : GROUP_MOST, device),
        .copies = 1,
        .tile_pixels =
            clamp(share, TILE_PIXELS_GROUP_MIN, TILE_PIXELS_GROUP_MAX) & ~(LINE_PIXELS - 1),
    };
    if (v->shape)
        v->shape(&shape, share, device);
    if (v->copies)
        while (shape.copies < COPIES_MOST && shape.copies < shape.group &&
               8ull * bins * shape.copies <= device->local_memory / 2)
            shape.copies *= 2;
    return shape;
}

void histogram_variant_options(char *text, size_t size, enum histogram_variant variant,
                               const struct histogram_shape *shape, const struct ocl_device *device)
{
    const struct variant *v = &variants[variant];
    char copies[24] = "";
    if (v->copies)
        snprintf(copies, sizeof copies, " -DCOPIES=%u", shape->copies);
    snprintf(text, size, "%s -DGROUP=%u%s%s", v->language ? v->language(device) : "-cl-std=CL1.2",
             shape->group, copies, v->define ? v->define(device) : "");
}

static bool is_power_of_two(uint32_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

bool histogram_shape_fits(const struct histogram_shape *shape, enum histogram_variant variant,
                          uint32_t bins, const struct ocl_device *device)
{
    const struct variant *v = &variants[variant];
    const uint64_t local = local_bytes(v, 4ull * bins * shape->copies, shape->group);
    return is_power_of_two(shape->group) && shape->group >= v->group_least &&
           shape->group <= group_size(v->group_most, device) && is_power_of_two(shape->copies) &&
           shape->copies <= (v->copies ? COPIES_MOST_TUNED : 1) && shape->copies <= shape->group &&
           local <= device->local_memory && shape->tile_pixels % 16 == 0 &&
           shape->tile_pixels >= TILE_PIXELS_LEAST && shape->tile_pixels <= v->tile_pixels_most;
}

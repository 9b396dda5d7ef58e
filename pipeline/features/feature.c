/* feature.c: specifications, geometry and values of features, and their plain C reference. */
#include "features/feature.h"

#include "base/avx2.h"
#include "base/parse.h"
#include "features/kind.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BINS_AXIS_MAX  256
#define BINS_JOINT_MAX 16384u
#define GRID_MAX       256

#define TEXT(number)  TEXT_(number)
#define TEXT_(number) #number

bool feature_zeros_say_nothing(const char *kind, const char *normalize)
{
    for (unsigned i = 0; feature_kinds[i]; i++)
        if (strcmp(feature_kinds[i]->name, kind) == 0)
            return !feature_kinds[i]->zeros &&
                   strcmp(normalize, feature_normalize_name(NORMALIZE_NONE)) != 0;
    return false;
}

const char *feature_normalize_name(enum feature_normalize normalize)
{
    static const char *const name[] = {"l1", "none", "hellinger", "unit", "none"};
    return name[normalize];
}

bool feature_normalize_parse(enum feature_normalize *out, const char *text)
{
    for (int i = 0; i < 4; i++) {
        if (strcmp(text, feature_normalize_name((enum feature_normalize)i)) == 0) {
            *out = (enum feature_normalize)i;
            return true;
        }
    }
    return false;
}

char *feature_bins_text(char *buffer, size_t size, const struct feature *feature)
{
    if (feature->bins[1])
        snprintf(buffer, size, "%ux%ux%u", feature->bins[0], feature->bins[1], feature->bins[2]);
    else
        snprintf(buffer, size, "%u",
                 feature->codebook_words ? feature->codebook_words : feature->bins[0]);
    return buffer;
}

char *feature_grid_text(char *buffer, size_t size, const struct feature *feature)
{
    size_t used = 0;
    if (feature->levels == 0)
        snprintf(buffer, size, "%ux%u", feature->grid_rows, feature->grid_columns);
    for (unsigned i = 0; i < feature->levels && used < size; i++)
        used +=
            (size_t)snprintf(buffer + used, size - used, "%s%u", i ? "+" : "", feature->level[i]);
    return buffer;
}

unsigned feature_parse_numbers(uint32_t *out, unsigned max, const char *text, char sign,
                               uint32_t limit)
{
    char copy[64];
    if (strlen(text) >= sizeof copy)
        return 0;
    strcpy(copy, text);
    unsigned count = 0;
    for (char *part = copy; part; count++) {
        char *next = strchr(part, sign);
        if (next)
            *next++ = '\0';
        uint64_t number;
        if (count == max || !parse_u64(&number, part, 1, limit))
            return 0;
        out[count] = (uint32_t)number;
        part = next;
    }
    return count;
}

#define OPTION_NAME(name, least, most) ", " #name "="

static enum status refuse_option(const char *option, const char *spec, struct error *err)
{
    /* rgb:8x8x8 */
    const bool bins = *option && option[strspn(option, "0123456789x")] == '\0';
    return error_set(err, STATUS_USAGE, "feature '%s': '%s' is not an option; %s%s%s", spec, option,
                     bins ? "did you mean bins=" : "there are ",
                     bins ? option
                          : "bins=" IMAGE_OPTIONS(OPTION_NAME) ", grid=, levels= and normalize=",
                     bins ? "?" : "");
}

/* Rows and columns of counting cells of a pyramid: their boundaries are those of all levels. */
static void cut_levels(struct feature *feature)
{
    uint32_t cuts = 0;
    memset(feature->cut, 0, sizeof feature->cut);
    for (unsigned i = 0; i < feature->levels; i++) {
        const uint32_t den = feature->level[i];
        for (uint32_t num = 0; num <= den; num++) {
            uint32_t at = 0;
            while (at < cuts && feature->cut[at][0] * den < num * feature->cut[at][1])
                at++;
            if (at < cuts && feature->cut[at][0] * den == num * feature->cut[at][1])
                continue;
            memmove(feature->cut + at + 1, feature->cut + at, (cuts - at) * sizeof *feature->cut);
            feature->cut[at][0] = (uint8_t)num;
            feature->cut[at][1] = (uint8_t)den;
            cuts++;
        }
    }
    feature->grid_rows = feature->grid_columns = cuts - 1;
}

/* Parses an option of the image; false: unknown. *wrong: what its value must be. */
static bool parse_image(struct feature_image *image, const char **wrong, const char *option,
                        const char *value)
{
#define PARSE(name, least, most)                                                                   \
    if (strcmp(option, #name) == 0) {                                                              \
        if (!parse_u64(&image->name, value, least, most))                                          \
            *wrong = least == most ? #most : "a number from " #least " to " #most;                 \
        return true;                                                                               \
    }
    IMAGE_OPTIONS(PARSE)
    return false;
}

/* The options of the image as a part of a spec, the last one first. */
static char *write_image(char *text, size_t size, const struct feature_image *image)
{
#define GIVEN(name, least, most) {#name, image->name},
    const struct {
        const char *name;
        unsigned value;
    } option[] = {IMAGE_OPTIONS(GIVEN)};
    size_t used = 0;
    *text = '\0';
    for (size_t i = sizeof option / sizeof *option; i-- > 0 && used < size;)
        if (option[i].value)
            used += (size_t)snprintf(text + used, size - used, ",%s=%u", option[i].name,
                                     option[i].value);
    return text;
}

/* The first option that the kind does not take, or NULL. */
static const char *wrong_image(const struct feature_kind *kind, struct feature_image image)
{
    if (kind->count && !kind->descriptor)
        return NULL;
    image.scale = 0;
#define FIND(name, least, most)                                                                    \
    if (image.name)                                                                                \
        return #name;
    IMAGE_OPTIONS(FIND)
    return NULL;
}

/* Parses one "bins=..." of a spec. */
static enum status parse_option(struct feature *feature, char *option, const char *spec,
                                struct error *err)
{
    const char *wrong = NULL; /* what the value must be */
    enum status status = STATUS_OK;
    uint32_t cells[2] = {1, 1};
    uint64_t words = 0;
    char *value = strchr(option, '=');
    if (!value)
        return refuse_option(option, spec, err);
    *value++ = '\0';
    if (strcmp(option, "bins") == 0) {
        feature->bins[0] = feature->bins[1] = feature->bins[2] = 0;
        const unsigned axes = feature_parse_numbers(feature->bins, 3, value, 'x', BINS_AXIS_MAX);
        if (axes != 1 && axes != 3)
            wrong = "one number or AxBxC, each 1 to " TEXT(BINS_AXIS_MAX);
    } else if (strcmp(option, "grid") == 0) {
        if (feature_parse_numbers(cells, 2, value, 'x', GRID_MAX) != 2)
            wrong = "ROWSxCOLUMNS, each 1 to " TEXT(GRID_MAX);
        feature->grid_rows = cells[0];
        feature->grid_columns = cells[1];
        feature->levels = 0;
    } else if (strcmp(option, "levels") == 0) {
        feature->levels = feature_parse_numbers(feature->level, FEATURE_LEVELS_MAX, value, '+',
                                                FEATURE_LEVEL_MOST);
        if (feature->levels > 0)
            cut_levels(feature);
        else
            wrong = "A+B+..., at most " TEXT(FEATURE_LEVELS_MAX) " numbers of 1 to " TEXT(
                FEATURE_LEVEL_MOST);
    } else if (strcmp(option, "normalize") == 0) {
        if (!feature_normalize_parse(&feature->normalize, value))
            wrong = "none, l1 or hellinger";
    } else if (strcmp(option, "store") == 0) {
        if (!feature_store_parse(&feature->store, value))
            wrong = "float32, float16 or uint8";
    } else if (strcmp(option, "words") == 0 || strcmp(option, "fisher") == 0) {
        if (!parse_u64(&words, value, 2, CODEBOOK_WORDS_MAX))
            wrong = "2 to " TEXT(CODEBOOK_WORDS_MAX);
        feature->codebook_words = (uint32_t)words;
        feature->fisher = *option == 'f';
    } else if (strcmp(option, "codebook") == 0 && strlen(value) == FEATURE_DIGEST - 1 &&
               value[strspn(value, "0123456789abcdef")] == '\0') {
        /* Written by feature_bind_codebook; settle_kind refuses it for kinds that take no
         * codebook. */
        strcpy(feature->codebook_digest, value);
    } else if (!parse_image(&feature->image, &wrong, option, value) &&
               !feature_parse_net(&feature->net, option, value, &wrong, &status, spec, err)) {
        return refuse_option(option, spec, err);
    }
    return wrong ? error_set(err, STATUS_USAGE, "feature '%s': %s=%s must be %s", spec, option,
                             value, wrong)
                 : status;
}

/* Is it the first kind of its name? */
static bool is_first_of_name(unsigned k)
{
    for (unsigned i = 0; i < k; i++)
        if (strcmp(feature_kinds[i]->name, feature_kinds[k]->name) == 0)
            return false;
    return true;
}

/* Lists the names of the table: "rgb, gray and hsv". */
static void list_kinds(char *text, size_t size)
{
    unsigned last = 0;
    for (unsigned k = 0; feature_kinds[k]; k++)
        last = is_first_of_name(k) ? k : last;
    *text = '\0';
    for (unsigned k = 0; k <= last; k++) {
        const size_t used = strlen(text);
        const char *before = k == 0 ? "" : k == last ? " and " : ", ";
        if (is_first_of_name(k))
            snprintf(text + used, size - used, "%s%s", before, feature_kinds[k]->name);
    }
}

/* The spec that corresponds to a generated name such as "rgb_8x8x8_3x3", or "". */
static void spec_of_name(char *spec, size_t size, const char *name)
{
    const size_t kind = strcspn(name, "_");
    const char *bins = name + kind + (name[kind] == '_');
    const size_t length = strspn(bins, "0123456789x");
    const char *grid = bins[length] == '_' ? bins + length + 1 : "";
    *spec = '\0';
    if (length == 0 || (bins[length] && !*grid) || grid[strspn(grid, "0123456789x")])
        return;
    for (unsigned i = 0; feature_kinds[i]; i++)
        if (!feature_kinds[i]->fixed && strlen(feature_kinds[i]->name) == kind &&
            strncmp(feature_kinds[i]->name, name, kind) == 0)
            snprintf(spec, size, "%.*s:bins=%.*s%s%s", (int)kind, name, (int)length, bins,
                     *grid ? ",grid=" : "", grid);
}

/* Finds the kind with that name that accepts bins=, and sets its default if bins= is missing. */
static enum status settle_kind(struct feature *feature, const char *name, const char *spec,
                               struct error *err)
{
    const struct feature_kind *named = NULL;
    for (unsigned i = 0; feature_kinds[i] && !feature->kind; i++) {
        const struct feature_kind *kind = feature_kinds[i];
        if (strcmp(name, kind->name) != 0 && (!kind->alias || strcmp(name, kind->alias) != 0))
            continue;
        named = kind;
        if (feature->bins[0] == 0 || (feature->bins[1] != 0) == (kind->bins[1] != 0))
            feature->kind = kind;
    }
    if (!named) {
        char kinds[512], meant[128];
        spec_of_name(meant, sizeof meant, name);
        if (*meant)
            return error_set(err, STATUS_USAGE,
                             "feature '%s': that is the name of a feature; its SPEC is %s", spec,
                             meant);
        list_kinds(kinds, sizeof kinds);
        return error_set(err, STATUS_USAGE, "feature '%s': there is no kind '%s'; there are %s",
                         spec, name, kinds);
    }
    if (!feature->kind)
        return error_set(err, STATUS_USAGE, "feature '%s': %s takes %s", spec, named->name,
                         named->bins[1] ? "bins=AxBxC" : "one number of bins");
    if (feature->codebook_digest[0] && !feature->kind->descriptor)
        return refuse_option("codebook", spec, err);
    if (feature->codebook_words && !feature->kind->descriptor)
        return refuse_option(feature->fisher ? "fisher" : "words", spec, err);
    if (feature->kind->descriptor && (feature->bins[0] || !feature->codebook_words))
        return error_set(err, STATUS_USAGE, "feature '%s': %s takes words=K or fisher=K%s", spec,
                         named->name, feature->bins[0] ? ", no bins" : "");
    if (feature->net.digest[0] && !feature->kind->network)
        return refuse_option("model", spec, err);
    if (feature->normalize == NORMALIZE_UNIT && !feature->fisher && !feature->kind->network)
        return error_set(err, STATUS_USAGE,
                         "feature '%s': normalize=unit must be none, l1 or hellinger", spec);
    const char *option = wrong_image(feature->kind, feature->image);
    if (option)
        return error_set(err, STATUS_USAGE, "feature '%s': %s takes no %s=", spec, named->name,
                         option);
    if (feature->bins[0] != 0 && feature->kind->fixed)
        return error_set(err, STATUS_USAGE, "feature '%s': %s takes no bins=", spec, named->name);
    if (feature->bins[0] == 0)
        memcpy(feature->bins, feature->kind->bins, sizeof feature->bins);
    feature->image.border = feature->kind->border;
    if (feature->image.scale == 0)
        feature->image.scale = feature->kind->scale;
    if (feature->image.scale > 0 &&
        (feature->grid_rows > FEATURE_SCALED_GRID || feature->grid_columns > FEATURE_SCALED_GRID))
        return error_set(err, STATUS_USAGE,
                         "feature '%s': the grid of a scaled picture has at most %ux%u cells", spec,
                         FEATURE_SCALED_GRID, FEATURE_SCALED_GRID);
    return STATUS_OK;
}

/* Sets kind, bins and sizes after all options are parsed. */
static enum status settle(struct feature *feature, const char *kind, const char *spec,
                          struct error *err)
{
    enum status status = settle_kind(feature, kind, spec, err);
    if (status != STATUS_OK)
        return status;
    uint32_t bins = feature->bins[0];
    if (feature->bins[1])
        bins *= feature->bins[1] * feature->bins[2];
    if (feature->kind->descriptor)
        bins = feature->codebook_words;
    else if (bins > BINS_JOINT_MAX)
        return error_set(err, STATUS_USAGE,
                         "feature '%s': %u bins; a joint histogram has at most %u", spec, bins,
                         BINS_JOINT_MAX);
    feature->cell_bins = feature->kind->channels ? feature->kind->channels * bins : bins;
    if (feature->kind->settle)
        status = feature->kind->settle(feature, spec, err);
    if (status != STATUS_OK)
        return status;
    uint32_t rows, columns;
    for (unsigned i = 0; feature_grid(&rows, &columns, feature, i); i++)
        feature->cells += rows * columns;
    if (feature->cell_values == 0)
        feature->cell_values = feature->cell_bins;
    const uint64_t words =
        (uint64_t)feature->cell_bins * feature->grid_rows * feature->grid_columns;
    const uint64_t dimension = (uint64_t)feature->cell_values * feature->cells;
    const uint64_t most = words > dimension ? words : dimension;
    if (most > FEATURE_DIMENSION_MAX)
        return error_set(err, STATUS_USAGE,
                         "feature '%s': %llu values per image; at most %u are possible", spec,
                         (unsigned long long)most, FEATURE_DIMENSION_MAX);
    feature->words = (uint32_t)words;
    feature->dimension = (uint32_t)dimension;
    return STATUS_OK;
}

/* Writes the canonical spec. */
void feature_write_spec(struct feature *feature)
{
    char bins[32], grid[32], image[64], net[512];
    const bool fixed = feature->kind->fixed;
    feature_write_net(net, sizeof net, feature);
    const int length = snprintf(
        feature->spec, sizeof feature->spec, "%s:%s%s%s%s=%s,normalize=%s%s%s%s%s%s%s",
        feature->kind->name,
        fixed                     ? ""
        : feature->fisher         ? "fisher="
        : feature->codebook_words ? "words="
                                  : "bins=",
        fixed ? "" : feature_bins_text(bins, sizeof bins, feature), fixed ? "" : ",",
        feature->levels ? "levels" : "grid", feature_grid_text(grid, sizeof grid, feature),
        feature_normalize_name(feature->normalize),
        feature->kind->network ? "" : write_image(image, sizeof image, &feature->image),
        feature->store ? ",store=" : "", feature->store ? feature_store_name(feature->store) : "",
        feature->codebook_digest[0] ? ",codebook=" : "", feature->codebook_digest, net);
    assert(length < (int)sizeof feature->spec);
    (void)length;
}

/* --- sets ------------------------------------------------------------------------------------ */

bool feature_image_equal(const struct feature_image *a, const struct feature_image *b)
{
#define EQUAL(name, least, most) &&a->name == b->name
    return a->border == b->border IMAGE_OPTIONS(EQUAL);
}

/* The name of a feature without NAME= in its SPEC: the kind, and the options that are not
 * defaults. */
static void write_name(struct feature *feature)
{
    char bins[32] = "", grid[32] = "", scale[24] = "";
    if (!feature->kind->fixed)
        feature_bins_text(bins, sizeof bins, feature);
    if (feature->levels > 0 || feature->cells != 1)
        feature_grid_text(grid, sizeof grid, feature);
    for (char *sign = grid; *sign; sign++)
        *sign = *sign == '+' ? '-' : *sign;
    if (feature->image.scale != feature->kind->scale && !feature->kind->network)
        snprintf(scale, sizeof scale, "_at%u", (unsigned)feature->image.scale);
    const int length = snprintf(feature->name, sizeof feature->name, "%s%s%s%s%s%s%s",
                                feature->kind->name, *bins ? "_" : "",
                                feature->fisher           ? "fisher"
                                : feature->codebook_words ? "words"
                                                          : "",
                                bins, *grid ? "_" : "", grid, scale);
    assert(length < (int)sizeof feature->name);
    (void)length;
}

enum status feature_set_add(struct feature_set *set, const char *spec,
                            enum feature_normalize default_normalize, struct error *err)
{
    char copy[4096];
    if (set->count == FEATURE_MAX)
        return error_set(err, STATUS_USAGE, "feature '%s': more than %d features", spec,
                         FEATURE_MAX);
    if (strlen(spec) >= sizeof copy)
        return error_set(err, STATUS_USAGE, "feature '%.40s...': the specification is too long",
                         spec);
    strcpy(copy, spec);

    struct feature feature = {.normalize = default_normalize,
                              .store = set->store,
                              .grid_rows = 1,
                              .grid_columns = 1,
                              .image.blur = set->blur};
    /* NAME= is only allowed before the first ':' or ',', where options begin. */
    char *options = strpbrk(copy, ":,");
    if (options)
        *options++ = '\0';
    char *kind = strchr(copy, '=');
    if (kind) {
        *kind++ = '\0';
        const size_t valid =
            strspn(copy, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-");
        if (valid == 0 || valid >= FEATURE_NAME_MAX || copy[valid] != '\0' || copy[0] == '.')
            return error_set(err, STATUS_USAGE,
                             "feature '%s': '%s' is not a valid name; names have 1 to %d of A-Z "
                             "a-z 0-9 _ . - and do not begin with a dot",
                             spec, copy, FEATURE_NAME_MAX - 1);
        memcpy(feature.name, copy, valid);
    } else {
        kind = copy;
    }
    while (options) {
        char *next = strchr(options, ',');
        /* mean=0.5,0.5,0.5 */
        while (next && (next[1] == '.' || (next[1] >= '0' && next[1] <= '9')) &&
               (strncmp(options, "mean=", 5) == 0 || strncmp(options, "std=", 4) == 0))
            next = strchr(next + 1, ',');
        if (next)
            *next++ = '\0';
        enum status status = parse_option(&feature, options, spec, err);
        if (status != STATUS_OK)
            return status;
        options = next;
    }
    enum status status = settle(&feature, kind, spec, err);
    if (status != STATUS_OK)
        return status;

    if (set->store_all)
        feature.store = set->store;
    if (feature.normalize == NORMALIZE_NONE)
        feature.store = STORE_FLOAT32; /* counts are stored unconverted */

    if (!*feature.name)
        write_name(&feature);
    feature_write_spec(&feature);
    for (unsigned i = 0; i < set->count; i++) {
        if (strcmp(set->feature[i].name, feature.name) == 0)
            return error_set(err, STATUS_USAGE,
                             "feature '%s': the name %s is taken; give it another as NAME=%s", spec,
                             feature.name, spec + (kind - copy));
    }
    if (set->counters + feature.words > FEATURE_DIMENSION_MAX ||
        set->values + feature.dimension > FEATURE_DIMENSION_MAX)
        return error_set(err, STATUS_USAGE,
                         "feature '%s': all features together have more than %u values per image",
                         spec, FEATURE_DIMENSION_MAX);
    feature.offset = set->counters;
    feature.place = set->values;
    set->counters += feature.words;
    set->values += feature_row_words(&feature);
    set->feature[set->count++] = feature;
    return STATUS_OK;
}

size_t feature_row_bytes(const struct feature *feature)
{
    return stored_size(feature->store) * feature->dimension;
}

uint32_t feature_row_words(const struct feature *feature)
{
    return (uint32_t)((feature_row_bytes(feature) + 3) / 4);
}

bool feature_lacks_codebook(const struct feature *feature)
{
    return feature->kind->descriptor && !feature->codebook;
}

bool feature_set_lacks_codebooks(const struct feature_set *set)
{
    for (unsigned i = 0; i < set->count; i++)
        if (feature_lacks_codebook(&set->feature[i]))
            return true;
    return false;
}

/* --- geometry -------------------------------------------------------------------------------- */

bool feature_grid_equal(const struct feature *a, const struct feature *b)
{
    return a->grid_rows == b->grid_rows && a->grid_columns == b->grid_columns &&
           (a->levels > 0) == (b->levels > 0) &&
           (a->levels == 0 || memcmp(a->cut, b->cut, sizeof a->cut) == 0);
}

bool feature_grid(uint32_t *rows, uint32_t *columns, const struct feature *feature, unsigned index)
{
    if (index >= (feature->levels > 0 ? feature->levels : 1))
        return false;
    *rows = feature->levels > 0 ? feature->level[index] : feature->grid_rows;
    *columns = feature->levels > 0 ? feature->level[index] : feature->grid_columns;
    return true;
}

/* The first coordinate of counted cell i of n over `size` pixels; for a grid the smallest y with y
 * * n / size == i. */
static uint32_t cell_start(const struct feature *feature, uint32_t i, uint32_t n, uint32_t size)
{
    if (feature->levels > 0) {
        n = feature->cut[i][1];
        i = feature->cut[i][0];
    }
    return (uint32_t)(((uint64_t)i * size + n - 1) / n);
}

struct cell_rect feature_cell_rect(const struct feature *feature, uint32_t row, uint32_t column,
                                   uint32_t width, uint32_t height, uint8_t orientation)
{
    bool swapped = orientation >= 5;
    uint32_t upright_width = swapped ? height : width, upright_height = swapped ? width : height;
    uint32_t left = cell_start(feature, column, feature->grid_columns, upright_width);
    uint32_t right = cell_start(feature, column + 1, feature->grid_columns, upright_width);
    uint32_t top = cell_start(feature, row, feature->grid_rows, upright_height);
    uint32_t bottom = cell_start(feature, row + 1, feature->grid_rows, upright_height);
    return cell_rect_stored((struct cell_rect){left, top, right, bottom}, width, height,
                            orientation);
}

/* --- values ---------------------------------------------------------------------------------- */

/* Does the kind make the values? Words of a codebook that are counted are a histogram. */
static bool is_finished(const struct feature *feature)
{
    return feature->kind->finish && (!feature->kind->descriptor || feature->fisher);
}

uint32_t feature_histograms(const struct feature *feature)
{
    const struct feature_kind *kind = feature->kind;
    return is_finished(feature) ? 0 : kind->channels ? kind->channels : 1;
}

/* Divides each word by the sum of its histogram of `bins` words; optionally takes the square
 * root. */
AVX2_TOO static void store_histogram(float *values, const uint32_t *words, uint32_t bins, bool root)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < bins; i++)
        sum += words[i];
    const double whole = sum ? (double)sum : 1.0;
    for (uint32_t i = 0; !root && i < bins; i++)
        values[i] = (float)((double)words[i] / whole);
    for (uint32_t i = 0; root && i < bins; i++)
        values[i] = (float)sqrt((double)words[i] / whole);
}

static void store_shares(float *values, const struct feature *feature, const uint32_t *words)
{
    const uint32_t histograms = feature_histograms(feature);
    const uint32_t bins = feature->cell_bins / (histograms ? histograms : 1);
    const bool root = feature->normalize == NORMALIZE_HELLINGER;
    for (uint32_t start = 0; start < feature->dimension; start += bins)
        store_histogram(values + start, words + start, bins, root);
}

/* The index of the counted row, or column, that begins at num / den of the picture. */
static uint32_t find_cut(const struct feature *feature, uint32_t num, uint32_t den)
{
    uint32_t i = 0;
    while (feature->cut[i][0] * den != num * feature->cut[i][1])
        i++;
    return i;
}

/* The words of a pyramid's cells, each the sum of the counted cells in it. */
static void sum_levels(uint32_t *words, const struct feature *feature, const uint32_t *counted)
{
    const uint32_t bins = feature->cell_bins;
    for (unsigned i = 0; i < feature->levels; i++) {
        const uint32_t n = feature->level[i];
        for (uint32_t cell = 0; cell < n * n; cell++, words += bins) {
            const uint32_t bottom = find_cut(feature, cell / n + 1, n);
            const uint32_t left = find_cut(feature, cell % n, n);
            const uint32_t right = find_cut(feature, cell % n + 1, n);
            memset(words, 0, bins * sizeof *words);
            for (uint32_t row = find_cut(feature, cell / n, n); row < bottom; row++) {
                for (uint32_t column = left; column < right; column++) {
                    const uint32_t *from =
                        counted + (size_t)(row * feature->grid_columns + column) * bins;
                    for (uint32_t bin = 0; bin < bins; bin++)
                        words[bin] += from[bin];
                }
            }
        }
    }
}

static bool make_values(void *dst, const struct feature *feature, const uint32_t *words)
{
    uint32_t *summed = NULL;
    if (feature->levels > 0) {
        summed = malloc((size_t)feature->cells * feature->cell_bins * sizeof *summed);
        if (!summed)
            return false;
        sum_levels(summed, feature, words);
        words = summed;
    }
    bool made = true;
    if (feature->normalize == NORMALIZE_NONE && !feature->kind->whole_numbers)
        memcpy(dst, words, (size_t)feature->dimension * sizeof *words);
    else if (is_finished(feature))
        made = feature->kind->finish(dst, feature, words);
    else
        store_shares(dst, feature, words);
    free(summed);
    return made;
}

bool feature_store_values(void *dst, const struct feature *feature, const uint32_t *words)
{
    if (feature->store == STORE_FLOAT32)
        return make_values(dst, feature, words);
    const size_t bytes = feature_row_bytes(feature);
    float *values = malloc(feature->dimension * sizeof *values);
    const bool made = values && make_values(values, feature, words);
    if (made) {
        stored_encode(dst, feature->store, feature->normalize == NORMALIZE_UNIT, values,
                      feature->dimension);
        memset((uint8_t *)dst + bytes, 0, 4 * (size_t)feature_row_words(feature) - bytes);
    }
    free(values);
    return made;
}

void feature_count_reference(uint32_t *counters, const struct feature *feature,
                             const uint8_t *pixels, size_t stride, uint32_t width, uint32_t height,
                             uint8_t orientation)
{
    for (uint32_t cell = 0; cell < feature->grid_rows * feature->grid_columns; cell++) {
        struct cell_rect rect =
            feature_cell_rect(feature, cell / feature->grid_columns, cell % feature->grid_columns,
                              width, height, orientation);
        for (uint32_t y = rect.y0; y < rect.y1; y++)
            for (uint32_t x = rect.x0; x < rect.x1; x++)
                feature->kind->count(counters + (size_t)cell * feature->cell_bins, feature,
                                     pixels + y * stride + 3 * (size_t)x, stride);
    }
}

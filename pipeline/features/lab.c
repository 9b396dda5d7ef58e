/* lab.c: a joint histogram of CIE L*a*b*, in integers. */
#include "features/kind.h"

/* floor(4095 * linear + 1/2) of sRGB. */
static const uint16_t linear[256] = {
    0,    1,    2,    4,    5,    6,    7,    9,    10,   11,   12,   14,   15,   16,   18,   20,
    21,   23,   25,   27,   29,   31,   33,   35,   37,   40,   42,   45,   48,   50,   53,   56,
    59,   62,   66,   69,   72,   76,   79,   83,   87,   91,   95,   99,   103,  107,  112,  116,
    121,  126,  131,  136,  141,  146,  151,  156,  162,  168,  173,  179,  185,  191,  197,  204,
    210,  216,  223,  230,  237,  244,  251,  258,  265,  273,  280,  288,  296,  304,  312,  320,
    329,  337,  346,  354,  363,  372,  381,  390,  400,  409,  419,  428,  438,  448,  458,  469,
    479,  490,  500,  511,  522,  533,  544,  555,  567,  578,  590,  602,  614,  626,  639,  651,
    664,  676,  689,  702,  715,  728,  742,  755,  769,  783,  797,  811,  825,  840,  854,  869,
    884,  899,  914,  929,  945,  960,  976,  992,  1008, 1024, 1041, 1057, 1074, 1091, 1108, 1125,
    1142, 1159, 1177, 1195, 1213, 1231, 1249, 1267, 1286, 1304, 1323, 1342, 1361, 1381, 1400, 1420,
    1440, 1459, 1480, 1500, 1520, 1541, 1562, 1582, 1603, 1625, 1646, 1668, 1689, 1711, 1733, 1755,
    1778, 1800, 1823, 1846, 1869, 1892, 1916, 1939, 1963, 1987, 2011, 2035, 2059, 2084, 2109, 2133,
    2159, 2184, 2209, 2235, 2260, 2286, 2312, 2339, 2365, 2392, 2419, 2446, 2473, 2500, 2527, 2555,
    2583, 2611, 2639, 2668, 2696, 2725, 2754, 2783, 2812, 2841, 2871, 2901, 2931, 2961, 2991, 3022,
    3052, 3083, 3114, 3146, 3177, 3209, 3240, 3272, 3304, 3337, 3369, 3402, 3435, 3468, 3501, 3535,
    3568, 3602, 3636, 3670, 3705, 3739, 3774, 3809, 3844, 3879, 3915, 3950, 3986, 4022, 4059, 4095,
};

/* floor(1024 cbrt(t / 4096)), with CIE's linear segment for small t. */
static int whole_root(int t)
{
    int root = 0;
    if (t <= 36)
        return (t * 1993 + 144630) >> 10;
    for (int step = 512; step > 0; step /= 2)
        if ((root + step) * (root + step) * (root + step) <= t << 18)
            root += step;
    return root;
}

static uint32_t clamp_byte(int value)
{
    return value < 0 ? 0 : value > 255 ? 255 : (uint32_t)value;
}

/* A weighted sum relative to white: the weights add up to 4096. */
static int share(const uint8_t *p, int r, int g, int b)
{
    return whole_root((r * linear[p[0]] + g * linear[p[1]] + b * linear[p[2]] + 2048) >> 12);
}

static void count_lab(uint32_t *words, const struct feature *feature, const uint8_t *pixel,
                      size_t stride)
{
    (void)stride;
    const uint32_t *bins = feature->bins;
    const int x = share(pixel, 1777, 1541, 778), y = share(pixel, 871, 2929, 296);
    const int z = share(pixel, 73, 448, 3575);
    const uint32_t l = clamp_byte(((116 * y - 16384) * 655) >> 18);
    const uint32_t a = clamp_byte(128 + ((1000 * (x - y)) >> 10));
    const uint32_t b = clamp_byte(128 + ((400 * (y - z)) >> 10));
    words[((l * bins[0] >> 8) * bins[1] + (a * bins[1] >> 8)) * bins[2] + (b * bins[2] >> 8)]++;
}

const struct feature_kind feature_lab = {
    .name = "lab",
    .bins = {4, 8, 8},
    .macro = "LAB",
    .header = "histogram_bins_lab.h",
    .count = count_lab,
    .examples = {"lab:bins=4x8x8"},
};

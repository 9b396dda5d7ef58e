/* histogram_bins_lab.h: LAB, a joint histogram of L*, a* and b*; see histogram_bins_rgb.h. */
#ifndef CLPIPE_KERNELS_HISTOGRAM_BINS_LAB_H
#define CLPIPE_KERNELS_HISTOGRAM_BINS_LAB_H

/* floor(4095 * linear + 1/2) of each sRGB value. */
__constant ushort lab_linear[256] = {
    0, 1, 2, 4, 5, 6, 7, 9, 10, 11, 12, 14, 15, 16, 18, 20, 21, 23, 25, 27, 29, 31, 33, 35, 37,
    40, 42, 45, 48, 50, 53, 56, 59, 62, 66, 69, 72, 76, 79, 83, 87, 91, 95, 99, 103, 107, 112,
    116, 121, 126, 131, 136, 141, 146, 151, 156, 162, 168, 173, 179, 185, 191, 197, 204, 210, 216,
    223, 230, 237, 244, 251, 258, 265, 273, 280, 288, 296, 304, 312, 320, 329, 337, 346, 354, 363,
    372, 381, 390, 400, 409, 419, 428, 438, 448, 458, 469, 479, 490, 500, 511, 522, 533, 544, 555,
    567, 578, 590, 602, 614, 626, 639, 651, 664, 676, 689, 702, 715, 728, 742, 755, 769, 783, 797,
    811, 825, 840, 854, 869, 884, 899, 914, 929, 945, 960, 976, 992, 1008, 1024, 1041, 1057, 1074,
    1091, 1108, 1125, 1142, 1159, 1177, 1195, 1213, 1231, 1249, 1267, 1286, 1304, 1323, 1342,
    1361, 1381, 1400, 1420, 1440, 1459, 1480, 1500, 1520, 1541, 1562, 1582, 1603, 1625, 1646,
    1668, 1689, 1711, 1733, 1755, 1778, 1800, 1823, 1846, 1869, 1892, 1916, 1939, 1963, 1987,
    2011, 2035, 2059, 2084, 2109, 2133, 2159, 2184, 2209, 2235, 2260, 2286, 2312, 2339, 2365,
    2392, 2419, 2446, 2473, 2500, 2527, 2555, 2583, 2611, 2639, 2668, 2696, 2725, 2754, 2783,
    2812, 2841, 2871, 2901, 2931, 2961, 2991, 3022, 3052, 3083, 3114, 3146, 3177, 3209, 3240,
    3272, 3304, 3337, 3369, 3402, 3435, 3468, 3501, 3535, 3568, 3602, 3636, 3670, 3705, 3739,
    3774, 3809, 3844, 3879, 3915, 3950, 3986, 4022, 4059, 4095,
};

/* floor(1024 cbrt(t / 4096)) above 36 / 4096, else CIE's linear segment. The estimate divides the
 * float's bits, hence its exponent, by three and takes one step of Halley's method; it is off by
 * less than one, which comparing cubes corrects. */
static inline int lab_root(int t)
{
    const float x = (float)t;
    float y = as_float(as_uint(x) / 3 + 0x2a514067u);
    const float cube = y * y * y;
    y = y * (cube + 2 * x) / (2 * cube + x);
    int root = (int)(64 * y);
    root -= root * root * root > t << 18;
    root += (root + 1) * (root + 1) * (root + 1) <= t << 18;
    return t > 36 ? root : (t * 1993 + 144630) >> 10;
}

static inline uint lab_bin(uint r, uint g, uint b, uint n0, uint n1, uint n2)
{
    const int red = lab_linear[r], green = lab_linear[g], blue = lab_linear[b];
    const int x = lab_root((1777 * red + 1541 * green + 778 * blue + 2048) >> 12);
    const int y = lab_root((871 * red + 2929 * green + 296 * blue + 2048) >> 12);
    const int z = lab_root((73 * red + 448 * green + 3575 * blue + 2048) >> 12);
    const uint l = (uint)clamp(((116 * y - 16384) * 655) >> 18, 0, 255);
    const uint a = (uint)clamp(128 + ((1000 * (x - y)) >> 10), 0, 255);
    const uint c = (uint)clamp(128 + ((400 * (y - z)) >> 10), 0, 255);
    return ((l * n0 >> 8) * n1 + (a * n1 >> 8)) * n2 + (c * n2 >> 8);
}

#define FORM_LAB                     SINGLE
#define BIN_LAB(r, g, b, n0, n1, n2) lab_bin(r, g, b, n0, n1, n2)

#endif

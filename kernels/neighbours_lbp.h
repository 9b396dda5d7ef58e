/* neighbours_lbp.h: LBP, uniform local binary patterns of luma, and OPLBP, of luma and two opponent
 * colours (neighbours_planes.h defines the interface). Codes are counted, then folded into
 * classes. */
#ifndef CLPIPE_KERNELS_NEIGHBOURS_LBP_H
#define CLPIPE_KERNELS_NEIGHBOURS_LBP_H

#include "neighbours_planes.h"

/* Bit 7 is the upper left neighbour; the others follow clockwise. */
static inline uint lbp_code(const short *above, const short *here, const short *below)
{
    const short c = here[1];
    return (uint)((above[0] >= c) << 7 | (above[1] >= c) << 6 | (above[2] >= c) << 5 |
                  (here[2] >= c) << 4 | (below[2] >= c) << 3 | (below[1] >= c) << 2 |
                  (below[0] >= c) << 1 | (here[0] >= c));
}

/* One circular run of ones: by its length and lowest bit; no ones: 56; all: 57; others: 58. */
static inline uint lbp_class(uint code)
{
    const uint starts = code & ~(code << 1 | code >> 7) & 255u;
    uint ones = 0, runs = 0, lowest = 0;
    for (uint i = 0; i < 8; i++) {
        ones += code >> i & 1;
        runs += starts >> i & 1;
        lowest += i * (starts >> i & 1);
    }
    return runs > 1 ? 58 : runs == 1 ? 8 * (ones - 1) + lowest : ones == 0 ? 56 : 57;
}

/* Folds one table of 256 codes per channel into one of 59 classes, side by side. */
static inline void lbp_fold(uint *table, uint channels)
{
    uint classes[3 * 59] = {0};
    for (uint code = 0; code < 256; code++) {
        const uint k = lbp_class(code);
        for (uint c = 0; c < channels; c++)
            classes[59 * c + k] += table[256 * c + code];
    }
    for (uint k = 0; k < 59 * channels; k++)
        table[k] = classes[k];
}

#define PLANES_LBP                         1 << PLANE_LUMA
#define CHANNELS_LBP                       1
#define BINS_LBP                           59
#define CHANNEL_LIST_LBP(DO, table, KIND)  DO(table, KIND, 0, PLANE_LUMA)
#define BIN_LBP(above, here, below, zone)  lbp_code(above, here, below)
#define CLASS_LBP(code)                    lbp_class(code)
#define TABLE_LBP                          256
#define FOLD_LBP(table)                    lbp_fold(table, 1)
#define WEIGHTED_LBP                       0
#define WEIGHT_LBP(above, here, below)     0

#define PLANES_OPLBP                         1 << PLANE_LUMA | 1 << PLANE_RED_GREEN | 1 << PLANE_YELLOW_BLUE
#define CHANNELS_OPLBP                       3
#define BINS_OPLBP                           59
#define CHANNEL_LIST_OPLBP(DO, table, KIND)                                                        \
    DO(table, KIND, 0, PLANE_LUMA)                                                                 \
    DO(table, KIND, 1, PLANE_RED_GREEN)                                                            \
    DO(table, KIND, 2, PLANE_YELLOW_BLUE)
#define BIN_OPLBP(above, here, below, zone)  lbp_code(above, here, below)
#define CLASS_OPLBP(code)                    lbp_class(code)
#define TABLE_OPLBP                          768
#define FOLD_OPLBP(table)                    lbp_fold(table, 3)
#define WEIGHTED_OPLBP                       0
#define WEIGHT_OPLBP(above, here, below)     0

#endif

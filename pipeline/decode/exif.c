/* exif.c: reads one tag of the first directory; every offset is checked. */
#include "decode/exif.h"

#include <stdbool.h>
#include <string.h>

static uint32_t get16(const uint8_t *p, bool big)
{
    return big ? (uint32_t)p[0] << 8 | p[1] : (uint32_t)p[1] << 8 | p[0];
}

static uint32_t get32(const uint8_t *p, bool big)
{
    return big ? get16(p, true) << 16 | get16(p + 2, true)
               : get16(p + 2, false) << 16 | get16(p, false);
}

uint8_t exif_orientation(const uint8_t *tiff, size_t size)
{
    enum { TAG_ORIENTATION = 0x112, TYPE_SHORT = 3, TYPE_LONG = 4 };
    if (size < 8)
        return 1;
    bool big = memcmp(tiff, "MM\0*", 4) == 0;
    if (!big && memcmp(tiff, "II*\0", 4) != 0)
        return 1;
    uint32_t directory = get32(tiff + 4, big);
    if (directory > size - 2)
        return 1;
    uint32_t entries = get16(tiff + directory, big);
    for (uint32_t i = 0; i < entries; i++) {
        uint64_t at = (uint64_t)directory + 2 + 12ull * i;
        if (at + 12 > size)
            return 1;
        const uint8_t *entry = tiff + at;
        if (get16(entry, big) != TAG_ORIENTATION)
            continue;
        uint32_t type = get16(entry + 2, big), count = get32(entry + 4, big);
        if (count != 1 || (type != TYPE_SHORT && type != TYPE_LONG))
            return 1;
        uint32_t value = type == TYPE_SHORT ? get16(entry + 8, big) : get32(entry + 8, big);
        return value >= 1 && value <= 8 ? (uint8_t)value : 1;
    }
    return 1;
}

/* exif.c: reads one tag of the first directory; every offset is checked. */
#include "decode/exif.h"

#include "decode/pixel.h"

#include <stdbool.h>
#include <string.h>

static uint32_t get(const uint8_t *p, unsigned bytes, bool big)
{
    return big ? big_endian(p, bytes) : little_endian(p, bytes);
}

uint8_t exif_orientation(const uint8_t *tiff, size_t size)
{
    enum { TAG_ORIENTATION = 0x112, TYPE_SHORT = 3, TYPE_LONG = 4 };
    if (size < 8)
        return 1;
    bool big = memcmp(tiff, "MM\0*", 4) == 0;
    if (!big && memcmp(tiff, "II*\0", 4) != 0)
        return 1;
    uint32_t directory = get(tiff + 4, 4, big);
    if (directory > size - 2)
        return 1;
    uint32_t entries = get(tiff + directory, 2, big);
    for (uint32_t i = 0; i < entries; i++) {
        uint64_t at = (uint64_t)directory + 2 + 12ull * i;
        if (at + 12 > size)
            return 1;
        const uint8_t *entry = tiff + at;
        if (get(entry, 2, big) != TAG_ORIENTATION)
            continue;
        uint32_t type = get(entry + 2, 2, big), count = get(entry + 4, 4, big);
        if (count != 1 || (type != TYPE_SHORT && type != TYPE_LONG))
            return 1;
        uint32_t value = get(entry + 8, type == TYPE_SHORT ? 2 : 4, big);
        return value >= 1 && value <= 8 ? (uint8_t)value : 1;
    }
    return 1;
}

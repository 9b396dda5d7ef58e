/* tar.c: member headers. */
#include "jobs/tar.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void tar_header(char block[TAR_BLOCK], const char *name, uint64_t bytes, int64_t seconds)
{
    const uint64_t time = seconds < 0 ? 0 : (uint64_t)seconds > TAR_MOST ? TAR_MOST : (uint64_t)seconds;
    unsigned sum = 8 * ' '; /* the checksum's own bytes count as spaces */
    memset(block, 0, TAR_BLOCK);
    snprintf(block, TAR_NAME_MOST + 1, "%s", name);
    memcpy(block + 100, "0000644", 7);
    memcpy(block + 108, "0000000", 7);
    memcpy(block + 116, "0000000", 7);
    snprintf(block + 124, 12, "%011" PRIo64, bytes);
    snprintf(block + 136, 12, "%011" PRIo64, time);
    block[156] = '0';
    memcpy(block + 257, "ustar\0" "00", 8);
    for (unsigned i = 0; i < TAR_BLOCK; i++)
        sum += (unsigned char)block[i];
    snprintf(block + 148, 8, "%06o", sum);
    block[155] = ' ';
}

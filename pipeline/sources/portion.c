/* portion.c: weights, and the arithmetic of shares. */
#include "sources/portion.h"

#include <endian.h>
#include <stdio.h>

/* The sum of 2^20 such items is below 2^63; that of existing files is anyway. */
#define WEIGHT_MAX ((uint64_t)1 << 43)

__extension__ typedef unsigned __int128 wide;

void portion_begin(struct portion_total *total)
{
    *total = (struct portion_total){.count = 0};
    murmur3_init(&total->digest);
}

uint64_t portion_add(struct portion_total *total, const char *path, size_t length,
                     const struct entry *entry)
{
    uint64_t weight = 1;
    if (entry->share == ENTRY_SHARE_REST)
        weight = 0;
    else if (entry->share)
        weight = entry->share;
    else if (entry->failure.reason == REASON_NONE)
        weight = entry->bytes + 1;
    if (weight > WEIGHT_MAX)
        weight = WEIGHT_MAX;
    const uint64_t number = htole64(weight);
    murmur3_update(&total->digest, path, length);
    murmur3_update(&total->digest, "", 1);
    murmur3_update(&total->digest, &number, sizeof number);
    total->count++;
    total->weight += weight;
    return weight;
}

void portion_digest(char hex[33], const struct portion_total *total)
{
    uint64_t digest[2];
    murmur3_final(&total->digest, digest);
    snprintf(hex, 33, "%016llx%016llx", (unsigned long long)digest[0],
             (unsigned long long)digest[1]);
}

uint64_t portion_shard(uint64_t before, uint64_t weight, uint64_t total, uint64_t count)
{
    if (total == 0)
        return 0;
    const wide middle = 2 * (wide)before + weight;
    const uint64_t shard = (uint64_t)(middle * count / (2 * (wide)total));
    return shard < count ? shard : count - 1;
}

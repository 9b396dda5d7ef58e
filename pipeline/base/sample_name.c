/* sample_name.c: keys and extensions. */
#include "base/sample_name.h"

#include <string.h>

size_t sample_key(const char *path, size_t length)
{
    size_t at = length;
    while (at > 0 && path[at - 1] != '/')
        at--;
    const char *dot = at + 1 < length ? memchr(path + at + 1, '.', length - at - 1) : NULL;
    return dot ? (size_t)(dot - path) : length;
}

enum sidecar sample_sidecar(const char *path, size_t length)
{
    static const char *const endings[SIDECARS] = {".cls", ".json", ".txt"};
    const size_t key = sample_key(path, length);
    for (int i = 0; i < SIDECARS; i++)
        if (length - key == strlen(endings[i]) && memcmp(path + key, endings[i], length - key) == 0)
            return (enum sidecar)i;
    return SIDECAR_NONE;
}

bool sample_tied(const char *a, size_t a_length, const char *b, size_t b_length)
{
    const size_t key = sample_key(a, a_length);
    return key == sample_key(b, b_length) && memcmp(a, b, key) == 0 &&
           (sample_sidecar(a, a_length) != SIDECAR_NONE ||
            sample_sidecar(b, b_length) != SIDECAR_NONE);
}

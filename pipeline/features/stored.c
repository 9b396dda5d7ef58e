/* stored.c: float16 by bit operations on float32, uint8 with a table. */
#include "features/stored.h"

#include "base/avx2.h"
#include "base/half.h"
#include <math.h>
#include <string.h>

static const char *const names[] = {"float32", "float16", "uint8"};

const char *feature_store_name(enum feature_store store)
{
    return names[store];
}

bool feature_store_parse(enum feature_store *out, const char *text)
{
    for (int i = STORE_FLOAT32; i <= STORE_UINT8; i++)
        if (strcmp(text, names[i]) == 0) {
            *out = (enum feature_store)i;
            return true;
        }
    return false;
}

enum feature_store feature_store_of_spec(const char *spec)
{
    const char *option = strstr(spec, ",store=");
    enum feature_store store = STORE_FLOAT32;
    char name[16] = "";
    if (option) {
        option += strlen(",store=");
        const size_t length = strcspn(option, ",");
        if (length < sizeof name)
            memcpy(name, option, length);
        feature_store_parse(&store, name);
    }
    return store;
}

size_t stored_size(enum feature_store store)
{
    return store == STORE_FLOAT16 ? 2 : store == STORE_UINT8 ? 1 : 4;
}

uint32_t stored_zero(bool is_signed)
{
    return is_signed ? 128 : 0;
}

uint32_t stored_scale(bool is_signed)
{
    return is_signed ? 127 : 255;
}

/* --- uint8 ----------------------------------------------------------------------------------- */

static uint8_t code_of(float value, bool is_signed)
{
    const double zero = stored_zero(is_signed), scale = stored_scale(is_signed);
    const double root = rint(scale * sqrt(fabs((double)value)));
    const double code = zero + (value < 0 ? -root : root);
    return (uint8_t)(code > 255 ? 255 : code < zero - scale ? zero - scale : code);
}

static float value_of(uint32_t code, bool is_signed)
{
    const double t = ((double)code - stored_zero(is_signed)) / stored_scale(is_signed);
    return (float)(t * fabs(t));
}

/* --- both ------------------------------------------------------------------------------------ */

AVX2_TOO static void encode(uint8_t *to, enum feature_store store, bool is_signed,
                            const float *values, size_t count)
{
    if (store == STORE_FLOAT32)
        memcpy(to, values, count * sizeof *values);
    for (size_t i = 0; store == STORE_FLOAT16 && i < count; i++) {
        const uint16_t half = half_of_float(values[i]);
        memcpy(to + 2 * i, &half, sizeof half);
    }
    for (size_t i = 0; store == STORE_UINT8 && i < count; i++)
        to[i] = code_of(values[i], is_signed);
}

void stored_encode(void *to, enum feature_store store, bool is_signed, const float *values,
                   size_t count)
{
    encode(to, store, is_signed, values, count);
}

void stored_decode(float *values, enum feature_store store, bool is_signed, const void *from,
                   size_t count)
{
    const uint8_t *in = from;
    float table[256];
    if (store == STORE_FLOAT32)
        memcpy(values, from, count * sizeof *values);
    for (size_t i = 0; store == STORE_FLOAT16 && i < count; i++) {
        uint16_t half;
        memcpy(&half, in + 2 * i, sizeof half);
        values[i] = half_to_float(half);
    }
    for (uint32_t i = 0; store == STORE_UINT8 && i < 256; i++)
        table[i] = value_of(i, is_signed);
    for (size_t i = 0; store == STORE_UINT8 && i < count; i++)
        values[i] = table[in[i]];
}

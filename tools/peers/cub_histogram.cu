/* cub_histogram: NVIDIA's CUB histogram on the pixels of clpipe bench, for tools/bench-histogram.
 *
 *   cub_histogram BYTES ROUNDS
 *
 * Times CUB's DeviceHistogram by CUDA events, medians of ROUNDS after a warm-up, on the
 * fills and shapes of pipeline/device/bench.c, and prints a line for each:
 *
 *   WHAT SHAPE FILL BYTES SECONDS WRONG
 *
 * WHAT: "rgb" is MultiHistogramEven<3, 3>, three histograms of 256 bins out of interleaved pixels;
 * "bytes" is HistogramEven, one histogram of the same bytes as samples of one channel. A batch of
 * images takes one call per image, since CUB makes one histogram per call; the time is that from the
 * first to the last. WRONG is the number of counters that differ from a plain loop's.
 */
#include <cub/device/device_histogram.cuh>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#if CUB_VERSION >= 300000
#include <cuda/std/array>
template <class T> using per_channel = cuda::std::array<T, 3>;
#else
template <class T> struct per_channel {
    T at[3];
    operator T *() { return at; }
};
#endif

#define CHECK(call)                                                                                \
    do {                                                                                           \
        const cudaError_t code = (call);                                                           \
        if (code != cudaSuccess) {                                                                 \
            fprintf(stderr, "cub_histogram: %s\n", cudaGetErrorString(code));                      \
            exit(3);                                                                               \
        }                                                                                          \
    } while (0)

static const uint32_t LARGE_WIDTH = 4096, ALIGNMENT = 128;
static const size_t PERIOD_BYTES = LARGE_WIDTH * 3 * 96;
static const char *const fills[] = {"constant", "two", "natural", "random", "sorted"};
static const struct {
    const char *name;
    uint32_t width, height;
} shapes[] = {{"large", LARGE_WIDTH, 0}, {"512x384", 512, 384}, {"224x224", 224, 224}};

/* --- pixels, as in bench.c -------------------------------------------------------------------- */

static uint8_t natural(uint32_t x, uint32_t y, uint32_t channel, uint32_t noise)
{
    const uint32_t a = (x * (5 + channel) + y * 3) / 4 % 512,
                   b = (x + y * (7 - channel)) / 3 % 512;
    const uint32_t wave = (a < 256 ? a : 511 - a) + (b < 256 ? b : 511 - b);
    return (uint8_t)std::min(wave / 2 * 7 / 8 + 8 + (noise & 7), 255u);
}

static void make_period(uint8_t *pixels, size_t bytes, uint32_t width, int fill)
{
    uint32_t state = 2463534242u; /* xorshift32, G. Marsaglia 2003 */
    for (size_t i = 0; i < bytes; i++) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        const uint32_t pixel = (uint32_t)(i / 3), channel = (uint32_t)(i % 3);
        pixels[i] = fill == 0   ? 200
                    : fill == 1 ? state >> 31 ? 254 : 1
                    : fill == 2 ? natural(pixel % width, pixel / width, channel, state >> 24)
                    : fill == 3 ? (uint8_t)(state >> 24)
                                : (uint8_t)(i * 256 / bytes);
    }
}

struct pictures {
    uint32_t width, height, count;
    size_t stride, bytes;        /* from picture to picture; of one */
    std::vector<uint8_t> pixels; /* of one */
    std::vector<int> counters;   /* of one, 256 a channel */
};

static pictures make_pictures(size_t capacity, int shape, int fill)
{
    pictures p;
    p.width = shapes[shape].width;
    const size_t row = 3ul * p.width;
    p.height = shapes[shape].height ? shapes[shape].height : (uint32_t)(capacity / row);
    p.bytes = row * p.height;
    p.stride = (p.bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    p.count = (uint32_t)((capacity - p.bytes) / p.stride + 1);
    p.pixels.resize(p.bytes);
    const size_t period = std::min<size_t>(PERIOD_BYTES / row, p.height) * row;
    make_period(p.pixels.data(), period, p.width, fill);
    for (size_t at = period; at < p.bytes; at += period)
        memcpy(&p.pixels[at], &p.pixels[0], std::min(period, p.bytes - at));
    p.counters.resize(768);
    for (size_t i = 0; i < period; i++)
        p.counters[i % 3 * 256 + p.pixels[i]] += (int)(p.bytes / period + (i < p.bytes % period));
    return p;
}

/* --- counting -------------------------------------------------------------------------------- */

static cudaError_t count_rgb(void *temp, size_t &temp_bytes, const uint8_t *pixels, int pixel_count,
                             int *out)
{
    per_channel<int *> counters = {{out, out + 256, out + 512}};
    per_channel<int> levels = {{257, 257, 257}}, lower = {{0, 0, 0}}, upper = {{256, 256, 256}};
    return cub::DeviceHistogram::MultiHistogramEven<3, 3>(temp, temp_bytes, pixels, counters, levels,
                                                          lower, upper, pixel_count);
}

static cudaError_t count_bytes(void *temp, size_t &temp_bytes, const uint8_t *pixels,
                               int pixel_count, int *out)
{
    return cub::DeviceHistogram::HistogramEven(temp, temp_bytes, pixels, out, 257, 0, 256,
                                               3 * pixel_count);
}

typedef cudaError_t counting(void *, size_t &, const uint8_t *, int, int *);

static void measure(const char *what, counting *count, int channels, const pictures &p, int shape,
                    int fill, const uint8_t *device, int rounds)
{
    const int pixel_count = (int)(p.bytes / 3);
    size_t temp_bytes = 0;
    void *temp = nullptr;
    int *counters = nullptr;
    CHECK(count(nullptr, temp_bytes, device, pixel_count, nullptr));
    CHECK(cudaMalloc(&temp, std::max<size_t>(temp_bytes, 1)));
    CHECK(cudaMalloc(&counters, 768ul * p.count * sizeof(int)));
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    std::vector<float> milliseconds;
    for (int round = 0; round <= rounds; round++) {
        float took;
        CHECK(cudaEventRecord(begin));
        for (uint32_t i = 0; i < p.count; i++)
            CHECK(count(temp, temp_bytes, device + i * p.stride, pixel_count, counters + 768ul * i));
        CHECK(cudaEventRecord(end));
        CHECK(cudaEventSynchronize(end));
        CHECK(cudaEventElapsedTime(&took, begin, end));
        if (round > 0)
            milliseconds.push_back(took);
    }
    std::sort(milliseconds.begin(), milliseconds.end());
    std::vector<int> want = p.counters, got(768ul * p.count);
    for (int b = 0; b < 512 && channels == 1; b++)
        want[b % 256] += want[b + 256];
    CHECK(cudaMemcpy(got.data(), counters, got.size() * sizeof(int), cudaMemcpyDeviceToHost));
    size_t wrong = 0;
    for (uint32_t i = 0; i < p.count; i++)
        for (int b = 0; b < channels * 256; b++)
            wrong += got[768ul * i + b] != want[b];
    printf("%s %s %s %zu %.9f %zu\n", what, shapes[shape].name, fills[fill], p.bytes * p.count,
           milliseconds[milliseconds.size() / 2] * 1e-3, wrong);
    fflush(stdout);
    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(end));
    CHECK(cudaFree(counters));
    CHECK(cudaFree(temp));
}

int main(int argc, char **argv)
{
    const size_t capacity = argc == 3 ? strtoull(argv[1], nullptr, 10) : 0;
    if (capacity < 1u << 20 || capacity > INT32_MAX) { /* samples of a call are counted in an int */
        fprintf(stderr, "usage: cub_histogram BYTES ROUNDS, 1 MiB to 2 GiB\n");
        return 2;
    }
    const int rounds = std::max(1, atoi(argv[2]));
    uint8_t *device;
    CHECK(cudaMalloc(&device, capacity));
    for (int shape = 0; shape < 3; shape++) {
        for (int fill = 0; fill < 5; fill++) {
            const pictures p = make_pictures(capacity, shape, fill);
            for (uint32_t i = 0; i < p.count; i++)
                CHECK(cudaMemcpy(device + i * p.stride, p.pixels.data(), p.bytes,
                                 cudaMemcpyHostToDevice));
            measure("rgb", count_rgb, 3, p, shape, fill, device, rounds);
            measure("bytes", count_bytes, 1, p, shape, fill, device, rounds);
        }
    }
    CHECK(cudaFree(device));
    return 0;
}

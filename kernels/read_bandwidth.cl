/* read_bandwidth: reads a buffer once and keeps nothing: what the memory gives, for histograms to be
 * compared with. `SPAN` 16-byte vectors follow each other in one work-item (CPU devices: 256, a
 * stream for each core; GPUs: 1, neighbours read neighbouring vectors). The words are combined so
 * that no load can be left out; `sink` is written where the combination meets `never`.
 */
__kernel void read_bandwidth(__global const uint4 *vectors, ulong count, uint never,
                             __global uint *sink)
{
    const ulong items = get_global_size(0);
    uint4 sum = (uint4)(0);
    for (ulong block = get_global_id(0); block * SPAN < count; block += items) {
        const ulong end = min(count, (block + 1) * SPAN);
        for (ulong i = block * SPAN; i < end; i++)
            sum += vectors[i];
    }
    if (sum.x + 3 * sum.y + 5 * sum.z + 7 * sum.w == never)
        *sink = sum.x;
}

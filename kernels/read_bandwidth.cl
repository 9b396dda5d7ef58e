/* read_bandwidth: reads a buffer once and keeps nothing; the memory bandwidth that histograms are
 * compared with. Work-items read runs of SPAN 16-byte vectors (CPU devices: 256, a stream for each
 * core; GPUs: 1, neighbours read neighbouring vectors), FLIGHT of them independently, so that
 * enough loads are in flight. The words are combined so that no load can be optimised away; `sink`
 * is written if the combination equals `never`. */
__kernel void read_bandwidth(__global const uint4 *vectors, ulong count, uint never,
                             __global uint *sink)
{
    const ulong step = get_global_size(0) * SPAN;
    uint4 sum[FLIGHT];
    for (uint f = 0; f < FLIGHT; f++)
        sum[f] = (uint4)(0);
    ulong at = get_global_id(0) * SPAN;
    for (; at + (FLIGHT - 1) * step + SPAN <= count; at += FLIGHT * step)
        for (uint i = 0; i < SPAN; i++)
            for (uint f = 0; f < FLIGHT; f++)
                sum[f] += vectors[at + f * step + i];
    for (; at < count; at += step)
        for (ulong i = at; i < min(count, at + SPAN); i++)
            sum[0] += vectors[i];
    uint4 total = sum[0];
    for (uint f = 1; f < FLIGHT; f++)
        total += sum[f];
    if (total.x + 3 * total.y + 5 * total.z + 7 * total.w == never)
        *sink = total.x;
}

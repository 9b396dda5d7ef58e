/* blur_picture: the 3x3 box blur of one picture, one work-item per pixel.
 *
 * The blurred picture is the interior: two columns and two rows smaller, each channel the sum of
 * nine values divided by 9, rounded down. A two-dimensional range of exactly that size covers it; a
 * larger one is guarded. It issues nine loads per channel, as it exists to show how a device
 * handles ranges (`clpipe ndrange`). Ingest uses blur_slot. */
__kernel void blur_picture(__global const uchar *pixels, __global uchar *blurred, uint width,
                           uint height)
{
    const uint x = (uint)get_global_id(0), y = (uint)get_global_id(1);
    if (x >= width || y >= height)
        return;
    const uint stride = 3 * (width + 2);
    __global const uchar *in = pixels + y * stride + 3 * x;
    __global uchar *out = blurred + (y * width + x) * 3;
    for (uint c = 0; c < 3; c++) {
        uint sum = 0;
        for (uint row = 0; row < 3; row++)
            for (uint column = 0; column < 3; column++)
                sum += in[row * stride + 3 * column + c];
        out[c] = (uchar)(sum / 9);
    }
}

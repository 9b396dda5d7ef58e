/* ndrange_probe: what the work-items at the four corners of a two-dimensional range see.
 *
 * corners has eight words per corner, in the order top left, top right, bottom left, bottom right:
 * the global id, the size of the work-item's own group (smaller at the edges if the device takes
 * non-uniform groups), the size that the host requested or the driver chose, and two zeros. OpenCL
 * C 1.2 lacks get_enqueued_local_size: zeros there, too. In a range of one column or row a
 * work-item is several corners. */
static void see(__global uint *corner)
{
    corner[0] = (uint)get_global_id(0);
    corner[1] = (uint)get_global_id(1);
    corner[2] = (uint)get_local_size(0);
    corner[3] = (uint)get_local_size(1);
#if __OPENCL_C_VERSION__ >= 200
    corner[4] = (uint)get_enqueued_local_size(0);
    corner[5] = (uint)get_enqueued_local_size(1);
#else
    corner[4] = corner[5] = 0;
#endif
    corner[6] = corner[7] = 0;
}

__kernel void ndrange_probe(__global uint *corners)
{
    const size_t x = get_global_id(0), y = get_global_id(1);
    const bool left = x == 0, right = x == get_global_size(0) - 1;
    const bool top = y == 0, bottom = y == get_global_size(1) - 1;
    if (top && left)
        see(corners);
    if (top && right)
        see(corners + 8);
    if (bottom && left)
        see(corners + 16);
    if (bottom && right)
        see(corners + 24);
}

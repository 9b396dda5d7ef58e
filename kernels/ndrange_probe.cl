/* ndrange_probe: what the work-items at the four corners of a two-dimensional range see.
 *
 * corners[0] is the top left one, then top right, bottom left, bottom right; each holds the global
 * id, the size of its own work-group (smaller at the edges, where the device takes non-uniform
 * ones), the size that the host asked for or the driver chose, and zeros. OpenCL C 1.2 does not have
 * get_enqueued_local_size: zeros there, too. A range of one column or row has several corners in one
 * work-item.
 */
__kernel void ndrange_probe(__global uint8 *corners)
{
    const size_t x = get_global_id(0), y = get_global_id(1);
    uint enqueued_x = 0, enqueued_y = 0;
#if __OPENCL_C_VERSION__ >= 200
    enqueued_x = (uint)get_enqueued_local_size(0);
    enqueued_y = (uint)get_enqueued_local_size(1);
#endif
    const uint8 seen = (uint8)((uint)x, (uint)y, (uint)get_local_size(0), (uint)get_local_size(1),
                               enqueued_x, enqueued_y, 0, 0);
    const bool left = x == 0, right = x == get_global_size(0) - 1;
    const bool top = y == 0, bottom = y == get_global_size(1) - 1;
    if (top && left)
        corners[0] = seen;
    if (top && right)
        corners[1] = seen;
    if (bottom && left)
        corners[2] = seen;
    if (bottom && right)
        corners[3] = seen;
}

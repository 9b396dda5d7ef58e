/* h5_library.c: the HDF5 library as a whole. */
#include "result/h5_library.h"

#include <hdf5.h>

void h5_library_without_exit_handler(void)
{
    H5dont_atexit();
}

void h5_library_version(unsigned version[3])
{
    H5get_libversion(&version[0], &version[1], &version[2]);
}

/* h5_library.h: global setup of the HDF5 library, for programs that do not call it themselves. */
#ifndef CLPIPE_RESULT_H5_LIBRARY_H
#define CLPIPE_RESULT_H5_LIBRARY_H

/* Keeps HDF5 from registering its exit handler, which crashes if a file could not be finished (a
 * full disk). Call it before any other HDF5 function; every file must be closed before exit. */
void h5_library_without_exit_handler(void);

/* The version that is linked at run time. */
void h5_library_version(unsigned version[3]);

#endif

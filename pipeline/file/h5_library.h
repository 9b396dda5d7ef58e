/* h5_library.h: the HDF5 library as a whole, for programs that make no HDF5 call of their own. */
#ifndef CLPIPE_FILE_H5_LIBRARY_H
#define CLPIPE_FILE_H5_LIBRARY_H

/* Keeps HDF5 from registering its exit handler, which crashes where a file could not be finished (a
 * full disk). To be called before anything else of HDF5; every file must be closed before exit. */
void h5_library_without_exit_handler(void);

/* The version that is linked at run time. */
void h5_library_version(unsigned version[3]);

#endif

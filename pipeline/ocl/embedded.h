/* embedded.h: the kernel sources inside the program; tools/embed_kernels.py generates the table. */
#ifndef CLPIPE_OCL_EMBEDDED_H
#define CLPIPE_OCL_EMBEDDED_H

struct embedded_kernel {
    const char *name;         /* "blur_slot" for kernels/blur_slot.cl; headers keep their ".h" */
    const char *const *lines; /* terminated by NULL; each ends in a newline */
};

/* Terminated by a row whose name is NULL. */
extern const struct embedded_kernel embedded_kernels[];

#endif

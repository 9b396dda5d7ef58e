/* jpeg_errors.h: errors of libjpeg, for callers that only need to know that a call failed. */
#ifndef CLPIPE_DECODE_JPEG_ERRORS_H
#define CLPIPE_DECODE_JPEG_ERRORS_H

#include <setjmp.h>
#include <stdio.h> /* needed by jpeglib.h */

#include <jpeglib.h>

/* An error jumps to `escape`, which the caller sets; warnings are dropped. */
struct jpeg_errors {
    struct jpeg_error_mgr manager; /* must be first */
    jmp_buf escape;
};

_Noreturn static inline void jpeg_errors_exit(j_common_ptr common)
{
    longjmp(((struct jpeg_errors *)common->err)->escape, 1);
}

static inline void jpeg_errors_message(j_common_ptr common, int level)
{
    (void)common;
    (void)level;
}

/* Returns `err` of a compressor or a decompressor; must not move afterwards. */
static inline struct jpeg_error_mgr *jpeg_errors_init(struct jpeg_errors *errors)
{
    jpeg_std_error(&errors->manager);
    errors->manager.error_exit = jpeg_errors_exit;
    errors->manager.emit_message = jpeg_errors_message;
    return &errors->manager;
}

#endif

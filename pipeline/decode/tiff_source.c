/* tiff_source.c: libtiff's messages and reads. Messages are free text, so substrings decide the
 * reason. */
#include "decode/tiff_source.h"

#include "decode/codec.h"

#include <stdio.h>
#include <string.h>

/* DIRECTORY_MAX limits the first directory's data, which libtiff keeps in memory; tags may share
 * their data in the file. Reads over the limit fail, and libtiff continues without the tag. */
enum { ALLOC_MAX = 1 << 30, DIRECTORY_MAX = 16 << 20 };

/* Substring of a message and its reason; the first match counts. */
static const struct {
    const char *part;
    enum reason reason;
} meanings[] = {
    {"Premature EOL", REASON_CORRUPT}, /* a short fax row, with more rows following */
    {"remature", REASON_TRUNCATED},
    {"Not enough data", REASON_TRUNCATED},
    {"beyond the", REASON_TOO_LARGE}, /* ALLOC_MAX */
    {"disabled since above", REASON_TOO_LARGE},
    {"exceeds maximum scans", REASON_TOO_MANY_SCANS},
    {"(0 elements", REASON_CORRUPT}, /* allocation of 0 bytes: an empty directory */
    {"emory", REASON_OUT_OF_MEMORY},
    {"allocat", REASON_OUT_OF_MEMORY},
    {"No space", REASON_OUT_OF_MEMORY},
    {"not implemented", REASON_UNSUPPORTED},
    {"not supported", REASON_UNSUPPORTED},
    {"not configured", REASON_UNSUPPORTED},
    {"Sorry", REASON_UNSUPPORTED},
};

static enum reason reason_of(const struct tiff_source *source, const char *text)
{
    if (source->ended)
        return REASON_TRUNCATED;
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++) {
        if (strstr(text, meanings[i].part))
            return meanings[i].reason;
    }
    return REASON_CORRUPT;
}

void tiff_source_note(struct tiff_source *source, const char *text)
{
    if (!source->failure || source->failure->reason != REASON_NONE)
        return;
    if (source->input->error_number)
        codec_short(source->input, source->failure, "");
    else
        failure_set(source->failure, reason_of(source, text), "%s", text);
}

/* While pixels are read, takes errors, and warnings about missing or wrong data, which libtiff
 * replaces with grey or white. */
static void on_message(struct tiff_source *source, bool warning, const char *format,
                       va_list arguments)
{
    char text[160];
    vsnprintf(text, sizeof text, format, arguments);
    if (source->reading &&
        (!warning || strstr(text, "remature") || strstr(text, "Corrupt JPEG data")))
        tiff_source_note(source, text);
}

#if TIFFLIB_VERSION >= 20221213
static int on_error_of(TIFF *file, void *user, const char *module, const char *format, va_list list)
{
    (void)file;
    (void)module;
    on_message(user, false, format, list);
    return 1;
}

static int on_warning_of(TIFF *file, void *user, const char *module, const char *format,
                         va_list list)
{
    (void)file;
    (void)module;
    on_message(user, true, format, list);
    return 1;
}
#else
/* Before 4.5 there is one global handler, with the file as an argument. */
static void on_any_error(thandle_t user, const char *module, const char *format, va_list list)
{
    (void)module;
    if (user)
        on_message(user, false, format, list);
}

static void on_any_warning(thandle_t user, const char *module, const char *format, va_list list)
{
    (void)module;
    if (user)
        on_message(user, true, format, list);
}

static void set_handlers(void)
{
    TIFFSetErrorHandler(NULL);
    TIFFSetWarningHandler(NULL);
    TIFFSetErrorHandlerExt(on_any_error);
    TIFFSetWarningHandlerExt(on_any_warning);
}
#endif

static tmsize_t on_read(thandle_t user, void *out, tmsize_t size)
{
    struct tiff_source *source = user;
    if (source->opening) {
        if (size < 0 || (uint64_t)size > DIRECTORY_MAX - source->directory_bytes)
            return 0;
        source->directory_bytes += (uint64_t)size;
    }
    size_t got = size > 0 ? input_at(source->input, source->position, out, (size_t)size) : 0;
    if (got < (size_t)size && source->position + (uint64_t)size > source->input->blob.bytes)
        source->ended = true;
    source->position += got;
    return (tmsize_t)got;
}

static tmsize_t on_write(thandle_t user, void *data, tmsize_t size)
{
    (void)user;
    (void)data;
    (void)size;
    return 0;
}

static toff_t on_size(thandle_t user)
{
    const struct tiff_source *source = user;
    return source->input->blob.bytes;
}

static toff_t on_seek(thandle_t user, toff_t offset, int whence)
{
    struct tiff_source *source = user;
    source->position = whence == SEEK_SET   ? offset
                       : whence == SEEK_CUR ? source->position + offset
                                            : on_size(user) + offset;
    return source->position;
}

static int on_close(thandle_t user)
{
    (void)user;
    return 0;
}

TIFF *tiff_source_open(struct tiff_source *source)
{
    static const char mode[] = "rmO"; /* no mmap; read strip offsets on demand */
#if TIFFLIB_VERSION >= 20221213
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (!options)
        return NULL;
    TIFFOpenOptionsSetErrorHandlerExtR(options, on_error_of, source);
    TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning_of, source);
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, ALLOC_MAX);
    TIFF *file = TIFFClientOpenExt("TIFF", mode, source, on_read, on_write, on_seek, on_close,
                                   on_size, NULL, NULL, options);
    TIFFOpenOptionsFree(options);
    return file;
#else
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_handlers);
    return TIFFClientOpen("TIFF", mode, source, on_read, on_write, on_seek, on_close, on_size, NULL,
                          NULL);
#endif
}

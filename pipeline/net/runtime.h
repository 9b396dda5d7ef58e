/* runtime.h: networks of ONNX files, computed by ONNX Runtime in a process of its own, one a model.
 *
 * That process opens the library by name, describes the model, and then waits for batches; both have memory in
 * common. So whatever a model does to the library costs an error. Rows may differ in the last bits on other
 * machines and in other versions. Any thread may ask. */
#ifndef CLPIPE_NET_RUNTIME_H
#define CLPIPE_NET_RUNTIME_H

#include "base/error.h"

#include <stdint.h>

#define RUNTIME_NAME        64
#define RUNTIME_OUTPUTS_MAX 16u
#define RUNTIME_VALUES_MAX  65536u /* of a row */
#define RUNTIME_SIDE_MAX    1024u  /* of a picture */
#define RUNTIME_SUFFIX      ".onnx"

/* Types of values, as ONNX Runtime numbers them. */
enum runtime_type { RUNTIME_FLOAT = 1, RUNTIME_UINT8 = 2, RUNTIME_HALF = 10 };

struct runtime_tensor {
    char name[RUNTIME_NAME]; /* "": it is too long, or no word of a SPEC */
    int type;
    size_t rank;
    int64_t dim[4]; /* the first ones; below 1: any */
};

/* What a model says of itself. */
struct runtime_about {
    char digest[65];  /* SHA-256 of the file */
    char made_by[48]; /* "onnxruntime-1.32.0-cpu": library, version, provider */
    uint32_t outputs;
    struct runtime_tensor input, output[RUNTIME_OUTPUTS_MAX];
};

enum runtime_layout { RUNTIME_LAYOUT_UNKNOWN, RUNTIME_NCHW, RUNTIME_NHWC };
enum runtime_pool { RUNTIME_POOL_NONE, RUNTIME_POOL_CLS, RUNTIME_POOL_MEAN };

/* What is computed. A byte q of channel c becomes float32((q / 255 - mean[c]) / std[c]), in IEEE double
 * rounded once; a model of bytes gets q. Of an output of tokens a row is the first, or their mean in double. */
struct runtime_job {
    uint32_t output, width, height;
    enum runtime_layout layout;
    enum runtime_pool pool;
    double mean[3], std[3];
};

struct runtime_config {
    const char *library; /* file or directory; NULL: $CLPIPE_ONNXRUNTIME, else the system's */
    unsigned threads;    /* of a model */
    bool isolate;        /* models run in a sandbox */
};

/* For the models that are started later; its texts must stay. */
void runtime_configure(const struct runtime_config *config);

struct runtime;

/* The model of a file, which is not touched yet; stays until the process ends. NULL: no memory. */
struct runtime *runtime_of(const char *path);
/* One that was started, by its digest; NULL: there is none. */
struct runtime *runtime_find(const char *digest);

/* Starts the model's process, unless it runs; it gets 4 GiB of memory and four times the size of the file. It
 * forks: call it before drivers start threads. STATUS_USAGE: the library is missing, or the model is no network
 * of pictures. */
enum status runtime_start(struct runtime *runtime, bool cuda, struct error *err);

/* Of a model that was started. */
const struct runtime_about *runtime_about(const struct runtime *runtime);

/* Rows of `count` pictures, upright RGB of the job's size; rows[i] has *values float32. A row with a value that
 * is not finite becomes zeros, with a notice. *values 0: it is set, and rows may be NULL. STATUS_FAILED: the
 * model cannot compute it, or its process has ended. */
enum status runtime_rows(struct runtime *runtime, const struct runtime_job *job, uint32_t *values,
                         const uint8_t *const *pictures, float *const *rows, uint32_t count,
                         struct error *err);

/* "onnxruntime-1.32.0-cpu, 2 threads, 312 MB beside --memory": of all models; "" where there are none. */
char *runtime_tell(char *text, size_t size);

#endif

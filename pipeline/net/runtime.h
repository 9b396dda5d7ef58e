/* runtime.h: networks in ONNX files, computed by ONNX Runtime in one separate process per model.
 *
 * The process opens the library by name, describes the model, and then waits for batches in shared
 * memory, so whatever a model does to the library only causes an error. Rows may differ in the last
 * bits between machines and library versions. Thread-safe. */
#ifndef CLPIPE_NET_RUNTIME_H
#define CLPIPE_NET_RUNTIME_H

#include "base/error.h"

#include <stdint.h>

#define RUNTIME_NAME        64
#define RUNTIME_OUTPUTS_MAX 16u
#define RUNTIME_VALUES_MAX  65536u /* per row */
#define RUNTIME_SIDE_MAX    1024u  /* of a picture */
#define RUNTIME_SUFFIX      ".onnx"

/* Value types, numbered as in ONNX Runtime. */
enum runtime_type { RUNTIME_FLOAT = 1, RUNTIME_UINT8 = 2, RUNTIME_HALF = 10 };

struct runtime_tensor {
    char name[RUNTIME_NAME]; /* "": too long, or not a word usable in a SPEC */
    int type;
    size_t rank;
    int64_t dim[4]; /* the first ones; below 1: any */
};

/* A model's description. */
struct runtime_about {
    char digest[65];  /* SHA-256 of the file */
    char made_by[48]; /* "onnxruntime-1.32.0-cpu": library, version, provider */
    uint32_t outputs;
    struct runtime_tensor input, output[RUNTIME_OUTPUTS_MAX];
};

enum runtime_layout { RUNTIME_LAYOUT_UNKNOWN, RUNTIME_NCHW, RUNTIME_NHWC };
enum runtime_pool { RUNTIME_POOL_NONE, RUNTIME_POOL_CLS, RUNTIME_POOL_MEAN };

/* A computation. A byte q of channel c becomes float32((q / 255 - mean[c]) / std[c]), in IEEE
 * double rounded once; a model with byte input gets q. For an output of tokens, a row is the first
 * token, or their mean in double. */
struct runtime_job {
    uint32_t output, width, height;
    enum runtime_layout layout;
    enum runtime_pool pool;
    double mean[3], std[3];
};

struct runtime_config {
    const char *library; /* file or directory; NULL: $CLPIPE_ONNXRUNTIME, else the system's */
    unsigned threads;    /* per model */
    bool isolate;        /* run models in a sandbox */
};

/* Applies to models started later; the strings must stay valid. */
void runtime_configure(const struct runtime_config *config);

struct runtime;

/* The model of a file, not accessed yet; lives until the process ends. NULL: out of memory. */
struct runtime *runtime_of(const char *path);
/* A started model with this digest; NULL: none. */
struct runtime *runtime_find(const char *digest);

/* Starts the model's process, unless it is running; it may use 4 GiB of memory plus four times the
 * size of the file. It forks, so call it before drivers start threads. STATUS_USAGE: the library is
 * missing, the model does not take pictures, or it is running with the other value of `cuda`;
 * STATUS_FAILED: fork. */
enum status runtime_start(struct runtime *runtime, bool cuda, struct error *err);

/* Requires a started model. */
const struct runtime_about *runtime_about(const struct runtime *runtime);

/* Computes rows of `count` pictures, upright RGB in the job's size; rows[i] has *values float32. A
 * row with a value that is not finite becomes zeros, with a notice. If *values is 0, it is set;
 * rows may be NULL, and pictures, for zeros. STATUS_USAGE: the model's fixed batch size is too large; STATUS_FAILED: the
 * model cannot compute it, or its process has ended. */
enum status runtime_rows(struct runtime *runtime, const struct runtime_job *job, uint32_t *values,
                         const uint8_t *const *pictures, float *const *rows, uint32_t count,
                         struct error *err);

/* "onnxruntime-1.32.0-cpu, 2 threads, 312 MB beside --memory", for all models; "" if none. */
char *runtime_tell(char *text, size_t size);

#endif

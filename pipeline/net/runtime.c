/* runtime.c: calls ONNX Runtime through the few entries needed of its function table, whose
 * positions never change, in separate processes. */
#include "net/runtime.h"

#include "base/half.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/output.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/process.h"
#include "base/sandbox.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define API_VERSION 11u
#define LOG_FATAL   4
#define MEMORY      ((uint64_t)4 << 30)
#define BATCH_MOST  32u
#define PIXELS      (1u << 20) /* per batch of the usual size, to keep a model's own values few */
#define INPUT_BYTES ((size_t)64 << 20) /* per batch; the largest picture fits */
#define LOOKS       4500 /* waits of 0.2 s for an answer: a model silent for 15 minutes is stuck */

/* clang-format off */
#define ENTRIES(ENTRY) \
    ENTRY(2, const char *, GetErrorMessage, (const void *status)) \
    ENTRY(3, void *, CreateEnv, (int level, const char *name, void **env)) \
    ENTRY(8, void *, CreateSessionFromArray, (const void *env, const void *model, size_t size, const void *options, void **session)) \
    ENTRY(9, void *, Run, (void *session, const void *options, const char *const *inputs, void *const *values, size_t count, const char *const *outputs, size_t output_count, void **made)) \
    ENTRY(10, void *, CreateSessionOptions, (void **options)) \
    ENTRY(24, void *, SetIntraOpNumThreads, (void *options, int threads)) \
    ENTRY(25, void *, SetInterOpNumThreads, (void *options, int threads)) \
    ENTRY(30, void *, SessionGetInputCount, (const void *session, size_t *count)) \
    ENTRY(31, void *, SessionGetOutputCount, (const void *session, size_t *count)) \
    ENTRY(33, void *, SessionGetInputTypeInfo, (const void *session, size_t index, void **info)) \
    ENTRY(34, void *, SessionGetOutputTypeInfo, (const void *session, size_t index, void **info)) \
    ENTRY(36, void *, SessionGetInputName, (const void *session, size_t index, void *allocator, char **name)) \
    ENTRY(37, void *, SessionGetOutputName, (const void *session, size_t index, void *allocator, char **name)) \
    ENTRY(49, void *, CreateTensorWithDataAsOrtValue, (const void *memory, void *data, size_t size, const int64_t *dim, size_t rank, int type, void **value)) \
    ENTRY(51, void *, GetTensorMutableData, (void *value, void **data)) \
    ENTRY(55, void *, CastTypeInfoToTensorInfo, (const void *info, void **shape)) \
    ENTRY(60, void *, GetTensorElementType, (const void *shape, int *type)) \
    ENTRY(61, void *, GetDimensionsCount, (const void *shape, size_t *rank)) \
    ENTRY(62, void *, GetDimensions, (const void *shape, int64_t *dim, size_t rank)) \
    ENTRY(65, void *, GetTensorTypeAndShape, (const void *value, void **shape)) \
    ENTRY(69, void *, CreateCpuMemoryInfo, (int allocator, int memory, void **info)) \
    ENTRY(78, void *, GetAllocatorWithDefaultOptions, (void **allocator)) \
    ENTRY(93, void, ReleaseStatus, (void *status)) \
    ENTRY(96, void, ReleaseValue, (void *value)) \
    ENTRY(99, void, ReleaseTensorTypeAndShapeInfo, (void *shape)) \
    ENTRY(130, void *, AddSessionConfigEntry, (void *options, const char *key, const char *value)) \
    ENTRY(204, void *, SessionOptionsAppendExecutionProvider_CUDA_V2, (void *options, const void *cuda)) \
    ENTRY(205, void *, CreateCUDAProviderOptions, (void **cuda)) \
    ENTRY(206, void *, UpdateCUDAProviderOptions, (void *cuda, const char *const *keys, const char *const *values, size_t count))
#define MEMBER(place, result, name, arguments) result(*name) arguments;
#define PLACE(place, result, name, arguments) place,
/* clang-format on */

/* Shared by both processes. */
struct shared {
    sem_t asked, answered;
    struct runtime_about about;
    struct runtime_job job;
    uint32_t side;          /* of the input that holds the batch; the other one is being filled */
    uint32_t count, values; /* of the batch; of a row, as computed */
    long kilobytes;         /* peak memory of the process */
    bool failed;
    char why[600];
    float rows[BATCH_MOST * RUNTIME_VALUES_MAX];
    _Alignas(64) uint8_t input[2][INPUT_BYTES];
};

struct runtime {
    char *path;
    bool started, cuda;
    pid_t process; /* 0: ended */
    struct shared *shared;
    struct runtime_about about; /* a copy: shared memory may change */
    pthread_mutex_t lock;
    struct runtime *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct runtime *all;
static struct runtime_config config;

/* --- the model's process: opening ------------------------------------------------------------ */

struct session {
    struct shared *shared;
    struct {
        ENTRIES(MEMBER)
    } ort;
    void *session, *memory;
    const char *version;
    char *input, *output[RUNTIME_OUTPUTS_MAX]; /* names */
};

#define FAIL(s, ...)                                                                               \
    ((s)->shared->failed = true, snprintf((s)->shared->why, sizeof(s)->shared->why, __VA_ARGS__),  \
     false)

/* Checks a status of the library. In its messages on CUDA, the reason follows lines of source and
 * precedes details. */
static bool done(struct session *s, void *status)
{
    static const char *const reasons[] = {"Failed to load library", "CUDA failure", "CUDNN failure",
                                          "CUBLAS failure"};
    if (!status)
        return true;
    const char *message = s->ort.GetErrorMessage(status), *reason = NULL, *end = NULL;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons && !reason; i++)
        reason = strstr(message, reasons[i]);
    if (reason && !(end = strstr(reason, " ; ")))
        end = reason + strcspn(reason, "\n");
    const bool failed =
        reason ? FAIL(s, "%.*s", (int)(end - reason), reason) : FAIL(s, "%s", message);
    s->ort.ReleaseStatus(status);
    return failed;
}

static bool open_library(struct session *s)
{
    static const unsigned char places[] = {ENTRIES(PLACE)};
    const char *own = getenv("CLPIPE_ONNXRUNTIME");
    const char *name = config.library ? config.library : own && *own ? own : "libonnxruntime.so.1";
    struct {
        const void *(*table)(uint32_t version);
        const char *(*version)(void);
    } const *(*base)(void);
    char pattern[PATH_MAX];
    struct stat st;
    glob_t found;
    if (stat(name, &st) == 0 && S_ISDIR(st.st_mode)) { /* such as that of a Python package */
        snprintf(pattern, sizeof pattern, "%s/{,capi/,lib/}libonnxruntime.so*", name);
        if (glob(pattern, GLOB_BRACE, NULL, &found) != 0)
            return FAIL(
                s, "there is no libonnxruntime.so in %s (the Python package has it from 1.20 on)",
                name);
        name = found.gl_pathv[0];
    }
    void *const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return FAIL(
            s,
            "it needs ONNX Runtime, which cannot be opened (%s): pip install onnxruntime, and give "
            "--onnxruntime the directory of that package, or install the system's libonnxruntime",
            dlerror());
    void *const entry = dlsym(library, "OrtGetApiBase");
    memcpy(&base, &entry, sizeof entry);
    s->version = entry ? base()->version() : "";
    const uint8_t *const table = entry ? base()->table(API_VERSION) : NULL;
    if (!table)
        return FAIL(s, "%s is not ONNX Runtime 1.%u or newer%s%s", name, API_VERSION,
                    entry ? " but " : "", s->version);
    for (size_t i = 0; i < sizeof places; i++)
        memcpy((uint8_t *)&s->ort + i * sizeof(void *), table + places[i] * sizeof(void *),
               sizeof(void *));
    return true;
}

/* The default search for algorithms of convolutions goes by time, so rows of two runs would differ. */
static bool append_cuda(struct session *s, void *options)
{
    const char *const key = "cudnn_conv_algo_search", *const value = "HEURISTIC";
    void *cuda, *const status = s->ort.CreateCUDAProviderOptions(&cuda);
    if (status)
        return FAIL(s,
                    "ONNX Runtime %s was built without CUDA: use the library of the package "
                    "onnxruntime-gpu, or leave out provider=cuda",
                    s->version);
    return done(s, s->ort.UpdateCUDAProviderOptions(cuda, &key, &value, 1)) &&
           done(s, s->ort.SessionOptionsAppendExecutionProvider_CUDA_V2(options, cuda));
}

/* Reads the file once, so that the digest matches what is loaded. Threads do not spin between
 * batches, as the decoders need their processors. */
static bool open_session(struct session *s, const char *path, bool cuda)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC), threads = (int)config.threads;
    char *model;
    struct stat st = {.st_size = 0};
    void *env, *options;
    size_t size;
    if (file < 0 || fstat(file, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > INT32_MAX ||
        read_to_end(&model, &size, file, path, NULL) != STATUS_OK)
        return FAIL(s, "it is not a readable file of at most 2 GiB");
    close(file);
    sha256_hex_of(s->shared->about.digest, model, size);
    if (!done(s, s->ort.CreateEnv(LOG_FATAL, "clpipe", &env)) ||
        !done(s, s->ort.CreateCpuMemoryInfo(0, 0, &s->memory)) ||
        !done(s, s->ort.CreateSessionOptions(&options)) ||
        !done(s, s->ort.SetIntraOpNumThreads(options, threads)) ||
        !done(s, s->ort.SetInterOpNumThreads(options, 1)) ||
        !done(s, s->ort.AddSessionConfigEntry(options, "session.intra_op.allow_spinning", "0")) ||
        (cuda && !append_cuda(s, options)))
        return false;
    const uint64_t most = MEMORY + 4 * (uint64_t)size + (uint64_t)threads * (10u << 20);
    if (!SANITIZED && !cuda)
        setrlimit(RLIMIT_DATA, &(struct rlimit){most, most});
    if (config.isolate && !cuda)
        sandbox_enter();
    const bool opened =
        done(s, s->ort.CreateSessionFromArray(env, model, size, options, &s->session));
    free(model);
    return opened;
}

static bool read_shape(struct session *s, struct runtime_tensor *out, const void *shape)
{
    int64_t dim[16] = {0};
    if (!done(s, s->ort.GetTensorElementType(shape, &out->type)) ||
        !done(s, s->ort.GetDimensionsCount(shape, &out->rank)) ||
        (out->rank <= 16 && !done(s, s->ort.GetDimensions(shape, dim, out->rank))))
        return false;
    memcpy(out->dim, dim, sizeof out->dim);
    return true;
}

/* Describes the input (index -1) or an output. */
static bool describe(struct session *s, struct runtime_tensor *out, char **name, int index)
{
    const bool input = index < 0;
    const size_t i = input ? 0 : (size_t)index;
    void *info, *allocator, *shape = NULL;
    if (!done(s, s->ort.GetAllocatorWithDefaultOptions(&allocator)) ||
        !done(s, (input ? s->ort.SessionGetInputName
                        : s->ort.SessionGetOutputName)(s->session, i, allocator, name)) ||
        !done(s, (input ? s->ort.SessionGetInputTypeInfo
                        : s->ort.SessionGetOutputTypeInfo)(s->session, i, &info)) ||
        !done(s, s->ort.CastTypeInfoToTensorInfo(info, &shape)))
        return false;
    if (strlen(*name) < sizeof out->name && !(*name)[strcspn(*name, ",= \t\n\\\"")])
        strcpy(out->name, *name);
    return !shape || read_shape(s, out, shape);
}

static bool describe_model(struct session *s, bool cuda)
{
    struct runtime_about *about = &s->shared->about;
    size_t inputs, outputs;
    if (!done(s, s->ort.SessionGetInputCount(s->session, &inputs)) ||
        !done(s, s->ort.SessionGetOutputCount(s->session, &outputs)))
        return false;
    if (inputs != 1)
        return FAIL(s, "it has %zu inputs: export the part that takes pictures alone", inputs);
    about->outputs = (uint32_t)(outputs < RUNTIME_OUTPUTS_MAX ? outputs : RUNTIME_OUTPUTS_MAX);
    snprintf(about->made_by, sizeof about->made_by, "onnxruntime-%.24s-%s", s->version,
             cuda ? "cuda" : "cpu");
    bool described = describe(s, &about->input, &s->input, -1);
    for (uint32_t i = 0; i < about->outputs && described; i++)
        described = describe(s, &about->output[i], &s->output[i], (int)i);
    return described;
}

/* --- the model's process: computing ---------------------------------------------------------- */

static size_t type_bytes(int type)
{
    return type == RUNTIME_FLOAT ? 4 : type == RUNTIME_HALF ? 2 : 1;
}

static size_t picture_bytes(const struct runtime_job *job, int type)
{
    return (size_t)job->width * job->height * 3 * type_bytes(type);
}

static float value_at(const void *data, int type, size_t i)
{
    return type == RUNTIME_HALF ? half_to_float(((const uint16_t *)data)[i])
                                : ((const float *)data)[i];
}

/* Copies the rows of an output: count x values or, with tokens, count x tokens x values. */
static bool take_rows(struct session *s, const void *data, const struct runtime_tensor *made)
{
    struct shared *shared = s->shared;
    const enum runtime_pool pool = shared->job.pool;
    const int64_t *dim = made->dim, tokens = pool ? dim[1] : 1, values = pool ? dim[2] : dim[1];
    const bool flat =
        pool ? made->rank == 3 : made->rank == 2 || (made->rank == 4 && dim[2] == 1 && dim[3] == 1);
    if (!flat || dim[0] != shared->count || values < 1 || tokens < 1 ||
        values > RUNTIME_VALUES_MAX || (made->type != RUNTIME_FLOAT && made->type != RUNTIME_HALF))
        return FAIL(
            s,
            "output %u has %zu dimensions, %lld x %lld x %lld x %lld (type %d), for %u pictures, "
            "where float32 or float16 rows, or with pool= tokens, are needed",
            shared->job.output, made->rank, (long long)dim[0], (long long)dim[1], (long long)dim[2],
            (long long)dim[3], made->type, shared->count);
    const size_t n = (size_t)values, taken = pool == RUNTIME_POOL_MEAN ? (size_t)tokens : 1;
    shared->values = (uint32_t)values;
    for (size_t i = 0; i < shared->count * n; i++) {
        const size_t first = i / n * (size_t)tokens * n + i % n;
        double sum = 0;
        for (size_t t = 0; t < taken; t++)
            sum += value_at(data, made->type, first + t * n);
        shared->rows[i] = (float)(sum / (double)taken);
    }
    return true;
}

static bool compute(struct session *s)
{
    struct shared *shared = s->shared;
    const struct runtime_job *job = &shared->job;
    const int type = shared->about.input.type;
    const bool last = job->layout == RUNTIME_NHWC;
    const int64_t dim[] = {shared->count, last ? job->height : 3, last ? job->width : job->height,
                           last ? 3 : job->width};
    const size_t bytes = shared->count * picture_bytes(job, type);
    void *in = NULL, *out = NULL, *shape = NULL, *data;
    struct runtime_tensor made = {.rank = 0};
    const bool computed =
        done(s, s->ort.CreateTensorWithDataAsOrtValue(s->memory, shared->input[shared->side], bytes,
                                                      dim, 4, type, &in)) &&
        done(s, s->ort.Run(s->session, NULL, (const char *const *)&s->input, &in, 1,
                           (const char *const *)&s->output[job->output], 1, &out)) &&
        done(s, s->ort.GetTensorTypeAndShape(out, &shape)) && read_shape(s, &made, shape) &&
        done(s, s->ort.GetTensorMutableData(out, &data)) && take_rows(s, data, &made);
    s->ort.ReleaseTensorTypeAndShapeInfo(shape);
    s->ort.ReleaseValue(out);
    s->ort.ReleaseValue(in);
    return computed;
}

/* Runs the model's process. It ignores the signals that ask a job to end and reach all of its
 * processes; the main process ends it. */
static _Noreturn void be_process(struct shared *shared, const char *path, bool cuda)
{
    struct session session = {.shared = shared};
    struct rusage usage = {.ru_maxrss = 0};
    process_serve("clpipe-network", 0);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    setenv("ORT_DISABLE_TELEMETRY", "1", 1); /* it would send data and write to $HOME */
    setenv("ORT_TELEMETRY_DISABLED", "1", 1);
    const bool ready = open_library(&session) && open_session(&session, path, cuda) &&
                       describe_model(&session, cuda);
    do {
        getrusage(RUSAGE_SELF, &usage);
        shared->kilobytes = usage.ru_maxrss;
        sem_post(&shared->answered);
        while (sem_wait(&shared->asked) != 0)
            ;
        shared->failed = !compute(&session);
    } while (ready);
    _exit(0);
}

/* --- this process ---------------------------------------------------------------------------- */

void runtime_configure(const struct runtime_config *given)
{
    config = *given;
}

struct runtime *runtime_of(const char *path)
{
    pthread_mutex_lock(&lock);
    struct runtime *runtime = all, *made = NULL;
    while (runtime && strcmp(runtime->path, path) != 0)
        runtime = runtime->next;
    if (!runtime && (made = calloc(1, sizeof *made)) && (made->path = strdup(path))) {
        pthread_mutex_init(&made->lock, NULL);
        made->next = all;
        all = runtime = made;
    }
    pthread_mutex_unlock(&lock);
    return runtime;
}

struct runtime *runtime_find(const char *digest)
{
    pthread_mutex_lock(&lock);
    struct runtime *runtime = all;
    while (runtime && (!runtime->started || strcmp(runtime->about.digest, digest) != 0))
        runtime = runtime->next;
    pthread_mutex_unlock(&lock);
    return runtime;
}

const struct runtime_about *runtime_about(const struct runtime *runtime)
{
    return &runtime->about;
}

/* Waits for an answer; a failure, or the lack of an answer, becomes the error. */
static enum status take_answer(struct runtime *runtime, enum status status, struct error *err)
{
    struct shared *shared = runtime->shared;
    char shown[256];
    int how = 0, looks = 0;
    path_for_message(shown, sizeof shown, runtime->path);
    for (struct timespec at; looks < LOOKS; looks++) {
        clock_gettime(CLOCK_REALTIME, &at);
        at.tv_sec += at.tv_nsec >= 800000000;
        at.tv_nsec = (at.tv_nsec + 200000000) % 1000000000;
        if (sem_timedwait(&shared->answered, &at) == 0)
            return !shared->failed ? STATUS_OK
                                   : error_set(err, status, "the network %s: %.*s", shown,
                                               (int)sizeof shared->why - 1, shared->why);
        if (waitpid(runtime->process, &how, WNOHANG) == runtime->process)
            break;
    }
    if (looks == LOOKS) {
        kill(runtime->process, SIGKILL);
        waitpid(runtime->process, &how, 0);
    }
    runtime->process = 0;
    if (looks == LOOKS)
        return error_set(err, status, "the network %s gave no answer in 15 minutes", shown);
    return error_set(err, status, "the network %s ended the process of ONNX Runtime: %s%s", shown,
                     WIFSIGNALED(how) ? strsignal(WTERMSIG(how)) : "it left",
                     WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL
                         ? ", by a user or because memory ran out"
                         : "");
}

enum status runtime_start(struct runtime *runtime, bool cuda, struct error *err)
{
    const pid_t parent = getpid();
    enum status status = STATUS_OK;
    pthread_mutex_lock(&runtime->lock);
    if (!runtime->started) {
        runtime->shared = mmap(NULL, sizeof *runtime->shared, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (runtime->shared != MAP_FAILED) {
            sem_init(&runtime->shared->asked, 1, 0);
            sem_init(&runtime->shared->answered, 1, 0);
        }
        runtime->process = runtime->shared == MAP_FAILED ? -1 : fork();
        if (runtime->process == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() == parent)
                be_process(runtime->shared, runtime->path, cuda);
            _exit(0);
        }
        status = runtime->process > 0 ? take_answer(runtime, STATUS_USAGE, err)
                                      : error_errno(err, STATUS_FAILED, errno, "fork",
                                                    "cannot start the process of a network");
        runtime->started = status == STATUS_OK;
        runtime->cuda = cuda;
        if (runtime->started)
            runtime->about = runtime->shared->about;
    } else if (runtime->cuda != cuda) {
        status = error_set(err, STATUS_USAGE, "a network runs with only one provider at a time");
    }
    pthread_mutex_unlock(&runtime->lock);
    return status;
}

/* The bits of the model's input for every byte value of each channel. */
static void make_table(uint32_t table[3 * 256], const struct runtime_job *job, int type)
{
    for (unsigned i = 0; i < 3 * 256; i++) {
        const unsigned c = i / 256, q = i % 256;
        const float value = (float)(((double)q / 255 - job->mean[c]) / job->std[c]);
        uint32_t bits = type == RUNTIME_HALF ? half_of_float(value) : q;
        if (type == RUNTIME_FLOAT)
            memcpy(&bits, &value, sizeof bits);
        table[i] = bits;
    }
}

static void put_picture(void *input, const uint8_t *rgb, const uint32_t table[3 * 256],
                        const struct runtime_job *job, int type)
{
    const size_t pixels = (size_t)job->width * job->height;
    const size_t step = job->layout == RUNTIME_NHWC ? 3 : 1;
    for (unsigned c = 0; c < 3; c++) {
        const size_t first = step == 3 ? c : c * pixels;
        const uint32_t *own = table + 256 * c;
        const uint8_t *from = rgb + c;
        for (size_t p = 0, to = first; type == RUNTIME_FLOAT && p < pixels; p++, to += step)
            ((uint32_t *)input)[to] = own[from[3 * p]];
        for (size_t p = 0, to = first; type == RUNTIME_HALF && p < pixels; p++, to += step)
            ((uint16_t *)input)[to] = (uint16_t)own[from[3 * p]];
        for (size_t p = 0, to = first; type == RUNTIME_UINT8 && p < pixels; p++, to += step)
            ((uint8_t *)input)[to] = from[3 * p];
    }
}

static void take_row(float *row, const float *values, const struct runtime *runtime, uint32_t count)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    char shown[256];
    bool finite = true;
    for (uint32_t i = 0; i < count; i++) {
        row[i] = values[i];
        finite = finite && isfinite(row[i]);
    }
    if (finite)
        return;
    memset(row, 0, count * sizeof *row);
    if (!atomic_flag_test_and_set(&told))
        log_message(LOG_NOTICE,
                    "notice: the network %s makes values that are not finite: the rows of such "
                    "pictures are zeros",
                    path_for_message(shown, sizeof shown, runtime->path));
}

enum status runtime_rows(struct runtime *runtime, const struct runtime_job *job, uint32_t *values,
                         const uint8_t *const *pictures, float *const *rows, uint32_t count,
                         struct error *err)
{
    struct shared *shared = runtime->shared;
    const int64_t fixed = runtime->about.input.dim[0];
    const int type = runtime->about.input.type;
    const size_t bytes = picture_bytes(job, type);
    const uint32_t fit = (uint32_t)min_u64(INPUT_BYTES / bytes, BATCH_MOST);
    const uint32_t usual = PIXELS / (job->width * job->height);
    const uint32_t batch = fixed > 0 ? (uint32_t)fixed : min_u32(usual, fit);
    /* On CUDA the number of pictures determines the algorithms. */
    const bool is_padded = fixed > 0 || runtime->cuda;
    uint32_t table[3 * 256], side = 0;
    char shown[256];
    enum status status = STATUS_OK;
    path_for_message(shown, sizeof shown, runtime->path);
    if (fixed > fit)
        return error_set(err, STATUS_USAGE,
                         "the network %s takes %lld pictures at once, but at most %u fit", shown,
                         (long long)fixed, fit);
    make_table(table, job, type);
    pthread_mutex_lock(&runtime->lock);
    /* While the process computes the `asked` pictures before i, the `here` next are prepared. */
    for (uint32_t i = 0, asked = 0, here;
         (here = min_u32(count - i, batch)) + asked > 0 && status == STATUS_OK;
         i += here, asked = here, side = 1 - side) {
        const uint32_t given = pictures ? here : 0, total = is_padded ? batch : here;
        for (uint32_t k = 0; k < given; k++)
            put_picture(shared->input[side] + k * bytes, pictures[i + k], table, job, type);
        if (here > 0) /* the others are zeros */
            memset(shared->input[side] + given * bytes, 0, (total - given) * bytes);
        if (asked > 0)
            status = take_answer(runtime, STATUS_FAILED, err);
        const uint32_t made = shared->values;
        if (asked > 0 && status == STATUS_OK) {
            *values = *values ? *values : made;
            if (made != *values || made > RUNTIME_VALUES_MAX)
                status = error_set(err, STATUS_FAILED,
                                   "the network %s made rows of %u values, then of %u", shown,
                                   *values, made);
        }
        for (uint32_t k = 0; rows && status == STATUS_OK && k < asked; k++)
            take_row(rows[i - asked + k], shared->rows + (size_t)k * made, runtime, made);
        if (status == STATUS_OK && here > 0 && runtime->process <= 0)
            status =
                error_set(err, STATUS_FAILED, "the process of the network %s has ended", shown);
        if (status != STATUS_OK || here == 0)
            break;
        shared->count = total;
        shared->side = side;
        shared->job = *job;
        sem_post(&shared->asked);
    }
    pthread_mutex_unlock(&runtime->lock);
    return status;
}

char *runtime_tell(char *text, size_t size)
{
    uint64_t bytes = 0;
    char peak[32];
    *text = '\0';
    for (const struct runtime *runtime = all; runtime; runtime = runtime->next)
        if (runtime->started) {
            bytes += (uint64_t)runtime->shared->kilobytes << 10;
            snprintf(text, size, "%s, %u threads, %s beside --memory", runtime->about.made_by,
                     config.threads, format_bytes(peak, sizeof peak, bytes));
        }
    return text;
}

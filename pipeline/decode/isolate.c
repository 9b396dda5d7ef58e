/* isolate.c: the parent's side of the workers.
 *
 * A worker that dies, exceeds the time limit or sends an invalid answer is killed; the current file
 * fails with that reason, and the next one gets a new worker.
 *
 * A round trip costs as much as decoding a thumbnail, mostly for waking the processes, so announced
 * files are sent to the worker together. */
#include "decode/isolate.h"

#include "base/clock.h"
#include "decode/decoder_ops.h"
#include "decode/isolate_wire.h"
#include "decode/isolate_worker.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLOT_MIN (64u << 10)
/* How often a wait for an answer checks whether to stop. */
#define STOP_LOOK_US 300000

struct isolate {
    struct isolate_config config;
    pid_t template;
    int control;
    pthread_mutex_t lock; /* serialises requests to the template */
};

/* State of the current file. */
enum file_state {
    FILE_NONE,
    FILE_KNOWN, /* its rows or their failure are in the slot; the worker has finished it */
    FILE_ASKED, /* the worker has it open and answers requests for rows */
};

/* A worker, as the parent sees it.
 *
 *   announced ──── begin_files ────> answered ──── decode_begin ────> begun
 *   file[answered .. files)          file[begun .. answered)          file[.. begun)
 *
 * The file begun last is current, in one of two states unless it has failed:
 *
 *             ┌──> FILE_KNOWN ──── decode_rows copies ──┐
 *   FILE_NONE ┤                                         ├── end, abort ──> FILE_NONE
 *             └──> FILE_ASKED ──── decode_rows asks ────┘
 *
 * Only the file answered last can be FILE_ASKED: the worker does not start the others until it is
 * done, and they are sent to it again. */
struct isolated {
    struct decode base;
    struct isolate *isolate;
    struct isolate_board *board;
    uint8_t *slot; /* after `board` */
    int memory;    /* file descriptor of both */
    int socket;    /* -1: there is no worker */
    pid_t pid;
    struct decode_file file[DECODE_AHEAD_MAX];
    struct isolate_answer answer[DECODE_AHEAD_MAX];
    unsigned files, answered, begun;
    uint64_t used; /* bytes of the slot before the rows of the next file */
    /* The current file: */
    enum file_state state;
    struct isolate_answer *current; /* the last answer for it; FILE_KNOWN: the result of its rows */
    int64_t left_ns;                /* time left for it */
    uint64_t start;                 /* offset of its rows in the slot */
    uint32_t row;
};

static struct isolated *isolated_of(struct decode *decode)
{
    return (struct isolated *)decode;
}

/* --- the template ---------------------------------------------------------------------------- */

enum status isolate_open(struct isolate **out, const struct isolate_config *config,
                         struct error *err)
{
    *out = NULL;
    struct isolate *isolate = calloc(1, sizeof *isolate);
    if (!isolate)
        return error_memory(err, sizeof *isolate, "isolated decoders");
    isolate->config = *config;
    if (isolate->config.slot_bytes < SLOT_MIN)
        isolate->config.slot_bytes = SLOT_MIN;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        int code = errno;
        free(isolate);
        return error_errno(err, STATUS_FAILED, code, "socketpair", "cannot isolate decoders");
    }
    pid_t pid = fork();
    if (pid == 0) {
        close(pair[0]);
        template_main(pair[1], &isolate->config.options, isolate->config.slot_bytes);
    }
    int code = errno;
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        free(isolate);
        return error_errno(err, STATUS_FAILED, code, "fork", "cannot isolate decoders");
    }
    isolate->template = pid;
    isolate->control = pair[0];
    pthread_mutex_init(&isolate->lock, NULL);
    *out = isolate;
    return STATUS_OK;
}

void isolate_close(struct isolate **out)
{
    struct isolate *isolate = *out;
    if (!isolate)
        return;
    close(isolate->control);
    while (waitpid(isolate->template, NULL, 0) < 0 && errno == EINTR)
        ;
    pthread_mutex_destroy(&isolate->lock);
    free(isolate);
    *out = NULL;
}

/* Sends a request and reads the answer; returns 0 or errno. */
static int ask_template(struct isolate *isolate, const struct template_request *request,
                        const int *fds, unsigned fd_count, struct template_answer *answer)
{
    pthread_mutex_lock(&isolate->lock);
    int code = wire_send(isolate->control, request, sizeof *request, fds, fd_count);
    if (code == 0)
        code = wire_receive(isolate->control, answer, sizeof *answer, NULL, 0);
    pthread_mutex_unlock(&isolate->lock);
    return code;
}

/* --- workers --------------------------------------------------------------------------------- */

/* Kills the worker; returns the status of wait(), 0 if unknown. Done by the template, its parent:
 * for others, the pid may already be reused. */
static int end_worker(struct isolated *isolated)
{
    struct template_answer answer = {0};
    struct template_request request = {.op = TEMPLATE_END, .pid = isolated->pid};
    close(isolated->socket);
    isolated->socket = -1;
    isolated->state = FILE_NONE;
    return ask_template(isolated->isolate, &request, NULL, 0, &answer) ? 0 : answer.error_number;
}

static enum status isolated_ready(struct decode *decode, struct error *err)
{
    struct isolated *isolated = isolated_of(decode);
    /* An answer that is already there needs no worker. */
    if (isolated->begun < isolated->answered)
        return STATUS_OK;
    if (isolated->socket >= 0) {
        /* Workers send nothing unasked: readable means closed. */
        struct pollfd end = {.fd = isolated->socket, .events = POLLIN};
        if (poll(&end, 1, 0) == 0)
            return STATUS_OK;
        end_worker(isolated);
    }
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return error_errno(err, STATUS_FAILED, errno, "socketpair", "cannot start a decoder");
    struct template_request request = {.op = TEMPLATE_FORK};
    struct template_answer answer;
    int fds[ISOLATE_FDS] = {pair[1], isolated->memory};
    int code = ask_template(isolated->isolate, &request, fds, ISOLATE_FDS, &answer);
    close(pair[1]);
    if (code == 0 && answer.pid < 0)
        code = answer.error_number;
    if (code != 0) {
        close(pair[0]);
        return error_errno(err, STATUS_FAILED, code, "fork",
                           code == EPIPE ? "the process that starts decoders has ended"
                                         : "cannot start a decoder");
    }
    const struct timeval patience = {.tv_usec = STOP_LOOK_US};
    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    isolated->socket = pair[0];
    isolated->pid = answer.pid;
    return STATUS_OK;
}

static enum status share_memory(struct isolated *isolated, struct error *err)
{
    const size_t bytes = ISOLATE_BOARD + isolated->isolate->config.slot_bytes;
    isolated->memory = memfd_create("clpipe-rows", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    /* Sealed: the worker cannot truncate the shared memory. */
    if (isolated->memory < 0 || ftruncate(isolated->memory, (off_t)bytes) != 0 ||
        fcntl(isolated->memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
        return error_errno(err, STATUS_FAILED, errno, "memfd_create",
                           "cannot share memory with a decoder");
    void *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, isolated->memory, 0);
    if (shared == MAP_FAILED)
        return error_memory(err, bytes, "rows of an isolated decoder");
    isolated->board = shared;
    isolated->slot = (uint8_t *)shared + ISOLATE_BOARD;
    return STATUS_OK;
}

static void isolated_close(struct decode *decode)
{
    struct isolated *isolated = isolated_of(decode);
    if (isolated->socket >= 0)
        end_worker(isolated);
    if (isolated->board)
        munmap(isolated->board, ISOLATE_BOARD + isolated->isolate->config.slot_bytes);
    if (isolated->memory >= 0)
        close(isolated->memory);
    free(isolated);
}

/* --- one file -------------------------------------------------------------------------------- */

/* The worker did not answer, because of `code`. */
static enum reason crashed(struct isolated *isolated, int code, struct failure *failure)
{
    int status = end_worker(isolated);
    if (code != EPIPE)
        return failure_errno(failure, REASON_OUT_OF_MEMORY, code,
                             "cannot communicate with the decoder");
    if (WIFEXITED(status) && WEXITSTATUS(status) == WORKER_STARVED)
        return failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for the decoder's process");
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return failure_set(
            failure, REASON_DECODER_CRASHED,
            "the decoder was killed (SIGKILL): by a user, or because memory ran out");
    if (WIFSIGNALED(status))
        return failure_set(failure, REASON_DECODER_CRASHED, "the decoder crashed: %s (signal %d)",
                           strsignal(WTERMSIG(status)), WTERMSIG(status));
    return failure_set(failure, REASON_DECODER_CRASHED, "the decoder ended with status %d",
                       WIFEXITED(status) ? WEXITSTATUS(status) : 0);
}

static enum reason nonsense(struct isolated *isolated, struct failure *failure)
{
    end_worker(isolated);
    return failure_set(failure, REASON_DECODER_CRASHED,
                       "the decoder's process gave an invalid answer");
}

/* Waits until the worker has answered or died, if there is a time limit; false: timeout. */
static bool wait_for_answer(struct isolated *isolated)
{
    struct stop *stop = isolated->isolate->config.stop;
    struct pollfd answer = {.fd = isolated->socket, .events = POLLIN};
    if (isolated->isolate->config.max_seconds <= 0)
        return true;
    int64_t start = clock_now(), now = start;
    int ready = 0;
    while (ready <= 0 && now - start < isolated->left_ns && !stop_overdue(stop)) {
        int64_t ms = (isolated->left_ns - (now - start)) / 1000000 + 1;
        ready = poll(&answer, 1, ms < 1000 ? (int)ms : 1000);
        now = clock_now();
    }
    isolated->left_ns -= now - start;
    return ready > 0;
}

/* Is this a valid result of a decoder for a file, success included? */
static bool is_failure(const struct failure *failure)
{
    return (unsigned)failure->reason < REASON_COUNT &&
           memchr(failure->message, 0, sizeof failure->message);
}

/* Checks the values that the rest of the program relies on. */
static bool is_sound(const struct image_info *info, const struct decode_options *options)
{
    bool known = false;
    const struct format *row;
    for (unsigned i = 0; (row = format_at(i)) && !known; i++)
        known = row->library && strncmp(row->name, info->format, sizeof info->format) == 0;
    return known && info->format[sizeof info->format - 1] == 0 && info->width > 0 &&
           info->height > 0 && (uint64_t)info->width * info->height <= options->max_pixels &&
           info->out_width > 0 && info->out_width <= info->width && info->out_height > 0 &&
           info->out_height <= info->height && info->orientation >= 1 && info->orientation <= 8 &&
           info->channels >= 1 && info->channels <= 4;
}

/* The number of rows that fit into the shared memory after the first `used` bytes. */
static uint64_t slot_rows(const struct isolated *isolated, const struct image_info *info,
                          uint64_t used)
{
    return (isolated->isolate->config.slot_bytes - used) / (3 * (uint64_t)info->out_width);
}

/* Sends a request and waits; sets *failure if the worker had to be killed. Returns the number of
 * answers and copies them, since the shared memory may change at any time. */
static unsigned ask(struct isolated *isolated, struct isolate_answer *answer,
                    const struct isolate_request *request, const int *fds, struct failure *failure)
{
    struct isolate_board *board = isolated->board;
    char done;
    atomic_store(&board->answered, 0);
    int code = wire_send(isolated->socket, request, sizeof *request, fds, fds ? request->count : 0);
    if (code == 0 && !wait_for_answer(isolated)) {
        end_worker(isolated);
        failure_set(failure, REASON_TIMEOUT, "not decoded within %g s (--max-decode-seconds)",
                    isolated->isolate->config.max_seconds);
        return 0;
    }
    /* A receive timeout, not an error. */
    if (code == 0)
        do
            code = wire_receive(isolated->socket, &done, sizeof done, NULL, 0);
        while (code == EAGAIN && !stop_overdue(isolated->isolate->config.stop));
    unsigned count = atomic_load(&board->answered);
    if (code == EPROTO || count > request->count) {
        nonsense(isolated, failure);
        count = 0;
    } else if (code != 0) {
        crashed(isolated, code, failure);
    }
    memcpy(answer, board->answer, count * sizeof *answer);
    return count;
}

/* Copies a failure from an untrusted worker. */
static void take_failure(struct failure *failure, const struct failure *theirs)
{
    *failure = (struct failure){0};
    if (theirs->reason == REASON_NONE)
        return;
    failure_set(failure, theirs->reason, "%s", theirs->message);
    failure->error_number = theirs->error_number;
}

/* Is the file done, without further requests? */
static bool is_over(const struct isolate_answer *answer)
{
    return answer->ahead || answer->failure.reason != REASON_NONE;
}

/* Bytes of the slot taken by a file's rows. */
static uint64_t rows_ahead(const struct isolate_answer *answer)
{
    bool there = answer->ahead && answer->failure.reason == REASON_NONE;
    return there ? 3 * (uint64_t)answer->info.out_width * answer->info.out_height : 0;
}

/* Returns how many leading answers are valid, for files whose rows are at the start of the slot. */
static unsigned count_sound(const struct isolated *isolated, const struct isolate_answer *answer,
                            unsigned count)
{
    uint64_t used = 0;
    for (unsigned i = 0; i < count; i++) {
        bool failed = answer[i].failure.reason != REASON_NONE;
        if (!is_failure(&answer[i].failure) || (i > 0 && !is_over(&answer[i - 1])))
            return i;
        if (failed && !answer[i].ahead)
            continue;
        if (!is_sound(&answer[i].info, &isolated->isolate->config.options) ||
            (answer[i].ahead &&
             answer[i].info.out_height > slot_rows(isolated, &answer[i].info, used)))
            return i;
        used += rows_ahead(&answer[i]);
    }
    return count;
}

static void isolated_announce(struct decode *decode, const struct decode_file *files,
                              unsigned count)
{
    struct isolated *isolated = isolated_of(decode);
    assert(isolated->begun == isolated->files && count <= decode->ahead);
    memcpy(isolated->file, files, count * sizeof *files);
    isolated->files = count;
    isolated->begun = isolated->answered = 0;
}

static void describe_file(struct isolate_file *to, const struct blob *blob, const char *path)
{
    /* Keeps the end, which has the extension. */
    const size_t length = strlen(path), most = sizeof to->name - 1;
    memcpy(to->name, path + (length > most ? length - most : 0), length < most ? length : most);
    to->offset = blob->offset;
    to->bytes = blob->bytes;
    to->file_bytes = blob->file_bytes;
    to->mtime_ns = blob->mtime_ns;
}

/* Sends the announced files to the worker and waits. Returns the number of answers, for files from
 * file[begun] on; sets *failure if it is 0 or the worker had to be killed. */
static unsigned ask_for_files(struct isolated *isolated, uint32_t *asked, struct failure *failure)
{
    const struct isolate_config *config = &isolated->isolate->config;
    const struct decode_file *file = isolated->file + isolated->begun;
    struct isolate_request request = {.op = ISOLATE_BEGIN,
                                      .rows = !config->headers_only,
                                      .display_scale = isolated->base.display_scale};
    struct blob shared[DECODE_AHEAD_MAX];
    int fds[DECODE_AHEAD_MAX], code = 0;
    const unsigned left = isolated->files - isolated->begun;
    unsigned count = 0;
    for (; request.count < left; request.count++) {
        struct blob *blob = &shared[request.count];
        code = blob_share(blob, file[request.count].blob);
        if (code != 0)
            break;
        describe_file(&request.file[request.count], blob, file[request.count].path);
        fds[request.count] = blob->fd;
    }
    assert(isolated->socket >= 0 && left > 0);
    *asked = request.count;
    if (request.count == 0)
        failure_errno(failure, REASON_OUT_OF_MEMORY, code, "cannot pass the bytes to the decoder");
    else
        count = ask(isolated, isolated->answer + isolated->begun, &request, fds, failure);
    for (uint32_t i = 0; i < request.count; i++)
        blob_close(&shared[i]);
    return count;
}

/* Sends all unsent files to the worker. At least one has a result or failure afterwards. */
static void begin_files(struct isolated *isolated)
{
    const double seconds = isolated->isolate->config.max_seconds;
    struct isolate_answer *answer = isolated->answer + isolated->begun;
    struct failure failure = {0};
    uint32_t asked;
    isolated->left_ns = (int64_t)((seconds < 1e9 ? seconds : 1e9) * 1e9);
    unsigned count = ask_for_files(isolated, &asked, &failure);
    unsigned sound = count_sound(isolated, answer, count);
    if (failure.reason == REASON_NONE && (sound < count || count == 0))
        nonsense(isolated, &failure);
    if (failure.reason != REASON_NONE) {
        /* It died on the first file that is not done. */
        sound -= sound > 0 && !is_over(&answer[sound - 1]);
        if (sound < asked || asked == 0)
            answer[sound++] = (struct isolate_answer){.failure = failure};
    }
    isolated->answered = isolated->begun + sound;
    isolated->used = 0;
}

static enum reason isolated_begin(struct decode *decode, const struct blob *blob, const char *path,
                                  struct image_info *info, struct failure *failure)
{
    struct isolated *isolated = isolated_of(decode);
    if (isolated->begun == isolated->files)
        isolated_announce(decode, &(struct decode_file){blob, path}, 1);
    if (isolated->begun == isolated->answered)
        begin_files(isolated);
    assert(isolated->file[isolated->begun].blob == blob);
    struct isolate_answer *answer = isolated->current = &isolated->answer[isolated->begun++];
    decode->bytes_read = &answer->bytes_read;
    isolated->row = 0;
    if (!answer->ahead && is_over(answer)) {
        take_failure(failure, &answer->failure);
        return failure->reason;
    }
    isolated->state = answer->ahead ? FILE_KNOWN : FILE_ASKED;
    isolated->start = isolated->used;
    isolated->used += rows_ahead(answer);
    *info = answer->info;
    info->dct = (struct dct_layout){.colour = DCT_NONE};
    info->stream_bytes = 0;
    return REASON_NONE;
}

static enum reason ask_for_rows(struct isolated *isolated, uint32_t op, uint32_t rows,
                                uint64_t offset, struct failure *failure)
{
    struct isolate_request request = {.op = op, .rows = rows, .count = 1, .offset = offset};
    struct isolate_answer answer;
    unsigned count = ask(isolated, &answer, &request, NULL, failure);
    if (failure->reason != REASON_NONE)
        return failure->reason;
    if (count == 0 || !is_failure(&answer.failure))
        return nonsense(isolated, failure);
    isolated->current->bytes_read = answer.bytes_read;
    if (answer.failure.reason != REASON_NONE) {
        isolated->state = FILE_NONE;
        take_failure(failure, &answer.failure);
        return failure->reason;
    }
    if (offset == 0)
        memcpy(isolated->current->digest, answer.digest, sizeof answer.digest);
    return REASON_NONE;
}

/* Reads one row that is longer than the slot, in chunks. */
static enum reason wide_row(struct isolated *isolated, uint8_t *dst, uint64_t row,
                            struct failure *failure)
{
    uint64_t slot = isolated->isolate->config.slot_bytes;
    for (uint64_t at = 0; at < row; at += slot) {
        if (ask_for_rows(isolated, ISOLATE_WIDE, 1, at, failure) != REASON_NONE)
            return failure->reason;
        memcpy(dst + at, isolated->slot, row - at < slot ? row - at : slot);
    }
    return REASON_NONE;
}

static void copy_rows(uint8_t *dst, size_t stride, const uint8_t *src, size_t row, uint32_t rows)
{
    if (stride == row) {
        memcpy(dst, src, rows * row);
        return;
    }
    for (uint32_t i = 0; i < rows; i++)
        memcpy(dst + i * stride, src + i * row, row);
}

/* Copies rows that the worker has decoded ahead. */
static enum reason copy_known_rows(struct isolated *isolated, uint8_t *dst, size_t stride,
                                   uint32_t rows, struct failure *failure)
{
    const uint64_t row = 3 * (uint64_t)isolated->current->info.out_width;
    take_failure(failure, &isolated->current->failure);
    if (failure->reason != REASON_NONE)
        return failure->reason;
    copy_rows(dst, stride, isolated->slot + isolated->start + isolated->row * row, row, rows);
    isolated->row += rows;
    return REASON_NONE;
}

static enum reason isolated_rows(struct decode *decode, uint8_t *dst, size_t stride, uint32_t rows,
                                 struct failure *failure)
{
    struct isolated *isolated = isolated_of(decode);
    const struct image_info *info = &isolated->current->info;
    const uint64_t row = 3 * (uint64_t)info->out_width, fit = slot_rows(isolated, info, 0);
    assert(isolated->state != FILE_NONE && rows <= info->out_height - isolated->row);
    if (isolated->state == FILE_KNOWN)
        return copy_known_rows(isolated, dst, stride, rows, failure);
    while (rows > 0) {
        uint32_t n = fit == 0 ? 1 : rows < fit ? rows : (uint32_t)fit;
        enum reason reason = fit == 0 ? wide_row(isolated, dst, row, failure)
                                      : ask_for_rows(isolated, ISOLATE_ROWS, n, 0, failure);
        if (reason != REASON_NONE)
            return reason;
        if (fit > 0)
            copy_rows(dst, stride, isolated->slot, row, n);
        dst += n * stride;
        rows -= n;
        isolated->row += n;
    }
    return REASON_NONE;
}

static enum reason isolated_end(struct decode *decode, uint64_t digest[2], struct failure *failure)
{
    struct isolated *isolated = isolated_of(decode);
    /* The worker has already checked the data after the last row. */
    (void)failure;
    assert(isolated->state != FILE_NONE && isolated->row == isolated->current->info.out_height);
    memcpy(digest, isolated->current->digest, sizeof isolated->current->digest);
    isolated->state = FILE_NONE;
    return REASON_NONE;
}

static void isolated_abort(struct decode *decode)
{
    struct isolated *isolated = isolated_of(decode);
    struct isolate_request request = {.op = ISOLATE_ABORT};
    /* A dead worker is noticed when the next file begins. */
    if (isolated->state == FILE_ASKED)
        wire_send(isolated->socket, &request, sizeof request, NULL, 0);
    isolated->state = FILE_NONE;
}

enum status decode_open_isolated(struct decode **out, struct isolate *isolate, struct error *err)
{
    static const struct decoder_ops ops = {
        .ready = isolated_ready,
        .announce = isolated_announce,
        .begin = isolated_begin,
        .rows = isolated_rows,
        .end = isolated_end,
        .abort = isolated_abort,
        .close = isolated_close,
    };
    *out = NULL;
    struct isolated *isolated = calloc(1, sizeof *isolated);
    if (!isolated)
        return error_memory(err, sizeof *isolated, "an isolated decoder");
    const struct isolate_config *config = &isolate->config;
    const bool alone = config->headers_only || config->max_seconds > 0;
    *isolated = (struct isolated){.base = {.ops = &ops,
                                           .ahead = alone ? 1 : DECODE_AHEAD_MAX,
                                           .bytes_read = &isolated->answer[0].bytes_read},
                                  .isolate = isolate,
                                  .memory = -1,
                                  .socket = -1};
    enum status status = share_memory(isolated, err);
    if (status == STATUS_OK)
        status = isolated_ready(&isolated->base, err);
    if (status != STATUS_OK)
        isolated_close(&isolated->base);
    else
        *out = &isolated->base;
    return status;
}

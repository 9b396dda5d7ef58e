/* isolate.c: this side of the workers.
 *
 * A worker that dies, that takes too long or that answers what no decoder answers is ended; the
 * file under way fails with what happened, and the next one gets a new worker. */
#include "decode/isolate.h"

#include "base/clock.h"
#include "base/path.h"
#include "decode/isolate_wire.h"

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
#include <sys/wait.h>
#include <unistd.h>

#define SLOT_MIN (64u << 10)

struct isolate {
    struct isolate_config config;
    pid_t template;
    int control;
    pthread_mutex_t lock; /* one question to the template at a time */
};

struct isolated {
    struct isolate *isolate;
    uint8_t *slot;
    int memory; /* the slot's descriptor */
    int socket; /* -1: there is no worker */
    pid_t pid;
    /* The file under way: */
    bool under_way;
    bool ahead;             /* all rows are in the slot, or: */
    struct failure failure; /* what came of them */
    int64_t left_ns;        /* of the time for it */
    struct image_info info;
    uint32_t row;
    uint64_t bytes_read, digest[2];
};

/* --- the template ------------------------------------------------------------------------------
 */

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
        template_main(pair[1], &isolate->config);
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

/* One question and its answer; 0 or errno. */
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

/* --- workers -----------------------------------------------------------------------------------
 */

/* Ends the worker, whatever it is doing; returns the status of wait(), 0 if nobody knows it. The
 * template does it, whose child it is: to everybody else its number may be another's by now. */
static int end_worker(struct isolated *isolated)
{
    struct template_answer answer = {0};
    struct template_request request = {.op = TEMPLATE_END, .pid = isolated->pid};
    close(isolated->socket);
    isolated->socket = -1;
    isolated->under_way = false;
    return ask_template(isolated->isolate, &request, NULL, 0, &answer) ? 0 : answer.error_number;
}

enum status isolated_ready(struct isolated *isolated, struct error *err)
{
    if (isolated->socket >= 0) {
        /* Nobody speaks unasked: what can be read is the end. */
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
                           code == EPIPE ? "the process that starts decoders is gone"
                                         : "cannot start a decoder");
    }
    isolated->socket = pair[0];
    isolated->pid = answer.pid;
    return STATUS_OK;
}

enum status isolated_open(struct isolated **out, struct isolate *isolate, struct error *err)
{
    *out = NULL;
    size_t bytes = isolate->config.slot_bytes;
    struct isolated *isolated = calloc(1, sizeof *isolated);
    if (!isolated)
        return error_memory(err, sizeof *isolated, "an isolated decoder");
    *isolated = (struct isolated){.isolate = isolate, .socket = -1};
    isolated->memory = memfd_create("clpipe-rows", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    /* Nobody can make it shorter than what is read of it. */
    if (isolated->memory < 0 || ftruncate(isolated->memory, (off_t)bytes) != 0 ||
        fcntl(isolated->memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
        enum status status = error_errno(err, STATUS_FAILED, errno, "memfd_create",
                                         "cannot share memory with a decoder");
        isolated_close(&isolated);
        return status;
    }
    void *slot = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, isolated->memory, 0);
    if (slot == MAP_FAILED) {
        isolated_close(&isolated);
        return error_memory(err, bytes, "rows of an isolated decoder");
    }
    isolated->slot = slot;
    enum status status = isolated_ready(isolated, err);
    if (status != STATUS_OK)
        isolated_close(&isolated);
    *out = isolated;
    return status;
}

void isolated_close(struct isolated **out)
{
    struct isolated *isolated = *out;
    if (!isolated)
        return;
    if (isolated->socket >= 0)
        end_worker(isolated);
    if (isolated->slot)
        munmap(isolated->slot, isolated->isolate->config.slot_bytes);
    if (isolated->memory >= 0)
        close(isolated->memory);
    free(isolated);
    *out = NULL;
}

/* --- one file ----------------------------------------------------------------------------------
 */

/* The worker does not answer: because of `code`. */
static enum reason crashed(struct isolated *isolated, int code, struct failure *failure)
{
    int status = end_worker(isolated);
    if (code != EPIPE)
        return failure_errno(failure, REASON_OUT_OF_MEMORY, code, "cannot talk to the decoder");
    if (WIFEXITED(status) && WEXITSTATUS(status) == WORKER_STARVED)
        return failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for the decoder's process");
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return failure_set(failure, REASON_DECODER_CRASHED,
                           "the decoder was killed (SIGKILL): by somebody, or for its memory");
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
                       "the decoder's process answered what no decoder answers");
}

/* Until the worker has answered or is gone; false: the time is up. */
static bool wait_for_answer(struct isolated *isolated)
{
    struct pollfd answer = {.fd = isolated->socket, .events = POLLIN};
    if (isolated->isolate->config.max_seconds <= 0) {
        while (poll(&answer, 1, -1) < 0 && errno == EINTR)
            ;
        return true;
    }
    int64_t start = clock_now(), now = start;
    int ready = 0;
    while (ready <= 0 && now - start < isolated->left_ns) {
        int64_t ms = (isolated->left_ns - (now - start)) / 1000000 + 1;
        ready = poll(&answer, 1, ms < 1000 ? (int)ms : 1000);
        now = clock_now();
    }
    isolated->left_ns -= now - start;
    return ready > 0;
}

/* Sends a request; fills *answer, or *failure. */
static enum reason ask(struct isolated *isolated, const struct isolate_request *request, int fd,
                       struct isolate_answer *answer, struct failure *failure)
{
    int code = wire_send(isolated->socket, request, sizeof *request, &fd, fd >= 0);
    if (code != 0)
        return crashed(isolated, code, failure);
    if (!wait_for_answer(isolated)) {
        end_worker(isolated);
        return failure_set(failure, REASON_TIMEOUT,
                           "not decoded within %g s (--max-decode-seconds)",
                           isolated->isolate->config.max_seconds);
    }
    code = wire_receive(isolated->socket, answer, sizeof *answer, NULL, 0);
    if (code == EPROTO)
        return nonsense(isolated, failure);
    if (code != 0)
        return crashed(isolated, code, failure);
    isolated->bytes_read = answer->bytes_read;
    struct failure *theirs = &answer->failure;
    if ((unsigned)theirs->reason >= REASON_COUNT ||
        !memchr(theirs->message, 0, sizeof theirs->message))
        return nonsense(isolated, failure);
    if (theirs->reason == REASON_NONE)
        return REASON_NONE;
    isolated->under_way = false;
    failure_set(failure, theirs->reason, "%s", theirs->message);
    failure->error_number = theirs->error_number;
    return failure->reason;
}

/* What everybody behind here counts on. */
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

/* How many rows the shared memory takes. */
static uint64_t slot_rows(const struct isolated *isolated, const struct image_info *info)
{
    return isolated->isolate->config.slot_bytes / (3 * (uint64_t)info->out_width);
}

enum reason isolated_begin(struct isolated *isolated, int fd, const char *path, uint64_t bytes,
                           int64_t mtime_ns, struct image_info *info, struct failure *failure)
{
    struct isolate_request request = {.op = ISOLATE_BEGIN, .bytes = bytes, .mtime_ns = mtime_ns};
    struct isolate_answer answer;
    const struct isolate_config *config = &isolated->isolate->config;
    *info = (struct image_info){.orientation = 1};
    *failure = (struct failure){0};
    /* The extension is at the end. */
    size_t length = strlen(path), most = sizeof request.name - 1;
    memcpy(request.name, path + (length > most ? length - most : 0), length < most ? length : most);
    assert(isolated->socket >= 0);
    request.rows = !config->headers_only;
    isolated->under_way = true;
    isolated->ahead = false;
    isolated->failure = (struct failure){0};
    isolated->row = 0;
    isolated->bytes_read = 0;
    isolated->left_ns = (int64_t)((config->max_seconds < 1e9 ? config->max_seconds : 1e9) * 1e9);
    enum reason reason = ask(isolated, &request, fd, &answer, failure);
    if (reason != REASON_NONE && (isolated->socket < 0 || !answer.ahead))
        return reason;
    if (!is_sound(&answer.info, &config->options) ||
        (answer.ahead && answer.info.out_height > slot_rows(isolated, &answer.info)))
        return nonsense(isolated, failure);
    *info = isolated->info = answer.info;
    if (answer.ahead) {
        isolated->under_way = true;
        isolated->ahead = true;
        isolated->failure = *failure;
        *failure = (struct failure){0};
        memcpy(isolated->digest, answer.digest, sizeof isolated->digest);
    }
    return REASON_NONE;
}

static enum reason ask_for_rows(struct isolated *isolated, uint32_t op, uint32_t rows,
                                uint64_t offset, struct failure *failure)
{
    struct isolate_request request = {.op = op, .rows = rows, .offset = offset};
    struct isolate_answer answer;
    enum reason reason = ask(isolated, &request, -1, &answer, failure);
    if (reason == REASON_NONE && op != ISOLATE_MORE)
        memcpy(isolated->digest, answer.digest, sizeof isolated->digest);
    return reason;
}

/* One row that is longer than the slot, in pieces. */
static enum reason wide_row(struct isolated *isolated, uint8_t *dst, uint64_t row,
                            struct failure *failure)
{
    uint64_t slot = isolated->isolate->config.slot_bytes;
    for (uint64_t at = 0; at < row; at += slot) {
        enum reason reason =
            ask_for_rows(isolated, at ? ISOLATE_MORE : ISOLATE_WIDE, 1, at, failure);
        if (reason != REASON_NONE)
            return reason;
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

enum reason isolated_rows(struct isolated *isolated, uint8_t *dst, size_t stride, uint32_t rows,
                          struct failure *failure)
{
    uint64_t row = 3 * (uint64_t)isolated->info.out_width;
    uint64_t fit = slot_rows(isolated, &isolated->info);
    assert(isolated->under_way && rows <= isolated->info.out_height - isolated->row);
    if (isolated->ahead && isolated->failure.reason != REASON_NONE) {
        *failure = isolated->failure;
        return failure->reason;
    }
    if (isolated->ahead) {
        copy_rows(dst, stride, isolated->slot + isolated->row * row, row, rows);
        isolated->row += rows;
        return REASON_NONE;
    }
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

enum reason isolated_end(struct isolated *isolated, uint64_t digest[2], struct failure *failure)
{
    /* The worker has looked behind the last row already. */
    (void)failure;
    assert(isolated->under_way && isolated->row == isolated->info.out_height);
    memcpy(digest, isolated->digest, sizeof isolated->digest);
    isolated->under_way = false;
    return REASON_NONE;
}

void isolated_abort(struct isolated *isolated)
{
    struct isolate_request request = {.op = ISOLATE_ABORT};
    /* A worker that is gone is met when the next file begins. */
    if (isolated->under_way && !isolated->ahead)
        wire_send(isolated->socket, &request, sizeof request, NULL, 0);
    isolated->under_way = false;
}

uint64_t isolated_bytes_read(const struct isolated *isolated)
{
    return isolated->bytes_read;
}

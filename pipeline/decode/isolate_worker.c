/* isolate_worker.c: the child processes: the template, and the workers that it forks.
 *
 * Both have one thread. They exit when their socket is closed by the parent; one that is stuck in a
 * codec is killed with its parent. */
#include "decode/isolate_worker.h"

#include "base/minmax.h"
#include "base/process.h"
#include "base/sandbox.h"
#include "decode/isolate_wire.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Memory limit of a codec: twice what it declared, plus this, plus a thread stack per CPU. */
#define MEMORY_SLACK (64u << 20)
#define THREAD_BYTES (10u << 20)
/* A picture that fits into the slot and needs no more memory than this is decoded ahead: a round
 * trip takes as long as a thumbnail. */
#define SMALL_MEMORY (1u << 20)
/* Memory not used for pictures may grow slowly, so the limit is renewed this often. */
#define FILES_A_LIMIT 256

/* --- a worker -------------------------------------------------------------------------------- */

struct worker {
    int socket;
    struct blob file; /* current, or BLOB_NOTHING */
    struct isolate_board *board;
    uint8_t *slot; /* after `board` */
    uint64_t slot_bytes;
    struct decode *decode;
    int memory_figures; /* from sandbox_enter */
    uint64_t slack;     /* allowed besides pictures */
    unsigned files;     /* since the limit was last set */
    bool large_limit;   /* raised for one large picture */
    struct image_info info;
    uint32_t row;      /* next row */
    uint8_t *wide_row; /* a row that exceeds the slot, or NULL */
};

static void finish_file(struct worker *worker)
{
    blob_close(&worker->file);
    free(worker->wide_row);
    worker->wide_row = NULL;
}

static uint64_t row_bytes(const struct worker *worker)
{
    return 3 * (uint64_t)worker->info.out_width;
}

/* After rows: ends the file if it is complete or has failed. */
static void rows_done(struct worker *worker, uint32_t rows, struct isolate_answer *answer)
{
    worker->row += rows;
    if (answer->failure.reason == REASON_NONE && worker->row == worker->info.out_height)
        decode_end(worker->decode, answer->digest, &answer->failure);
    if (answer->failure.reason != REASON_NONE)
        decode_abort(worker->decode);
    if (answer->failure.reason != REASON_NONE || worker->row == worker->info.out_height)
        blob_close(&worker->file);
}

static void rows(struct worker *worker, uint8_t *to, uint32_t count, struct isolate_answer *answer)
{
    decode_rows(worker->decode, to, row_bytes(worker), count, &answer->failure);
    rows_done(worker, count, answer);
}

static void limit_memory(struct worker *worker, uint64_t bytes)
{
    bool large = bytes > SMALL_MEMORY;
    if (!large && !worker->large_limit && worker->files++ % FILES_A_LIMIT != 0)
        return;
    sandbox_allow_memory(worker->memory_figures,
                         bytes < UINT64_MAX / 4 ? 2 * bytes + worker->slack : UINT64_MAX);
    worker->large_limit = large;
}

/* `used` bytes of the slot hold other pictures. */
static void begin(struct worker *worker, const struct isolate_file *file, int fd, bool rows_too,
                  uint64_t used, struct isolate_answer *answer)
{
    worker->file = blob_of_file(fd, file->bytes, file->mtime_ns);
    worker->file.offset = file->offset;
    worker->file.file_bytes = file->file_bytes;
    worker->row = 0;
    /* Some codecs read the whole file for the header. */
    uint64_t whole = file->bytes > MEMORY_SLACK / 2 ? file->bytes : 0;
    limit_memory(worker, SMALL_MEMORY + whole);
    if (decode_begin(worker->decode, &worker->file, file->name, &worker->info, &answer->failure) !=
        REASON_NONE) {
        finish_file(worker);
        return;
    }
    if (row_bytes(worker) > worker->slot_bytes)
        worker->info.memory += row_bytes(worker);
    answer->info = worker->info;
    if (worker->info.memory > SMALL_MEMORY) {
        limit_memory(worker, worker->info.memory + whole);
    } else if (rows_too &&
               worker->info.out_height <= (worker->slot_bytes - used) / row_bytes(worker)) {
        answer->ahead = true;
        rows(worker, worker->slot + used, worker->info.out_height, answer);
    }
}

/* Begins files in order until one is not done. */
static void begin_files(struct worker *worker, const struct isolate_request *request,
                        const int *fds)
{
    /* The previous one, if it is still open. */
    decode_abort(worker->decode);
    finish_file(worker);
    uint64_t used = 0;
    uint32_t done = 0;
    while (done < request->count && !blob_is_open(&worker->file)) {
        struct isolate_answer answer;
        memset(&answer, 0, sizeof answer);
        decode_for_display(worker->decode, request->display_scale);
        begin(worker, &request->file[done], fds[done], request->rows > 0, used, &answer);
        answer.bytes_read = decode_bytes_read(worker->decode);
        if (answer.ahead && answer.failure.reason == REASON_NONE)
            used += worker->info.out_height * row_bytes(worker);
        worker->board->answer[done] = answer;
        atomic_store(&worker->board->answered, ++done);
    }
    for (; done < request->count; done++)
        close(fds[done]);
}

static void wide(struct worker *worker, uint64_t offset, struct isolate_answer *answer)
{
    const uint64_t row = row_bytes(worker);
    if (!worker->wide_row && !(worker->wide_row = malloc(row))) {
        failure_set(&answer->failure, REASON_OUT_OF_MEMORY, "no memory for a row of %u pixels",
                    worker->info.out_width);
        rows_done(worker, 1, answer);
        return;
    }
    if (offset == 0)
        rows(worker, worker->wide_row, 1, answer);
    memcpy(worker->slot, worker->wide_row + offset, min_u64(row - offset, worker->slot_bytes));
}

/* Requests come from clpipe's own process and are trusted. */
_Noreturn static void serve(struct worker *worker)
{
    struct isolate_request request;
    struct isolate_answer answer;
    struct isolate_board *board = worker->board;
    int fds[DECODE_AHEAD_MAX], code;
    while ((code = wire_receive(worker->socket, &request, sizeof request, fds, DECODE_AHEAD_MAX)) ==
           0) {
        memset(&answer, 0, sizeof answer);
        switch (request.op) {
        case ISOLATE_BEGIN:
            begin_files(worker, &request, fds);
            break;
        case ISOLATE_ROWS:
            rows(worker, worker->slot, request.rows, &answer);
            break;
        case ISOLATE_WIDE:
            wide(worker, request.offset, &answer);
            break;
        default:
            decode_abort(worker->decode);
            finish_file(worker);
            continue;
        }
        if (request.op != ISOLATE_BEGIN) {
            answer.bytes_read = decode_bytes_read(worker->decode);
            board->answer[0] = answer;
            atomic_store(&board->answered, 1);
        }
        char done = 0;
        code = wire_send(worker->socket, &done, sizeof done, NULL, 0);
        if (code != 0)
            break;
    }
    _exit(code == EPIPE ? 0 : WORKER_STARVED);
}

/* The stop flag in the options is a copy from before the fork and never changes. */
_Noreturn static void worker_main(int socket, int memory, const struct decode_options *given,
                                  uint64_t slot_bytes, pid_t template)
{
    struct worker worker = {.socket = socket, .file = BLOB_NOTHING, .slot_bytes = slot_bytes};
    struct decode_options options = *given;
    options.stop = NULL;
    /* The parent is the only user. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != template)
        _exit(0);
    prctl(PR_SET_NAME, "clpipe-decode");
    void *shared =
        mmap(NULL, ISOLATE_BOARD + slot_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    close(memory);
    if (shared == MAP_FAILED || decode_open(&worker.decode, &options, NULL) != STATUS_OK)
        _exit(WORKER_STARVED);
    worker.board = shared;
    worker.slot = (uint8_t *)shared + ISOLATE_BOARD;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    worker.slack = MEMORY_SLACK + (cpus > 0 ? (uint64_t)cpus : 1) * THREAD_BYTES;
    worker.memory_figures = sandbox_enter();
    serve(&worker);
}

/* --- the template ---------------------------------------------------------------------------- */

void template_main(int control, const struct decode_options *options, uint64_t slot_bytes)
{
    process_serve("clpipe-isolate", control);
    /* Makes libraries load their plug-ins now: a worker cannot open files. */
    for (unsigned i = 0; format_at(i); i++)
        ;
    struct template_request request;
    int fds[ISOLATE_FDS];
    while (wire_receive(control, &request, sizeof request, fds, ISOLATE_FDS) == 0) {
        struct template_answer answer = {.pid = request.pid};
        if (request.op == TEMPLATE_FORK) {
            pid_t self = getpid();
            answer.pid = fds[0] >= 0 && fds[1] >= 0 ? fork() : -1;
            answer.error_number = answer.pid < 0 ? errno : 0;
            if (answer.pid == 0) {
                close(control);
                worker_main(fds[0], fds[1], options, slot_bytes, self);
            }
        } else if (request.pid <= 0 || kill(request.pid, SIGKILL) != 0 ||
                   waitpid(request.pid, &answer.error_number, 0) != request.pid) {
            answer.error_number = 0; /* a process that is exiting keeps its own status */
        }
        for (int i = 0; i < ISOLATE_FDS; i++)
            if (fds[i] >= 0)
                close(fds[i]);
        if (wire_send(control, &answer, sizeof answer, NULL, 0) != 0)
            break;
    }
    _exit(0);
}

/* shard_option.c: I/N, and the environment variables of Slurm and MPI launchers. */
#include "cli/shard_option.h"

#include "base/parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum status read_array_task(struct list_share *out, struct error *err)
{
    const char *task = getenv("SLURM_ARRAY_TASK_ID");
    const unsigned long long last = (unsigned long long)out->count - 1;
    if (!task)
        return error_set(err, STATUS_USAGE,
                         "--shard slurm/%llu: this is not a task of a Slurm array "
                         "(SLURM_ARRAY_TASK_ID is not set): start it with sbatch --array=0-%llu",
                         last + 1, last);
    if (!parse_u64(&out->index, task, 0, last))
        return error_set(err, STATUS_USAGE,
                         "--shard slurm/%llu has shards 0 to %llu, but the array's task is %.40s: "
                         "start it with sbatch --array=0-%llu",
                         last + 1, last, task, last);
    return STATUS_OK;
}

static enum status read_rank(struct list_share *out, struct error *err)
{
    static const char *const pairs[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                           {"PMI_RANK", "PMI_SIZE"},
                                           {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
                                           {"PMIX_RANK", "SLURM_STEP_NUM_TASKS"},
                                           {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const char *rank = getenv(pairs[i][0]), *size = getenv(pairs[i][1]);
        if (!rank || !size)
            continue;
        if (parse_u64(&out->count, size, 1, SHARDS_MAX) &&
            parse_u64(&out->index, rank, 0, out->count - 1))
            return STATUS_OK;
        return error_set(
            err, STATUS_USAGE,
            "--shard mpi: %s is %.40s and %s is %.40s: a rank is 0 to N - 1, and N at most %d",
            pairs[i][0], rank, pairs[i][1], size, SHARDS_MAX);
    }
    return error_set(
        err, STATUS_USAGE,
        "--shard mpi: no MPI launcher has started this process: start it with mpirun -n N or srun");
}

enum status shard_option_read(struct list_share *out, const char *text, struct error *err)
{
    char first[32];
    const char *slash = strchr(text, '/');
    *out = (struct list_share){.count = 0};
    if (strcmp(text, "mpi") == 0)
        return read_rank(out, err);
    if (!slash || (size_t)(slash - text) >= sizeof first ||
        !parse_u64(&out->count, slash + 1, 1, SHARDS_MAX))
        return error_set(err, STATUS_USAGE,
                         "--shard %.80s: give I/N (I from 0, N from 1 to %d), slurm/N or mpi", text,
                         SHARDS_MAX);
    snprintf(first, sizeof first, "%.*s", (int)(slash - text), text);
    if (strcmp(first, "slurm") == 0)
        return read_array_task(out, err);
    if (!parse_u64(&out->index, first, 0, out->count - 1))
        return error_set(err, STATUS_USAGE, "--shard %.80s: with %llu shards, I is 0 to %llu", text,
                         (unsigned long long)out->count, (unsigned long long)out->count - 1);
    return STATUS_OK;
}

char *shard_option_name(const char *name, const struct list_share *share)
{
    char last[24], index[24];
    const int width = snprintf(last, sizeof last, "%llu", (unsigned long long)share->count - 1);
    snprintf(index, sizeof index, "%0*llu", width, (unsigned long long)share->index);
    char *out = strdup(name);
    for (char *at; out && (at = strstr(out, SHARD_PLACE));) {
        char *next;
        if (asprintf(&next, "%.*s%s%s", (int)(at - out), out, index, at + strlen(SHARD_PLACE)) < 0)
            next = NULL;
        free(out);
        out = next;
    }
    return out;
}

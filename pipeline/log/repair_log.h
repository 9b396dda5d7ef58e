/* repair_log.h: the whole records of a log, each path once, in walk order. */
#ifndef CLPIPE_LOG_REPAIR_LOG_H
#define CLPIPE_LOG_REPAIR_LOG_H

#include "base/error.h"
#include <stdbool.h>
#include <stdint.h>

struct repair_log_entry {
    uint64_t offset, sequence;
    uint16_t source;
    bool image, has_code;
    uint16_t thumbnail_size;
    uint32_t thumbnail_length;
    char *path;
};

struct repair_log {
    int fd;
    char *path, *signature;
    uint64_t start, end, damaged; /* damaged: bytes that are no whole frame */
    struct repair_log_entry *entry;
    uint64_t count, room;
};

/* Opens the log of a work directory and reads its header. Close it also after a failure. */
enum status repair_log_open(struct repair_log *log, int directory, const char *directory_path,
                            struct error *err);
/* Fills in `entry`: all of them are in memory. An image has `counters` values. */
enum status repair_log_scan(struct repair_log *log, uint32_t counters, const char *const *sources,
                            unsigned source_count, struct error *err);
void repair_log_close(struct repair_log *log);

#endif

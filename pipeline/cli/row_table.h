/* row_table.h: rows of named fields as CSV, TSV or JSON lines, and as objects of the report. */
#ifndef CLPIPE_CLI_ROW_TABLE_H
#define CLPIPE_CLI_ROW_TABLE_H

#include "base/json.h"

struct table {
    struct sink *sink;
    int format;               /* enum export_format; with FORMAT_NPY and -1 the sink gets nothing */
    struct json *report;      /* each row is an object of its open array; NULL: none */
    const char *const *names; /* of the columns, terminated by NULL */
    /* Bit i: column i is missing there. */
    uint32_t not_in_cells, not_in_report;

    char separator;
    unsigned next; /* column of the next field */
    struct json line;
};

/* Writes the head of the table; the members above must be set. `values` columns SERIES_0,
 * SERIES_1... follow those that have names. */
void table_begin(struct table *table, const char *series, uint32_t values);

/* A row: table_row, a field for each column in their order, table_end_row. */
void table_row(struct table *table);
void table_end_row(struct table *table);
void table_text(struct table *table, const char *text);
void table_int(struct table *table, int64_t value);
void table_uint(struct table *table, uint64_t value);
void table_bool(struct table *table, bool value);
/* If not finite: its name in cells, null in JSON. */
void table_float(struct table *table, float value);
/* If not finite, there is no value. */
void table_double(struct table *table, double value);
void table_nothing(struct table *table);
/* The values of the series: in JSON an array, else cells, each after its separator. */
void table_series(struct table *table, const char *series, const char *values);

#endif

/* row_table.c: writes each field to a cell or an object of its line, and to the object of the report. */
#include "cli/row_table.h"
#include "base/decimal.h"
#include "cli/report_json.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static bool has_cells(const struct table *table)
{
    return table->format == FORMAT_CSV || table->format == FORMAT_TSV;
}

void table_begin(struct table *table, const char *series, uint32_t values)
{
    table->separator = table->format == FORMAT_TSV ? '\t' : ',';
    if (!has_cells(table))
        return;
    for (unsigned i = 0; table->names[i]; i++)
        if (!(table->not_in_cells >> i & 1))
            sink_printf(table->sink, "%.*s%s", i > 0, &table->separator, table->names[i]);
    for (uint32_t i = 0; i < values; i++)
        sink_printf(table->sink, "%c%s_%u", table->separator, series, i);
    sink_text(table->sink, "\n");
}

void table_row(struct table *table)
{
    table->next = 0;
    json_clear(&table->line);
    json_init(&table->line, true);
    json_open_object(&table->line, NULL);
    if (table->report)
        json_open_object(table->report, NULL);
}

void table_end_row(struct table *table)
{
    struct sink *sink = table->sink;
    json_close_object(&table->line);
    if (table->report)
        json_close_object(table->report);
    const char *text = table->format == FORMAT_JSONL ? json_finish(&table->line) : "";
    if (!text && !sink->closed) {
        error_memory(&sink->error, table->line.length, "a line of JSON");
        sink->closed = true;
    }
    if (has_cells(table) || table->format == FORMAT_JSONL) {
        sink_text(sink, text ? text : "{}");
        sink_text(sink, "\n");
    }
    json_clear(&table->line);
}

/* Moves to the next column: its name, whether it has a cell (then writes the separator), and the JSON for
 * its member. */
struct column {
    const char *name;
    bool cell;
    struct json *json[2];
};

static struct column next_column(struct table *table)
{
    const unsigned i = table->next++;
    struct column column = {.name = table->names[i],
                            .cell = has_cells(table) && !(table->not_in_cells >> i & 1)};
    if (table->format == FORMAT_JSONL)
        column.json[0] = &table->line;
    if (table->report && !(table->not_in_report >> i & 1))
        column.json[1] = table->report;
    if (column.cell && i > 0)
        sink_write(table->sink, &table->separator, 1);
    return column;
}

static void put(struct table *table, const char *cell, const char *value)
{
    const struct column column = next_column(table);
    if (column.cell)
        sink_text(table->sink, cell);
    for (int i = 0; i < 2; i++)
        if (column.json[i])
            json_raw(column.json[i], column.name, value);
}

void table_text(struct table *table, const char *text)
{
    const struct column column = next_column(table);
    if (column.cell)
        sink_field(table->sink, text, table->separator);
    for (int i = 0; i < 2; i++)
        if (column.json[i])
            report_bytes(column.json[i], column.name, text);
}

void table_int(struct table *table, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    put(table, text, text);
}

void table_uint(struct table *table, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    put(table, text, text);
}

void table_bool(struct table *table, bool value)
{
    put(table, value ? "1" : "0", value ? "true" : "false");
}

void table_float(struct table *table, float value)
{
    char text[FLOAT32_TEXT];
    format_float32(text, value);
    put(table, text, isfinite(value) ? text : "null");
}

void table_double(struct table *table, double value)
{
    char text[FLOAT64_TEXT];
    if (isfinite(value))
        put(table, text, format_float64(text, value));
    else
        table_nothing(table);
}

void table_nothing(struct table *table)
{
    put(table, "", "null");
}

void table_series(struct table *table, const char *series, const char *values)
{
    if (table->format == FORMAT_JSONL)
        json_raw(&table->line, series, values);
    else
        sink_text(table->sink, values);
}

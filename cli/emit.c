/* SPDX-License-Identifier: Apache-2.0 */
/* JSON, member after member: a line for each, and for each element of an array. */
#include "cli/emit.h"

#include <inttypes.h>

#include "report/output.h"

static void begin(struct duet__emit *json, const char *name)
{
    if (json->more)
        putc(',', json->stream);
    if (json->depth && !json->line)
        fprintf(json->stream, "\n%*s", (int)json->depth, "");
    else if (json->more)
        putc(' ', json->stream);
    json->more = true;
    if (name) {
        duet_write_json_string(json->stream, name);
        fputs(": ", json->stream);
    }
}

void duet__emit_open(struct duet__emit *json, const char *name, char bracket)
{
    begin(json, name);
    putc(bracket, json->stream);
    json->depth++;
    if (!json->line && !name && json->depth > 1)
        json->line = json->depth;
    json->more = false;
}

void duet__emit_close(struct duet__emit *json, char bracket)
{
    putc(bracket, json->stream);
    if (json->line == json->depth)
        json->line = 0;
    json->depth--;
    json->more = true;
    if (!json->depth)
        putc('\n', json->stream);
}

void duet__emit_text(struct duet__emit *json, const char *name, const char *text)
{
    begin(json, name);
    if (text)
        duet_write_json_string(json->stream, text);
    else
        fputs("null", json->stream);
}

void duet__emit_number(struct duet__emit *json, const char *name, double value)
{
    begin(json, name);
    duet_write_json_number(json->stream, value);
}

void duet__emit_count(struct duet__emit *json, const char *name, uint64_t value)
{
    begin(json, name);
    fprintf(json->stream, "%" PRIu64, value);
}

void duet__emit_flag(struct duet__emit *json, const char *name, bool value)
{
    begin(json, name);
    fputs(value ? "true" : "false", json->stream);
}

void duet__emit_null(struct duet__emit *json, const char *name)
{
    duet__emit_text(json, name, NULL);
}

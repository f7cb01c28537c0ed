/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* json.c - writes indented JSON, one member a line. */
#include <inttypes.h>
#include <math.h>

#include "tools/lib/tool.h"

static void put_string(FILE *out, const char *text)
{
    putc('"', out);
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p == '"' || *p == '\\')
            fprintf(out, "\\%c", *p);
        else if (*p < 0x20)
            fprintf(out, "\\u%04x", *p);
        else
            putc(*p, out);
    }
    putc('"', out);
}

static void put_key(struct json *json, const char *key)
{
    if (json->depth)
        fprintf(json->out, "%s\n%*s", json->comma ? "," : "", 2 * json->depth, "");
    json->comma = true;
    if (key) {
        put_string(json->out, key);
        fputs(": ", json->out);
    }
}

void json_open(struct json *json, const char *key, char bracket)
{
    put_key(json, key);
    putc(bracket, json->out);
    json->depth++;
    json->comma = false;
}

void json_close(struct json *json, char bracket)
{
    json->depth--;
    if (json->comma)
        fprintf(json->out, "\n%*s", 2 * json->depth, "");
    putc(bracket, json->out);
    json->comma = true;
    if (!json->depth)
        putc('\n', json->out);
}

void json_text(struct json *json, const char *key, const char *value)
{
    put_key(json, key);
    if (value)
        put_string(json->out, value);
    else
        fputs("null", json->out);
}

void json_u64(struct json *json, const char *key, uint64_t value)
{
    put_key(json, key);
    fprintf(json->out, "%" PRIu64, value);
}

void json_real(struct json *json, const char *key, double value)
{
    put_key(json, key);
    if (isfinite(value))
        fprintf(json->out, "%.9g", value);
    else
        fputs("null", json->out);
}

void json_bool(struct json *json, const char *key, bool value)
{
    put_key(json, key);
    fputs(value ? "true" : "false", json->out);
}

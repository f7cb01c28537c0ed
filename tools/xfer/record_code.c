/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* record_code.c - encodes and decodes records and message heads; the length of each field of a peer is checked here. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "tools/xfer/xfer.h"

enum field {
    F_RESULT = 1 << 0,
    F_FLAGS = 1 << 1,
    F_ID = 1 << 2,
    F_MODE = 1 << 3,
    F_LENGTH = 1 << 4,
    F_KEY = 1 << 5,
    F_ADDRESS = 1 << 6,
    F_SIZE = 1 << 7,
    F_OFFSET = 1 << 8,
    F_COUNT = 1 << 9,
    F_TIME = 1 << 10,
    F_DIGEST = 1 << 11,
    F_PATH = 1 << 12,
    F_NAME = 1 << 13,
    F_EVERY = 1 << 14, /* no field: marks the type as existing */
};

/* doc/cp-protocol.md, "Records": one line for each type. */
static const uint16_t fields[XFER_TYPES] = {
    [XFER_START] = F_KEY | F_FLAGS | F_PATH | F_NAME,
    [XFER_READY] = F_FLAGS | F_KEY | F_ADDRESS | F_SIZE,
    [XFER_ERROR] = F_RESULT,
    [XFER_TOTAL] = F_SIZE | F_COUNT,
    [XFER_OFFER] = F_ID | F_SIZE | F_TIME | F_PATH,
    [XFER_HAVE] = F_FLAGS | F_ID | F_OFFSET | F_DIGEST,
    [XFER_DIRECTORY] = F_ID | F_PATH,
    [XFER_DIRECTORY_END] = F_ID | F_MODE | F_TIME | F_PATH,
    [XFER_LINK] = F_ID | F_TIME | F_PATH | F_NAME,
    [XFER_FILE] = F_ID | F_MODE | F_SIZE | F_OFFSET | F_COUNT | F_TIME | F_PATH,
    [XFER_DATA_HERE] = F_LENGTH,
    [XFER_FILE_END] = F_RESULT | F_ID | F_DIGEST,
    [XFER_TROUBLE] = F_RESULT | F_ID | F_PATH,
    [XFER_DONE] = F_RESULT | F_FLAGS | F_ID | F_PATH,
    [XFER_END] = F_EVERY,
    [XFER_FINISH] = F_SIZE,
    [XFER_SKIP] = F_FLAGS | F_ID | F_MODE | F_SIZE | F_TIME | F_PATH,
    [XFER_HOLE_HERE] = F_SIZE,
    [XFER_ENTRY] = F_FLAGS | F_MODE | F_SIZE | F_TIME | F_PATH | F_NAME,
};

/* A field of the record and where it is kept; on the wire they stand in this order. Numbers have as many octets there
 * as here. */
static const struct record_field {
    uint16_t has;
    uint8_t octets; /* 0: a text */
    uint8_t at;
} record_fields[] = {
#define NUMBER(bit, name) \
    { \
        bit, sizeof(((struct xfer_record *)0)->name), offsetof(struct xfer_record, name) \
    }
#define TEXT(bit, name) \
    { \
        bit, 0, offsetof(struct xfer_record, name) \
    }
    NUMBER(F_RESULT, result), NUMBER(F_FLAGS, flags), NUMBER(F_ID, id),           NUMBER(F_MODE, mode),
    NUMBER(F_LENGTH, length), NUMBER(F_KEY, key),     NUMBER(F_ADDRESS, address), NUMBER(F_SIZE, size),
    NUMBER(F_OFFSET, offset), NUMBER(F_COUNT, count), NUMBER(F_TIME, seconds),    NUMBER(F_TIME, nanoseconds),
    NUMBER(F_DIGEST, digest), TEXT(F_PATH, path),     TEXT(F_NAME, name),
#undef NUMBER
#undef TEXT
};

enum { RECORD_FIELDS = sizeof(record_fields) / sizeof(record_fields[0]) };
static_assert(sizeof(struct xfer_record) <= UINT8_MAX, "record_fields[].at");

static uint8_t *fields_put(uint8_t *p, uint64_t value, size_t n)
{
    for (size_t i = n; i--; value >>= 8)
        p[i] = (uint8_t)value;
    return p + n;
}

static uint64_t get(const uint8_t *p, size_t n)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++)
        value = value << 8 | p[i];
    return value;
}

static uint8_t *put_text(uint8_t *p, const char *text)
{
    size_t n = strlen(text ? text : "");
    assert(n <= XFER_PATH);
    p = fields_put(p, n + 1, 2);
    memcpy(p, text ? text : "", n + 1);
    return p + n + 1;
}

static uint8_t *put_field(uint8_t *p, const struct record_field *field, const struct xfer_record *record)
{
    const void *at = (const char *)record + field->at;
    switch (field->octets) {
    case 0:
        return put_text(p, *(const char *const *)at);
    case sizeof(uint16_t):
        return fields_put(p, *(const uint16_t *)at, field->octets);
    case sizeof(uint32_t):
        return fields_put(p, *(const uint32_t *)at, field->octets);
    case sizeof(uint64_t):
        return fields_put(p, *(const uint64_t *)at, field->octets);
    default:
        return (uint8_t *)memcpy(p, at, field->octets) + field->octets;
    }
}

size_t xfer_encode(uint8_t *start, const struct xfer_record *record)
{
    uint8_t *p = start + 4;
    for (int i = 0; i < RECORD_FIELDS; i++) {
        if (fields[record->type] & record_fields[i].has)
            p = put_field(p, &record_fields[i], record);
    }
    fields_put(fields_put(start, record->type, 2), (uint64_t)(p - start), 2);
    return (size_t)(p - start);
}

/* The rest of a record. After a field that does not fit, `bad` stays set. */
struct reader {
    const uint8_t *p;
    size_t n;
    bool bad;
};

static const uint8_t *fields_take(struct reader *reader, size_t n)
{
    static const uint8_t nothing[XFER_DIGEST];
    assert(n <= sizeof(nothing));
    if (reader->bad || n > reader->n) {
        reader->bad = true;
        return nothing;
    }
    reader->p += n;
    reader->n -= n;
    return reader->p - n;
}

/* A text includes its NUL, so that it can be used in place; the NUL must be the only one. */
static const char *take_text(struct reader *reader)
{
    size_t n = get(fields_take(reader, 2), 2);
    if (reader->bad || !n || n > reader->n || n > XFER_PATH + 1 || memchr(reader->p, 0, n) != reader->p + n - 1) {
        reader->bad = true;
        return "";
    }
    reader->p += n;
    reader->n -= n;
    return (const char *)reader->p - n;
}

static void take_field(struct reader *reader, const struct record_field *field, struct xfer_record *record)
{
    void *at = (char *)record + field->at;
    switch (field->octets) {
    case 0:
        *(const char **)at = take_text(reader);
        break;
    case sizeof(uint16_t):
        *(uint16_t *)at = (uint16_t)get(fields_take(reader, field->octets), field->octets);
        break;
    case sizeof(uint32_t):
        *(uint32_t *)at = (uint32_t)get(fields_take(reader, field->octets), field->octets);
        break;
    case sizeof(uint64_t):
        *(uint64_t *)at = get(fields_take(reader, field->octets), field->octets);
        break;
    default:
        memcpy(at, fields_take(reader, field->octets), field->octets);
    }
}

size_t xfer_decode(const uint8_t *p, size_t n, struct xfer_record *record)
{
    if (n < 4)
        return 0;
    size_t type = get(p, 2), length = get(p + 2, 2);
    if (!type || type >= XFER_TYPES || length < 4 || length > n)
        return 0;
    struct reader reader = {.p = p + 4, .n = length - 4};
    *record = (struct xfer_record){.type = (enum xfer_type)type, .path = "", .name = ""};
    for (int i = 0; i < RECORD_FIELDS; i++) {
        if (fields[type] & record_fields[i].has)
            take_field(&reader, &record_fields[i], record);
    }
    return reader.bad || reader.n || record->nanoseconds > 999999999 ? 0 : length;
}

void xfer_head_encode(uint8_t p[XFER_HEAD], const struct xfer_head *head)
{
    p = fields_put(p, head->length, 4);
    p = fields_put(p, head->credits, 2);
    p = fields_put(p, 0, 2);
    p = fields_put(p, head->released, 8);
    p = fields_put(p, head->from, 8);
    fields_put(p, head->to, 8);
}

void xfer_head_decode(const uint8_t p[XFER_HEAD], struct xfer_head *head)
{
    *head = (struct xfer_head){
        .length = (uint32_t)get(p, 4),
        .credits = (uint16_t)get(p + 4, 2),
        .released = get(p + 8, 8),
        .from = get(p + 16, 8),
        .to = get(p + 24, 8),
    };
}

void xfer_hello_encode(uint8_t p[XFER_HELLO], unsigned version, enum xfer_result result)
{
    fields_put(fields_put(fields_put(p, XFER_MAGIC - XFER_VERSION + version, 4), result, 2), 0, 2);
}

unsigned xfer_hello_version(const uint8_t *p, size_t n)
{
    return n >= 4 && get(p, 3) == XFER_MAGIC >> 8 ? p[3] : 0;
}

enum xfer_result xfer_hello_decode(const uint8_t *p, size_t n)
{
    if (n < XFER_HELLO || get(p, 4) != XFER_MAGIC)
        return XFER_OTHER_VERSION;
    uint64_t result = get(p + 4, 2);
    return result < XFER_RESULTS ? (enum xfer_result)result : XFER_PROTOCOL;
}

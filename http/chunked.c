/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* chunked.c - the chunked transfer coding (RFC 9112, section 7.1), octet by octet. */
#include "http/codec.h"

enum { SIZE_DIGITS = 15 };

static int chunk_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
        return (c | 0x20) - 'a' + 10;
    return -1;
}

static enum http_chunk_state behind_size(struct http_chunk *chunk)
{
    chunk->line = 0;
    return chunk->left ? HTTP_CHUNK_DATA : HTTP_CHUNK_TRAILER;
}

static enum http_chunk_state in_size(struct http_chunk *chunk, uint8_t c)
{
    int digit = chunk_digit(c);
    if (digit >= 0 && chunk->digits < SIZE_DIGITS) {
        chunk->left = chunk->left << 4 | (uint64_t)digit;
        chunk->digits++;
        return HTTP_CHUNK_SIZE;
    }
    if (!chunk->digits || digit >= 0)
        return HTTP_CHUNK_BAD;
    return c == '\r' ? HTTP_CHUNK_SIZE_LF : c == ';' ? HTTP_CHUNK_EXTENSION : HTTP_CHUNK_BAD;
}

/* The rest of a line: no control character but a tab. `end`: what follows its CR. */
static enum http_chunk_state in_line(enum http_chunk_state same, enum http_chunk_state end, uint8_t c)
{
    return c == '\r' ? end : (c < 0x20 && c != '\t') || c == 0x7f ? HTTP_CHUNK_BAD : same;
}

static enum http_chunk_state expect_octet(uint8_t c, uint8_t wanted, enum http_chunk_state next)
{
    return c == wanted ? next : HTTP_CHUNK_BAD;
}

static enum http_chunk_state chunk_step(struct http_chunk *chunk, uint8_t c)
{
    switch (chunk->state) {
    case HTTP_CHUNK_SIZE:
        return ++chunk->line > HTTP_CHUNK_LINE_MAX ? HTTP_CHUNK_BAD : in_size(chunk, c);
    case HTTP_CHUNK_EXTENSION:
        return ++chunk->line > HTTP_CHUNK_LINE_MAX ? HTTP_CHUNK_BAD
                                                   : in_line(HTTP_CHUNK_EXTENSION, HTTP_CHUNK_SIZE_LF, c);
    case HTTP_CHUNK_SIZE_LF:
        return c == '\n' ? behind_size(chunk) : HTTP_CHUNK_BAD;
    case HTTP_CHUNK_CR:
        return expect_octet(c, '\r', HTTP_CHUNK_LF);
    case HTTP_CHUNK_LF:
        chunk->digits = 0;
        return expect_octet(c, '\n', HTTP_CHUNK_SIZE);
    case HTTP_CHUNK_TRAILER:
    case HTTP_CHUNK_IN_TRAILER:
        if (++chunk->line > HTTP_CHUNK_TRAILER_MAX)
            return HTTP_CHUNK_BAD;
        return in_line(HTTP_CHUNK_IN_TRAILER,
                       chunk->state == HTTP_CHUNK_TRAILER ? HTTP_CHUNK_END_LF : HTTP_CHUNK_TRAILER_LF, c);
    case HTTP_CHUNK_TRAILER_LF:
        return expect_octet(c, '\n', HTTP_CHUNK_TRAILER);
    case HTTP_CHUNK_END_LF:
        return expect_octet(c, '\n', HTTP_CHUNK_DONE);
    default:
        return chunk->state;
    }
}

size_t http_chunk_eat(struct http_chunk *chunk, const uint8_t *octets, size_t n)
{
    size_t i = 0;
    while (i < n && chunk->state != HTTP_CHUNK_DATA && chunk->state != HTTP_CHUNK_DONE &&
           chunk->state != HTTP_CHUNK_BAD) {
        bool trails = chunk->state >= HTTP_CHUNK_TRAILER && chunk->state <= HTTP_CHUNK_TRAILER_LF;
        if (trails && chunk->kept < HTTP_CHUNK_TRAILER_KEPT)
            chunk->trailer[chunk->kept++] = (char)octets[i];
        chunk->state = chunk_step(chunk, octets[i++]);
    }
    return i;
}

void http_chunk_took(struct http_chunk *chunk, uint64_t n)
{
    chunk->left -= n;
    if (!chunk->left)
        chunk->state = HTTP_CHUNK_CR;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* say.c - prints what a dissector must see of each message. It uses no code of the library and does the arithmetic of
 * the documents independently. */
#include "tests/interop/lib/say.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TAGGED_HEAD = 14, UNTAGGED_HEAD = 18, READ_HEAD = 28, TERMINATE_HEAD = 4 };

/* Computes the room that length, CRC, pad and markers leave for a ULPDU in a TCP segment (RFC 5044 4.5). */
void stream_begin(struct stream *stream, bool crc, bool markers, uint32_t emss)
{
    uint32_t most = emss - (6 + (markers ? 4 * ((emss + 511) / 512) : 0) + emss % 4);

    stream->crc = crc;
    stream->markers = markers;
    stream->ulpdu_max = most < 64768 ? most : 64768;
}

uint32_t stream_one_segment(const struct stream *stream)
{
    return stream->ulpdu_max - UNTAGGED_HEAD;
}

/* Adds an FPDU to the stream and returns how many markers it contains. A marker stands wherever the position is a
 * multiple of 512 and an octet of the FPDU follows (RFC 5044 4.3). */
static unsigned add_fpdu(struct stream *stream, uint32_t ulpdu)
{
    uint32_t left = (2 + ulpdu + 3) / 4 * 4 + 4;
    unsigned markers = 0;

    while (left) {
        uint32_t space = (uint32_t)(512 - stream->position % 512);

        if (stream->markers && space == 512) {
            stream->position += 4;
            markers++;
            continue;
        }
        space = space < left ? space : left;
        stream->position += space;
        left -= space;
    }
    return markers;
}

/* Computes the checksum of RFC 1950. fpdus.py uses zlib's implementation. */
static uint32_t adler32(const uint8_t *p, uint32_t n)
{
    uint32_t a = 1, b = 0;

    while (n--) {
        a = (a + *p++) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

/* Prints the end of every message's line. */
static void say_payload(struct stream *stream, uint32_t head, const void *data, uint32_t length)
{
    uint32_t left = length, max = stream->ulpdu_max - head;
    unsigned fpdus = 0, markers = 0;

    do {
        uint32_t n = left < max ? left : max;

        markers += add_fpdu(stream, head + n);
        fpdus++;
        left -= n;
    } while (left);
    printf(" len=%u sum=%08x fpdus=%u crc=%s markers=%u\n", length, adler32(data, length), fpdus,
           stream->crc ? "good" : "none", markers);
}

static void say_message(const struct stream *stream, const char *what)
{
    printf("%u %c %s", stream->row, stream->direction, what);
}

/* RFC 5044 figure 8; revision 2 has S among the reserved flags and two words before the private data (RFC 6581 6). */
void say_start(struct stream *stream, const struct start *start)
{
    bool enhanced = start->revision == 2;

    say_message(stream, start->reply ? "reply" : "request");
    printf(" markers=%d crc=%d reject=%d res=0x%02x rev=%u private=", start->markers, start->crc, start->reject,
           enhanced ? 0x10 : 0, start->revision);
    if (enhanced)
        printf("%04x%04x", start->ird, start->ord);
    for (const char *p = start->private_data; *p; p++)
        printf("%02x", (unsigned char)*p);
    putchar('\n');
    stream->start_octets = (uint32_t)strlen(start->private_data) + (enhanced ? 24 : 20);
}

static void say_tagged(struct stream *stream, const char *what, uint32_t stag, uint64_t to, const void *data,
                       uint32_t length)
{
    say_message(stream, what);
    printf(" stag=0x%08x to=0x%016" PRIx64, stag, to);
    say_payload(stream, TAGGED_HEAD, data, length);
}

void say_write(struct stream *stream, uint32_t stag, uint64_t to, const void *data, uint32_t length)
{
    say_tagged(stream, "write", stag, to, data, length);
}

void say_read_response(struct stream *stream, const struct rddp_sge *sink, const void *data)
{
    say_tagged(stream, "read-response", sink->lkey, sink->addr, data, sink->length);
}

void say_send(struct stream *stream, unsigned opcode, uint32_t invalidate, const void *data, uint32_t length)
{
    static const char *const names[] = {[3] = "send", [4] = "send-inv", [5] = "send-se", [6] = "send-se-inv"};

    say_message(stream, names[opcode]);
    printf(" qn=0 msn=%u inval=0x%08x", ++stream->sends, invalidate);
    say_payload(stream, UNTAGGED_HEAD, data, length);
}

void say_read_request(struct stream *stream, const struct rddp_sge *sink, uint32_t stag, uint64_t to)
{
    say_message(stream, "read-request");
    printf(" qn=1 msn=%u sinkstag=0x%08x sinkto=0x%016" PRIx64 " size=%u srcstag=0x%08x srcto=0x%016" PRIx64,
           ++stream->reads, sink->lkey, sink->addr, sink->length, stag, to);
    say_payload(stream, UNTAGGED_HEAD + READ_HEAD, NULL, 0);
}

/* The M, D and R bits say which fields follow. tshark 4.0 takes every copied DDP header to have 14 octets, unless the
 * error is one of an untagged buffer, and takes the octets behind it as RDMAP's if R is set. It can show only these of
 * the copied octets. */
void say_terminate(struct stream *stream, unsigned code, uint32_t segment, const char *ddp, const char *rdma)
{
    uint32_t octets = (uint32_t)(strlen(ddp) + strlen(rdma)) / 2;
    int shown = (code >> 8 == 0x12 ? UNTAGGED_HEAD : TAGGED_HEAD) + (*rdma ? READ_HEAD : 0);
    char copied[128];

    snprintf(copied, sizeof(copied), "%s%s", ddp, rdma);
    copied[2 * shown] = '\0';
    say_message(stream, "terminate");
    printf(" qn=2 msn=1 layer=%u type=%u code=0x%02x mdr=11%d segment=0x%04x copied=%s", code >> 12, code >> 8 & 15,
           code & 255, *rdma != 0, segment, copied);
    say_payload(stream, UNTAGGED_HEAD + TERMINATE_HEAD + 2 + octets, NULL, 0);
}

void say_total(const struct stream *stream)
{
    say_message(stream, "total");
    printf(" octets=%" PRIu64 "\n", stream->start_octets + stream->position);
}

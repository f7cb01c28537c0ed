/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* say.h - prints what a dissector must see of each message, one line per message on stdout. */
#ifndef RDDP_TESTS_INTEROP_SAY_H
#define RDDP_TESTS_INTEROP_SAY_H

#include <stdbool.h>
#include <stdint.h>

#include <rddp/rddp.h>

/* One direction of a connection. */
struct stream {
    unsigned row;
    char direction;        /* > client to server, < back */
    uint32_t start_octets; /* of the Request or Reply */
    bool crc, markers;
    uint32_t ulpdu_max;
    uint64_t position;     /* total octets of FPDUs so far */
    unsigned sends, reads; /* message numbers used on queues 0 and 1 */
};

/* Call this after the start-up, with the agreed CRC and markers and with TCP's segment size. */
void stream_begin(struct stream *stream, bool crc, bool markers, uint32_t emss);

/* Returns the largest payload in octets with which a message of any kind is still one segment. */
uint32_t stream_one_segment(const struct stream *stream);

/* The contents of a Request or Reply. `ird` and `ord` are the words of RFC 6581 and exist in revision 2 only. */
struct start {
    bool reply, markers, crc, reject;
    uint8_t revision;
    uint16_t ird, ord;
    const char *private_data;
};

void say_start(struct stream *stream, const struct start *start);
void say_write(struct stream *stream, uint32_t stag, uint64_t to, const void *data, uint32_t length);
void say_send(struct stream *stream, unsigned opcode, uint32_t invalidate, const void *data, uint32_t length);
void say_read_request(struct stream *stream, const struct rddp_sge *sink, uint32_t stag, uint64_t to);
void say_read_response(struct stream *stream, const struct rddp_sge *sink, const void *data);

/* `code` is 0xLTCC and `segment` is the length of the ULPDU in octets. `ddp` is its DDP header in hexadecimal digits,
 * and `rdma` is the RDMAP header of a Read Request or "". */
void say_terminate(struct stream *stream, unsigned code, uint32_t segment, const char *ddp, const char *rdma);

/* Prints the total octets of the direction. */
void say_total(const struct stream *stream);

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* say.h - foretells what a dissector must see of each message: one line a message on stdout. */
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
    uint64_t position;     /* octets of FPDUs so far */
    unsigned sends, reads; /* message numbers used on queues 0 and 1 */
};

/* After the start-up: what was agreed, and TCP's segment size. */
void stream_begin(struct stream *stream, bool crc, bool markers, uint32_t emss);

/* Octets that any message may have and still be one segment. */
uint32_t stream_one_segment(const struct stream *stream);

/* What a Request or Reply says. `ird` and `ord` are the words of RFC 6581, for revision 2 only. */
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

/* `code` is 0xLTCC; `segment` the ULPDU's octets, and the rest its headers as hexadecimal digits: DDP's, and RDMAP's of
 * a Read Request or "". */
void say_terminate(struct stream *stream, unsigned code, uint32_t segment, const char *ddp, const char *rdma);

/* Octets of the direction in all. */
void say_total(const struct stream *stream);

#endif

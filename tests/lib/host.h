/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* host.h - the smallest host of a connection: what leaves is kept, what arrives is a string, and time goes by hand. */
#ifndef TESTS_LIB_HOST_H
#define TESTS_LIB_HOST_H

#include "conn/conn.h"
#include "tests/lib/engine.h"

enum { HOST_SENT = 1 << 22, HOST_START_US = 1000000 };

/* One end, and of the raw peer at the other end what it knows about the two streams. */
struct host {
    struct conn conn;
    struct engine engine;
    struct side side;
    struct out out;
    uint8_t *room;
    uint64_t now_us;
    size_t takes;       /* octets that the link still takes from us */
    uint8_t *sent;      /* all that has left so far */
    size_t sent_octets; /* of them */
    size_t read_octets; /* of these the peer has looked at */
    bool fin;           /* and no more will */
    uint8_t *stage;     /* what arrived and was not eaten */
    size_t staged;
    unsigned told;          /* enum conn_news, all that has come up */
    struct wire_state peer; /* how the peer frames what it sends and reads what we send */
};

/* CRC, no markers, revision 2, every ready-to-receive message, 4 reads each way; first FPDU after 5 ms, start-up 5 s,
 * stall 1 s, close 2 s. */
struct conn_attr host_attr(void);

/* Memory and a queue pair of these attributes (NULL: side_attr()); the connection is still to be begun. */
void host_init(struct host *h, const struct qp_attr *attr);

/* Fails the test if an octet beside a region was touched or something of a region still waits for the link. */
void host_fini(struct host *h);

void host_active(struct host *h, const struct conn_attr *attr, const void *private_data, uint16_t length);
void host_passive(struct host *h, const struct conn_attr *attr);

/* Brings the connection to CONN_READY with a peer that does as `attr` says; both may send. What is in h->sent is read.
 */
void host_ready(struct host *h, bool active, const struct conn_attr *attr);

/* Lets leave what will, and ends the stream when asked to. */
void host_pump(struct host *h);

/* So many octets arrive, at once, or one by one; then host_pump(). */
void host_hear(struct host *h, const void *p, size_t n);
void host_hear_slowly(struct host *h, const void *p, size_t n);
void host_hear_end(struct host *h);

/* Time goes on to `at_us`, without a look at the clock before; then host_pump(). */
void host_wait_until(struct host *h, uint64_t at_us);

/* --- the peer --- */

/* A request or reply frame by its numbers: `flags` and `revision` are octets 16 and 17. Returns its octets. */
size_t start_frame(uint8_t *out, bool reply, uint8_t flags, uint8_t revision, const void *private_data, size_t length);

/* The same with the two words of RFC 6581 in front of the private data. */
size_t start_frame_enhanced(uint8_t *out, bool reply, uint8_t flags, uint16_t ird_word, uint16_t ord_word,
                            const void *private_data, size_t length);

/* The peer says a segment, whose payload is seg.data. */
void peer_says(struct host *h, struct seg seg);

/* The same without the host hearing of it: into `out` (WIRE_UNIT_MAX octets); returns the octets. */
size_t peer_frames(struct host *h, struct seg seg, uint8_t *out);

/* The next FPDU that has left is this ULPDU, and its CRC is right. */
void expect_ulpdu(struct host *h, const void *ulpdu, size_t n);

/* The next FPDU that has left is a segment of this kind, which is returned. Its data lives until the next host_hear().
 */
struct seg expect_seg(struct host *h, enum seg_op op);

/* The next and last FPDU that has left is a Terminate of this code 0xLTCC; its ULPDU ends with the copied headers
 * (RFC 5040 4.8), of which nothing is looked at here. */
struct seg expect_terminate(struct host *h, unsigned code);

/* Nothing has left that the peer has not looked at. */
void expect_silence(const struct host *h);

/* The connection ended for this reason; it says so once, and every request has completed. */
void expect_end(struct host *h, enum fault fault);

#endif

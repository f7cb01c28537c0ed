/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* host.h - the smallest host of a connection: it keeps what is sent, receives what the test writes, and has a manual
 * clock. */
#ifndef TESTS_LIB_HOST_H
#define TESTS_LIB_HOST_H

#include "conn/conn.h"
#include "tests/lib/engine.h"

enum { HOST_SENT = 1 << 22, HOST_START_US = 1000000 };

/* One end, and the state of the raw peer at the other end. */
struct host {
    struct conn conn;
    struct engine engine;
    struct side side;
    struct out out;
    uint8_t *buffer;
    uint64_t now_us;
    size_t takes;       /* octets that the link still accepts */
    uint8_t *sent;      /* all that was sent so far */
    size_t sent_octets; /* octets in `sent` */
    size_t read_octets; /* of these, how many the peer has read */
    bool fin;           /* the stream has ended */
    uint8_t *stage;     /* octets received and not consumed */
    size_t staged;
    unsigned told;          /* enum conn_news: all that occurred */
    struct wire_state peer; /* how the peer frames what it sends and decodes what we send */
};

/* CRC, no markers, revision 2, every ready-to-receive message, 4 Reads each way; first FPDU after 5 ms, start-up 5 s,
 * stall 1 s, close 2 s. */
struct conn_attr host_attr(void);

/* Makes memory and a queue pair of these attributes (NULL: side_attr()). The connection is not begun. */
void host_init(struct host *h, const struct qp_attr *attr);

/* Fails the test if an octet beside a region was changed, or if octets of a region still wait for the link. */
void host_fini(struct host *h);

void host_active(struct host *h, const struct conn_attr *attr, const void *private_data, uint16_t length);
void host_passive(struct host *h, const struct conn_attr *attr);

/* Brings the connection to CONN_READY with a peer that behaves as `attr` says; both may send. The peer has read
 * everything in h->sent. */
void host_ready(struct host *h, bool active, const struct conn_attr *attr);

/* Sends what is ready, and ends the stream when asked to. */
void host_pump(struct host *h);

/* `n` octets arrive, at once or one by one; then host_pump(). */
void host_hear(struct host *h, const void *p, size_t n);
void host_hear_slowly(struct host *h, const void *p, size_t n);
void host_hear_end(struct host *h);

/* Advances the clock to `at_us` without intermediate ticks; then host_pump(). */
void host_wait_until(struct host *h, uint64_t at_us);

/* --- the peer --- */

/* Writes a request or reply frame; `flags` and `revision` are octets 16 and 17. Returns its octets. */
size_t start_frame(uint8_t *out, bool reply, uint8_t flags, uint8_t revision, const void *private_data, size_t length);

/* The same with the two words of RFC 6581 in front of the private data. */
size_t start_frame_enhanced(uint8_t *out, bool reply, uint8_t flags, uint16_t ird_word, uint16_t ord_word,
                            const void *private_data, size_t length);

/* The peer sends a segment whose payload is seg.data. */
void peer_says(struct host *h, struct seg seg);

/* The same, but only written to `out` (WIRE_UNIT_MAX octets). Returns the octets. */
size_t peer_frames(struct host *h, struct seg seg, uint8_t *out);

/* The next FPDU sent has this ULPDU and a correct CRC. */
void expect_ulpdu(struct host *h, const void *ulpdu, size_t n);

/* The next FPDU sent is a segment of this kind, which is returned. Its data are valid until the next host_hear(). */
struct seg expect_seg(struct host *h, enum seg_op op);

/* The next and last FPDU sent is a Terminate with code 0xLTCC. The copied headers at its end (RFC 5040 4.8) are not
 * checked. */
struct seg expect_terminate(struct host *h, unsigned code);

/* The peer has read everything that was sent. */
void expect_silence(const struct host *h);

/* The connection ended for this reason and reported it once, and every request has completed. */
void expect_end(struct host *h, enum fault fault);

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* clang-format off */
/* sctptext.h - SCTP packets as text, one packet a line, chunks divided by commas, for scripts of a conversation with
 * one association of osctp ("ours").
 *
 * TSNs count from the initial TSN of their sender, which is 1. Flags are the usual ones of a chunk unless words say
 * more: t (the T bit), i (the I bit), flags=N. length=N is what the chunk says of its length, whatever it has.
 *     init | init-ack [itag=N] [itsn=N] [window=N] [out=N] [in=N] [indication=N] [param=TYPE:HEX]... [cookie=N]
 *     echo [flip=N] [cut=N] [before=1]    our cookie with octet N changed, or N octets shorter; before: the one before
 *                                         it; as output: the peer's
 *     cookie-ack | shutdown-ack | shutdown-complete
 *     data TSN OCTETS [stream=N] [ssn=N] [ppid=N]
 *     sack TSN WINDOW [gap=TSN-TSN]... [block=OFFSET-OFFSET]... [dup=TSN]...    as output: without our usual window
 *     heartbeat HEX | heartbeat-ack [HEX]    what our last HEARTBEAT said, unless given
 *     shutdown TSN | abort [reason=WORD] [cause=CODE:HEX] | error [cause=CODE:HEX]...
 *     chunk TYPE [HEX]
 *     tag N | from N | port N | to N | cut N    of the packet: verification tag, address, source port, destination
 *                                               port, octets that its end lacks. As output: tag N, if it is not the
 *                                               peer's */
/* clang-format on */
#ifndef TESTS_LIB_SCTPTEXT_H
#define TESTS_LIB_SCTPTEXT_H

#include <stddef.h>
#include <stdint.h>

enum {
    SCTPTEXT_OURS = 0x11223344, /* verification tag */
    SCTPTEXT_PEERS = 0x55667788,
    SCTPTEXT_OUR_PORT = 5001,
    SCTPTEXT_PEER_PORT = 5002,
    SCTPTEXT_ZERO = 0xfffffff0,      /* our TSN before the first: TSNs wrap soon */
    SCTPTEXT_PEER_ZERO = 0xfffffff8, /* the peer's */
    SCTPTEXT_OCTETS = 70000,         /* of a packet */
};

struct sctptext {
    uint32_t window;                           /* the a_rwnd that is usual for us */
    uint8_t cookie[1024], cookie_before[1024]; /* of our last INIT-ACK, and of the one before */
    uint32_t cookie_octets;
    uint8_t info[256]; /* of our last HEARTBEAT */
    uint32_t info_octets;
    uint32_t from; /* number of the address of the last packet encoded */
};

/* Writes octet `i` of the message of a TSN. */
uint8_t sctptext_octet(uint32_t tsn, uint32_t i);

/* Writes the packet of `text`, which it changes, to `p`. Returns its octets, or 0 and at *wrong what is wrong. */
uint32_t sctptext_encode(struct sctptext *t, char *text, uint8_t *p, const char **wrong);

/* Describes a packet that we send. Faults of the packet are part of the text, in capitals. */
void sctptext_decode(struct sctptext *t, const uint8_t *p, uint32_t n, char *text, size_t space);

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rcm_world.h - a connection manager of RoCE whose peers the test plays, message by message. */
#ifndef TESTS_LIB_RCM_WORLD_H
#define TESTS_LIB_RCM_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "roce/rcm.h"
#include "tests/lib/rng.h"

/* The peer's numbers, and ours. */
enum {
    PEER_ID = 0x7a977c56,
    PEER_QPN = 0x1c,
    PEER_PSN = 0x72505d,
    OUR_QPN = 0x22334,
    OUR_PSN = 0xc85888,
    PORT = 7174,
    RESPONSE_US = 4294967, /* 4.096 us * 2^RCM_TIMEOUT_DEFAULT */
    TIMEWAIT_US = 2000000,
};
#define PEER_TRANSACTION UINT64_C(0x2567c977a)
#define SERVICE (UINT64_C(0x1060000) + PORT)
#define DATAGRAM_SERVICE (UINT64_C(0x1110000) + PORT)

struct rcm_world {
    struct rcm cm;
    struct rng rng;
    uint64_t now_us;
    struct rcm_path path; /* of messages to and from the peer */
    struct rcm_listener listener, datagrams;
    struct rcm_conn conn;
    struct rcm_message received; /* by the peer */
    struct rcm_path received_path;
    uint8_t packet[RCM_PACKET_OCTETS];
    uint8_t mad[RCM_MAD_OCTETS]; /* said by the peer */
    struct rcm_event event;
};
extern struct rcm_world cw;

/* A new connection manager, which listens on both services with this backlog. The next numbers are those of `seed`. */
void rcm_open(uint32_t backlog);

/* The path to the peer with this number. */
struct rcm_path rcm_peer(uint32_t number);

/* A message of the peer, in answer to the newest of ours where it is an answer. */
struct rcm_message rcm_says_what(enum rcm_attribute attribute);
struct rcm_message rcm_request(void);
void rcm_says(const struct rcm_message *m);
void rcm_says_usual(enum rcm_attribute attribute);

/* The next message of ours, of which there must be one of this kind, to the peer. */
const struct rcm_message *rcm_hear(enum rcm_attribute attribute);
void rcm_hear_nothing(void);

/* The next event, which must be this one. */
const struct rcm_event *rcm_expect(enum rcm_event_kind kind);
void rcm_expect_nothing(void);

void rcm_waits(uint64_t us);
/* Goes to the next deadline. Returns how long it took. */
uint64_t rcm_waits_for_deadline(void);

/* The usual attributes of calls. */
struct rcm_connect rcm_usual_connect(void);
struct rcm_accept rcm_usual_accept(void);

/* Brings cw.conn into these states, with all messages received and events taken. */
void rcm_is_asked(void);                /* RCM_REQ_RECEIVED */
void rcm_has_accepted(void);            /* RCM_REP_SENT */
void rcm_calls(void);                   /* RCM_REQ_SENT */
void rcm_is_answered(void);             /* RCM_REP_RECEIVED */
void rcm_is_established(bool actively); /* RCM_ESTABLISHED */

/* Everything is over: no connection is in any table, no deadline, message or event is left. */
void rcm_assert_empty(struct rcm *cm);

#endif

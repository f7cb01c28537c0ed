/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rcm_message.h - the messages of the connection manager (CM): management datagrams (MADs) of 256 octets that travel in
 * UD packets from queue pair 1 to queue pair 1. */
#ifndef RDDP_ROCE_RCM_MESSAGE_H
#define RDDP_ROCE_RCM_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "roce/bth.h"

enum {
    RCM_QPN = 1,
    RCM_MAD_OCTETS = 256,
    RCM_MAD_HEAD = 24,
    RCM_PACKET_OCTETS = BTH_OCTETS + DETH_OCTETS + RCM_MAD_OCTETS, /* of a packet without its ICRC */

    RCM_PRIVATE_REQ = 92,
    RCM_PRIVATE_REJ = 148,
    RCM_PRIVATE_REP = 196,
    RCM_PRIVATE_DREQ = 220,
    RCM_PRIVATE_MRA = 222,
    RCM_PRIVATE_MAX = 224, /* RTU and DREP */
    RCM_PRIVATE_SIDR_REQ = 216,
    RCM_PRIVATE_SIDR_REP = 136,
    RCM_ARI_MAX = 72, /* additional reject information */

    RCM_RETRIES_MAX = 15, /* resends of a message of the CM */
};

#define RCM_Q_KEY 0x80010000u

/* Attribute IDs. */
enum rcm_attribute {
    RCM_REQ = 0x10,
    RCM_MRA = 0x11,
    RCM_REJ = 0x12,
    RCM_REP = 0x13,
    RCM_RTU = 0x14,
    RCM_DREQ = 0x15,
    RCM_DREP = 0x16,
    RCM_SIDR_REQ = 0x17,
    RCM_SIDR_REP = 0x18,
    RCM_LAP = 0x19, /* load an alternate path, and its answer: known, and never acted upon */
    RCM_APR = 0x1a,
    RCM_ATTRIBUTES = RCM_APR - RCM_REQ + 1,
};

/* Which message an MRA or REJ is about. */
enum rcm_about { RCM_ABOUT_REQ, RCM_ABOUT_REP, RCM_ABOUT_OTHER };

/* Reasons of a REJ. A peer may give others. */
enum rcm_reason {
    RCM_NO_RESOURCES = 3,
    RCM_TIMED_OUT = 4,
    RCM_UNSUPPORTED = 5,
    RCM_UNKNOWN_ID = 6,
    RCM_NO_SERVICE = 8, /* no one listens */
    RCM_WRONG_TRANSPORT = 9,
    RCM_STALE = 10,
    RCM_WRONG_GID = 12, /* Linux says it also of a P_Key that it does not have */
    RCM_WRONG_MTU = 26,
    RCM_CONSUMER = 28, /* the application */
};

/* Status of a SIDR REP. */
enum rcm_status { RCM_SIDR_VALID, RCM_SIDR_NO_SERVICE, RCM_SIDR_REJECTED, RCM_SIDR_NO_QP };

enum rcm_transport { RCM_RC, RCM_UC };

/* What a queue pair of the sender is like: of a REQ and a REP. A SIDR REP has its number and Q_Key. */
struct rcm_terms {
    uint32_t qpn, q_key;
    uint32_t psn;                /* that the receiver of the message begins to send with */
    uint8_t responder_resources; /* Reads and atomics that it answers at once (IRD) */
    uint8_t initiator_depth;     /* Reads and atomics that it asks at once (ORD) */
    uint8_t transport;           /* enum rcm_transport */
    uint8_t flow_control;
    uint8_t retries, rnr_retries;
    uint8_t mtu; /* code of the path MTU: rcm_mtu() */
    uint8_t srq;
    uint8_t failover;
    uint8_t ack_delay; /* time-out codes: of a REP, until it acknowledges; */
    uint16_t pkey;
};

/* The primary path of a REQ. */
struct rcm_route {
    uint16_t local_lid, remote_lid;
    uint8_t local_gid[16], remote_gid[16];
    uint32_t flow_label;
    uint8_t rate, traffic_class, hop_limit, service_level, subnet_local;
    uint8_t ack_timeout; /* of the packets of the connection */
};

/* Members that a message has not are zero. */
struct rcm_message {
    enum rcm_attribute attribute;
    uint64_t transaction;
    uint32_t local_id;  /* of the sender; in SIDR messages the request ID */
    uint32_t remote_id; /* of the receiver; 0: not known */
    uint64_t service;
    uint64_t guid;
    struct rcm_terms terms;
    struct rcm_route route;
    uint8_t remote_timeout; /* of a REQ: until the receiver answers, */
    uint8_t local_timeout;  /* and until the sender does */
    uint8_t cm_retries;
    uint32_t remote_qpn; /* of a DREQ: the receiver's */
    uint8_t about;       /* enum rcm_about */
    uint8_t service_timeout;
    uint16_t reason;
    uint8_t status;
    const uint8_t *ari; /* of a REJ: ari_octets, at most RCM_ARI_MAX */
    uint8_t ari_octets;
    const uint8_t *data; /* private data: when decoded, all the octets that the message has space for */
    uint8_t octets;
};

enum rcm_result {
    RCM_OK,
    RCM_SHORT, /* not of RCM_MAD_OCTETS */
    RCM_CLASS, /* a MAD of another class */
    RCM_VERSION,
    RCM_METHOD,
    RCM_ATTRIBUTE, /* of an unknown one */
    RCM_RANGE,     /* an ARI longer than its space */
};

/* Decodes a MAD. Pointers of *m point into it. Results but RCM_OK: drop it without an answer. */
enum rcm_result rcm_decode(struct rcm_message *m, const uint8_t *mad, uint32_t octets);

/* Writes RCM_MAD_OCTETS. Bits beyond the width of a field are cut off. Returns false if the private data or the ARI is
 * longer than its space. */
bool rcm_encode(const struct rcm_message *m, uint8_t *mad);

/* Returns how many octets of private data such a message has space for. */
uint32_t rcm_private_max(enum rcm_attribute attribute);

/* Who is meant by a MAD: the listener of a service ID, or who has this comm ID or request ID. For hosts that share port
 * 4791 with others. */
struct rcm_target {
    bool is_request;
    uint64_t service; /* of a request */
    uint32_t id;      /* of others; 0: its sender did not know it */
    uint32_t sender;  /* the comm ID or request ID of its sender; 0: it has none */
};

/* Returns false if it is no message of the connection manager. */
bool rcm_find_target(struct rcm_target *target, const uint8_t *mad, uint32_t octets);

/* Is this a packet of the connection manager: UD, to queue pair 1, with its Q_Key? Then its payload is a MAD. */
bool rcm_is_packet(const struct bth *b);

/* Writes the headers of a packet and the MAD behind them: RCM_PACKET_OCTETS. */
void rcm_packet(uint8_t *p, const uint8_t *mad, uint32_t psn);

/* How long a connection rests whose packets wait for an acknowledgement as long as this code says: as Linux's, but at
 * most ten seconds. */
uint64_t rcm_timewait_us(unsigned code);

/* The octets of payload of a path MTU with this code, 0 if there is none, and the code of an MTU, 0 if it has none. */
uint32_t rcm_mtu(unsigned code);
uint8_t rcm_mtu_code(uint32_t octets);

/* --- what rdma_cm adds: port spaces, and addresses in front of the private data -------------------------------- */

enum {
    RCM_IP_OCTETS = 36,
    RCM_IP_PRIVATE = RCM_PRIVATE_REQ - RCM_IP_OCTETS,           /* octets left to the application in a REQ, */
    RCM_IP_PRIVATE_SIDR = RCM_PRIVATE_SIDR_REQ - RCM_IP_OCTETS, /* and in a SIDR REQ */
};

/* Port spaces of rdma_cm, as octet 5 of a service ID names them. */
enum rcm_space { RCM_SPACE_TCP = 0x06, RCM_SPACE_UDP = 0x11, RCM_SPACE_IB = 0x3f };

uint64_t rcm_service(enum rcm_space space, uint16_t port);

/* Returns false if it is no service ID of rdma_cm. */
bool rcm_service_port(uint64_t service, enum rcm_space *space, uint16_t *port);

/* Addresses are GIDs: an IPv4 address is ::ffff:a.b.c.d. */
struct rcm_ip {
    bool ipv6;
    uint16_t port; /* of the source */
    uint8_t source[16], destination[16];
};

/* Decodes RCM_IP_OCTETS. Returns false if it is of another version or family. */
bool rcm_ip_decode(struct rcm_ip *ip, const uint8_t *p);
void rcm_ip_encode(const struct rcm_ip *ip, uint8_t *p);

bool rcm_is_ipv4(const uint8_t *gid);

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* attr.c - defaults and checks of wire attributes, and their conversion for the engine. */
#include "endpoint/attr.h"

#include "conn/rc_pair.h"
#include "sctp/io/sctp.h"

void rddp_wire_attr_init(struct rddp_wire_attr *attr)
{
    *attr = (struct rddp_wire_attr){
        .wire = RDDP_WIRE_IWARP,
        .crc = true,
        .mpa_revision = 2,
        .rtr = RDDP_RTR_SEND | RDDP_RTR_WRITE | RDDP_RTR_READ,
        .first_delay_ms = 5,
        .startup_timeout_ms = 10000,
        .stall_timeout_ms = 30000,
        .close_timeout_ms = 2000,
        .sctp_adaptation = RDDP_SCTP_RDMA_AND_NEGOTIATION,
        .sctp_udp_port = SCTP_PORT_UDP,
        .sctp_mtu = SCTP_MTU,
    };
}

void rddp_conn_attr_init(struct rddp_conn_attr *attr)
{
    *attr = (struct rddp_conn_attr){
        .ird = QP_READS_MAX,
        .ord = QP_READS_MAX,
        .retry_count = RC_RETRIES_MAX,
        .rnr_retry_count = RC_RNR_ENDLESS,
        .ack_timeout = 17,
    };
    rddp_wire_attr_init(&attr->wire);
}

void rddp_ib_attr_init(struct rddp_ib_attr *attr)
{
    *attr = (struct rddp_ib_attr){
        .access = RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_REMOTE_READ | RDDP_ACCESS_REMOTE_ATOMIC,
        .pkey = BTH_PKEY_DEFAULT,
        .min_rnr_timer = 12,
        .max_dest_rd_atomic = QP_READS_MAX,
        .timeout = 14,
        .retry_cnt = RC_RETRIES_MAX,
        .rnr_retry = RC_RNR_ENDLESS,
        .max_rd_atomic = QP_READS_MAX,
    };
}

/* The wires of a stream of octets. An association has none. */
static const struct wire *const wires[] = {
    [RDDP_WIRE_IWARP] = &wire_iwarp,
    [RDDP_WIRE_RDMATCP] = &wire_rdmatcp,
    [RDDP_WIRE_SCTP] = NULL,
    [RDDP_WIRE_ROCE] = NULL,
};

const struct wire *wire_named(enum rddp_wire name)
{
    return wires[name];
}

/* A stack in user space has one path to each peer, and that is in UDP. */
static bool sctp_is_sane(const struct rddp_wire_attr *wire)
{
    if ((unsigned)wire->sctp_provider > RDDP_SCTP_KERNEL)
        return false;
    if (wire->sctp_provider != RDDP_SCTP_KERNEL && (!wire->sctp_udp_port || wire->sctp_address_count))
        return false;
    return !wire->device && wire->sctp_adaptation <= RDDP_SCTP_RDMA_NEGOTIATION && wire->sctp_mtu >= SCTP_MTU_MIN &&
           wire->sctp_mtu <= SCTP_MTU_MAX && wire->startup_timeout_ms &&
           wire->sctp_address_count < SCTP_ADDRESSES_MAX && (wire->sctp_addresses || !wire->sctp_address_count);
}

bool wire_is_sane(const struct rddp_wire_attr *wire)
{
    if ((unsigned)wire->wire >= countof(wires))
        return false;
    if (wire->datagrams && wire->wire != RDDP_WIRE_ROCE)
        return false;
    if (wire->wire == RDDP_WIRE_ROCE)
        return !wire->device && wire->startup_timeout_ms;
    if (wire->wire == RDDP_WIRE_SCTP)
        return sctp_is_sane(wire);
    return (wire->mpa_revision == 1 || wire->mpa_revision == 2) && wire->startup_timeout_ms &&
           (!wire->peer_to_peer || (wire->mpa_revision == 2 && (wire->rtr & 7)));
}

bool wire_is_stream(const struct rddp_wire_attr *wire)
{
    return wire->wire != RDDP_WIRE_SCTP && wire->wire != RDDP_WIRE_ROCE;
}

bool wire_says(const struct wire *wire, const struct rddp_conn_attr *attr)
{
    return !wire || !wire->frames_at_once || !attr->private_data_length;
}

struct conn_attr wire_conn_attr(const struct rddp_wire_attr *wire)
{
    return (struct conn_attr){
        .crc = wire->crc,
        .markers = wire->markers,
        .peer_to_peer = wire->peer_to_peer,
        .immediate = wire->immediate,
        .aligned = wire->aligned && wire->device,
        .revision = wire->mpa_revision,
        .rtr = wire->rtr,
        .first_delay_us = (uint64_t)wire->first_delay_ms * 1000,
        .startup_us = (uint64_t)wire->startup_timeout_ms * 1000,
        .stall_us = (uint64_t)wire->stall_timeout_ms * 1000,
        .close_us = (uint64_t)wire->close_timeout_ms * 1000,
    };
}

uint16_t at_most(uint16_t asked, uint32_t capacity)
{
    return asked < capacity ? asked : (uint16_t)capacity;
}

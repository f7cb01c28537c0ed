/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* words.c - names for numbers, and rates as numbers. */
#include "verbs/drivers.h"
#include "verbs/verbs_object.h"

enum { RATES = IBV_RATE_1200_GBPS + 1 };

/* Mb/s of each enum ibv_rate; 0: no rate. The first lanes of InfiniBand ran at 2.5 Gb/s, of which others are multiples;
 * those since FDR are not. */
static const int rate_mbps[RATES] = {
    [IBV_RATE_2_5_GBPS] = 2500,   [IBV_RATE_5_GBPS] = 5000,       [IBV_RATE_10_GBPS] = 10000,
    [IBV_RATE_20_GBPS] = 20000,   [IBV_RATE_30_GBPS] = 30000,     [IBV_RATE_40_GBPS] = 40000,
    [IBV_RATE_60_GBPS] = 60000,   [IBV_RATE_80_GBPS] = 80000,     [IBV_RATE_120_GBPS] = 120000,
    [IBV_RATE_14_GBPS] = 14062,   [IBV_RATE_56_GBPS] = 56250,     [IBV_RATE_112_GBPS] = 112500,
    [IBV_RATE_168_GBPS] = 168750, [IBV_RATE_25_GBPS] = 25781,     [IBV_RATE_100_GBPS] = 103125,
    [IBV_RATE_200_GBPS] = 206250, [IBV_RATE_300_GBPS] = 309375,   [IBV_RATE_28_GBPS] = 28125,
    [IBV_RATE_50_GBPS] = 53125,   [IBV_RATE_400_GBPS] = 425000,   [IBV_RATE_600_GBPS] = 637500,
    [IBV_RATE_800_GBPS] = 850000, [IBV_RATE_1200_GBPS] = 1275000,
};

int ibv_rate_to_mbps(enum ibv_rate rate)
{
    return (unsigned)rate < RATES && rate_mbps[rate] ? rate_mbps[rate] : -1;
}

enum ibv_rate mbps_to_ibv_rate(int mbps)
{
    for (int rate = 0; rate < RATES; rate++) {
        if (rate_mbps[rate] && rate_mbps[rate] == mbps)
            return (enum ibv_rate)rate;
    }
    return IBV_RATE_MAX;
}

/* In lanes of 2.5 Gb/s. */
int ibv_rate_to_mult(enum ibv_rate rate)
{
    enum { LANE_MBPS = 2500 };
    int mbps = ibv_rate_to_mbps(rate);

    return mbps < 0 ? -1 : (mbps + LANE_MBPS / 2) / LANE_MBPS;
}

enum ibv_rate mult_to_ibv_rate(int mult)
{
    for (int rate = 0; rate < RATES; rate++) {
        if (rate_mbps[rate] && ibv_rate_to_mult((enum ibv_rate)rate) == mult)
            return (enum ibv_rate)rate;
    }
    return IBV_RATE_MAX;
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
    return rddp_wc_status_str((enum rddp_wc_status)status);
}

const char *ibv_node_type_str(enum ibv_node_type type)
{
    static const char *const names[] = {
        [IBV_NODE_CA] = "InfiniBand channel adapter",
        [IBV_NODE_SWITCH] = "InfiniBand switch",
        [IBV_NODE_ROUTER] = "InfiniBand router",
        [IBV_NODE_RNIC] = "iWARP NIC",
        [IBV_NODE_USNIC] = "usNIC",
        [IBV_NODE_USNIC_UDP] = "usNIC UDP",
        [IBV_NODE_UNSPECIFIED] = "unspecified",
    };

    return (unsigned)type < sizeof(names) / sizeof(names[0]) && names[type] ? names[type] : "unknown";
}

const char *ibv_port_state_str(enum ibv_port_state state)
{
    static const char *const names[] = {
        [IBV_PORT_NOP] = "PORT_NOP",       [IBV_PORT_DOWN] = "PORT_DOWN",
        [IBV_PORT_INIT] = "PORT_INIT",     [IBV_PORT_ARMED] = "PORT_ARMED",
        [IBV_PORT_ACTIVE] = "PORT_ACTIVE", [IBV_PORT_ACTIVE_DEFER] = "PORT_ACTIVE_DEFER",
    };

    return (unsigned)state < sizeof(names) / sizeof(names[0]) ? names[state] : "invalid state";
}

const char *ibv_event_type_str(enum ibv_event_type type)
{
    static const char *const names[] = {
        [IBV_EVENT_CQ_ERR] = "completion queue overrun",
        [IBV_EVENT_QP_FATAL] = "queue pair in the error state",
        [IBV_EVENT_QP_REQ_ERR] = "invalid request from the peer",
        [IBV_EVENT_QP_ACCESS_ERR] = "access violation by the peer",
        [IBV_EVENT_COMM_EST] = "communication established",
        [IBV_EVENT_SQ_DRAINED] = "send queue drained",
        [IBV_EVENT_PATH_MIG] = "path migrated",
        [IBV_EVENT_PATH_MIG_ERR] = "path migration failed",
        [IBV_EVENT_DEVICE_FATAL] = "device failed",
        [IBV_EVENT_PORT_ACTIVE] = "port active",
        [IBV_EVENT_PORT_ERR] = "port error",
        [IBV_EVENT_LID_CHANGE] = "LID changed",
        [IBV_EVENT_PKEY_CHANGE] = "partition keys changed",
        [IBV_EVENT_SM_CHANGE] = "subnet manager changed",
        [IBV_EVENT_SRQ_ERR] = "shared receive queue failed",
        [IBV_EVENT_SRQ_LIMIT_REACHED] = "shared receive queue below its limit",
        [IBV_EVENT_QP_LAST_WQE_REACHED] = "last receive of the queue pair taken",
        [IBV_EVENT_CLIENT_REREGISTER] = "clients must register again",
        [IBV_EVENT_GID_CHANGE] = "GIDs changed",
        [IBV_EVENT_WQ_FATAL] = "work queue failed",
    };

    return (unsigned)type < sizeof(names) / sizeof(names[0]) ? names[type] : "unknown";
}

/* Of rdma-core later than 44, whose header declares it. */
const char *verbs_wr_opcode_str(enum ibv_wr_opcode opcode) __asm__("ibv_wr_opcode_str");

const char *verbs_wr_opcode_str(enum ibv_wr_opcode opcode)
{
    enum { FLUSH = 14 };
    static const char *const names[] = {
        [IBV_WR_RDMA_WRITE] = "rdma-write",
        [IBV_WR_RDMA_WRITE_WITH_IMM] = "rdma-write-with-imm",
        [IBV_WR_SEND] = "send",
        [IBV_WR_SEND_WITH_IMM] = "send-with-imm",
        [IBV_WR_RDMA_READ] = "rdma-read",
        [IBV_WR_ATOMIC_CMP_AND_SWP] = "atomic-cmp-and-swp",
        [IBV_WR_ATOMIC_FETCH_AND_ADD] = "atomic-fetch-and-add",
        [IBV_WR_LOCAL_INV] = "local-inv",
        [IBV_WR_BIND_MW] = "bind-mw",
        [IBV_WR_SEND_WITH_INV] = "send-with-inv",
        [IBV_WR_TSO] = "tso",
        [IBV_WR_DRIVER1] = "driver1",
        [FLUSH] = "flush",
        [IBV_WR_ATOMIC_WRITE] = "atomic-write",
    };

    return (unsigned)opcode < sizeof(names) / sizeof(names[0]) && names[opcode] ? names[opcode] : "unknown";
}
PRIVATE(ibv_wr_opcode_str)

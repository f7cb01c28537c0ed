/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* shared.h - what the BPF program and the process that loads it both know. Nothing here comes from rddp. */
#ifndef EBPF_SHARED_H
#define EBPF_SHARED_H

#include <linux/types.h>

enum { SECTIONS = 1024, SEARCH_STEPS = 10, OPTION_MAX = 20, KIND = 25 };

/* A part of the stream that is sent: the octets of one transfer, or octets of none. The table is sorted by `start`. */
struct section {
    __u64 rid;
    __u32 start, length; /* octets, from the first of the stream */
    __u32 total;
    __u8 has_rid, begins_message;
    __u8 fill[2];
};

/* One connection. The process sets `sections`, the program the rest. */
struct flow {
    __u32 sections;
    __u32 send_base, receive_base; /* sequence numbers of the first octets */
    __u32 negotiated;
    __u32 written, without_space; /* segments with an option; segments that had no room for one */
    __u32 events_lost;
    __u32 fill;
};

/* One segment that arrived. */
struct event {
    __u32 position, length; /* of its payload in the stream */
    __u32 option_length;    /* 0: it has no such option */
    __u8 option[OPTION_MAX];
};

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcpopt.bpf.c - the TCP RDMA option (draft-csapuntz-tcprdma-00) for the kernel's TCP, as a sock_ops program.
 *
 * It is a second implementation of the option, written from that document alone. It negotiates with the form of 2
 * octets, writes an option in each segment that it sends, also in those that are sent again, and reports the option of
 * each segment that arrives. */
#include <linux/bpf.h>
#include <linux/tcp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "shared.h"

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, SECTIONS);
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, __u32);
    __type(value, struct section);
} sections SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, __u32);
    __type(value, struct flow);
} flows SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 22);
} events SEC(".maps");

static struct flow *the_flow(void)
{
    __u32 first = 0;

    return bpf_map_lookup_elem(&flows, &first);
}

static struct section *section_at(__u32 index)
{
    return bpf_map_lookup_elem(&sections, &index);
}

/* The last section that begins at or before `position`. */
static __u32 find(__u32 position, __u32 count)
{
    __u32 low = 0, high = count;

    for (int step = 0; step <= SEARCH_STEPS && low + 1 < high; step++) {
        __u32 middle = (low + high) / 2;
        struct section *s = section_at(middle);

        if (!s)
            break;
        if (s->start <= position)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void put16(__u8 *p, __u32 v)
{
    p[0] = v >> 8;
    p[1] = v;
}

static void put32(__u8 *p, __u32 v)
{
    put16(p, v >> 16);
    put16(p + 2, v);
}

/* Section 3.1: where in the payload [position, position + length) the octets of a transfer lie. */
static int make_option(__u8 *option, struct flow *flow, __u32 position, __u32 length)
{
    __u32 index = find(position, flow->sections), before = 0, inside, n;
    struct section *s = section_at(index);
    __u8 aligned;

    if (!s)
        return 0;
    aligned = s->begins_message && s->start == position ? 0x80 : 0;
    if (!s->has_rid) { /* a head may ride in front of its data */
        before = s->start + s->length - position;
        s = section_at(index + 1);
        if (before >= length || !s || !s->has_rid) {
            option[0] = KIND;
            option[1] = 4;
            option[2] = aligned;
            return aligned ? 4 : 0;
        }
    }
    inside = position + before - s->start;
    n = s->length - inside < length - before ? s->length - inside : length - before;
    option[0] = KIND;
    option[1] = s->total ? 20 : 16;
    put16(option + 2, s->rid >> 32 & 0x3fff);
    option[2] |= aligned;
    put32(option + 4, s->rid);
    put32(option + 8, inside);
    put16(option + 12, before);
    put16(option + 14, n);
    put32(option + 16, s->total);
    return option[1];
}

static int set_flags(struct bpf_sock_ops *ops, int flags)
{
    return bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags | flags);
}

static int peer_offers(struct bpf_sock_ops *ops, __u64 where)
{
    __u8 found[OPTION_MAX] = {KIND};

    return bpf_load_hdr_opt(ops, found, sizeof(found), where) == 2;
}

static void established(struct bpf_sock_ops *ops, struct flow *flow, __u64 where)
{
    flow->send_base = ops->snd_nxt;
    flow->receive_base = ops->rcv_nxt;
    flow->negotiated = peer_offers(ops, where);
    set_flags(ops, BPF_SOCK_OPS_PARSE_ALL_HDR_OPT_CB_FLAG | BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
}

/* Data needs room for the longest form; the kernel asks also when it works out its MSS. */
static void reserve(struct bpf_sock_ops *ops, struct flow *flow)
{
    if (ops->skb_tcp_flags & 0x02) { /* SYN: an answer has the option only if the SYN had it */
        if (!(ops->skb_tcp_flags & 0x10) || peer_offers(ops, BPF_LOAD_HDR_OPT_TCP_SYN))
            bpf_reserve_hdr_opt(ops, 2, 0);
    } else if (flow->negotiated && flow->sections && (ops->args[0] == BPF_WRITE_HDR_TCP_CURRENT_MSS || ops->skb_len)) {
        bpf_reserve_hdr_opt(ops, OPTION_MAX, 0); /* SACK blocks may have taken the room */
    }
}

static void write(struct bpf_sock_ops *ops, struct flow *flow)
{
    struct tcphdr *head = ops->skb_data;
    __u8 option[OPTION_MAX] = {KIND, 2};
    __u32 length;
    int n;

    if ((void *)(head + 1) > ops->skb_data_end)
        return;
    if (ops->skb_tcp_flags & 0x02) {
        bpf_store_hdr_opt(ops, option, 2, 0);
        return;
    }
    length = ops->skb_len - head->doff * 4;
    if (!length || !flow->negotiated)
        return;
    n = make_option(option, flow, bpf_ntohl(head->seq) - flow->send_base, length);
    if (n == 20)
        n = bpf_store_hdr_opt(ops, option, 20, 0);
    else if (n == 16)
        n = bpf_store_hdr_opt(ops, option, 16, 0);
    else if (n == 4)
        n = bpf_store_hdr_opt(ops, option, 4, 0);
    else
        return;
    if (!n)
        flow->written++;
    else
        flow->without_space++;
}

static void parse(struct bpf_sock_ops *ops, struct flow *flow)
{
    struct tcphdr *head = ops->skb_data;
    struct event *event;
    __u8 found[OPTION_MAX] = {KIND};
    __u32 length;
    int n;

    if ((void *)(head + 1) > ops->skb_data_end)
        return;
    length = ops->skb_len - head->doff * 4;
    if (!length)
        return;
    event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
    if (!event) {
        flow->events_lost++;
        return;
    }
    n = bpf_load_hdr_opt(ops, found, sizeof(found), 0);
    event->position = bpf_ntohl(head->seq) - flow->receive_base;
    event->length = length;
    event->option_length = n > 0 ? n : 0;
    __builtin_memcpy(event->option, found, sizeof(found));
    bpf_ringbuf_submit(event, 0);
}

SEC("sockops")
int tcpopt(struct bpf_sock_ops *ops)
{
    struct flow *flow = the_flow();

    if (!flow)
        return 1;
    switch (ops->op) {
    case BPF_SOCK_OPS_TCP_LISTEN_CB:
    case BPF_SOCK_OPS_TCP_CONNECT_CB:
        set_flags(ops, BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
        break;
    case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
        established(ops, flow, 0);
        break;
    case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
        established(ops, flow, BPF_LOAD_HDR_OPT_TCP_SYN);
        break;
    case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
        reserve(ops, flow);
        break;
    case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
        write(ops, flow);
        break;
    case BPF_SOCK_OPS_PARSE_HDR_OPT_CB:
        parse(ops, flow);
        break;
    default:
        break;
    }
    return 1;
}

char _license[] SEC("license") = "Dual BSD/GPL";

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* packet.c - packets to a device with an established MPA connection and one of RDMA/TCP segments: lost, repeated, in
 * any order, with octets of headers and payload changed, checksums and CRCs repaired or not.
 *
 * Input: an octet of the enum below, then what it needs. The other end is a context of ours, too; what it says is what
 * is changed. Nothing beside the memory that the peer may write is ever touched. */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/virtio_net.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rddp/rddp.h>

#include "tcp/io/packet_device.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/crcseg.h"
#include "fuzz/lib/input.h"
#include "tcp/checksum.h"

enum { DEVICES = 2, KINDS = 2, LENGTH = 8192, GUARD = 64, PACKET = 2048, QUEUE = 256, PORT = 700, STEPS = 200 };
enum { V4_HEAD = 20, TCP_HEAD = 20, ROUNDS = 400, RECEIVES = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);
int __wrap_tun_set_up(const char *name, const struct sockaddr *neighbor, uint32_t prefix, uint32_t mtu,
                      unsigned offload, struct tun_before *before);

enum step { SAY_WRITE, SAY_SEND, SAY_READ, COME, CHANGE, LOSE, REPEAT, LAST_FIRST, STEP_KINDS };

struct end {
    struct rddp_context *context;
    struct rddp_event_channel *events;
    struct rddp_device *device;
    struct rddp_pd *pd;
    struct rddp_cq *cq;
    struct rddp_qp *qp[KINDS];
    struct rddp_mr *mr;
    uint8_t memory[GUARD + LENGTH + GUARD];
    int fd; /* the path's end of its device */
};

/* Behind the header of the device. */
struct packet {
    struct virtio_net_hdr note;
    uint8_t octets[PACKET];
    size_t length;
};

static struct end both[DEVICES]; /* 0: the peer, 1: who is under attack */
static struct packet queue[QUEUE];
static uint32_t queued;
static int next_fd;

/* The device is a pair of sockets here, so that the path is ours. */
int __wrap_tun_set_up(const char *name, const struct sockaddr *neighbor, uint32_t prefix, uint32_t mtu,
                      unsigned offload, struct tun_before *before)
{
    (void)name;
    (void)neighbor;
    (void)prefix;
    (void)mtu;
    (void)offload;
    *before = (struct tun_before){0};
    return next_fd;
}

static struct sockaddr_in address(uint32_t host, uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(10U << 24 | host), .sin_port = htons(port)};
}

static void open_end(struct end *end, uint32_t host)
{
    struct sockaddr_in own = address(host, 0), neighbor = address(9, 0);
    struct rddp_context_attr context;
    struct rddp_device_attr device;
    struct rddp_qp_attr qp;
    int fd[2];

    assert(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd));
    next_fd = fd[0];
    end->fd = fd[1];
    rddp_context_attr_init(&context);
    context.manual_progress = true;
    end->context = rddp_open(&context);
    end->events = rddp_create_event_channel(end->context);
    assert(end->events && fcntl(rddp_event_channel_fd(end->events), F_SETFL, O_NONBLOCK) >= 0);
    end->pd = rddp_alloc_pd(end->context);
    end->cq = rddp_create_cq(end->context, 256, NULL, NULL);
    memset(end->memory, 0xee, sizeof(end->memory));
    end->mr = rddp_reg_mr(end->pd, end->memory + GUARD, LENGTH,
                          RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_REMOTE_READ |
                              RDDP_ACCESS_ZERO_BASED);
    rddp_qp_attr_init(&qp);
    qp.send_cq = qp.recv_cq = end->cq;
    for (int i = 0; i < KINDS; i++)
        end->qp[i] = rddp_create_qp(end->pd, &qp);
    rddp_device_attr_init(&device);
    device.address = (struct sockaddr *)&own;
    device.neighbor = (struct sockaddr *)&neighbor;
    device.prefix = 24;
    device.checksums = true; /* so that no packet is larger than the path */
    end->device = rddp_open_device(end->context, &device);
    assert(end->device && end->mr && end->qp[KINDS - 1]);
}

static void close_end(struct end *end)
{
    for (int i = 0; i < KINDS; i++)
        rddp_destroy_qp(end->qp[i]);
    /* No peer is left for which a connection could wait. */
    for (struct packet_link *l = end->device->links; l; l = l->next) {
        utcp_abort(&l->tcp);
        l->gone_us = l->link.owner ? 0 : 1;
        packet_flush(l);
    }
    assert(!rddp_close_device(end->device));
    rddp_dereg_mr(end->mr);
    rddp_destroy_cq(end->cq);
    rddp_destroy_event_channel(end->events);
    rddp_dealloc_pd(end->pd);
    rddp_close(end->context);
    close(end->fd);
}

/* --- the path ------------------------------------------------------------------------------------------------- */

static bool take_packet(int fd, struct packet *p)
{
    struct iovec piece[2] = {{&p->note, sizeof(p->note)}, {p->octets, sizeof(p->octets)}};
    ssize_t n = readv(fd, piece, 2);

    if (n < (ssize_t)sizeof(p->note))
        return false;
    p->length = (size_t)n - sizeof(p->note);
    return true;
}

static void give_packet(int fd, struct packet *p)
{
    struct iovec piece[2] = {{&p->note, sizeof(p->note)}, {p->octets, p->length}};

    (void)!writev(fd, piece, 2); /* a full queue loses it */
}

/* Both ends have a turn; what the peer says waits in the queue. */
static void work(void)
{
    struct packet p;
    struct rddp_wc wc;

    for (int i = 0; i < DEVICES; i++)
        rddp_progress(both[i].context, 0);
    while (take_packet(both[1].fd, &p))
        give_packet(both[0].fd, &p);
    while (queued < QUEUE && take_packet(both[0].fd, &queue[queued]))
        queued++;
    for (int i = 0; i < DEVICES; i++)
        while (rddp_poll_cq(both[i].cq, 1, &wc) > 0)
            ;
}

static void forget_first(void)
{
    if (queued)
        memmove(queue, queue + 1, --queued * sizeof(*queue));
}

static void let_come(uint32_t most)
{
    while (queued && most--) {
        give_packet(both[1].fd, &queue[0]);
        forget_first();
    }
    work();
}

static bool pass_until(struct end *end, enum rddp_event_type type, struct rddp_request **request)
{
    struct rddp_event *event;

    for (int i = 0; i < ROUNDS; i++) {
        let_come(QUEUE);
        while (!rddp_get_event(end->events, &event)) {
            bool came = event->type == type;

            if (request)
                *request = event->request;
            rddp_ack_event(event);
            if (came)
                return true;
        }
    }
    return false;
}

static void connect_ends(int kind)
{
    struct sockaddr_in to = address(2, (uint16_t)(PORT + kind));
    struct rddp_request *request = NULL;
    struct rddp_conn_attr attr;
    struct rddp_listener *listener;

    rddp_conn_attr_init(&attr);
    attr.wire.wire = kind ? RDDP_WIRE_RDMATCP : RDDP_WIRE_IWARP;
    attr.wire.aligned = !kind;
    attr.wire.first_delay_ms = 0;
    attr.wire.close_timeout_ms = 1; /* no peer answers at the end */
    attr.wire.device = both[1].device;
    listener = rddp_listen(both[1].events, (struct sockaddr *)&to, sizeof(to), 1, &attr.wire, NULL);
    attr.wire.device = both[0].device;
    assert(listener && !rddp_connect(both[0].qp[kind], both[0].events, (struct sockaddr *)&to, sizeof(to), &attr));
    assert(pass_until(&both[1], RDDP_EVENT_CONNECT_REQUEST, &request));
    assert(!rddp_accept(request, both[1].qp[kind], NULL));
    assert(pass_until(&both[0], RDDP_EVENT_ESTABLISHED, NULL));
    rddp_destroy_listener(listener);
}

static void receive(struct rddp_qp *qp)
{
    struct rddp_sge sge = {(uint64_t)(uintptr_t)(both[1].memory + GUARD), LENGTH, 0};
    struct rddp_recv_wr wr = {.sg_list = &sge, .num_sge = 1};

    sge.addr = 0; /* the region is zero-based */
    sge.lkey = rddp_mr_key(both[1].mr);
    for (int i = 0; i < RECEIVES; i++)
        (void)rddp_post_recv(qp, &wr, NULL);
}

/* --- what happens --------------------------------------------------------------------------------------------- */

static void say(enum step step, struct input *in)
{
    static const enum rddp_wr_opcode opcodes[] = {RDDP_WR_RDMA_WRITE, RDDP_WR_SEND, RDDP_WR_RDMA_READ};
    struct rddp_sge sge = {.lkey = rddp_mr_key(both[0].mr)};
    struct rddp_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcodes[step - SAY_WRITE]};
    int kind = input8(in) & 1;

    sge.length = input16(in) % (LENGTH + 1);
    wr.remote_addr = input16(in) % LENGTH;
    wr.rkey = rddp_mr_key(both[1].mr);
    if (wr.remote_addr + sge.length > LENGTH)
        sge.length = (uint32_t)(LENGTH - wr.remote_addr);
    (void)rddp_post_send(both[0].qp[kind], &wr, NULL);
}

/* The CRC of an FPDU or a segment that begins the payload. */
static void repair_crc(uint8_t *p, size_t n, bool segment)
{
    size_t octets = n < 4 ? n : ((segment ? (size_t)get16(p + 2) : 2 + (size_t)get16(p)) + 3) & ~(size_t)3;

    if (octets + 4 <= n)
        put32le(p + octets, segment ? crcseg(0, p, octets) : crc32c(0, p, octets));
}

/* Up to seven octets of the first packet are others; 0x80: the CRC is right all the same. */
static void change(struct input *in)
{
    struct packet *p = &queue[0];
    uint8_t how = input8(in), *ip = p->octets;
    struct utcp_sum sum = {0};
    size_t head = V4_HEAD + TCP_HEAD;

    if (!queued || p->length < head)
        return;
    head = V4_HEAD + 4 * (size_t)(ip[V4_HEAD + 12] >> 4);
    for (uint32_t i = 0; i < (how & 7); i++) {
        size_t at = V4_HEAD + 4 + input16(in) % (p->length - V4_HEAD - 4); /* it stays one of this connection */

        ip[at] = input8(in);
    }
    if (how & 0x80 && head < p->length)
        repair_crc(ip + head, p->length - head, get16(ip + V4_HEAD + 2) != PORT);
    if (how & 0x40 && p->length > head + 1) /* shorter than it was */
        p->length = head + 1 + (p->length - head - 1) * (how >> 3 & 7) / 8;
    put16(ip + 2, (uint16_t)p->length);
    put16(ip + 10, 0);
    utcp_sum_add(&sum, ip, V4_HEAD);
    put16(ip + 10, (uint16_t)~utcp_sum_fold(&sum));
    p->note.flags = VIRTIO_NET_HDR_F_DATA_VALID;
    let_come(1);
}

static void step(struct input *in)
{
    enum step what = input8(in) % STEP_KINDS;
    struct packet last;

    if (what <= SAY_READ)
        say(what, in);
    else if (what == COME)
        let_come(1 + input8(in) % 16);
    else if (what == CHANGE)
        change(in);
    else if (what == LOSE)
        forget_first();
    else if (what == REPEAT && queued)
        give_packet(both[1].fd, &queue[0]);
    else if (what == LAST_FIRST && queued) {
        last = queue[queued - 1];
        memmove(queue + 1, queue, (queued - 1) * sizeof(*queue));
        queue[0] = last;
    }
    work();
}

static void check_guards(const struct end *end)
{
    for (int i = 0; i < GUARD; i++)
        assert(end->memory[i] == 0xee && end->memory[GUARD + LENGTH + i] == 0xee);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    struct input in = {data, data + length};

    queued = 0;
    for (uint32_t i = 0; i < DEVICES; i++)
        open_end(&both[i], i + 1);
    for (int kind = 0; kind < KINDS; kind++) {
        connect_ends(kind);
        receive(both[1].qp[kind]);
    }
    for (int i = 0; i < STEPS && input_left(&in); i++)
        step(&in);
    let_come(QUEUE);
    for (int i = 0; i < DEVICES; i++) {
        check_guards(&both[i]);
        close_end(&both[i]);
    }
    return 0;
}

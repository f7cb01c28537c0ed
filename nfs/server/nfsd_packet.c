/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfsd_packet.c - calls over a TCP of our own whose segments can say where data belong (draft-csapuntz-tcprdma-00,
 * section 5.1): the data of a WRITE are placed in buffers that each connection offers, and replies mark the data of a
 * READ. A peer without the option is served like any other. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "nfs/placed.h"
#include "nfs/server/nfsd_tcp.h"
#include "rpc/clock.h"

enum {
    PACKET_OFFERS = 4,    /* buffers for WRITEs of a connection, NFS3_IO_MAX octets each */
    PACKET_OFFERERS = 64, /* connections that may have them: the rest is read as plain octets */
    PACKET_STAGE = 65536, /* plain octets that are read at once */
    PACKET_READS = 32,    /* parts that are read in one turn */
    PACKET_BACKLOG = 32,
};

struct packet_offer {
    uint64_t rid;
    bool taken;
    unsigned users; /* calls whose data it holds */
};

/* What a connection has as a stream. */
struct nfsd_packet {
    struct rddp_stream *stream; /* NULL: closed */
    struct placed_rx rx;
    uint8_t *stage, *offered; /* offered: NULL if it offers no buffers */
    struct packet_offer offer[PACKET_OFFERS];
    const uint8_t *at; /* the part that is next: `left` octets */
    size_t left;
    bool placed, finished;
    uint64_t rid, written, unacked;
    struct nfsd_tcp_call *sent, **sent_last; /* replies that are not acknowledged: their memory is lent */
};

/* --- buffers that are offered ---------------------------------------------------------------------------------- */

static void offer_one(struct nfsd_packet *p, int i)
{
    p->offer[i].taken = false;
    (void)rddp_stream_offer(p->stream, p->offered + (size_t)i * NFS3_IO_MAX, NFS3_IO_MAX);
}

static void packet_open_offers(struct tcp_conn *conn)
{
    struct nfsd_packet *p = conn->packet;
    unsigned offerers = 0;

    for (const struct tcp_conn *c = conn->nfsd->tcp.conns; c; c = c->next)
        offerers += c->packet && c->packet->offered;
    if (offerers >= PACKET_OFFERERS || conn->is_unadmitted || !rddp_stream_has_option(p->stream))
        return;
    p->offered = malloc((size_t)PACKET_OFFERS * NFS3_IO_MAX);
    for (int i = 0; p->offered && i < PACKET_OFFERS; i++)
        offer_one(p, i);
}

/* The buffer that these octets lie in; -1: none. */
static int packet_offer_of(const struct nfsd_packet *p, const void *at)
{
    size_t from = (size_t)((const uint8_t *)at - p->offered);

    if (!p->offered || (const uint8_t *)at < p->offered || from >= (size_t)PACKET_OFFERS * NFS3_IO_MAX)
        return -1;
    return (int)(from / NFS3_IO_MAX);
}

/* Offers the buffers again that hold no data: neither of a call nor of the record that is being received. Parts of
 * later records are not among them: they are not read yet, so their buffers do not count as taken. */
static void packet_renew_offers(struct nfsd_packet *p)
{
    int next = p->left && p->placed ? packet_offer_of(p, p->at) : -1;
    int open = p->rx.item.length ? packet_offer_of(p, p->rx.item.data) : -1;

    for (int i = 0; i < PACKET_OFFERS && p->stream; i++) {
        if (!p->offer[i].taken || p->offer[i].users || i == next || i == open)
            continue;
        (void)rddp_stream_forget(p->stream, p->offer[i].rid);
        offer_one(p, i);
    }
}

/* --- reading --------------------------------------------------------------------------------------------------- */

/* Gets the next part of the stream. 1, 0: nothing has come, or a negative errno; -ENODATA: the peer has finished. */
static int packet_look(struct tcp_conn *conn)
{
    struct nfsd_packet *p = conn->packet;
    struct rddp_stream_record record;
    int got = p->left ? 1 : rddp_stream_read(p->stream, p->stage, PACKET_STAGE, &record), offer;

    if (p->left || got <= 0)
        return got;
    if (record.kind == RDDP_STREAM_FINISH)
        return -ENODATA;
    conn->moved_ms = clock_ms();
    p->placed = record.kind == RDDP_STREAM_PLACED;
    p->at = p->placed ? record.at : p->stage;
    p->left = record.length;
    p->rid = record.rid;
    offer = p->placed ? packet_offer_of(p, p->at) : -1;
    if (offer >= 0) {
        p->offer[offer].taken = true;
        p->offer[offer].rid = record.rid;
    }
    return 1;
}

static bool packet_take_record(struct tcp_conn *conn)
{
    struct nfsd_packet *p = conn->packet;
    struct stream_item item;
    size_t length;
    uint8_t *record = placed_take(&p->rx, &length, &item);
    int offer = record && item.length ? packet_offer_of(p, item.data) : -1;
    bool good;

    if (offer >= 0)
        p->offer[offer].users++;
    good = record && nfstcp_call(conn, record, length, &item, offer);
    if (good)
        atomic_fetch_add(&conn->nfsd->counters.placed_octets, item.length);
    if (offer >= 0 && !good)
        p->offer[offer].users--;
    packet_renew_offers(p);
    return good;
}

static void nfsd_packet_read(struct tcp_conn *conn)
{
    struct nfsd_packet *p = conn->packet;
    int error = 0;

    for (int i = 0; i < PACKET_READS && !conn->over && nfstcp_may_call(conn); i++) {
        size_t eaten;
        int got = packet_look(conn);

        if (got == 0)
            return;
        if (got == -ENODATA)
            conn->over = true;
        if (got < 0)
            error = got == -ENODATA ? 0 : got;
        else if (p->placed)
            error = placed_eat(&p->rx, p->at, p->left, p->rid, &eaten);
        else
            error = record_eat(&p->rx.rx, p->at, p->left, &eaten);
        if (got > 0) {
            p->at += eaten;
            p->left -= eaten;
        }
        if (error < 0 || (error > 0 && !packet_take_record(conn))) {
            nfstcp_close(conn);
            return;
        }
    }
}

static bool packet_is_open(const struct tcp_conn *conn)
{
    return record_is_open(&conn->packet->rx.rx);
}

/* --- sending --------------------------------------------------------------------------------------------------- */

static bool is_read(const struct nfsd_job *job)
{
    return job->call.program == NFS_PROGRAM && job->call.procedure == NFS3_READ && job->reply.result == RPC_SUCCESS;
}

/* 5.1.2: a READ without data announces a transfer of no octets. The option lies on the segment with the octets behind.
 */
static int packet_announce_none(struct nfsd_packet *p, struct nfsd_tcp_call *call)
{
    const struct rddp_stream_mark mark = {.rid = rddp_rid_nfs(call->job.call.xid, 0), .has_total = true};
    bool has_data = call->job.datas && call->job.data.length;
    int error = 0;

    if (!call->announced && call->sent && is_read(&call->job) && !has_data)
        error = rddp_stream_write(p->stream, NULL, 0, RDDP_STREAM_MORE, &mark);
    call->announced |= call->sent && !error;
    return error;
}

/* Writes a reply as far as pieces are free. 5.1.2: the data of a READ are never marked as unsolicited. */
static int packet_write_reply(struct nfsd_packet *p, struct nfsd_tcp_call *call)
{
    struct nfsd_job *job = &call->job;
    struct rddp_stream_mark mark = {.rid = rddp_rid_nfs(job->call.xid, 0), .has_total = true};
    struct iovec iov[NFSTCP_PIECES];
    int n = nfstcp_pieces(call, iov), error = 0;

    mark.total = job->datas ? job->data.length : 0;
    for (int i = 0; i < n && !error; i++) {
        bool data = job->datas && job->data.length && iov[i].iov_base == job->data.data;
        unsigned flags = (call->sent ? 0U : RDDP_STREAM_MESSAGE) | (i + 1 == n ? 0U : RDDP_STREAM_MORE);

        error = packet_announce_none(p, call);
        if (!error)
            error = rddp_stream_write(p->stream, iov[i].iov_base, iov[i].iov_len, flags, data ? &mark : NULL);
        if (!error) {
            call->sent += iov[i].iov_len;
            p->written += iov[i].iov_len;
        }
    }
    return error;
}

static bool packet_send(struct tcp_conn *conn)
{
    struct nfsd_packet *p = conn->packet;

    conn->blocked = false;
    while (conn->out) {
        struct nfsd_tcp_call *call = conn->out;
        int error = packet_write_reply(p, call);

        if (error == -EAGAIN) {
            conn->blocked = true;
            return true;
        }
        if (error)
            return false;
        conn->out = call->next;
        conn->outs--;
        if (!conn->out)
            conn->out_last = &conn->out;
        call->end = p->written;
        call->next = NULL;
        *p->sent_last = call;
        p->sent_last = &call->next;
    }
    return true;
}

/* Ends the calls whose replies have arrived. */
static void packet_reap(struct tcp_conn *conn)
{
    struct nfsd_packet *p = conn->packet;
    uint64_t unacked = rddp_stream_unacked(p->stream), acked = p->written - unacked;

    if (unacked != p->unacked)
        conn->moved_ms = clock_ms();
    p->unacked = unacked;
    while (p->sent && p->sent->end <= acked) {
        struct nfsd_tcp_call *call = p->sent;

        p->sent = call->next;
        if (!p->sent)
            p->sent_last = &p->sent;
        nfstcp_end_call(call);
    }
}

static bool packet_waits(const struct tcp_conn *conn)
{
    return conn->packet->sent || conn->packet->finished;
}

/* --- the end --------------------------------------------------------------------------------------------------- */

static void packet_end_call(struct nfsd_tcp_call *call)
{
    struct nfsd_packet *p = call->conn->packet;

    if (call->offer >= 0 && !--p->offer[call->offer].users && p->stream)
        packet_renew_offers(p);
}

static void nfsd_packet_close(struct tcp_conn *conn)
{
    struct nfsd_packet *p = conn->packet;

    /* From here on nothing is sent from the memory of replies, and nothing is placed. */
    rddp_stream_close(p->stream);
    p->stream = NULL;
    record_fini(&p->rx.rx);
    while (p->sent) {
        struct nfsd_tcp_call *call = p->sent;

        p->sent = call->next;
        nfstcp_end_call(call);
    }
}

static void packet_free(struct tcp_conn *conn)
{
    free(conn->packet->stage);
    free(conn->packet->offered);
    free(conn->packet);
}

static const struct stream_ops packet_ops = {.send = packet_send,
                                             .close = nfsd_packet_close,
                                             .free = packet_free,
                                             .end_call = packet_end_call,
                                             .is_open = packet_is_open,
                                             .waits = packet_waits};

/* The peer has finished, and all its calls are answered: finish, too, and wait for its acknowledgement. */
static void packet_end(struct tcp_conn *conn)
{
    struct nfsd_packet *p = conn->packet;
    int state = rddp_stream_state(p->stream);

    if (!p->finished && rddp_stream_finish(p->stream) == 0) {
        p->finished = true;
        conn->moved_ms = clock_ms();
    } else if (state < 0 || state == RDDP_STREAM_ENDED) {
        nfstcp_close(conn);
    }
}

/* --- turns ----------------------------------------------------------------------------------------------------- */

static bool packet_accept(struct nfsd *d)
{
    struct rddp_stream *stream = rddp_stream_accept(d->attr.net);
    struct sockaddr_storage peer;
    struct nfsd_packet *p;
    struct tcp_conn *conn;

    if (!stream)
        return false;
    rddp_stream_peer(stream, &peer);
    p = calloc(1, sizeof(*p));
    if (p)
        p->stage = malloc(PACKET_STAGE);
    conn = p && p->stage ? nfstcp_add(d, d->packets.fd, &peer) : NULL;
    if (!conn) {
        rddp_stream_close(stream);
        if (p)
            free(p->stage);
        free(p);
        return true;
    }
    p->stream = stream;
    p->rx.rx.max = conn->rx.max;
    p->sent_last = &p->sent;
    conn->packet = p;
    conn->stream = &packet_ops;
    packet_open_offers(conn);
    return true;
}

static void packet_turn_conn(struct tcp_conn *conn)
{
    packet_reap(conn);
    if (conn->out && !packet_send(conn)) {
        nfstcp_close(conn);
        return;
    }
    if (!conn->nfsd->stopping)
        nfsd_packet_read(conn);
    if (conn->source.fd >= 0 && conn->over && !conn->owner.jobs)
        packet_end(conn);
}

void nfspacket_turn(struct nfsd *d)
{
    if (!d->attr.net)
        return;
    rddp_stream_progress(d->attr.net, 0);
    while (!d->stopping && packet_accept(d))
        ;
    for (struct tcp_conn *conn = d->tcp.conns; conn; conn = conn->next)
        if (conn->packet && conn->source.fd >= 0)
            packet_turn_conn(conn);
}

/* nfspacket_turn() does the work, in each turn. */
static void nfsd_packet_ready(struct nfsd *d, struct source *source, uint32_t events)
{
    (void)d;
    (void)source;
    (void)events;
}

int nfspacket_listen(struct nfsd *d)
{
    int error = 0;

    if (d->tcp_port > 0)
        error = rddp_stream_listen(d->attr.net, (uint16_t)d->tcp_port, PACKET_BACKLOG);
    if (!error && d->mount_port > 0 && d->mount_port != d->tcp_port)
        error = rddp_stream_listen(d->attr.net, (uint16_t)d->mount_port, PACKET_BACKLOG);
    d->packets = (struct source){.ready = nfsd_packet_ready, .fd = rddp_stream_net_fd(d->attr.net)};
    return error ? error : source_watch(d, &d->packets, EPOLLIN);
}

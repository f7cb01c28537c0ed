/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* keep.c - `keep server ADDRESS [srq]` has memory; `keep client ADDRESS` writes into it, flushes, tells so by immediate
 * data, and reads back what the server has made of it: by librpma, which is made for remote persistent memory. */
#include <librpma.h>

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 1 << 20, PIECE = 1 << 16, PIECES = SIZE / PIECE, LINE = 64, WRITTEN = 4711 };

static const char port[] = "7204";
static uint8_t memory[SIZE], back[SIZE];

/* What a server offers with its answer. */
struct offer {
    uint8_t length;
    uint8_t descriptor[40];
};

static void check(int error, const char *what)
{
    if (!error)
        return;
    fprintf(stderr, "%s: %s\n", what, rpma_err_2str(error));
    exit(1);
}

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static uint8_t octet(size_t at)
{
    return (uint8_t)(at * 7 + at / 4096);
}

/* What the server makes of it. */
static uint8_t turned(size_t at)
{
    return octet(at) ^ UINT8_MAX;
}

static struct rpma_peer *peer_of(const char *address, enum rpma_util_ibv_context_type type)
{
    struct ibv_context *context;
    struct rpma_peer *peer;

    check(rpma_utils_get_ibv_context(address, type, &context), "rpma_utils_get_ibv_context");
    check(rpma_peer_new(context, &peer), "rpma_peer_new");
    return peer;
}

static struct rpma_conn_cfg *cfg_of(struct rpma_srq *srq)
{
    struct rpma_conn_cfg *cfg;

    check(rpma_conn_cfg_new(&cfg), "rpma_conn_cfg_new");
    check(rpma_conn_cfg_set_sq_size(cfg, 2 * PIECES), "rpma_conn_cfg_set_sq_size");
    check(rpma_conn_cfg_set_cq_size(cfg, 2 * PIECES), "rpma_conn_cfg_set_cq_size");
    check(rpma_conn_cfg_set_rcq_size(cfg, PIECES), "rpma_conn_cfg_set_rcq_size");
    check(rpma_conn_cfg_set_rq_size(cfg, PIECES), "rpma_conn_cfg_set_rq_size");
    if (srq)
        check(rpma_conn_cfg_set_srq(cfg, srq), "rpma_conn_cfg_set_srq");
    return cfg;
}

static void await_event(struct rpma_conn *conn, enum rpma_conn_event wanted)
{
    enum rpma_conn_event event;

    check(rpma_conn_next_event(conn, &event), "rpma_conn_next_event");
    if (event != wanted)
        fail(rpma_utils_conn_event_2str(event));
}

static struct ibv_wc await_completion(struct rpma_cq *cq)
{
    struct ibv_wc wc;
    int error;

    while ((error = rpma_cq_get_wc(cq, 1, &wc, NULL)) == RPMA_E_NO_COMPLETION)
        check(rpma_cq_wait(cq), "rpma_cq_wait");
    check(error, "rpma_cq_get_wc");
    if (wc.status)
        fail(ibv_wc_status_str(wc.status));
    return wc;
}

static struct rpma_cq *receives_of(struct rpma_conn *conn, struct rpma_srq *srq)
{
    struct rpma_cq *cq = NULL;

    check(srq ? rpma_srq_get_rcq(srq, &cq) : rpma_conn_get_rcq(conn, &cq), "receives");
    return cq;
}

static struct rpma_mr_local *region_of(struct rpma_peer *peer, uint8_t *octets, int usage)
{
    struct rpma_mr_local *region;

    check(rpma_mr_reg(peer, octets, SIZE, usage, &region), "rpma_mr_reg");
    return region;
}

static void serve(const char *address, bool has_srq)
{
    struct rpma_peer *peer = peer_of(address, RPMA_UTIL_IBV_CONTEXT_LOCAL);
    struct rpma_mr_local *region = region_of(peer, memory,
                                             RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_RECV |
                                                 RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY);
    struct rpma_conn_private_data data;
    struct rpma_srq *srq = NULL;
    struct rpma_conn_req *request;
    struct rpma_conn_cfg *cfg;
    struct rpma_conn *conn;
    struct rpma_ep *listener;
    struct offer offer;
    struct ibv_wc wc;
    size_t length;

    check(rpma_ep_listen(peer, address, port, &listener), "rpma_ep_listen");
    if (has_srq)
        check(rpma_srq_new(peer, NULL, &srq), "rpma_srq_new");
    cfg = cfg_of(srq);
    check(rpma_ep_next_conn_req(listener, cfg, &request), "rpma_ep_next_conn_req");
    check(srq ? rpma_srq_recv(srq, region, 0, LINE, NULL) : rpma_conn_req_recv(request, region, 0, LINE, NULL), "recv");
    check(rpma_mr_get_descriptor_size(region, &length), "rpma_mr_get_descriptor_size");
    if (length > sizeof(offer.descriptor))
        fail("a long descriptor");
    offer.length = (uint8_t)length;
    check(rpma_mr_get_descriptor(region, offer.descriptor), "rpma_mr_get_descriptor");
    data = (struct rpma_conn_private_data){.ptr = &offer, .len = sizeof(offer)};
    check(rpma_conn_req_connect(&request, &data, &conn), "rpma_conn_req_connect");
    await_event(conn, RPMA_CONN_ESTABLISHED);

    wc = await_completion(receives_of(conn, srq));
    if (!(wc.wc_flags & IBV_WC_WITH_IMM) || wc.imm_data != htonl(WRITTEN) || wc.byte_len != LINE)
        fail("other immediate data, or another length");
    for (size_t i = 0; i < SIZE; i++) {
        if (memory[i] != octet(i))
            fail("other octets were written");
        memory[i] = turned(i);
    }
    check(rpma_send(conn, region, 0, LINE, RPMA_F_COMPLETION_ALWAYS, NULL), "rpma_send");
    await_event(conn, RPMA_CONN_CLOSED);
    check(rpma_conn_disconnect(conn), "rpma_conn_disconnect");
    check(rpma_conn_delete(&conn), "rpma_conn_delete");
    check(rpma_conn_cfg_delete(&cfg), "rpma_conn_cfg_delete");
    if (srq)
        check(rpma_srq_delete(&srq), "rpma_srq_delete");
    check(rpma_ep_shutdown(&listener), "rpma_ep_shutdown");
    check(rpma_mr_dereg(&region), "rpma_mr_dereg");
    check(rpma_peer_delete(&peer), "rpma_peer_delete");
}

static struct rpma_mr_remote *what_is_offered(const struct rpma_conn *conn)
{
    struct rpma_conn_private_data data;
    struct rpma_mr_remote *remote;
    const struct offer *offer;
    int flushes;

    check(rpma_conn_get_private_data(conn, &data), "rpma_conn_get_private_data");
    if (data.len < sizeof(*offer))
        fail("no offer");
    offer = data.ptr;
    check(rpma_mr_remote_from_descriptor(offer->descriptor, offer->length, &remote), "rpma_mr_remote_from_descriptor");
    check(rpma_mr_remote_get_flush_type(remote, &flushes), "rpma_mr_remote_get_flush_type");
    if (!(flushes & RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY))
        fail("no flush");
    return remote;
}

/* All but the last line, and 8 octets of them by an atomic Write; that line with immediate data. */
static void write_all(struct rpma_conn *conn, struct rpma_mr_remote *remote, const struct rpma_mr_local *local)
{
    static const struct rpma_conn *flushed, *told;
    struct rpma_cq *cq;

    check(rpma_conn_get_cq(conn, &cq), "rpma_conn_get_cq");
    for (size_t at = 0; at < SIZE; at += PIECE)
        check(rpma_write(conn, remote, at, local, at, at + PIECE < SIZE ? PIECE : PIECE - LINE,
                         RPMA_F_COMPLETION_ON_ERROR, NULL),
              "rpma_write");
    check(rpma_atomic_write(conn, remote, 0, (const char *)memory, RPMA_F_COMPLETION_ON_ERROR, NULL),
          "rpma_atomic_write");
    check(rpma_flush(conn, remote, 0, SIZE, RPMA_FLUSH_TYPE_VISIBILITY, RPMA_F_COMPLETION_ALWAYS, &flushed),
          "rpma_flush");
    check(rpma_write_with_imm(conn, remote, SIZE - LINE, local, SIZE - LINE, LINE, RPMA_F_COMPLETION_ALWAYS, WRITTEN,
                              &told),
          "rpma_write_with_imm");
    if (await_completion(cq).wr_id != (uintptr_t)&flushed || await_completion(cq).wr_id != (uintptr_t)&told)
        fail("completions are not in order");
}

static void read_all(struct rpma_conn *conn, const struct rpma_mr_remote *remote, struct rpma_mr_local *local)
{
    struct rpma_cq *cq;

    check(rpma_conn_get_cq(conn, &cq), "rpma_conn_get_cq");
    memset(back, 0, SIZE);
    for (size_t at = 0; at < SIZE; at += PIECE)
        check(rpma_read(conn, local, at, remote, at, PIECE, RPMA_F_COMPLETION_ALWAYS, NULL), "rpma_read");
    for (int i = 0; i < PIECES; i++)
        await_completion(cq);
    for (size_t i = 0; i < SIZE; i++)
        if (back[i] != turned(i))
            fail("other octets were read");
}

static void use(const char *address)
{
    struct rpma_peer *peer = peer_of(address, RPMA_UTIL_IBV_CONTEXT_REMOTE);
    struct rpma_mr_local *from = region_of(peer, memory, RPMA_MR_USAGE_WRITE_SRC);
    struct rpma_mr_local *to = region_of(peer, back, RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_RECV);
    struct rpma_conn_cfg *cfg = cfg_of(NULL);
    struct rpma_conn_req *request;
    struct rpma_mr_remote *remote;
    struct rpma_conn *conn;

    for (size_t i = 0; i < SIZE; i++)
        memory[i] = octet(i);
    check(rpma_conn_req_new(peer, address, port, cfg, &request), "rpma_conn_req_new");
    check(rpma_conn_req_recv(request, to, 0, LINE, NULL), "rpma_conn_req_recv");
    check(rpma_conn_req_connect(&request, NULL, &conn), "rpma_conn_req_connect");
    await_event(conn, RPMA_CONN_ESTABLISHED);
    remote = what_is_offered(conn);
    write_all(conn, remote, from);
    if (await_completion(receives_of(conn, NULL)).byte_len != LINE || back[LINE - 1] != turned(LINE - 1))
        fail("another answer");
    read_all(conn, remote, to);
    check(rpma_mr_remote_delete(&remote), "rpma_mr_remote_delete");
    check(rpma_conn_disconnect(conn), "rpma_conn_disconnect");
    await_event(conn, RPMA_CONN_CLOSED);
    check(rpma_conn_delete(&conn), "rpma_conn_delete");
    check(rpma_conn_cfg_delete(&cfg), "rpma_conn_cfg_delete");
    check(rpma_mr_dereg(&to), "rpma_mr_dereg");
    check(rpma_mr_dereg(&from), "rpma_mr_dereg");
    check(rpma_peer_delete(&peer), "rpma_peer_delete");
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    if (!strcmp(argv[1], "server"))
        serve(argv[2], argc > 3);
    else
        use(argv[2]);
    puts("every octet is right");
    return 0;
}

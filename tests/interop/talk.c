/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* talk.c - runs a fixed conversation over each kind of connection and prints what tshark must see of it on the wire. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <rddp/rddp.h>

#include "tests/interop/lib/say.h"

enum {
    BUFFER = 256 << 10,
    SMALL = 4096, /* octets of each region with restricted rights */
    WAIT_S = 10,
    CLIENT_IRD = 8,
    CLIENT_ORD = 4,
    SERVER_IRD = 16,
    SERVER_ORD = 16,
};

/* How a connection ends: the client closes it, breaks a rule and gets a Terminate, or is rejected. */
enum end {
    END_CLOSE,
    END_REJECT,
    END_KEY,
    END_BOUNDS,
    END_WRAP,
    END_RIGHT,
    END_NO_RECEIVE,
    END_TOO_LONG,
    END_INVALIDATE
};

static const struct row {
    const char *name;
    uint8_t revision;
    bool crc, client_markers, server_markers;
    unsigned rtr; /* not 0: peer-to-peer mode with this ready-to-receive message */
    enum end end;
} rows[] = {
    {"revision 1, no CRC", 1, false, false, false, 0, END_CLOSE},
    {"revision 1, CRC", 1, true, false, false, 0, END_BOUNDS},
    {"revision 2, no CRC", 2, false, false, false, 0, END_RIGHT},
    {"revision 2, CRC", 2, true, false, false, 0, END_INVALIDATE},
    {"markers to the client", 1, true, true, false, 0, END_KEY},
    {"markers to the server", 2, true, false, true, 0, END_NO_RECEIVE},
    {"markers both ways", 2, true, true, true, 0, END_TOO_LONG},
    {"markers both ways, no CRC", 1, false, true, true, 0, END_WRAP},
    {"peer to peer by Write", 2, true, false, false, RDDP_RTR_WRITE, END_CLOSE},
    {"peer to peer by Send", 2, true, false, false, RDDP_RTR_SEND, END_RIGHT},
    {"peer to peer by Read, markers", 2, true, true, true, RDDP_RTR_READ, END_CLOSE},
    {"rejected", 2, true, false, false, 0, END_REJECT},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

struct side {
    struct stream stream; /* what this side sends */
    struct rddp_pd *pd;
    struct rddp_cq *cq;
    struct rddp_qp *qp;
    struct rddp_mr *all, *little, *victim; /* all has every right, little no remote one; the peer invalidates victim */
    uint8_t buffer[BUFFER];
};

static struct side client, server;
static unsigned row_number;
static uint32_t longest; /* longest message of this row */

/* --- help ---------------------------------------------------------------------------------------------------- */

_Noreturn static void give_up(const char *what)
{
    fprintf(stderr, "talk: %s: %s\n", rows[row_number].name, what);
    exit(1);
}

static void *check(void *object, const char *what)
{
    if (!object)
        give_up(what);
    return object;
}

static void must(int result, const char *what)
{
    if (result)
        give_up(what);
}

/* Checks that the next completion has this opcode. */
static void expect(struct side *side, enum rddp_wc_opcode opcode)
{
    time_t until = time(NULL) + WAIT_S;
    struct rddp_wc wc;
    int n;

    while ((n = rddp_poll_cq(side->cq, 1, &wc)) == 0)
        if (time(NULL) > until)
            give_up("no completion");
    must(n != 1, "the completion queue has overflown");
    must((int)wc.status, rddp_wc_status_str(wc.status));
    must(wc.opcode != opcode, "a completion out of order");
}

/* --- messages ------------------------------------------------------------------------------------------------ */

static struct rddp_sge piece(struct side *side, uint32_t at, uint32_t length)
{
    return (struct rddp_sge){(uintptr_t)side->buffer + at, length < longest ? length : longest, rddp_mr_key(side->all)};
}

static void receive(struct side *side, uint32_t length)
{
    struct rddp_sge sge = piece(side, 0, length);
    struct rddp_recv_wr wr = {.sg_list = &sge, .num_sge = 1};

    must(rddp_post_recv(side->qp, &wr, NULL), "rddp_post_recv");
}

static void post(struct side *from, struct rddp_send_wr *wr)
{
    wr->send_flags |= RDDP_SEND_SIGNALED;
    must(rddp_post_send(from->qp, wr, NULL), "rddp_post_send");
}

static void write_to(struct side *from, struct side *to, uint32_t at, uint32_t length)
{
    struct rddp_sge sge = piece(from, 2 * at, length);
    struct rddp_send_wr wr = {.opcode = RDDP_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1};

    wr.rkey = rddp_mr_key(to->all);
    wr.remote_addr = rddp_mr_offset(to->all, to->buffer + at);
    say_write(&from->stream, wr.rkey, wr.remote_addr, from->buffer + 2 * at, sge.length);
    post(from, &wr);
    expect(from, RDDP_WC_RDMA_WRITE);
}

static void read_from(struct side *from, struct side *to, uint32_t at, uint32_t length)
{
    struct rddp_sge sink = piece(from, at + 1, length);
    struct rddp_send_wr wr = {.opcode = RDDP_WR_RDMA_READ, .sg_list = &sink, .num_sge = 1};

    wr.rkey = rddp_mr_key(to->all);
    wr.remote_addr = rddp_mr_offset(to->all, to->buffer + at);
    say_read_request(&from->stream, &sink, wr.rkey, wr.remote_addr);
    post(from, &wr);
    expect(from, RDDP_WC_RDMA_READ);
    say_read_response(&to->stream, &sink, to->buffer + at); /* every earlier Write is placed at the peer by now */
}

/* `opcode` is the RDMAP opcode of RFC 5040 figure 4. */
static void send_to(struct side *from, struct side *to, unsigned opcode, uint32_t length)
{
    struct rddp_sge sge = piece(from, 0, length);
    struct rddp_send_wr wr = {.opcode = RDDP_WR_SEND, .sg_list = &sge, .num_sge = 1};

    if (opcode == 4 || opcode == 6) {
        wr.opcode = RDDP_WR_SEND_WITH_INV;
        wr.invalidate_rkey = rddp_mr_key(to->victim);
    }
    if (opcode >= 5)
        wr.send_flags = RDDP_SEND_SOLICITED;
    say_send(&from->stream, opcode, wr.invalidate_rkey, from->buffer, sge.length);
    receive(to, sge.length);
    post(from, &wr);
    expect(from, RDDP_WC_SEND);
    expect(to, RDDP_WC_RECV);
}

static struct rddp_mr *region(struct side *side, size_t length, unsigned access)
{
    return check(rddp_reg_mr(side->pd, side->buffer, length, access), "rddp_reg_mr");
}

static void send_invalidating(struct side *from, struct side *to, unsigned opcode, uint32_t length)
{
    to->victim = region(to, SMALL, RDDP_ACCESS_REMOTE_READ);
    send_to(from, to, opcode, length);
    if (rddp_mr_is_valid(to->victim))
        give_up("a region outlived its invalidation");
    must(rddp_dereg_mr(to->victim), "rddp_dereg_mr");
}

/* Sends messages of no octets to many segments, with every pad length. It sends one message at a time, so that the
 * lines are in order. */
static void converse(void)
{
    send_to(&client, &server, 3, 1000);
    send_to(&server, &client, 3, 1);
    send_to(&client, &server, 3, 5001);
    send_to(&client, &server, 5, 0);
    write_to(&client, &server, 3, 1);
    write_to(&client, &server, 0, 0);
    write_to(&client, &server, 4097, 10002);
    read_from(&client, &server, 99, 9003);
    read_from(&client, &server, 0, 0);
    send_invalidating(&client, &server, 4, 700);
    write_to(&server, &client, 8, 7000);
    read_from(&server, &client, 16, 2000);
    send_invalidating(&server, &client, 6, 3000);
    write_to(&client, &server, 1, 200001);
    send_to(&client, &server, 3, 17);
    send_to(&server, &client, 5, 100003);
}

/* --- the end ------------------------------------------------------------------------------------------------- */

static struct rddp_event next_event(struct rddp_event_channel *events)
{
    struct rddp_event *event, copy;

    must(rddp_get_event(events, &event), "rddp_get_event");
    copy = *event;
    rddp_ack_event(event);
    return copy;
}

static void wait_for_end(struct rddp_event_channel *events, unsigned terminate)
{
    struct rddp_qp_info info;

    for (int ended = 0; ended < 2;)
        ended += next_event(events).type == RDDP_EVENT_DISCONNECTED;
    must(rddp_query_qp(client.qp, &info), "rddp_query_qp");
    if (info.terminate != terminate)
        give_up("another Terminate than expected");
}

static void wrong_write(enum end end, unsigned code)
{
    struct rddp_sge sge = piece(&client, 0, 100);
    struct rddp_send_wr wr = {.opcode = RDDP_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1};
    char ddp[64];

    wr.rkey = rddp_mr_key(server.all) ^ (end == END_KEY);
    wr.remote_addr = rddp_mr_offset(server.all, server.buffer) + BUFFER - 99;
    if (end == END_WRAP)
        wr.remote_addr = UINT64_MAX - 50;
    say_write(&client.stream, wr.rkey, wr.remote_addr, client.buffer, sge.length);
    snprintf(ddp, sizeof(ddp), "c140%08x%016" PRIx64, wr.rkey, wr.remote_addr);
    say_terminate(&server.stream, code, 14 + sge.length, ddp, "");
    post(&client, &wr);
}

static void wrong_read(unsigned code)
{
    struct rddp_sge sink = piece(&client, 5, 50);
    struct rddp_send_wr wr = {.opcode = RDDP_WR_RDMA_READ, .sg_list = &sink, .num_sge = 1};
    char ddp[64], rdma[64];

    wr.rkey = rddp_mr_key(server.little);
    wr.remote_addr = rddp_mr_offset(server.little, server.buffer);
    say_read_request(&client.stream, &sink, wr.rkey, wr.remote_addr);
    snprintf(ddp, sizeof(ddp), "414100000000%08x%08x%08x", 1, client.stream.reads, 0);
    snprintf(rdma, sizeof(rdma), "%08x%016" PRIx64 "%08x%08x%016" PRIx64, sink.lkey, sink.addr, sink.length, wr.rkey,
             wr.remote_addr);
    say_terminate(&server.stream, code, 18 + 28, ddp, rdma);
    post(&client, &wr);
}

static void wrong_send(enum end end, unsigned code)
{
    struct rddp_sge sge = piece(&client, 0, 100);
    struct rddp_send_wr wr = {.opcode = RDDP_WR_SEND, .sg_list = &sge, .num_sge = 1};
    unsigned opcode = 3;
    char ddp[64];

    if (end == END_INVALIDATE) {
        opcode = 4;
        wr.opcode = RDDP_WR_SEND_WITH_INV;
        wr.invalidate_rkey = rddp_mr_key(server.little) ^ 1;
    }
    if (end != END_NO_RECEIVE)
        receive(&server, sge.length - (end == END_TOO_LONG));
    say_send(&client.stream, opcode, wr.invalidate_rkey, client.buffer, sge.length);
    snprintf(ddp, sizeof(ddp), "41%02x%08x%08x%08x%08x", 0x40 | opcode, wr.invalidate_rkey, 0, client.stream.sends, 0);
    say_terminate(&server.stream, code, 18 + sge.length, ddp, "");
    post(&client, &wr);
}

/* The codes are those of RFC 5041 7.2 and RFC 5040 figure 9, in the form 0xLTCC. */
static void finish(const struct row *row, struct rddp_event_channel *events)
{
    static const unsigned codes[] = {
        [END_CLOSE] = 0,           [END_KEY] = 0x1100,      [END_BOUNDS] = 0x1101,     [END_WRAP] = 0x1103,
        [END_NO_RECEIVE] = 0x1202, [END_TOO_LONG] = 0x1205, [END_INVALIDATE] = 0x0109, [END_RIGHT] = 0x0102,
    };
    unsigned code = codes[row->end];

    switch (row->end) {
    case END_REJECT: /* a rejected connection was never established */
        return;
    case END_CLOSE:
        must(rddp_disconnect(client.qp), "rddp_disconnect");
        break;
    case END_KEY:
    case END_BOUNDS:
    case END_WRAP:
        wrong_write(row->end, code);
        break;
    case END_RIGHT:
        wrong_read(code);
        break;
    case END_NO_RECEIVE:
    case END_TOO_LONG:
    case END_INVALIDATE:
        wrong_send(row->end, code);
        break;
    }
    wait_for_end(events, code);
}

/* --- a row --------------------------------------------------------------------------------------------------- */

static void open_side(struct side *side, struct rddp_context *context, struct rddp_pd *pd)
{
    struct rddp_qp_attr attr;

    side->pd = pd;
    side->cq = check(rddp_create_cq(context, 64, NULL, NULL), "rddp_create_cq");
    rddp_qp_attr_init(&attr);
    attr.send_cq = attr.recv_cq = side->cq;
    side->qp = check(rddp_create_qp(pd, &attr), "rddp_create_qp");
    side->all = region(side, BUFFER, RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_REMOTE_READ);
    side->little = region(side, SMALL, RDDP_ACCESS_LOCAL_WRITE);
    for (uint32_t i = 0; i < BUFFER; i++)
        side->buffer[i] = (uint8_t)((i * 2654435761U >> 24) + (side == &server));
}

static void close_side(struct side *side)
{
    must(rddp_destroy_qp(side->qp), "rddp_destroy_qp");
    must(rddp_destroy_cq(side->cq), "rddp_destroy_cq");
    must(rddp_dereg_mr(side->all), "rddp_dereg_mr");
    must(rddp_dereg_mr(side->little), "rddp_dereg_mr");
}

static struct rddp_conn_attr conn_attr(const struct row *row, bool is_client)
{
    struct rddp_conn_attr attr;

    rddp_conn_attr_init(&attr);
    attr.wire.crc = row->crc;
    attr.wire.markers = is_client ? row->client_markers : row->server_markers;
    attr.wire.mpa_revision = row->revision;
    attr.wire.peer_to_peer = row->rtr != 0;
    attr.wire.rtr = row->rtr ? row->rtr : attr.wire.rtr;
    attr.ird = is_client ? CLIENT_IRD : SERVER_IRD;
    attr.ord = is_client ? CLIENT_ORD : SERVER_ORD;
    attr.private_data = is_client ? "hello" : "welcome";
    attr.private_data_length = is_client ? 5 : 7;
    return attr;
}

/* RFC 6581 6: bit A stands above IRD, bit B means a Send, and bits C and D above ORD mean a Write and a Read. The
 * server could use a larger ORD, so its ORD is what the client can take. A rejection offers nothing. */
static void say_starts(const struct row *row)
{
    uint16_t a_b = (uint16_t)((row->rtr ? 0x8000 : 0) | (row->rtr & RDDP_RTR_SEND ? 0x4000 : 0));
    uint16_t c_d = (uint16_t)((row->rtr & RDDP_RTR_WRITE ? 0x8000 : 0) | (row->rtr & RDDP_RTR_READ ? 0x4000 : 0));
    struct start request = {
        .markers = row->client_markers,
        .crc = row->crc,
        .revision = row->revision,
        .ird = CLIENT_IRD | a_b,
        .ord = CLIENT_ORD | c_d,
        .private_data = "hello",
    };
    struct start reply = {
        .reply = true,
        .markers = row->server_markers,
        .crc = row->crc,
        .revision = row->revision,
        .ird = SERVER_IRD | a_b,
        .ord = CLIENT_IRD | c_d,
        .private_data = "welcome",
    };

    if (row->end == END_REJECT) {
        reply.reject = true;
        reply.ird = reply.ord = 0;
        reply.private_data = "no";
    }
    say_start(&client.stream, &request);
    say_start(&server.stream, &reply);
}

static void connect_sides(const struct row *row, struct rddp_event_channel *events)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct rddp_conn_attr ask = conn_attr(row, true), answer = conn_attr(row, false);
    bool rejects = row->end == END_REJECT;
    struct sockaddr_storage addr;
    struct rddp_listener *listener;
    struct rddp_event event;

    listener = check(rddp_listen(events, (struct sockaddr *)&any, sizeof(any), 1, &answer.wire, NULL), "rddp_listen");
    rddp_listener_addr(listener, &addr);
    must(rddp_connect(client.qp, events, (struct sockaddr *)&addr, sizeof(any), &ask), "rddp_connect");
    event = next_event(events);
    if (event.type != RDDP_EVENT_CONNECT_REQUEST)
        give_up(rddp_event_str(event.type));
    if (rejects)
        must(rddp_reject(event.request, "no", 2), "rddp_reject");
    else
        must(rddp_accept(event.request, server.qp, &answer), "rddp_accept");
    for (int told = rejects; told < 2; told++) {
        event = next_event(events);
        if (event.type != (rejects ? RDDP_EVENT_REJECTED : RDDP_EVENT_ESTABLISHED))
            give_up(rddp_event_str(event.type));
    }
    rddp_destroy_listener(listener);
}

/* A side sends markers if its peer asked for them. tshark 4.0 parses a stream with markers only while each TCP segment
 * is one FPDU, so messages are short then. */
static void begin_streams(const struct row *row)
{
    struct rddp_qp_info info;

    must(rddp_query_qp(client.qp, &info), "rddp_query_qp");
    stream_begin(&client.stream, row->crc, row->server_markers, info.emss);
    stream_begin(&server.stream, row->crc, row->client_markers, info.emss);
    longest = UINT32_MAX;
    if (row->client_markers || row->server_markers) {
        longest = stream_one_segment(&client.stream);
        if (stream_one_segment(&server.stream) < longest)
            longest = stream_one_segment(&server.stream);
    }
}

/* A ready-to-receive message is empty (RFC 6581 9.2). */
static void say_ready(unsigned rtr)
{
    struct rddp_sge nothing = {.lkey = 1};

    if (rtr == RDDP_RTR_WRITE)
        say_write(&client.stream, 1, 0, NULL, 0);
    if (rtr == RDDP_RTR_SEND)
        say_send(&client.stream, 3, 0, NULL, 0);
    if (rtr == RDDP_RTR_READ) {
        say_read_request(&client.stream, &nothing, 1, 0);
        say_read_response(&server.stream, &nothing, NULL);
    }
}

static void run(const struct row *row, struct rddp_event_channel *events)
{
    client.stream = (struct stream){.row = row_number, .direction = '>'};
    server.stream = (struct stream){.row = row_number, .direction = '<'};
    printf("# %u: %s\n", row_number, row->name);
    say_starts(row);
    connect_sides(row, events);
    if (row->end != END_REJECT) {
        begin_streams(row);
        say_ready(row->rtr);
        converse();
        finish(row, events);
    }
    say_total(&client.stream);
    say_total(&server.stream);
}

int main(void)
{
    struct rddp_context_attr attr;

    rddp_context_attr_init(&attr);
    attr.log_level = RDDP_LOG_NONE;
    for (; row_number < ROWS; row_number++) {
        struct rddp_context *context = check(rddp_open(&attr), "rddp_open");
        struct rddp_event_channel *events = check(rddp_create_event_channel(context), "rddp_create_event_channel");
        struct rddp_pd *pd = check(rddp_alloc_pd(context), "rddp_alloc_pd");

        open_side(&client, context, pd);
        open_side(&server, context, pd);
        run(&rows[row_number], events);
        close_side(&client);
        close_side(&server);
        must(rddp_dealloc_pd(pd), "rddp_dealloc_pd");
        must(rddp_destroy_event_channel(events), "rddp_destroy_event_channel");
        must(rddp_close(context), "rddp_close");
    }
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rping.c - the protocol of rdma-core's rping, both ends (doc/rping-protocol.md). */
#include <endian.h>
#include <inttypes.h>
#include <string.h>

#include "tools/ping/ping.h"

static void rping_encode(unsigned char out[RPING_MESSAGE], const struct rping_message *message)
{
    uint64_t offset = htobe64(message->offset);
    uint32_t key = htobe32(message->key), size = htobe32(message->size);
    memcpy(out, &offset, 8);
    memcpy(out + 8, &key, 4);
    memcpy(out + 12, &size, 4);
}

static struct rping_message rping_decode(const unsigned char in[RPING_MESSAGE])
{
    uint64_t offset;
    uint32_t key, size;
    memcpy(&offset, in, 8);
    memcpy(&key, in + 8, 4);
    memcpy(&size, in + 12, 4);
    return (struct rping_message){.offset = be64toh(offset), .key = be32toh(key), .size = be32toh(size)};
}

/* Fills the source buffer of iteration `iteration` (from 0) as rping does: text, a run of letters, a zero. */
static void rping_fill(unsigned char *out, size_t size, uint64_t iteration)
{
    enum { FIRST = 'A', LETTERS = 'z' - 'A' + 1 };
    int n = snprintf((char *)out, size, "rdma-ping-%" PRIu64 ": ", iteration);
    for (size_t i = (size_t)n; i + 1 < size; i++)
        out[i] = (unsigned char)(FIRST + (iteration + i - (size_t)n) % LETTERS);
    out[size - 1] = 0;
}

/* --- client -------------------------------------------------------------------------------------------------- */

/* One region holds a message to send, a message to receive, the source and the sink, so that the server sees one key
 * and two offsets. */
enum { OUT = 0, IN = RPING_MESSAGE, SOURCE = 2 * RPING_MESSAGE };

static size_t client_size(const struct ping_options *options)
{
    return SOURCE + 2 * options->size;
}

static int client_prepare(struct rddp_qp *qp, void *user)
{
    struct pinger *pinger = user;
    pinger->qp = qp;
    return pinger_receive(pinger, IN, RPING_MESSAGE);
}

/* Advertises the buffer at `offset` to the server and waits for its go-ahead. */
static int advertise(struct pinger *pinger, size_t offset)
{
    struct rping_message message = {
        .offset = rddp_mr_offset(pinger->memory.mr, pinger->memory.at + offset),
        .key = rddp_mr_key(pinger->memory.mr),
        .size = (uint32_t)pinger->options->size,
    };
    rping_encode(pinger->memory.at + OUT, &message);
    int code = pinger_send(pinger, OUT, RPING_MESSAGE);
    if (!code)
        code = pinger_await(pinger, RPING_MESSAGE);
    return code ? code : pinger_receive(pinger, IN, RPING_MESSAGE);
}

/* Prints the text in the `n` octets, up to its zero. The peer chooses them: what is not printable is escaped. */
static void print_data(const char *what, const unsigned char *p, size_t n)
{
    printf("%s: ", what);
    for (size_t i = 0; i < n && p[i]; i++)
        printf(p[i] >= 0x20 && p[i] < 0x7f ? "%c" : "\\x%02x", p[i]);
    putchar('\n');
}

static int client_go(struct pinger *pinger, uint64_t iteration)
{
    size_t size = pinger->options->size;
    unsigned char *source = pinger->memory.at + SOURCE, *sink = source + size;
    rping_fill(source, size, iteration);
    /* The sink must not match by chance if the server does not write it. */
    if (pinger->options->verify)
        memset(sink, 0xff, size);
    int code = advertise(pinger, SOURCE);
    if (!code)
        code = advertise(pinger, SOURCE + size);
    if (code)
        return code;
    if (pinger->options->verify && memcmp(source, sink, size))
        return fail(EXIT_FAILED, "%s: data mismatch in iteration %" PRIu64, pinger->peer, iteration);
    if (pinger->options->verbose)
        print_data("ping data", sink, size);
    return 0;
}

const struct trip rping_trip = {
    .what = "read and written by",
    .size = client_size,
    .access = RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_READ | RDDP_ACCESS_REMOTE_WRITE,
    .reads = 1,
    .prepare = client_prepare,
    .go = client_go,
};

/* --- server -------------------------------------------------------------------------------------------------- */

/* What the session waits for, in the order of the protocol. */
enum rping_phase {
    WANT_SOURCE, /* the client's first message */
    WANT_READ,   /* our Read of its source */
    WANT_SINK,   /* its second message */
    WANT_WRITE,  /* our Write to its sink */
};

enum rping_kind { KIND_RECV, KIND_READ, KIND_WRITE, KIND_SEND };

/* One octet more than the Read fetches: its zero terminates a source that has none. */
static size_t server_size(const struct ping_options *options)
{
    return SOURCE + options->size + 1;
}

static int server_open(const struct server *server, struct ping_session *session)
{
    (void)server;
    session->phase = WANT_SOURCE;
    return session_receive(session, KIND_RECV, IN, RPING_MESSAGE);
}

static int go_ahead(struct ping_session *session)
{
    return session_post(session, KIND_SEND, RDDP_WR_SEND, OUT, RPING_MESSAGE);
}

static int start_read(const struct server *server, struct ping_session *session)
{
    if (session->remote.size > server->options->size)
        return fail(EXIT_FAILED, "%s: the peer's buffer of %" PRIu32 " octets is larger than ours of %" PRIu64,
                    session->peer, session->remote.size, server->options->size);
    session->memory.at[SOURCE + session->remote.size] = 0;
    session->phase = WANT_READ;
    return session_post(session, KIND_READ, RDDP_WR_RDMA_READ, SOURCE, session->remote.size);
}

/* Writes the text of the source with its zero, but never more than the sink holds. */
static int start_write(struct ping_session *session)
{
    size_t length = strlen((const char *)session->memory.at + SOURCE) + 1;
    if (length > session->remote.size)
        length = session->remote.size;
    session->phase = WANT_WRITE;
    return session_post(session, KIND_WRITE, RDDP_WR_RDMA_WRITE, SOURCE, (uint32_t)length);
}

static int take_message(const struct server *server, struct ping_session *session, uint32_t length)
{
    if (length != RPING_MESSAGE)
        return fail(EXIT_PROTOCOL, "%s: a message of %" PRIu32 " octets instead of %d", session->peer, length,
                    RPING_MESSAGE);
    session->remote = rping_decode(session->memory.at + IN);
    int code = session_receive(session, KIND_RECV, IN, RPING_MESSAGE);
    if (code)
        return code;
    switch (session->phase) {
    case WANT_SOURCE:
        return start_read(server, session);
    case WANT_SINK:
        return start_write(session);
    default:
        return fail(EXIT_PROTOCOL, "%s: unexpected message while the peer should wait", session->peer);
    }
}

static int server_complete(const struct server *server, struct ping_session *session, unsigned kind, uint32_t length)
{
    switch (kind) {
    case KIND_RECV:
        return take_message(server, session, length);
    case KIND_READ:
        if (server->options->verbose)
            print_data("server ping data", session->memory.at + SOURCE, session->remote.size);
        session->phase = WANT_SINK;
        return go_ahead(session);
    case KIND_WRITE:
        session->phase = WANT_SOURCE;
        session->done++;
        return go_ahead(session);
    default:
        return 0;
    }
}

/* Only the client knows the number of iterations, unless --count was given here too. */
static bool server_may_end(const struct server *server, const struct ping_session *session)
{
    return session->phase == WANT_SOURCE && session->done && session->done >= server->options->count;
}

const struct service rping_service = {
    .what = "iterations",
    .size = server_size,
    .reads = 1,
    .open = server_open,
    .complete = server_complete,
    .may_end = server_may_end,
};

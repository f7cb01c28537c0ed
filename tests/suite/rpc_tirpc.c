/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rpc_tirpc.c - the binding to libtirpc where a peer breaks the rules of a program: results in the wrong place,
 * arguments that cannot be parsed, and a security flavor that forbids to take anything out. */
#include "tests/suite/lib/service.h"

#if __has_include(<rpc/rpc.h>)
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <rpc/rpc.h>
#include <rpc/svc_mt.h>
#include <stdlib.h>
#include <string.h>

#include <rddp/rpc.h>

#include "base/bytes.h"
#include "rpc/responder_inner.h"

enum { PROGRAM = 0x20000001, SIZE = 20000, LONG = 8000, FLAVOR_GSS = 6, GARBAGE = 4 };

/* --- a program: an opaque in, an opaque out ------------------------------------------------------------------- */

struct piece {
    u_int length;
    char *data;
};

static bool_t xdr_piece(XDR *xdr, void *object, ...)
{
    struct piece *piece = object;

    return xdr_bytes(xdr, &piece->data, &piece->length, SIZE);
}

static bool_t xdr_empty(XDR *xdr, ...)
{
    (void)xdr;
    return TRUE;
}

static const void *octets_of(const void *object, uint32_t *length)
{
    const struct piece *piece = object;

    *length = piece->length;
    return piece->data;
}

static uint32_t most(const void *arguments)
{
    (void)arguments;
    return SIZE;
}

static const struct rddp_rpc_proc procs[] = {
    {.number = PROC_STORE, .argument = octets_of},
    {.number = PROC_FETCH, .result = octets_of, .result_max = most, .repeatable = true},
};
static const struct rddp_rpc_binding binding = {PROGRAM, 1, procs, 2};

/* --- a responder without a binding ---------------------------------------------------------------------------- */

static struct responder *responder;
static pthread_t thread;
static atomic_bool stop;
static bool give_inline, give_long;
static uint16_t client_port;
static struct seen {
    unsigned items, writes;
    size_t length;
    bool offers_reply;
} seen;

static void handle(void *user, struct responder_call *call)
{
    static uint8_t message[SERVICE_REPLY_HEAD + 4 + SIZE];
    const struct rpcrdma *h = &((struct rpc_serve *)call)->header;
    struct reply reply = {.payload = message, .length = SERVICE_REPLY_HEAD + 4};

    (void)user;
    seen = (struct seen){call->items, h->writes, call->length, h->has_reply};
    memset(message, 0, SERVICE_REPLY_HEAD);
    memcpy(message, call->payload, 4);
    put32(message + 4, 1);
    if (get32(call->payload + 20) != PROC_FETCH) {
        put32(message + SERVICE_REPLY_HEAD, 0);
    } else {
        put32(message + SERVICE_REPLY_HEAD, 100);
        memset(message + SERVICE_REPLY_HEAD + 4, 0x77, 100);
        reply.items = 1;
        reply.item[0] = (struct stream_item){SERVICE_REPLY_HEAD + 4, 100, message + SERVICE_REPLY_HEAD + 4};
    }
    if (give_inline && reply.items) {
        reply.items = 0;
        reply.length += 100;
    }
    if (give_long && !reply.items) {
        put32(message + SERVICE_REPLY_HEAD, LONG);
        reply.length = SERVICE_REPLY_HEAD + 4 + LONG;
    }
    call_reply(call, &reply);
}

static void *serve(void *user)
{
    (void)user;
    while (!atomic_load(&stop))
        responder_run(responder, 5);
    return NULL;
}

static CLIENT *open_both(bool lenient)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_storage addr;
    struct responder_attr how;
    struct rddp_rpc_attr attr;
    CLIENT *client;

    responder_attr_init(&how);
    how.handle = handle;
    responder = responder_open((struct sockaddr *)&any, sizeof(any), &how);
    assert_non_null(responder);
    responder_addr(responder, &addr);
    memcpy(&any, &addr, sizeof(any));
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&thread, NULL, serve, NULL), 0);
    clnt_rdma_attr_init(&attr);
    attr.port = client_port = ntohs(any.sin_port);
    attr.lenient = lenient;
    attr.binding = &binding;
    attr.bindings = 1;
    client = clnt_rdma_create("127.0.0.1", PROGRAM, 1, &attr);
    assert_non_null(client);
    client->cl_auth = authnone_create();
    return client;
}

static void stop_server(void)
{
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    responder_close(responder);
}

static void close_both(CLIENT *client)
{
    CLNT_DESTROY(client);
    stop_server();
}

static enum clnt_stat fetch(CLIENT *client, struct piece *result)
{
    *result = (struct piece){0};
    return CLNT_CALL(client, PROC_FETCH, xdr_empty, NULL, (xdrproc_t)xdr_piece, (char *)result,
                     ((struct timeval){10, 0}));
}

/* RPCR-6.1-07: an eligible result that stays inline although there was a Write chunk ends the call, unless the client
 * accepts it (`lenient`). */
static void result_in_the_wrong_place(void **state)
{
    struct piece result;

    (void)state;
    for (int lenient = 0; lenient < 2; lenient++)
        for (int wrong = 0; wrong < 2; wrong++) {
            CLIENT *client = open_both(lenient);

            give_inline = wrong;
            assert_int_equal(fetch(client, &result), wrong && !lenient ? RPC_CANTDECODERES : RPC_SUCCESS);
            assert_int_equal(seen.writes, 1);
            if (!wrong || lenient) {
                assert_int_equal(result.length, 100);
                assert_int_equal((uint8_t)result.data[99], 0x77);
            }
            CLNT_FREERES(client, (xdrproc_t)xdr_piece, (char *)&result);
            close_both(client);
        }
}

/* --- a flavor that protects what it carries ---------------------------------------------------------------------- */

static void no_verifier(AUTH *auth)
{
    (void)auth;
}

static int marshal(AUTH *auth, XDR *xdr)
{
    uint32_t words[] = {FLAVOR_GSS, 0, 0, 0};

    (void)auth;
    for (size_t i = 0; i < 4; i++)
        if (!xdr_uint32_t(xdr, &words[i]))
            return FALSE;
    return TRUE;
}

static int validate(AUTH *auth, struct opaque_auth *verifier)
{
    (void)auth;
    (void)verifier;
    return TRUE;
}

static int refresh(AUTH *auth, void *message)
{
    (void)auth;
    (void)message;
    return FALSE;
}

static int wrap(AUTH *auth, XDR *xdr, xdrproc_t code, caddr_t object)
{
    (void)auth;
    return (*code)(xdr, object);
}

/* RPCR-8.2.2.3-01, RPCR-8.2.2-01: under RPCSEC_GSS nothing is reduced, neither arguments nor results: what is long goes
 * as a whole, and a Reply chunk makes room for a long reply. Without it the same call is reduced. */
static void nothing_is_reduced_under_gss(void **state)
{
    static struct auth_ops ops = {no_verifier, marshal, validate, refresh, no_verifier, wrap, wrap};
    static char octets[SIZE];
    AUTH gss = {.ah_cred = {.oa_flavor = FLAVOR_GSS}, .ah_ops = &ops};
    struct piece piece = {SIZE, octets}, result;
    CLIENT *client = open_both(false);
    AUTH *none = client->cl_auth;
    u_int word = 0;

    (void)state;
    give_inline = false;
    for (int protected = 0; protected < 2; protected ++) {
        client->cl_auth = protected ? &gss : none;
        assert_int_equal(CLNT_CALL(client, PROC_STORE, (xdrproc_t)xdr_piece, (char *)&piece, (xdrproc_t)xdr_u_int,
                                   (char *)&word, ((struct timeval){10, 0})),
                         RPC_SUCCESS);
        assert_int_equal(seen.items, protected ? 0 : 1);
        assert_int_equal(seen.length, SERVICE_CALL_HEAD + 4 + (protected ? SIZE : 0));
        assert_int_equal(fetch(client, &result), RPC_SUCCESS);
        assert_int_equal(seen.writes, protected ? 0 : 1);
        assert_true(seen.offers_reply);
        CLNT_FREERES(client, (xdrproc_t)xdr_piece, (char *)&result);
    }
    client->cl_auth = none;
    close_both(client);
}

/* --- the server's side ------------------------------------------------------------------------------------------- */

static atomic_int dispatched;

static void dispatch(struct svc_req *request, SVCXPRT *xprt)
{
    struct piece piece = {0};

    (void)request;
    dispatched++;
    if (!svc_getargs(xprt, (xdrproc_t)xdr_piece, (caddr_t)&piece)) {
        svcerr_decode(xprt);
        return;
    }
    svc_sendreply(xprt, xdr_empty, NULL);
    svc_freeargs(xprt, (xdrproc_t)xdr_piece, (caddr_t)&piece);
}

static atomic_int server_port;

static void *run_server(void *user)
{
    struct pollfd fd = {.events = POLLIN};
    struct rddp_rpc_attr attr;
    SVCXPRT *xprt;

    (void)user;
    svc_rdma_attr_init(&attr);
    attr.binding = &binding;
    attr.bindings = 1;
    xprt = svc_rdma_create("127.0.0.1", &attr);
    assert_non_null(xprt);
    assert_true(svc_reg(xprt, PROGRAM, 1, dispatch, NULL));
    fd.fd = xprt->xp_fd;
    atomic_store(&server_port, xprt->xp_port);
    while (!atomic_load(&stop))
        if (poll(&fd, 1, 5) == 1)
            svc_getreq_poll(&fd, 1);
    SVC_DESTROY(xprt);
    return NULL;
}

static struct requester *open_server(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct requester_attr how;
    struct requester *r;

    atomic_store(&stop, false);
    atomic_store(&server_port, 0);
    assert_int_equal(pthread_create(&thread, NULL, run_server, NULL), 0);
    while (atomic_load(&server_port) == 0)
        poll(NULL, 0, 1);
    to.sin_port = htons((uint16_t)atomic_load(&server_port));
    requester_attr_init(&how);
    how.wire.first_delay_ms = 0;
    r = requester_open((struct sockaddr *)&to, sizeof(to), &how, SERVICE_WAIT_MS);
    assert_non_null(r);
    return r;
}

static void close_server(struct requester *r)
{
    requester_close(r);
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
}

/* The same call again is executed again only if its procedure is repeatable. */
static void repeatable(void **state)
{
    const uint32_t words[] = {8, 1, 2}, procs_of[] = {PROC_STORE, PROC_FETCH};
    struct requester *r = open_server();
    static struct exchange e;

    (void)state;
    for (unsigned k = 0; k < 2; k++) {
        dispatched = 0;
        for (int i = 0; i < 3; i++) {
            exchange_init(&e, r, procs_of[k], words, 3, 64);
            put32(e.call, 5);
            assert_int_equal(requester_run(r, &e.request), REQUEST_OK);
        }
        assert_int_equal(dispatched, procs_of[k] == PROC_FETCH ? 3 : 1);
    }
    close_server(r);
}

/* RPCR-4.5.2-02: arguments that the program cannot parse under a header that is right are its business: a Reply that
 * says GARBAGE_ARGS, in an RDMA_MSG, and the next call is served. */
static void garbage_arguments(void **state)
{
    const uint32_t words[] = {8, 1, 2};
    struct requester *r = open_server();
    static struct exchange e;

    (void)state;
    for (uint32_t round = 0; round < 4; round++) {
        uint32_t cut = round & 1;

        exchange_init(&e, r, PROC_STORE, words, 3 - cut, 64);
        assert_int_equal(requester_run(r, &e.request), REQUEST_OK);
        assert_int_equal(get32(e.reply + 20), cut ? GARBAGE : 0);
    }
    close_server(r);
}

/* --- what does not fit ------------------------------------------------------------------------------------------- */

/* A result one octet below reply_max, equal, and one more; and arguments around read_max: EMSGSIZE, not an error
 * without a name. */
static void too_long(void **state)
{
    static char octets[SIZE];
    struct piece piece = {SIZE, octets}, result;
    CLIENT *client = open_both(false);
    u_int word = 0;

    (void)state;
    CLNT_DESTROY(client);
    give_inline = true;
    for (int more = -4; more <= 4; more += 4) {
        struct rddp_rpc_attr attr;
        struct rpc_err error;

        clnt_rdma_attr_init(&attr);
        attr.port = client_port;
        attr.inline_size = 1024;
        attr.reply_max = (uint32_t)(4 + LONG - MAX_AUTH_BYTES - more); /* the reserved room is free here */
        client = clnt_rdma_create("127.0.0.1", PROGRAM, 1, &attr);
        assert_non_null(client);
        give_long = true;
        assert_int_equal(fetch(client, &result), more > 0 ? RPC_CANTSEND : RPC_SUCCESS);
        CLNT_GETERR(client, &error);
        assert_int_equal(error.re_errno, more > 0 ? EMSGSIZE : 0);
        if (more <= 0)
            CLNT_FREERES(client, (xdrproc_t)xdr_piece, (char *)&result);
        give_long = false;
        responder->attr.read_max = (uint32_t)(SERVICE_CALL_HEAD + 4 + SIZE - more);
        assert_int_equal(CLNT_CALL(client, PROC_STORE, (xdrproc_t)xdr_piece, (char *)&piece, (xdrproc_t)xdr_u_int,
                                   (char *)&word, ((struct timeval){10, 0})),
                         more > 0 ? RPC_CANTSEND : RPC_SUCCESS);
        CLNT_GETERR(client, &error);
        assert_int_equal(error.re_errno, more > 0 ? EMSGSIZE : 0);
        CLNT_DESTROY(client);
    }
    stop_server();
}

/* Each reason why a client cannot reach its server has its own error. */
static void no_server(void **state)
{
    struct rddp_rpc_attr attr;

    (void)state;
    clnt_rdma_attr_init(&attr);
    assert_null(clnt_rdma_create("no.such.host.invalid", PROGRAM, 1, &attr));
    assert_int_equal(rpc_createerr.cf_stat, RPC_UNKNOWNHOST);
    assert_null(strstr(clnt_spcreateerror("x"), "route"));
    attr.port = 1;
    assert_null(clnt_rdma_create("127.0.0.1", PROGRAM, 1, &attr));
    assert_int_equal(rpc_createerr.cf_stat, RPC_SYSTEMERROR);
    assert_int_equal(rpc_createerr.cf_error.re_errno, ECONNREFUSED);
    /* Even if there is an rpcbind, it does not know this program. */
    attr.port = 0;
    assert_null(clnt_rdma_create("127.0.0.1", PROGRAM, 1, &attr));
    assert_true(rpc_createerr.cf_stat == RPC_RPCBFAILURE || rpc_createerr.cf_stat == RPC_PROGNOTREGISTERED);
    assert_null(strstr(clnt_spcreateerror("x"), "uccess"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(too_long),
        cmocka_unit_test(no_server),
        cmocka_unit_test(result_in_the_wrong_place),
        cmocka_unit_test(nothing_is_reduced_under_gss),
        cmocka_unit_test(repeatable),
        cmocka_unit_test(garbage_arguments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
    print_message("libtirpc's headers are missing\n");
    return 77;
}
#endif

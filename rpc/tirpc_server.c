/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tirpc_server.c - a libtirpc SVCXPRT over a responder: svc_run() polls its descriptor, and dispatchers made by rpcgen
 * get whole arguments. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rpc/rpc.h>
#include <rpc/svc_mt.h>

#include "rpc/responder.h"
#include "rpc/tirpc_rpcbind.h"
#include "rpc/tirpc_xdr.h"

struct rdma_server {
    SVCXPRT xprt;
    SVCXPRT_EXT extension; /* libtirpc's authentication finds it through xp_p3 */
    struct responder *responder;
    struct rddp_rpc_attr attr;
    struct responder_call *ready, **last; /* whole calls, not yet taken by rdma_recv() */
    struct responder_call *current;
    const struct rddp_rpc_proc *proc;
    struct xdr_joiner in;
    struct xdr_reducer out;
    struct sockaddr_storage local, remote;
    char verifier[MAX_AUTH_BYTES];
};

static struct rdma_server *tirpc_server_of(SVCXPRT *xprt)
{
    return xprt->xp_p1;
}

static void queue_call(void *user, struct responder_call *call)
{
    struct rdma_server *s = user;

    call->next = NULL;
    *s->last = call;
    s->last = &call->next;
}

static struct responder_call *take_call(struct rdma_server *s)
{
    struct responder_call *call = s->ready;

    if (call) {
        s->ready = call->next;
        if (!s->ready)
            s->last = &s->ready;
    }
    return call;
}

static socklen_t tirpc_server_length_of(const struct sockaddr_storage *addr)
{
    return addr->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* --- a call in --------------------------------------------------------------------------------------------------- */

static bool is_argument(const struct xdr_joiner *x, const void *at)
{
    uint32_t length;

    return x->proc && x->proc->argument && x->object && x->proc->argument(x->object, &length) == at;
}

static void note_peer(struct rdma_server *s, const struct responder_call *call)
{
    s->remote = call->peer;
    s->xprt.xp_rtaddr =
        (struct netbuf){.maxlen = sizeof(s->remote), .len = tirpc_server_length_of(&s->remote), .buf = &s->remote};
    s->xprt.xp_addrlen = (int)tirpc_server_length_of(&s->remote);
    memcpy(&s->xprt.xp_raddr, &s->remote, sizeof(s->xprt.xp_raddr));
}

/* A call that its dispatcher did not answer is dropped here without an answer, as over TCP. Its credit comes back with
 * the next answer. */
static bool_t rdma_recv(SVCXPRT *xprt, struct rpc_msg *message)
{
    struct rdma_server *s = tirpc_server_of(xprt);

    if (s->current)
        call_drop(s->current);
    s->current = NULL;
    if (!s->ready)
        responder_run(s->responder, 0);
    s->current = take_call(s);
    if (!s->current)
        return FALSE;
    xdr_joiner_open(&s->in, s->current->payload, s->current->length);
    s->in.item = s->current->item;
    s->in.items = s->current->items;
    if (!xdr_callmsg(&s->in.xdr, message)) {
        call_refuse(s->current);
        s->current = NULL;
        return FALSE;
    }
    s->proc = binding_find(&s->attr, (uint32_t)message->rm_call.cb_prog, (uint32_t)message->rm_call.cb_vers,
                           (uint32_t)message->rm_call.cb_proc);
    if (s->proc && s->proc->repeatable)
        call_is_repeatable(s->current);
    note_peer(s, s->current);
    return TRUE;
}

static enum xprt_stat rdma_stat(SVCXPRT *xprt)
{
    return tirpc_server_of(xprt)->ready ? XPRT_MOREREQS : XPRT_IDLE;
}

/* RFC 8166 6.1: a call with a chunk at any place but the eligible argument is not executed. */
static bool_t rdma_getargs(SVCXPRT *xprt, xdrproc_t xdr_arguments, void *arguments)
{
    struct rdma_server *s = tirpc_server_of(xprt);

    s->in.xdr.x_op = XDR_DECODE;
    s->in.proc = s->proc;
    s->in.object = arguments;
    s->in.is_item = is_argument;
    if (!SVCAUTH_UNWRAP(&SVC_XP_AUTH(xprt), &s->in.xdr, xdr_arguments, arguments))
        return FALSE;
    s->in.broken = !xdr_joiner_is_done(&s->in);
    return !s->in.broken;
}

static bool_t rdma_freeargs(SVCXPRT *xprt, xdrproc_t xdr_arguments, void *arguments)
{
    XDR xdr = {.x_op = XDR_FREE};

    (void)xprt;
    return (*xdr_arguments)(&xdr, arguments);
}

/* --- a reply out ------------------------------------------------------------------------------------------------- */

static bool tirpc_server_encode(struct rdma_server *s, struct rpc_msg *message)
{
    XDR *xdr = &s->out.xdr;
    xdrproc_t xdr_results = xdr_nothing;
    void *results = NULL;
    bool success = message->rm_reply.rp_stat == MSG_ACCEPTED && message->acpted_rply.ar_stat == SUCCESS;

    xdr_reducer_open(&s->out);
    if (success) {
        xdr_results = message->acpted_rply.ar_results.proc;
        results = message->acpted_rply.ar_results.where;
        message->acpted_rply.ar_results.proc = xdr_nothing;
        message->acpted_rply.ar_results.where = NULL;
        /* Only for results of the procedure itself: when the dispatcher reports an error, `results` has another
         * type. */
        if (s->proc && s->proc->result && results)
            s->out.item = s->proc->result(results, &s->out.item_length);
    }
    return xdr_replymsg(xdr, message) && (!success || SVCAUTH_WRAP(&SVC_XP_AUTH(&s->xprt), xdr, xdr_results, results));
}

static bool_t rdma_reply(SVCXPRT *xprt, struct rpc_msg *message)
{
    struct rdma_server *s = tirpc_server_of(xprt);
    struct responder_call *call = s->current;
    struct reply reply = {0};

    if (!call)
        return FALSE;
    s->current = NULL;
    message->rm_xid = (uint32_t)call->payload[0] << 24 | (uint32_t)call->payload[1] << 16 |
                      (uint32_t)call->payload[2] << 8 | call->payload[3];
    if (s->in.broken || !tirpc_server_encode(s, message)) {
        call_refuse(call);
        return FALSE;
    }
    reply.payload = s->out.buffer;
    reply.length = s->out.length;
    if (s->out.taken) {
        reply.items = 1;
        reply.item[0] = (struct stream_item){s->out.position, s->out.item_length, s->out.item};
    }
    call_reply(call, &reply);
    return TRUE;
}

/* --- creation and destruction ------------------------------------------------------------------------------------ */

static void tirpc_server_rdma_destroy(SVCXPRT *xprt)
{
    struct rdma_server *s = tirpc_server_of(xprt);
    struct responder_call *call;

    xprt_unregister(xprt);
    if (s->current)
        call_drop(s->current);
    while ((call = take_call(s)) != NULL)
        call_drop(call);
    responder_close(s->responder);
    xdr_reducer_close(&s->out);
    free(xprt->xp_netid);
    free(s);
}

static bool_t tirpc_server_rdma_control(SVCXPRT *xprt, const u_int request, void *info)
{
    (void)xprt;
    (void)request;
    (void)info;
    return FALSE;
}

void svc_rdma_attr_init(struct rddp_rpc_attr *attr)
{
    *attr = (struct rddp_rpc_attr){.credits = 64, .inline_size = 4096, .read_max = (1 << 20) + 65536};
}

/* The IPv6 wildcard accepts IPv4 as well. Without IPv6, listens at the IPv4 wildcard. */
static struct responder *tirpc_server_listen_at(const char *address, uint16_t port, const struct responder_attr *attr)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *list = NULL;
    const char *all[] = {"::", "0.0.0.0"}, *const *names = address ? &address : all;
    struct responder *responder = NULL;
    char service[8];

    snprintf(service, sizeof(service), "%u", port);
    for (size_t i = 0; !responder && i < (address ? 1 : 2); i++) {
        if (getaddrinfo(names[i], service, &hints, &list) != 0) {
            errno = EADDRNOTAVAIL;
            continue;
        }
        responder = responder_open(list->ai_addr, list->ai_addrlen, attr);
        freeaddrinfo(list);
    }
    return responder;
}

static void tirpc_server_fill(struct rdma_server *s)
{
    static const struct xp_ops ops = {rdma_recv,  rdma_stat,     rdma_getargs,
                                      rdma_reply, rdma_freeargs, tirpc_server_rdma_destroy};
    static const struct xp_ops2 more = {tirpc_server_rdma_control};
    char service[NI_MAXSERV] = "0";

    responder_addr(s->responder, &s->local);
    getnameinfo((struct sockaddr *)&s->local, tirpc_server_length_of(&s->local), NULL, 0, service, sizeof(service),
                NI_NUMERICSERV);
    s->xprt = (SVCXPRT){.xp_fd = responder_fd(s->responder), .xp_ops = &ops, .xp_ops2 = &more, .xp_p1 = s};
    s->xprt.xp_p3 = &s->extension;
    s->xprt.xp_port = (u_short)strtoul(service, NULL, 10);
    s->xprt.xp_ltaddr =
        (struct netbuf){.maxlen = sizeof(s->local), .len = tirpc_server_length_of(&s->local), .buf = &s->local};
    s->xprt.xp_netid = strdup(s->local.ss_family == AF_INET6 ? "rdma6" : "rdma");
    s->xprt.xp_verf.oa_base = s->verifier;
    xprt_register(&s->xprt);
}

struct __rpc_svcxprt *svc_rdma_create(const char *address, const struct rddp_rpc_attr *attr)
{
    struct rdma_server *s = calloc(1, sizeof(*s));
    struct responder_attr how;

    if (!s)
        return NULL;
    svc_rdma_attr_init(&s->attr);
    if (attr)
        s->attr = *attr;
    s->last = &s->ready;
    responder_attr_init(&how);
    how.credits = s->attr.credits;
    how.send_size = how.receive_size = s->attr.inline_size;
    how.read_max = s->attr.read_max;
    how.handle = queue_call;
    how.user = s;
    s->responder = tirpc_server_listen_at(address, s->attr.port, &how);
    if (!s->responder) {
        free(s);
        return NULL;
    }
    tirpc_server_fill(s);
    return &s->xprt;
}

/* A server at the IPv6 wildcard accepts IPv4 as well, so it is registered under both netids. */
static bool tirpc_server_bind(struct rdma_server *s, uint32_t program, uint32_t version,
                              bool (*call)(uint32_t, uint32_t, const struct sockaddr_storage *))
{
    struct sockaddr_storage v4 = {.ss_family = AF_INET};
    struct sockaddr_in6 v6;
    bool done = call(program, version, &s->local);

    if (s->local.ss_family != AF_INET6)
        return done;
    memcpy(&v6, &s->local, sizeof(v6));
    rpcbind_set_port(&v4, s->xprt.xp_port);
    return memcmp(&v6.sin6_addr, &in6addr_any, sizeof(in6addr_any)) == 0 ? call(program, version, &v4) && done : done;
}

bool svc_rdma_register(struct __rpc_svcxprt *xprt, uint32_t program, uint32_t version)
{
    return tirpc_server_bind(tirpc_server_of(xprt), program, version, rpcbind_change);
}

bool svc_rdma_unregister(struct __rpc_svcxprt *xprt, uint32_t program, uint32_t version)
{
    return tirpc_server_bind(tirpc_server_of(xprt), program, version, rpcbind_untell);
}

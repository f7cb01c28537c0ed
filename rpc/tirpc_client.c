/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tirpc_client.c - a libtirpc CLIENT over a requester: takes eligible items out of what its stubs encode, and joins
 * replies before they decode. */
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/rpc_log.h"
#include "rpc/requester.h"
#include "rpc/tirpc_rpcbind.h"
#include "rpc/tirpc_xdr.h"

enum { REPLY_HEAD_MAX = 24 + MAX_AUTH_BYTES, REFRESHES = 2, FLAVOR_GSS = 6 };

struct rdma_client {
    CLIENT client;
    struct requester *requester;
    struct rddp_rpc_attr attr;
    uint32_t program, version;
    struct rpc_err error;
    struct timeval timeout;
    bool has_timeout;
    pthread_mutex_t lock;
    struct xdr_reducer call;
    uint8_t *reply, *bounce;
    size_t reply_size, bounce_size;
    struct rpc_log log;
};

/* The call of a procedure under way. */
struct client_call {
    const struct rddp_rpc_proc *proc;
    xdrproc_t xdr_arguments, xdr_results;
    void *arguments, *results;
    struct request request;
};

static struct rdma_client *tirpc_client_of(CLIENT *client)
{
    return client->cl_private;
}

static enum clnt_stat tirpc_client_fail(struct rdma_client *c, enum clnt_stat status, int number)
{
    c->error = (struct rpc_err){.re_status = status};
    c->error.re_errno = number;
    return status;
}

static bool tirpc_client_reserve(uint8_t **buffer, size_t *capacity, size_t n)
{
    uint8_t *larger = n <= *capacity ? *buffer : realloc(*buffer, n);

    if (!larger)
        return false;
    *capacity = n > *capacity ? n : *capacity;
    *buffer = larger;
    return true;
}

/* --- the call ---------------------------------------------------------------------------------------------------- */

/* RFC 8166 8.2.2: a message that RPCSEC_GSS protects is not reduced. */
static bool may_reduce(const struct rdma_client *c, const struct client_call *call)
{
    return call->proc && c->client.cl_auth->ah_cred.oa_flavor != FLAVOR_GSS;
}

static bool tirpc_client_encode(struct rdma_client *c, struct client_call *call, uint32_t number)
{
    struct rpc_msg head = {.rm_xid = requester_xid(c->requester), .rm_direction = CALL};
    XDR *xdr = &c->call.xdr;
    long word = (long)number;

    head.rm_call.cb_rpcvers = RPC_MSG_VERSION;
    head.rm_call.cb_prog = c->program;
    head.rm_call.cb_vers = c->version;
    xdr_reducer_open(&c->call);
    if (may_reduce(c, call) && call->proc->argument)
        c->call.item = call->proc->argument(call->arguments, &c->call.item_length);
    if (!xdr_callhdr(xdr, &head) || !XDR_PUTLONG(xdr, &word) || !AUTH_MARSHALL(c->client.cl_auth, xdr) ||
        !AUTH_WRAP(c->client.cl_auth, xdr, call->xdr_arguments, call->arguments))
        return false;
    call->request.call = c->call.buffer;
    call->request.call_length = c->call.length;
    if (c->call.taken) {
        call->request.arguments = 1;
        call->request.argument[0] = (struct request_item){
            .data = (void *)(uintptr_t)c->call.item, .position = c->call.position, .length = c->call.item_length};
    }
    return true;
}

/* Provides a buffer for the longest reply, and one for the eligible result: the caller's own or ours (RFC 8166 6.2). */
static bool prepare_reply(struct rdma_client *c, struct client_call *call)
{
    const struct rddp_rpc_proc *proc = call->proc;
    size_t n = proc && proc->reply_max ? proc->reply_max(call->arguments) : c->attr.reply_max;
    uint32_t result = proc && proc->result && proc->result_max ? proc->result_max(call->arguments) : 0;
    void *place = NULL;

    if (result && !may_reduce(c, call)) {
        n += result + 4U;
        result = 0;
    }
    if (!tirpc_client_reserve(&c->reply, &c->reply_size, REPLY_HEAD_MAX + n))
        return false;
    call->request.reply = c->reply;
    call->request.reply_size = REPLY_HEAD_MAX + n;
    if (result == 0)
        return true;
    if (proc->place)
        place = proc->place(call->results);
    if (!place && !tirpc_client_reserve(&c->bounce, &c->bounce_size, result))
        return false;
    call->request.results = 1;
    call->request.result[0] = (struct request_item){.data = place ? place : c->bounce, .length = result};
    return true;
}

/* --- the reply --------------------------------------------------------------------------------------------------- */

static bool is_result(const struct xdr_joiner *x, const void *at)
{
    uint32_t length;

    return x->proc && x->proc->result && x->proc->result(x->object, &length) == at;
}

static enum clnt_stat tirpc_client_decode(struct rdma_client *c, struct client_call *call, bool *refreshable)
{
    struct request *q = &call->request;
    struct stream_item item = {.data = q->result[0].data, .length = q->result[0].used};
    struct rpc_msg reply = {.rm_direction = REPLY};
    struct xdr_joiner in;
    bool good;

    xdr_joiner_open(&in, q->reply, q->reply_length);
    in.by_place = true;
    in.item = &item;
    in.items = q->results && item.length ? 1 : 0;
    /* The binding requires an eligible result in its chunk and nowhere else (RFC 8166 6.1), unless the caller is
     * lenient. */
    in.must_be_outside = q->results && !c->attr.lenient;
    in.is_item = q->results ? is_result : NULL;
    in.proc = call->proc;
    in.object = call->results;
    reply.acpted_rply.ar_verf = _null_auth;
    reply.acpted_rply.ar_results.proc = xdr_nothing;
    if (!xdr_replymsg(&in.xdr, &reply))
        return tirpc_client_fail(c, RPC_CANTDECODERES, EIO);
    _seterr_reply(&reply, &c->error);
    *refreshable = c->error.re_status == RPC_AUTHERROR;
    if (c->error.re_status == RPC_SUCCESS && !AUTH_VALIDATE(c->client.cl_auth, &reply.acpted_rply.ar_verf)) {
        tirpc_client_fail(c, RPC_AUTHERROR, EACCES);
        c->error.re_why = AUTH_INVALIDRESP;
    } else if (c->error.re_status == RPC_SUCCESS) {
        good = AUTH_UNWRAP(c->client.cl_auth, &in.xdr, call->xdr_results, call->results);
        if (!good || !xdr_joiner_is_done(&in))
            tirpc_client_fail(c, RPC_CANTDECODERES, EIO);
    }
    if (reply.rm_reply.rp_stat == MSG_ACCEPTED && reply.acpted_rply.ar_verf.oa_base) {
        in.xdr.x_op = XDR_FREE;
        xdr_opaque_auth(&in.xdr, &reply.acpted_rply.ar_verf);
    }
    return c->error.re_status;
}

/* We built the header ourselves, so it is correct: the call or its reply must be too long (RFC 8166 4.5.3). */
static void report_refusal(struct rdma_client *c, const struct client_call *call, uint32_t number)
{
    const struct request *q = &call->request;

    rpc_log(&c->log, RDDP_LOG_WARN,
            "program %u, procedure %u: the server refuses the call (ERR_CHUNK): its %zu octets are more than the "
            "server's read_max, or the reply is longer than reply_max (%zu octets)",
            c->program, number, q->call_length + (q->arguments ? q->argument[0].length : 0),
            q->reply_size - REPLY_HEAD_MAX);
}

static enum clnt_stat no_reply(struct rdma_client *c, enum request_status status)
{
    static const struct {
        enum clnt_stat status;
        int number;
    } table[] = {
        [REQUEST_TIMED_OUT] = {RPC_TIMEDOUT, ETIMEDOUT},      [REQUEST_CANCELLED] = {RPC_INTR, ECANCELED},
        [REQUEST_REFUSED] = {RPC_CANTSEND, EMSGSIZE},         [REQUEST_BAD_VERSION] = {RPC_CANTSEND, EPROTONOSUPPORT},
        [REQUEST_BAD_REPLY] = {RPC_CANTDECODERES, EREMOTEIO}, [REQUEST_NOT_SENT] = {RPC_CANTSEND, EMSGSIZE},
        [REQUEST_CLOSED] = {RPC_CANTRECV, ECONNRESET},
    };

    return tirpc_client_fail(c, table[status].status, table[status].number);
}

/* --- what libtirpc calls ----------------------------------------------------------------------------------------- */

static enum clnt_stat attempt_call(struct rdma_client *c, struct client_call *call, uint32_t number, int timeout_ms,
                                   bool *refreshable)
{
    enum request_status status;

    *refreshable = false;
    call->request = (struct request){.timeout_ms = timeout_ms};
    if (!tirpc_client_encode(c, call, number))
        return tirpc_client_fail(c, RPC_CANTENCODEARGS, EIO);
    if (!prepare_reply(c, call))
        return tirpc_client_fail(c, RPC_SYSTEMERROR, ENOMEM);
    status = requester_run(c->requester, &call->request);
    if (status == REQUEST_REFUSED)
        report_refusal(c, call, number);
    return status == REQUEST_OK ? tirpc_client_decode(c, call, refreshable) : no_reply(c, status);
}

static enum clnt_stat rdma_call(CLIENT *client, rpcproc_t number, xdrproc_t xdr_arguments, void *arguments,
                                xdrproc_t xdr_results, void *results, struct timeval timeout)
{
    struct rdma_client *c = tirpc_client_of(client);
    struct client_call call = {.xdr_arguments = xdr_arguments, .arguments = arguments};
    enum clnt_stat status;
    bool refreshable;

    pthread_mutex_lock(&c->lock);
    if (c->has_timeout)
        timeout = c->timeout;
    call.xdr_results = xdr_results;
    call.results = results;
    call.proc = binding_find(&c->attr, c->program, c->version, number);
    for (int i = 0; i < REFRESHES; i++) {
        status = attempt_call(c, &call, number, (int)(timeout.tv_sec * 1000 + timeout.tv_usec / 1000), &refreshable);
        if (!refreshable || !AUTH_REFRESH(client->cl_auth, NULL))
            break;
    }
    pthread_mutex_unlock(&c->lock);
    return status;
}

static void rdma_abort(CLIENT *client)
{
    (void)client;
}

static void rdma_geterr(CLIENT *client, struct rpc_err *error)
{
    *error = tirpc_client_of(client)->error;
}

static bool_t rdma_freeres(CLIENT *client, xdrproc_t xdr_results, void *results)
{
    XDR xdr = {.x_op = XDR_FREE};

    (void)client;
    return (*xdr_results)(&xdr, results);
}

static void tirpc_client_rdma_destroy(CLIENT *client)
{
    struct rdma_client *c = tirpc_client_of(client);

    if (client->cl_auth)
        AUTH_DESTROY(client->cl_auth);
    requester_close(c->requester);
    xdr_reducer_close(&c->call);
    pthread_mutex_destroy(&c->lock);
    free(c->reply);
    free(c->bounce);
    free(c);
}

static bool_t tirpc_client_rdma_control(CLIENT *client, u_int request, void *info)
{
    struct rdma_client *c = tirpc_client_of(client);
    bool_t known = TRUE;

    pthread_mutex_lock(&c->lock);
    switch (request) {
    case CLSET_TIMEOUT:
        memcpy(&c->timeout, info, sizeof(c->timeout));
        c->has_timeout = true;
        break;
    case CLGET_TIMEOUT:
        memcpy(info, &c->timeout, sizeof(c->timeout));
        break;
    case CLGET_FD:
        *(int *)info = requester_fd(c->requester);
        break;
    case CLGET_PROG:
        *(uint32_t *)info = c->program;
        break;
    case CLSET_PROG:
        c->program = *(uint32_t *)info;
        break;
    case CLGET_VERS:
        *(uint32_t *)info = c->version;
        break;
    case CLSET_VERS:
        c->version = *(uint32_t *)info;
        break;
    default:
        known = FALSE;
    }
    pthread_mutex_unlock(&c->lock);
    return known;
}

/* --- creation ---------------------------------------------------------------------------------------------------- */

void clnt_rdma_attr_init(struct rddp_rpc_attr *attr)
{
    *attr = (struct rddp_rpc_attr){.credits = 32, .inline_size = 4096, .reply_max = 65536};
    attr->connect_timeout_ms = 10000;
}

static struct __rpc_client *tirpc_client_refuse(enum clnt_stat status, int number)
{
    rpc_createerr.cf_stat = status;
    rpc_createerr.cf_error.re_status = RPC_SUCCESS;
    rpc_createerr.cf_error.re_errno = number;
    if (status == RPC_RPCBFAILURE)
        rpc_createerr.cf_error.re_status = RPC_CANTSEND; /* clnt_spcreateerror() prints the text of this status */
    return NULL;
}

/* Connects to one address. Without a port in the attributes, rpcbind is asked for it. Returns NULL and sets `*why` and
 * errno on failure. */
static struct requester *connect_address(const struct addrinfo *a, const struct rdma_client *c, enum clnt_stat *why)
{
    struct sockaddr_storage addr;
    struct requester_attr how;

    requester_attr_init(&how);
    how.credits = c->attr.credits;
    how.send_size = how.receive_size = c->attr.inline_size;
    memcpy(&addr, a->ai_addr, a->ai_addrlen);
    if (c->attr.port)
        rpcbind_set_port(&addr, c->attr.port);
    else
        *why = rpcbind_ask(c->program, c->version, &addr);
    if (*why != RPC_SUCCESS)
        return NULL;
    *why = RPC_SYSTEMERROR;
    return requester_open((struct sockaddr *)&addr, a->ai_addrlen, &how, c->attr.connect_timeout_ms);
}

/* Tries each address of the host. On failure `*why` and errno describe the last attempt. */
static struct requester *connect_host(const char *host, const struct rdma_client *c, enum clnt_stat *why)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    struct requester *requester = NULL;

    *why = RPC_UNKNOWNHOST;
    errno = ENOENT;
    if (getaddrinfo(host, NULL, &hints, &list) != 0)
        return NULL;
    for (struct addrinfo *a = list; a && !requester; a = a->ai_next) {
        *why = RPC_SUCCESS;
        requester = connect_address(a, c, why);
    }
    freeaddrinfo(list);
    return requester;
}

struct __rpc_client *clnt_rdma_create(const char *host, uint32_t program, uint32_t version,
                                      const struct rddp_rpc_attr *attr)
{
    static struct clnt_ops ops = {
        rdma_call, rdma_abort, rdma_geterr, rdma_freeres, tirpc_client_rdma_destroy, tirpc_client_rdma_control};
    struct rdma_client *c = calloc(1, sizeof(*c));
    enum clnt_stat why;

    if (!c)
        return tirpc_client_refuse(RPC_SYSTEMERROR, ENOMEM);
    clnt_rdma_attr_init(&c->attr);
    if (attr)
        c->attr = *attr;
    c->program = program;
    c->version = version;
    c->requester = connect_host(host, c, &why);
    if (!c->requester) {
        free(c);
        return tirpc_client_refuse(why, errno);
    }
    pthread_mutex_init(&c->lock, NULL);
    rpc_log_init(&c->log, NULL, NULL);
    c->client = (CLIENT){.cl_ops = &ops, .cl_private = c, .cl_auth = authnone_create()};
    return &c->client;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* server.c [PORT] - keeps pieces of octets by name, over RDMA. rpcgen made the rest. Over TCP the server is created by
 *
 *     SVCXPRT *xprt = svctcp_create(RPC_ANYSOCK, 0, 0);
 *
 * instead of svc_rdma_create(). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <store.h>

#include "examples/rpc/binding.h"

void store_program_1(struct svc_req *request, SVCXPRT *xprt);

static struct store_list list;

static struct piece {
    struct piece *next;
    char *name, *data;
    u_int length;
} * pieces;

static struct piece *find(const char *name)
{
    struct piece *piece = pieces;

    while (piece && strcmp(piece->name, name) != 0)
        piece = piece->next;
    return piece;
}

bool_t store_null_1_svc(void *arguments, void *result, struct svc_req *request)
{
    (void)arguments;
    (void)result;
    (void)request;
    return TRUE;
}

bool_t store_put_1_svc(put_args *put, store_status *result, struct svc_req *request)
{
    struct piece *piece = find(put->name);
    char *data = malloc(put->data.data_len + 1);

    (void)request;
    *result = STORE_FULL;
    if (!piece && data) {
        piece = calloc(1, sizeof(*piece));
        if (piece) {
            *piece = (struct piece){.next = pieces, .name = strdup(put->name)};
            pieces = piece;
        }
    }
    if (!piece || !data) {
        free(data);
        return TRUE;
    }
    if (put->data.data_len)
        memcpy(data, put->data.data_val, put->data.data_len);
    free(piece->data);
    piece->data = data;
    piece->length = put->data.data_len;
    *result = STORE_OK;
    return TRUE;
}

bool_t store_get_1_svc(get_args *get, get_result *result, struct svc_req *request)
{
    const struct piece *piece = find(get->name);

    (void)request;
    memset(result, 0, sizeof(*result));
    result->status = piece ? STORE_OK : STORE_NONE;
    if (piece) {
        result->get_result_u.data.data_val = piece->data;
        result->get_result_u.data.data_len = piece->length < get->count ? piece->length : get->count;
    }
    return TRUE;
}

bool_t store_list_1_svc(void *arguments, store_list *result, struct svc_req *request)
{
    store_entry **last = &list.first;

    (void)arguments;
    (void)request;
    for (const struct piece *piece = pieces; piece; piece = piece->next) {
        *last = calloc(1, sizeof(**last));
        if (!*last)
            return FALSE;
        (*last)->name = strdup(piece->name);
        (*last)->length = piece->length;
        last = &(*last)->next;
    }
    *result = list;
    return TRUE;
}

/* The result of STORE_GET belongs to the store; that of STORE_LIST was allocated for the reply. */
int store_program_1_freeresult(SVCXPRT *xprt, xdrproc_t xdr_result, caddr_t result)
{
    (void)xprt;
    if (xdr_result == (xdrproc_t)xdr_store_list)
        xdr_free(xdr_result, result);
    list.first = NULL;
    return 1;
}

int main(int argc, char **argv)
{
    struct rddp_rpc_attr attr;
    SVCXPRT *xprt;

    svc_rdma_attr_init(&attr);
    attr.port = argc > 1 ? (uint16_t)atoi(argv[1]) : 0;
    attr.binding = &store_binding;
    attr.bindings = 1;
    xprt = svc_rdma_create(NULL, &attr);
    if (!xprt || !svc_reg(xprt, STORE_PROGRAM, STORE_VERSION, store_program_1, NULL)) {
        perror("store: svc_rdma_create");
        return 1;
    }
    printf("port %u\n", xprt->xp_port);
    fflush(stdout);
    if (argc > 2 && !svc_rdma_register(xprt, STORE_PROGRAM, STORE_VERSION)) {
        fprintf(stderr, "store: cannot register at rpcbind\n");
        return 1;
    }
    svc_run();
    return 1;
}

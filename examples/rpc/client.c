/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* client.c HOST PORT - puts and gets pieces of many lengths and compares them. rpcgen made the stubs. Over TCP the
 * client is created by
 *
 *     CLIENT *client = clnt_create(argv[1], STORE_PROGRAM, STORE_VERSION, "tcp");
 *
 * instead of clnt_rdma_create(). With port 0 the host's rpcbind is asked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <store.h>

#include "examples/rpc/binding.h"

enum { PIECES = 300 };

static char data[STORE_DATA], place[STORE_DATA];

static int fail(CLIENT *client, const char *what)
{
    clnt_perror(client, what);
    return 1;
}

static int put(CLIENT *client, char *name, u_int length)
{
    put_args args = {.name = name, .data = {.data_val = data, .data_len = length}};
    store_status status = STORE_FULL;

    if (store_put_1(&args, &status, client) != RPC_SUCCESS)
        return fail(client, "put");
    return status != STORE_OK;
}

/* `direct`: the server's RDMA Write puts the data into our buffer; otherwise the stub allocates one. */
static int get(CLIENT *client, char *name, u_int length, u_int count, int direct)
{
    get_args args = {.name = name, .count = count};
    get_result result;
    int wrong;

    memset(&result, 0, sizeof(result));
    memset(place, 0, sizeof(place));
    result.get_result_u.data.data_val = direct ? place : NULL;
    if (store_get_1(&args, &result, client) != RPC_SUCCESS)
        return fail(client, "get");
    wrong = result.status != STORE_OK || result.get_result_u.data.data_len != (length < count ? length : count) ||
            (direct && result.get_result_u.data.data_val != place) ||
            memcmp(result.get_result_u.data.data_val ? result.get_result_u.data.data_val : place, data,
                   result.get_result_u.data.data_len) != 0;
    if (!direct)
        xdr_free((xdrproc_t)xdr_get_result, &result);
    if (wrong)
        fprintf(stderr, "store: %u octets of %s came back wrong\n", length, name);
    return wrong;
}

static int list(CLIENT *client)
{
    store_list result = {NULL};
    int n = 0;

    if (store_list_1(NULL, &result, client) != RPC_SUCCESS)
        return fail(client, "list");
    for (const store_entry *entry = result.first; entry; entry = entry->next)
        n++;
    xdr_free((xdrproc_t)xdr_store_list, &result);
    return n < PIECES;
}

int main(int argc, char **argv)
{
    static const u_int lengths[] = {0, 1, 2, 3, 4, 5, 100, 3900, 4000, 4096, 65535, 1000001, STORE_DATA};
    struct rddp_rpc_attr attr;
    CLIENT *client;
    char name[200];
    int wrong = 0;

    clnt_rdma_attr_init(&attr);
    attr.port = argc > 2 ? (uint16_t)atoi(argv[2]) : 0;
    attr.binding = &store_binding;
    attr.bindings = 1;
    client = clnt_rdma_create(argc > 1 ? argv[1] : "localhost", STORE_PROGRAM, STORE_VERSION, &attr);
    if (!client) {
        clnt_pcreateerror("store: clnt_rdma_create");
        return 1;
    }
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (char)(i * 2654435761u >> 11);
    wrong |= store_null_1(NULL, NULL, client) != RPC_SUCCESS;
    for (size_t i = 0; !wrong && i < sizeof(lengths) / sizeof(*lengths); i++) {
        snprintf(name, sizeof(name), "piece of %u", lengths[i]);
        wrong |= put(client, name, lengths[i]);
        wrong |= get(client, name, lengths[i], lengths[i], 1) | get(client, name, lengths[i], STORE_DATA, 0);
        wrong |= get(client, name, lengths[i], lengths[i] / 2, 1);
    }
    for (int i = 0; !wrong && i < PIECES; i++) {
        snprintf(name, sizeof(name), "%0150d", i);
        wrong |= put(client, name, 10);
    }
    wrong |= !wrong && list(client);
    clnt_destroy(client);
    puts(wrong ? "failed" : "ok");
    return wrong;
}

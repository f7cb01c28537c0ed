/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ids.h - two synchronous ids of rdma_cm, connected over loopback, each with a queue pair and a region. */
#ifndef RDDP_TESTS_VERBS_IDS_H
#define RDDP_TESTS_VERBS_IDS_H

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { DEPTH = 8, SIZE = 4096, WAIT_MS = 20000 };

/* Both ends of a connection, as synchronous ids. */
struct ids {
    struct rdma_cm_id *listener, *client, *server;
    struct ibv_mr *client_mr, *server_mr;
    char client_buffer[SIZE], server_buffer[SIZE];
    struct rdma_conn_param client_param; /* Reads at once: ids_connect() sets 4 each way, unless `no_reads` */
    bool no_reads;
    int connect_error;
    bool reject;
};

struct ibv_qp_init_attr ids_queues(void);

/* Make a listener, whose port is stored as text, and an id that is resolved to that port. */
void ids_listen(struct ids *ids, char port[8]);
void ids_make_client(struct ids *ids, const char *port);

/* Connects the client; connect_error becomes an errno or 0. For a thread: the call waits for the other end. */
void *ids_run_client(void *ids);

/* All of it, with a receive at either end; or, if `reject`, up to the rejection. */
void ids_connect(struct ids *ids);
void ids_free(struct ids *ids);

/* Waits for a completion. */
struct ibv_wc ids_completion(struct ibv_cq *cq);

#endif

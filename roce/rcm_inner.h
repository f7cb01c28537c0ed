/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rcm_inner.h - what the files of the connection manager share. */
#ifndef RDDP_ROCE_RCM_INNER_H
#define RDDP_ROCE_RCM_INNER_H

#include "roce/rcm.h"

/* --- rcm_list.c: rings whose head is a member, too ------------------------------------------------------------- */

void rcm_list_init(struct rcm_link *head);
bool rcm_list_is_empty(const struct rcm_link *head);
void rcm_list_add(struct rcm_link *head, struct rcm_link *link); /* as the last; nothing if it is in a list */
void rcm_list_remove(struct rcm_link *link);                     /* nothing if it is in none */

/* --- rcm_heap.c: deadlines ------------------------------------------------------------------------------------- */

/* Changes when a timer is due; RCM_NEVER: takes it out. */
void rcm_timer_set(struct rcm_timer **first, struct rcm_timer *timer, uint64_t due_us);

/* --- rcm_table.c: who is meant --------------------------------------------------------------------------------- */

/* A comm ID that no connection has. */
uint32_t rcm_new_id(struct rcm *cm);

/* Adds it under its local ID; under the peer's ID (remote_id); under the peer's queue pair (peer_qpn). */
void rcm_add_local(struct rcm *cm, struct rcm_conn *conn);
void rcm_add_remote(struct rcm *cm, struct rcm_conn *conn);
void rcm_add_qpn(struct rcm *cm, struct rcm_conn *conn);

struct rcm_conn *rcm_by_local(struct rcm *cm, const struct rcm_path *path, uint32_t local_id);
struct rcm_conn *rcm_by_remote(struct rcm *cm, const struct rcm_path *path, uint32_t remote_id, bool datagram);
struct rcm_conn *rcm_by_qpn(struct rcm *cm, const struct rcm_path *path, uint32_t qpn);
struct rcm_listener *rcm_find_listener(const struct rcm *cm, uint64_t service, const uint8_t *local);

/* --- rcm_state.c: what becomes of a connection, and what leaves for it ----------------------------------------- */

/* Initialises it for a wait with this response time-out (a code) and number of retries. */
void rcm_begin(struct rcm_conn *conn, const struct rcm_path *path, uint8_t response_timeout, uint8_t retries);

/* Puts a message with the IDs of the connection into `out`. Returns false if its private data are too long. */
bool rcm_write(struct rcm_conn *conn, struct rcm_message *m);

/* May a message that answers none leave for this peer? If so, it counts. */
bool rcm_may_ask(struct rcm *cm, const struct rcm_conn *conn);

/* Sends the message in `out`: once, or until it is answered. */
void rcm_send(struct rcm *cm, struct rcm_conn *conn);
void rcm_ask(struct rcm *cm, struct rcm_conn *conn, enum rcm_state state, uint64_t now_us);

/* Sends a message that belongs to no connection. Returns false if its private data are too long. */
bool rcm_answer(struct rcm *cm, const struct rcm_path *path, const struct rcm_message *m);

/* Refuses the request or REP that was received. Returns false if the private data are too long. */
bool rcm_deny(struct rcm *cm, uint16_t reason, const void *data, uint8_t octets);

/* An event for the host. */
void rcm_notify(struct rcm *cm, struct rcm_conn *conn, enum rcm_event_kind kind);

/* The request is withdrawn before it was answered. If the peer answers later all the same, it is told that the comm ID
 * is unknown. */
void rcm_cancel(struct rcm *cm, struct rcm_conn *conn);

/* Each ends what the state before it waited for. */
void rcm_establish(struct rcm *cm, struct rcm_conn *conn);
void rcm_rest(struct rcm *cm, struct rcm_conn *conn, uint64_t us, uint64_t now_us); /* RCM_TIMEWAIT */
void rcm_part(struct rcm *cm, struct rcm_conn *conn, uint64_t now_us); /* the same, with RCM_EVENT_DISCONNECTED */
void rcm_close(struct rcm *cm, struct rcm_conn *conn);                 /* RCM_EVENT_GONE */

#endif

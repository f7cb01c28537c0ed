/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_transport.c - what the public calls and the loops reach RoCE by. */
#include "roce/io/roce_transport.h"

#include "roce/io/endpoint_roce.h"
#include "roce/io/endpoint_sidr.h"
#include "roce/io/endpoint_ud.h"
#include "roce/io/roce_attr.h"
#include "roce/io/roce_listener.h"
#include "roce/io/roce_path.h"
#include "roce/io/roce_port.h"

static const struct transport_ib by_hand = {
    .open_slot = roce_slot_open,
    .close_slot = roce_slot_close,
    .may_receive = roce_attr_may_receive,
    .may_send = roce_attr_may_send,
    .receive = endpoint_roce_receive,
    .send = endpoint_roce_send,
    .drain = endpoint_roce_drain,
    .restart = endpoint_roce_restart,
    .set_rnr_timer = endpoint_roce_set_rnr_timer,
    .set_drained = endpoint_roce_set_drained,
    .receive_ud = endpoint_ud_receive,
    .send_ud = endpoint_ud_send,
    .drain_ud = endpoint_ud_drain,
    .restart_ud = endpoint_ud_restart,
    .set_key_ud = endpoint_ud_set_key,
    .resolve = endpoint_sidr_resolve,
    .forget = endpoint_sidr_forget,
    .path_mtu = roce_path_mtu,
};

const struct transport transport_roce = {
    .connect = endpoint_roce_connect,
    .listen = roce_listener_begin,
    .unlisten = roce_listener_end,
    .addr = roce_listener_addr,
    .close = roce_host_close,
    .leave = roce_host_leave,
    .ib = &by_hand,
};

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* last_octets.c - a peer sends, and resets the connection before all that it was sent has been read. What had arrived
 * is delivered, though a post meets the reset first. */
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/suite/lib/manual.h"

enum { DESCRIPTORS = 1024, SETTLE_MS = 50, TURNS = 1000 };

static in_port_t port_of(const struct sockaddr_storage *address)
{
    return ((const struct sockaddr_in *)(const void *)address)->sin_port;
}

/* The descriptor of the library's socket with these two ports. */
static int socket_between(const struct sockaddr_storage *local, const struct sockaddr_storage *peer)
{
    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        struct sockaddr_storage own, other;
        socklen_t own_length = sizeof(own), other_length = sizeof(other);

        if (!getsockname(fd, (struct sockaddr *)&own, &own_length) &&
            !getpeername(fd, (struct sockaddr *)&other, &other_length) && own.ss_family == AF_INET &&
            port_of(&own) == port_of(local) && port_of(&other) == port_of(peer))
            return fd;
    }
    fail_msg("there is no such socket");
    return -1;
}

/* As a process that is killed while octets for it are unread. The library uses the descriptor meanwhile: connect()
 * would be a race for ThreadSanitizer, which knows nothing of a bare call. */
static void reset(const struct manual_end *end)
{
    const struct sockaddr nothing = {.sa_family = AF_UNSPEC};
    struct rddp_qp_info info;

    assert_int_equal(rddp_query_qp(end->qp, &info), 0);
    assert_int_equal(syscall(SYS_connect, socket_between(&info.local, &info.peer), &nothing, sizeof(nothing)), 0);
}

static void send_from(struct manual_end *end)
{
    struct rddp_sge sge = {(uintptr_t)end->memory, MANUAL_SIZE, rddp_mr_key(end->mr)};
    struct rddp_send_wr wr = {
        .wr_id = 2, .sg_list = &sge, .num_sge = 1, .opcode = RDDP_WR_SEND, .send_flags = RDDP_SEND_SIGNALED};

    assert_int_equal(rddp_post_send(end->qp, &wr, NULL), 0);
}

static struct rddp_wc next_completion(struct manual_end *end)
{
    struct rddp_wc wc;

    for (int i = 0; i < TURNS; i++) {
        if (rddp_poll_cq(end->cq, 1, &wc) == 1)
            return wc;
        rddp_progress(end->context, 1);
    }
    fail_msg("nothing completes");
    return wc;
}

static void receive_at(struct manual_end *end)
{
    struct rddp_sge sge = {(uintptr_t)end->memory, MANUAL_SIZE, rddp_mr_key(end->mr)};
    struct rddp_recv_wr receive = {.wr_id = 1, .sg_list = &sge, .num_sge = 1};

    assert_int_equal(rddp_post_recv(end->qp, &receive, NULL), 0);
}

static void expect(struct manual_end *end, uint64_t id)
{
    struct rddp_wc wc = next_completion(end);

    assert_int_equal(wc.wr_id, id);
    assert_int_equal(wc.status, RDDP_WC_SUCCESS);
}

static void delivers_what_had_arrived(void **state)
{
    (void)state;
    receive_at(&there);
    receive_at(&here);
    send_from(&here); /* the end that called speaks first */
    expect(&here, 2);
    expect(&there, 1);
    memcpy(there.memory, "the last", MANUAL_SIZE);
    send_from(&there);
    expect(&there, 2);
    poll(NULL, 0, SETTLE_MS); /* it waits in the socket: nothing drives this end */
    reset(&there);
    poll(NULL, 0, SETTLE_MS);
    send_from(&here);
    expect(&here, 1);
    assert_memory_equal(here.memory, "the last", MANUAL_SIZE);
    manual_event(&here, RDDP_EVENT_DISCONNECTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(delivers_what_had_arrived, manual_open, manual_close),
    };

    return cmocka_run_group_tests_name("last_octets", tests, NULL, NULL);
}

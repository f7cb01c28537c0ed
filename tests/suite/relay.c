/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* relay.c - a middlebox between the ends cuts the stream again at every octet: no FPDU is lost or mistaken, although
 * the agreement about where they begin no longer holds. MPA-2-01 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "tests/suite/lib/network.h"
#include "tests/suite/lib/pair.h"

enum { SENDS = 24, LENGTH = 20000, CUTS = 1500 };

/* Two kernel sockets, and a thread that forwards octets between them. */
struct relay {
    struct sockaddr_storage to;
    socklen_t length;
    int listener, fd[2];
    unsigned cut[2]; /* octets of the next segment */
    pthread_t thread;
};

static void no_delay(int fd)
{
    int one = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

/* Forwards what has arrived, in segments of 1, 2, 3, ... octets. Returns false if that side has finished. */
static bool carry(struct relay *relay, int from)
{
    uint8_t octets[4096];
    ssize_t n = read(relay->fd[from], octets, sizeof(octets)), at = 0, take;

    if (n <= 0) {
        shutdown(relay->fd[!from], SHUT_WR);
        return false;
    }
    while (at < n) {
        relay->cut[from] = relay->cut[from] % CUTS + 1;
        take = n - at < (ssize_t)relay->cut[from] ? n - at : (ssize_t)relay->cut[from];
        if (send(relay->fd[!from], octets + at, (size_t)take, MSG_NOSIGNAL) != take)
            return false;
        at += take;
    }
    return true;
}

static void *run(void *arg)
{
    struct relay *relay = arg;
    struct pollfd fd[2];

    relay->fd[0] = accept(relay->listener, NULL, NULL);
    relay->fd[1] = socket(relay->to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (relay->fd[0] < 0 || connect(relay->fd[1], (struct sockaddr *)&relay->to, relay->length))
        return NULL;
    for (int i = 0; i < 2; i++) {
        no_delay(relay->fd[i]);
        fd[i] = (struct pollfd){.fd = relay->fd[i], .events = POLLIN};
    }
    while (fd[0].fd >= 0 || fd[1].fd >= 0) {
        if (poll(fd, 2, PAIR_WAIT_MS) <= 0)
            break;
        for (int i = 0; i < 2; i++)
            if (fd[i].fd >= 0 && fd[i].revents && !carry(relay, i))
                fd[i].fd = -1;
    }
    return NULL;
}

/* The client connects to the relay, which connects to the server. */
static void begin(struct relay *relay, struct pair *pair)
{
    struct sockaddr_storage here;
    socklen_t length = network_address(&here, 1, 1, 0);

    *relay = (struct relay){.to = pair->addr, .length = length, .fd = {-1, -1}};
    relay->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(relay->listener, (struct sockaddr *)&here, length), 0);
    assert_int_equal(listen(relay->listener, 1), 0);
    assert_int_equal(getsockname(relay->listener, (struct sockaddr *)&pair->addr, &length), 0);
    assert_int_equal(pthread_create(&relay->thread, NULL, run, relay), 0);
}

static void end(struct relay *relay, struct pair *pair)
{
    assert_int_equal(rddp_disconnect(pair->client.qp), 0);
    pair_event(&pair->server, RDDP_EVENT_DISCONNECTED);
    pair_event(&pair->client, RDDP_EVENT_DISCONNECTED);
    pthread_join(relay->thread, NULL);
    close(relay->listener);
    for (int i = 0; i < 2; i++)
        close(relay->fd[i]);
}

/* MPA-7.4.1-01 MPA-13-09: FPDUs are posted before their cuts are known, and all of them arrive. */
static void cut_at_every_octet(void **state)
{
    struct pair *pair = *state;
    struct relay relay;
    struct rddp_wc wc;

    if (!pair->row->packet)
        skip();
    begin(&relay, pair);
    pair_connect(pair);
    for (unsigned i = 0; i < SENDS; i++) {
        pair_pattern(pair->client.buffer, LENGTH, i);
        pair_receive(&pair->server, i, 0, LENGTH);
        assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_RDMA_WRITE, i, 0, LENGTH, LENGTH, 0), 0);
        assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, i, 0, LENGTH, 0, RDDP_SEND_SIGNALED), 0);
        wc = pair_completion(&pair->server);
        assert_int_equal(wc.status, RDDP_WC_SUCCESS);
        assert_int_equal(wc.byte_len, LENGTH);
        assert_true(pair_is_pattern(pair->server.buffer, LENGTH, i));
        assert_true(pair_is_pattern(pair->server.buffer + LENGTH, LENGTH, i));
        assert_int_equal(pair_completion(&pair->client).status, RDDP_WC_SUCCESS);
    }
    end(&relay, pair);
}

int main(void)
{
    static const struct pair_test tests[] = {PAIR_TEST(cut_at_every_octet)};

    return pair_run("relay", tests, 1, false);
}

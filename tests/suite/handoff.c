/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* handoff.c - what is particular to connections that were handed off: what the calls refuse, many of them, how they
 * end, and forged packets. */
#include <errno.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tcp/io/packet_device.h"
#include "tcp/io/packet_name.h"
#include "tests/suite/lib/pair.h"

enum { MANY = 40, LENGTH = 100000, FORGED = 300, FORGED_OCTETS = 100 };

static struct pair *of(void **state)
{
    if (!(*(struct pair **)state)->row->hand_off)
        skip();
    return *state;
}

static void write_and_say(struct pair *pair, unsigned round)
{
    pair_pattern(pair->client.buffer, LENGTH, round);
    pair_receive(&pair->server, round, LENGTH, 1);
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_RDMA_WRITE, round, 0, LENGTH, 0, 0), 0);
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, round, 0, 1, 0, RDDP_SEND_SIGNALED), 0);
    assert_int_equal(pair_completion(&pair->server).status, RDDP_WC_SUCCESS);
    assert_int_equal(pair_completion(&pair->client).status, RDDP_WC_SUCCESS);
    assert_true(pair_is_pattern(pair->server.buffer, LENGTH, round));
}

static void refuses(const struct pair *pair, const struct rddp_device_attr *attr)
{
    errno = 0;
    assert_null(rddp_open_device(pair->client.context, attr));
    assert_int_equal(errno, EINVAL);
}

static struct rddp_device_attr handing_off(void)
{
    struct rddp_device_attr attr;

    rddp_device_attr_init(&attr);
    attr.hand_off = true;
    return attr;
}

static void refused(void **state)
{
    struct pair *pair = of(state);
    struct sockaddr_in own = {.sin_family = AF_INET};
    struct rddp_device_attr attr = handing_off();

    attr.address = (struct sockaddr *)&own;
    refuses(pair, &attr);
    attr = handing_off();
    attr.neighbor = (struct sockaddr *)&own;
    refuses(pair, &attr);
    attr = handing_off();
    attr.name = "a";
    refuses(pair, &attr);
    attr = handing_off();
    attr.prefix = 24;
    refuses(pair, &attr);
    attr = handing_off();
    attr.checksums = true;
    refuses(pair, &attr);
    attr = handing_off();
    attr.window = 4095;
    refuses(pair, &attr);
    attr = handing_off();
    attr.connections = 0;
    refuses(pair, &attr);
    /* Used by a queue pair, or by a listener. */
    assert_int_equal(rddp_close_device(pair->client.device), -EBUSY);
    assert_int_equal(rddp_close_device(pair->server.device), -EBUSY);
}

/* Capabilities are a thread's: this one has none, and so have those that its context makes. */
static void *open_without_privileges(void *user)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};
    struct rddp_device_attr attr = handing_off();
    struct rddp_context *context;
    int *error = user;

    *error = 0;
    if (syscall(SYS_capset, &head, none))
        return NULL;
    context = rddp_open(NULL);
    if (context && !rddp_open_device(context, &attr))
        *error = errno;
    if (context)
        rddp_close(context);
    return NULL;
}

static void without_privileges(void **state)
{
    pthread_t thread;
    int error;

    (void)of(state);
    assert_int_equal(pthread_create(&thread, NULL, open_without_privileges, &error), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(error, EPERM);
}

/* Packets live on as long as the kernel's did. */
static void lives(void **state)
{
    const struct rddp_device *device = of(state)->client.device;
    int own = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), hops = 0;
    socklen_t length = sizeof(hops);

    assert_int_equal(getsockopt(own, IPPROTO_IP, IP_TTL, &hops, &length), 0);
    close(own);
    assert_non_null(device->links);
    assert_int_equal(device->links->tcp.attr.hops, hops);
}

/* One packet socket serves them all. */
static void many(void **state)
{
    struct pair *pair = of(state);
    struct rddp_qp *client[MANY], *server[MANY], *first_client = pair->client.qp, *first_server = pair->server.qp;

    pair->qp_attr.max_send_wr = pair->qp_attr.max_recv_wr = 4;
    for (unsigned i = 0; i < MANY; i++) {
        pair_connect(pair);
        client[i] = pair->client.qp;
        server[i] = pair->server.qp;
        write_and_say(pair, i);
    }
    for (unsigned i = 0; i < MANY; i++) {
        pair->client.qp = client[i];
        pair->server.qp = server[i];
        write_and_say(pair, MANY + i);
        assert_int_equal(rddp_destroy_qp(client[i]), 0);
        pair_event(&pair->server, RDDP_EVENT_DISCONNECTED);
        assert_int_equal(rddp_destroy_qp(server[i]), 0);
    }
    pair->client.qp = first_client;
    pair->server.qp = first_server;
    write_and_say(pair, 0);
}

/* Both ends finish, and neither is told of an error. */
static void clean_end(void **state)
{
    struct pair *pair = of(state);

    write_and_say(pair, 1);
    assert_int_equal(rddp_disconnect(pair->client.qp), 0);
    assert_int_equal(pair_event(&pair->server, RDDP_EVENT_DISCONNECTED).status, 0);
    assert_int_equal(pair_event(&pair->client, RDDP_EVENT_DISCONNECTED).status, 0);
}

static void forge(const struct rawip *r, const struct utcp_name *from, const struct utcp_name *to, uint8_t flags,
                  uint32_t seq, uint32_t octets)
{
    static const uint8_t junk[FORGED_OCTETS] = {0x5a};
    struct utcp_head head = {.seq = seq, .ack = ~seq, .flags = flags, .window = 1000};
    struct utcp_packet p = {.span = {{junk, octets}}, .spans = octets != 0, .length = octets};
    struct iovec piece[] = {{p.head, 0}, {(void *)(uintptr_t)junk, octets}};

    utcp_packet_write(&p, from, to, &head);
    piece[0].iov_len = p.head_length;
    (void)rawip_send(r, &(struct rawip_packet){piece, 1 + p.spans}, 1, 0);
}

static void forge_all(const struct utcp_name *from, const struct utcp_name *to)
{
    struct rawip r;

    assert_int_equal(rawip_open(&r), 0);
    for (uint32_t i = 0, seq = 12345; i < FORGED; i++, seq = seq * 1664525 + 1013904223) {
        forge(&r, from, to, UTCP_RST, seq, 0);
        forge(&r, from, to, UTCP_SYN, seq, 0);
        forge(&r, from, to, UTCP_ACK, seq, FORGED_OCTETS);
        forge(&r, from, to, UTCP_ACK | UTCP_FIN, seq, 0);
    }
    rawip_close(&r);
}

/* A connection that the kernel still has, at a port whose packets we see, is none of our business. */
static int bystander(const struct sockaddr_storage *to)
{
    int fd = socket(to->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)to, sizeof(*to)), 0);
    assert_int_equal(send(fd, "MPA", 3, MSG_NOSIGNAL), 3);
    return fd;
}

/* MPA-5.1-04: what does not fit the connection changes nothing. */
static void forged(void **state)
{
    struct pair *pair = of(state);
    struct utcp_name client, server;
    struct rddp_qp_info info;
    struct pollfd other = {.events = POLLIN | POLLRDHUP};

    if (pair->row->silent)
        skip(); /* frames at once: three octets of nothing are a fault */
    other.fd = bystander(&pair->addr);
    assert_int_equal(rddp_query_qp(pair->client.qp, &info), 0);
    assert_int_equal(packet_name_from(&client, (struct sockaddr *)&info.local, sizeof(info.local)), 0);
    assert_int_equal(packet_name_from(&server, (struct sockaddr *)&info.peer, sizeof(info.peer)), 0);
    forge_all(&client, &server);
    write_and_say(pair, 1);
    forge_all(&server, &client);
    write_and_say(pair, 2);
    assert_int_equal(poll(&other, 1, 0), 0);
    assert_int_equal(send(other.fd, " ID ", 4, MSG_NOSIGNAL), 4);
    assert_int_equal(poll(&other, 1, 50), 0);
    close(other.fd);
    assert_int_equal(rddp_query_qp(pair->client.qp, &info), 0);
    assert_int_equal(info.state, RDDP_QP_CONNECTED);
}

int main(void)
{
    static const struct pair_test tests[] = {PAIR_TEST(refused), PAIR_TEST(without_privileges), PAIR_TEST(lives),
                                             PAIR_TEST(many),    PAIR_TEST(clean_end),          PAIR_TEST(forged)};

    return pair_run("handoff", tests, sizeof(tests) / sizeof(*tests), true);
}

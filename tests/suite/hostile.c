/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* hostile.c - foreign peers on raw sockets: garbage, silence, stalls, resets. A good connection beside them is not
 * affected. Single faults, octet by octet, are in tests/unit/conn.c. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "endpoint/objects.h"
#include "tests/suite/lib/pair.h"

enum { SHORT_MS = 200 };

static atomic_bool no_memory;

/* The linker puts this in the place of mmap(). */
void *__real_mmap(void *at, size_t length, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t length, int prot, int flags, int fd, off_t offset);

void *__wrap_mmap(void *at, size_t length, int prot, int flags, int fd, off_t offset)
{
    if (!atomic_load(&no_memory))
        return __real_mmap(at, length, prot, flags, fd, offset);
    errno = ENOMEM;
    return MAP_FAILED;
}

static struct pair *of(void **state)
{
    return *state;
}

static const char request[] = "MPA ID Req Frame\0\1\0";

/* A second listener with its own time-outs. */
struct other {
    struct rddp_listener *listener;
    struct sockaddr_storage addr;
};

static struct other listen_for(struct pair *pair, uint32_t patience_ms)
{
    struct other it = {.listener = NULL};
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct rddp_wire_attr wire;

    rddp_wire_attr_init(&wire);
    wire.startup_timeout_ms = wire.stall_timeout_ms = wire.close_timeout_ms = patience_ms;
    wire.crc = false;
    it.listener = rddp_listen(pair->server.events, (struct sockaddr *)&any, sizeof(any), 512, &wire, NULL);
    assert_non_null(it.listener);
    assert_int_equal(rddp_listener_addr(it.listener, &it.addr), 0);
    return it;
}

static struct other listen_impatiently(struct pair *pair)
{
    return listen_for(pair, SHORT_MS);
}

static int dial(const struct other *it)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&it->addr, sizeof(struct sockaddr_in)), 0);
    return fd;
}

/* Reads until the end of the stream; *ms is how long that took. Returns the octets received. */
static size_t read_to_end(int fd, uint8_t *to, size_t space, int64_t *ms)
{
    struct timespec from, until;
    struct pollfd pollfd = {.fd = fd, .events = POLLIN};
    size_t n = 0;
    ssize_t k;

    clock_gettime(CLOCK_MONOTONIC, &from);
    do {
        assert_int_equal(poll(&pollfd, 1, PAIR_WAIT_MS), 1);
        k = read(fd, to + n, space - n);
        if (k > 0)
            n += (size_t)k;
    } while (k > 0);
    clock_gettime(CLOCK_MONOTONIC, &until);
    *ms = (until.tv_sec - from.tv_sec) * 1000 + (until.tv_nsec - from.tv_nsec) / 1000000;
    return n;
}

static void good_connection_works(struct pair *pair)
{
    pair_receive(&pair->server, 1, 0, 64);
    assert_int_equal(pair_post(&pair->client, &pair->server, RDDP_WR_SEND, 1, 0, 64, 0, 0), 0);
    assert_int_equal(pair_completion(&pair->server).status, RDDP_WC_SUCCESS);
}

/* M44-10, M44-13: closed at once, with a log line that names the error. */
static void garbage(void **state)
{
    struct pair *pair = of(state);
    struct other it = listen_impatiently(pair);
    int fd = dial(&it);
    uint8_t answer[64];
    int64_t ms;

    assert_int_equal(write(fd, "GET / HTTP/1.1\r\n\r\n", 18), 18);
    assert_int_equal(read_to_end(fd, answer, sizeof(answer), &ms), 0);
    assert_true(ms < SHORT_MS);
    close(fd);
    if (!pair_said(&pair->server, "127.0.0.1:"))
        fail_msg("no line names the peer:\n%s", pair->server.log);
    good_connection_works(pair);
    assert_int_equal(rddp_destroy_listener(it.listener), 0);
}

/* M44-17: silence, and half a request, end after the start-up time-out; many of them at once delay no other. */
static void silence(void **state)
{
    enum { MANY = 100 };
    struct pair *pair = of(state);
    struct other it = listen_impatiently(pair);
    uint8_t answer[64];
    int fd[MANY];
    int64_t ms;

    for (int i = 0; i < MANY; i++) {
        fd[i] = dial(&it);
        if (i % 2)
            assert_int_equal(write(fd[i], request, 10), 10);
    }
    good_connection_works(pair);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(read_to_end(fd[i], answer, sizeof(answer), &ms), 0);
        assert_true(ms < 10 * SHORT_MS);
        close(fd[i]);
    }
    good_connection_works(pair);
    assert_int_equal(rddp_destroy_listener(it.listener), 0);
}

static struct rddp_qp *accept_one(struct pair *pair)
{
    struct rddp_qp_attr attr;
    struct rddp_qp *qp;

    rddp_qp_attr_init(&attr);
    attr.send_cq = attr.recv_cq = pair->server.cq;
    qp = rddp_create_qp(pair->server.pd, &attr);
    assert_non_null(qp);
    assert_int_equal(rddp_accept(pair_event(&pair->server, RDDP_EVENT_CONNECT_REQUEST).request, qp, NULL), 0);
    pair_event(&pair->server, RDDP_EVENT_ESTABLISHED);
    return qp;
}

/* Silence in the middle of an FPDU: the connection ends and says why. */
static void stall(void **state)
{
    struct pair *pair = of(state);
    struct other it = listen_impatiently(pair);
    struct rddp_qp *qp;
    int fd = dial(&it);
    uint8_t answer[256];
    int64_t ms;

    assert_int_equal(write(fd, request, 20), 20);
    qp = accept_one(pair);
    assert_int_equal(write(fd, "\0\x20\x41\x43", 4), 4);
    read_to_end(fd, answer, sizeof(answer), &ms);
    assert_true(ms >= SHORT_MS / 2 && ms < 10 * SHORT_MS);
    assert_int_equal(pair_event(&pair->server, RDDP_EVENT_DISCONNECTED).status, -ETIMEDOUT);
    close(fd);
    good_connection_works(pair);
    assert_int_equal(rddp_destroy_qp(qp), 0);
    assert_int_equal(rddp_destroy_listener(it.listener), 0);
}

/* A peer gives up before the application has answered. */
static void gone_before_the_answer(void **state)
{
    struct pair *pair = of(state);
    struct other it = listen_impatiently(pair);
    struct rddp_qp_attr attr;
    struct rddp_qp *qp;
    struct rddp_event event;
    int fd = dial(&it);

    assert_int_equal(write(fd, request, 20), 20);
    event = pair_event(&pair->server, RDDP_EVENT_CONNECT_REQUEST);
    close(fd);
    usleep(50000);
    rddp_qp_attr_init(&attr);
    attr.send_cq = attr.recv_cq = pair->server.cq;
    qp = rddp_create_qp(pair->server.pd, &attr);
    assert_int_equal(rddp_accept(event.request, qp, NULL), -ECONNABORTED);
    assert_int_equal(rddp_destroy_qp(qp), 0);
    assert_int_equal(rddp_destroy_listener(it.listener), 0);
}

/* Posts Writes of these octets until the peer, which does not read, blocks them: one has been cut, and others wait
 * behind it. Posts with polls in between share a turn, whose end blocks them, too; others have one each. Polls empty a
 * queue that is full, of what has left or of what a busy machine has not sent yet. Where what fits ends with a request
 * none is cut: the peer reads something. Stores that in `said` and returns its octets. */
static size_t post_until_it_waits(struct pair *pair, struct rddp_qp *qp, struct rddp_mr *mr, struct rddp_sge sge,
                                  int fd, uint8_t *said)
{
    enum { IDLE = 300, SOME = 100000 };
    struct rddp_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = RDDP_WR_RDMA_WRITE, .send_flags = RDDP_SEND_SIGNALED};
    int posted = 0, done = 0, behind = 0, idle = 0;
    size_t octets = 0;

    while (behind < 8) {
        struct rddp_wc wc[64];
        int error = rddp_post_send(qp, &wr, NULL), before = posted + done;

        assert_true(error == 0 || error == -ENOMEM);
        posted += !error;
        usleep(1000);
        if (error || posted < done + 8)
            done += rddp_poll_cq(pair->server.cq, 64, wc);
        behind = mr->mr->sending ? behind + 1 : 0;
        idle = posted + done == before ? idle + 1 : 0;
        if (!behind && idle && idle % IDLE == 0) {
            ssize_t n = read(fd, said + octets, SOME);

            assert_true(n > 0);
            octets += (size_t)n;
        }
    }
    return octets;
}

/* Requests already cut into segments are sent unchanged although their region is gone: every FPDU is complete. Then a
 * Terminate reports that the other requests name no memory. */
static void deregistered_while_it_waits(void **state)
{
    enum { LENGTH = 30000, BUFFER = 64 << 20 };
    static const uint8_t empty_write[20] = {0, 14, 0xc1, 0x40};
    struct pair *pair = of(state);
    struct other it = listen_impatiently(pair);
    uint8_t *source = malloc(LENGTH), *said = malloc(BUFFER), *at = said;
    struct rddp_mr *mr = rddp_reg_mr(pair->server.pd, source, LENGTH, 0);
    struct rddp_sge sge = {(uintptr_t)source, LENGTH, rddp_mr_key(mr)};
    struct rddp_qp *qp;
    int fd = dial(&it);
    size_t octets;
    int64_t ms;

    assert_non_null(mr);
    pair_pattern(source, LENGTH, 9);
    assert_int_equal(write(fd, request, 20), 20);
    qp = accept_one(pair);
    assert_int_equal(write(fd, empty_write, 20), 20);
    octets = post_until_it_waits(pair, qp, mr, sge, fd, said);
    assert_int_equal(rddp_dereg_mr(mr), 0);
    memset(source, 0, LENGTH);
    read_to_end(fd, said + octets, BUFFER - octets, &ms);
    for (at += 20; at[2] & 0x80; at += 2 + 14 + LENGTH + 4) { /* tagged; 14 octets of header, no pad */
        assert_int_equal(at[0] << 8 | at[1], 14 + LENGTH);
        assert_true(pair_is_pattern(at + 16, LENGTH, 9));
    }
    assert_int_equal(at[3], 0x47);
    close(fd);
    pair_event(&pair->server, RDDP_EVENT_DISCONNECTED);
    free(said);
    free(source);
    assert_int_equal(rddp_destroy_qp(qp), 0);
    assert_int_equal(rddp_destroy_listener(it.listener), 0);
}

/* No memory for an unfinished FPDU that must leave the stage for another connection: its connection ends, and the
 * application is told at once. Connections go to the loops in turn, so the first and the last share one. */
static void no_memory_for_a_beginning(void **state)
{
    enum { MOST = 8 };
    struct pair *pair = of(state);
    struct other it = listen_for(pair, 2 * PAIR_WAIT_MS);
    uint32_t last = pair->row->loops ? pair->row->loops : 1;
    struct rddp_qp *qp[MOST];
    uint8_t rest[256];
    int64_t ms;
    int fd[MOST];

    for (uint32_t i = 0; i <= last; i++) {
        fd[i] = dial(&it);
        assert_int_equal(write(fd[i], request, 20), 20);
        qp[i] = accept_one(pair);
    }
    atomic_store(&no_memory, true);
    for (uint32_t i = 0; i <= last; i += last) {
        assert_int_equal(write(fd[i], "\0\x20\x41", 3), 3);
        usleep(SHORT_MS * 1000 / 4);
    }
    assert_int_equal(pair_event(&pair->server, RDDP_EVENT_DISCONNECTED).status, -ENOMEM);
    atomic_store(&no_memory, false);
    read_to_end(fd[0], rest, sizeof(rest), &ms);
    for (uint32_t i = 0; i <= last; i++)
        close(fd[i]);
    for (uint32_t i = 1; i <= last; i++)
        pair_event(&pair->server, RDDP_EVENT_DISCONNECTED);
    for (uint32_t i = 0; i <= last; i++)
        assert_int_equal(rddp_destroy_qp(qp[i]), 0);
    assert_int_equal(rddp_destroy_listener(it.listener), 0);
}

/* The peer resets the connection during a transfer. */
static void reset(void **state)
{
    struct pair *pair = of(state);
    struct other it = listen_impatiently(pair);
    struct linger linger = {.l_onoff = 1};
    struct rddp_qp *qp;
    int fd = dial(&it);

    assert_int_equal(write(fd, request, 20), 20);
    qp = accept_one(pair);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
    close(fd);
    assert_int_equal(pair_event(&pair->server, RDDP_EVENT_DISCONNECTED).status, -ECONNRESET);
    assert_int_equal(rddp_destroy_qp(qp), 0);
    assert_int_equal(rddp_destroy_listener(it.listener), 0);
}

int main(void)
{
    static const struct pair_test tests[] = {
        PAIR_TEST(garbage),
        PAIR_TEST(silence),
        PAIR_TEST(stall),
        PAIR_TEST(gone_before_the_answer),
        PAIR_TEST(deregistered_while_it_waits),
        PAIR_TEST(no_memory_for_a_beginning),
        PAIR_TEST(reset),
    };

    return pair_run("hostile", tests, sizeof(tests) / sizeof(*tests), true);
}

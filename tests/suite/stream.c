/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream.c - the public calls of rddp/stream.h: two nets with the kernel's forwarding between them, and losses. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/rng.h"
#include "tests/suite/lib/network.h"
#include "tests/suite/lib/stream_path.h"

enum { HEAD = 64, TAIL = 10, TRANSFERS = 40, LENGTH = 100001, ROUNDS = 60000, PATIENCE_MS = 20000, QUIET = 100 };

struct pair {
    struct stream_path path;
    uint8_t *source, *target;
    bool checked; /* the device vouches for checksums */
};

static void turn(struct pair *p)
{
    stream_path_turn(&p->path);
}

static void open_pair(struct pair *p, uint32_t lose, bool no_option)
{
    stream_path_open(&p->path,
                     &(struct stream_path_attr){.lose = lose, .no_option = no_option, .checksums = !p->checked});
}

static void close_pair(struct pair *p)
{
    stream_path_close(&p->path);
    free(p->source);
    free(p->target);
}

static void make_memory(struct pair *p)
{
    struct rng r = {5};

    p->source = malloc((size_t)TRANSFERS * LENGTH + HEAD + TAIL);
    p->target = calloc(TRANSFERS, LENGTH);
    assert_true(p->source && p->target);
    rng_fill(&r, p->source, (size_t)TRANSFERS * LENGTH + HEAD + TAIL);
}

/* Writes messages of a head, a transfer and a tail. */
static void say(struct pair *p, uint64_t first_rid, bool unsolicited)
{
    uint8_t *text = p->source + (size_t)TRANSFERS * LENGTH;

    for (uint32_t i = 0; i < TRANSFERS; i++) {
        struct rddp_stream_mark mark = {first_rid + i, 0, LENGTH, i % 2 || p->checked, unsolicited};

        assert_int_equal(rddp_stream_write(p->path.end[0], text, HEAD, RDDP_STREAM_MESSAGE, NULL), 0);
        assert_int_equal(rddp_stream_write(p->path.end[0], p->source + (size_t)i * LENGTH, LENGTH, 0, &mark), 0);
        assert_int_equal(rddp_stream_write(p->path.end[0], text + HEAD, TAIL, 0, NULL), 0);
    }
    assert_int_equal(rddp_stream_finish(p->path.end[0]), 0);
    assert_int_equal(rddp_stream_write(p->path.end[0], text, 1, 0, NULL), -EPIPE);
}

/* Returns the octet that was sent at this position. */
static uint8_t sent(const struct pair *p, uint64_t position)
{
    uint64_t message = position / (HEAD + LENGTH + TAIL), at = position % (HEAD + LENGTH + TAIL);
    const uint8_t *text = p->source + (size_t)TRANSFERS * LENGTH;

    if (at < HEAD)
        return text[at];
    return at < HEAD + LENGTH ? p->source[message * LENGTH + at - HEAD] : text[at - LENGTH];
}

/* Reads until the peer's end: every octet is there, in order, and where its record says. Returns how many were
 * placed. */
static uint64_t hear(struct pair *p, uint64_t first_rid)
{
    static uint8_t plain[5000];
    struct rddp_stream_record r = {0};
    uint64_t position = 0, placed = 0;
    int got;

    for (int i = 0; i < ROUNDS && r.kind != RDDP_STREAM_FINISH; i++) {
        turn(p);
        while (r.kind != RDDP_STREAM_FINISH &&
               (got = rddp_stream_read(p->path.end[1], plain, sizeof(plain), &r)) != 0) {
            const uint8_t *at = r.kind == RDDP_STREAM_PLACED ? r.at : plain;

            assert_int_equal(got, 1);
            assert_true(r.position == position);
            for (size_t k = 0; k < r.length; k++)
                assert_int_equal(at[k], sent(p, position + k));
            if (r.kind == RDDP_STREAM_PLACED) {
                assert_true(r.rid == first_rid + position / (HEAD + LENGTH + TAIL));
                assert_true(r.buffer_offset == position % (HEAD + LENGTH + TAIL) - HEAD);
                placed += r.length;
            }
            position += r.length;
        }
    }
    assert_int_equal(r.kind, RDDP_STREAM_FINISH);
    assert_true(position == (uint64_t)TRANSFERS * (HEAD + LENGTH + TAIL));
    return placed;
}

static void end_well(struct pair *p)
{
    assert_int_equal(rddp_stream_finish(p->path.end[1]), 0);
    for (int i = 0; i < ROUNDS && (rddp_stream_state(p->path.end[0]) != RDDP_STREAM_ENDED ||
                                   rddp_stream_state(p->path.end[1]) != RDDP_STREAM_ENDED);
         i++)
        turn(p);
    assert_int_equal(rddp_stream_state(p->path.end[0]), RDDP_STREAM_ENDED);
    assert_int_equal(rddp_stream_state(p->path.end[1]), RDDP_STREAM_ENDED);
    assert_true(rddp_stream_unacked(p->path.end[0]) == 0);
}

static void expect_all(struct pair *p, uint64_t first_rid)
{
    for (uint32_t i = 0; i < TRANSFERS; i++)
        assert_int_equal(rddp_stream_expect(p->path.end[1], first_rid + i, p->target + (size_t)i * LENGTH, LENGTH), 0);
}

/* TCPOPT-0-01 TCPOPT-0-03 TCPOPT-0-04 TCPOPT-1-01 TCPOPT-1-02 TCPOPT-3.1.4-06 TCPOPT-3.1.5-01 TCPOPT-3.1.5-02
 * TCPOPT-3.1.8-01: losses on the way, and all data is in place at once, but what a lost segment brings. */
static void all_is_placed(void **state)
{
    struct pair p = {0};
    struct rddp_stream_counters count;

    (void)state;
    make_memory(&p);
    open_pair(&p, 1000, false);
    expect_all(&p, 100);
    say(&p, 100, false);
    assert_true(hear(&p, 100) == (uint64_t)TRANSFERS * LENGTH);
    assert_memory_equal(p.target, p.source, (size_t)TRANSFERS * LENGTH);
    rddp_stream_count(p.path.end[1], &count);
    assert_true(count.octets_placed == (uint64_t)TRANSFERS * LENGTH && count.octets_placed_early > LENGTH);
    assert_true(count.kept_max <= 1024);
    assert_true(!count.options_bad && !count.options_unknown && !count.options_outside && !count.options_total);
    end_well(&p);
    close_pair(&p);
}

/* TCPOPT-0-02 TCPOPT-3.1.7-04: a peer that does not offer the option; RIDs without buffers. */
static void all_is_plain(void **state)
{
    struct pair p;

    (void)state;
    for (int without = 0; without < 2; without++) {
        memset(&p, 0, sizeof(p));
        make_memory(&p);
        open_pair(&p, without ? 0 : 200, without);
        if (without)
            expect_all(&p, 0);
        say(&p, 100, false);
        assert_true(hear(&p, 0) == 0);
        for (size_t i = 0; i < (size_t)TRANSFERS * LENGTH; i++)
            assert_int_equal(p.target[i], 0); /* no buffer was named by anybody */
        end_well(&p);
        close_pair(&p);
    }
}

/* TCPOPT-3.1.1-02 TCPOPT-6.1-01 TCPOPT-6.1-04: a buffer that is too short, one that is taken back, a RID that differs
 * in one bit. */
static void some_is_placed(void **state)
{
    struct pair p = {0};
    struct rddp_stream_counters count;
    uint8_t *guarded = malloc(LENGTH);
    uint64_t placed;

    (void)state;
    make_memory(&p);
    open_pair(&p, 0, false);
    memset(guarded, 0xee, LENGTH);
    assert_int_equal(rddp_stream_expect(p.path.end[1], 103, guarded, LENGTH / 2), 0);
    assert_int_equal(rddp_stream_expect(p.path.end[1], 100, p.target, LENGTH), 0);
    assert_int_equal(rddp_stream_expect(p.path.end[1], 100 | 1ULL << 45, p.target + LENGTH, LENGTH), 0);
    assert_int_equal(rddp_stream_expect(p.path.end[1], 101, p.target + LENGTH, LENGTH), 0);
    assert_int_equal(rddp_stream_forget(p.path.end[1], 101), 0);
    assert_int_equal(rddp_stream_forget(p.path.end[1], 101), -ENOENT);
    say(&p, 100, false);
    placed = hear(&p, 100);
    assert_true(placed >= LENGTH + LENGTH / 2 - 1500 && placed <= LENGTH + LENGTH / 2);
    for (size_t i = LENGTH / 2; i < LENGTH; i++)
        assert_int_equal(guarded[i], 0xee);
    for (size_t i = LENGTH; i < 2 * (size_t)LENGTH; i++)
        assert_int_equal(p.target[i], 0);
    rddp_stream_count(p.path.end[1], &count);
    assert_true(count.options_outside > 0 && count.options_unknown > 0);
    free(guarded);
    close_pair(&p);
}

/* TCPOPT-3.1.7-01 TCPOPT-3.1.7-03 TCPOPT-6.1-03: unsolicited transfers use offered buffers, and no more of them. */
static void unsolicited(void **state)
{
    struct pair p = {0};
    struct rddp_stream_counters count;

    (void)state;
    make_memory(&p);
    open_pair(&p, 0, false);
    assert_int_equal(rddp_stream_offer(p.path.end[1], p.target, 10), 0); /* too short for any transfer */
    for (size_t i = 1; i <= 3; i++)
        assert_int_equal(rddp_stream_offer(p.path.end[1], p.target + i * LENGTH, LENGTH), 0);
    say(&p, 5000, true);
    assert_true(hear(&p, 5000) == 3 * (uint64_t)LENGTH);
    assert_memory_equal(p.target + LENGTH, p.source, 3 * (size_t)LENGTH);
    rddp_stream_count(p.path.end[1], &count);
    assert_true(count.unsolicited_refused > 0);
    assert_int_equal(rddp_stream_forget(p.path.end[1], 5000), 0);
    close_pair(&p);
}

/* TCPOPT-3.1.4-04: a sender changes the total of a transfer; the new total is not accepted. */
static void total_changes(void **state)
{
    struct pair p = {0};
    struct rddp_stream_mark first = {9, 0, 4000, true, false}, second = {9, 2000, 4001, true, false};
    struct rddp_stream_counters count;
    struct rddp_stream_record r;
    uint8_t plain[2000];
    uint64_t heard = 0;

    (void)state;
    make_memory(&p);
    open_pair(&p, 0, false);
    assert_int_equal(rddp_stream_expect(p.path.end[1], 9, p.target, 5000), 0);
    assert_int_equal(rddp_stream_write(p.path.end[0], p.source, 2000, 0, &first), 0);
    assert_int_equal(rddp_stream_write(p.path.end[0], p.source + 2000, 2000, 0, &second), 0);
    for (int i = 0; i < ROUNDS && heard < 4000; i++) {
        turn(&p);
        while (rddp_stream_read(p.path.end[1], plain, sizeof(plain), &r) > 0) {
            assert_int_equal(r.kind, heard < 2000 ? RDDP_STREAM_PLACED : RDDP_STREAM_PLAIN);
            assert_memory_equal(r.kind == RDDP_STREAM_PLACED ? r.at : plain, p.source + heard, r.length);
            heard += r.length;
        }
    }
    assert_true(heard == 4000);
    rddp_stream_count(p.path.end[1], &count);
    assert_true(count.options_total > 0 && count.octets_placed == 2000);
    close_pair(&p);
}

/* TCPOPT-0-03: without losses the device itself writes data to its place. */
static void copies_little(void **state)
{
    struct pair p = {.checked = true};
    struct rddp_stream_counters count;

    (void)state;
    make_memory(&p);
    open_pair(&p, 0, false);
    expect_all(&p, 100);
    say(&p, 100, false);
    assert_true(hear(&p, 100) == (uint64_t)TRANSFERS * LENGTH);
    assert_memory_equal(p.target, p.source, (size_t)TRANSFERS * LENGTH);
    rddp_stream_count(p.path.end[1], &count);
    assert_true(count.octets_copied * 100 <= count.octets_in);
    close_pair(&p);
}

/* The second half of each transfer goes first, and transfers in no order. */
static void say_in_no_order(struct pair *p)
{
    for (uint32_t i = 0; i < TRANSFERS; i++) {
        uint32_t k = i * 7 % TRANSFERS, half = LENGTH / 2;
        const uint8_t *from = p->source + (size_t)k * LENGTH;
        struct rddp_stream_mark mark = {100 + k, half, LENGTH, true, false};

        assert_int_equal(rddp_stream_write(p->path.end[0], p->source, HEAD, RDDP_STREAM_MESSAGE, NULL), 0);
        assert_int_equal(rddp_stream_write(p->path.end[0], from + half, LENGTH - half, 0, &mark), 0);
        mark.buffer_offset = 0;
        assert_int_equal(rddp_stream_write(p->path.end[0], from, half, 0, &mark), 0);
    }
    assert_int_equal(rddp_stream_finish(p->path.end[0]), 0);
}

/* TCPOPT-3.1.5-02: the place of the next data cannot be guessed; nothing that has been placed is ever touched again,
 * and nothing is written next to a buffer. */
static void in_no_order(void **state)
{
    static uint8_t plain[5000];
    struct pair p = {.checked = true};
    struct rddp_stream_record r = {0};
    uint64_t placed = 0;

    (void)state;
    for (uint32_t lose = 0; lose <= 1000; lose += 1000) {
        make_memory(&p);
        open_pair(&p, lose, false);
        expect_all(&p, 100);
        say_in_no_order(&p);
        r.kind = RDDP_STREAM_PLAIN;
        placed = 0;
        for (int i = 0; i < ROUNDS && r.kind != RDDP_STREAM_FINISH; i++) {
            turn(&p);
            while (r.kind != RDDP_STREAM_FINISH && rddp_stream_read(p.path.end[1], plain, sizeof(plain), &r) > 0) {
                const uint8_t *at = r.at;

                if (r.kind != RDDP_STREAM_PLACED)
                    continue;
                assert_memory_equal(at, p.source + (at - p.target), r.length);
                placed += r.length;
            }
        }
        assert_int_equal(placed, (uint64_t)TRANSFERS * LENGTH);
        assert_memory_equal(p.target, p.source, (size_t)TRANSFERS * LENGTH);
        close_pair(&p);
    }
}

/* Each limit one below, at and above; wrong arguments. */
static void limits(void **state)
{
    static uint8_t octets[16];
    struct pair p = {0};
    struct rddp_stream_mark wrong = {1ULL << 46, 0, 0, false, false}, past = {1, 5, 10, true, false};
    struct rddp_stream_record r;
    struct rddp_stream_net_attr attr;

    (void)state;
    open_pair(&p, 0, false);
    for (uint64_t i = 0; i < 1024; i++)
        assert_int_equal(rddp_stream_expect(p.path.end[1], 7 * i % 1024, octets, sizeof(octets)), 0);
    assert_int_equal(rddp_stream_expect(p.path.end[1], 5000, octets, sizeof(octets)), -ENOSPC);
    assert_int_equal(rddp_stream_expect(p.path.end[1], 5, octets, sizeof(octets)), -EEXIST);
    assert_int_equal(rddp_stream_expect(p.path.end[1], 1ULL << 46, octets, sizeof(octets)), -EINVAL);
    assert_int_equal(rddp_stream_expect(p.path.end[1], 5000, octets, 0), -EINVAL);
    for (int i = 0; i < 64; i++)
        assert_int_equal(rddp_stream_offer(p.path.end[1], octets, sizeof(octets)), 0);
    assert_int_equal(rddp_stream_offer(p.path.end[1], octets, sizeof(octets)), -ENOSPC);
    for (uint16_t i = 1; i < 16; i++)
        assert_int_equal(rddp_stream_listen(p.path.net[1], STREAM_PATH_PORT + i, 1), 0);
    assert_int_equal(rddp_stream_listen(p.path.net[1], STREAM_PATH_PORT, 1), -EADDRINUSE);
    assert_int_equal(rddp_stream_listen(p.path.net[1], STREAM_PATH_PORT + 16, 1), -ENOSPC);
    assert_int_equal(rddp_stream_write(p.path.end[0], octets, 5, 0, &wrong), -EINVAL);
    assert_int_equal(rddp_stream_write(p.path.end[0], octets, 6, 0, &past), -EINVAL);
    assert_int_equal(rddp_stream_write(p.path.end[0], octets, 0, 0, NULL), -EINVAL);
    assert_int_equal(rddp_stream_write(p.path.end[0], octets, 5, 0x80, NULL), -EINVAL);
    for (int i = 0; i < 1024; i++)
        assert_int_equal(rddp_stream_write(p.path.end[0], octets, 5, 0, &past), 0);
    assert_int_equal(rddp_stream_write(p.path.end[0], octets, 5, 0, &past), -EAGAIN);
    assert_true(rddp_stream_unacked(p.path.end[0]) == 5 * 1024);
    assert_int_equal(rddp_stream_read(p.path.end[1], octets, sizeof(octets), &r), 0);
    rddp_stream_net_attr_init(&attr);
    attr.mtu = 1279;
    assert_null(rddp_stream_net_open(&attr));
    assert_int_equal(errno, EINVAL);
    close_pair(&p);
}

/* No listener; the peer resets; more connections than the backlog. */
static void failures(void **state)
{
    struct sockaddr_storage from, to, listened;
    struct pair p = {0};
    struct rddp_stream *more[3];
    struct rddp_stream_record r;
    uint8_t octet;

    (void)state;
    network_address(&from, 1, 2, 0);
    network_address(&to, 2, 2, STREAM_PATH_PORT + 1);
    network_address(&listened, 2, 2, STREAM_PATH_PORT);
    open_pair(&p, 0, false);
    more[0] = rddp_stream_connect(p.path.net[0], (struct sockaddr *)&from, (struct sockaddr *)&to);
    assert_non_null(more[0]);
    for (int i = 0; i < ROUNDS && rddp_stream_state(more[0]) == RDDP_STREAM_CONNECTING; i++)
        turn(&p);
    assert_int_equal(rddp_stream_state(more[0]), -ECONNREFUSED);
    assert_int_equal(rddp_stream_read(more[0], &octet, 1, &r), -ECONNREFUSED);
    assert_int_equal(rddp_stream_write(more[0], &octet, 1, 0, NULL), -EPIPE);
    rddp_stream_close(more[0]);
    more[1] = rddp_stream_connect(p.path.net[0], (struct sockaddr *)&from, (struct sockaddr *)&listened);
    more[2] = rddp_stream_connect(p.path.net[0], (struct sockaddr *)&from, (struct sockaddr *)&listened);
    assert_true(more[1] && more[2]);
    for (int i = 0; i < 100; i++)
        turn(&p);
    more[0] = rddp_stream_accept(p.path.net[1]);
    assert_non_null(more[0]);
    assert_null(rddp_stream_accept(p.path.net[1]));
    assert_int_equal(errno, EAGAIN);
    rddp_stream_close(p.path.end[1]);
    p.path.end[1] = NULL;
    for (int i = 0; i < ROUNDS && rddp_stream_state(p.path.end[0]) == RDDP_STREAM_OPEN; i++)
        turn(&p);
    assert_int_equal(rddp_stream_state(p.path.end[0]), -ECONNRESET);
    for (int i = 0; i < 3; i++)
        rddp_stream_close(more[i]);
    rddp_stream_close(p.path.end[0]);
    p.path.end[0] = NULL;
    close_pair(&p);
}

/* The device is taken away from below. */
static void removed(void **state)
{
    struct sockaddr_storage from, to;
    struct pair p = {0};

    (void)state;
    network_address(&from, 1, 2, 0);
    network_address(&to, 2, 2, STREAM_PATH_PORT);
    open_pair(&p, 0, false);
    assert_true(network_remove(1));
    for (int i = 0; i < ROUNDS && rddp_stream_state(p.path.end[0]) == RDDP_STREAM_OPEN; i++)
        turn(&p);
    assert_int_equal(rddp_stream_state(p.path.end[0]), -ENODEV);
    assert_int_equal(rddp_stream_progress(p.path.net[0], 1), -ENODEV);
    assert_null(rddp_stream_connect(p.path.net[0], (struct sockaddr *)&from, (struct sockaddr *)&to));
    assert_int_equal(errno, ENODEV);
    close_pair(&p);
}

/* Does the descriptor of a net tell of a packet that the other sends when all is quiet? Sends several first, which it
 * finds together. */
static bool fd_tells(struct pair *p, int *fd)
{
    static const uint8_t octets[20000];
    struct pollfd waits;

    assert_int_equal(rddp_stream_write(p->path.end[0], octets, sizeof(octets), 0, NULL), 0);
    for (int i = 0; i < 10; i++)
        rddp_stream_progress(p->path.net[1], 0);
    if (*fd < 0)
        *fd = rddp_stream_net_fd(p->path.net[1]);
    waits = (struct pollfd){.fd = *fd, .events = POLLIN};
    for (int quiet = 0; quiet < QUIET;) {
        rddp_stream_progress(p->path.net[0], 0);
        quiet = poll(&waits, 1, 1) ? 0 : quiet + 1;
        rddp_stream_progress(p->path.net[1], 0);
    }
    assert_int_equal(rddp_stream_write(p->path.end[0], octets, 1, 0, NULL), 0);
    return poll(&waits, 1, PATIENCE_MS) == 1;
}

/* The net stops watching its device while packets come together, but not where the application waits for it. */
static void descriptor(void **state)
{
    struct pair p = {0};
    int fd = -1;

    (void)state;
    open_pair(&p, 0, false);
    assert_true(fd_tells(&p, &fd));
    assert_true(fd_tells(&p, &fd));
    close_pair(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_placed), cmocka_unit_test(all_is_plain),  cmocka_unit_test(some_is_placed),
        cmocka_unit_test(unsolicited),   cmocka_unit_test(total_changes), cmocka_unit_test(limits),
        cmocka_unit_test(copies_little), cmocka_unit_test(in_no_order),   cmocka_unit_test(failures),
        cmocka_unit_test(descriptor),    cmocka_unit_test(removed),
    };

    if (!network_own()) {
        print_message("cannot run here: no network namespace, no forwarding, or no TUN device\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

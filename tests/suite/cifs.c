/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cifs.c - READs and WRITEs of CIFS in NetBIOS frames between two nets of ours, with losses: the data are placed by PID
 * and MID; how the frames are cut into segments; and PIDs and MIDs of many requests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/cifs.h"
#include "tests/lib/rng.h"
#include "tests/suite/lib/network.h"
#include "tests/suite/lib/stream_path.h"
#include "wire/tcpopt_map.h"

enum { OPS = 24, DATA = 60001, ROUNDS = 60000, MESSAGE = CIFS_FRAME + CIFS_MESSAGE, MSS = 1400, MANY = 65537 };

static uint8_t source[OPS * DATA], target[OPS * DATA], offered[OPS / 2 * DATA];
static uint8_t say[2][OPS][MESSAGE];

/* 5.3.2: data from the server are asked for, data from the client are not. */
static struct rddp_stream_mark mark_of(const struct cifs_message *m, uint8_t operation)
{
    return (struct rddp_stream_mark){.rid = rddp_rid_cifs(m->pid, m->mid, operation),
                                     .total = m->count,
                                     .has_total = true,
                                     .unsolicited = !m->reply};
}

static void put(struct rddp_stream *s, const struct cifs_message *m, uint8_t *buffer, const uint8_t *data)
{
    struct rddp_stream_mark mark = mark_of(m, 0);

    cifs_encode(buffer, m);
    assert_int_equal(rddp_stream_write(s, buffer, MESSAGE, RDDP_STREAM_MESSAGE, NULL), 0);
    if (cifs_data(m))
        assert_int_equal(rddp_stream_write(s, data, m->count, 0, &mark), 0);
}

/* What one side has received of the message that comes. */
struct side {
    struct rddp_stream *stream;
    uint8_t head[MESSAGE];
    uint32_t have, data, placed;
    struct cifs_message m;
    unsigned done;
};

/* Takes the next part. True: a message with its data is complete. Data have to be the source's, wherever they lie. */
static bool get(struct side *side)
{
    static uint8_t plain[4096];
    struct rddp_stream_record r;
    uint32_t want = side->have < MESSAGE ? MESSAGE - side->have : cifs_data(&side->m) - side->data;
    int got = rddp_stream_read(side->stream, plain, want < sizeof(plain) ? want : sizeof(plain), &r);

    assert_true(got >= 0);
    if (!got)
        return false;
    assert_int_not_equal(r.kind, RDDP_STREAM_FINISH);
    if (side->have < MESSAGE) {
        assert_int_equal(r.kind, RDDP_STREAM_PLAIN);
        memcpy(side->head + side->have, plain, r.length);
        side->have += (uint32_t)r.length;
        if (side->have == MESSAGE)
            assert_true(cifs_decode(&side->m, side->head));
    } else {
        assert_true(r.length <= want);
        assert_memory_equal(r.kind == RDDP_STREAM_PLACED ? r.at : plain, source + side->m.offset + side->data,
                            r.length);
        if (r.kind == RDDP_STREAM_PLACED) {
            assert_true(r.rid == rddp_rid_cifs(side->m.pid, side->m.mid, 0));
            side->placed += (uint32_t)r.length;
        }
        side->data += (uint32_t)r.length;
    }
    if (side->have < MESSAGE || side->data < cifs_data(&side->m))
        return false;
    side->have = side->data = 0;
    side->done++;
    return true;
}

/* TCPOPT-5.3.1-03: the server answers with the PID and the MID of the request, whatever they are. */
static void answer(struct side *server)
{
    struct cifs_message reply = server->m;

    reply.reply = true;
    put(server->stream, &reply, say[1][server->done - 1], source + reply.offset);
}

/* READs and WRITEs under way together; a buffer has the name of its request before that leaves. */
static void exchange(void **state)
{
    struct stream_path path;
    struct side side[2] = {0};
    struct rng r = {9};
    uint32_t taken[OPS];
    struct cifs_ids ids = {.next = 0xfffa, .taken = taken, .capacity = OPS};

    (void)state;
    if (!network_own()) {
        print_message("cannot run here: no network namespace, no forwarding, or no TUN device\n");
        skip();
    }
    rng_fill(&r, source, sizeof(source));
    stream_path_open(&path, &(struct stream_path_attr){.lose = 500});
    for (int i = 0; i < 2; i++)
        side[i].stream = path.end[i];
    for (uint32_t i = 0; i < OPS / 2; i++)
        assert_int_equal(rddp_stream_offer(side[1].stream, offered + i * DATA, DATA), 0);
    for (uint32_t i = 0; i < OPS; i++) {
        struct cifs_message m = {.command = i % 2 ? CIFS_WRITE : CIFS_READ, .offset = i * DATA, .count = DATA};

        m.tid = 7;
        m.uid = (uint16_t)i;
        assert_true(cifs_take_id(&ids, &m.pid, &m.mid));
        if (m.command == CIFS_READ)
            assert_int_equal(
                rddp_stream_expect(side[0].stream, rddp_rid_cifs(m.pid, m.mid, 0), target + i * DATA, DATA), 0);
        put(side[0].stream, &m, say[0][i], source + i * DATA);
    }
    for (int i = 0; i < ROUNDS && side[0].done < OPS; i++) {
        stream_path_turn(&path);
        while (get(&side[1]))
            answer(&side[1]);
        while (get(&side[0]))
            cifs_give_id(&ids, side[0].m.pid, side[0].m.mid);
    }
    assert_int_equal(side[0].done, OPS);
    assert_int_equal(ids.count, 0);
    assert_int_equal(side[0].placed, OPS / 2 * DATA);
    assert_int_equal(side[1].placed, OPS / 2 * DATA);
    for (uint32_t i = 0; i < OPS; i += 2)
        assert_memory_equal(target + i * DATA, source + i * DATA, DATA);
    stream_path_close(&path);
}

/* TCPOPT-5.3.1-04 TCPOPT-5.3.1-05 TCPOPT-5.3.2-01 TCPOPT-5.3.2-02 TCPOPT-5.3.3-01: of frames cut into segments, A is
 * set where a NetBIOS header begins, and nowhere else; U where the client sends data. */
static void frames(void **state)
{
    struct tcpopt_section slots[64];
    struct tcpopt_map map;
    uint64_t starts[OPS];
    unsigned n = 0, seen = 0;

    (void)state;
    tcpopt_map_init(&map, slots, 64);
    for (uint8_t i = 0; i < 8; i++) {
        struct cifs_message m = {.command = CIFS_READ, .reply = i % 2, .pid = 0xffff, .mid = i, .count = 5000};
        struct tcpopt_section head = {.message = true}, data = {.data = true, .has_total = true, .total = 5000};

        m.command = m.reply ? CIFS_READ : CIFS_WRITE;
        /* The second operation of a compound has index 1, whatever the first was. */
        data.rid = mark_of(&m, i / 4).rid;
        data.unsolicited = mark_of(&m, i / 4).unsolicited;
        assert_true(data.rid == ((uint64_t)(i / 4) << 32 | 0xffff0000U | i) && data.rid >> 40 == 0);
        starts[n++] = map.end;
        assert_true(tcpopt_map_add(&map, &head, MESSAGE) && tcpopt_map_add(&map, &data, cifs_data(&m)));
    }
    for (uint64_t at = 0; at < map.end;) {
        uint32_t length = tcpopt_map_cut(&map, at, (uint32_t)(map.end - at), MSS);
        bool starts_here = seen < n && starts[seen] == at;
        struct tcpopt o;

        assert_true(tcpopt_map_describe(&map, at, length, &o));
        assert_int_equal(o.aligned, starts_here);
        seen += starts_here;
        assert_int_equal(o.rid & 0xffff, seen - 1);
        assert_int_equal(o.unsolicited, seen % 2);
        at += length;
    }
    assert_int_equal(seen, n);
}

/* TCPOPT-5.3.1-02: more requests than there are MIDs, and no two have the same pair. */
static void many_requests(void **state)
{
    struct cifs_ids ids = {.next = 0xfffffffe, .taken = malloc((MANY + 1) * sizeof(uint32_t)), .capacity = MANY};
    uint16_t pid, mid, first_pid = 0;
    bool changes = false;

    (void)state;
    assert_non_null(ids.taken);
    for (uint32_t i = 0; i < MANY; i++) {
        assert_true(cifs_take_id(&ids, &pid, &mid));
        changes |= i && pid != first_pid;
        first_pid = pid;
    }
    assert_false(cifs_take_id(&ids, &pid, &mid));
    assert_true(changes);
    for (uint32_t i = 1; i < ids.count; i++)
        assert_true(ids.taken[i - 1] < ids.taken[i]);
    cifs_give_id(&ids, 0, 5);
    ids.next = 3; /* taken, as those behind it are */
    assert_true(cifs_take_id(&ids, &pid, &mid));
    assert_true(pid == 0 && mid == 5);
    free(ids.taken);
}

/* What is encoded is decoded; anything else is refused. */
static void codec(void **state)
{
    struct cifs_message m = {CIFS_READ, true, 1, 2, 0xfffe, 0xfffd, 0x12345678, CIFS_FRAME_MAX - CIFS_MESSAGE}, again;
    uint8_t octets[MESSAGE];

    (void)state;
    cifs_encode(octets, &m);
    assert_true(cifs_decode(&again, octets));
    assert_true(again.pid == m.pid && again.mid == m.mid && again.offset == m.offset && again.count == m.count);
    assert_true(again.tid == 1 && again.uid == 2 && again.reply);
    for (size_t i = 0; i < CIFS_FRAME + 4; i++) {
        octets[i] ^= 1;
        assert_false(cifs_decode(&again, octets));
        octets[i] ^= 1;
    }
    m.count++;
    cifs_encode(octets, &m);
    assert_false(cifs_decode(&again, octets));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codec),
        cmocka_unit_test(frames),
        cmocka_unit_test(many_requests),
        cmocka_unit_test(exchange),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

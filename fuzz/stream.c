/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream.c - TCP segments with the RDMA option, in any order and with any content, to a stream. What is read is the
 * stream, each placed part is where its record says, and no octet outside of a buffer changes. Octets that come again
 * are other ones, which are never read. A buffer that is taken back is unmapped at once, what the reader writes to a
 * buffer stays, and what he gives back is read again.
 *
 * Input: steps of 12 octets: the action, the position and length of the segment, and its option. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "stream/inner.h"
#include "base/bytes.h"

enum {
    STEP = 12,
    BUFFERS = 4,
    LENGTH = 3000,
    GUARD = 64,
    START = 1000,
    PATTERN = 251,
    EARLY_MAX = 1 << 20,
    SEGMENT = 4096
};
enum { MAPPED = GUARD + LENGTH + GUARD, UNPLACED = 0xee, WRITTEN = 0xdd };

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length);

static struct rddp_stream_net *net;
static struct rddp_stream *stream;
static uint8_t *memory[BUFFERS];      /* NULL: it was taken back */
static bool written[BUFFERS][LENGTH]; /* by the reader */
static uint64_t position;
static uint8_t read_early[EARLY_MAX]; /* octets that were read before their turn */
static uint64_t early_end;

static uint8_t octet_at(uint64_t at)
{
    return (uint8_t)(at % PATTERN);
}

static bool listens(void *of, const struct utcp_name *local)
{
    (void)of;
    (void)local;
    return false;
}

static struct utcp *accept_none(void *of, const struct utcp_name *local, const struct utcp_name *remote)
{
    (void)of;
    (void)local;
    (void)remote;
    return NULL;
}

/* A net without a device: packets that are sent are dropped. */
static void make_net(void)
{
    static const struct utcp_host_user user = {.listens = listens, .accept = accept_none};
    struct utcp_host_attr attr = {.key = {1, 2}};
    struct utcp_host_buffers buffers;

    net = calloc(1, sizeof(*net));
    assert(net && !reactor_init(&net->reactor));
    rddp_stream_net_attr_init(&net->attr);
    net->attr.window = 16384;
    net->fd = -1;
    buffers = (struct utcp_host_buffers){net->bucket, net->half, STREAM_BUCKETS, STREAM_HALVES};
    utcp_attr_default(&attr.tcp);
    attr.tcp.window = net->attr.window;
    attr.tcp.option_kind = TCPOPT_KIND;
    utcp_host_init(&net->host, &attr, &buffers, &user, net);
}

static void map_buffer(uint64_t i)
{
    memory[i] = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert(memory[i] != MAP_FAILED);
    memset(memory[i], UNPLACED, MAPPED);
    memset(written[i], 0, LENGTH);
}

static void begin(void)
{
    struct utcp_handshake h = {.receive_next = START,
                               .send_next = 7,
                               .window = 10000,
                               .mss = 1400,
                               .sack = true,
                               .option = true,
                               .edge = 16384};
    int error;

    stream = stream_new(net, &error);
    assert(stream);
    stream->accepted = true;
    h.local.ip[10] = h.local.ip[11] = h.remote.ip[10] = h.remote.ip[11] = 0xff;
    utcp_adopt(&stream->tcp, &h, reactor_now_us());
    for (uint64_t i = 0; i < BUFFERS; i++)
        map_buffer(i);
    for (uint64_t i = 0; i < BUFFERS - 1; i++)
        rddp_stream_expect(stream, i, memory[i] + GUARD, i ? LENGTH : LENGTH / 2);
    rddp_stream_offer(stream, memory[BUFFERS - 1] + GUARD, LENGTH);
    position = 0;
    memset(read_early, 0, early_end);
    early_end = 0;
}

/* What the stream has already is changed, which no honest peer does. */
static const uint8_t *payload_of(uint64_t at, uint32_t length)
{
    static uint8_t payload[SEGMENT];

    for (uint32_t i = 0; i < length; i++) {
        bool again = at + i < utcp_received(&stream->tcp) || utcp_has(&stream->tcp, at + i, at + i + 1);

        payload[i] = again ? (uint8_t)~octet_at(at + i) : octet_at(at + i);
    }
    return payload;
}

static void come_in(const uint8_t *p)
{
    uint8_t option[TCPOPT_LONG] = {TCPOPT_KIND, TCPOPT_LONG};
    uint64_t at = position > 2000 ? position - 2000 + get16(p + 1) % 8000 : get16(p + 1) % 8000;
    struct utcp_segment s = {
        .seq = START + (uint32_t)at, .ack = 7, .window = 1000, .flags = UTCP_ACK, .length = get16(p + 3) % SEGMENT};

    s.payload = payload_of(at, s.length);
    option[1] = p[11] & 1 ? TCPOPT_LONG : p[11] & 2 ? TCPOPT_SHORT : p[11];
    option[2] = p[11] & 0xc0;
    option[7] = p[5] % (BUFFERS + 2);
    put16(option + 10, get16(p + 6) % 3100);
    put16(option + 12, p[8]);
    put16(option + 14, get16(p + 9) % 4096);
    put32(option + 16, p[11] & 4 ? LENGTH : LENGTH - p[8]);
    s.opt.extra = p[11] & 8 ? NULL : option;
    s.opt.extra_length = option[1];
    s.opt.extra_at = p[11] & 16 ? 33 : 32;
    utcp_input(&stream->tcp, &s, reactor_now_us());
}

/* Whose octets are where they were put by the reader, and whose guards are whole. */
static void check_buffer(uint64_t i)
{
    for (int k = 0; k < GUARD; k++)
        assert(memory[i][k] == UNPLACED && memory[i][GUARD + LENGTH + k] == UNPLACED);
    for (int k = 0; k < LENGTH; k++)
        assert(!written[i][k] || memory[i][GUARD + k] == WRITTEN);
}

static void unmap_buffer(uint64_t i)
{
    munmap(memory[i], MAPPED);
    memory[i] = NULL;
}

/* Names a buffer for the RID again, unless the peer has given the offered one this RID meanwhile. */
static void name_again(uint64_t i)
{
    int error;

    map_buffer(i);
    error = rddp_stream_expect(stream, i, memory[i] + GUARD, LENGTH);
    assert(!error || error == -EEXIST);
    if (error)
        unmap_buffer(i);
}

/* Takes a buffer back. The last was offered, and has no RID of its own. */
static void take_back(uint64_t i)
{
    check_buffer(i);
    assert(!rddp_stream_forget(stream, i));
    unmap_buffer(i);
}

static void take_or_name(uint64_t i)
{
    if (!memory[i])
        name_again(i);
    else if (i < BUFFERS - 1)
        take_back(i);
}

static void write_to(uint64_t i, uint32_t offset, uint32_t n)
{
    if (!i && memory[0])
        rddp_stream_expect(stream, 0, memory[0] + GUARD, LENGTH);
    if (i == BUFFERS - 1 || !memory[i] || rddp_stream_fill(stream, i, offset, n))
        return;
    memset(memory[i] + GUARD + offset, WRITTEN, n);
    memset(written[i] + offset, true, n);
}

static void check_plain(const uint8_t *at, uint64_t from, size_t length)
{
    for (size_t i = 0; i < length; i++)
        assert(at[i] == octet_at(from + i));
}

/* A message before its turn is whole, and no octet of it is read twice. */
static void read_a_message(void)
{
    uint64_t rest = 1, at = 0;
    struct rddp_stream_record r;
    uint8_t plain[64];

    while (rest && rddp_stream_read_early(stream, plain, sizeof(plain), &r, &rest) == 1) {
        assert(r.kind != RDDP_STREAM_FINISH && r.length && (!at || r.position == at));
        assert(r.position > position && r.position + r.length <= EARLY_MAX);
        check_plain(r.kind == RDDP_STREAM_PLACED ? r.at : plain, r.position, r.length);
        at = r.position + r.length;
        for (uint64_t i = r.position; i < at; i++)
            assert(!read_early[i]++);
        early_end = at > early_end ? at : early_end;
    }
    assert(!rest || !at);
}

static void skip_early(void)
{
    while (position < early_end && read_early[position])
        position++;
}

static void read_some(uint32_t most, uint32_t back)
{
    struct rddp_stream_record r;
    uint8_t plain[64];

    while (most-- && rddp_stream_read(stream, plain, sizeof(plain), &r) == 1) {
        const uint8_t *at = r.kind == RDDP_STREAM_PLACED ? r.at : plain;

        skip_early();
        assert(r.kind != RDDP_STREAM_FINISH && r.position == position && r.length);
        check_plain(at, position, r.length);
        assert(r.kind == RDDP_STREAM_PLAIN || r.buffer_offset + r.length <= LENGTH);
        for (uint64_t i = position; i < position + r.length && i < early_end; i++)
            assert(!read_early[i]);
        position += r.length;
        if (back && !rddp_stream_unread(stream, back % r.length))
            position -= back % r.length;
        back = 0;
    }
    skip_early();
}

static void check_buffers(void)
{
    for (uint64_t i = 0; i < BUFFERS; i++) {
        if (!memory[i])
            continue;
        check_buffer(i);
        munmap(memory[i], MAPPED);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length)
{
    if (!net)
        make_net();
    begin();
    for (; length >= STEP; input += STEP, length -= STEP) {
        if (input[0] % 8 == 7)
            read_some(input[1], input[2]);
        else if (input[0] % 8 == 5)
            read_a_message();
        else if (input[0] % 32 == 6)
            take_or_name(input[1] % BUFFERS);
        else if (input[0] % 32 == 14)
            write_to(input[1] % BUFFERS, get16(input + 2) % LENGTH, get16(input + 4) % 600);
        else
            come_in(input);
        if (input[0] & 0x80)
            stream_pump(stream);
    }
    read_some(UINT32_MAX, 0);
    assert(position == utcp_received(&stream->tcp));
    assert(!stream->tcp.rx.kept);
    check_buffers();
    rddp_stream_close(stream);
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lane.c - a connection of `rddp perf`: the ring of receives, control messages, credits, and the busy poll. */
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <string.h>

#include "tools/perf/perf.h"

enum { MAGIC = 0x72706631, /* "rpf1" */ POLL = 32, RECV_ID = 1 << 16 };

const char *const op_names[OPS] = {"write", "send", "read", "write-imm", "fetch-add", "cmp-swap", "swap"};

const enum rddp_wr_opcode op_codes[OPS] = {
    [OP_WRITE] = RDDP_WR_RDMA_WRITE,
    [OP_SEND] = RDDP_WR_SEND,
    [OP_READ] = RDDP_WR_RDMA_READ,
    [OP_WRITE_IMM] = RDDP_WR_RDMA_WRITE_WITH_IMM,
    [OP_FETCH_ADD] = RDDP_WR_ATOMIC_FETCH_AND_ADD,
    [OP_CMP_SWAP] = RDDP_WR_ATOMIC_CMP_AND_SWP,
    [OP_SWAP] = RDDP_WR_ATOMIC_CMP_AND_SWP,
};

bool op_is_atomic(enum op op)
{
    return op == OP_FETCH_ADD || op == OP_CMP_SWAP || op == OP_SWAP;
}

bool op_takes_receive(enum op op)
{
    return op == OP_SEND || op == OP_WRITE_IMM;
}

bool op_is_full_round_trip(enum op op)
{
    return op == OP_READ || op_is_atomic(op);
}

/* --- control messages ---------------------------------------------------------------------------------------- */

static unsigned char *lane_put32(unsigned char *out, uint32_t value)
{
    value = htobe32(value);
    memcpy(out, &value, sizeof(value));
    return out + sizeof(value);
}

static unsigned char *lane_put64(unsigned char *out, uint64_t value)
{
    value = htobe64(value);
    memcpy(out, &value, sizeof(value));
    return out + sizeof(value);
}

static uint32_t lane_get32(const unsigned char *in)
{
    uint32_t value;
    memcpy(&value, in, sizeof(value));
    return be32toh(value);
}

static uint64_t lane_get64(const unsigned char *in)
{
    uint64_t value;
    memcpy(&value, in, sizeof(value));
    return be64toh(value);
}

static void lane_encode(unsigned char out[HEAD], const struct message *message)
{
    memset(out, 0, HEAD);
    out = lane_put32(out, MAGIC);
    out = lane_put32(out, (uint32_t)message->type << 16 | (uint32_t)message->op << 8 | message->kind);
    out = lane_put32(lane_put32(out, message->key), message->value);
    lane_put64(lane_put64(lane_put64(lane_put64(out, message->size), message->count), message->nonce), message->offset);
}

static bool lane_decode(const unsigned char in[HEAD], struct message *message)
{
    uint32_t word = lane_get32(in + 4);
    *message = (struct message){
        .type = (enum control)(word >> 16),
        .op = (uint8_t)(word >> 8),
        .kind = (uint8_t)word,
        .key = lane_get32(in + 8),
        .value = lane_get32(in + 12),
        .size = lane_get64(in + 16),
        .count = lane_get64(in + 24),
        .nonce = lane_get64(in + 32),
        .offset = lane_get64(in + 40),
    };
    return lane_get32(in) == MAGIC && message->op < OPS && message->kind < KINDS;
}

/* --- memory -------------------------------------------------------------------------------------------------- */

int lane_open(struct lane *lane, struct tool_endpoint *endpoint, bool stable)
{
    lane->endpoint = endpoint;
    lane->stable = stable;
    return region_make(endpoint, RING * HEAD, RDDP_ACCESS_LOCAL_WRITE, &lane->ring);
}

void lane_close(struct lane *lane)
{
    if (lane->qp)
        rddp_destroy_qp(lane->qp);
    lane->qp = NULL;
    if (lane->source)
        rddp_dereg_mr(lane->source);
    lane->source = NULL;
    region_free(&lane->ring);
    region_free(&lane->data);
}

void lane_qp_attr(struct rddp_qp_attr *attr)
{
    rddp_qp_attr_init(attr);
    attr->max_recv_wr = RING;
    attr->max_recv_sge = 2;
    attr->max_send_wr = PERF_WINDOW_MAX + 64;
    attr->max_inline_data = HEAD;
}

static unsigned char *lane_bulk(const struct lane *lane)
{
    return lane->data.at;
}

unsigned char *lane_last(const struct lane *lane)
{
    return lane->data.at + lane->size;
}

unsigned char *lane_sink(const struct lane *lane)
{
    return lane->data.at + 2 * lane->size;
}

size_t lane_word_part(const struct lane *lane)
{
    return (4 * lane->size + 7) / 8 * 8;
}

uint64_t *lane_word(const struct lane *lane)
{
    return (uint64_t *)(void *)(lane->data.at + lane_word_part(lane));
}

uint64_t *lane_answer(const struct lane *lane)
{
    return lane_word(lane) + 1;
}

/* --- receives ------------------------------------------------------------------------------------------------ */

/* A slot takes HEAD octets itself; what a longer Send has behind them goes to where they would be in the sink. */
static int post_slots(struct lane *lane, const unsigned *slots, unsigned n)
{
    struct rddp_sge sges[REPOST][2];
    struct rddp_recv_wr wrs[REPOST], *bad;
    bool tail = lane->size > HEAD;
    assert(n && n <= REPOST);
    for (unsigned i = 0; i < n; i++) {
        sges[i][0] = region_sge(&lane->ring, (size_t)slots[i] * HEAD, HEAD);
        if (tail)
            sges[i][1] = region_sge(&lane->data, 2 * lane->size + HEAD, (uint32_t)(lane->size - HEAD));
        wrs[i] = (struct rddp_recv_wr){.wr_id = RECV_ID | slots[i],
                                       .next = i + 1 < n ? &wrs[i + 1] : NULL,
                                       .sg_list = sges[i],
                                       .num_sge = tail ? 2 : 1};
    }
    int error = rddp_post_recv(lane->qp, wrs, &bad);
    return error ? fail(EXIT_FAILED, "cannot post a receive: %s", error_text(error)) : 0;
}

/* Posts again all receives that were consumed. */
static int lane_repost(struct lane *lane)
{
    unsigned n = lane->consumed_count;
    lane->consumed_count = 0;
    lane->reposted += n;
    return n ? post_slots(lane, lane->consumed, n) : 0;
}

int lane_prepare(struct rddp_qp *qp, void *user)
{
    struct lane *lane = user;
    lane->qp = qp;
    return post_slots(lane, &(unsigned){0}, 1);
}

int lane_size(struct lane *lane, uint64_t size)
{
    lane->size = size;
    int code = region_make(lane->endpoint, lane_word_part(lane) + 2 * sizeof(uint64_t),
                           RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE | RDDP_ACCESS_REMOTE_READ |
                               RDDP_ACCESS_REMOTE_ATOMIC,
                           &lane->data);
    if (code)
        return code;
    if (lane->stable) {
        lane->source =
            rddp_reg_mr(lane->endpoint->pd, lane->data.at, 2 * size, RDDP_ACCESS_STABLE | lane->endpoint->access);
        if (!lane->source)
            return fail(EXIT_FAILED, "cannot register %" PRIu64 " octets: %s", 2 * size, error_text(errno));
    }
    /* Touched now, so that no test pays for it. */
    memset(lane->data.at, 0, lane->data.size);
    code = lane_repost(lane);
    for (unsigned slot = 1; slot < RING && !code; slot++)
        code = post_slots(lane, &slot, 1);
    return code;
}

/* Immediate data is the number of its message. */
static int lane_take_data(struct lane *lane, const struct rddp_wc *wc)
{
    bool has_number = wc->wc_flags & RDDP_WC_WITH_IMM;
    if (wc->byte_len != lane->data_size)
        return fail(EXIT_PROTOCOL, "a message of %" PRIu32 " octets instead of %" PRIu64, wc->byte_len,
                    lane->data_size);
    lane->data_received++;
    if (has_number != (lane->data_op == OP_WRITE_IMM) ||
        (has_number && be32toh(wc->imm_data) != (uint32_t)lane->data_received))
        return fail(EXIT_PROTOCOL, "message %" PRIu64 " has the wrong immediate data", lane->data_received);
    return 0;
}

static int take_receive(struct lane *lane, const struct rddp_wc *wc)
{
    unsigned slot = (unsigned)(wc->wr_id & (RING - 1));
    lane->consumed[lane->consumed_count++] = slot;
    if (lane->data_received < lane->data_expected) {
        int code = lane_take_data(lane, wc);
        if (code)
            return code;
        lane->data_slot = slot;
    } else {
        struct message message;
        if (wc->byte_len != HEAD || !lane_decode(lane->ring.at + (size_t)slot * HEAD, &message))
            return fail(EXIT_PROTOCOL, "the peer is not `rddp perf` of this version");
        if (message.type == CONTROL_CREDIT)
            lane->credits = message.count;
        else if (message.type == CONTROL_ALIVE)
            ; /* that it came is all it says */
        else if (lane->inbox_count == INBOX)
            return fail(EXIT_PROTOCOL, "the peer sent a message that is longer than expected");
        else
            lane->inbox[lane->inbox_count++] = message;
    }
    return lane->consumed_count == REPOST ? lane_repost(lane) : 0;
}

/* --- polling ------------------------------------------------------------------------------------------------- */

void lane_note_progress(struct lane *lane)
{
    lane->quiet.polls = lane->quiet.since_ns = 0;
    lane->sleep.is_next = false;
}

void lane_let_wait(struct lane *lane, bool peer_waits)
{
    lane->alive_ns = peer_waits ? clock_ns() : 0;
}

void lane_let_sleep(struct lane *lane, bool sleeps)
{
    lane->sleep = (struct lane_sleep){.wanted = sleeps};
}

/* What is due by the clock, however busy the lane is. */
static int look_around(struct lane *lane)
{
    uint64_t now_ns = clock_ns();
    if (tool_stopped)
        return lane->silent_end ? EXIT_FAILED : fail(EXIT_FAILED, "interrupted");
    if (lane->deadline.ns && now_ns > lane->deadline.ns)
        return fail(EXIT_FAILED, "%s", lane->deadline.text);
    if (lane->idle && now_ns - lane->looked_ns >= LOOK_MS * 1000000ull) {
        lane->looked_ns = now_ns;
        lane->idle(lane);
    }
    if (lane->quiet.polls && !lane->quiet.since_ns)
        lane->quiet.since_ns = now_ns;
    if (lane->quiet.since_ns && now_ns - lane->quiet.since_ns > SILENCE_S * 1000000000ull)
        return fail(EXIT_FAILED, "received nothing from the peer for %d s", SILENCE_S);
    if (!lane->alive_ns || now_ns - lane->alive_ns < ALIVE_S * 1000000000ull)
        return 0;
    lane->alive_ns = now_ns;
    return lane_send(lane, &(struct message){.type = CONTROL_ALIVE});
}

/* Has the peer read or written here since the last look? The side that answers Reads sends the data, and gets no
 * completion for it. */
static bool has_moved(struct lane *lane)
{
    struct rddp_qp_info info;
    uint64_t moved;
    if (rddp_query_qp(lane->qp, &info))
        return false;
    moved = info.tx_octets + info.rx_octets - lane->quiet.octets;
    lane->quiet.octets += moved;
    return moved;
}

/* Polling stays busy as long as an answer may be on its way. After that the processor is offered to others, which may
 * well be the peer: on a machine with less processors than pollers it would wait for us, and we for it. Others may keep
 * it for many milliseconds, so that then each poll looks around. */
static int offer_processor(struct lane *lane)
{
    if (++lane->quiet.polls <= BUSY_POLLS)
        return 0;
    if (has_moved(lane)) {
        lane_note_progress(lane);
        return 0;
    }
    sched_yield();
    return look_around(lane);
}

/* The poll before was empty, and the caller has looked since for what comes without a completion: what comes now ends
 * the sleep, and the caller looks again. */
static int lane_rest(struct lane *lane)
{
    lane->sleep.is_next = false;
    int error = rddp_progress(lane->endpoint->context, LOOK_MS);
    return error ? fail(EXIT_FAILED, "cannot wait: %s", error_text(error)) : 0;
}

/* A sleep that ends without a completion was in vain, or brought a Write: the clock tells. */
static int wait_awake_or_not(struct lane *lane)
{
    if (!lane->sleep.wanted)
        return offer_processor(lane);
    lane->sleep.is_next = true;
    return ++lane->quiet.polls > 1 ? look_around(lane) : 0;
}

int lane_poll(struct lane *lane)
{
    struct rddp_wc wc[POLL];
    int code = ++lane->polls % LOOK_POLLS == 0 ? look_around(lane) : 0;
    if (code)
        return code;
    if (lane->sleep.is_next)
        return lane_rest(lane);
    int n = rddp_poll_cq(lane->endpoint->cq, POLL, wc);
    if (!n)
        return wait_awake_or_not(lane);
    if (n < 0)
        return fail(EXIT_FAILED, "the completion queue is broken: %s", error_text(n));
    lane_note_progress(lane);
    for (int i = 0; i < n; i++) {
        /* What the peer said last comes first: it may be its goodbye. There are more flushed receives than one. */
        if (wc[i].status == RDDP_WC_WR_FLUSH_ERR && lane->inbox_count)
            return 0;
        if (wc[i].status == RDDP_WC_WR_FLUSH_ERR && lane->silent_end)
            return EXIT_FAILED;
        if (wc[i].status != RDDP_WC_SUCCESS)
            return fail(EXIT_FAILED, "%s", tool_stopped ? "interrupted" : wc_trouble(lane->qp, &wc[i]));
        if (!(wc[i].opcode & RDDP_WC_RECV)) {
            if (wc[i].wr_id)
                lane->completed = wc[i].wr_id;
            continue;
        }
        code = take_receive(lane, &wc[i]);
        if (code)
            return code;
    }
    return 0;
}

int lane_post(struct lane *lane, struct rddp_send_wr *first)
{
    struct rddp_send_wr *bad;
    int error = rddp_post_send(lane->qp, first, &bad);
    if (error == -EOPNOTSUPP)
        return fail(EXIT_FAILED, "the wire of this connection has no such operation");
    return error ? fail(EXIT_FAILED, "cannot post a request: %s", error_text(error)) : 0;
}

void lane_reset(struct lane *lane, const struct test *test, uint64_t receives)
{
    lane->completed = lane->data_received = lane->credits = lane->reposted = 0;
    lane->data_expected = op_takes_receive(test->op) ? receives : 0;
    lane->data_size = test->size;
    lane->data_op = test->op;
}

/* --- talking ------------------------------------------------------------------------------------------------- */

int lane_send(struct lane *lane, const struct message *message)
{
    unsigned char text[HEAD];
    lane_encode(text, message);
    struct rddp_sge sge = {.addr = (uintptr_t)text, .length = HEAD};
    struct rddp_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = RDDP_WR_SEND, .send_flags = RDDP_SEND_SIGNALED | RDDP_SEND_INLINE};
    return lane_post(lane, &wr);
}

int lane_receive_any(struct lane *lane, struct message *message)
{
    while (!lane->inbox_count) {
        int code = lane_poll(lane);
        if (code)
            return code;
    }
    *message = lane->inbox[0];
    memmove(lane->inbox, lane->inbox + 1, --lane->inbox_count * sizeof(*message));
    return 0;
}

int lane_receive(struct lane *lane, enum control type, struct message *message)
{
    int code = lane_receive_any(lane, message);
    if (!code && message->type != type)
        return fail(EXIT_PROTOCOL, "unexpected message from the peer (type %d instead of %d)", message->type, type);
    return code;
}

int lane_ask(struct lane *lane, const struct message *question, enum control type, struct message *answer)
{
    int code = lane_send(lane, question);
    return code ? code : lane_receive(lane, type, answer);
}

/* --- patterns ------------------------------------------------------------------------------------------------ */

/* splitmix64: word `i` of the pattern alone, so that a part can be checked without the rest. */
static uint64_t pattern_word(uint64_t nonce, uint64_t i)
{
    uint64_t x = nonce + (i + 1) * 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

static void pattern_fill(unsigned char *out, size_t size, uint64_t nonce)
{
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = htobe64(pattern_word(nonce, i / 8));
        memcpy(out + i, &word, size - i < 8 ? size - i : 8);
    }
}

void lane_fill(struct lane *lane, const struct test *test)
{
    pattern_fill(lane_bulk(lane), test->size, ~test->nonce);
    pattern_fill(lane_last(lane), test->size, test->nonce);
    memset(lane_sink(lane), 0, lane->size);
    *lane_word(lane) = *lane_answer(lane) = 0;
}

bool pattern_matches(const unsigned char *in, size_t size, uint64_t nonce, size_t skip)
{
    for (size_t i = skip; i < size; i += 8) {
        uint64_t word = htobe64(pattern_word(nonce, i / 8));
        if (memcmp(in + i, &word, size - i < 8 ? size - i : 8))
            return false;
    }
    return true;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* right.c - whether the last message of a test lies where it should. */
#include "tools/perf/perf.h"

static bool last_message_is_right(const struct lane *lane, const struct test *test)
{
    const unsigned char *sink = lane_sink(lane);
    if (test->op == OP_WRITE && test->kind == KIND_LATENCY)
        return last_mark_is_right(lane, test);
    if (test->op != OP_SEND)
        return pattern_matches(sink, test->size, test->nonce, 0);
    const unsigned char *head = lane->ring.at + (size_t)lane->data_slot * HEAD;
    return pattern_matches(head, test->size < HEAD ? test->size : HEAD, test->nonce, 0) &&
           pattern_matches(sink, test->size, test->nonce, HEAD);
}

bool server_is_right(const struct lane *lane, const struct test *test)
{
    if (op_is_atomic(test->op))
        return *lane_word(lane) == test->count;
    return test->op == OP_READ || last_message_is_right(lane, test);
}

bool client_is_right(const struct lane *lane, const struct test *test)
{
    if (op_is_atomic(test->op))
        return *lane_answer(lane) == test->count - 1;
    return (test->op != OP_READ && test->kind == KIND_BANDWIDTH) || last_message_is_right(lane, test);
}

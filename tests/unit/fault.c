/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault.c - every fault has a text of its own, and the line shows its details. */
#include <string.h>

#include "base/container.h"
#include "tests/lib/engine.h"

static void test_names(void **state)
{
    (void)state;
    for (unsigned i = 0; i < FAULTS; i++) {
        const char *name = fault_name((enum fault)i), *text = fault_text((enum fault)i);

        assert_non_null(name);
        assert_non_null(text);
        assert_true(strlen(name) > 1 && strlen(text) > 7);
        assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz-"), strlen(name)); /* a word for programs */
        for (unsigned k = 0; k < i; k++) {
            assert_string_not_equal(name, fault_name((enum fault)k));
            assert_string_not_equal(text, fault_text((enum fault)k));
        }
    }
    assert_string_equal(fault_name(FAULTS), "unknown");
    assert_non_null(fault_text((enum fault) - 1));
    assert_string_equal(fault_name(FAULT_BOUNDS), "bounds");
    assert_string_equal(seg_op_name(SEG_WRITE), "RDMA Write");
    for (unsigned i = 0; i < SEG_OPS + 2; i++)
        assert_true(strlen(seg_op_name((enum seg_op)i)) > 3);
}

static const struct {
    struct fault_note note;
    const char *line;
} lines[] = {
    {{.fault = FAULT_BOUNDS, .op = SEG_WRITE, .key = 0x12345678, .offset = 0x1000, .length = 64},
     "RDMA Write of 64 octets at offset 0x1000 of STag 0x12345678: outside the region (RFC 5041 7.1)"},
    {{.fault = FAULT_KEY, .op = SEG_READ_REQ, .key = UINT64_MAX, .offset = UINT64_MAX, .length = UINT32_MAX},
     "RDMA Read Request of 4294967295 octets at offset 0xffffffffffffffff of STag 0xffffffffffffffff: "
     "no such STag, or it was invalidated (RFC 5041 7.1)"},
    {{.fault = FAULT_MSN, .op = SEG_SEND, .msg = 9, .got = 9, .want = 4},
     "Send 9: a message number out of turn (RFC 5041 7.1): 9, expected 4"},
    {{.fault = FAULT_TOO_LONG, .op = SEG_SEND, .msg = 1, .got = 65, .want = 64},
     "Send 1: longer than its receive (RFC 5041 7.1): 65, limit 64"},
    {{.fault = FAULT_NO_RECEIVE, .op = SEG_SEND, .msg = 0}, "Send 0: no receive is posted for it (RFC 5041 7.1)"},
    {{.fault = FAULT_IRD, .got = 16, .want = 16},
     "the peer wants more RDMA Reads at once than this end allows (RFC 6581 9.1)"},
    {{.fault = FAULT_LOST, .got = 1}, "the connection below is lost: reset or unreachable (RFC 5044 8)"},
    {{.fault = FAULTS}, "an unknown fault"},
};

static void test_lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(lines); i++) {
        char line[256];

        assert_int_equal(fault_describe(&lines[i].note, line, sizeof(line)), strlen(lines[i].line));
        assert_string_equal(line, lines[i].line);
    }
}

/* With any size of buffer the text is a terminated beginning of the line, and nothing behind the buffer is touched. */
static void test_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(lines); i++) {
        size_t whole = strlen(lines[i].line);

        for (size_t size = 1; size <= whole + 2; size++) {
            char line[256];
            size_t want = size <= whole ? size - 1 : whole;

            memset(line, '#', sizeof(line));
            assert_int_equal(fault_describe(&lines[i].note, line, size), want);
            assert_memory_equal(line, lines[i].line, want);
            assert_int_equal(line[want], '\0');
            for (size_t k = want + 1; k < sizeof(line); k++)
                assert_int_equal(line[k], '#');
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

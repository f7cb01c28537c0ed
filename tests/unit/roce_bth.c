/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_bth.c - headers of RoCE packets: every opcode there and back, and what is dropped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "roce/bth.h"

enum { SPACE = 128 };

static const struct {
    enum bth_service service;
    uint8_t code, last; /* opcodes from one to the other */
} known[] = {
    {BTH_RC, 0x00, 0x14}, {BTH_RC, 0x16, 0x17}, {BTH_UC, 0x20, 0x2b}, {BTH_UD, 0x64, 0x65}, {BTH_CNP, 0x81, 0x81}};

static bool is_known(uint8_t code)
{
    for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (code >= known[i].code && code <= known[i].last)
            return true;
    return false;
}

/* ROCE-PKT-02, ROCE-PKT-05: the fields of all headers, in their order, and no opcode beside those of the services. */
static void opcodes(void **state)
{
    uint8_t packet[SPACE], again[SPACE];
    unsigned found = 0;

    (void)state;
    for (unsigned code = 0; code < 256; code++) {
        struct bth b;

        for (unsigned i = 0; i < SPACE; i++)
            packet[i] = (uint8_t)(i * 7 + 1);
        packet[0] = (uint8_t)code;
        packet[1] = 0xc0; /* solicited, migrated, no pad, version 0 */
        packet[4] = 0xc0; /* FECN, BECN */
        packet[8] = 0x80;
        packet[16] = code >> 5 == 3 ? 0 : packet[16]; /* reserved in a DETH */
        if (!is_known((uint8_t)code)) {
            assert_int_equal(bth_decode(&b, packet, SPACE), BTH_OPCODE);
            continue;
        }
        found++;
        for (uint32_t n = 0; n < SPACE; n += 4) /* the length that leaves no payload */
            if (bth_decode(&b, packet, n) == BTH_OK)
                break;
        assert_int_equal(b.length, 0);
        assert_int_equal(b.flags & (BTH_SOLICITED | BTH_MIGRATION | BTH_ACK_REQUEST | BTH_FECN | BTH_BECN),
                         BTH_SOLICITED | BTH_MIGRATION | BTH_ACK_REQUEST | BTH_FECN | BTH_BECN);
        assert_int_equal(bth_encode(&b, again), b.data - packet);
        if (code == 0x81)
            memset(packet + BTH_OCTETS, 0, CNP_OCTETS);
        assert_memory_equal(again, packet, (size_t)(b.data - packet));
    }
    assert_int_equal(found, 21 + 2 + 12 + 2 + 1);
}

/* ROCE-PKT-06 */
static void pads(void **state)
{
    uint8_t packet[SPACE] = {0};

    (void)state;
    for (uint32_t n = 0; n < 20; n++) {
        struct bth b = {.service = BTH_RC, .op = BTH_SEND, .flags = BTH_FIRST | BTH_LAST, .length = n}, back;
        uint32_t head = bth_encode(&b, packet);

        assert_int_equal(head, BTH_OCTETS);
        assert_int_equal(bth_pad(n), (4 - n % 4) % 4);
        assert_int_equal(bth_decode(&back, packet, head + n + bth_pad(n) + ICRC_OCTETS), BTH_OK);
        assert_int_equal(back.length, n);
        assert_int_equal(back.pad, bth_pad(n));
        assert_ptr_equal(back.data, packet + head);
    }
}

/* ROCE-PKT-03, ROCE-PKT-10 */
static void dropped(void **state)
{
    static const struct {
        uint8_t code, bits;
        uint32_t n;
        enum bth_result result;
    } wrong[] = {
        {0x04, 0x00, 16, BTH_OK},      {0x04, 0x00, 12, BTH_SHORT},   {0x04, 0x00, 0, BTH_SHORT},
        {0x04, 0x01, 16, BTH_VERSION}, {0x04, 0x0f, 16, BTH_VERSION}, {0x04, 0x00, 17, BTH_SHORT},
        {0x04, 0x00, 18, BTH_SHORT},   {0x04, 0x00, 19, BTH_SHORT},   {0x04, 0x10, 16, BTH_LENGTH},
        {0x04, 0x30, 20, BTH_OK},      {0x0a, 0x00, 28, BTH_SHORT},   {0x0a, 0x00, 32, BTH_OK},
        {0x0c, 0x00, 32, BTH_OK},      {0x0c, 0x00, 36, BTH_LENGTH},  {0x11, 0x00, 16, BTH_SHORT},
        {0x11, 0x00, 24, BTH_LENGTH},  {0x12, 0x00, 28, BTH_OK},      {0x12, 0x00, 32, BTH_LENGTH},
        {0x13, 0x00, 40, BTH_SHORT},   {0x13, 0x00, 44, BTH_OK},      {0x64, 0x00, 20, BTH_SHORT},
        {0x64, 0x00, 24, BTH_OK},      {0x81, 0x00, 32, BTH_OK},      {0x81, 0x00, 28, BTH_SHORT},
        {0x15, 0x00, 64, BTH_OPCODE},  {0x2c, 0x00, 64, BTH_OPCODE},  {0x44, 0x00, 64, BTH_OPCODE},
    };
    struct bth b;

    (void)state;
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        uint8_t packet[SPACE] = {wrong[i].code, wrong[i].bits};

        assert_int_equal(bth_decode(&b, packet, wrong[i].n), wrong[i].result);
    }
}

/* No opcode says it: a Middle with immediate data, a datagram in pieces. */
static void unsayable(void **state)
{
    struct bth b = {.service = BTH_RC, .op = BTH_SEND, .flags = BTH_IMMEDIATE};
    uint8_t packet[SPACE];

    (void)state;
    assert_int_equal(bth_encode(&b, packet), 0);
    b = (struct bth){.service = BTH_UD, .op = BTH_SEND, .flags = BTH_FIRST};
    assert_int_equal(bth_head(&b), 0);
    b = (struct bth){.service = BTH_UC, .op = BTH_READ_REQUEST, .flags = BTH_FIRST | BTH_LAST};
    assert_int_equal(bth_head(&b), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opcodes),
        cmocka_unit_test(pads),
        cmocka_unit_test(dropped),
        cmocka_unit_test(unsayable),
    };

    return cmocka_run_group_tests_name("roce_bth", tests, NULL, NULL);
}

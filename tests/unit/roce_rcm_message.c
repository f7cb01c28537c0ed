/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_rcm_message.c - messages of RoCE's connection manager: those of Linux's rdma_cm are decoded, and encoded again
 * to the same octets; every field is where it belongs; what is no message is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/container.h"
#include "base/crc32.h"
#include "roce/rcm_message.h"
#include "tests/lib/roce_capture.h"

/* --- what Linux says --------------------------------------------------------------------------------------------- */

static struct {
    unsigned messages[RCM_ATTRIBUTES], ipv6;
    struct rcm_message newest[RCM_ATTRIBUTES];
    struct rcm_ip ip; /* of the newest request */
    uint8_t kept[RCM_ATTRIBUTES][RCM_MAD_OCTETS];
} seen;

static const struct rcm_message *newest(enum rcm_attribute attribute)
{
    return &seen.newest[attribute - RCM_REQ];
}

/* The packet around the MAD. */
static void check_packet(const struct roce_captured *packet, const struct bth *b)
{
    uint8_t again[RCM_PACKET_OCTETS + ICRC_OCTETS];
    uint32_t crc;

    assert_int_equal(packet->octets, sizeof(again));
    rcm_packet(again, b->data, b->psn);
    crc = icrc_head(icrc_begin(&packet->path, packet->identification, packet->octets), again, RCM_PACKET_OCTETS);
    put32le(again + RCM_PACKET_OCTETS, crc);
    assert_memory_equal(again, packet->at, sizeof(again));
}

/* The addresses of rdma_cm, there and back. */
static void check_addresses(const struct rcm_message *m)
{
    uint8_t again[RCM_IP_OCTETS];
    enum rcm_space space;
    uint16_t port;

    assert_true(rcm_service_port(m->service, &space, &port));
    assert_int_equal(rcm_service(space, port), m->service);
    assert_int_equal(space, m->attribute == RCM_REQ ? RCM_SPACE_TCP : RCM_SPACE_UDP);
    assert_true(rcm_ip_decode(&seen.ip, m->data));
    assert_memory_equal(seen.ip.source, m->attribute == RCM_REQ ? m->route.local_gid : seen.ip.source, 16);
    assert_memory_equal(seen.ip.destination, m->attribute == RCM_REQ ? m->route.remote_gid : seen.ip.destination, 16);
    assert_int_equal(rcm_is_ipv4(seen.ip.source), !seen.ip.ipv6);
    rcm_ip_encode(&seen.ip, again);
    assert_memory_equal(again, m->data, RCM_IP_OCTETS);
    seen.ipv6 += seen.ip.ipv6;
}

static void take(const struct roce_captured *packet)
{
    uint8_t again[RCM_MAD_OCTETS];
    struct rcm_message m;
    struct bth b;
    unsigned i;

    assert_int_equal(bth_decode(&b, packet->at, packet->octets), BTH_OK);
    if (!rcm_is_packet(&b))
        return;
    check_packet(packet, &b);
    assert_int_equal(rcm_decode(&m, b.data, b.length), RCM_OK);
    assert_true(rcm_encode(&m, again));
    assert_memory_equal(again, b.data, RCM_MAD_OCTETS);
    i = m.attribute - RCM_REQ;
    seen.messages[i]++;
    memcpy(seen.kept[i], b.data, RCM_MAD_OCTETS);
    rcm_decode(&seen.newest[i], seen.kept[i], RCM_MAD_OCTETS);
    if (m.attribute == RCM_REQ || m.attribute == RCM_SIDR_REQ)
        check_addresses(&m);
}

static unsigned count(enum rcm_attribute attribute)
{
    return seen.messages[attribute - RCM_REQ];
}

/* ROCE-CM-01, ROCE-CM-02, ROCE-CM-09 */
static void connections(void **state)
{
    const struct rcm_terms *terms = &newest(RCM_REQ)->terms;

    (void)state;
    memset(&seen, 0, sizeof(seen));
    roce_capture_each("rping", take);
    assert_true(count(RCM_REQ) == 1 && count(RCM_REP) == 1 && count(RCM_RTU) == 1);
    assert_true(count(RCM_DREQ) == 1 && count(RCM_DREP) == 1);
    assert_int_equal(newest(RCM_REQ)->service, 0x1061c06);
    assert_int_equal(newest(RCM_REQ)->guid, 0x505400fffe123456);
    assert_true(terms->qpn == 0x1c && terms->psn == 0x72505d && terms->pkey == 0xffff);
    assert_true(terms->responder_resources == 1 && terms->initiator_depth == 1);
    assert_true(terms->retries == 7 && terms->rnr_retries == 7 && rcm_mtu(terms->mtu) == 1024);
    assert_true(newest(RCM_REQ)->remote_timeout == 20 && newest(RCM_REQ)->local_timeout == 20);
    assert_true(newest(RCM_REQ)->cm_retries == 15 && newest(RCM_REQ)->route.ack_timeout == 19);
    assert_true(newest(RCM_REQ)->route.flow_label == 0x1bec3 && newest(RCM_REQ)->route.hop_limit == 64);
    assert_int_equal(seen.ip.port, 0x91a3);
    assert_true(newest(RCM_REP)->terms.qpn == 0x1a && newest(RCM_REP)->terms.psn == 0xc85888);
    assert_true(newest(RCM_REP)->terms.ack_delay == 15 && newest(RCM_REP)->terms.rnr_retries == 7);
    assert_int_equal(newest(RCM_REP)->remote_id, newest(RCM_REQ)->local_id);
    assert_int_equal(newest(RCM_REP)->transaction, newest(RCM_REQ)->transaction);
    assert_int_equal(newest(RCM_DREQ)->remote_qpn, 0x1a);

    roce_capture_each("rping6", take);
    assert_true(count(RCM_REQ) == 2 && seen.ipv6 == 1);
    roce_capture_each("write_R", take);
    assert_true(count(RCM_REQ) == 4 && count(RCM_DREQ) == 6 && count(RCM_DREP) == 5);
    roce_capture_each("nfs3", take);
    assert_true(count(RCM_REQ) == 5 && count(RCM_RTU) == 5);
    assert_true(newest(RCM_REQ)->terms.responder_resources == 128 && !newest(RCM_REQ)->terms.initiator_depth);
    assert_true(newest(RCM_REP)->terms.initiator_depth == 128 && !newest(RCM_REP)->terms.responder_resources);
    assert_int_equal(get32(newest(RCM_REQ)->data + RCM_IP_OCTETS), 0xf6ab0e18); /* RPC-over-RDMA's private data */
    assert_int_equal(get32(newest(RCM_REP)->data), 0xf6ab0e18);
}

/* ROCE-CM-05, ROCE-CM-10 */
static void others(void **state)
{
    (void)state;
    memset(&seen, 0, sizeof(seen));
    roce_capture_each("reject", take);
    assert_true(count(RCM_REQ) == 1 && count(RCM_REJ) == 1);
    assert_true(newest(RCM_REJ)->reason == RCM_NO_SERVICE && newest(RCM_REJ)->about == RCM_ABOUT_REQ);
    roce_capture_each("udaddy", take);
    assert_true(count(RCM_SIDR_REQ) == 1 && count(RCM_SIDR_REP) == 1);
    assert_int_equal(newest(RCM_SIDR_REQ)->local_id, newest(RCM_SIDR_REP)->remote_id);
    assert_int_equal(newest(RCM_SIDR_REP)->service, newest(RCM_SIDR_REQ)->service);
    assert_true(newest(RCM_SIDR_REP)->terms.q_key == 0x1234567 && newest(RCM_SIDR_REP)->terms.qpn == 0x22);
    assert_int_equal(newest(RCM_SIDR_REP)->status, RCM_SIDR_VALID);
}

/* --- every bit --------------------------------------------------------------------------------------------------- */

/* The bits of a message behind its head that mean something, in the order of their octets. */
static const struct {
    enum rcm_attribute attribute;
    unsigned bits;
} meant[] = {
    {RCM_REQ, 32 + 64 + 64 + 32 + 24 + 8 + 8 + (5 + 2 + 1) + 24 + (5 + 3) + 16 + (4 + 3) + (4 + 1) + 2 * 16 + 2 * 128 +
                  (20 + 6) + 8 + 8 + (4 + 1) + 5 + 8 * RCM_PRIVATE_REQ},
    {RCM_MRA, 2 * 32 + 2 + 5 + 8 * RCM_PRIVATE_MRA},
    {RCM_REJ, 2 * 32 + 2 + 7 + 16 + 8 * RCM_PRIVATE_REJ},
    {RCM_REP, 2 * 32 + 32 + 24 + 24 + 8 + 8 + (5 + 2 + 1) + (3 + 1) + 64 + 8 * RCM_PRIVATE_REP},
    {RCM_RTU, 2 * 32 + 8 * RCM_PRIVATE_MAX},
    {RCM_DREQ, 2 * 32 + 24 + 8 * RCM_PRIVATE_DREQ},
    {RCM_DREP, 2 * 32 + 8 * RCM_PRIVATE_MAX},
    {RCM_SIDR_REQ, 32 + 16 + 64 + 8 * RCM_PRIVATE_SIDR_REQ},
    {RCM_SIDR_REP, 32 + 8 + 24 + 64 + 32 + 8 * RCM_PRIVATE_SIDR_REP},
    {RCM_LAP, 2 * 32},
    {RCM_APR, 2 * 32},
};

/* Each bit by itself comes back, or is reserved: then it comes back as 0. */
static void bits(void **state)
{
    (void)state;
    assert_int_equal(countof(meant), RCM_ATTRIBUTES);
    for (size_t i = 0; i < countof(meant); i++) {
        uint8_t mad[RCM_MAD_OCTETS] = {1, 7, 2, 3, [17] = (uint8_t)meant[i].attribute}, again[RCM_MAD_OCTETS];
        unsigned found = 0;

        for (unsigned bit = 8 * RCM_MAD_HEAD; bit < 8 * RCM_MAD_OCTETS; bit++) {
            struct rcm_message m;

            mad[bit / 8] = (uint8_t)(0x80 >> bit % 8);
            assert_int_equal(rcm_decode(&m, mad, sizeof(mad)), RCM_OK);
            assert_true(rcm_encode(&m, again));
            found += again[bit / 8] == mad[bit / 8];
            again[bit / 8] = mad[bit / 8];
            assert_memory_equal(again, mad, sizeof(mad));
            mad[bit / 8] = 0;
        }
        assert_int_equal(found, meant[i].bits);
    }
}

/* Fields of messages that the captures have not: octets behind the head, and what they mean. */
static void rare(void **state)
{
    uint8_t mad[RCM_MAD_OCTETS] = {
        1, 7, 2, 3, [17] = RCM_MRA, [27] = 1, [31] = 2, [32] = 0x40, [33] = 24 << 3, [34] = 9};
    struct rcm_message m;

    (void)state;
    rcm_decode(&m, mad, sizeof(mad));
    assert_true(m.local_id == 1 && m.remote_id == 2 && m.about == RCM_ABOUT_REP && m.service_timeout == 24);
    assert_true(m.data[0] == 9 && m.octets == RCM_PRIVATE_MRA);
    mad[17] = RCM_REJ;
    mad[33] = 3 << 1;
    mad[35] = RCM_CONSUMER;
    mad[24 + 12] = 7;
    mad[24 + 84] = 8;
    rcm_decode(&m, mad, sizeof(mad));
    assert_true(m.reason == (9 << 8 | RCM_CONSUMER) && m.ari_octets == 3 && m.ari[0] == 7 && m.data[0] == 8);
    mad[17] = RCM_SIDR_REP;
    mad[24 + 4] = RCM_SIDR_NO_QP;
    rcm_decode(&m, mad, sizeof(mad));
    assert_true(m.remote_id == 1 && m.status == RCM_SIDR_NO_QP);
}

/* Private data and ARI at their limits. */
static void limits(void **state)
{
    static const uint8_t data[RCM_MAD_OCTETS] = {1, 2, 3};
    uint8_t mad[RCM_MAD_OCTETS];

    (void)state;
    for (enum rcm_attribute a = RCM_REQ; a <= RCM_APR; a++) {
        struct rcm_message m = {.attribute = a, .data = data, .octets = (uint8_t)rcm_private_max(a)};

        assert_true(rcm_encode(&m, mad));
        m.octets++;
        assert_false(rcm_encode(&m, mad));
        m = (struct rcm_message){.attribute = a, .ari = data, .ari_octets = RCM_ARI_MAX};
        assert_int_equal(rcm_encode(&m, mad), a == RCM_REJ);
        m.ari_octets++;
        assert_false(rcm_encode(&m, mad));
        if (a != RCM_REJ)
            continue;
        mad[33] = (RCM_ARI_MAX + 1) << 1;
        assert_int_equal(rcm_decode(&m, mad, sizeof(mad)), RCM_RANGE);
    }
}

static void codes(void **state)
{
    static const uint16_t mtus[] = {0, 256, 512, 1024, 2048, 4096, 0};
    enum rcm_space space;
    uint16_t port;

    (void)state;
    for (uint8_t i = 0; i < countof(mtus); i++) {
        assert_int_equal(rcm_mtu(i), mtus[i]);
        assert_int_equal(rcm_mtu_code(mtus[i]), mtus[i] ? i : 0);
    }
    assert_int_equal(rcm_mtu_code(1500), 0);
    assert_int_equal(rcm_service(RCM_SPACE_IB, 0xffff), 0x13fffff);
    assert_true(rcm_service_port(0x13f0102, &space, &port) && space == RCM_SPACE_IB && port == 0x102);
    assert_false(rcm_service_port(0x1070102, &space, &port));
    assert_false(rcm_service_port(0x2060102, &space, &port));
    assert_false(rcm_service_port(0x8000000001060102, &space, &port));
}

/* ROCE-CM-09: versions and families of rdma_cm's addresses */
static void addresses(void **state)
{
    uint8_t octets[RCM_IP_OCTETS] = {0, 0x40, 1, 2, [4] = 9, [16] = 10, 0, 0, 1, [32] = 10, 0, 0, 2};
    static const uint8_t source[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
    struct rcm_ip ip;

    (void)state;
    assert_true(rcm_ip_decode(&ip, octets));
    assert_true(!ip.ipv6 && ip.port == 0x102);
    assert_memory_equal(ip.source, source, sizeof(source));
    for (unsigned family = 0; family < 16; family++) {
        octets[1] = (uint8_t)(family << 4);
        assert_int_equal(rcm_ip_decode(&ip, octets), family == 4 || family == 6);
    }
    octets[1] = 0x4f; /* the lower half is reserved */
    assert_true(rcm_ip_decode(&ip, octets));
    octets[0] = 1;
    assert_false(rcm_ip_decode(&ip, octets));
}

/* Whose message it is, for processes that share a port. */
static void targets(void **state)
{
    uint8_t mad[RCM_MAD_OCTETS] = {1, 7, 2, 3, [17] = RCM_REQ, [27] = 1, [31] = 2, [39] = 5};
    struct rcm_target target;

    (void)state;
    assert_true(rcm_find_target(&target, mad, sizeof(mad)));
    assert_true(target.is_request && target.service == 5);
    mad[17] = RCM_SIDR_REQ;
    assert_true(rcm_find_target(&target, mad, sizeof(mad)) && target.is_request);
    mad[17] = RCM_RTU;
    assert_true(rcm_find_target(&target, mad, sizeof(mad)) && !target.is_request && target.id == 2);
    mad[17] = RCM_SIDR_REP;
    assert_true(rcm_find_target(&target, mad, sizeof(mad)) && !target.is_request && target.id == 1);
    assert_false(rcm_find_target(&target, mad, sizeof(mad) - 4));
}

/* ROCE-CM-01, ROCE-CM-13: what is no message, or none that is acted upon */
static void refused(void **state)
{
    static const struct {
        uint8_t at, value;
        enum rcm_result result;
    } wrong[] = {{0, 2, RCM_VERSION},    {1, 3, RCM_CLASS},        {2, 1, RCM_VERSION},      {3, 0x83, RCM_METHOD},
                 {16, 1, RCM_ATTRIBUTE}, {17, 0xf, RCM_ATTRIBUTE}, {17, 0x1b, RCM_ATTRIBUTE}};
    uint8_t mad[RCM_MAD_OCTETS] = {1, 7, 2, 3, [17] = RCM_RTU};
    struct rcm_message m;

    (void)state;
    assert_int_equal(rcm_decode(&m, mad, RCM_MAD_OCTETS), RCM_OK);
    assert_int_equal(rcm_decode(&m, mad, RCM_MAD_OCTETS - 1), RCM_SHORT);
    assert_int_equal(rcm_decode(&m, mad, RCM_MAD_OCTETS + 4), RCM_SHORT);
    for (size_t i = 0; i < countof(wrong); i++) {
        uint8_t right = mad[wrong[i].at];

        mad[wrong[i].at] = wrong[i].value;
        assert_int_equal(rcm_decode(&m, mad, RCM_MAD_OCTETS), wrong[i].result);
        mad[wrong[i].at] = right;
    }
    for (uint8_t attribute = RCM_REQ; attribute <= RCM_APR; attribute++) {
        mad[17] = attribute;
        assert_int_equal(rcm_decode(&m, mad, RCM_MAD_OCTETS), RCM_OK);
        assert_int_equal(m.attribute, attribute);
    }
}

/* ROCE-CM-01: packets to another queue pair, with another Q_Key, or of another operation */
static void packets(void **state)
{
    const struct bth right = {.service = BTH_UD, .op = BTH_SEND, .qpn = 1, .q_key = 0x80010000};
    struct bth b = right;

    (void)state;
    assert_true(rcm_is_packet(&b));
    b.qpn = 2;
    assert_false(rcm_is_packet(&b));
    b = right;
    b.q_key = 0x80010001;
    assert_false(rcm_is_packet(&b));
    b = right;
    b.service = BTH_RC;
    assert_false(rcm_is_packet(&b));
    b = right;
    b.op = BTH_WRITE;
    assert_false(rcm_is_packet(&b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connections), cmocka_unit_test(others),    cmocka_unit_test(bits),
        cmocka_unit_test(rare),        cmocka_unit_test(limits),    cmocka_unit_test(codes),
        cmocka_unit_test(refused),     cmocka_unit_test(addresses), cmocka_unit_test(targets),
        cmocka_unit_test(packets),
    };

    return cmocka_run_group_tests_name("roce_rcm_message", tests, NULL, NULL);
}

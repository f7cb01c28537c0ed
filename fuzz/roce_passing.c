/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_passing.c - what processes pass on to each other: a datagram of any content is read as runs of packets, the ICRC
 * of some repaired, and none is read beyond its end, or twice.
 *
 * Input: an octet whose bits say which packets are sealed again; then the datagram. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "roce/io/roce_packet.h"
#include "roce/io/roce_passing.h"
#include "roce/io/roce_port.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length);

static void repair(const struct icrc_path *path, uint8_t *p, uint32_t octets)
{
    uint32_t crc = icrc_begin(path, 0, octets);

    if (octets % 4 || octets < BTH_OCTETS + ICRC_OCTETS)
        return;
    put32le(p + octets - ICRC_OCTETS, icrc_head(crc, p, octets - ICRC_OCTETS));
}

/* Each packet moves on, and ends within its run. */
static unsigned take_run(struct roce_host *host, const struct roce_run *run, uint8_t *copy, unsigned sealed)
{
    struct icrc_path path = roce_address_path(&run->from, run->from_port, &run->to, run->to_port);
    unsigned good = 0;
    uint32_t octets;
    struct bth b;

    for (uint32_t at = 0, before = 0; at < run->octets; before = at) {
        uint32_t n = run->octets - at < run->each ? run->octets - at : run->each;
        enum roce_packet_result result;

        if (sealed >> (at & 7) & 1)
            repair(&path, copy + at, n);
        result = roce_packet_next(host, &path, run, BTH_PKEY_DEFAULT, &at, &b, &octets);
        assert(at > before && at <= run->octets && octets == n);
        if (result != ROCE_PACKET_OK)
            continue;
        assert(!b.length || (b.data >= run->at && b.data + b.length + b.pad + ICRC_OCTETS <= run->at + at));
        good++;
    }
    return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length)
{
    static struct roce_host host;
    uint32_t at = 0, before = 0, octets = length > PASSING_OCTETS ? PASSING_OCTETS : (uint32_t)length;
    struct roce_run run;
    uint8_t *copy;

    if (!octets)
        return 0;
    copy = malloc(--octets + 1); /* just as long, so that a sanitizer sees the octet behind it */
    assert(copy);
    memcpy(copy, input + 1, octets);
    while (roce_passing_read(copy, octets, &at, &run)) {
        assert(at > before && at <= octets && run.at + run.octets == copy + at && run.octets && run.each);
        before = at;
        (void)take_run(&host, &run, copy + (run.at - copy), input[0]);
    }
    free(copy);
    return 0;
}

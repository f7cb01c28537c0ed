/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* floor_rate.c - how many 8-octet Writes a second pass TCP if a program does for each what every iWARP has to do, and
 * nothing else, beside raw TCP and beside rddp. floor_rate [ROUNDS [SECONDS]]
 *
 * It mirrors rate.c with one thread and one loop: the same eight octets go to the same place of another process, over
 * loopback, with a CRC. A Write completes when TCP has taken it, so what TCP still holds at the end counts, and at most
 * 256 are posted and not complete. Unlike there each process has a processor of its own, and both poll.
 *
 * raw: N times the octets of an FPDU a call; the receiver only counts them. bare: the sender writes N FPDUs, each with
 * its header, a copy of the payload and the CRC; the receiver verifies each CRC, compares key and bounds, and copies
 * the payload. There are no requests, completions, states or locks. rddp: lists of N. It puts into a call what is under
 * way, usually all 256 however short the lists are, and is therefore compared with 256 a call.
 *
 * Rounds are interleaved; medians are printed, also of the ratios within a round. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/once.h"
#include "base/spin.h"
#include "bench/lib/ends.h"
#include "bench/lib/path.h"
#include "bench/lib/raw_pair.h"
#include "wire/ddp.h"
#include "wire/mpa.h"

enum {
    SIZE = 8,
    HEAD = MPA_LENGTH + DDP_TAGGED_HEAD,
    FPDU = HEAD + SIZE + MPA_CRC,
    CONTROL = 0xc140,      /* tagged, last, both versions 1, a Write (RFC 5041 4.1, RFC 5040 4.1) */
    STAGE_SPACE = 1 << 18, /* asked of the socket at once, as rddp does */
    LOOK_NS = 5000,        /* a full socket is tried again after this: each try takes its lock */
};
static_assert((HEAD + SIZE) % 4 == 0, "an FPDU has no pad");

enum way { WAY_RAW, WAY_BARE, WAY_RDDP, WAYS };
static const char *const way_name[WAYS] = {"raw, a call", "bare, a call", "rddp, a list"};

enum { NONE = -1, RAW_256 = 3, BARE_256 = 7 };

/* `raw` and `bare` are the rows to compare with. */
static const struct row {
    enum way way;
    uint32_t n;
    int raw, bare;
} rows[] = {
    {WAY_RAW, 1, NONE, NONE},
    {WAY_RAW, 16, NONE, NONE},
    {WAY_RAW, 32, NONE, NONE},
    [RAW_256] = {WAY_RAW, ENDS_UNDER_WAY, NONE, NONE},
    {WAY_BARE, 1, 0, NONE},
    {WAY_BARE, 16, 1, NONE},
    {WAY_BARE, 32, 2, NONE},
    [BARE_256] = {WAY_BARE, ENDS_UNDER_WAY, RAW_256, NONE},
    {WAY_RDDP, 1, RAW_256, BARE_256},
    {WAY_RDDP, 16, RAW_256, BARE_256},
    {WAY_RDDP, 32, RAW_256, BARE_256},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* What the sender knows of the receiver's memory, and the receiver compares with what arrives. */
struct region {
    uint8_t *memory; /* ENDS_OCTETS octets */
    uint64_t start;
    uint32_t key;
};

static uint8_t out[ENDS_UNDER_WAY * FPDU], stage[STAGE_SPACE + FPDU], memory[ENDS_OCTETS];
static const uint8_t payload[SIZE] = "a Write";
static struct region region;
static enum way way;

/* --- the receiver ------------------------------------------------------------------------------------------------ */

/* Takes the FPDU at `p` and returns its octets, or 0 if the n octets are not all of it. */
static size_t take_fpdu(const uint8_t *p, size_t n)
{
    uint32_t ulpdu = n < MPA_LENGTH ? 0 : get16(p), length = ulpdu - DDP_TAGGED_HEAD;
    size_t summed = (MPA_LENGTH + ulpdu + 3) & ~(size_t)3;
    uint64_t offset;

    if (n < summed + MPA_CRC)
        return 0;
    if (crc32c(0, p, summed) != get32le(p + summed))
        ends_fail("CRC", -EBADMSG);
    if (ulpdu < DDP_TAGGED_HEAD || get16(p + MPA_LENGTH) != CONTROL)
        ends_fail("header", -EBADMSG);
    offset = get64(p + HEAD - sizeof(offset)) - region.start;
    if (get32(p + MPA_LENGTH + 2) != region.key || offset > ENDS_OCTETS || length > ENDS_OCTETS - offset)
        ends_fail("place", -EBADMSG);
    copy_once(region.memory + offset, p + HEAD, length);
    return summed + MPA_CRC;
}

/* Returns the octets of the n in the stage that were taken. */
static size_t take_staged(size_t n, uint64_t *count)
{
    size_t at = 0;

    if (way == WAY_RAW) {
        *count += n / FPDU;
        return n - n % FPDU;
    }
    for (size_t octets; (octets = take_fpdu(stage + at, n - at)); at += octets)
        ++*count;
    return at;
}

static void receive_writes(int fd, void *of)
{
    size_t held = 0, taken;
    uint64_t count = 0;
    ssize_t got;

    (void)of;
    path_pin(1);
    while ((got = recv(fd, stage + held, STAGE_SPACE, MSG_DONTWAIT))) {
        if (got < 0 && errno != EAGAIN)
            ends_fail("recv", 0);
        if (got < 0)
            continue;
        held += (size_t)got;
        taken = take_staged(held, &count);
        held -= taken;
        memmove(stage, stage + taken, held);
    }
    if (way == WAY_BARE && memcmp(memory, payload, SIZE))
        ends_fail("payload", -EBADMSG);
    if (send(fd, &count, sizeof(count), MSG_NOSIGNAL) != sizeof(count))
        ends_fail("send", 0);
}

/* --- the sender -------------------------------------------------------------------------------------------------- */

static void put_writes(uint32_t n)
{
    for (uint8_t *p = out, *q; n--; p = q) {
        q = put16(put16(p, DDP_TAGGED_HEAD + SIZE), CONTROL);
        q = put_bytes(put64(put32(q, region.key), region.start), payload, SIZE);
        q = put32le(q, crc32c(0, p, (size_t)(q - p)));
    }
}

static void wait_for_space(void)
{
    for (uint64_t end_ns = ends_now_ns() + LOOK_NS; ends_now_ns() < end_ns;)
        spin_pause();
}

static void send_out(int fd, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t taken = send(fd, out + at, n - at, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (taken >= 0)
            at += (size_t)taken;
        else if (errno == EAGAIN)
            wait_for_space();
        else
            ends_fail("send", 0);
    }
}

/* Returns how many Writes TCP took. */
static uint64_t send_for(int fd, uint32_t n, double seconds)
{
    uint64_t end_ns = ends_now_ns() + (uint64_t)(seconds * 1e9), done = 0;

    put_writes(n);
    while (ends_now_ns() < end_ns)
        for (uint32_t of_window = 0; of_window < ENDS_UNDER_WAY; of_window += n, done += n) {
            if (way == WAY_BARE)
                put_writes(n);
            send_out(fd, (size_t)n * FPDU);
        }
    return done;
}

static uint64_t measure_pair(uint32_t n, double seconds)
{
    uint64_t sent, count = 0;
    struct raw_pair pair;

    region = (struct region){memory, (uintptr_t)memory, (uint32_t)ends_now_ns()};
    raw_pair_open(&pair, receive_writes, NULL);
    path_pin(0);
    sent = send_for(pair.fd, n, seconds);
    shutdown(pair.fd, SHUT_WR);
    if (recv(pair.fd, &count, sizeof(count), MSG_WAITALL) != sizeof(count) || count != sent)
        ends_fail("not all Writes have arrived", -EPROTO);
    raw_pair_close(&pair);
    path_unpin();
    return sent;
}

/* --- rddp -------------------------------------------------------------------------------------------------------- */

/* Without a thread of the library at the sender, which would share its processor and interrupt it. */
static uint64_t measure_rddp(uint32_t list, double seconds)
{
    struct ends_peer peer;
    struct end end;
    uint64_t done;

    path_pin(1);
    ends_start(&peer, ends_poll_always);
    path_pin(0);
    ends_open(&end, &peer, NULL, 0);
    ends_tell(&end, &peer);
    done = ends_write_for(&end, list, SIZE, seconds);
    ends_stop(&peer);
    ends_close(&end, true);
    path_unpin();
    return done;
}

/* --- figures ----------------------------------------------------------------------------------------------------- */

/* Millions of Writes a second. */
static double measure_row(const struct row *row, double seconds)
{
    uint64_t done;

    way = row->way;
    done = way == WAY_RDDP ? measure_rddp(row->n, seconds) : measure_pair(row->n, seconds);
    return (double)done / seconds / 1e6;
}

/* Of the values, or, if `base` is not NULL, of what they are of those of the same rounds. */
static double median_against(const double *value, const double *base, int rounds)
{
    double sorted[ENDS_ROUNDS_MAX];

    for (int i = 0; i < rounds; i++)
        sorted[i] = base ? value[i] / base[i] : value[i];
    return ends_at(sorted, (size_t)rounds, 0.5);
}

int main(int argc, char **argv)
{
    static double value[ROWS][ENDS_ROUNDS_MAX];
    double seconds;
    int rounds;

    ends_arguments(argc, argv, &rounds, &seconds);
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < ROWS; i++)
            value[i][round] = measure_row(&rows[i], seconds);
    printf("Writes of %d octets, FPDUs of %d, M/s: medians of %d rounds\n", SIZE, FPDU, rounds);
    printf("                    N    M/s  of raw  of bare\n");
    for (int i = 0; i < ROWS; i++) {
        printf("%-16s %4u  %5.2f", way_name[rows[i].way], rows[i].n, median_against(value[i], NULL, rounds));
        if (rows[i].raw != NONE)
            printf("   %5.2f", median_against(value[i], value[rows[i].raw], rounds));
        if (rows[i].bare != NONE)
            printf("    %5.2f", median_against(value[i], value[rows[i].bare], rounds));
        printf("\n");
    }
    return 0;
}

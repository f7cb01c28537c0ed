/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* term.c - maps our faults to the codes of Terminate messages, and a peer's codes to text. */
#include "wire/term.h"

#include <assert.h>

#include "base/bytes.h"
#include "wire/ddp.h"

/* The third octet: which of the following fields are present (RFC 5040 4.8). */
enum { HAS_LENGTH = 0x80, HAS_DDP = 0x40, HAS_RDMA = 0x20, HAS_ANY = 0xe0 };

/* The same bits as siw sends them: it declares bit-fields for a big-endian machine and runs on little-endian ones. */
enum { SIW_HAS_DDP = 0x02, SIW_HAS_ANY = 0x07 };

enum { CONTROL = 4, SEGMENT_LENGTH = 2 };

enum { LAYER_RDMAP, LAYER_DDP, LAYER_LLP };

static unsigned layer(unsigned code)
{
    return code >> 12;
}

static unsigned type(unsigned code)
{
    return code >> 8 & 15;
}

/* --- ours ---------------------------------------------------------------------------------------------------- */

/* The code of each fault in a Terminate (RFC 5041 7.2, RFC 5040 figure 9, RFC 5044 8, RFC 6581 8), by the segment it
 * happened to. DDP reports errors of tagged and untagged segments; RDMAP reports errors about the region that a Read
 * Request or an invalidation names. */
static const struct {
    uint16_t tagged, untagged, read;
} codes[FAULTS] = {
    [FAULT_NONE] = {TERM_SILENCE, TERM_SILENCE, TERM_SILENCE},

    [FAULT_KEY] = {0x1100, 0x0100, 0x0100},
    [FAULT_DOMAIN] = {0x1102, 0x0103, 0x0103},
    [FAULT_RIGHT] = {0x1100, 0x0102, 0x0102}, /* DDP has no code for rights: such a buffer counts as none */
    [FAULT_BOUNDS] = {0x1101, 0x0101, 0x0101},
    [FAULT_WRAP] = {0x1103, 0x0104, 0x0104},
    [FAULT_ABSENT] = {0x1101, 0x0101, 0x0101},

    [FAULT_QUEUE] = {0x1201, 0x1201, 0x1201},
    [FAULT_NO_RECEIVE] = {0x1202, 0x1202, 0x1202},
    [FAULT_MSN] = {0x1203, 0x1203, 0x1203},
    [FAULT_MO] = {0x1204, 0x1204, 0x1204},
    [FAULT_TOO_LONG] = {0x1205, 0x1205, 0x1205},

    [FAULT_DDP_VERSION] = {0x1104, 0x1206, 0x1206},
    [FAULT_RDMAP_VERSION] = {0x0205, 0x0205, 0x0205},
    [FAULT_OPCODE] = {0x0206, 0x0206, 0x0206},
    [FAULT_SHORT] = {0x02ff, 0x02ff, 0x02ff},   /* neither DDP nor RDMAP has a code for it: unspecified */
    [FAULT_UNASKED] = {0x1100, 0x1202, 0x1100}, /* no Read of ours has that sink; no atomic of ours is pending */
    [FAULT_READS] = {0x1202, 0x1202, 0x1202},   /* queue 1 has one buffer per agreed Read */
    [FAULT_INVALIDATE] = {0x0109, 0x0109, 0x0109},

    [FAULT_UNALIGNED] = {0x0207, 0x0207, 0x0207},

    [FAULT_CRC] = {0x2002, 0x2002, 0x2002},
    [FAULT_MARKER] = {0x2003, 0x2003, 0x2003},
    [FAULT_OVERLAP] = {0x2003, 0x2003, 0x2003}, /* the unit's length disagrees with the known start of the next unit */
    [FAULT_LENGTH] = {0x2003, 0x2003, 0x2003},

    /* A wrong start-up frame closes the connection at once (RFC 5044 8, error 4). */
    [FAULT_START_KEY] = {TERM_SILENCE, TERM_SILENCE, TERM_SILENCE},
    [FAULT_START_REVISION] = {TERM_SILENCE, TERM_SILENCE, TERM_SILENCE},
    [FAULT_START_LENGTH] = {TERM_SILENCE, TERM_SILENCE, TERM_SILENCE},
    [FAULT_START_ENHANCED] = {TERM_SILENCE, TERM_SILENCE, TERM_SILENCE},
    [FAULT_IRD] = {0x2006, 0x2006, 0x2006},
    [FAULT_RTR] = {0x2007, 0x2007, 0x2007},
    [FAULT_EARLY] = {TERM_SILENCE, TERM_SILENCE, TERM_SILENCE},
    [FAULT_REJECTED] = {TERM_SILENCE, TERM_SILENCE, TERM_SILENCE},

    [FAULT_LOST] = {TERM_SILENCE, TERM_SILENCE, TERM_SILENCE},
    [FAULT_CUT] = {TERM_SILENCE, TERM_SILENCE, TERM_SILENCE},
    [FAULT_STALLED] = {TERM_SILENCE, TERM_SILENCE, TERM_SILENCE},

    [FAULT_TERMINATED] = {TERM_SILENCE, TERM_SILENCE, TERM_SILENCE},
    [FAULT_LOCAL_KEY] = {0x0000, 0x0000, 0x0000},
    [FAULT_CQ_FULL] = {0x0000, 0x0000, 0x0000},
    [FAULT_MEMORY] = {0x0000, 0x0000, 0x0000},
    [FAULT_NOT_NOW] = {TERM_SILENCE, TERM_SILENCE, TERM_SILENCE},
    [FAULT_NO_ORD] = {0x0000, 0x0000, 0x0000},
    [FAULT_OWNER] = {TERM_SILENCE, TERM_SILENCE, TERM_SILENCE},
    [FAULT_FORKED] = {TERM_SILENCE, TERM_SILENCE, TERM_SILENCE},
    [FAULT_CLOSED] = {TERM_SILENCE, TERM_SILENCE, TERM_SILENCE},
};

unsigned term_code(enum fault fault, enum seg_op op, bool started)
{
    assert(fault < FAULTS);
    if (fault == FAULT_MEMORY && !started)
        return 0x2005; /* RFC 6581 8 and 9.3: a code of its own while the connection is being established */
    if ((fault >= FAULT_SEG_VERSION && fault <= FAULT_SEG_TOTAL) || fault >= FAULT_CHUNK_SHORT)
        return TERM_SILENCE; /* faults of other wires, which have no Terminate */
    if (op == SEG_READ_REQ || op == SEG_ATOMIC_REQ)
        return codes[fault].read;
    return op == SEG_WRITE || op == SEG_READ_RESP ? codes[fault].tagged : codes[fault].untagged;
}

/* RFC 5040 figure 10: an MPA error or a local catastrophic error names no message. */
static bool names_message(unsigned code)
{
    return layer(code) != LAYER_LLP && type(code) != 0;
}

size_t term_encode(uint8_t *buffer, unsigned code, const struct seg *about)
{
    uint32_t ddp = about && about->head_length ? ddp_head_octets(about->head[0]) : 0;
    bool copied = ddp && about->head_length >= ddp && names_message(code);
    bool request =
        copied && layer(code) == LAYER_RDMAP && type(code) == 1 && about->head_length == ddp + RDMAP_READ_HEAD;
    uint8_t *p = put16(buffer, (uint16_t)code);

    p = put8(p, (uint8_t)((copied ? HAS_LENGTH | HAS_DDP : 0) | (request ? HAS_RDMA : 0)));
    p = put8(p, 0);
    if (copied) {
        p = put16(p, (uint16_t)(about->head_length + about->length));
        p = put_bytes(p, about->head, request ? about->head_length : ddp);
    }
    return (size_t)(p - buffer);
}

/* --- the peer's ---------------------------------------------------------------------------------------------- */

/* Every code that a document defines. For a local catastrophic error only layer and type are compared. */
static const struct {
    uint16_t code;
    bool access;
    const char *text;
} words[] = {
    {0x0000, false, "local catastrophic error (RFC 5040 4.8)"},
    {0x0100, true, "remote protection: invalid STag (RFC 5040 4.8)"},
    {0x0101, true, "remote protection: base or bounds violation (RFC 5040 4.8)"},
    {0x0102, true, "remote protection: access rights violation (RFC 5040 4.8)"},
    {0x0103, true, "remote protection: STag not associated with the stream (RFC 5040 4.8)"},
    {0x0104, true, "remote protection: tagged offset wraps (RFC 5040 4.8)"},
    {0x0109, true, "remote protection: STag cannot be invalidated (RFC 5040 4.8)"},
    {0x01ff, true, "remote protection: unspecified error (RFC 5040 4.8)"},
    {0x0205, false, "invalid RDMAP version (RFC 5040 4.8)"},
    {0x0206, false, "unexpected opcode (RFC 5040 4.8)"},
    {0x0207, false, "catastrophic error of the RDMAP stream (RFC 5040 4.8)"},
    {0x0208, false, "catastrophic error, global (RFC 5040 4.8)"},
    {0x0209, true, "remote operation: STag cannot be invalidated (RFC 5040 4.8)"},
    {0x02ff, false, "remote operation: unspecified error (RFC 5040 4.8)"},
    {0x1000, false, "local catastrophic error of DDP (RFC 5041 7.2)"},
    {0x1100, true, "tagged buffer: invalid STag (RFC 5041 7.2)"},
    {0x1101, true, "tagged buffer: base or bounds violation (RFC 5041 7.2)"},
    {0x1102, true, "tagged buffer: STag not associated with the stream (RFC 5041 7.2)"},
    {0x1103, true, "tagged buffer: tagged offset wraps (RFC 5041 7.2)"},
    {0x1104, false, "tagged segment: invalid DDP version (RFC 5041 7.2)"},
    {0x1201, false, "untagged buffer: invalid queue number (RFC 5041 7.2)"},
    {0x1202, false, "untagged buffer: invalid message number, no buffer available (RFC 5041 7.2)"},
    {0x1203, false, "untagged buffer: invalid message number, out of range (RFC 5041 7.2)"},
    {0x1204, false, "untagged buffer: invalid message offset (RFC 5041 7.2)"},
    {0x1205, false, "untagged buffer: message too long for it (RFC 5041 7.2)"},
    {0x1206, false, "untagged segment: invalid DDP version (RFC 5041 7.2)"},
    {0x2001, false, "TCP connection closed, terminated or lost (RFC 5044 8)"},
    {0x2002, false, "MPA CRC does not match (RFC 5044 8)"},
    {0x2003, false, "MPA marker and ULPDU length disagree (RFC 5044 8)"},
    {0x2004, false, "invalid MPA request or reply frame (RFC 5044 8)"},
    {0x2005, false, "local catastrophic error while connecting (RFC 6581 8)"},
    {0x2006, false, "insufficient IRD resources (RFC 6581 8)"},
    {0x2007, false, "no matching ready-to-receive option (RFC 6581 8)"},
};

/* Was this Terminate sent by Linux siw? The bits that announce headers tell. Without headers only some codes are unique
 * to one of the two orders. 0x20 and 0x02 with a start-up code exist in both orders: the first FPDU means start-up. */
static bool is_siw(const uint8_t *p, bool first)
{
    if (p[2] & HAS_ANY)
        return false;
    if (p[2] & SIW_HAS_ANY)
        return true;
    switch (p[0]) {
    case 0x20:
        return !first && (p[1] == 5 || p[1] == 6);
    case 0x02:
        return p[1] <= 4 || (first && p[1] <= 7);
    case 0x21:
        return true;
    default:
        return false;
    }
}

void term_explain(const uint8_t *p, size_t n, bool first, struct wire_blame *blame)
{
    bool siw;
    unsigned known;

    *blame = (struct wire_blame){.op = SEG_OPS, .text = "a Terminate too short to be read"};
    if (n < CONTROL)
        return;
    siw = is_siw(p, first);
    blame->code = siw ? (uint32_t)(p[0] << 12 & 0xf000) | (uint32_t)(p[0] << 4 & 0x0f00) | p[1] : get16(p);
    blame->text = "a code that no document knows";
    known = type(blame->code) == 0 && layer(blame->code) != LAYER_LLP ? blame->code & 0xff00 : blame->code;
    blame->invalid = known == 0x0206 || known == 0x1205; /* unexpected opcode, message too long */
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (words[i].code == known) {
            blame->access = words[i].access;
            blame->text = words[i].text;
        }
    }
    if (p[2] & (siw ? SIW_HAS_DDP : HAS_DDP) && n > CONTROL + SEGMENT_LENGTH)
        blame->op = ddp_op(p + CONTROL + SEGMENT_LENGTH, n - CONTROL - SEGMENT_LENGTH);
}

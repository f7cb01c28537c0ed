/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cifs.c - frames and messages octet by octet; CIFS is little-endian, NetBIOS is not. */
#include "tests/lib/cifs.h"

#include <string.h>

#include "base/bytes.h"

enum { AT_COMMAND = 4, AT_FLAGS = 9, AT_TID = 24, AT_PID = 26, AT_UID = 28, AT_MID = 30, FLAG_REPLY = 0x80 };
enum { AT_OFFSET = CIFS_HEAD + 1 + 6, AT_COUNT = CIFS_HEAD + 1 + 10, AT_OCTETS = CIFS_MESSAGE - 2 };

static void put16le(uint8_t *at, uint16_t v)
{
    at[0] = (uint8_t)v;
    at[1] = (uint8_t)(v >> 8);
}

static uint16_t get16le(const uint8_t *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static uint32_t get_count(const uint8_t *at)
{
    return get16le(at) | (uint32_t)get16le(at + 2) << 16;
}

uint32_t cifs_data(const struct cifs_message *m)
{
    return (m->command == CIFS_READ) == m->reply ? m->count : 0;
}

uint8_t *cifs_encode(uint8_t to[CIFS_FRAME + CIFS_MESSAGE], const struct cifs_message *m)
{
    uint8_t *smb = to + CIFS_FRAME;

    memset(to, 0, CIFS_FRAME + CIFS_MESSAGE);
    put32(to, CIFS_MESSAGE + cifs_data(m));
    memcpy(smb, "\xffSMB", 4);
    smb[AT_COMMAND] = m->command;
    smb[AT_FLAGS] = m->reply ? FLAG_REPLY : 0;
    put16le(smb + AT_TID, m->tid);
    put16le(smb + AT_PID, m->pid);
    put16le(smb + AT_UID, m->uid);
    put16le(smb + AT_MID, m->mid);
    smb[CIFS_HEAD] = CIFS_WORDS;
    smb[CIFS_HEAD + 1] = 0xff; /* no command follows in this message */
    put16le(smb + AT_OFFSET, (uint16_t)m->offset);
    put16le(smb + AT_OFFSET + 2, (uint16_t)(m->offset >> 16));
    put16le(smb + AT_COUNT, (uint16_t)m->count);
    put16le(smb + AT_COUNT + 2, (uint16_t)(m->count >> 16));
    put16le(smb + AT_OCTETS, (uint16_t)cifs_data(m));
    return smb + CIFS_MESSAGE;
}

bool cifs_decode(struct cifs_message *m, const uint8_t from[CIFS_FRAME + CIFS_MESSAGE])
{
    const uint8_t *smb = from + CIFS_FRAME;

    *m = (struct cifs_message){.command = smb[AT_COMMAND],
                               .reply = smb[AT_FLAGS] & FLAG_REPLY,
                               .tid = get16le(smb + AT_TID),
                               .pid = get16le(smb + AT_PID),
                               .uid = get16le(smb + AT_UID),
                               .mid = get16le(smb + AT_MID),
                               .offset = get_count(smb + AT_OFFSET),
                               .count = get_count(smb + AT_COUNT)};
    return (m->command == CIFS_READ || m->command == CIFS_WRITE) && !memcmp(smb, "\xffSMB", 4) &&
           smb[CIFS_HEAD] == CIFS_WORDS && m->count <= CIFS_FRAME_MAX - CIFS_MESSAGE &&
           get32(from) == CIFS_MESSAGE + cifs_data(m);
}

/* The index of `id` among the taken ones, or where it would be. */
static uint32_t find_id(const struct cifs_ids *ids, uint32_t id)
{
    uint32_t low = 0, high = ids->count;

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (ids->taken[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool cifs_take_id(struct cifs_ids *ids, uint16_t *pid, uint16_t *mid)
{
    uint32_t i = find_id(ids, ids->next);

    if (ids->count == ids->capacity)
        return false;
    while (i < ids->count && ids->taken[i] == ids->next) {
        ids->next++;
        i = find_id(ids, ids->next);
    }
    memmove(ids->taken + i + 1, ids->taken + i, (ids->count++ - i) * sizeof(*ids->taken));
    ids->taken[i] = ids->next++;
    *pid = (uint16_t)(ids->taken[i] >> 16);
    *mid = (uint16_t)ids->taken[i];
    return true;
}

void cifs_give_id(struct cifs_ids *ids, uint16_t pid, uint16_t mid)
{
    uint32_t i = find_id(ids, (uint32_t)pid << 16 | mid);

    memmove(ids->taken + i, ids->taken + i + 1, (--ids->count - i) * sizeof(*ids->taken));
}

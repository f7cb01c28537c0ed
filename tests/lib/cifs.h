/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cifs.h - as much of CIFS as a READ or a WRITE needs: NetBIOS frames, the SMB header, READ_ANDX and WRITE_ANDX, and
 * who has which PID and MID. The binding of the TCP RDMA option (draft-csapuntz-tcprdma-00, section 5.3) for tests. */
#ifndef TESTS_LIB_CIFS_H
#define TESTS_LIB_CIFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CIFS_FRAME = 4,                 /* octets of the NetBIOS header: type 0 and a length of 17 bits */
    CIFS_FRAME_MAX = (1 << 17) - 1, /* octets behind it */
    CIFS_HEAD = 32,
    CIFS_WORDS = 12,                                   /* parameter words here, in each command */
    CIFS_MESSAGE = CIFS_HEAD + 1 + 2 * CIFS_WORDS + 2, /* octets of a message in front of its data */
    CIFS_READ = 0x2e,
    CIFS_WRITE = 0x2f,
};

/* One READ or WRITE, or its answer. */
struct cifs_message {
    uint8_t command;
    bool reply;
    uint16_t tid, uid, pid, mid;
    uint32_t offset, count; /* of the file; count: octets that follow, or that a READ wants */
};

/* Octets that follow a message as its data. */
uint32_t cifs_data(const struct cifs_message *m);
/* Writes the frame and the message, without data. Returns where the data go. */
uint8_t *cifs_encode(uint8_t to[CIFS_FRAME + CIFS_MESSAGE], const struct cifs_message *m);
/* Reads it back. False: it is no such message, or its lengths disagree. */
bool cifs_decode(struct cifs_message *m, const uint8_t from[CIFS_FRAME + CIFS_MESSAGE]);

/* The requests under way of a connection: no two have the same PID and MID (5.3.1.2). */
struct cifs_ids {
    uint32_t next;   /* PID << 16 | MID */
    uint32_t *taken; /* `count` of `capacity`, sorted */
    uint32_t count, capacity;
};

/* False: all room is taken. */
bool cifs_take_id(struct cifs_ids *ids, uint16_t *pid, uint16_t *mid);
void cifs_give_id(struct cifs_ids *ids, uint16_t pid, uint16_t mid);

#endif

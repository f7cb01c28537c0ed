/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* handle.c - encodes and decodes file handles. */
#include <assert.h>
#include <endian.h>
#include <sodium.h>
#include <string.h>

#include "nfs/server/handle.h"

enum { VERSION = 0x10, KERNEL_HEAD = HANDLE_HEAD + 4, INODE_HEAD = HANDLE_HEAD + 16 };

_Static_assert(HANDLE_KEY == crypto_shorthash_siphashx24_KEYBYTES && HANDLE_MAC == crypto_shorthash_siphashx24_BYTES,
               "SipHash-2-4-128");

static uint8_t *handle_put32(uint8_t *p, uint32_t v)
{
    v = htole32(v);
    memcpy(p, &v, 4);
    return p + 4;
}

static uint8_t *handle_put64(uint8_t *p, uint64_t v)
{
    v = htole64(v);
    memcpy(p, &v, 8);
    return p + 8;
}

static uint32_t handle_get32(const uint8_t *p)
{
    uint32_t v;

    memcpy(&v, p, 4);
    return le32toh(v);
}

static uint64_t handle_get64(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, 8);
    return le64toh(v);
}

void handle_put(const uint8_t key[HANDLE_KEY], const struct handle *h, struct nfs3_fh *fh)
{
    uint8_t *p = fh->data;

    assert(h->count <= (h->kind == HANDLE_KERNEL ? HANDLE_KERNEL_MAX : HANDLE_HINTS_MAX));
    memset(fh, 0, sizeof(*fh));
    *p++ = (uint8_t)(VERSION | h->kind);
    *p++ = h->count;
    p = handle_put32(p, h->export);
    if (h->kind == HANDLE_KERNEL) {
        p = handle_put32(p, (uint32_t)h->type);
        memcpy(p, h->kernel, h->count);
    } else {
        p = handle_put64(handle_put64(p, h->inode), h->birth);
        memcpy(p, h->hint, h->count);
    }
    p += h->count;
    crypto_shorthash_siphashx24(p, fh->data, (unsigned long long)(p - fh->data), key);
    fh->length = (uint32_t)(p - fh->data) + HANDLE_MAC;
}

static bool genuine(const uint8_t *key, const struct nfs3_fh *fh)
{
    uint8_t mac[HANDLE_MAC];

    if (fh->length < HANDLE_HEAD + HANDLE_MAC || fh->length > NFS3_FH_MAX)
        return false;
    crypto_shorthash_siphashx24(mac, fh->data, fh->length - HANDLE_MAC, key);
    return !sodium_memcmp(mac, fh->data + fh->length - HANDLE_MAC, HANDLE_MAC);
}

uint32_t handle_export(const struct nfs3_fh *fh)
{
    return fh->length < HANDLE_HEAD ? 0 : handle_get32(fh->data + HANDLE_HEAD - 4);
}

bool handle_get(const uint8_t key[HANDLE_KEY], const struct nfs3_fh *fh, struct handle *h)
{
    const uint8_t *p = fh->data;
    uint32_t head;

    if (!genuine(key, fh))
        return false;
    *h = (struct handle){.kind = p[0] ^ VERSION, .count = p[1], .export = handle_get32(p + 2)};
    head = h->kind == HANDLE_KERNEL ? KERNEL_HEAD : INODE_HEAD;
    if ((h->kind != HANDLE_KERNEL && h->kind != HANDLE_INODE) || fh->length != head + h->count + HANDLE_MAC)
        return false;
    if (h->kind == HANDLE_KERNEL) {
        h->type = (int32_t)handle_get32(p + HANDLE_HEAD);
        memcpy(h->kernel, p + head, h->count);
    } else {
        h->inode = handle_get64(p + HANDLE_HEAD);
        h->birth = handle_get64(p + HANDLE_HEAD + 8);
        memcpy(h->hint, p + head, h->count);
    }
    return true;
}

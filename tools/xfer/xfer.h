/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* xfer.h - the protocol between `rddp serve` and `rddp cp`: limits, results and records (doc/cp-protocol.md). */
#ifndef TOOLS_XFER_XFER_H
#define TOOLS_XFER_XFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    XFER_PORT = 18516,
    XFER_VERSION = 3,
    XFER_MAGIC = 0x72646300 + XFER_VERSION, /* "rdc" and the version */
    XFER_HELLO = 8,                         /* octets of private data: the magic number, a result, two zeros */

    XFER_MESSAGE = 16384, /* limit for a message, in octets */
    XFER_HEAD = 32,       /* octets before the first record of a message */
    XFER_RECEIVES = 32,   /* receives that each side posts: the initial credits of the other side */

    XFER_ALIGN = 64,     /* a piece of a file begins at a multiple of this in the ring */
    XFER_DATA = 1 << 20, /* limit for a DATA record, in octets */
    XFER_RING_MIN = 4 << 20,
    XFER_RING = 16 << 20, /* the default */
    XFER_RING_MAX = 1 << 28,

    XFER_NAME = 255,  /* limit for a name, in octets */
    XFER_PATH = 4095, /* limit for a path */
    XFER_DEPTH = 128, /* limit for the names in a path */

    XFER_RESUMABLE = 8 << 20, /* a file of at least this size is resumed after a broken transfer */
    XFER_OFFERS = 8,          /* limit for offers that may be answered with a digest */
    XFER_DIGEST = 16,         /* XXH3, 128 bits */
    XFER_TEXT = 1024,         /* buffer for a path made printable */

    XFER_START_MS = 10000,    /* how long the server waits for the first message */
    XFER_SILENCE_MS = 60000,  /* how long either side waits for later ones */
    XFER_KEEPALIVE_MS = 5000, /* a message is sent at least this often */
    XFER_BYE_MS = 2000,       /* how long the server waits for the client to disconnect */
};

/* The result of an entry or of a copy. The numbers are sent over the wire. */
enum xfer_result {
    XFER_OK,
    XFER_IO,
    XFER_ABSOLUTE,
    XFER_DOTDOT,
    XFER_OUTSIDE,
    XFER_BAD_NAME,
    XFER_TOO_LONG,
    XFER_TOO_DEEP,
    XFER_NOT_FOUND,
    XFER_NO_ACCESS,
    XFER_READ_ONLY,
    XFER_FULL,
    XFER_TOO_BIG,
    XFER_LOOP,
    XFER_IS_DIRECTORY,
    XFER_NOT_DIRECTORY,
    XFER_NOT_RECURSIVE,
    XFER_NOT_FILE,
    XFER_LINK_OUT,
    XFER_CHANGED,
    XFER_MISMATCH,
    XFER_NO_MEMORY,
    XFER_BUSY,
    XFER_ABORTED,
    XFER_OTHER_VERSION,
    XFER_PROTOCOL,
    XFER_RESULTS,
};

/* A phrase to end a message with; also accepts unknown numbers. */
const char *xfer_result_text(enum xfer_result result);
/* Maps an errno. */
enum xfer_result xfer_result_of(int error);

enum xfer_type {
    XFER_START = 1,     /* client: the request */
    XFER_READY,         /* server: accepted; here is the ring */
    XFER_ERROR,         /* server: refused; nothing follows */
    XFER_TOTAL,         /* source: how much is to come */
    XFER_OFFER,         /* source: is a part of this file there? */
    XFER_HAVE,          /* sink: the part that is there, and its digest */
    XFER_DIRECTORY,     /* source: a directory; entries in it may follow */
    XFER_DIRECTORY_END, /* source: no more entries in this directory */
    XFER_LINK,          /* source: a symbolic link */
    XFER_FILE,          /* source: a file; DATA follows, then FILE_END */
    XFER_DATA_HERE,     /* source: the next octets of the ring */
    XFER_FILE_END,      /* source: all data of the file were sent; its digest */
    XFER_TROUBLE,       /* source: this entry cannot be read */
    XFER_DONE,          /* sink: the result of an entry */
    XFER_END,           /* source: no more entries */
    XFER_FINISH,        /* client: all results are there; server: good-bye, with its CPU time */
    XFER_SKIP,          /* source: this file needs no data */
    XFER_HOLE_HERE,     /* source: the next octets of the file are zero and take no space */
    XFER_ENTRY,         /* source: a line of a listing */
    XFER_TYPES,
};

enum xfer_flag {
    XFER_PULL = 1 << 0,       /* START: copy from the server; else to it */
    XFER_RECURSIVE = 1 << 1,  /* START: directories too */
    XFER_WANT_TOTAL = 1 << 2, /* START */
    XFER_IS_DIR = 1 << 3,     /* START of a push, READY of a pull: the source is a directory */
    XFER_INTO = 1 << 4,       /* START of a push: the path ended with a slash, so it must be a directory */
    XFER_CHECKSUM = 1 << 5,   /* START: compare octets, not only size and time */
    XFER_FRESH = 1 << 6,      /* START of a pull, READY of a push: the sink has no such directory yet */
    XFER_DRY_RUN = 1 << 7,    /* START: compare, and change nothing */
    XFER_LIST = 1 << 8,       /* START of a pull: send ENTRY records instead of files */
    XFER_SAME = 1 << 9,       /* HAVE: the file itself is there; SKIP: leave it unchanged */
};

/* All fields that a record can have, in their order on the wire. A table says which ones a type has. */
struct xfer_record {
    enum xfer_type type;
    uint16_t result; /* enum xfer_result */
    uint16_t flags;  /* enum xfer_flag; DONE: the type of the entry */
    uint32_t id;     /* entries count from 1 */
    uint32_t mode;
    uint32_t length;
    uint32_t key;
    uint64_t address;
    uint64_t size;
    uint64_t offset;
    uint64_t count;
    int64_t seconds; /* modification time */
    uint32_t nanoseconds;
    uint8_t digest[XFER_DIGEST];
    const char *path, *name; /* decoded: point into the message. NULL is encoded as "". */
};

enum { XFER_RECORD_MAX = 4 + 80 + 2 * (2 + XFER_PATH + 1) };

/* Writes the record to `p`, which has XFER_RECORD_MAX octets, and returns its length. Texts must not exceed
 * XFER_PATH. */
size_t xfer_encode(uint8_t *p, const struct xfer_record *record);
/* Decodes a record from the `n` octets at `p`. Returns its length, or 0 if it is invalid. */
size_t xfer_decode(const uint8_t *p, size_t n, struct xfer_record *record);

/* The XFER_HEAD octets before the records of a message. */
struct xfer_head {
    uint32_t length;   /* of the whole message */
    uint16_t credits;  /* receives posted since the last message */
    uint64_t released; /* sink: ring positions before this one are free again */
    uint64_t from, to; /* source: the part of the ring that the records of this message describe */
};

void xfer_head_encode(uint8_t p[XFER_HEAD], const struct xfer_head *head);
void xfer_head_decode(const uint8_t p[XFER_HEAD], struct xfer_head *head);
/* `version` is XFER_VERSION, or the peer's own version to refuse it. */
void xfer_hello_encode(uint8_t p[XFER_HELLO], unsigned version, enum xfer_result result);
/* Returns the peer's result, or XFER_OTHER_VERSION for another protocol version. */
enum xfer_result xfer_hello_decode(const uint8_t *p, size_t n);
/* Returns the peer's protocol version; 0: it speaks another protocol. */
unsigned xfer_hello_version(const uint8_t *p, size_t n);

/* Checks that this is "" or a relative path of valid names, none of them "", "." or "..", within the limits. */
enum xfer_result xfer_path_check(const char *path);
/* Whether this is one valid name. */
bool xfer_name_ok(const char *name);

/* Whether the symbolic link `path` -> `target` stays inside the tree that `path` is relative to, whatever other links
 * are there for which this is true: the target is "..", at most as often as `path` has directories, then names. After a
 * name, which may be a link itself, ".." could lead anywhere. The directories of `path` must be no links. */
bool xfer_link_ok(const char *path, const char *target);

/* Makes `text` a single line that is safe for terminals and JSON: control characters and invalid UTF-8 are escaped, and
 * the middle of a very long text is left out. Returns `out`. */
char *xfer_printable(char out[XFER_TEXT], const char *text);

#endif

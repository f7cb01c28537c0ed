/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* xfer.h - the words between `rddp serve` and `rddp cp`: limits, results and records (doc/cp-protocol.md). */
#ifndef TOOLS_XFER_XFER_H
#define TOOLS_XFER_XFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    XFER_PORT = 18516,
    XFER_VERSION = 2,
    XFER_MAGIC = 0x72646300 + XFER_VERSION, /* "rdc" and the version */
    XFER_HELLO = 8,                         /* octets of private data: the magic number, a result, two octets of zero */

    XFER_MESSAGE = 16384, /* octets of a message at most */
    XFER_HEAD = 32,       /* octets before its first record */
    XFER_RECEIVES = 32,   /* receives each side keeps posted: the credits that the other starts with */

    XFER_ALIGN = 64,     /* a piece of a file begins at a multiple of this in the ring */
    XFER_DATA = 1 << 20, /* octets of one DATA record at most */
    XFER_HOLE = 1 << 26, /* and of one HOLE record */
    XFER_RING_MIN = 4 << 20,
    XFER_RING = 16 << 20, /* the default */
    XFER_RING_MAX = 1 << 28,

    XFER_NAME = 255,  /* octets of one name */
    XFER_PATH = 4095, /* octets of a path */
    XFER_DEPTH = 128, /* names in a path */

    XFER_RESUMABLE = 8 << 20, /* octets of a file from which on a part of it is kept and resumed */
    XFER_OFFERS = 8,          /* offers that may be open at once if their answer can be a digest */
    XFER_DIGEST = 16,         /* XXH3, 128 bits */
    XFER_TEXT = 1024,         /* room for a path as people read it */

    XFER_START_MS = 10000,    /* the server waits so long for the first message */
    XFER_SILENCE_MS = 60000,  /* and either side for any later one */
    XFER_KEEPALIVE_MS = 5000, /* one is sent at least so often */
    XFER_BYE_MS = 2000,       /* how long the server waits for the client to hang up */
};

/* How something ended. The numbers go over the wire. */
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

/* The end of a line; also for numbers that are none of ours. */
const char *xfer_result_text(enum xfer_result result);
/* Of an errno. */
enum xfer_result xfer_result_of(int error);

enum xfer_type {
    XFER_START = 1,     /* client: what is wanted */
    XFER_READY,         /* server: go ahead, here is the ring */
    XFER_ERROR,         /* server: no; nothing more comes */
    XFER_TOTAL,         /* source: this much is to come */
    XFER_OFFER,         /* source: is a part of this file there? */
    XFER_HAVE,          /* sink: this much is, with this digest */
    XFER_DIRECTORY,     /* source: what follows may be in this directory */
    XFER_DIRECTORY_END, /* source: nothing more will be */
    XFER_LINK,          /* source: a symbolic link */
    XFER_FILE,          /* source: DATA follows, then FILE_END */
    XFER_DATA_HERE,     /* source: the next octets of the ring */
    XFER_FILE_END,      /* source: all of it came by, and this is its digest */
    XFER_TROUBLE,       /* source: this one cannot be read */
    XFER_DONE,          /* sink: how the entry ended */
    XFER_END,           /* source: there is nothing more */
    XFER_FINISH,        /* client: all is told; server: good-bye, and what it cost */
    XFER_SKIP,          /* source: this file needs no data */
    XFER_HOLE_HERE,     /* source: the next octets of the file are zero and take no space */
    XFER_ENTRY,         /* source: a line of a listing */
    XFER_TYPES,
};

enum xfer_flag {
    XFER_PULL = 1 << 0,       /* START: from the server; else to it */
    XFER_RECURSIVE = 1 << 1,  /* START: directories too */
    XFER_WANT_TOTAL = 1 << 2, /* START */
    XFER_IS_DIR = 1 << 3,     /* START of a push, READY of a pull: the source is a directory */
    XFER_INTO = 1 << 4,       /* START of a push: the path ended with a slash, so it must be a directory */
    XFER_CHECKSUM = 1 << 5,   /* START: size and time do not say that a file is unchanged, its octets do */
    XFER_FRESH = 1 << 6,      /* START of a pull, READY of a push: the sink has no such directory yet */
    XFER_DRY_RUN = 1 << 7,    /* START: compare, and change nothing */
    XFER_LIST = 1 << 8,       /* START of a pull: ENTRY records in place of the copy */
    XFER_SAME = 1 << 9,       /* HAVE: the file itself is there; SKIP: it stays as it is */
};

/* Every field that a record can have, in the order they stand in it. A table says which ones a type has. */
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
    const char *path, *name; /* decoded: they point into the message. NULL is encoded as "". */
};

enum { XFER_RECORD_MAX = 4 + 80 + 2 * (2 + XFER_PATH + 1) };

/* Returns the octets written at `p`, which has room for XFER_RECORD_MAX. Texts are no longer than XFER_PATH. */
size_t xfer_encode(uint8_t *p, const struct xfer_record *record);
/* Returns the octets taken from the `n` at `p`, or 0: that is no record. */
size_t xfer_decode(const uint8_t *p, size_t n, struct xfer_record *record);

/* The 32 octets before the records of a message. */
struct xfer_head {
    uint32_t length;   /* of the whole message */
    uint16_t credits;  /* receives posted since the last message */
    uint64_t released; /* sink: ring positions before this one may be used again */
    uint64_t from, to; /* source: the part of the ring that the records of this message are about */
};

void xfer_head_encode(uint8_t p[XFER_HEAD], const struct xfer_head *head);
void xfer_head_decode(const uint8_t p[XFER_HEAD], struct xfer_head *head);
/* `version`: XFER_VERSION, or the peer's own to refuse it in. */
void xfer_hello_encode(uint8_t p[XFER_HELLO], unsigned version, enum xfer_result result);
/* XFER_OTHER_VERSION if it is not ours, else what it says. */
enum xfer_result xfer_hello_decode(const uint8_t *p, size_t n);
/* The version of the one who said hello, or 0: it speaks another protocol. */
unsigned xfer_hello_version(const uint8_t *p, size_t n);

/* Is this a relative path of names, none of them "", "." or "..", within the limits? "" is, too. */
enum xfer_result xfer_path_check(const char *path);
/* Is this one such name? */
bool xfer_name_ok(const char *name);

/* Does the symbolic link `path` -> `target` stay inside the tree that `path` is relative to? By its words alone. */
bool xfer_link_ok(const char *path, const char *target);

/* `text` as one line that does no harm to a terminal or to JSON: control characters and broken UTF-8 are escaped, and
 * the middle of a very long one is left out. Returns `out`. */
char *xfer_printable(char out[XFER_TEXT], const char *text);

#endif

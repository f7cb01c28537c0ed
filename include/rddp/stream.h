/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rddp/stream.h - a TCP stream of which marked parts land in the reader's buffers at once, in whatever order they come.
 *
 * The writer says which octets belong to a transfer; the TCP RDMA option (draft-csapuntz-tcprdma-00) carries that
 * beside each segment, and the stream is the same with and without it. The reader names buffers by the transfers' RIDs
 * and gets records in the order of the stream: what lies where, and the octets that belong to none. A peer that does
 * not know the option, a RID that nobody named, an option that is wrong: the octets are read as from any stream, and
 * none is lost.
 *
 * The option leaks where data lies to whoever sees the packets, and TLS above it does not protect it; IPsec does.
 *
 * The TCP is the library's own, behind a TUN device with addresses of its own: whoever may make one (root, or anybody
 * in `unshare -Urn`) may use it. A net and its streams belong to one thread at a time. Calls return 0 (or a count) or a
 * negative errno, calls that make an object NULL and errno. No call waits but rddp_stream_progress(). */
#ifndef RDDP_STREAM_H
#define RDDP_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef RDDP_API
#define RDDP_API __attribute__((visibility("default")))
#endif

struct rddp_stream_net; /* a device, and the addresses behind it */
struct rddp_stream;     /* one connection */

/* --- the net ------------------------------------------------------------------------------------------------- */

struct rddp_stream_net_attr {
    const char *device;              /* the TUN device's name; NULL: as the kernel likes */
    const struct sockaddr *neighbor; /* the kernel's own address on it, IPv4 or IPv6, or NULL: it is set up already */
    uint32_t prefix;                 /* bits of that address which all behind the device share */
    uint32_t mtu;                    /* 1280 to 65535, default 1500 */
    uint32_t window;                 /* octets that a stream keeps for its reader: 4096 to 1 GiB, default 1 MiB */
    uint32_t streams;                /* at most so many at once, default 1024 */
    bool no_option;                  /* never offer the option */
    uint8_t option_kind;             /* default 25; 253 and 254 are there for experiments (RFC 6994) */
    bool checksums;                  /* compute and verify them here; else the device does */
    uint32_t lose, lose_seed; /* to test with: so many of 100,000 packets are lost each way, the same for a seed */
};

RDDP_API void rddp_stream_net_attr_init(struct rddp_stream_net_attr *attr);

/* EPERM, EACCES: no device may be made here; EBUSY: another program has it; EINVAL; ENOENT: no TUN driver; ENOMEM;
 * EMFILE; EAGAIN: no random number to be had. */
RDDP_API struct rddp_stream_net *rddp_stream_net_open(const struct rddp_stream_net_attr *attr);
RDDP_API int rddp_stream_net_close(struct rddp_stream_net *net); /* -EBUSY: a stream is left */

/* Readable while rddp_stream_progress() has something to do. Nothing else may be done with it. */
RDDP_API int rddp_stream_net_fd(const struct rddp_stream_net *net);
/* Takes packets, sends packets; waits at most `timeout_ms` for the first (0: not at all, -1: for ever). 0 or -EINTR. */
RDDP_API int rddp_stream_progress(struct rddp_stream_net *net, int timeout_ms);

/* --- connections --------------------------------------------------------------------------------------------- */

/* Takes connections to this port, at any address behind the device, up to `backlog` not accepted ones. -EADDRINUSE,
 * -ENOSPC: too many ports (16), -EINVAL. */
RDDP_API int rddp_stream_listen(struct rddp_stream_net *net, uint16_t port, uint32_t backlog);
/* EAGAIN: none waits. */
RDDP_API struct rddp_stream *rddp_stream_accept(struct rddp_stream_net *net);
/* From an address behind the device; port 0: any. EADDRINUSE, EINVAL, ENOMEM, EMFILE (too many streams). */
RDDP_API struct rddp_stream *rddp_stream_connect(struct rddp_stream_net *net, const struct sockaddr *from,
                                                 const struct sockaddr *to);

enum rddp_stream_state {
    RDDP_STREAM_CONNECTING,
    RDDP_STREAM_OPEN,  /* octets pass, at least one way */
    RDDP_STREAM_ENDED, /* both sides have finished, and all was acknowledged */
};

/* The state, or why it failed: -ECONNREFUSED, -ECONNRESET, -ETIMEDOUT, -ECONNABORTED. */
RDDP_API int rddp_stream_state(const struct rddp_stream *stream);
RDDP_API bool rddp_stream_has_option(const struct rddp_stream *stream); /* both sides offered it */

/* Frees the stream. What was not acknowledged is lost: a reset tells the peer, unless the stream has ended. */
RDDP_API void rddp_stream_close(struct rddp_stream *stream);

/* --- writing ------------------------------------------------------------------------------------------------- */

enum rddp_stream_flag {
    RDDP_STREAM_MESSAGE = 1 << 0, /* a message of the protocol above begins here (the option's A) */
};

/* These octets are part of a transfer. All of a transfer's have the same rid and, where it is known, the same total. */
struct rddp_stream_mark {
    uint64_t rid;           /* 46 bits */
    uint32_t buffer_offset; /* of the first of them */
    uint32_t total;
    bool has_total;   /* the transfer's length is known */
    bool unsolicited; /* the reader has not asked for it (U) */
};

/* Appends to the stream. The octets stay the caller's, and as they are, until rddp_stream_unacked() has fallen to less
 * than what was written after them. `mark` NULL: of no transfer. -EAGAIN: too many pieces wait (1024); -EPIPE: finished
 * or failed; -EINVAL. */
RDDP_API int rddp_stream_write(struct rddp_stream *stream, const void *octets, size_t length, unsigned flags,
                               const struct rddp_stream_mark *mark);
/* Nothing follows. -EPIPE: it has failed, or has ended. */
RDDP_API int rddp_stream_finish(struct rddp_stream *stream);
/* Octets that were written and are not known to have arrived. */
RDDP_API uint64_t rddp_stream_unacked(const struct rddp_stream *stream);

/* --- reading ------------------------------------------------------------------------------------------------- */

/* Octets of the transfer `rid` go to this buffer, from now until it is taken back: of this stream alone. -EEXIST,
 * -EINVAL, -ENOSPC: too many (1024). */
RDDP_API int rddp_stream_expect(struct rddp_stream *stream, uint64_t rid, void *buffer, size_t length);
/* When it returns nothing more is written to the buffer. -ENOENT. */
RDDP_API int rddp_stream_forget(struct rddp_stream *stream, uint64_t rid);
/* A buffer for a transfer that nobody expects, if it is marked as unsolicited and not longer. The stream has as many as
 * were given and not taken: no peer can claim more. The record of the first octets says the RID; rddp_stream_forget()
 * ends its use. -ENOSPC: too many (64). */
RDDP_API int rddp_stream_offer(struct rddp_stream *stream, void *buffer, size_t length);

enum rddp_stream_kind {
    RDDP_STREAM_PLAIN,  /* the octets were copied to where the call said */
    RDDP_STREAM_PLACED, /* they lie in a buffer */
    RDDP_STREAM_FINISH, /* the peer has finished; nothing follows */
};

struct rddp_stream_record {
    enum rddp_stream_kind kind;
    size_t length;
    uint64_t position; /* of the first octet in the stream */
    uint64_t rid;      /* PLACED: of this transfer */
    void *at;          /* PLACED: here */
    uint64_t buffer_offset;
};

/* The next part of the stream, in its order: at most `room` plain octets to `to`, or a placed part, whatever its
 * length. 1, or 0: nothing more is there yet. -EINVAL: plain octets are next, and there is no `room`; or, when all that
 * came before it has been read, the stream's error: -ECONNREFUSED, -ECONNRESET, -ETIMEDOUT, -ECONNABORTED. */
RDDP_API int rddp_stream_read(struct rddp_stream *stream, void *to, size_t room, struct rddp_stream_record *record);

struct rddp_stream_counters {
    uint64_t octets_in, octets_placed, octets_placed_early; /* early: before something in front of them */
    uint64_t kept_max;                                      /* octets that waited for the reader or a hole, at most */
    uint64_t options_bad, options_unknown, options_outside,
        options_total; /* wrong; no such RID; past the buffer; another total */
    uint64_t unsolicited_refused;
    uint64_t segments_in, segments_out, sent_again, timeouts;
};

RDDP_API void rddp_stream_count(const struct rddp_stream *stream, struct rddp_stream_counters *counters);

#ifdef __cplusplus
}
#endif

#endif

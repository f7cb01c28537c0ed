/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rddp/stream.h - a TCP stream of which marked parts land in the reader's buffers at once, in whatever order they come.
 *
 * The writer says which octets belong to a transfer. The TCP RDMA option (draft-csapuntz-tcprdma-00) carries that
 * beside each segment; the stream is the same with and without it. The reader names buffers by the transfers'
 * identifiers (RIDs) and gets records in the order of the stream: which octets lie where, and the octets that belong to
 * no transfer. If the peer does not know the option, if nobody named the RID, or if the option is wrong, the octets are
 * read as from any stream; none is lost.
 *
 * The option shows the place of data to whoever sees the packets. TLS above it does not protect it; IPsec does.
 *
 * The TCP is the library's own, behind a TUN device with addresses of its own. Whoever may make such a device (root, or
 * anybody in `unshare -Urn`) may use it. A net and its streams belong to one thread at a time. Calls return 0 (or a
 * count) or a negative errno; calls that make an object return it, or NULL and set errno. Only rddp_stream_progress()
 * waits. */
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
    const char *device;              /* the TUN device's name; NULL: the kernel chooses */
    const struct sockaddr *neighbor; /* the kernel's own address on it, IPv4 or IPv6; NULL: it is configured already */
    uint32_t prefix;                 /* bits of that address that all addresses behind the device share */
    uint32_t mtu;                    /* 1280 to 65535, default 1500 */
    uint32_t window;                 /* octets that a stream keeps for its reader: 4096 to 1 GiB, default 1 MiB */
    uint32_t streams;                /* streams at once, default 1024 */
    bool no_option;                  /* never offer the option */
    uint8_t option_kind;             /* default 25; 253 and 254 are reserved for experiments (RFC 6994) */
    bool checksums;                  /* compute and verify them here; otherwise the device does */
    uint32_t lose,
        lose_seed; /* for tests: lose this many of 100,000 packets each way, the same ones for the same seed */
};

RDDP_API void rddp_stream_net_attr_init(struct rddp_stream_net_attr *attr);

/* EPERM, EACCES: no device may be made here; EBUSY: another program has it; EINVAL; ENOENT: no TUN driver; ENOMEM;
 * EMFILE; EAGAIN: no random number available. */
RDDP_API struct rddp_stream_net *rddp_stream_net_open(const struct rddp_stream_net_attr *attr);
RDDP_API int rddp_stream_net_close(struct rddp_stream_net *net); /* -EBUSY: a stream is left */

/* A descriptor that is readable while rddp_stream_progress() has something to do. Do nothing else with it. */
RDDP_API int rddp_stream_net_fd(const struct rddp_stream_net *net);
/* Takes and sends packets; waits up to `timeout_ms` for the first (0: does not wait, -1: waits without limit). Returns
 * 0 or -EINTR. */
RDDP_API int rddp_stream_progress(struct rddp_stream_net *net, int timeout_ms);

/* --- connections --------------------------------------------------------------------------------------------- */

/* Takes connections to this port, at every address behind the device, up to `backlog` that are not accepted.
 * -EADDRINUSE, -ENOSPC: it listens on 16 ports already, -EINVAL. */
RDDP_API int rddp_stream_listen(struct rddp_stream_net *net, uint16_t port, uint32_t backlog);
/* Takes the oldest connection that is not accepted. EAGAIN: there is none. */
RDDP_API struct rddp_stream *rddp_stream_accept(struct rddp_stream_net *net);
/* Connects from an address behind the device; port 0: any free port. EADDRINUSE, EINVAL, ENOMEM, EMFILE (too many
 * streams). */
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

/* Frees the stream. What was not acknowledged is lost; unless the stream has ended a reset tells the peer. */
RDDP_API void rddp_stream_close(struct rddp_stream *stream);

/* --- writing ------------------------------------------------------------------------------------------------- */

enum rddp_stream_flag {
    RDDP_STREAM_MESSAGE = 1 << 0, /* a message of the protocol above begins here (the option's A) */
};

/* The transfer that octets are part of. All octets of a transfer have the same rid and, where it is known, the same
 * total. */
struct rddp_stream_mark {
    uint64_t rid;           /* 46 bits */
    uint32_t buffer_offset; /* of the first of them */
    uint32_t total;
    bool has_total;   /* the transfer's length is known */
    bool unsolicited; /* the reader has not asked for it (U) */
};

/* Appends octets to the stream. They stay the caller's, unchanged, until rddp_stream_unacked() has fallen below what
 * was written after them. `mark` NULL: of no transfer. -EAGAIN: 1024 pieces wait already; -EPIPE: finished or failed;
 * -EINVAL. */
RDDP_API int rddp_stream_write(struct rddp_stream *stream, const void *octets, size_t length, unsigned flags,
                               const struct rddp_stream_mark *mark);
/* Ends what is written: nothing follows. -EPIPE: the stream has failed or ended. */
RDDP_API int rddp_stream_finish(struct rddp_stream *stream);
/* Returns the number of octets that were written and are not known to have arrived. */
RDDP_API uint64_t rddp_stream_unacked(const struct rddp_stream *stream);

/* --- reading ------------------------------------------------------------------------------------------------- */

/* Places octets of the transfer `rid` of this stream in this buffer, until rddp_stream_forget(). -EEXIST: the RID has a
 * buffer; -EINVAL; -ENOSPC: 1024 buffers are named. */
RDDP_API int rddp_stream_expect(struct rddp_stream *stream, uint64_t rid, void *buffer, size_t length);
/* Takes the buffer back; when this returns nothing more is written to it. -ENOENT: the RID has no buffer. */
RDDP_API int rddp_stream_forget(struct rddp_stream *stream, uint64_t rid);
/* Gives a buffer for a transfer that nobody expects, if it is marked as unsolicited and not longer than the buffer. A
 * peer can take no more buffers than were offered. The record of the first octets says the RID; rddp_stream_forget()
 * ends the use of the buffer. -EINVAL; -ENOSPC: 64 are offered already. */
RDDP_API int rddp_stream_offer(struct rddp_stream *stream, void *buffer, size_t length);

enum rddp_stream_kind {
    RDDP_STREAM_PLAIN,  /* the octets were copied to `to` */
    RDDP_STREAM_PLACED, /* the octets lie in a buffer */
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

/* Takes the next part of the stream, in order: up to `capacity` plain octets, copied to `to`, or a placed part of any
 * length. Returns 1, or 0 if nothing more has arrived. -EINVAL: plain octets are next and `capacity` is 0; or the error
 * of the stream, when all that came before it has been read: -ECONNREFUSED, -ECONNRESET, -ETIMEDOUT, -ECONNABORTED. */
RDDP_API int rddp_stream_read(struct rddp_stream *stream, void *to, size_t capacity, struct rddp_stream_record *record);

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

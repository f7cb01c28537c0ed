/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfsd.c - a whole NFS server on a directory: calls with genuine, stale and forged handles by any user, over TCP and
 * RDMA, with chunk lists that may lie. Nothing outside of the export changes, and no memory is in use at the end. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tests/sim/rpc_provider.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "fuzz/lib/input.h"
#include "nfs/server/nfsd_in.h"
#include "rpc/clock.h"
#include "rpc/rpcrdma.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length);

enum { HANDLES = 8, OFFERS = 256, PEERS = 2, MESSAGE_MAX = 16384, DATA = 9000, FDS = 16, STEPS = 64 };

static const char secret[] = "not to be seen, not to be changed\n";
static char top[64];
static struct input in;
static struct nfsd *d;
static struct nfs_server server;
static struct export export;
static struct nfs3_fh fh[HANDLES];
static int tcp[PEERS];
static uint8_t message[MESSAGE_MAX], data[DATA], drain[65536];
static char longest[256];
static struct offer {
    uint32_t number; /* number of the queue pair */
    bool to_read;
    struct rpcrdma_segment segment;
} offer[OFFERS];
static unsigned offers;

/* --- the directory ----------------------------------------------------------------------------------------------- */

/* A path in the directory; valid until the next call. */
static const char *at(const char *name)
{
    static char path[128];

    snprintf(path, sizeof(path), "%s/%s", top, name);
    return path;
}

/* A call may have taken every right from a directory, which keeps all but root out of it. */
static int open_up(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)ftw;
    if ((type != FTW_D && type != FTW_DNR) || chmod(path, 0755))
        return 0;
    return type == FTW_DNR ? nftw(path, open_up, FDS, FTW_PHYS) : 0;
}

static int take_away(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type;
    if (ftw->level && remove(path))
        fprintf(stderr, "nfsd: %s: %s\n", path, strerror(errno));
    return 0;
}

static void empty_directory(void)
{
    nftw(top, open_up, FDS, FTW_PHYS);
    nftw(top, take_away, FDS, FTW_DEPTH | FTW_PHYS);
}

static void clean_up(void)
{
    empty_directory();
    rmdir(top);
}

static void make_file(const char *name, const char *text)
{
    int fd = open(at(name), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);

    assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static void make_directory(void)
{
    if (!*top) {
        /* Prefer a place that never waits for a disk. */
        strcpy(top, access("/dev/shm", W_OK) == 0 ? "/dev/shm/rddp-fuzz-nfsd.XXXXXX" : "/tmp/rddp-fuzz-nfsd.XXXXXX");
        assert(mkdtemp(top) && atexit(clean_up) == 0);
        memset(longest, 'n', sizeof(longest) - 1);
    }
    empty_directory();
    assert(chmod(top, 0755) == 0 && mkdir(at("in"), 0777) == 0 && chmod(at("in"), 0777) == 0);
    assert(mkdir(at("in/d"), 0777) == 0);
    make_file("secret", secret);
    make_file("in/f", "some data");
    make_file("in/d/g", "other data");
    make_file("in/gone", "");
    assert(symlink("../secret", at("in/l")) == 0 && symlink("..", at("in/d/up")) == 0);
}

static void check_secret(void)
{
    char text[sizeof(secret)] = "";
    struct stat st;
    int fd = open(at("secret"), O_RDONLY | O_CLOEXEC);

    assert(fd >= 0 && read(fd, text, sizeof(text)) == (ssize_t)strlen(secret) && !strcmp(text, secret));
    assert(fstat(fd, &st) == 0 && (st.st_mode & 07777) == 0644 && st.st_nlink == 1 && st.st_uid == geteuid());
    close(fd);
}

static void learn(unsigned i, const struct nfs3_fh *dir, const char *name)
{
    struct object *object;
    struct stat st;

    assert(object_get(server.objects, dir, &object) == NFS3_OK);
    assert(object_name(server.objects, object, name, &fh[i], &st) == 0);
    object_put(server.objects, object);
}

/* The root, a directory, two files, two links, a removed file, and a forged handle. */
static void learn_handles(void)
{
    assert(object_root(server.objects, &export, &fh[0]) == 0);
    learn(1, &fh[0], "d");
    learn(2, &fh[0], "f");
    learn(3, &fh[1], "g");
    learn(4, &fh[0], "l");
    learn(5, &fh[1], "up");
    learn(6, &fh[0], "gone");
    assert(unlink(at("in/gone")) == 0);
    fh[7] = fh[2];
    fh[7].data[fh[7].length / 2] ^= 1;
}

/* --- peers over RDMA --------------------------------------------------------------------------------------------- */

static void note_offers(const struct rddp_qp *qp, const uint8_t *p, size_t n)
{
    struct rpcrdma h;

    if (rpcrdma_decode_call(&h, p, n) != RPCRDMA_ACCEPT)
        return;
    for (uint32_t i = 0; i < h.segments; i++)
        offer[offers++ % OFFERS] = (struct offer){qp->number, i < h.reads, h.segment[i]};
}

static void check_offered(const struct rddp_qp *qp, bool to_read, uint32_t handle, uint64_t offset, size_t n)
{
    for (unsigned i = 0; i < (offers < OFFERS ? offers : OFFERS); i++) {
        const struct rpcrdma_segment *s = &offer[i].segment;

        if (offer[i].number == qp->number && offer[i].to_read == to_read && s->handle == handle &&
            offset >= s->offset && offset - s->offset <= s->length && n <= s->length - (offset - s->offset))
            return;
    }
    assert(offers > OFFERS);
}

static bool peer_write(struct rddp_qp *qp, uint32_t handle, uint64_t offset, const uint8_t *p, size_t n)
{
    check_offered(qp, false, handle, offset, n);
    assert(n < sizeof(secret) || !memmem(p, n, secret, strlen(secret)));
    return handle != 0xdead;
}

static bool peer_read(struct rddp_qp *qp, uint32_t handle, uint64_t offset, uint8_t *p, size_t n)
{
    check_offered(qp, true, handle, offset, n);
    memset(p, input8(&in), n);
    return handle != 0xdead;
}

static void peer_message(struct rddp_qp *qp, const uint8_t *p, size_t n, uint32_t invalidated)
{
    struct rpcrdma h;

    (void)qp, (void)invalidated;
    assert(n <= 4096 && rpcrdma_decode_reply(&h, p, n) == RPCRDMA_ACCEPT && h.credit > 0);
}

/* --- calls ------------------------------------------------------------------------------------------------------- */

static struct nfs3_fh any_fh(void)
{
    uint8_t which = input8(&in);
    struct nfs3_fh h = fh[which % HANDLES];

    if (which & 0x80)
        h.data[input8(&in) % NFS3_FH_MAX] ^= input8(&in);
    if (which & 0x40)
        h.length = input8(&in) % (NFS3_FH_MAX + 1);
    return h;
}

static struct nfs3_text any_name(void)
{
    static const char *const name[] = {"f", "d", "g", "l", "up", ".", "..", "", "../secret", "new", "a/b", "in"};
    uint8_t which = input8(&in);
    const char *text = which & 0x40 ? longest : name[which % (sizeof(name) / sizeof(*name))];

    return (struct nfs3_text){text, (uint32_t)strlen(text) + (which >> 7)};
}

static struct nfs3_where any_where(void)
{
    struct nfs3_where where = {.dir = any_fh()};

    where.name = any_name();
    return where;
}

static uint64_t any_offset(void)
{
    uint8_t shift = input8(&in) % 64;

    return ((uint64_t)input8(&in) << shift) - (shift & 1);
}

static struct nfs3_sattr any_sattr(void)
{
    uint8_t what = input8(&in);
    struct nfs3_sattr a = {.set_mode = what & 1, .set_uid = what & 2, .set_gid = what & 4, .set_size = what & 8};

    a.mode = input16(&in);
    a.uid = what & 64 ? UINT32_MAX : 1000;
    a.gid = what & 128 ? UINT32_MAX : 1000;
    a.size = a.set_size ? any_offset() : 0;
    a.set_atime = what >> 4 & 1 ? NFS3_CLIENT_TIME : NFS3_DONT_CHANGE;
    a.set_mtime = what >> 5 & 1 ? NFS3_SERVER_TIME : NFS3_DONT_CHANGE;
    return a;
}

static void any_make(struct nfs3_make *make, enum nfs3_proc proc)
{
    make->where = any_where();
    make->how = (enum nfs3_createmode)(input8(&in) % 3);
    if (proc != NFS3_CREATE || make->how != NFS3_EXCLUSIVE)
        make->attr = any_sattr();
    make->target = any_name();
    make->type = (enum nfs3_type)(1 + input8(&in) % 7);
}

static void any_args(enum nfs3_proc proc, union nfs3_args *args)
{
    *args = (union nfs3_args){0};
    if (proc == NFS3_LOOKUP || proc == NFS3_REMOVE || proc == NFS3_RMDIR) {
        args->where = any_where();
    } else if (proc >= NFS3_CREATE && proc <= NFS3_MKNOD) {
        any_make(&args->make, proc);
    } else if (proc == NFS3_RENAME) {
        args->rename.from = any_where();
        args->rename.to = any_where();
    } else {
        args->fh = any_fh(); /* all members of the union begin with the handle */
    }
    if (proc == NFS3_SETATTR) {
        args->setattr.attr = any_sattr();
        args->setattr.guarded = input8(&in) & 1;
    } else if (proc == NFS3_ACCESS) {
        args->access.access = input8(&in);
    } else if (proc == NFS3_READ || proc == NFS3_COMMIT) {
        args->range.offset = any_offset();
        args->range.count = (uint32_t)any_offset();
    } else if (proc == NFS3_WRITE) {
        args->write.offset = any_offset();
        args->write.stable = (enum nfs3_stable)(input8(&in) % 3);
        args->write.data = data;
        args->write.count = args->write.length = input16(&in) % DATA;
    } else if (proc == NFS3_LINK) {
        args->link.to = any_where();
    } else if (proc == NFS3_READDIR || proc == NFS3_READDIRPLUS) {
        args->list.cookie = input8(&in);
        args->list.dircount = input16(&in);
        args->list.maxcount = input16(&in) * 4U;
    }
}

/* Builds a valid call, of which the caller may then change some octets. */
static size_t build(uint8_t *to, size_t space, bool reduce, struct stream_item *item)
{
    static const uint32_t user[] = {0, 1000, 65534, UINT32_MAX};
    static uint32_t xid = 1;
    uint8_t who = input8(&in), proc = input8(&in);
    struct rpc_call call = {.xid = xid += !(who & 0x80), .rpc_version = 2, .program = NFS_PROGRAM, .version = 3};
    union nfs3_args args;
    struct coder c;
    bool bad;

    call.procedure = proc % NFS3_PROCS;
    call.cred = (struct rpc_cred){.flavor = who & 0x40 ? RPC_AUTH_NONE : RPC_AUTH_SYS, .uid = user[who & 3]};
    call.cred.gid = user[who >> 2 & 3];
    call.cred.groups = who >> 4 & 3;
    call.cred.group[1] = 1000;
    coder_write(&c, to, space);
    c.reduce = reduce;
    rpc_code_call(&c, &call, &bad);
    if (proc & 0x80) {
        call.program = MOUNT_PROGRAM;
        coder_write(&c, to, space);
        call.procedure %= MOUNT3_PROCS;
        rpc_code_call(&c, &call, &bad);
        mount3_code_args(&c, (enum mount3_proc)call.procedure, &(struct nfs3_text){"/tmp/../tmp", 11});
    } else {
        any_args((enum nfs3_proc)call.procedure, &args);
        nfs3_code_args(&c, (enum nfs3_proc)call.procedure, &args);
    }
    *item = c.item;
    if (c.bad)
        return 0;
    for (uint8_t changes = input8(&in) % 32; changes > 28; changes--)
        to[input16(&in) % coder_length(&c)] ^= input8(&in);
    return coder_length(&c);
}

static struct rpcrdma_segment any_segment(uint32_t length)
{
    uint8_t what = input8(&in);

    if (what & 1)
        length += (uint32_t)input8(&in) - 128;
    return (struct rpcrdma_segment){what == 255 ? 0xdead : 7U + what, length, (uint64_t)what << 56};
}

static void call_by_rdma(void)
{
    struct rddp_qp *qp = provider.qp[input8(&in) % PEERS];
    uint8_t what = input8(&in);
    struct stream_item item = {0};
    struct rpcrdma_segment s;
    struct rpcrdma h;
    uint8_t call[3000];
    size_t n = build(call, sizeof(call), what & 1, &item), head;

    if (!n || !qp || qp->over)
        return;
    rpcrdma_init(&h, get32(call), what & 2 ? RDMA_NOMSG : RDMA_MSG);
    h.credit = 1;
    if (what & 2)
        rpcrdma_add_read(&h, 0, any_segment((uint32_t)n));
    if (item.length || what & 4)
        rpcrdma_add_read(&h, item.position + (what >> 6 & 1) * 4, any_segment(item.length));
    if (what & 8) {
        s = any_segment(65536);
        rpcrdma_add_write(&h, &s, 1);
    }
    if (what & 16) {
        s = any_segment(8192);
        rpcrdma_set_reply(&h, &s, 1);
    }
    head = rpcrdma_encode(&h, message, 4096);
    if (what & 2)
        n = 0;
    if (head + n > 4096)
        return;
    memcpy(message + head, call, n);
    if (what & 32)
        message[input16(&in) % (head + n)] ^= input8(&in);
    note_offers(qp, message, head + n);
    provider_deliver(qp, message, head + n, 0);
}

static void call_by_tcp(void)
{
    int peer = tcp[input8(&in) % PEERS];
    struct stream_item item;
    size_t n = build(message + RECORD_MARK, MESSAGE_MAX - RECORD_MARK, false, &item);
    uint8_t cut = input8(&in);

    record_mark(message, n + (cut == 255));
    if (n)
        (void)!send(peer, message, n + RECORD_MARK - (cut == 254), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* --- the server -------------------------------------------------------------------------------------------------- */

/* Runs the server's loop, like nfsd_run(), until no call is in work. */
static void turn(void)
{
    struct epoll_event event[32];

    do {
        int n = epoll_wait(d->epoll, event, 32, d->in_work ? 100 : 0);

        for (int i = 0; i < n; i++) {
            struct source *source = event[i].data.ptr;

            source->ready(d, source, event[i].events);
        }
        nfsrdma_run(d);
        nfstcp_turn(d);
    } while (d->in_work);
    identity_drop();
    for (int i = 0; i < PEERS; i++)
        while (recv(tcp[i], drain, sizeof(drain), MSG_DONTWAIT) > 0)
            assert(!memmem(drain, sizeof(drain), secret, strlen(secret)));
}

static void start(uint8_t how)
{
    static const uint8_t private_data[] = {0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 3};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct objects_attr objects;
    struct export_attr attr;
    struct nfsd_attr nfsd;
    char error[EXPORT_TEXT];

    export_attr_init(&attr);
    attr.squash = how & 1 ? SQUASH_NONE : SQUASH_ROOT;
    attr.read_only = how & 2;
    assert(export_open(&export, at("in"), &attr, error) == 0);
    server = (struct nfs_server){.export = &export, .exports = 1};
    objects_attr_init(&objects);
    objects.export = &export;
    objects.exports = 1;
    objects.kernel_handles = how & 4;
    server.objects = objects_open(&objects, error);
    nfsd_attr_init(&nfsd);
    nfsd.address = "127.0.0.1";
    nfsd.rdma_port = nfsd.tcp_port = 0;
    nfsd.mount_port = -1;
    nfsd.workers = 2;
    nfsd.credits = 4;
    nfsd.memory_max = how & 8 ? 1 << 20 : 64 << 20;
    nfsd.server = &server;
    d = nfsd_open(&nfsd, error);
    assert(server.objects && d);
    to.sin_port = htons((uint16_t)nfsd_tcp_port(d));
    for (int i = 0; i < PEERS; i++) {
        tcp[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        while (connect(tcp[i], (struct sockaddr *)&to, sizeof(to)))
            assert(errno == EINTR); /* by libFuzzer's alarm; the connection goes on */
        provider_tell(RDDP_EVENT_CONNECT_REQUEST, NULL, private_data, i ? sizeof(private_data) : 0);
    }
    turn();
}

static void stop(void)
{
    uint64_t until = clock_ms() + 5000;

    for (unsigned i = 0; i < PROVIDER_QPS; i++)
        if (provider.qp[i])
            provider_cut(provider.qp[i]);
    for (int i = 0; i < PEERS; i++)
        close(tcp[i]);
    while (!nfsrdma_is_quiet(d) || d->rdma.peers || d->tcp.conns || d->memory.budget.reserved) {
        assert(clock_ms() < until); /* the kernel may be late with the end of a connection */
        turn();
    }
    nfsd_close(d);
    objects_close(server.objects);
    export_close(&export);
    assert(provider.objects == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t length)
{
    memset(&provider, 0, sizeof(provider));
    provider.message = peer_message;
    provider.write = peer_write;
    provider.read = peer_read;
    offers = 0;
    in = (struct input){input, input + length};
    make_directory();
    start(input8(&in));
    learn_handles();
    for (int step = 0; input_left(&in) && step < STEPS; step++) {
        uint8_t what = input8(&in);

        if (what & 1)
            call_by_tcp();
        else
            call_by_rdma();
        if (what & 2)
            turn();
        for (unsigned i = 0; what & 4 && i < PEERS; i++)
            if (provider.qp[i])
                provider_run(provider.qp[i], what >> 4);
        if ((what & 0x88) == 0x88 && provider.qp[1])
            provider_cut(provider.qp[1]);
    }
    turn();
    stop();
    check_secret();
    return 0;
}

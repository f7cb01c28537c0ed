/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfsd_fake.h - a template to be included by a test program: the NFS server in its own thread, with procedures that
 * touch no file and can be made to wait; and callers over TCP and RDMA. */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "nfs/server/nfsd_in.h"
#include "rpc/requester.h"

enum { MESSAGE_MAX = (1 << 20) + 65536, WAIT_MS = 10000 };

/* --- procedures ------------------------------------------------------------------------------------------------ */

static struct fake {
    atomic_bool slow, hold; /* slow: everything is slow; hold: slow calls wait until this is false */
    atomic_uint held, done; /* calls waiting now; calls executed ever */
    atomic_bool stall;      /* NULL calls keep the server's own thread: the n-th until `released` is n */
    atomic_uint stalled, released;
    atomic_uint sum;      /* of the last WRITE's data */
    atomic_uint searches; /* first octet of the handles that need a search; 0: none */
    atomic_uint searched; /* calls that needed one, ever */
    atomic_bool views;    /* large READs over RDMA are views of zeros in memory */
    atomic_uint charged;  /* the most memory charged when a call was executed */
    atomic_bool silent;   /* the file system of the second export does not answer */
    atomic_uint waiting;  /* calls that wait for it */
} fake;

#include "tests/suite/lib/nfsd_fake_files.h"

static uint8_t octet(uint64_t i)
{
    return (uint8_t)((i * 2654435761U) >> 13);
}

static unsigned sum_of(const uint8_t *p, size_t n)
{
    unsigned sum = 1;

    for (size_t i = 0; i < n; i++)
        sum = sum * 31 + p[i];
    return sum;
}

size_t nfs_result_size(enum nfs3_proc proc, const union nfs3_args *args)
{
    if (proc == NFS3_READ)
        return args->range.count < NFS3_IO_MAX ? args->range.count : NFS3_IO_MAX;
    return proc == NFS3_READLINK ? NFS3_PATH_MAX : proc == NFS3_READDIR ? 65536 : 0;
}

bool nfs_is_slow(enum nfs3_proc proc, const union nfs3_args *args)
{
    (void)args;
    return fake.slow && proc != NFS3_NULL;
}

static void fake_read(const struct nfs_request *request)
{
    uint32_t n = request->args->range.count;

    n = n < request->capacity ? n : (uint32_t)request->capacity;
    for (uint32_t i = 0; i < n; i++)
        request->buffer[i] = octet(request->args->range.offset + i);
    request->result->read.count = n;
    request->result->read.data = request->buffer;
}

static struct nfsd *nfsd;

/* Returns false if there shall be no view. */
static bool fake_view(const struct nfs_request *request)
{
    int fd = fake.views ? memfd_create("view", MFD_CLOEXEC) : -1;

    if (fd < 0)
        return false;
    if (ftruncate(fd, NFS3_IO_MAX) == 0)
        *request->view = view_open(fd, NFS3_IO_MAX);
    close(fd);
    if (!*request->view)
        return false;
    if (nfsd->memory.budget.reserved > fake.charged)
        fake.charged = (unsigned)nfsd->memory.budget.reserved;
    request->result->attr = (struct nfs3_post_attr){true, {.type = NFS3_REG, .fileid = ++fake.done}};
    request->result->read.count = request->args->range.count;
    request->result->read.data = view_at(*request->view, 0);
    return true;
}

static void fake_list(const struct nfs_request *request)
{
    struct nfs3_entry entry = {.name = {"a name in a directory", 21}};
    struct xdr_out out = {.at = request->buffer, .left = request->args->list.maxcount};

    for (; nfs3_put_entry(&out, &entry, false); entry.cookie++)
        ;
    request->result->list.entries = request->buffer;
    request->result->list.length = (uint32_t)(request->args->list.maxcount - out.left);
}

bool nfs_serve(const struct nfs_request *request)
{
    struct nfs3_result *result = request->result;
    bool searches = fake.searches && request->args->fh.data[0] == fake.searches;

    if (searches && request->search) {
        *request->search = true;
        return false;
    }
    fake.searched += searches;
    if (fake.stall && request->proc == NFS3_NULL)
        for (unsigned n = ++fake.stalled; fake.released < n;)
            usleep(500);
    if (request->view && !request->buffer)
        return fake_view(request);
    if (request->proc != NFS3_NULL)
        fake_wait(nfs_export_of(request->server, request->proc, request->args));
    fake.held++;
    while (fake.hold && (searches || (fake.slow && !fake.searches && request->proc != NFS3_NULL)))
        usleep(500);
    fake.held--;
    result->attr = (struct nfs3_post_attr){true, {.type = NFS3_REG, .fileid = ++fake.done}};
    if (request->proc == NFS3_READ) {
        fake_read(request);
    } else if (request->proc == NFS3_WRITE) {
        fake.sum = sum_of(request->args->write.data, request->args->write.length);
        result->write.count = request->args->write.length;
    } else if (request->proc == NFS3_READLINK) {
        memset(request->buffer, 'l', 1000);
        result->target = (struct nfs3_text){(const char *)request->buffer, 1000};
    } else if (request->proc == NFS3_READDIR) {
        fake_list(request);
    } else if (request->proc == NFS3_REMOVE) {
        result->status = NFS3ERR_NOENT;
    }
    return true;
}

void mount_serve(struct nfs_server *server, const struct sockaddr *peer, const struct rpc_cred *cred,
                 const struct nfs3_text *path, struct mount3_result *result)
{
    (void)peer;
    fake_wait(mount_export_of(server, path));
    *result = (struct mount3_result){.fh = {4, {1, 2, 3, (uint8_t)path->length}}, .flavors = 1, .flavor = {1}};
    if (cred->uid == 13)
        result->status = MNT3ERR_ACCES;
}

/* --- the server ------------------------------------------------------------------------------------------------ */

static struct nfsd_attr attr;
static unsigned exports = 1;
static pthread_t server_thread;

static void *run_server(void *user)
{
    (void)user;
    assert_int_equal(nfsd_run(nfsd), 0);
    return NULL;
}

/* Starts the server with `attr`, which starts with its defaults. */
static void start(void)
{
    static const char *const clients[] = {"127.0.0.0/8", "fd77::1", NULL};
    static char path[] = "/srv";
    static struct nfs_server server = {.export = export, .exports = 1};
    char error[EXPORT_TEXT];

    export[0].path = path;
    export[0].attr.clients = clients;
    export[0].local = true;
    server.exports = exports;
    attr.server = &server;
    nfsd = nfsd_open(&attr, error);
    if (!nfsd)
        fail_msg("%s", error);
    assert_int_equal(pthread_create(&server_thread, NULL, run_server, NULL), 0);
}

static void finish_server(void)
{
    fake.hold = false;
    nfsd_stop(nfsd);
    pthread_join(server_thread, NULL);
    if (nfsd->rdma.peers == NULL && nfsd->tcp.conns == NULL)
        assert_int_equal(nfsd->memory.budget.reserved, 0);
    nfsd_close(nfsd);
    nfsd = NULL;
}

static int set_up(void **state)
{
    (void)state;
    nfsd_attr_init(&attr);
    attr.address = "127.0.0.1";
    attr.rdma_port = attr.tcp_port = attr.mount_port = 0;
    fake.slow = fake.hold = fake.views = false;
    fake.done = fake.charged = fake.searches = fake.searched = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (nfsd)
        finish_server();
    return 0;
}

#define eventually(condition) \
    do { \
        for (int i = 0; !(condition) && i < 5000; i++) \
            usleep(1000); \
        assert_true(condition); \
    } while (0)

/* --- messages -------------------------------------------------------------------------------------------------- */

static uint8_t message[MESSAGE_MAX], answer[MESSAGE_MAX];
static size_t message_length, answer_length;
static uint32_t xid = 1000;

static struct rpc_call header(uint32_t program, uint32_t version, uint32_t procedure)
{
    return (struct rpc_call){.xid = ++xid,
                             .rpc_version = 2,
                             .program = program,
                             .version = version,
                             .procedure = procedure,
                             .cred = {.flavor = RPC_AUTH_SYS, .uid = 7}};
}

/* Encodes a call. With `reduce` WRITE's data are omitted and *item describes them. */
static void build(enum nfs3_proc proc, const union nfs3_args *args, bool reduce, struct stream_item *item)
{
    struct rpc_call call = header(NFS_PROGRAM, 3, proc);
    union nfs3_args copy = *args;
    struct coder c;
    bool bad;

    coder_write(&c, message, sizeof(message));
    c.reduce = reduce;
    rpc_code_call(&c, &call, &bad);
    nfs3_code_args(&c, proc, &copy);
    assert_false(c.bad);
    message_length = coder_length(&c);
    if (item)
        *item = c.item;
}

/* Decodes the result in `answer`, whose reduced item is `came` octets at `data`. */
static void check_answer(enum nfs3_proc proc, struct nfs3_result *result, const void *data, uint32_t came)
{
    struct rpc_reply reply;
    struct coder c;

    coder_read(&c, answer, answer_length);
    rpc_code_reply(&c, &reply);
    assert_int_equal(reply.xid, xid);
    assert_int_equal(reply.result, RPC_SUCCESS);
    /* In every result the item comes last. */
    if (came)
        c.item = (struct stream_item){(uint32_t)answer_length, came, data};
    *result = (struct nfs3_result){0};
    nfs3_code_result(&c, proc, result);
    assert_false(c.bad);
}

/* --- a caller over TCP ----------------------------------------------------------------------------------------- */

static int tcp_connect(int port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct timeval timeout = {.tv_sec = WAIT_MS / 1000};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    return fd;
}

static void tcp_put(int fd, const void *from, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t sent = send(fd, (const uint8_t *)from + at, n - at, MSG_NOSIGNAL);

        assert_true(sent > 0);
        at += (size_t)sent;
    }
}

static void tcp_put_message(int fd)
{
    static uint8_t record[RECORD_MARK + MESSAGE_MAX];

    record_mark(record, message_length);
    memcpy(record + RECORD_MARK, message, message_length);
    tcp_put(fd, record, RECORD_MARK + message_length);
}

static void tcp_get_octets(int fd, uint8_t *to, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t got = recv(fd, to + at, n - at, 0);

        if (got <= 0)
            fail_msg("the connection ends: %s", got ? strerror(errno) : "closed");
        at += (size_t)got;
    }
}

static void tcp_get_answer(int fd)
{
    uint8_t mark[RECORD_MARK];

    tcp_get_octets(fd, mark, sizeof(mark));
    answer_length = (size_t)(mark[0] & 0x7f) << 24 | (size_t)mark[1] << 16 | (size_t)mark[2] << 8 | mark[3];
    assert_true(mark[0] & 0x80 && answer_length <= sizeof(answer));
    tcp_get_octets(fd, answer, answer_length);
}

static inline uint32_t answer_xid(void)
{
    return (uint32_t)answer[0] << 24 | (uint32_t)answer[1] << 16 | (uint32_t)answer[2] << 8 | answer[3];
}

static inline struct nfsd_stats stats_now(void)
{
    struct nfsd_stats stats;

    nfsd_stats(nfsd, &stats);
    return stats;
}

/* --- a caller over either transport ------------------------------------------------------------------------------ */

static struct caller {
    bool rdma;
    int fd;
    struct requester *requester;
} caller __attribute__((unused));

static inline void call_open(bool rdma)
{
    struct sockaddr_in addr = {.sin_family = AF_INET};
    struct requester_attr requester;

    caller = (struct caller){.rdma = rdma, .fd = -1};
    if (!rdma) {
        caller.fd = tcp_connect(nfsd_tcp_port(nfsd));
        return;
    }
    addr.sin_port = htons((uint16_t)nfsd_rdma_port(nfsd));
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    requester_attr_init(&requester);
    caller.requester = requester_open((struct sockaddr *)&addr, sizeof(addr), &requester, WAIT_MS);
    assert_non_null(caller.requester);
}

static inline void call_close(void)
{
    if (caller.rdma)
        requester_close(caller.requester);
    else
        close(caller.fd);
}

/* Sends `message` with `item` (NULL: none). Receives the reply, with up to `space` octets of its item at `data` (NULL:
 * all inline). */
static inline enum request_status exchange(const struct stream_item *item, void *data, uint32_t space, uint32_t *came)
{
    struct request q = {.call = message,
                        .call_length = message_length,
                        .reply = answer,
                        .reply_size = space ? 4096 : sizeof(answer),
                        .timeout_ms = WAIT_MS};
    enum request_status status;

    *came = 0;
    if (!caller.rdma) {
        assert_null(item);
        tcp_put_message(caller.fd);
        tcp_get_answer(caller.fd);
        return REQUEST_OK;
    }
    if (item && item->length) {
        q.arguments = 1;
        q.argument[0] = (struct request_item){
            .data = (void *)(uintptr_t)item->data, .position = item->position, .length = item->length};
    }
    if (space) {
        q.results = 1;
        q.result[0] = (struct request_item){.data = data, .length = space};
    }
    status = requester_run(caller.requester, &q);
    answer_length = q.reply_length;
    *came = q.result[0].used;
    return status;
}

static inline void plain_exchange(void)
{
    uint32_t came;

    assert_int_equal(exchange(NULL, NULL, 0, &came), REQUEST_OK);
}

static const union nfs3_args some_file __attribute__((unused)) = {.fh = {8, {1, 2, 3, 4, 5, 6, 7, 8}}};

/* Has the server closed the connection? */
static inline bool tcp_is_closed(int fd)
{
    uint8_t one;
    ssize_t n = recv(fd, &one, 1, 0);

    return n == 0 || (n < 0 && errno == ECONNRESET);
}

static inline void ask(int fd)
{
    build(NFS3_GETATTR, &some_file, false, NULL);
    tcp_put_message(fd);
}

static inline void is_served(int fd)
{
    struct nfs3_result result;

    ask(fd);
    tcp_get_answer(fd);
    check_answer(NFS3_GETATTR, &result, NULL, 0);
}

static inline void ask_to_read(int fd, uint32_t count)
{
    union nfs3_args args = {.range = {.fh = some_file.fh, .count = count}};

    build(NFS3_READ, &args, false, NULL);
    tcp_put_message(fd);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

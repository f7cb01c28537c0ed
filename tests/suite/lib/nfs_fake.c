/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_fake.c - an NFS server for tests of clients. */
#include "tests/suite/lib/nfs_fake.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nfs/rpcmsg.h"

enum { ROOT = FAKE_ROOT, FIRST = ROOT + 1, REPLY_SIZE = 256 << 10 };

uint8_t fake_octet(uint64_t at)
{
    return (uint8_t)((at * 2654435761u) >> 11);
}

bool fake_is_whole(const struct fake_file *file, uint64_t size)
{
    if (!file || file->size != size)
        return false;
    for (uint64_t i = 0; i < size; i++)
        if (file->data[i] != fake_octet(i))
            return false;
    return true;
}

struct fake_file *fake_add(struct fake *f, const char *name, size_t length, enum nfs3_type type)
{
    struct fake_file *file = &f->file[f->files++];

    assert_true(f->files < FAKE_FILES && length < sizeof(file->name));
    memset(file, 0, sizeof(*file));
    memcpy(file->name, name, length);
    file->length = (uint32_t)length;
    file->type = type;
    file->mode = 0644;
    file->mtime = (struct nfs3_time){1000000000, 5};
    return file;
}

struct fake_file *fake_add_file(struct fake *f, const char *name, uint64_t size)
{
    struct fake_file *file = fake_add(f, name, strlen(name), NFS3_REG);

    file->data = malloc(size + 1);
    assert_non_null(file->data);
    for (uint64_t i = 0; i < size; i++)
        file->data[i] = fake_octet(i);
    file->size = size;
    return file;
}

struct fake_file *fake_find(struct fake *f, const char *name)
{
    for (unsigned i = 0; i < f->files; i++)
        if (!f->file[i].removed && f->file[i].length == strlen(name) &&
            memcmp(f->file[i].name, name, strlen(name)) == 0)
            return &f->file[i];
    return NULL;
}

/* --- procedures ------------------------------------------------------------------------------------------------ */

struct nfs3_fh fake_handle(uint32_t id)
{
    struct nfs3_fh fh = {.length = 4};

    memcpy(fh.data, &id, 4);
    return fh;
}

static struct fake_file *file_of(struct fake *f, const struct nfs3_fh *fh)
{
    uint32_t id = 0;

    if (fh->length == 4)
        memcpy(&id, fh->data, 4);
    return id >= FIRST && id - FIRST < f->files ? &f->file[id - FIRST] : NULL;
}

static uint32_t id_of(const struct fake *f, const struct fake_file *file)
{
    return file ? (uint32_t)(file - f->file) + FIRST : ROOT;
}

static struct nfs3_post_attr attr_of(const struct fake *f, const struct fake_file *file)
{
    struct nfs3_post_attr post = {.present = true};

    post.attr.type = file ? file->type : NFS3_DIR;
    post.attr.mode = file ? file->mode : 0755;
    post.attr.nlink = 1;
    post.attr.size = !file ? 4096 : file->said_size ? file->said_size : file->size;
    post.attr.fileid = id_of(f, file);
    if (file)
        post.attr.mtime = file->mtime;
    return post;
}

static void lookup(struct fake *f, const struct nfs3_text *name, struct nfs3_result *result)
{
    for (unsigned i = 0; i < f->files; i++) {
        struct fake_file *file = &f->file[i];

        if (!file->removed && file->length == name->length && memcmp(file->name, name->at, name->length) == 0) {
            result->fh = fake_handle(i + FIRST);
            result->attr = attr_of(f, file);
            return;
        }
    }
    result->status = NFS3ERR_NOENT;
}

static void read_file(struct fake *f, const union nfs3_args *args, struct nfs3_result *result)
{
    const struct fake_file *file = file_of(f, &args->range.fh);
    uint64_t end = atomic_load(&f->lie) == LIE_EARLY_END ? file->size / 2 : file->size, left;
    uint32_t n = args->range.count;

    left = args->range.offset < end ? end - args->range.offset : 0;
    if (atomic_load(&f->lie) == LIE_SHORT && n > 1000)
        n = n / 2 + 1;
    n = left < n ? (uint32_t)left : n;
    if (atomic_load(&f->lie) == LIE_NO_OCTETS)
        n = 0;
    result->read.count = n;
    result->read.eof = args->range.offset + n >= end && atomic_load(&f->lie) != LIE_NO_OCTETS;
    result->read.data = file->data + (args->range.offset < file->size ? args->range.offset : 0);
}

/* Restarts the server: uncommitted data are lost, and the verifier changes. */
static void start_again(struct fake *f)
{
    for (unsigned i = 0; i < f->files; i++) {
        struct fake_file *file = &f->file[i];

        for (unsigned k = 0; k < atomic_load(&file->ranges); k++)
            memset(file->data + file->unstable[k].offset, 0xee, file->unstable[k].length);
        atomic_store(&file->ranges, 0);
    }
    f->verifier++;
}

static void write_file(struct fake *f, const union nfs3_args *args, struct nfs3_result *result)
{
    struct fake_file *file = file_of(f, &args->write.fh);
    uint32_t n = args->write.length;
    uint64_t end;

    if (atomic_load(&f->every_write) ||
        (atomic_load(&f->writes_to_live) && atomic_fetch_sub(&f->writes_to_live, 1) == 1))
        start_again(f);
    if (atomic_load(&f->lie) == LIE_SHORT && n > 1000)
        n = n / 2 + 1;
    if (atomic_load(&f->lie) == LIE_TAKES_NONE)
        n = 0;
    end = args->write.offset + n;
    if (!file || end > FAKE_DATA_MAX || atomic_load(&file->ranges) == FAKE_RANGES) {
        result->status = NFS3ERR_FBIG;
        return;
    }
    if (!file->data)
        file->data = calloc(1, FAKE_DATA_MAX);
    memcpy(file->data + args->write.offset, args->write.data, n);
    file->size = end > file->size ? end : file->size;
    if (args->write.stable == NFS3_UNSTABLE) {
        unsigned k = atomic_load(&file->ranges);

        file->unstable[k].offset = args->write.offset;
        file->unstable[k].length = n;
        atomic_store(&file->ranges, k + 1);
    }
    result->write.committed = args->write.stable;
    result->write.count = n + (atomic_load(&f->lie) == LIE_TAKES_MORE);
    memcpy(result->write.verifier, &f->verifier, NFS3_VERIFIER);
}

static void make(struct fake *f, const struct nfs3_make *args, struct nfs3_result *result)
{
    char name[NFS3_NAME_MAX + 1] = "";
    struct fake_file *file;

    memcpy(name, args->where.name.at, args->where.name.length);
    file = fake_find(f, name);
    if (!file)
        file = fake_add(f, name, strlen(name), NFS3_REG);
    result->made.present = atomic_load(&f->lie) != LIE_NO_HANDLE;
    result->made.fh = fake_handle(id_of(f, file));
    if (result->made.present)
        result->attr = attr_of(f, file);
}

static void list_endless(const union nfs3_args *args, struct nfs3_result *result, uint8_t *entries)
{
    struct xdr_out out = {.at = entries, .left = args->list.maxcount - 256};
    struct nfs3_entry entry = {.attr = {true, {.mode = 0755, .nlink = 1}}, .fh = {true, fake_handle(FAKE_ROOT)}};
    char name[32];

    for (entry.cookie = args->list.cookie + 1;; entry.cookie++) {
        entry.fileid = entry.cookie;
        entry.attr.attr.type = entry.cookie == 1 ? NFS3_DIR : NFS3_REG;
        snprintf(name, sizeof(name), "f%llu", (unsigned long long)entry.cookie);
        entry.name = (struct nfs3_text){name, (uint32_t)strlen(name)};
        if (!nfs3_put_entry(&out, &entry, true))
            break;
    }
    result->list.entries = entries;
    result->list.length = (uint32_t)(out.at - entries);
}

static void list(struct fake *f, const union nfs3_args *args, struct nfs3_result *result, uint8_t *entries)
{
    struct xdr_out out = {.at = entries, .left = args->list.maxcount - 256};
    uint64_t first = args->list.cookie;
    int lie = atomic_load(&f->lie);
    bool circle = lie == LIE_CIRCLE || lie == LIE_COOKIE_0 || lie == LIE_BAD_NAMES;

    if (lie == LIE_ENDLESS) {
        list_endless(args, result, entries);
        return;
    }
    if (circle)
        first = first % f->files;
    result->list.eof = !circle && lie != LIE_NO_NAMES;
    for (uint64_t i = first; i < f->files && lie != LIE_NO_NAMES; i++) {
        const struct fake_file *file = &f->file[i];
        struct nfs3_entry entry = {.fileid = i + FIRST, .name = {file->name, file->length}, .cookie = i + 1};

        if (file->removed)
            continue;
        if (lie == LIE_COOKIE_0)
            entry.cookie = 0;
        if (lie == LIE_BAD_NAMES)
            entry.name = (struct nfs3_text){"a/b", 3};
        if (lie != LIE_NO_ATTR) {
            entry.attr = attr_of(f, file);
            entry.fh = (struct nfs3_post_fh){true, fake_handle((uint32_t)i + FIRST)};
        }
        /* A few at a time, so that there are several replies. */
        if (i == first + 100 || !nfs3_put_entry(&out, &entry, true)) {
            result->list.eof = false;
            break;
        }
    }
    result->list.entries = entries;
    result->list.length = (uint32_t)(out.at - entries);
}

static void set_attr(struct fake *f, const union nfs3_args *args)
{
    struct fake_file *file = file_of(f, &args->setattr.fh);

    if (file && args->setattr.attr.set_mode)
        file->mode = args->setattr.attr.mode;
    if (file && args->setattr.attr.set_mtime == NFS3_CLIENT_TIME)
        file->mtime = args->setattr.attr.mtime;
}

static void remove_name(struct fake *f, const struct nfs3_text *name, struct nfs3_result *result)
{
    lookup(f, name, result);
    if (result->status == NFS3_OK)
        file_of(f, &result->fh)->removed = true; /* handles remain valid */
}

static void rename_file(struct fake *f, const union nfs3_args *args, struct nfs3_result *result)
{
    const struct nfs3_text *to = &args->rename.to.name;
    struct nfs3_result from = {0}, gone = {0};

    lookup(f, &args->rename.from.name, &from);
    result->status = from.status;
    if (from.status != NFS3_OK)
        return;
    remove_name(f, to, &gone);
    struct fake_file *file = file_of(f, &from.fh);
    memcpy(file->name, to->at, to->length);
    file->length = to->length;
}

static void serve(struct fake *f, enum nfs3_proc proc, const union nfs3_args *args, struct nfs3_result *result,
                  uint8_t *entries)
{
    struct fake_file *file = file_of(f, &args->fh);

    switch (proc) {
    case NFS3_GETATTR:
        result->attr = attr_of(f, file);
        break;
    case NFS3_SETATTR:
        set_attr(f, args);
        break;
    case NFS3_LOOKUP:
        lookup(f, &args->where.name, result);
        break;
    case NFS3_ACCESS:
        result->attr = attr_of(f, file);
        result->access = args->access.access;
        break;
    case NFS3_READLINK:
        result->target = (struct nfs3_text){file->target, (uint32_t)strlen(file->target)};
        break;
    case NFS3_READ:
        read_file(f, args, result);
        break;
    case NFS3_WRITE:
        write_file(f, args, result);
        break;
    case NFS3_CREATE:
        make(f, &args->make, result);
        break;
    case NFS3_COMMIT:
        if (file)
            atomic_store(&file->ranges, 0);
        if (atomic_load(&f->lie) == LIE_COMMIT)
            f->verifier++;
        memcpy(result->write.verifier, &f->verifier, NFS3_VERIFIER);
        break;
    case NFS3_REMOVE:
        remove_name(f, &args->where.name, result);
        break;
    case NFS3_RENAME:
        rename_file(f, args, result);
        break;
    case NFS3_READDIRPLUS:
        list(f, args, result, entries);
        break;
    case NFS3_FSINFO:
        result->fsinfo.rtmax = result->fsinfo.wtmax = FAKE_IO;
        break;
    default:
        result->status = NFS3ERR_NOTSUPP;
    }
}

/* --- calls ----------------------------------------------------------------------------------------------------- */

static bool one_of(atomic_uint *count)
{
    return atomic_load(count) && atomic_fetch_sub(count, 1) > 0;
}

static void answer(struct fake *f, struct responder_call *call, enum nfs3_proc proc, uint32_t xid,
                   struct nfs3_result *result)
{
    struct rpc_reply header = {.xid = xid};
    uint8_t *message = calloc(1, REPLY_SIZE);
    struct reply reply = {.payload = message};
    struct coder c;

    if (one_of(&f->refuse))
        header.result = (enum rpc_result)atomic_load(&f->refusal);
    coder_write(&c, message, REPLY_SIZE);
    rpc_code_reply(&c, &header);
    c.reduce = true;
    if (header.result == RPC_SUCCESS && atomic_load(&f->lie) != LIE_GARBAGE)
        nfs3_code_result(&c, proc, result);
    assert_false(c.bad);
    reply.length = coder_length(&c);
    if (proc == NFS3_READ && atomic_load(&f->lie) == LIE_COUNT) {
        message[reply.length - 1] ^= 64;
        message[reply.length - 9] ^= 64;
    }
    if (c.reduced) {
        reply.items = 1;
        reply.item[0] = c.item;
    }
    call_reply(call, &reply);
    free(message);
}

static void handle(void *user, struct responder_call *call)
{
    struct fake *f = user;
    struct nfs3_result result = {.status = NFS3_OK};
    union nfs3_args args = {0};
    uint8_t *entries = malloc(REPLY_SIZE);
    struct rpc_call header;
    bool bad_cred, cut;
    struct coder c;

    coder_read(&c, call->payload, call->length);
    rpc_code_call(&c, &header, &bad_cred);
    if (header.program == DIGEST_PROGRAM)
        header.procedure = NFS3_DIGEST;
    if (call->items)
        c.item = call->item[0];
    nfs3_code_args(&c, header.procedure, &args);
    assert_false(c.bad);
    atomic_fetch_add(&f->calls[header.procedure], 1);
    pthread_mutex_lock(&f->lock);
    cut = (!atomic_load(&f->cut_proc) || atomic_load(&f->cut_proc) == header.procedure) && one_of(&f->cut);
    f->restart |= cut;
    if (header.procedure == NFS3_RENAME && one_of(&f->forget_rename)) {
        serve(f, header.procedure, &args, &result, entries);
        f->restart = cut = true;
    }
    if (cut || one_of(&f->drop)) {
        call_drop(call);
    } else {
        if (one_of(&f->jukebox))
            result.status = NFS3ERR_JUKEBOX;
        else
            serve(f, header.procedure, &args, &result, entries);
        answer(f, call, header.procedure, header.xid, &result);
    }
    pthread_mutex_unlock(&f->lock);
    free(entries);
}

/* --- its threads ----------------------------------------------------------------------------------------------- */

static void listen_at(struct fake *f)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_storage got;
    struct responder_attr attr;

    addr.sin_port = htons((uint16_t)f->port);
    responder_attr_init(&attr);
    attr.handle = handle;
    attr.user = f;
    f->responder = responder_open((struct sockaddr *)&addr, sizeof(addr), &attr);
    assert_non_null(f->responder);
    assert_int_equal(responder_addr(f->responder, &got), 0);
    f->port = ntohs(((struct sockaddr_in *)&got)->sin_port);
}

static void *run(void *user)
{
    struct fake *f = user;

    while (!atomic_load(&f->stop)) {
        responder_run(f->responder, 5);
        if (!f->restart)
            continue;
        f->restart = false;
        responder_close(f->responder);
        pthread_mutex_lock(&f->lock);
        listen_at(f);
        pthread_mutex_unlock(&f->lock);
    }
    return NULL;
}

void fake_open(struct fake *f)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(addr);

    memset(f, 0, sizeof(*f));
    f->verifier = 77;
    pthread_mutex_init(&f->lock, NULL);
    f->file = calloc(FAKE_FILES, sizeof(*f->file));
    assert_non_null(f->file);
    f->mount_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(f->mount_fd, (struct sockaddr *)&addr, length), 0);
    assert_int_equal(listen(f->mount_fd, 8), 0);
    assert_int_equal(getsockname(f->mount_fd, (struct sockaddr *)&addr, &length), 0);
    f->mount_port = ntohs(addr.sin_port);
    listen_at(f);
    assert_int_equal(pthread_create(&f->thread, NULL, run, f), 0);
    assert_int_equal(pthread_create(&f->mount_thread, NULL, fake_run_mount, f), 0);
}

void fake_sync(struct fake *f)
{
    pthread_mutex_lock(&f->lock);
    pthread_mutex_unlock(&f->lock);
}

void fake_close(struct fake *f)
{
    atomic_store(&f->stop, true);
    pthread_join(f->thread, NULL);
    pthread_join(f->mount_thread, NULL);
    responder_close(f->responder);
    close(f->mount_fd);
    for (unsigned i = 0; i < f->files; i++)
        free(f->file[i].data);
    free(f->file);
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs_fake_mount.c - the MOUNT service of the fake NFS server. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "nfs/record.h"
#include "nfs/rpcmsg.h"
#include "tests/suite/lib/nfs_fake.h"

static void answer_mount(int fd, const uint8_t *message, size_t n)
{
    uint8_t buffer[1024];
    struct mount3_result result = {
        .status = MNT3_OK, .fh = fake_handle(FAKE_ROOT), .flavors = 1, .flavor = {RPC_AUTH_SYS}};
    struct nfs3_text path, export = {"/fake", 5};
    struct rpc_reply header = {0};
    struct rpc_call call;
    bool bad_cred, no = false;
    uint32_t groups = 0;
    struct coder in, out;

    coder_read(&in, message, n);
    rpc_code_call(&in, &call, &bad_cred);
    mount3_code_args(&in, call.procedure, &path);
    header.xid = call.xid;
    coder_write(&out, buffer + RECORD_MARK, sizeof(buffer) - RECORD_MARK);
    rpc_code_reply(&out, &header);
    if (call.procedure == MOUNT3_MNT) {
        result.status = path.length == 5 && memcmp(path.at, "/fake", 5) == 0 ? MNT3_OK : MNT3ERR_NOENT;
        mount3_code_mnt(&out, &result);
    } else if (call.procedure == MOUNT3_EXPORT) {
        mount3_code_export(&out, &export, NULL, &groups, 0);
        code_bool(&out, &no);
    }
    record_mark(buffer, coder_length(&out));
    if (write(fd, buffer, RECORD_MARK + coder_length(&out)) < 0)
        return;
}

static void serve_mount(int fd)
{
    struct timeval patience = {.tv_sec = 2};
    struct record_rx rx;
    uint8_t chunk[512];
    size_t eaten, length;

    /* A silent client must not block the others. */
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    record_init(&rx, 65536);
    for (ssize_t n; (n = read(fd, chunk, sizeof(chunk))) > 0;) {
        if (record_eat(&rx, chunk, (size_t)n, &eaten) == 1) {
            uint8_t *message = record_take(&rx, &length);

            answer_mount(fd, message, length);
            free(message);
        }
    }
    record_fini(&rx);
    close(fd);
}

void *fake_run_mount(void *user)
{
    struct fake *f = user;
    struct pollfd p = {.fd = f->mount_fd, .events = POLLIN};

    while (!atomic_load(&f->stop))
        if (poll(&p, 1, 20) > 0)
            serve_mount(accept4(f->mount_fd, NULL, NULL, SOCK_CLOEXEC));
    return NULL;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* serve_fs.c - serves FSSTAT, FSINFO and PATHCONF. */
#include <errno.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "nfs/server/serve_in.h"

enum { IO_MULTIPLE = 4096, DIR_PREFERRED = 65536 };

static uint64_t serve_fs_octets(uint64_t blocks, uint64_t size)
{
    return size && blocks > UINT64_MAX / size ? UINT64_MAX : blocks * size;
}

enum nfs3_status serve_fsstat(struct serve_call *c)
{
    struct nfs3_result *result = c->result;
    struct statvfs fs;
    uint64_t size;

    if (fstatvfs(c->object->fd, &fs))
        return nfs3_status_of(errno);
    size = fs.f_frsize ? fs.f_frsize : fs.f_bsize;
    result->fsstat.total_bytes = serve_fs_octets(fs.f_blocks, size);
    result->fsstat.free_bytes = serve_fs_octets(fs.f_bfree, size);
    result->fsstat.available_bytes = serve_fs_octets(fs.f_bavail, size);
    result->fsstat.total_files = fs.f_files;
    result->fsstat.free_files = fs.f_ffree;
    result->fsstat.available_files = fs.f_favail;
    return NFS3_OK;
}

enum nfs3_status serve_fsinfo(struct serve_call *c)
{
    struct nfs3_result *result = c->result;

    result->fsinfo.rtmax = result->fsinfo.rtpref = NFS3_IO_MAX;
    result->fsinfo.wtmax = result->fsinfo.wtpref = NFS3_IO_MAX;
    result->fsinfo.rtmult = result->fsinfo.wtmult = IO_MULTIPLE;
    result->fsinfo.dtpref = DIR_PREFERRED;
    result->fsinfo.maxfilesize = INT64_MAX;
    result->fsinfo.time_delta = (struct nfs3_time){0, 1};
    result->fsinfo.properties = NFS3_FSF_LINK | NFS3_FSF_SYMLINK | NFS3_FSF_HOMOGENEOUS | NFS3_FSF_CANSETTIME;
    return NFS3_OK;
}

enum nfs3_status serve_pathconf(struct serve_call *c)
{
    struct nfs3_result *result = c->result;
    long links = fpathconf(c->object->fd, _PC_LINK_MAX), name = fpathconf(c->object->fd, _PC_NAME_MAX);

    result->pathconf.linkmax = links > 0 && links < UINT32_MAX ? (uint32_t)links : UINT32_MAX;
    result->pathconf.name_max = name > 0 && name < NFS3_NAME_MAX ? (uint32_t)name : NFS3_NAME_MAX;
    result->pathconf.no_trunc = true;
    result->pathconf.chown_restricted = true;
    result->pathconf.case_insensitive = false;
    result->pathconf.case_preserving = true;
    return NFS3_OK;
}

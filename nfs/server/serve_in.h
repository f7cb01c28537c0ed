/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* serve_in.h - a call as the files of serve.h see it: its objects are found and its caller is assumed before a
 * procedure begins, and what is known of attributes is added when it has ended. */
#ifndef RDDP_NFS_SERVER_SERVE_IN_H
#define RDDP_NFS_SERVER_SERVE_IN_H

#include "nfs/server/serve.h"

struct serve_call {
    const struct nfs_request *request;
    const union nfs3_args *args;
    struct nfs3_result *result;
    struct objects *objects;
    struct identity who;
    struct object *object; /* of the first handle */
    struct object *to;     /* RENAME, LINK: of the second one, a directory */
    bool later;            /* it would wait, and must not; or has to be looked for */
};

/* --- procedures ------------------------------------------------------------------------------------------------- */

enum nfs3_status serve_getattr(struct serve_call *c);
enum nfs3_status serve_setattr(struct serve_call *c);
enum nfs3_status serve_access(struct serve_call *c);
enum nfs3_status serve_lookup(struct serve_call *c);
enum nfs3_status serve_readlink(struct serve_call *c);
enum nfs3_status serve_read(struct serve_call *c);
enum nfs3_status serve_write(struct serve_call *c);
enum nfs3_status serve_create(struct serve_call *c);
enum nfs3_status serve_mkdir(struct serve_call *c);
enum nfs3_status serve_symlink(struct serve_call *c);
enum nfs3_status serve_mknod(struct serve_call *c);
enum nfs3_status serve_remove(struct serve_call *c);
enum nfs3_status serve_rmdir(struct serve_call *c);
enum nfs3_status serve_rename(struct serve_call *c);
enum nfs3_status serve_link(struct serve_call *c);
enum nfs3_status serve_readdir(struct serve_call *c);
enum nfs3_status serve_fsstat(struct serve_call *c);
enum nfs3_status serve_fsinfo(struct serve_call *c);
enum nfs3_status serve_pathconf(struct serve_call *c);
enum nfs3_status serve_commit(struct serve_call *c);

/* --- attributes: serve_attr.c ----------------------------------------------------------------------------------- */

void attr_of(const struct export *e, const struct stat *st, struct nfs3_attr *attr);
void attr_post(const struct object *object, struct nfs3_post_attr *post);
void attr_before(const struct object *object, struct nfs3_wcc *wcc);

/* Values that no object of this type can have. */
enum nfs3_status sattr_check(const struct nfs3_sattr *attr, mode_t type);
/* All but the size, of what `fd` (O_PATH will do) is, with the rights of the thread. */
enum nfs3_status sattr_apply(int fd, mode_t type, const struct nfs3_sattr *attr);
/* The size of a regular file. */
enum nfs3_status sattr_resize(struct serve_call *c, struct object *object, uint64_t size);

/* The owner may go on with a file that he has open, whatever its mode says by now (RFC 1813 4.4): 0 or -errno. */
int call_may(const struct serve_call *c, const struct object *object, int want);

/* --- stable storage: serve_sync.c ------------------------------------------------------------------------------- */

/* What was written to the file is on the disk, with `data` alone or all that the file system knows of it. -errno: some
 * of it may be lost, and the write verifier has changed. */
int sync_file(struct nfs_server *server, const struct object *object, int fd, bool data);
/* The names and the attributes of a directory. As the server, which the thread is afterwards. 0 or -errno. */
int sync_dir(const struct object *dir);
void sync_verifier(struct nfs_server *server, uint8_t verifier[NFS3_VERIFIER]);

/* --- names: serve_name.c ---------------------------------------------------------------------------------------- */

/* A name as the system wants it (RFC 1813 3.2): neither empty nor with octets that no name has (NFS3ERR_ACCES), and not
 * longer than names are. */
enum nfs3_status name_of(const struct nfs3_text *text, char name[NFS3_NAME_MAX + 1]);
/* "." or "..". */
bool name_is_dots(const char *name);

enum { SELF_PATH = 32 };
/* The way to an open descriptor by a path, which calls without AT_EMPTY_PATH need. */
void self_path(char path[SELF_PATH], int fd);

#endif

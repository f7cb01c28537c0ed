/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* serve_in.h - the state of a call, for the files of serve.h. Before a procedure begins, its objects are found and the
 * caller's identity is assumed; after it has ended, the attributes are added. */
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
    struct object *to;     /* RENAME, LINK: of the second handle, a directory */
    bool later;            /* the call would wait although it must not, or needs a search */
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
enum nfs3_status serve_digest(struct serve_call *c);

/* --- attributes: serve_attr.c ----------------------------------------------------------------------------------- */

void attr_of(const struct export *e, const struct stat *st, struct nfs3_attr *attr);
void attr_post(const struct object *object, struct nfs3_post_attr *post);
void attr_before(const struct object *object, struct nfs3_wcc *wcc);

/* Refuses values that no object of this type can have. */
enum nfs3_status sattr_check(const struct nfs3_sattr *attr, mode_t type);
/* Sets all attributes but the size of `fd` (which may be O_PATH), with the rights of the thread. */
enum nfs3_status sattr_apply(int fd, mode_t type, const struct nfs3_sattr *attr);
/* Sets the size of a regular file. */
enum nfs3_status sattr_resize(struct serve_call *c, struct object *object, uint64_t size);

/* Whether the caller may use the object as `want` says. The owner always may, since he may have opened the file before
 * its mode was changed (RFC 1813 4.4). Returns 0 or a negative errno; -EAGAIN and sets `later` if it would have to wait
 * although it must not. */
int call_may(struct serve_call *c, struct object *object, int want);
/* The object, a regular file, open to be read. Returns a descriptor that is the object's, or a negative errno as
 * call_may(). */
int call_open_to_read(struct serve_call *c);

/* --- stable storage: serve_sync.c ------------------------------------------------------------------------------- */

/* Syncs a file: with `data` only its data, else all its attributes too. Returns 0; or a negative errno if some data may
 * be lost, and changes the write verifier. */
int sync_file(const struct object *object, int fd, bool data);
/* Syncs the names and the attributes of a directory. The thread has the server's identity afterwards. Returns 0 or a
 * negative errno. */
int sync_dir(const struct object *dir);
/* The verifier of WRITE and COMMIT: it changes when data of this export did not reach the disk. */
void sync_verifier(const struct nfs_server *server, const struct object *object, uint8_t verifier[NFS3_VERIFIER]);

/* --- names: serve_path.c ---------------------------------------------------------------------------------------- */

/* Copies a name for the kernel and checks it (RFC 1813 3.2): it must not be empty, contain a slash or NUL
 * (NFS3ERR_ACCES), or be too long. */
enum nfs3_status name_of(const struct nfs3_text *text, char name[NFS3_NAME_MAX + 1]);
/* Whether the name is "." or "..". */
bool name_is_dots(const char *name);

enum { SELF_PATH = 32 };
/* Writes the /proc path of an open descriptor, for calls without AT_EMPTY_PATH. */
void self_path(char path[SELF_PATH], int fd);

#endif

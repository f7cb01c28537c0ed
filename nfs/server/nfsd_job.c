/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfsd_job.c - the steps of a call: decodes and checks it, executes it, and encodes the reply. nfsd_begin.c decides
 * where and when. */
#include <stdlib.h>
#include <string.h>

#include "nfs/server/nfsd_in.h"

bool job_is_nfs(const struct nfsd_job *job)
{
    return job->call.program == NFS_PROGRAM;
}

enum nfs3_proc job_proc(const struct nfsd_job *job)
{
    return (enum nfs3_proc)job->call.procedure;
}

/* --- checking the call ----------------------------------------------------------------------------------------- */

static const struct program {
    uint32_t number, version, procedures;
} programs[] = {
    {MOUNT_PROGRAM, 3, MOUNT3_PROCS},
    {NFS_PROGRAM, NFS_VERSION, NFS3_STANDARD},
    {DIGEST_PROGRAM, DIGEST_VERSION, DIGEST_PROCS},
};

/* NULL: there is no such program, or not here. */
static const struct program *program_of(const struct nfsd_job *job)
{
    for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++)
        if (programs[i].number == job->call.program)
            return i && job->mount_only ? NULL : &programs[i];
    return NULL;
}

/* Checks program, version, procedure and credential, in the order in which RFC 5531 9 lists its answers. */
static struct rpc_reply nfsd_job_judge(const struct nfsd_job *job, bool bad_cred)
{
    const struct rpc_call *call = &job->call;
    const struct program *program = program_of(job);
    struct rpc_reply reply = {.xid = call->xid, .result = RPC_SUCCESS};

    if (call->rpc_version != 2) {
        reply.result = RPC_MISMATCH;
        reply.low = reply.high = 2;
    } else if (bad_cred) {
        reply.result = RPC_AUTH_ERROR;
        reply.auth_status = RPC_AUTH_BADCRED;
    } else if (call->cred.flavor != RPC_AUTH_NONE && call->cred.flavor != RPC_AUTH_SYS) {
        reply.result = RPC_AUTH_ERROR;
        reply.auth_status = RPC_AUTH_TOOWEAK;
    } else if (!program) {
        reply.result = RPC_PROG_UNAVAIL;
    } else if (call->version != program->version) {
        reply.result = RPC_PROG_MISMATCH;
        reply.low = reply.high = program->version;
    } else if (call->procedure >= program->procedures) {
        reply.result = RPC_PROC_UNAVAIL;
    } else if (job->is_unadmitted && call->program != MOUNT_PROGRAM && call->procedure != NFS3_NULL) {
        reply.result = RPC_AUTH_ERROR;
        reply.auth_status = RPC_AUTH_TOOWEAK;
    }
    return reply;
}

/* Decodes the arguments. Returns false if a Read chunk is not at the position of an eligible item (RFC 8166 6.1, RFC
 * 8267 4.1). */
static bool decode_args(struct nfsd_job *job, struct coder *c)
{
    if (job->items > 1)
        return false;
    if (job->items)
        c->item = job->item[0];
    if (job_is_nfs(job))
        nfs3_code_args(c, job_proc(job), &job->args);
    else
        mount3_code_args(c, (enum mount3_proc)job->call.procedure, &job->path);
    if (c->bad && job->items && !c->reduced)
        return false;
    if (c->bad)
        job->reply.result = RPC_GARBAGE_ARGS;
    return true;
}

enum said job_decode(struct nfsd_job *job)
{
    struct coder c;
    bool bad_cred;

    coder_read(&c, job->message, job->length);
    rpc_code_call(&c, &job->call, &bad_cred);
    if (c.bad)
        return SAID_NOTHING;
    if (job->items && job->item[0].position < c.position)
        return SAID_BAD_CHUNK;
    job->reply = nfsd_job_judge(job, bad_cred);
    if (job->reply.result == RPC_SUCCESS && job->call.program == DIGEST_PROGRAM) {
        job->call.program = NFS_PROGRAM; /* from here on it is one procedure more */
        job->call.procedure = job->call.procedure ? NFS3_DIGEST : NFS3_NULL;
    }
    if (job->reply.result == RPC_SUCCESS && !decode_args(job, &c))
        return SAID_BAD_CHUNK;
    return SAID_CALL;
}

/* --- its work -------------------------------------------------------------------------------------------------- */

static bool serve_nfs(struct nfsd_job *job, bool now, bool search)
{
    struct nfs_request request = {.server = job->nfsd->attr.server,
                                  .peer = (const struct sockaddr *)&job->peer,
                                  .cred = &job->call.cred,
                                  .proc = job_proc(job),
                                  .args = &job->args,
                                  .buffer = job->buffer,
                                  .capacity = job->capacity,
                                  .now = now,
                                  .cached = now && job->export && !job->export->export->in_memory,
                                  .view = now && job->views ? &job->view : NULL,
                                  .search = search ? NULL : &job->search,
                                  .result = &job->result};

    return nfs_serve(&request);
}

bool job_serve(struct nfsd_job *job, bool now, bool search)
{
    if (job_is_nfs(job))
        return serve_nfs(job, now, search);
    if (job->call.procedure == MOUNT3_MNT)
        mount_serve(job->nfsd->attr.server, (const struct sockaddr *)&job->peer, &job->call.cred, &job->path,
                    &job->mount);
    return true;
}

void job_run(struct nfsd_job *job, bool search)
{
    job_serve(job, false, search);
}

void job_give(struct nfsd_job *job, struct workers *workers, void (*run)(struct work *), void (*done)(struct work *))
{
    job->work.run = run;
    job->work.done = done;
    job->nfsd->in_work++;
    if (workers_give(workers, &job->work))
        return;
    job->nfsd->in_work--;
    job->reply.result = RPC_SYSTEM_ERR;
    job->search = false;
    done(&job->work);
}

bool job_is_once_only(const struct nfsd_job *job)
{
    static const uint32_t procs = 1U << NFS3_SETATTR | 1U << NFS3_WRITE | 1U << NFS3_CREATE | 1U << NFS3_MKDIR |
                                  1U << NFS3_SYMLINK | 1U << NFS3_MKNOD | 1U << NFS3_REMOVE | 1U << NFS3_RMDIR |
                                  1U << NFS3_RENAME | 1U << NFS3_LINK;

    return job->reply.result == RPC_SUCCESS && job_is_nfs(job) && procs >> job->call.procedure & 1;
}

void job_end(struct nfsd_job *job)
{
    struct memory *memory = &job->nfsd->memory;

    view_put(job->view);
    if (job->buffer)
        memory_give_back(memory, job->buffer, job->capacity);
    if (job->head != job->small)
        free(job->head);
    if (job->charge)
        memory_release(memory, job);
    job->owner->jobs--;
}

/* --- the reply ------------------------------------------------------------------------------------------------- */

static struct nfs3_text text_of(const char *text)
{
    size_t n = strlen(text);

    return (struct nfs3_text){text, (uint32_t)(n < MOUNT_NAME_MAX ? n : MOUNT_NAME_MAX)};
}

static struct nfs3_text nfsd_job_path_of(const struct export *e)
{
    return (struct nfs3_text){e->path, (uint32_t)strlen(e->path)};
}

static size_t exports_max(const struct nfs_server *server)
{
    size_t n = 0;

    for (unsigned i = 0; i < server->exports; i++) {
        const char *const *client = server->export[i].attr.clients;

        n += 16 + nfsd_job_path_of(&server->export[i]).length;
        for (; client && *client; client++)
            n += 12 + text_of(*client).length;
    }
    return n;
}

static void code_exports(struct coder *c, const struct nfs_server *server)
{
    bool no = false;

    for (unsigned i = 0; i < server->exports; i++) {
        const char *const *client = server->export[i].attr.clients;
        struct nfs3_text path = nfsd_job_path_of(&server->export[i]), *group;
        uint32_t groups = 0;

        while (client && client[groups])
            groups++;
        group = calloc(groups + 1, sizeof(*group));
        for (uint32_t k = 0; group && k < groups; k++)
            group[k] = text_of(client[k]);
        groups = group ? groups : 0;
        mount3_code_export(c, &path, group, &groups, groups);
        free(group);
    }
    code_bool(c, &no);
}

/* Encodes the result of a call that was executed. */
static void code_result(struct nfsd_job *job, struct coder *c)
{
    bool no = false;

    if (job_is_nfs(job))
        nfs3_code_result(c, job_proc(job), &job->result);
    else if (job->call.procedure == MOUNT3_MNT)
        mount3_code_mnt(c, &job->mount);
    else if (job->call.procedure == MOUNT3_EXPORT)
        code_exports(c, job->nfsd->attr.server);
    else if (job->call.procedure == MOUNT3_DUMP)
        code_bool(c, &no); /* the server keeps no list of mounts */
}

/* The octets that the reply takes at most, without the data that are left out. */
static size_t head_space(const struct nfsd_job *job)
{
    size_t space = NFSD_HEAD;

    if (job->reply.result != RPC_SUCCESS)
        return space;
    if (job_is_nfs(job) && (job->call.procedure == NFS3_READDIR || job->call.procedure == NFS3_READDIRPLUS))
        space += job->result.status == NFS3_OK ? job->result.list.length : 0;
    else if (!job_is_nfs(job) && job->call.procedure == MOUNT3_EXPORT)
        space += exports_max(job->nfsd->attr.server);
    return space;
}

static bool nfsd_job_encode(struct nfsd_job *job, size_t capacity)
{
    struct coder c;

    coder_write(&c, job->head, capacity);
    c.reduce = true;
    rpc_code_reply(&c, &job->reply);
    if (job->reply.result == RPC_SUCCESS)
        code_result(job, &c);
    job->head_length = coder_length(&c);
    job->datas = c.reduced;
    job->data = c.item;
    return !c.bad;
}

static void nfsd_job_count(const struct nfsd_job *job)
{
    struct counters *counters = &job->nfsd->counters;

    if (job->reply.result != RPC_SUCCESS)
        atomic_fetch_add(&counters->errors, 1);
    else if (job_is_nfs(job) && job->result.status == NFS3_OK && job->call.procedure == NFS3_READ)
        atomic_fetch_add(&counters->read_octets, job->result.read.count);
    else if (job_is_nfs(job) && job->result.status == NFS3_OK && job->call.procedure == NFS3_WRITE)
        atomic_fetch_add(&counters->written_octets, job->result.write.count);
}

void job_finish(struct nfsd_job *job)
{
    size_t space = head_space(job);

    job->head = space <= NFSD_HEAD ? job->small : malloc(space);
    if (!job->head || !nfsd_job_encode(job, space)) {
        if (job->head != job->small)
            free(job->head);
        job->head = job->small;
        job->reply = (struct rpc_reply){.xid = job->call.xid, .result = RPC_SYSTEM_ERR};
        nfsd_job_encode(job, NFSD_HEAD);
    }
    nfsd_job_count(job);
    job->ops->answer(job);
}

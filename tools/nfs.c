/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nfs.c - `rddp nfs`: lists, gets and puts files of an NFS version 3 server over RDMA, without a mount. */
#include <string.h>

#include "nfs/command/nfs.h"

#define AT(field) offsetof(struct nfs_options, field)

static const struct opt opts[] = {
    {'l', "long", NULL, "ls: print mode, links, owner, group, size and time, too", OPT_FLAG, AT(detail), 0, 0},
    {'a', "all", NULL, "ls: include names that begin with a dot", OPT_FLAG, AT(all), 0, 0},
    {'H', "human", NULL, "ls, df: print sizes as 1.5M", OPT_FLAG, AT(human), 0, 0},
    {'r', "recursive", NULL, "cp, rm, ls (-R): include directories and their contents", OPT_FLAG, AT(recursive), 0, 0},
    {'R', "recurse", NULL, NULL, OPT_FLAG, AT(recursive), 0, 0},
    {0, "parents", NULL, "mkdir: create parents, and accept an existing directory", OPT_FLAG, AT(parents), 0, 0},
    {'f', "force", NULL, "rm: ignore names that do not exist", OPT_FLAG, AT(force), 0, 0},
    {'p', "port", "PORT", "connect to this port for NFS (default 20049; with --packet 2049)", OPT_U64, AT(port), 1,
     65535},
    {0, "mount-port", "PORT", "connect to this port for MOUNT (default: ask rpcbind, or 20048)", OPT_U64,
     AT(mount_port), 1, 65535},
    {0, "credits", "N", "keep up to N calls outstanding (default 64)", OPT_U32, AT(credits), 1, 1024},
    {0, "depth", "N", "keep up to N large READs or WRITEs outstanding (default 8)", OPT_U32, AT(depth), 1,
     NFS_DEPTH_MAX},
    {0, "uid", "N", "call as this user (default: ours)", OPT_U32, AT(uid), 0, UINT32_MAX - 1},
    {0, "gid", "N", "call as this group, and in no other group", OPT_U32, AT(gid), 0, UINT32_MAX - 1},
    {0, "sync", NULL, "get, cp: fsync each file before renaming it to its name", OPT_FLAG, AT(sync), 0, 0},
    {'q', "quiet", NULL, "print failures only", OPT_FLAG, AT(quiet), 0, 0},
    {0, "json", NULL, "get, put, cp: print the summary as one JSON object", OPT_FLAG, AT(json), 0, 0},
    {0},
};

static const struct verb {
    const char *name;
    int (*run)(const struct nfs_options *options, int argc, char **argv);
    int min, max; /* number of arguments */
} verbs[] = {
    {"ls", nfs_ls, 1, 1000}, {"cat", nfs_cat, 1, 1000},      {"get", nfs_get, 1, 2},        {"put", nfs_put, 2, 2},
    {"cp", nfs_cp, 2, 2},    {"rm", nfs_rm, 1, 1000},        {"mkdir", nfs_mkdir, 1, 1000}, {"stat", nfs_stat, 1, 1000},
    {"df", nfs_df, 1, 1000}, {"exports", nfs_exports, 1, 1},
};

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        if (!strcmp(verbs[i].name, name))
            return &verbs[i];
    }
    usage_error("'%s' is not one of ls, cat, get, put, cp, rm, mkdir, stat, df, exports", name);
}

static int nfs_run(const struct command *command, int argc, char **argv)
{
    struct nfs_options options = {.credits = 64, .depth = 8, .uid = NFS_ID_NONE, .gid = NFS_ID_NONE};
    rddp_wire_attr_init(&options.wire);
    int first = opt_parse(command, argc, argv, &options, &options.wire);
    if (first == argc)
        usage_error("expected ls, cat, get, put, cp, rm, mkdir, stat, df or exports");
    const struct verb *verb = find_verb(argv[first++]);
    int words = argc - first;
    if (words < verb->min || words > verb->max)
        usage_error("%s: %s", verb->name, words < verb->min ? "expected another name" : "too many names");
    catch_signals();
    return verb->run(&options, words, argv + first);
}

const struct command nfs_command = {
    .name = "nfs",
    .summary = "list, get and put files of an NFS server, by RDMA, without a mount",
    .usage = "[options] ls|stat|df|cat|rm|mkdir HOST:/PATH...\n[options] get HOST:/PATH [LOCAL]\n"
             "[options] put LOCAL HOST:/PATH\n[options] cp [-r] SRC DST\n[options] exports HOST",
    .text = "Speaks NFS version 3 over RPC-over-RDMA to any server, Linux's included. In cp one of SRC and DST is "
            "HOST:/PATH.\nMode and modification time are kept. Symbolic links on the way to PATH are followed inside "
            "of the export.",
    .opts = opts,
    .wire = true,
    .packet = true,
    .run = nfs_run,
};

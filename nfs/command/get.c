/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* get.c - `rddp nfs get`, `put` and `cp`: choose the direction, run the copy and report it. */
#include "nfs/command/nfs_copy.h"

static int transfer(const struct nfs_options *options, const char *source, const char *destination)
{
    struct nfs_report report = {
        .options = options, .source = source, .destination = destination, .pull = is_remote(source)};
    struct nfs_session s;
    if (is_remote(source) == is_remote(destination))
        usage_error("expected one of SRC and DST to be HOST:/PATH (write ./NAME for a local name with a colon)");
    int code = nfs_session_open(&s, options, report.pull ? source : destination);
    if (!code) {
        nfs_report_start(&report);
        code = report.pull ? pull_run(&s, &report, destination) : push_run(&s, &report, source);
        report.placed = nfs_client_placed(s.client);
        nfs_report_end(&report, code);
    }
    nfs_session_close(&s);
    return code;
}

int nfs_cp(const struct nfs_options *options, int argc, char **argv)
{
    (void)argc;
    return transfer(options, argv[0], argv[1]);
}

int nfs_get(const struct nfs_options *options, int argc, char **argv)
{
    if (!is_remote(argv[0]))
        usage_error("'%s' is not HOST:/PATH", argv[0]);
    return transfer(options, argv[0], argc > 1 ? argv[1] : ".");
}

int nfs_put(const struct nfs_options *options, int argc, char **argv)
{
    (void)argc;
    if (!is_remote(argv[1]))
        usage_error("'%s' is not HOST:/PATH", argv[1]);
    return transfer(options, argv[0], argv[1]);
}

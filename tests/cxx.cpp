/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cxx.cpp - the header is C++11 too, and what it declares is found by the linker. */
#include <rddp/rddp.h>

int main()
{
    rddp_context_attr quiet;
    rddp_context_attr_init(&quiet);
    quiet.log_level = RDDP_LOG_NONE;
    rddp_context *context = rddp_open(&quiet);
    if (!context)
        return 1;

    rddp_pd *pd = rddp_alloc_pd(context);
    char memory[64];
    rddp_mr *mr = rddp_reg_mr(pd, memory, sizeof(memory), RDDP_ACCESS_LOCAL_WRITE | RDDP_ACCESS_REMOTE_WRITE);
    rddp_sge sge = {rddp_mr_offset(mr, memory), sizeof(memory), rddp_mr_key(mr)};
    rddp_send_wr wr = rddp_send_wr();
    wr.sg_list = &sge;
    wr.opcode = RDDP_WR_RDMA_WRITE;
    wr.send_flags = RDDP_SEND_SIGNALED | RDDP_SEND_FENCE;
    bool ok = wr.sg_list->lkey != 0 && rddp_mr_is_valid(mr);

    ok = rddp_close(context) < 0 && ok; /* a domain is left in it */
    ok = rddp_dereg_mr(mr) == 0 && ok;
    ok = rddp_dealloc_pd(pd) == 0 && ok;
    return rddp_close(context) == 0 && ok ? 0 : 1;
}

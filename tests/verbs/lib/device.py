# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""device.py - python3-pyverbs opens the device that RDDP_DEVICE names, asks it for all it has, and registers memory."""
import os

from pyverbs import device
from pyverbs.cq import CQ
from pyverbs.mr import MR
from pyverbs.pd import PD

LOCAL_WRITE = 1  # the module that names it is another one since rdma-core 65

names = [d.name.decode() for d in device.get_device_list()]
assert names == [os.environ["RDDP_DEVICE"]], names
with device.Context(name=names[0]) as context:
    attributes = context.query_device()
    assert attributes.phys_port_cnt == 1 and attributes.max_sge >= 4
    assert context.query_port(1).state == 4
    assert any(context.query_gid(1, 0).gid.replace(":", ""))
    with PD(context) as pd, CQ(context, 16), MR(pd, 4096, LOCAL_WRITE) as mr:
        mr.write("rddp", 4)
        assert mr.read(4, 0) == b"rddp" and mr.lkey
print(names[0] + ": opened, asked, one region")

// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// sum.cc - sum RANK SIZE FOLDER DEVICE: SIZE processes add up vectors by Gloo's collectives over its transport for verbs,
// and check every sum.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier_all_to_one.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

// An algorithm of Gloo 0.5 that is destroyed before its last Write is complete ends the program: they are kept.
static std::vector<std::shared_ptr<gloo::Algorithm>> kept;

template <class Allreduce> static bool adds_up(const std::shared_ptr<gloo::Context> &context, int count)
{
    auto &data = *new std::vector<float>(count);
    int size = context->size;

    for (int i = 0; i < count; i++)
        data[i] = context->rank + i % 7;
    kept.push_back(std::make_shared<Allreduce>(context, std::vector<float *>{data.data()}, count));
    kept.back()->run();
    for (int i = 0; i < count; i++)
        if (data[i] != size * (i % 7) + size * (size - 1) / 2)
            return false;
    return true;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    gloo::transport::ibverbs::attr attr;
    attr.name = argv[4];
    attr.port = 1;
    attr.index = 0;
    auto device = gloo::transport::ibverbs::CreateDevice(attr);
    gloo::rendezvous::FileStore store(argv[3]);
    auto context = std::make_shared<gloo::rendezvous::Context>(atoi(argv[1]), atoi(argv[2]));
    bool right = true;

    context->connectFullMesh(store, device);
    for (int count : {1, 1000, 1000000})
        right = right && adds_up<gloo::AllreduceRingChunked<float>>(context, count) &&
                adds_up<gloo::AllreduceHalvingDoubling<float>>(context, count);
    kept.push_back(std::make_shared<gloo::BarrierAllToOne>(context));
    kept.back()->run();
    printf("rank %s: %s\n", argv[1], right ? "every sum is right" : "a sum is wrong");
    fflush(stdout);
    sleep(1); // the last Write of another rank may be under way
    _exit(!right);
}

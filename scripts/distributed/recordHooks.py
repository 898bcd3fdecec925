"""Records what PyTorch's DistributedDataParallel computes with PowerSGD, with wrapped hooks, with static_graph, and with
batch norm's buffers under no_sync and join, on 2 and 4 processes (gloo, CPU):
test/goldens/distributed/ddp_hooks_w2.json and _w4.json. Run from the root of the repository:

    python3 scripts/distributed/recordHooks.py

Weights, inputs and the first Qs come from the hash of test/distributed/scenarios/data.mjs, so no file holds them.

Two things are mended for the recording. batched_powerSGD_hook gives its matrices two dimensions, where _orthogonalize
demands three. On the CPU, PyTorch 1.13 has no products of float16 matrices and adds up their norms in float16; both are
computed in float32 and rounded.
"""

import json
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, batched_powerSGD_hook, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

MASK = 0xFFFFFFFF
STEPS = 6


def scrambled(i, seed):
    x = (i + seed * 0x9E3779B9) & MASK
    x ^= x >> 16
    x = (x * 0x85EBCA6B) & MASK
    x ^= x >> 13
    x = (x * 0xC2B2AE35) & MASK
    x ^= x >> 16
    return x


def uniform(n, seed):
    return torch.tensor([scrambled(i, seed) / 4294967296 * 2 - 1 for i in range(n)], dtype=torch.float64).float()


def numbers(tensor):
    return None if tensor is None else [float(f"{value:.8g}") for value in tensor.detach().flatten().tolist()]


def mend():
    orthogonalize, bmm, norm = power._orthogonalize, torch.bmm, torch.norm

    def of_any_matrices(matrices, *rest):
        orthogonalize(matrices.unsqueeze(0) if matrices.dim() == 2 else matrices, *rest)

    def product_of_halves(a, b, *, out):
        return out.copy_(bmm(a.float(), b.float())) if a.dtype == torch.float16 else bmm(a, b, out=out)

    def norm_of_halves(a, dim, keepdim):
        return norm(a.float(), dim=dim, keepdim=keepdim).to(a.dtype)

    power._orthogonalize, torch.bmm, torch.norm = of_any_matrices, product_of_halves, norm_of_halves


class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(12, 16)
        self.a = nn.Linear(16, 16)
        self.b = nn.Linear(16, 16)
        self.unused = nn.Linear(3, 2)
        self.out = nn.Linear(16, 3)

    def forward(self, x):
        return self.out(torch.tanh(self.b(torch.tanh(self.a(torch.tanh(self.inp(x)))))))


def model(with_unused):
    module = Wide()
    if not with_unused:
        del module.unused
    with torch.no_grad():
        for k, parameter in enumerate(module.parameters()):
            parameter.copy_(uniform(parameter.numel(), k + 1).view(parameter.shape) / 4)
    return module


def train(rank, size, hook=None, state=None, preset=None, **options):
    ddp = DistributedDataParallel(model("static_graph" in options), **options)
    if hook is not None:
        ddp.register_comm_hook(state, hook)
    if preset is not None:
        p, q = preset
        state.p_memory_dict[0] = torch.zeros_like(p)
        state.q_memory_dict[0] = q.clone()
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.2)
    steps = []
    for step in range(STEPS):
        x = uniform(4 * 12, 100 + 10 * step + rank).view(4, 12)
        y = uniform(4 * 3, 500 + 10 * step + rank).view(4, 3)
        optimizer.zero_grad()
        ((ddp(x) - y) ** 2).mean().backward()
        if step in (2, STEPS - 1):
            steps.append([numbers(p.grad) for p in ddp.parameters()])
        optimizer.step()
    result = {"grads": steps, "final": [numbers(p) for p in ddp.parameters()]}
    if isinstance(state, PowerSGDState):
        result["stats"] = list(state.compression_stats())
    return result


def narrow(p, q, dtype=torch.float32):
    """Memories for so many elements, or of these shapes."""
    return torch.zeros(p, dtype=dtype), uniform(torch.zeros(q).numel(), 77).to(dtype).view(q)


# Hooks, options, and the narrow matrices: the weights of inp (16 x 12), a and b (16 x 16) are compressed, and with rank 1 that of out (3 x 16).
# The batched hook compresses all 803 elements as a matrix of 29 x 29.
WRAPPED = default_hooks.fp16_compress_wrapper(powerSGD_hook)
CASES = {
    "rank 1": (powerSGD_hook, dict(matrix_approximation_rank=1), narrow(51, 60)),
    "rank 2 without error feedback": (
        powerSGD_hook,
        dict(matrix_approximation_rank=2, use_error_feedback=False, orthogonalization_epsilon=1e-8),
        narrow(96, 88),
    ),
    "rank 3 in batches": (
        powerSGD_hook,
        dict(matrix_approximation_rank=3, min_compression_rate=1, batch_tensors_with_same_shape=True),
        narrow(144, 132),
    ),
    "fp16 wrapper of rank 1": (WRAPPED, dict(matrix_approximation_rank=1), narrow(51, 60, torch.float16)),
    "fp16 wrapper of rank 3 without error feedback": (
        WRAPPED,
        dict(matrix_approximation_rank=3, min_compression_rate=1, use_error_feedback=False),
        narrow(144, 132, torch.float16),
    ),
    "batched rank 1": (batched_powerSGD_hook, dict(matrix_approximation_rank=1), narrow((29, 1), (29, 1))),
    "batched rank 3 without error feedback": (
        batched_powerSGD_hook,
        dict(matrix_approximation_rank=3, use_error_feedback=False),
        narrow((29, 3), (29, 3)),
    ),
}


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(12, 6)
        self.bn = nn.BatchNorm1d(6)
        self.out = nn.Linear(6, 3)

    def forward(self, x):
        return self.out(torch.tanh(self.bn(self.inp(x))))


def accumulate(rank, size, steps, join):
    """Accumulates the gradients of two inputs for each step, the first of them under no_sync. Returns the running means after each forward."""
    module = Normed()
    with torch.no_grad():
        for k, parameter in enumerate(module.parameters()):
            parameter.copy_(uniform(parameter.numel(), k + 1).view(parameter.shape) / 4 + (1 if k == 2 else 0))
    ddp = DistributedDataParallel(module)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.2)
    means = []

    def backward(step):
        x = uniform(4 * 12, 100 + 10 * step + rank).view(4, 12)
        y = uniform(4 * 3, 500 + 10 * step + rank).view(4, 3)
        loss = ((ddp(x) - y) ** 2).mean()
        means.append(numbers(module.bn.running_mean))
        loss.backward()

    def loop():
        for step in range(steps):
            with ddp.no_sync():
                backward(2 * step)
            backward(2 * step + 1)
            optimizer.step()
            optimizer.zero_grad()

    if join is None:
        loop()
    else:
        with ddp.join(divide_by_initial_world_size=join):
            loop()
    return {"means": means, "state": [numbers(t.float()) for t in module.state_dict().values()]}


def on_each_rank(value, size):
    values = [None] * size
    dist.all_gather_object(values, value)
    return values


def run(rank, size, file, folder):
    torch.set_num_threads(1)
    mend()
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=size)
    result = {}
    for name, (hook, options, preset) in CASES.items():
        state = PowerSGDState(None, start_powerSGD_iter=2, **options)
        result[name] = train(rank, size, hook, state, preset)
    result["fp16 wrapper"] = train(rank, size, default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook))
    result["static graph"] = train(rank, size, static_graph=True)
    # The ranks have two steps each, or rank 0 the most.
    result["buffers"] = on_each_rank(accumulate(rank, size, 2, None), size)
    result["join"] = on_each_rank(accumulate(rank, size, size - rank, True), size)
    result["join of those left"] = on_each_rank(accumulate(rank, size, size - rank, False), size)
    if rank == 0:
        with open(os.path.join(folder, f"ddp_hooks_w{size}.json"), "w") as out:
            json.dump({"ranks": [result], "same_on_all_ranks": True, "world_size": size}, out, separators=(",", ":"))
            out.write("\n")


if __name__ == "__main__":
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../test/goldens/distributed")
    for size in (2, 4):
        with tempfile.TemporaryDirectory() as place:
            mp.spawn(run, (size, os.path.join(place, "store"), folder), nprocs=size)
    sys.exit(0)

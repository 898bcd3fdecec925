"""Records what PyTorch computes for the families of examples/families, and that it loads what tensorfx writes. Needs torch, torchvision and numpy.

    python3 record.py save                        writes test/goldens/families/NAME.pt and NAME.json
    node write.mjs FOLDER                         loads each .pt into the port, and writes FOLDER/NAME.safetensors and FOLDER/NAME.pt
    python3 record.py load FOLDER                 loads those into PyTorch's model, strictly; adds to NAME.json which bytes it was

NAME.json has the inputs, the outputs in eval mode, for each parameter two numbers of its gradient (see `summary`), the state dict's names, dtypes and shapes in their order, and versions.
"""
import hashlib
import json
import math
import sys
from pathlib import Path

import numpy as np
import torch
import torchvision

from transformers import Bert, Clip, GPT2, Llama, Mamba, T5, UNet, Whisper
from vision import vision

GOLDENS = Path(__file__).resolve().parents[2] / 'test' / 'goldens' / 'families'


def drawn(n, seed):
    """n numbers of [-1, 1), from integer arithmetic."""
    i = np.arange(n, dtype=np.uint64)
    x = ((i + np.uint64((seed * 0x9E3779B9) & 0xFFFFFFFF)) & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    with np.errstate(over='ignore'):
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
            x = (x ^ (x >> np.uint32(shift))) * np.uint32(factor)
        x ^= x >> np.uint32(16)
    return x.astype(np.float64) / 2**32 * 2 - 1


def floats(shape, seed):
    """Multiples of 1/64, whose decimals are short."""
    return torch.from_numpy((np.round(drawn(math.prod(shape), seed) * 64) / 64).astype(np.float32).reshape(shape))


def tokens(shape, seed, n):
    return torch.from_numpy(((drawn(math.prod(shape), seed) + 1) / 2 * n).astype(np.int64).reshape(shape))


def initialised(model):
    with torch.no_grad():
        for k, (name, t) in enumerate(model.state_dict().items(), 1):
            if not t.is_floating_point():
                if name.endswith('num_batches_tracked'):
                    t.fill_(3)
                continue
            u = drawn(t.numel(), k)
            if t.dim() >= 2:
                v = u / math.sqrt(t.numel() / t.shape[0]) * 1.5
            elif name.endswith('running_var') or name.split('.')[-1] in ('weight', 'D'):
                v = 1 + 0.1 * u
            else:
                v = 0.1 * u
            t.copy_(torch.from_numpy(v.astype(np.float32).reshape(tuple(t.shape))))
    return model.eval()


FAMILIES = {
    'gpt2': (GPT2, lambda: [tokens((2, 7), 1, 24)]),
    'llama': (Llama, lambda: [tokens((2, 7), 1, 24)]),
    'qwen2': (lambda: Llama(bias=True, tied=True), lambda: [tokens((2, 7), 1, 24)]),
    'mixtral': (lambda: Llama(moe=True), lambda: [tokens((2, 7), 1, 24)]),
    'bert': (Bert, lambda: [tokens((2, 6), 1, 24), tokens((2, 6), 2, 2), torch.tensor([[1, 1, 1, 1, 0, 0], [1] * 6])]),
    't5': (T5, lambda: [tokens((2, 9), 1, 24), tokens((2, 5), 2, 24)]),
    'whisper': (Whisper, lambda: [floats((2, 6, 16), 1), tokens((2, 5), 2, 20)]),
    'clip': (Clip, lambda: [tokens((3, 6), 1, 20), floats((2, 3, 16, 16), 2)]),
    'mamba': (Mamba, lambda: [tokens((2, 6), 1, 20)]),
    'unet': (UNet, lambda: [floats((2, 3, 8, 8), 1), torch.tensor([3, 250])]),
    **{name: (make, lambda size=16 if name in ('vit', 'swin') else 32: [floats((2, 3, size, size), 1)]) for name, make in vision.items()},
}


def stored(t):
    data = [float(f'{v:.9g}') for v in t.flatten().tolist()] if t.is_floating_point() else t.flatten().tolist()
    return {'dtype': str(t.dtype).replace('torch.', ''), 'shape': list(t.shape), 'data': data}


def summary(t):
    """The sum of absolute values, and the sum with the weights cos(0.7 i + 1) of element i."""
    flat = t.detach().double().flatten()
    return [float(f'{v:.9g}') for v in (flat.abs().sum().item(), (flat * torch.cos(0.7 * torch.arange(flat.numel()).double() + 1)).sum().item())]


def outputs_of(model, inputs):
    out = model(*inputs)
    return list(out) if isinstance(out, (tuple, list)) else [out]


def save(name):
    make, inputs = FAMILIES[name]
    model, inputs = initialised(make()), inputs()
    outputs = outputs_of(model, inputs)
    loss = sum((o * torch.cos(0.7 * torch.arange(o.numel()).view(o.shape) + k + 1)).sum() for k, o in enumerate(outputs))
    loss.backward()
    state = model.state_dict()
    torch.save(state, GOLDENS / f'{name}.pt')
    record = {
        'torch': torch.__version__,
        'torchvision': torchvision.__version__ if name in vision else None,
        'inputs': [stored(t) for t in inputs],
        'outputs': [stored(t.detach()) for t in outputs],
        'gradients': {key: summary(p.grad) for key, p in model.named_parameters() if p.grad is not None},
        'state': [[key, str(t.dtype).replace('torch.', ''), list(t.shape)] for key, t in state.items()],
    }
    write(name, record)


def write(name, record):
    (GOLDENS / f'{name}.json').write_text(json.dumps(record, separators=(',', ':')) + '\n')


DTYPES = {'F32': np.float32, 'I64': np.int64, 'BOOL': np.bool_, 'F64': np.float64, 'I32': np.int32}


def read_safetensors(file):
    data = file.read_bytes()
    size = int.from_bytes(data[:8], 'little')
    header = json.loads(data[8 : 8 + size])
    header.pop('__metadata__', None)
    part = lambda e: data[8 + size + e['data_offsets'][0] : 8 + size + e['data_offsets'][1]]
    return {key: torch.from_numpy(np.frombuffer(part(e), DTYPES[e['dtype']]).reshape(e['shape']).copy()) for key, e in header.items()}


def load(name, folder):
    make, _ = FAMILIES[name]
    record = json.loads((GOLDENS / f'{name}.json').read_text())
    wanted = torch.load(GOLDENS / f'{name}.pt')
    file = folder / f'{name}.safetensors'
    model = make()
    model.load_state_dict(read_safetensors(file))
    for key, t in model.state_dict().items():
        if not torch.equal(t, wanted[key]):
            raise SystemExit(f'{file}: {key} differs')
    record['loaded'] = hashlib.sha256(file.read_bytes()).hexdigest()
    write(name, record)


if __name__ == '__main__':
    torch.manual_seed(0)
    torch.backends.mkldnn.enabled = False  # the gradient of gelu after a convolution is garbage with it, in PyTorch 1.13
    GOLDENS.mkdir(parents=True, exist_ok=True)
    for family in FAMILIES:
        if sys.argv[1] == 'save':
            save(family)
        else:
            load(family, Path(sys.argv[2]))
        print(family)

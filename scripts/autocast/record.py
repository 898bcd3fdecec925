"""Records which operator runs in which dtype under PyTorch's autocast on the CPU, for models that test/goldens/around/autocast-models.json.gz lacks: a GPT with attention written out, and UNets.

    python3 record.py         writes test/goldens/autocast/models.json

Before, it records the GPT with fused attention and compares it with what PyTorch 2.13 recorded there, so that a difference of versions or of the recorder is seen.
"""
import gzip
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

GOLDENS = Path(__file__).resolve().parents[2] / 'test' / 'goldens'


def dtypes(x):
    if isinstance(x, torch.Tensor):
        return [str(x.dtype).removeprefix('torch.')]
    return [d for y in x for d in dtypes(y)] if isinstance(x, (list, tuple)) else []


class Recorder(TorchDispatchMode):
    """The operators that run below autocast: [operator, dtypes of inputs, dtypes of outputs]."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        self.calls.append([str(func), dtypes(args) + dtypes(list((kwargs or {}).values())), dtypes(out)])
        return out


class Layer(nn.Module):
    def __init__(self, fused):
        super().__init__()
        self.fused = fused
        self.ln1, self.qkv, self.out = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16)
        self.ln2, self.up, self.down = nn.LayerNorm(16), nn.Linear(16, 64), nn.Linear(64, 16)

    def attention(self, q, k, v):
        if self.fused:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        future = torch.ones(6, 6, dtype=torch.bool).tril().logical_not()
        return F.softmax((q @ k.transpose(2, 3) * 8**-0.5).masked_fill(future, -1e4), -1) @ v

    def forward(self, x):
        q, k, v = [y.view(2, 6, 2, 8).transpose(1, 2) for y in self.qkv(self.ln1(x)).split(16, 2)]
        y = x + self.out(self.attention(q, k, v).transpose(1, 2).reshape(2, 6, 16))
        return y + self.down(F.gelu(self.up(self.ln2(y))))


class Gpt(nn.Module):
    def __init__(self, fused):
        super().__init__()
        self.tokens, self.places = nn.Embedding(20, 16), nn.Embedding(6, 16)
        self.layers = nn.Sequential(Layer(fused), Layer(fused))
        self.ln, self.head = nn.LayerNorm(16), nn.Linear(16, 20, bias=False)

    def forward(self, ids):
        return self.head(self.ln(self.layers(self.tokens(ids) + self.places(torch.arange(6)))))


def grouped(a, b, **options):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1, **options), nn.GroupNorm(4, b), nn.SiLU())


class UNet(nn.Module):
    """examples/unet/model.mjs"""

    def __init__(self, w):
        super().__init__()
        self.first = grouped(1, w)
        self.down1 = grouped(w, 2 * w, stride=2)
        self.down2 = grouped(2 * w, 4 * w, stride=2)
        self.middle = grouped(4 * w, 4 * w)
        self.up1 = nn.ConvTranspose2d(4 * w, 2 * w, 2, stride=2)
        self.join1 = grouped(4 * w, 2 * w)
        self.up2 = nn.ConvTranspose2d(2 * w, w, 2, stride=2)
        self.join2 = grouped(2 * w, w)
        self.last = nn.Conv2d(w, 1, 1)

    def forward(self, x):
        a = self.first(x)
        b = self.down1(a)
        c = self.middle(self.down2(b))
        d = self.join1(torch.cat([self.up1(c), b], 1))
        e = self.join2(torch.cat([self.up2(d), a], 1))
        return x - self.last(e)


def normed(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU())


class PoolingUNet(nn.Module):
    """Pools on its way down, and resizes on its way up."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c, self.d, self.e = normed(1, 4), normed(4, 8), normed(8, 8), normed(16, 4), normed(8, 4)
        self.last = nn.Conv2d(4, 1, 1)

    def forward(self, x):
        a = self.a(x)
        b = self.b(F.max_pool2d(a, 2))
        c = self.c(F.avg_pool2d(b, 2))
        d = self.d(torch.cat([F.interpolate(c, scale_factor=2, mode='bilinear', align_corners=False), b], 1))
        return self.last(self.e(torch.cat([F.interpolate(d, scale_factor=2, mode='nearest'), a], 1)))


ids = torch.randint(0, 20, (2, 6))
images = torch.randn(2, 1, 8, 8)
share = images.sigmoid()


def gpt(fused):
    model = Gpt(fused)
    return lambda: F.cross_entropy(model(ids).view(-1, 20), ids.view(-1))


def unet():
    model = UNet(4)
    return lambda: F.mse_loss(model(images), images)


def pooling_unet():
    model = PoolingUNet()
    return lambda: F.binary_cross_entropy_with_logits(model(images), share)


MODELS = {'gpt_plain': lambda: gpt(False), 'unet': unet, 'unet_pooling': pooling_unet}


def record(name, make, dtype):
    compute = make()
    with Recorder() as recorder, torch.autocast('cpu', dtype=getattr(torch, dtype)):
        loss = compute()
    assert loss.dtype == torch.float32
    casts = sum(op == 'aten._to_copy.default' for op, _, _ in recorder.calls)
    return {'name': f'{name}_{dtype}', 'torch': torch.__version__, 'dtype': dtype, 'forward': recorder.calls, 'casts': casts}


if __name__ == '__main__':
    with gzip.open(GOLDENS / 'around' / 'autocast-models.json.gz') as file:
        known = {one['name']: one['forward'] for one in json.load(file)}
    for dtype in ('bfloat16', 'float16'):
        again = record('gpt_sdpa', lambda: gpt(True), dtype)
        assert again['forward'] == known[again['name']], 'another version of PyTorch records something else'
    recorded = [record(name, make, dtype) for name, make in MODELS.items() for dtype in ('bfloat16', 'float16')]
    (GOLDENS / 'autocast' / 'models.json').write_text(json.dumps(recorded, separators=(',', ':')) + '\n')

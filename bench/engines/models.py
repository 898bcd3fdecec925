# The models of bench:engines in PyTorch, layer by layer those of examples/.
import torch
import torch.nn as nn
import torch.nn.functional as F


class BasicBlock(nn.Module):
    def __init__(self, inner, to, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inner, to, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(to)
        self.conv2 = nn.Conv2d(to, to, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(to)
        self.downsample = None
        if stride != 1 or inner != to:
            self.downsample = nn.Sequential(nn.Conv2d(inner, to, 1, stride=stride, bias=False), nn.BatchNorm2d(to))

    def forward(self, x):
        out = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(out + (x if self.downsample is None else self.downsample(x)))


class ResNet18(nn.Module):
    def __init__(self, classes=1000):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        )
        sizes = [(64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)]
        self.stages = nn.Sequential(*[block for inner, to, stride in sizes for block in (BasicBlock(inner, to, stride), BasicBlock(to, to))])
        self.fc = nn.Linear(512, classes)

    def forward(self, x):
        return self.fc(F.adaptive_avg_pool2d(self.stages(self.stem(x)), 1).flatten(1))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, time, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, time, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, time, -1))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, vocabulary, context, width, heads, layers):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        return self.head(self.norm(self.blocks(x)))


def training(model, loss_of):
    """A step of SGD, as the rows of models take it."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)

    def step(*inputs):
        with torch.enable_grad():
            optimizer.zero_grad()
            loss = loss_of(*inputs)
            loss.backward()
            optimizer.step()
        return loss.detach()

    return step

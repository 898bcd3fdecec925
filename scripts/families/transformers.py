"""Small transformers (and a UNet) in PyTorch, with the parameter names of the published checkpoints: each is one family of docs/guide/porting-from-pytorch.md."""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


def attend(q, k, v, mask=None, scale=None):
    scores = q @ k.transpose(-2, -1) * (q.shape[-1] ** -0.5 if scale is None else scale)
    return (scores if mask is None else scores + mask).softmax(-1) @ v


def causal(size):
    return torch.full((size, size), float('-inf')).triu(1)


def heads_of(x, heads):
    return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


def joined(x):
    return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)


# GPT-2 (names of Hugging Face): Conv1D keeps its weight transposed, the head is tied to the token embedding.


class Conv1D(nn.Module):
    def __init__(self, to, source):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(source, to))
        self.bias = nn.Parameter(torch.zeros(to))

    def forward(self, x):
        return x @ self.weight + self.bias


class GPT2Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn = Conv1D(3 * width, width)
        self.c_proj = Conv1D(width, width)

    def forward(self, x):
        q, k, v = (heads_of(t, self.heads) for t in self.c_attn(x).chunk(3, -1))
        return self.c_proj(joined(attend(q, k, v, causal(x.shape[1]))))


class GPT2MLP(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc = Conv1D(4 * width, width)
        self.c_proj = Conv1D(width, 4 * width)

    def forward(self, x):
        x = self.c_fc(x)
        return self.c_proj(0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))


class GPT2Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = GPT2Attention(width, heads)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = GPT2MLP(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT2(nn.Module):
    def __init__(self, vocabulary=24, context=12, width=16, heads=2, layers=2):
        super().__init__()
        self.transformer = nn.ModuleDict(
            dict(
                wte=nn.Embedding(vocabulary, width),
                wpe=nn.Embedding(context, width),
                h=nn.ModuleList(GPT2Block(width, heads) for _ in range(layers)),
                ln_f=nn.LayerNorm(width),
            )
        )
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.lm_head.weight = self.transformer['wte'].weight

    def forward(self, tokens):
        t = self.transformer
        x = t['wte'](tokens) + t['wpe'](torch.arange(tokens.shape[1]))
        for block in t['h']:
            x = block(x)
        return self.lm_head(t['ln_f'](x))


# Llama, Qwen2 (biases in q, k, v; tied head) and Mixtral (a router and experts): rotary positions, RMS norm, grouped keys and values.


class RMSNorm(nn.Module):
    def __init__(self, width, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


def rotary(x, base=10000.0):
    size, half = x.shape[-2], x.shape[-1] // 2
    angles = torch.arange(size).float()[:, None] * base ** (-torch.arange(half).float() / half)
    cos, sin = angles.cos().repeat(1, 2), angles.sin().repeat(1, 2)
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


class LlamaAttention(nn.Module):
    def __init__(self, width, heads, kv_heads, bias):
        super().__init__()
        self.heads, self.kv_heads = heads, kv_heads
        size = width // heads
        self.q_proj = nn.Linear(width, heads * size, bias=bias)
        self.k_proj = nn.Linear(width, kv_heads * size, bias=bias)
        self.v_proj = nn.Linear(width, kv_heads * size, bias=bias)
        self.o_proj = nn.Linear(heads * size, width, bias=False)

    def forward(self, x):
        q = rotary(heads_of(self.q_proj(x), self.heads))
        k = rotary(heads_of(self.k_proj(x), self.kv_heads))
        v = heads_of(self.v_proj(x), self.kv_heads)
        k, v = (t.repeat_interleave(self.heads // self.kv_heads, 1) for t in (k, v))
        return self.o_proj(joined(attend(q, k, v, causal(x.shape[1]))))


class LlamaMLP(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.gate_proj = nn.Linear(width, hidden, bias=False)
        self.up_proj = nn.Linear(width, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Expert(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.w1 = nn.Linear(width, hidden, bias=False)
        self.w2 = nn.Linear(hidden, width, bias=False)
        self.w3 = nn.Linear(width, hidden, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class SparseMoe(nn.Module):
    """Each token goes to its two best experts; an expert sees just its tokens."""

    def __init__(self, width, hidden, experts=4, chosen=2):
        super().__init__()
        self.chosen = chosen
        self.gate = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(Expert(width, hidden) for _ in range(experts))

    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        weights, places = self.gate(flat).softmax(-1).topk(self.chosen, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros_like(flat)
        for i, expert in enumerate(self.experts):
            rows, slots = torch.where(places == i)
            if rows.numel() > 0:
                out = out.index_add(0, rows, expert(flat[rows]) * weights[rows, slots, None])
        return out.view(x.shape)


class LlamaLayer(nn.Module):
    def __init__(self, width, heads, kv_heads, hidden, bias, moe):
        super().__init__()
        self.self_attn = LlamaAttention(width, heads, kv_heads, bias)
        if moe:
            self.block_sparse_moe = SparseMoe(width, hidden)
        else:
            self.mlp = LlamaMLP(width, hidden)
        self.input_layernorm = RMSNorm(width)
        self.post_attention_layernorm = RMSNorm(width)

    def forward(self, x):
        x = x + self.self_attn(self.input_layernorm(x))
        feed = self.block_sparse_moe if hasattr(self, 'block_sparse_moe') else self.mlp
        return x + feed(self.post_attention_layernorm(x))


class LlamaModel(nn.Module):
    def __init__(self, vocabulary, width, layers, *args):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(LlamaLayer(width, *args) for _ in range(layers))
        self.norm = RMSNorm(width)

    def forward(self, tokens):
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class Llama(nn.Module):
    def __init__(self, vocabulary=24, width=16, layers=2, heads=4, kv_heads=2, hidden=24, bias=False, moe=False, tied=False):
        super().__init__()
        self.model = LlamaModel(vocabulary, width, layers, heads, kv_heads, hidden, bias, moe)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        if tied:
            self.lm_head.weight = self.model.embed_tokens.weight

    def forward(self, tokens):
        return self.lm_head(self.model(tokens))


# BERT (names of Hugging Face), with upper-case module names.


class BertEmbeddings(nn.Module):
    def __init__(self, vocabulary, context, width):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocabulary, width, padding_idx=0)
        self.position_embeddings = nn.Embedding(context, width)
        self.token_type_embeddings = nn.Embedding(2, width)
        self.LayerNorm = nn.LayerNorm(width, eps=1e-12)
        self.register_buffer('position_ids', torch.arange(context).expand((1, -1)))

    def forward(self, tokens, types):
        places = self.position_ids[:, : tokens.shape[1]]
        return self.LayerNorm(self.word_embeddings(tokens) + self.position_embeddings(places) + self.token_type_embeddings(types))


class BertSelf(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def forward(self, x, mask):
        q, k, v = (heads_of(layer(x), self.heads) for layer in (self.query, self.key, self.value))
        return joined(attend(q, k, v, mask))


class BertOutput(nn.Module):
    def __init__(self, source, width):
        super().__init__()
        self.dense = nn.Linear(source, width)
        self.LayerNorm = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x, residual):
        return self.LayerNorm(self.dense(x) + residual)


class BertLayer(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.attention = nn.ModuleDict({'self': BertSelf(width, heads), 'output': BertOutput(width, width)})
        self.intermediate = nn.ModuleDict({'dense': nn.Linear(width, hidden)})
        self.output = BertOutput(hidden, width)

    def forward(self, x, mask):
        x = self.attention['output'](self.attention['self'](x, mask), x)
        return self.output(F.gelu(self.intermediate['dense'](x)), x)


class Bert(nn.Module):
    def __init__(self, vocabulary=24, context=12, width=16, heads=2, layers=2, hidden=32):
        super().__init__()
        self.embeddings = BertEmbeddings(vocabulary, context, width)
        self.encoder = nn.ModuleDict({'layer': nn.ModuleList(BertLayer(width, heads, hidden) for _ in range(layers))})
        self.pooler = nn.ModuleDict({'dense': nn.Linear(width, width)})

    def forward(self, tokens, types, attention_mask):
        mask = (1.0 - attention_mask[:, None, None, :].float()) * -10000.0
        x = self.embeddings(tokens, types)
        for layer in self.encoder['layer']:
            x = layer(x, mask)
        return x, torch.tanh(self.pooler['dense'](x[:, 0]))


# T5 (names of Hugging Face): `shared` is a module under three names, the first block of each stack owns the relative positions, attention is not scaled.


def relative_bucket(distance, both, buckets=8, furthest=16):
    bucket = torch.zeros_like(distance)
    if both:
        buckets //= 2
        bucket = bucket + (distance > 0).long() * buckets
        distance = distance.abs()
    else:
        distance = -torch.min(distance, torch.zeros_like(distance))
    exact = buckets // 2
    far = exact + (torch.log(distance.clamp(min=1).float() / exact) / math.log(furthest / exact) * (buckets - exact)).long()
    return bucket + torch.where(distance < exact, distance, far.clamp(max=buckets - 1))


class T5Attention(nn.Module):
    def __init__(self, width, heads, size, positions):
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(width, heads * size, bias=False)
        self.k = nn.Linear(width, heads * size, bias=False)
        self.v = nn.Linear(width, heads * size, bias=False)
        self.o = nn.Linear(heads * size, width, bias=False)
        if positions:
            self.relative_attention_bias = nn.Embedding(8, heads)

    def forward(self, x, source, bias):
        q, k, v = heads_of(self.q(x), self.heads), heads_of(self.k(source), self.heads), heads_of(self.v(source), self.heads)
        return self.o(joined(attend(q, k, v, bias, scale=1.0)))


class T5LayerSelf(nn.Module):
    def __init__(self, width, heads, size, positions):
        super().__init__()
        self.SelfAttention = T5Attention(width, heads, size, positions)
        self.layer_norm = RMSNorm(width)

    def forward(self, x, bias):
        normed = self.layer_norm(x)
        return x + self.SelfAttention(normed, normed, bias)


class T5LayerCross(nn.Module):
    def __init__(self, width, heads, size):
        super().__init__()
        self.EncDecAttention = T5Attention(width, heads, size, False)
        self.layer_norm = RMSNorm(width)

    def forward(self, x, source):
        return x + self.EncDecAttention(self.layer_norm(x), source, None)


class T5LayerFF(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.DenseReluDense = nn.ModuleDict({'wi': nn.Linear(width, hidden, bias=False), 'wo': nn.Linear(hidden, width, bias=False)})
        self.layer_norm = RMSNorm(width)

    def forward(self, x):
        return x + self.DenseReluDense['wo'](F.relu(self.DenseReluDense['wi'](self.layer_norm(x))))


class T5Block(nn.Module):
    def __init__(self, width, heads, size, hidden, decoder, positions):
        super().__init__()
        layers = [T5LayerSelf(width, heads, size, positions)]
        if decoder:
            layers.append(T5LayerCross(width, heads, size))
        self.layer = nn.ModuleList(layers + [T5LayerFF(width, hidden)])

    def forward(self, x, bias, source=None):
        x = self.layer[0](x, bias)
        if source is not None:
            x = self.layer[1](x, source)
        return self.layer[-1](x)


class T5Stack(nn.Module):
    def __init__(self, embed_tokens, width, heads, size, hidden, layers, decoder):
        super().__init__()
        self.decoder = decoder
        self.embed_tokens = embed_tokens
        self.block = nn.ModuleList(T5Block(width, heads, size, hidden, decoder, i == 0) for i in range(layers))
        self.final_layer_norm = RMSNorm(width)

    def forward(self, tokens, source=None):
        x = self.embed_tokens(tokens)
        size = x.shape[1]
        distance = torch.arange(size)[None, :] - torch.arange(size)[:, None]
        table = self.block[0].layer[0].SelfAttention.relative_attention_bias
        bias = table(relative_bucket(distance, not self.decoder)).permute(2, 0, 1)[None]
        if self.decoder:
            bias = bias + causal(size)
        for block in self.block:
            x = block(x, bias, source)
        return self.final_layer_norm(x)


class T5(nn.Module):
    def __init__(self, vocabulary=24, width=16, heads=2, size=8, hidden=24, layers=2):
        super().__init__()
        self.scale = width**-0.5
        self.shared = nn.Embedding(vocabulary, width)
        self.encoder = T5Stack(self.shared, width, heads, size, hidden, layers, False)
        self.decoder = T5Stack(self.shared, width, heads, size, hidden, layers, True)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.lm_head.weight = self.shared.weight

    def forward(self, tokens, given):
        return self.lm_head(self.decoder(given, self.encoder(tokens)) * self.scale)


# Whisper (names of Hugging Face): convolutions over a spectrogram, fixed sinusoids as a parameter without gradient, no bias in k_proj.


class WhisperAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.k_proj = nn.Linear(width, width, bias=False)
        self.v_proj = nn.Linear(width, width)
        self.q_proj = nn.Linear(width, width)
        self.out_proj = nn.Linear(width, width)

    def forward(self, x, source, mask=None):
        q, k, v = heads_of(self.q_proj(x), self.heads), heads_of(self.k_proj(source), self.heads), heads_of(self.v_proj(source), self.heads)
        return self.out_proj(joined(attend(q, k, v, mask)))


class WhisperLayer(nn.Module):
    def __init__(self, width, heads, decoder):
        super().__init__()
        self.self_attn = WhisperAttention(width, heads)
        self.self_attn_layer_norm = nn.LayerNorm(width)
        if decoder:
            self.encoder_attn = WhisperAttention(width, heads)
            self.encoder_attn_layer_norm = nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, 4 * width)
        self.fc2 = nn.Linear(4 * width, width)
        self.final_layer_norm = nn.LayerNorm(width)

    def forward(self, x, source=None):
        normed = self.self_attn_layer_norm(x)
        x = x + self.self_attn(normed, normed, None if source is None else causal(x.shape[1]))
        if source is not None:
            x = x + self.encoder_attn(self.encoder_attn_layer_norm(x), source)
        return x + self.fc2(F.gelu(self.fc1(self.final_layer_norm(x))))


class WhisperEncoder(nn.Module):
    def __init__(self, mels, context, width, heads, layers):
        super().__init__()
        self.conv1 = nn.Conv1d(mels, width, 3, padding=1)
        self.conv2 = nn.Conv1d(width, width, 3, stride=2, padding=1)
        self.embed_positions = nn.Embedding(context, width)
        self.embed_positions.requires_grad_(False)
        self.layers = nn.ModuleList(WhisperLayer(width, heads, False) for _ in range(layers))
        self.layer_norm = nn.LayerNorm(width)

    def forward(self, features):
        x = F.gelu(self.conv2(F.gelu(self.conv1(features)))).permute(0, 2, 1)
        x = x + self.embed_positions.weight
        for layer in self.layers:
            x = layer(x)
        return self.layer_norm(x)


class WhisperDecoder(nn.Module):
    def __init__(self, vocabulary, context, width, heads, layers):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocabulary, width, padding_idx=1)
        self.embed_positions = nn.Embedding(context, width)
        self.layers = nn.ModuleList(WhisperLayer(width, heads, True) for _ in range(layers))
        self.layer_norm = nn.LayerNorm(width)

    def forward(self, tokens, source):
        x = self.embed_tokens(tokens) + self.embed_positions.weight[: tokens.shape[1]]
        for layer in self.layers:
            x = layer(x, source)
        return self.layer_norm(x)


class Whisper(nn.Module):
    def __init__(self, mels=6, frames=16, vocabulary=20, context=10, width=16, heads=2, layers=1):
        super().__init__()
        self.model = nn.ModuleDict({'encoder': WhisperEncoder(mels, frames // 2, width, heads, layers), 'decoder': WhisperDecoder(vocabulary, context, width, heads, layers)})
        self.proj_out = nn.Linear(width, vocabulary, bias=False)
        self.proj_out.weight = self.model['decoder'].embed_tokens.weight

    def forward(self, features, tokens):
        return self.proj_out(self.model['decoder'](tokens, self.model['encoder'](features)))


# CLIP (names of Hugging Face): two towers, a class token, a learnt temperature that is a parameter without dimensions.


class ClipLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.self_attn = ClipAttention(width, heads)
        self.layer_norm1 = nn.LayerNorm(width)
        self.mlp = nn.ModuleDict({'fc1': nn.Linear(width, 4 * width), 'fc2': nn.Linear(4 * width, width)})
        self.layer_norm2 = nn.LayerNorm(width)

    def forward(self, x, mask):
        x = x + self.self_attn(self.layer_norm1(x), mask)
        hidden = self.mlp['fc1'](self.layer_norm2(x))
        return x + self.mlp['fc2'](hidden * torch.sigmoid(1.702 * hidden))


class ClipAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.k_proj = nn.Linear(width, width)
        self.v_proj = nn.Linear(width, width)
        self.q_proj = nn.Linear(width, width)
        self.out_proj = nn.Linear(width, width)

    def forward(self, x, mask):
        q, k, v = (heads_of(layer(x), self.heads) for layer in (self.q_proj, self.k_proj, self.v_proj))
        return self.out_proj(joined(attend(q, k, v, mask)))


class ClipEncoder(nn.Module):
    def __init__(self, width, heads, layers):
        super().__init__()
        self.layers = nn.ModuleList(ClipLayer(width, heads) for _ in range(layers))

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return x


class ClipTextEmbeddings(nn.Module):
    def __init__(self, vocabulary, context, width):
        super().__init__()
        self.token_embedding = nn.Embedding(vocabulary, width)
        self.position_embedding = nn.Embedding(context, width)
        self.register_buffer('position_ids', torch.arange(context).expand((1, -1)), persistent=False)

    def forward(self, tokens):
        return self.token_embedding(tokens) + self.position_embedding(self.position_ids[:, : tokens.shape[1]])


class ClipText(nn.Module):
    def __init__(self, vocabulary, context, width, heads, layers):
        super().__init__()
        self.embeddings = ClipTextEmbeddings(vocabulary, context, width)
        self.encoder = ClipEncoder(width, heads, layers)
        self.final_layer_norm = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.final_layer_norm(self.encoder(self.embeddings(tokens), causal(tokens.shape[1])))
        return x[torch.arange(x.shape[0]), tokens.argmax(-1)]


class ClipVisionEmbeddings(nn.Module):
    def __init__(self, image, patch, width):
        super().__init__()
        self.class_embedding = nn.Parameter(torch.zeros(width))
        self.patch_embedding = nn.Conv2d(3, width, patch, stride=patch, bias=False)
        self.position_embedding = nn.Embedding((image // patch) ** 2 + 1, width)

    def forward(self, images):
        patches = self.patch_embedding(images).flatten(2).transpose(1, 2)
        first = self.class_embedding.expand(images.shape[0], 1, -1)
        return torch.cat([first, patches], 1) + self.position_embedding.weight


class ClipVision(nn.Module):
    def __init__(self, image, patch, width, heads, layers):
        super().__init__()
        self.embeddings = ClipVisionEmbeddings(image, patch, width)
        self.pre_layrnorm = nn.LayerNorm(width)
        self.encoder = ClipEncoder(width, heads, layers)
        self.post_layernorm = nn.LayerNorm(width)

    def forward(self, images):
        return self.post_layernorm(self.encoder(self.pre_layrnorm(self.embeddings(images)))[:, 0])


class Clip(nn.Module):
    def __init__(self, image=16, patch=8, vocabulary=20, context=8, width=16, heads=2, layers=1, projection=8):
        super().__init__()
        self.logit_scale = nn.Parameter(torch.tensor(2.6592))
        self.text_model = ClipText(vocabulary, context, width, heads, layers)
        self.vision_model = ClipVision(image, patch, width, heads, layers)
        self.visual_projection = nn.Linear(width, projection, bias=False)
        self.text_projection = nn.Linear(width, projection, bias=False)

    def forward(self, tokens, images):
        text = self.text_projection(self.text_model(tokens))
        image = self.visual_projection(self.vision_model(images))
        text, image = (t / t.norm(dim=-1, keepdim=True) for t in (text, image))
        return self.logit_scale.exp() * text @ image.t()


# Mamba (names of the original): a selective scan, parameters A_log and D beside the layers of a mixer.


class MambaMixer(nn.Module):
    def __init__(self, width, state=4, taps=3, rank=2):
        super().__init__()
        inner = 2 * width
        self.inner, self.state, self.rank = inner, state, rank
        self.A_log = nn.Parameter(torch.log(torch.arange(1, state + 1).float()).repeat(inner, 1))
        self.D = nn.Parameter(torch.ones(inner))
        self.in_proj = nn.Linear(width, 2 * inner, bias=False)
        self.conv1d = nn.Conv1d(inner, inner, taps, groups=inner, padding=taps - 1)
        self.x_proj = nn.Linear(inner, rank + 2 * state, bias=False)
        self.dt_proj = nn.Linear(rank, inner)
        self.out_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        size = x.shape[1]
        x, gate = self.in_proj(x).transpose(1, 2).chunk(2, 1)
        x = F.silu(self.conv1d(x)[..., :size])
        step, B, C = self.x_proj(x.transpose(1, 2)).split([self.rank, self.state, self.state], -1)
        step = F.softplus(self.dt_proj(step))
        A = -torch.exp(self.A_log)
        h = torch.zeros(x.shape[0], self.inner, self.state)
        out = []
        for t in range(size):
            h = torch.exp(step[:, t, :, None] * A) * h + (step[:, t, :, None] * B[:, t, None, :]) * x[:, :, t, None]
            out.append((h * C[:, t, None, :]).sum(-1))
        y = torch.stack(out, 2) + x * self.D[:, None]
        return self.out_proj((y * F.silu(gate)).transpose(1, 2))


class MambaBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mixer = MambaMixer(width)
        self.norm = RMSNorm(width, eps=1e-5)

    def forward(self, x):
        return x + self.mixer(self.norm(x))


class MambaBackbone(nn.Module):
    def __init__(self, vocabulary, width, layers):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(MambaBlock(width) for _ in range(layers))
        self.norm_f = RMSNorm(width, eps=1e-5)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.norm_f(x)


class Mamba(nn.Module):
    def __init__(self, vocabulary=20, width=12, layers=2):
        super().__init__()
        self.backbone = MambaBackbone(vocabulary, width, layers)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.lm_head.weight = self.backbone.embedding.weight

    def forward(self, tokens):
        return self.lm_head(self.backbone(tokens))


# A UNet of a diffusion model: time embedding, group norm, attention in the middle, transposed convolution.


class ResidualBlock(nn.Module):
    def __init__(self, source, to, time):
        super().__init__()
        self.norm1 = nn.GroupNorm(2, source)
        self.conv1 = nn.Conv2d(source, to, 3, padding=1)
        self.time_emb_proj = nn.Linear(time, to)
        self.norm2 = nn.GroupNorm(2, to)
        self.conv2 = nn.Conv2d(to, to, 3, padding=1)
        self.conv_shortcut = nn.Conv2d(source, to, 1) if source != to else None

    def forward(self, x, t):
        h = self.conv1(F.silu(self.norm1(x))) + self.time_emb_proj(F.silu(t))[:, :, None, None]
        h = self.conv2(F.silu(self.norm2(h)))
        return h + (x if self.conv_shortcut is None else self.conv_shortcut(x))


class MiddleAttention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.group_norm = nn.GroupNorm(2, width)
        self.to_q = nn.Linear(width, width)
        self.to_k = nn.Linear(width, width)
        self.to_v = nn.Linear(width, width)
        self.to_out = nn.ModuleList([nn.Linear(width, width), nn.Dropout(0.0)])

    def forward(self, x):
        h = self.group_norm(x).flatten(2).transpose(1, 2)
        h = self.to_out[1](self.to_out[0](attend(self.to_q(h), self.to_k(h), self.to_v(h))))
        return x + h.transpose(1, 2).view(x.shape)


class UNet(nn.Module):
    def __init__(self, width=8, time=16):
        super().__init__()
        self.width = width
        self.time_embedding = nn.ModuleDict({'linear_1': nn.Linear(width, time), 'linear_2': nn.Linear(time, time)})
        self.conv_in = nn.Conv2d(3, width, 3, padding=1)
        self.down_blocks = nn.ModuleList([ResidualBlock(width, width, time), ResidualBlock(width, 2 * width, time)])
        self.downsample = nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.mid_block = nn.ModuleDict({'attention': MiddleAttention(2 * width), 'resnet': ResidualBlock(2 * width, 2 * width, time)})
        self.upsample = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.up_block = ResidualBlock(2 * width, width, time)
        self.conv_norm_out = nn.GroupNorm(2, width)
        self.conv_out = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x, step):
        half = self.width // 2
        angles = step.float()[:, None] * torch.exp(-math.log(10000.0) * torch.arange(half).float() / half)
        t = self.time_embedding['linear_2'](F.silu(self.time_embedding['linear_1'](torch.cat([angles.cos(), angles.sin()], -1))))
        skip = self.down_blocks[0](self.conv_in(x), t)
        x = self.down_blocks[1](self.downsample(skip), t)
        x = self.mid_block['resnet'](self.mid_block['attention'](x), t)
        x = self.up_block(torch.cat([self.upsample(x), skip], 1), t)
        return self.conv_out(F.silu(self.conv_norm_out(x)))

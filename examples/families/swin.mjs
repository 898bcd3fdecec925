// The Swin transformer as torchvision writes it: attention in windows, every other block with the windows shifted. Tensors are [batch, height, width, channels] inside.
import { nn, torch } from 'tensorfx'

const F = torch.nn.functional

/** The place in the table of relative positions for each pair of positions of a window, [window^4]. */
function relativeIndex(window) {
  const places = Array.from({ length: window * window }, (_, i) => [Math.floor(i / window), i % window])
  const index = places.flatMap(([y, x]) => places.map(([v, u]) => (y - v + window - 1) * (2 * window - 1) + (x - u + window - 1)))
  return torch.tensor(index, { dtype: 'int64' })
}

/** Which positions of shifted windows were neighbours before the shift: 0, or -100, [windows, area, area]. */
function shiftMask(height, width, window, shift) {
  const region = (place, size) => (place < size - window ? 0 : place < size - shift ? 1 : 2)
  const regions = Array.from({ length: height * width }, (_, i) => region(Math.floor(i / width), height) * 3 + region(i % width, width))
  const perWindow = windows(torch.tensor(regions).view(1, height, width, 1), window).squeeze(-1)
  return torch.where(perWindow.unsqueeze(1).eq(perWindow.unsqueeze(2)), 0, -100)
}

/** [batch, height, width, channels] as [batch * windows, window * window, channels]. */
function windows(x, window) {
  const [batch, height, width, channels] = x.shape
  return x
    .view(batch, height / window, window, width / window, window, channels)
    .permute(0, 1, 3, 2, 4, 5)
    .reshape(-1, window * window, channels)
}

class ShiftedWindowAttention extends nn.Module {
  constructor(width, heads, window, shift) {
    super()
    Object.assign(this, { heads, window, shift })
    this.qkv = new nn.Linear(width, 3 * width)
    this.proj = new nn.Linear(width, width)
    this.relative_position_bias_table = new nn.Parameter(torch.randn([(2 * window - 1) ** 2, heads]).mul(0.02))
    this.registerBuffer('relative_position_index', relativeIndex(window))
  }

  forward(input) {
    const { heads, window, shift } = this
    const [batch, height, width, channels] = input.shape
    const area = window * window
    const moved = shift === 0 ? input : torch.roll(input, [-shift, -shift], [1, 2])
    const x = windows(moved, window)
    const [q, k, v] = this.qkv(x)
      .view(-1, area, 3, heads, channels / heads)
      .permute(2, 0, 3, 1, 4)
      .unbind(0)
    let bias = this.relative_position_bias_table.index([this.relative_position_index]).view(area, area, heads).permute(2, 0, 1).unsqueeze(0)
    if (shift > 0) bias = bias.add(shiftMask(height, width, window, shift).unsqueeze(1)).repeat(batch, 1, 1, 1)
    const y = F.scaledDotProductAttention(q, k, v, { attnMask: bias })
    const whole = this.proj(y.transpose(1, 2).reshape(-1, area, channels))
      .view(batch, height / window, width / window, window, window, channels)
      .permute(0, 1, 3, 2, 4, 5)
      .reshape(batch, height, width, channels)
    return shift === 0 ? whole : torch.roll(whole, [shift, shift], [1, 2])
  }
}

class SwinBlock extends nn.Module {
  constructor(width, heads, window, shift) {
    super()
    this.norm1 = new nn.LayerNorm(width)
    this.attn = new ShiftedWindowAttention(width, heads, window, shift)
    this.norm2 = new nn.LayerNorm(width)
    this.mlp = new nn.Sequential(
      new nn.Linear(width, 4 * width),
      new nn.GELU(),
      new nn.Dropout(0),
      new nn.Linear(4 * width, width),
      new nn.Dropout(0),
    )
  }

  forward(x) {
    x = x.add(this.attn(this.norm1(x)))
    return x.add(this.mlp(this.norm2(x)))
  }
}

class PatchMerging extends nn.Module {
  constructor(width) {
    super()
    this.reduction = new nn.Linear(4 * width, 2 * width, { bias: false })
    this.norm = new nn.LayerNorm(4 * width)
  }

  forward(x) {
    const [batch, height, width, channels] = x.shape
    const parts = x.view(batch, height / 2, 2, width / 2, 2, channels).permute(0, 1, 3, 4, 2, 5)
    return this.reduction(this.norm(parts.reshape(batch, height / 2, width / 2, 4 * channels)))
  }
}

class Permute extends nn.Module {
  forward(x) {
    return x.permute(0, 2, 3, 1)
  }
}

export class SwinTransformer extends nn.Module {
  constructor({ patch, width, depths, heads, window, classes = 1000 }) {
    super()
    const features = [new nn.Sequential(new nn.Conv2d(3, width, patch, { stride: patch }), new Permute(), new nn.LayerNorm(width))]
    for (const [stage, depth] of depths.entries()) {
      const size = width * 2 ** stage
      const shift = Math.floor(window / 2)
      features.push(new nn.Sequential(...Array.from({ length: depth }, (_, i) => new SwinBlock(size, heads[stage], window, i % 2 === 0 ? 0 : shift))))
      if (stage < depths.length - 1) features.push(new PatchMerging(size))
    }
    const last = width * 2 ** (depths.length - 1)
    this.features = new nn.Sequential(...features)
    this.norm = new nn.LayerNorm(last)
    this.head = new nn.Linear(last, classes)
  }

  /** Images [batch, 3, height, width] to scores [batch, classes]. Sizes must be multiples of patch, window and two for each stage but the first. */
  forward(images) {
    return this.head(this.norm(this.features(images)).mean([1, 2]))
  }
}

export const families = {
  swin: () => new SwinTransformer({ patch: 2, width: 8, depths: [2, 2], heads: [1, 2], window: 2, classes: 5 }),
}

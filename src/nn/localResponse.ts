// Normalization by the neighbouring channels: LocalResponseNorm and CrossMapLRN2d.
import { withoutModes } from '../dispatch/index.ts'
import { ShapeError } from '../errors/index.ts'
import { add, detach, matmul, mul, pow, reshape, square, sub } from '../ops/index.ts'
import { formatShape, tensorFromValues } from '../tensor/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { checkCount, py, pyFloat } from '../protocol/index.ts'
import { localResponseNorm } from './functional.ts'
import { OptionLayer } from './optionLayer.ts'
import { checkInteger, readRequired } from './options.ts'
import type { Named, Trailing } from './options.ts'
import type { LayerFacts } from './layerFacts.ts'

/** Options of {@link LocalResponseNorm} and {@link CrossMapLRN2d}. */
export interface LocalResponseNormOptions {
  /** The factor of the mean square; default 0.0001. */
  readonly alpha?: number
  /** The power; default 0.75. */
  readonly beta?: number
  /** Added to the mean square; default 1. */
  readonly k?: number
}

/** What both share: input / (k + alpha * mean square of the `size` channels around it)^beta. */
abstract class ChannelNorm extends OptionLayer {
  readonly size: number
  declare readonly alpha: number
  declare readonly beta: number
  declare readonly k: number

  constructor(size: number, ...options: Trailing<[alpha: number, beta: number, k: number], LocalResponseNormOptions>)
  constructor(...args: Named<[['size', number]], Trailing<[alpha: number, beta: number, k: number], LocalResponseNormOptions>>)
  constructor(...args: readonly unknown[]) {
    const [size, ...options] = readRequired<[size: number]>(new.target.layer.name, ['size'], args)
    super({ alpha: 1e-4, beta: 0.75, k: 1 }, options)
    checkInteger(new.target.layer.name, 'size', size)
    this.size = size
  }

  protected repr(k: string): string {
    return `${this.size}, alpha=${pyFloat(this.alpha)}, beta=${pyFloat(this.beta)}, k=${k}`
  }
}

/**
 * Divides each channel of [N, C, ..] by a power of the mean square of the `size` channels around it: input / (k + alpha * mean)^beta. PyTorch's `nn.LocalResponseNorm`.
 *
 * @example new nn.LocalResponseNorm(1, { alpha: 1, beta: 1 })(torch.tensor([[[1], [2]]])).toArray() // [[[0.5], [0.4]]]
 */
export class LocalResponseNorm extends ChannelNorm {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.LocalResponseNorm' }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    return localResponseNorm(input, this.size, this.alpha, this.beta, this.k)
  }

  override extraRepr(): string {
    return this.repr(pyFloat(this.k))
  }
}

/** Sums over neighbours: for each channel of [N, C, L] those for which `counts` holds. */
function sumOfChannels(x: Tensor, counts: (channel: number, other: number) => boolean): Tensor {
  const n = x.shape[1] ?? 0
  const table = Array.from({ length: n * n }, (_, i) => (counts(Math.floor(i / n), i % n) ? 1 : 0))
  return matmul(
    withoutModes(() => tensorFromValues(table, [n, n], x.dtype)),
    x,
  )
}

/**
 * {@link LocalResponseNorm} of [N, C, H, W] as Lua Torch had it, for weights from there; new models take LocalResponseNorm. As in PyTorch, the first channel
 * counts in every window that begins behind it, and the gradient is that of windows shifted by one channel. PyTorch's `nn.CrossMapLRN2d`.
 */
export class CrossMapLRN2d extends ChannelNorm {
  /** @internal */
  static override readonly layer: LayerFacts = { name: 'nn.CrossMapLRN2d' }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    if (input.ndim !== 4) throw new ShapeError(`nn.CrossMapLRN2d: the input must be [N, C, H, W], got shape ${formatShape(input.shape)}.`)
    const { size, alpha, beta, k } = this
    const squares = square(reshape(input, [input.shape[0] ?? 0, input.shape[1] ?? 0, -1]))
    const half = Math.floor((size + 1) / 2)
    const sums = sumOfChannels(detach(squares), (c, other) => Math.abs(c - other) < half || (other === 0 && c >= half))
    // Only the gradient of these sums counts.
    const after = Math.min(half, size - 1)
    const others = sumOfChannels(squares, (c, other) => other <= c + after && other > c + after - size)
    const scale = add(mul(add(sums, sub(others, detach(others))), alpha / size), k)
    return mul(input, reshape(pow(scale, -beta), input.shape))
  }

  override extraRepr(): string {
    return this.repr(py(this.k))
  }
}

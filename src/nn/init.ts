// Initial values of parameters, in place; PyTorch's torch.nn.init. Nothing here is recorded by autograd.
import { noGrad } from '../autograd/index.ts'
import { ArgumentError, ShapeError } from '../errors/index.ts'
import {
  add,
  argsort,
  clamp,
  copy_,
  div,
  dot,
  erf,
  erfinv,
  eye,
  fill_,
  full,
  mul,
  norm,
  lateOperator,
  rand,
  randn,
  reshape,
  scatter,
  stack,
  sub,
} from '../ops/index.ts'
import type { normal_ as NormalOperator, uniform_ as UniformOperator } from '../ops/index.ts'
import { checkArgument, checkCount, checkOptions, isObject } from '../protocol/index.ts'
import { checkTensor, formatShape } from '../tensor/index.ts'
import type { Generator, Tensor } from '../tensor/index.ts'
import { drawsAreLeftOut } from './leftOutDraws.ts'
import { checkNumber, readOptions } from './options.ts'
import type { Trailing } from './options.ts'

/** Activations that `nn.init.calculateGain` knows, in PyTorch's spelling. */
export type Nonlinearity = 'linear' | `conv${1 | 2 | 3}d` | `conv_transpose${1 | 2 | 3}d` | 'sigmoid' | 'tanh' | 'relu' | 'leaky_relu' | 'selu'

/** Options of the Kaiming initialisations. */
export interface KaimingOptions {
  /** Negative slope of the leaky_relu that follows; default 0. */
  readonly a?: number
  /** Keep the variance of activations (fan_in, the default) or of gradients (fan_out). */
  readonly mode?: 'fan_in' | 'fan_out'
  readonly nonlinearity?: Nonlinearity
  readonly generator?: Generator | null
}

/** Options of the Xavier initialisations. */
export interface XavierOptions {
  readonly gain?: number
  readonly generator?: Generator | null
}

interface DrawOptions {
  readonly generator?: Generator | null
}

/** Fills with uniform numbers in [from, to). PyTorch's `init.uniform_`. */
export function uniform_(tensor: Tensor, from = 0, to = 1, options: DrawOptions = {}): Tensor {
  checkCount('init.uniform_', arguments, 4)
  checkOptions('init.uniform_', options, { generator: true })
  if (drawsAreLeftOut()) return tensor
  const draw = lateOperator<typeof UniformOperator>('torch.ops.tensorfx.uniform_')
  return noGrad(() => draw(tensor, from, to, { generator: options.generator ?? null }))
}

/** Fills with normal numbers. PyTorch's `init.normal_`. */
export function normal_(tensor: Tensor, mean = 0, std = 1, options: DrawOptions = {}): Tensor {
  checkCount('init.normal_', arguments, 4)
  checkOptions('init.normal_', options, { generator: true })
  if (drawsAreLeftOut()) return tensor
  const draw = lateOperator<typeof NormalOperator>('torch.ops.tensorfx.normal_')
  return noGrad(() => draw(tensor, mean, std, { generator: options.generator ?? null }))
}

/** Fills with one value. PyTorch's `init.constant_`. */
export function constant_(tensor: Tensor, value: number): Tensor {
  checkCount('nn.init.constant_', arguments, 2)
  return noGrad(() => fill_(tensor, value))
}

/** Fills with 0. PyTorch's `init.zeros_`. */
export function zeros_(tensor: Tensor): Tensor {
  checkCount('nn.init.zeros_', arguments, 1)
  return constant_(tensor, 0)
}

/** Fills with 1. PyTorch's `init.ones_`. */
export function ones_(tensor: Tensor): Tensor {
  checkCount('nn.init.ones_', arguments, 1)
  return constant_(tensor, 1)
}

/** Makes a matrix the identity. Throws ShapeError for other dimensions. PyTorch's `init.eye_`. */
export function eye_(tensor: Tensor): Tensor {
  checkCount('init.eye_', arguments, 1)
  checkTensor('init.eye_', 'tensor', tensor)
  const [rows, columns, ...others] = tensor.shape
  if (rows === undefined || columns === undefined || others.length > 0)
    throw new ShapeError(`init.eye_: expected a matrix, got shape ${formatShape(tensor.shape)}.`)
  return noGrad(() => copy_(tensor, eye(rows, columns)))
}

/** Connections into and out of one unit of a weight [out, in, ...window]. Throws ShapeError below two dimensions. PyTorch's `_calculate_fan_in_and_fan_out`. */
export function calculateFanInAndFanOut(tensor: Pick<Tensor, 'shape'>): readonly [fanIn: number, fanOut: number] {
  checkCount('init.calculateFanInAndFanOut', arguments, 1)
  // Whatever has a shape has fans.
  const given: unknown = tensor
  if (!isObject(given) || !Array.isArray(Reflect.get(given, 'shape'))) checkTensor('init.calculateFanInAndFanOut', 'tensor', tensor)
  const [out, into, ...window] = tensor.shape
  if (out === undefined || into === undefined) {
    throw new ShapeError(
      `init.calculateFanInAndFanOut: a tensor of fewer than 2 dimensions (shape ${formatShape(tensor.shape)}) has no fan in and fan out; use uniform_ or normal_.`,
    )
  }
  const field = window.reduce((a, b) => a * b, 1)
  return [into * field, out * field]
}

/** The factor that keeps the variance through an activation; `param` is the slope of leaky_relu. PyTorch's `init.calculate_gain`. */
export function calculateGain(nonlinearity: Nonlinearity, param = 0.01): number {
  checkCount('nn.init.calculateGain', arguments, 2)
  checkArgument(typeof param === 'number', 'init.calculateGain', 'param', 'a number', param)
  switch (nonlinearity) {
    case 'linear':
    case 'conv1d':
    case 'conv2d':
    case 'conv3d':
    case 'conv_transpose1d':
    case 'conv_transpose2d':
    case 'conv_transpose3d':
    case 'sigmoid':
      return 1
    case 'tanh':
      return 5 / 3
    case 'relu':
      return Math.SQRT2
    case 'leaky_relu':
      return Math.sqrt(2 / (1 + param ** 2))
    case 'selu':
      return 3 / 4
    default:
      throw new ArgumentError(
        `init.calculateGain: unknown nonlinearity '${String(nonlinearity)}'; choose one of linear, conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d, sigmoid, tanh, relu, leaky_relu or selu.`,
      )
  }
}

type Kaiming = Required<KaimingOptions>
const KAIMING: Kaiming = { a: 0, mode: 'fan_in', nonlinearity: 'leaky_relu', generator: null }

function kaimingStd(tensor: Tensor, { a, mode, nonlinearity }: Kaiming): number {
  if (mode !== 'fan_in' && mode !== 'fan_out') throw new ArgumentError(`init: mode must be 'fan_in' or 'fan_out', got '${String(mode)}'.`)
  const fan = calculateFanInAndFanOut(tensor)[mode === 'fan_in' ? 0 : 1]
  return calculateGain(nonlinearity, a) / Math.sqrt(fan)
}

/** Uniform numbers whose variance suits ReLU networks (He et al., 2015). PyTorch's `init.kaiming_uniform_`. */
export function kaimingUniform_(tensor: Tensor, ...options: Trailing<[a: number], KaimingOptions>): Tensor {
  const given = readOptions('init.kaimingUniform_', KAIMING, options)
  checkTensor('init.kaimingUniform_', 'tensor', tensor)
  if (tensor.numel === 0) return tensor
  const bound = Math.sqrt(3) * kaimingStd(tensor, given)
  return uniform_(tensor, -bound, bound, { generator: given.generator })
}

/** Normal numbers whose variance suits ReLU networks (He et al., 2015). PyTorch's `init.kaiming_normal_`. */
export function kaimingNormal_(tensor: Tensor, ...options: Trailing<[a: number], KaimingOptions>): Tensor {
  const given = readOptions('init.kaimingNormal_', KAIMING, options)
  checkTensor('init.kaimingNormal_', 'tensor', tensor)
  return tensor.numel === 0 ? tensor : normal_(tensor, 0, kaimingStd(tensor, given), { generator: given.generator })
}

type Xavier = Required<XavierOptions>
const XAVIER: Xavier = { gain: 1, generator: null }

function checkGain(where: string, tensor: Tensor, gain: number): void {
  checkTensor(where, 'tensor', tensor)
  checkNumber(where, 'gain', gain, 'a number', () => true)
}

function xavierStd(tensor: Tensor, gain: number): number {
  const [fanIn, fanOut] = calculateFanInAndFanOut(tensor)
  return gain * Math.sqrt(2 / (fanIn + fanOut))
}

/** Uniform numbers that keep the variance both ways (Glorot and Bengio, 2010). PyTorch's `init.xavier_uniform_`. */
export function xavierUniform_(tensor: Tensor, ...options: Trailing<[gain: number], XavierOptions>): Tensor {
  const given = readOptions('init.xavierUniform_', XAVIER, options)
  checkGain('init.xavierUniform_', tensor, given.gain)
  const bound = Math.sqrt(3) * xavierStd(tensor, given.gain)
  return uniform_(tensor, -bound, bound, { generator: given.generator })
}

/** Normal numbers that keep the variance both ways (Glorot and Bengio, 2010). PyTorch's `init.xavier_normal_`. */
export function xavierNormal_(tensor: Tensor, ...options: Trailing<[gain: number], XavierOptions>): Tensor {
  const given = readOptions('init.xavierNormal_', XAVIER, options)
  checkGain('init.xavierNormal_', tensor, given.gain)
  return normal_(tensor, 0, xavierStd(tensor, given.gain), { generator: given.generator })
}

/** Options of `nn.init.truncNormal_`. */
export interface TruncNormalOptions extends DrawOptions {
  readonly mean?: number
  readonly std?: number
  /** The least and the greatest value; default -2 and 2. */
  readonly a?: number
  readonly b?: number
}

/** Fills with normal numbers, drawn again where they are out of bounds. PyTorch's `init.trunc_normal_`. */
export function truncNormal_(tensor: Tensor, ...options: Trailing<[mean: number, std: number, a: number, b: number], TruncNormalOptions>): Tensor {
  const { mean, std, a, b, generator } = readOptions('init.truncNormal_', { mean: 0, std: 1, a: -2, b: 2, generator: null }, options)
  for (const [name, value] of Object.entries({ mean, std, a, b }))
    checkArgument(typeof value === 'number', 'init.truncNormal_', name, 'a number', value)
  if (!(a < b)) throw new ArgumentError(`init.truncNormal_: a must be below b, got ${a} and ${b}.`)
  // The probability below a value, and the value of a probability.
  const below = (x: number): number => (1 + erf(full([], (x - mean) / std / Math.SQRT2, { dtype: 'float64' })).item()) / 2
  const [low, high] = [below(a), below(b)]
  return noGrad(() => {
    lateOperator<typeof UniformOperator>('torch.ops.tensorfx.uniform_')(tensor, 2 * low - 1, 2 * high - 1, { generator })
    return copy_(tensor, clamp(add(mul(erfinv(tensor), std * Math.SQRT2), mean), a, b))
  })
}

/** Makes a convolution's weight pass its input on: 1 in the middle of the window from channel i to channel i, in each group. PyTorch's `init.dirac_`. */
export function dirac_(tensor: Tensor, ...options: Trailing<[groups: number], { readonly groups?: number }>): Tensor {
  const { groups } = readOptions('init.dirac_', { groups: 1 }, options)
  checkTensor('init.dirac_', 'tensor', tensor)
  const [out, into, ...window] = tensor.shape
  if (out === undefined || into === undefined || window.length < 1 || window.length > 3)
    throw new ShapeError(`init.dirac_: expected the weight of a convolution, with 3 to 5 dimensions, got shape ${formatShape(tensor.shape)}.`)
  if (!Number.isInteger(groups) || groups < 1 || out % groups !== 0)
    throw new ArgumentError(`init.dirac_: groups must divide the ${out} output channels, got ${groups}.`)
  const each = out / groups
  return noGrad(() => {
    fill_(tensor, 0)
    for (let g = 0; g < groups; g++)
      for (let i = 0; i < Math.min(each, into); i++) {
        let place = tensor.select(0, g * each + i).select(0, i)
        for (const size of window) place = place.select(0, Math.floor(size / 2))
        fill_(place, 1)
      }
    return tensor
  })
}

/** Normal numbers, of which each column has this fraction of zeros (Martens, 2010). PyTorch's `init.sparse_`. */
export function sparse_(tensor: Tensor, sparsity: number, ...options: Trailing<[std: number], { readonly std?: number } & DrawOptions>): Tensor {
  const { std, generator } = readOptions('init.sparse_', { std: 0.01, generator: null }, options)
  checkTensor('init.sparse_', 'tensor', tensor)
  checkNumber('init.sparse_', 'sparsity', sparsity, 'a number from 0 to 1', (v) => v >= 0 && v <= 1)
  if (tensor.ndim !== 2) throw new ShapeError(`init.sparse_: expected a matrix, got shape ${formatShape(tensor.shape)}.`)
  const zeros = Math.ceil(sparsity * tensor.size(0))
  return noGrad(() => {
    lateOperator<typeof NormalOperator>('torch.ops.tensorfx.normal_')(tensor, 0, std, { generator })
    const chosen = argsort(rand(tensor.shape, { generator }), 0).narrow(0, 0, zeros)
    return copy_(tensor, scatter(tensor, 0, chosen, 0))
  })
}

/** A random orthogonal matrix times `gain`; of more dimensions, the later ones count as columns (Saxe et al., 2013). PyTorch's `init.orthogonal_`. */
export function orthogonal_(tensor: Tensor, ...options: Trailing<[gain: number], XavierOptions>): Tensor {
  const { gain, generator } = readOptions('init.orthogonal_', XAVIER, options)
  checkGain('init.orthogonal_', tensor, gain)
  if (tensor.ndim < 2) throw new ShapeError(`init.orthogonal_: expected at least 2 dimensions, got shape ${formatShape(tensor.shape)}.`)
  if (tensor.numel === 0) return tensor
  const rows = tensor.size(0)
  const columns = tensor.numel / rows
  const [long, short] = rows < columns ? [columns, rows] : [rows, columns]
  return noGrad(() => {
    // Gram and Schmidt, twice for precision.
    const vectors: Tensor[] = []
    for (const drawn of randn([short, long], { dtype: 'float64', generator }).unbind()) {
      let v = drawn
      for (let again = 0; again < 2; again++) for (const u of vectors) v = sub(v, mul(u, dot(u, v)))
      vectors.push(div(v, norm(v)))
    }
    const matrix = stack(vectors)
    return copy_(tensor, mul(reshape(rows < columns ? matrix : matrix.t(), tensor.shape), gain))
  })
}

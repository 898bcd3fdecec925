// Initial values of parameters, in place; PyTorch's torch.nn.init. Nothing here is recorded by autograd.
import { noGrad } from '../autograd/index.ts'
import { ArgumentError, ShapeError } from '../errors/index.ts'
import { copy_, eye, fill_, normal_ as drawNormal, uniform_ as drawUniform } from '../ops/index.ts'
import { checkOptions } from '../protocol/index.ts'
import { formatShape } from '../tensor/index.ts'
import type { Generator, Tensor } from '../tensor/index.ts'
import { readOptions } from './options.ts'
import type { Trailing } from './options.ts'

/** Activations that {@link calculateGain} knows, in PyTorch's spelling. */
export type Nonlinearity = 'linear' | 'conv1d' | 'conv2d' | 'sigmoid' | 'tanh' | 'relu' | 'leaky_relu' | 'selu'

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
  checkOptions('init.uniform_', options, { generator: true })
  return noGrad(() => drawUniform(tensor, from, to, { generator: options.generator ?? null }))
}

/** Fills with normal numbers. PyTorch's `init.normal_`. */
export function normal_(tensor: Tensor, mean = 0, std = 1, options: DrawOptions = {}): Tensor {
  checkOptions('init.normal_', options, { generator: true })
  return noGrad(() => drawNormal(tensor, mean, std, { generator: options.generator ?? null }))
}

/** Fills with one value. PyTorch's `init.constant_`. */
export function constant_(tensor: Tensor, value: number): Tensor {
  return noGrad(() => fill_(tensor, value))
}

/** Fills with 0. PyTorch's `init.zeros_`. */
export function zeros_(tensor: Tensor): Tensor {
  return constant_(tensor, 0)
}

/** Fills with 1. PyTorch's `init.ones_`. */
export function ones_(tensor: Tensor): Tensor {
  return constant_(tensor, 1)
}

/** Makes a matrix the identity. Throws ShapeError for other dimensions. PyTorch's `init.eye_`. */
export function eye_(tensor: Tensor): Tensor {
  const [rows, columns, ...others] = tensor.shape
  if (rows === undefined || columns === undefined || others.length > 0)
    throw new ShapeError(`init.eye_: expected a matrix, got shape ${formatShape(tensor.shape)}.`)
  return noGrad(() => copy_(tensor, eye(rows, columns)))
}

/** Connections into and out of one unit of a weight [out, in, ...window]. Throws ShapeError below two dimensions. PyTorch's `_calculate_fan_in_and_fan_out`. */
export function calculateFanInAndFanOut(tensor: Pick<Tensor, 'shape'>): readonly [fanIn: number, fanOut: number] {
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
  switch (nonlinearity) {
    case 'linear':
    case 'conv1d':
    case 'conv2d':
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
        `init.calculateGain: unknown nonlinearity '${String(nonlinearity)}'; choose one of linear, conv1d, conv2d, sigmoid, tanh, relu, leaky_relu or selu.`,
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
  if (tensor.numel === 0) return tensor
  const bound = Math.sqrt(3) * kaimingStd(tensor, given)
  return uniform_(tensor, -bound, bound, { generator: given.generator })
}

/** Normal numbers whose variance suits ReLU networks (He et al., 2015). PyTorch's `init.kaiming_normal_`. */
export function kaimingNormal_(tensor: Tensor, ...options: Trailing<[a: number], KaimingOptions>): Tensor {
  const given = readOptions('init.kaimingNormal_', KAIMING, options)
  return tensor.numel === 0 ? tensor : normal_(tensor, 0, kaimingStd(tensor, given), { generator: given.generator })
}

type Xavier = Required<XavierOptions>
const XAVIER: Xavier = { gain: 1, generator: null }

function xavierStd(tensor: Tensor, gain: number): number {
  const [fanIn, fanOut] = calculateFanInAndFanOut(tensor)
  return gain * Math.sqrt(2 / (fanIn + fanOut))
}

/** Uniform numbers that keep the variance both ways (Glorot and Bengio, 2010). PyTorch's `init.xavier_uniform_`. */
export function xavierUniform_(tensor: Tensor, ...options: Trailing<[gain: number], XavierOptions>): Tensor {
  const given = readOptions('init.xavierUniform_', XAVIER, options)
  const bound = Math.sqrt(3) * xavierStd(tensor, given.gain)
  return uniform_(tensor, -bound, bound, { generator: given.generator })
}

/** Normal numbers that keep the variance both ways (Glorot and Bengio, 2010). PyTorch's `init.xavier_normal_`. */
export function xavierNormal_(tensor: Tensor, ...options: Trailing<[gain: number], XavierOptions>): Tensor {
  const given = readOptions('init.xavierNormal_', XAVIER, options)
  return normal_(tensor, 0, xavierStd(tensor, given.gain), { generator: given.generator })
}

// Weights and inputs from a hash, so that models here and in the goldens are the same numbers without any file.
//
//   hash(i, seed)     x = (i + seed * 0x9E3779B9) mod 2^32, then three rounds of xor-shift and multiply
//   uniform(i, seed)  hash / 2^32 * 2 - 1, in [-1, 1)
import { noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import type { Module } from 'tensorfx/nn'

const { tensor } = torch

function hash(i: number, seed: number): number {
  let x = (i + Math.imul(seed, 0x9e3779b9)) >>> 0
  x ^= x >>> 16
  x = Math.imul(x, 0x85ebca6b)
  x ^= x >>> 13
  x = Math.imul(x, 0xc2b2ae35)
  x ^= x >>> 16
  return x >>> 0
}

const numel = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1)

// Loops, since `from` with a function takes twenty times as long, which counts for models of millions of weights.

/** `n` numbers in [-1, 1). */
export function uniform(n: number, seed: number): Float64Array {
  const values = new Float64Array(n)
  for (let i = 0; i < n; i++) values[i] = (hash(i, seed) / 4294967296) * 2 - 1
  return values
}

/** A float32 tensor of that shape, of what `f` makes of uniform numbers. */
function uniformTensor(shape: readonly number[], seed: number, f: (v: number) => number): Tensor {
  const values = uniform(numel(shape), seed)
  for (let i = 0; i < values.length; i++) values[i] = f(values[i] ?? 0)
  return tensor(new Float32Array(values)).view(shape)
}

/** A float32 tensor of uniform numbers, scaled and shifted. */
export function detInput(shape: readonly number[], seed: number, scale = 1, shift = 0): Tensor {
  return uniformTensor(shape, seed, (v) => v * scale + shift)
}

/** int64 tokens from 0 to n - 1. */
export function detTokens(shape: readonly number[], seed: number, n: number): Tensor {
  return tensor(
    Array.from({ length: numel(shape) }, (_, i) => hash(i, seed) % n),
    { dtype: 'int64' },
  ).view(shape)
}

/**
 * Sets a model's parameters and buffers by their place k = 1, 2, … in its state dict: matrices to uniform / sqrt(fan in), running variances and
 * one-dimensional weights around 1, other vectors around 0; integers are left alone.
 */
export function detInit<M extends Module>(model: M): M {
  let k = 0
  for (const [name, entry] of model.stateDict()) {
    k++
    const target = entry as unknown as Tensor
    if (!target.isFloatingPoint()) continue
    const around1 = name.endsWith('runningVar') || name.split('.').at(-1) === 'weight'
    const scale = Math.sqrt(target.numel / (target.shape[0] ?? 1))
    const values = uniformTensor(target.shape, k, target.ndim >= 2 ? (v) => v / scale : (v) => (around1 ? 1 : 0) + 0.1 * v)
    noGrad(() => target.copy_(values))
  }
  return model
}

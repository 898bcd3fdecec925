// Random tensors: each call draws a seed and an offset from a generator (in JavaScript) and calls a primitive of philox.ts on them.
import { ArgumentError } from '../errors/index.ts'
import type { DType } from '../kernels/index.ts'
import { defaultGenerator, formatShape } from '../tensor/index.ts'
import type { Generator, Tensor, TensorSpec } from '../tensor/index.ts'
import { defineOp } from './defineOp.ts'
import type { OpFunction } from './defineOp.ts'
import { isFloatDType, philoxInteger, philoxNormal, philoxPermutation, philoxUniform } from './philox.ts'
import { copy_ } from './pointwise/inplace.ts'
import { add, mul } from './pointwise/arithmetic.ts'
import { to } from './pointwise/cast.ts'
import { lt } from './pointwise/comparison.ts'

/** Options of random tensors. */
export interface RandomOptions {
  readonly generator?: Generator | null
  /** float32 (default) or float64 for rand and randn; any numeric one for randint. */
  readonly dtype?: DType | null
  readonly requiresGrad?: boolean
}

type Draw = readonly [number, number, number, number]

function draw(generator: Generator | null): Draw {
  const { seedLo, seedHi, offsetLo, offsetHi } = (generator ?? defaultGenerator).draw()
  return [seedLo, seedHi, offsetLo, offsetHi]
}

function checkFloat(op: string, dtype: DType | null): void {
  if (dtype !== null && !isFloatDType(dtype))
    throw new ArgumentError(`${op}: dtype must be float32 or float64, got ${dtype}. Use torch.randint for integers.`)
}

const finish = (out: Tensor, dtype: DType | null, requiresGrad: boolean): Tensor => {
  const result = dtype === null || dtype === out.dtype ? out : to(out, dtype)
  if (requiresGrad) result.requiresGrad = true
  return result
}

const OPTIONS = '*, Generator? generator=None, ScalarType? dtype=None, bool requires_grad=False'

/** Uniform random numbers in [0, 1). PyTorch's `torch.rand`. */
export const rand: OpFunction<(size: readonly number[], options?: RandomOptions) => Tensor> = defineOp({
  schema: `rand(int[] size, ${OPTIONS}) -> Tensor`,
  tags: ['random', 'creation'],
  meta: (size: readonly number[], _g: Generator | null, dtype: DType | null): TensorSpec => ({ shape: size, dtype: dtype ?? 'float32' }),
  decompose: (size: readonly number[], generator: Generator | null, dtype: DType | null, requiresGrad: boolean): Tensor => {
    checkFloat('torch.rand', dtype)
    return finish(philoxUniform(size, ...draw(generator)), dtype, requiresGrad)
  },
})

/** Random numbers of the normal distribution with mean 0 and variance 1. PyTorch's `torch.randn`. */
export const randn: OpFunction<(size: readonly number[], options?: RandomOptions) => Tensor> = defineOp({
  schema: `randn(int[] size, ${OPTIONS}) -> Tensor`,
  tags: ['random', 'creation'],
  meta: (size: readonly number[], _g: Generator | null, dtype: DType | null): TensorSpec => ({ shape: size, dtype: dtype ?? 'float32' }),
  decompose: (size: readonly number[], generator: Generator | null, dtype: DType | null, requiresGrad: boolean): Tensor => {
    checkFloat('torch.randn', dtype)
    return finish(philoxNormal(size, ...draw(generator)), dtype, requiresGrad)
  },
})

/** Uniform random integers from low (inclusive) to high (exclusive), int32 unless dtype says otherwise. PyTorch's `torch.randint`. */
export const randint: OpFunction<(low: number, high: number, size: readonly number[], options?: RandomOptions) => Tensor> = defineOp({
  schema: `randint(int low, int high, int[] size, ${OPTIONS}) -> Tensor`,
  tags: ['random', 'creation'],
  meta: (_low: number, _high: number, size: readonly number[], _g: Generator | null, dtype: DType | null): TensorSpec => ({
    shape: size,
    dtype: dtype ?? 'int32',
  }),
  decompose: (
    low: number,
    high: number,
    size: readonly number[],
    generator: Generator | null,
    dtype: DType | null,
    requiresGrad: boolean,
  ): Tensor => {
    const range = high - low
    if (!Number.isInteger(low) || !Number.isInteger(high) || range <= 0 || range > 2 ** 32 - 1) {
      throw new ArgumentError(`torch.randint: expected integers low < high, got low=${low} and high=${high}.`)
    }
    return finish(philoxInteger(size, low, range, ...draw(generator)), dtype, requiresGrad)
  },
})

/** The numbers 0 to n - 1 in random order, int32. PyTorch's `torch.randperm`. */
export const randperm: OpFunction<(n: number, options?: { readonly generator?: Generator | null }) => Tensor> = defineOp({
  schema: 'randperm(int n, *, Generator? generator=None) -> Tensor',
  tags: ['random', 'creation'],
  meta: (n: number): TensorSpec => ({ shape: [n], dtype: 'int32' }),
  decompose: (n: number, generator: Generator | null): Tensor => {
    if (!Number.isInteger(n) || n < 0) throw new ArgumentError(`torch.randperm: n must be a non-negative integer, got ${n}.`)
    return philoxPermutation(n, ...draw(generator))
  },
})

const floatLike = (self: Tensor, dtype: DType | null): DType => dtype ?? (isFloatDType(self.dtype) ? self.dtype : 'float32')

/** {@link rand} in the shape and dtype of `self`. PyTorch's `torch.rand_like`. */
export const randLike: OpFunction<(self: Tensor, options?: RandomOptions) => Tensor> = defineOp({
  schema: `rand_like(Tensor self, ${OPTIONS}) -> Tensor`,
  tags: ['random', 'creation'],
  meta: (self: Tensor, _g: Generator | null, dtype: DType | null): TensorSpec => ({ shape: self.shape, dtype: floatLike(self, dtype) }),
  decompose: (self: Tensor, generator: Generator | null, dtype: DType | null, requiresGrad: boolean): Tensor =>
    rand(self.shape, { generator, dtype: floatLike(self, dtype), requiresGrad }),
})

/** {@link randn} in the shape and dtype of `self`. PyTorch's `torch.randn_like`. */
export const randnLike: OpFunction<(self: Tensor, options?: RandomOptions) => Tensor> = defineOp({
  schema: `randn_like(Tensor self, ${OPTIONS}) -> Tensor`,
  tags: ['random', 'creation'],
  meta: (self: Tensor, _g: Generator | null, dtype: DType | null): TensorSpec => ({ shape: self.shape, dtype: floatLike(self, dtype) }),
  decompose: (self: Tensor, generator: Generator | null, dtype: DType | null, requiresGrad: boolean): Tensor =>
    randn(self.shape, { generator, dtype: floatLike(self, dtype), requiresGrad }),
})

/** 1 with the probability that `self` gives per element, else 0, in the dtype of `self`. PyTorch's `torch.bernoulli`. */
export const bernoulli: OpFunction<(self: Tensor, options?: { readonly generator?: Generator | null }) => Tensor> = defineOp({
  schema: 'bernoulli(Tensor self, *, Generator? generator=None) -> Tensor',
  method: true,
  tags: ['random'],
  meta: (self: Tensor): TensorSpec => ({ shape: self.shape, dtype: self.dtype }),
  decompose: (self: Tensor, generator: Generator | null): Tensor => {
    if (!isFloatDType(self.dtype))
      throw new ArgumentError(`torch.bernoulli: self holds probabilities and must be floating, got ${self.dtype} (shape ${formatShape(self.shape)}).`)
    return to(lt(philoxUniform(self.shape, ...draw(generator)), self), self.dtype)
  },
})

/** Fills `self` with uniform numbers in [from, to), in place. PyTorch's `Tensor.uniform_`. */
export const uniform_: OpFunction<(self: Tensor, from?: number, to?: number, options?: { readonly generator?: Generator | null }) => Tensor> =
  defineOp({
    schema: 'uniform_(Tensor(a!) self, float from=0, float to=1, *, Generator? generator=None) -> Tensor(a!)',
    namespace: 'torch.ops.tensorfx',
    method: true,
    tags: ['random', 'mutates'],
    meta: (self: Tensor): TensorSpec => ({ shape: self.shape, dtype: self.dtype }),
    decompose: (self: Tensor, from: number, end: number, generator: Generator | null): Tensor => {
      if (!(from <= end)) throw new ArgumentError(`uniform_: expected from <= to, got from=${from} and to=${end}.`)
      return copy_(self, add(mul(philoxUniform(self.shape, ...draw(generator)), end - from), from))
    },
  })

/** Fills `self` with normal numbers, in place. PyTorch's `Tensor.normal_`. */
export const normal_: OpFunction<(self: Tensor, mean?: number, std?: number, options?: { readonly generator?: Generator | null }) => Tensor> =
  defineOp({
    schema: 'normal_(Tensor(a!) self, float mean=0, float std=1, *, Generator? generator=None) -> Tensor(a!)',
    namespace: 'torch.ops.tensorfx',
    method: true,
    tags: ['random', 'mutates'],
    meta: (self: Tensor): TensorSpec => ({ shape: self.shape, dtype: self.dtype }),
    decompose: (self: Tensor, mean: number, std: number, generator: Generator | null): Tensor => {
      if (!(std >= 0)) throw new ArgumentError(`normal_: std must be >= 0, got ${std}.`)
      return copy_(self, add(mul(philoxNormal(self.shape, ...draw(generator)), std), mean))
    },
  })

declare module '../tensor/tensor.ts' {
  interface Tensor {
    /** {@link bernoulli} */
    bernoulli(options?: { readonly generator?: Generator | null }): Tensor
    /** {@link uniform_} */
    uniform_(from?: number, to?: number, options?: { readonly generator?: Generator | null }): Tensor
    /** {@link normal_} */
    normal_(mean?: number, std?: number, options?: { readonly generator?: Generator | null }): Tensor
  }
}

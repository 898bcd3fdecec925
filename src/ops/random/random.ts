// Random tensors. Each call draws a seed and an offset from a generator (in JavaScript), and calls a primitive of philox.ts with them.
import type { Size } from '../../protocol/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import { valueText } from '../../protocol/index.ts'
import { defaultGenerator, formatShape, getDefaultDtype } from '../../tensor/index.ts'
import type { Device, Generator, Tensor } from '../../tensor/index.ts'
import type { SizeArguments } from '../create/creation.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { philoxInteger, philoxNormal, philoxPermutation, philoxUniform } from './philox.ts'
import { asFloating } from '../eager/promotion.ts'
import { add, mul } from '../pointwise/arithmetic.ts'
import { to } from '../pointwise/cast.ts'
import { lt } from '../pointwise/comparison.ts'
import { copy_ } from '../pointwise/fill.ts'
import { floor } from '../pointwise/unary.ts'

/** Options of random tensors. */
export interface RandomOptions {
  /** Where the numbers come from. Default: the generator that `torch.manualSeed` seeds. */
  readonly generator?: Generator | null
  /** A floating-point one for rand and randn, by default the default dtype; any for randint, by default int64. */
  readonly dtype?: DType | null
  readonly requiresGrad?: boolean
  /** Where the tensor is: 'cpu' (default), or 'webgpu' with tensorfx/webgpu; the numbers are the same. */
  readonly device?: Device
}

type Draw = readonly [seedLo: number, seedHi: number, offsetLo: number, offsetHi: number]

function draw(generator: Generator | null): Draw {
  const { seedLo, seedHi, offsetLo, offsetHi } = (generator ?? defaultGenerator).draw()
  return [seedLo, seedHi, offsetLo, offsetHi]
}

function checkFloat(op: string, dtype: DType | null): void {
  if (dtype !== null && !dtypeInfo[dtype].floating)
    throw new ArgumentError(`${op}: dtype must be a floating-point one, got ${dtype}. Use torch.randint for integers.`)
}

const finish = (out: Tensor, dtype: DType, requiresGrad: boolean): Tensor => {
  const result = to(out, dtype)
  if (requiresGrad) result.requiresGrad = true
  return result
}

/** The bits of precision of the dtypes to which numbers near 1 would be rounded up. */
const PRECISION: Readonly<Partial<Record<DType, number>>> = { float16: 11, bfloat16: 8 }

/** Uniform numbers in [0, 1), which casting to `dtype` does not round up to 1. */
function uniform(size: readonly Size[], generator: Generator | null, dtype: DType): Tensor {
  const numbers = philoxUniform(size, ...draw(generator))
  const bits = PRECISION[dtype]
  return bits === undefined ? numbers : mul(floor(mul(numbers, 2 ** bits)), 2 ** -bits)
}

const OPTIONS = '*, Generator? generator=None, ScalarType? dtype=None, bool requires_grad=False'

/**
 * Uniform random numbers in [0, 1): `rand([2, 3])` or `rand(2, 3)`, with options at the end. PyTorch's `torch.rand`.
 *
 * Shape: `size`.
 *
 * @throws ArgumentError if `dtype` is not floating.
 * @example torch.rand([2, 3]).shape // [2, 3]
 */
export const rand: OpFunction<(...size: SizeArguments<RandomOptions>) => Tensor> = defineOp({
  schema: `rand(SymInt[] size, ${OPTIONS}) -> Tensor`,
  tags: ['random', 'creation'],
  meta: (size, _generator, dtype) => ({ shape: size, dtype: dtype ?? getDefaultDtype() }),
  decompose: (size, generator, dtype, requiresGrad) => {
    checkFloat('torch.rand', dtype)
    return finish(uniform(size, generator, dtype ?? getDefaultDtype()), dtype ?? getDefaultDtype(), requiresGrad)
  },
})

/**
 * Random numbers of the normal distribution with mean 0 and variance 1: `randn([2, 3])` or `randn(2, 3)`, with options at the end. PyTorch's `torch.randn`.
 *
 * Shape: `size`.
 *
 * @throws ArgumentError if `dtype` is not floating.
 * @example torch.randn([2, 3]).shape // [2, 3]
 */
export const randn: OpFunction<(...size: SizeArguments<RandomOptions>) => Tensor> = defineOp({
  schema: `randn(SymInt[] size, ${OPTIONS}) -> Tensor`,
  tags: ['random', 'creation'],
  meta: (size, _generator, dtype) => ({ shape: size, dtype: dtype ?? getDefaultDtype() }),
  decompose: (size, generator, dtype, requiresGrad) => {
    checkFloat('torch.randn', dtype)
    return finish(philoxNormal(size, ...draw(generator)), dtype ?? getDefaultDtype(), requiresGrad)
  },
})

/** The bounds and the shape of randint, which may be called without `low`. Throws ArgumentError if they are none. */
function integersOf(low: number, high: unknown, size: readonly Size[] | null): readonly [low: number, range: number, size: readonly Size[]] {
  const [from, to, shape] = Array.isArray(high) && size === null ? [0, low, high] : [low, high, size]
  if (shape === null) throw new ArgumentError("torch.randint: argument 'size' is missing; write torch.randint(low, high, [2, 3]).")
  const range = typeof to === 'number' ? to - from : NaN
  if (!Number.isInteger(from) || !Number.isInteger(range) || range <= 0 || range > 2 ** 32 - 1)
    throw new ArgumentError(`torch.randint: expected integers low < high, got low=${from} and high=${valueText(to)}.`)
  return [from, range, shape]
}

/**
 * Uniform random integers from `low` (included) to `high` (excluded); int64 unless `dtype` says otherwise. With one number, from 0 to below it. PyTorch's `torch.randint`.
 *
 * Shape: `size`.
 *
 * @throws ArgumentError unless `low` and `high` are integers with low < high.
 * @example torch.randint(7, 8, [3]).toArray() // [7, 7, 7]
 * torch.randint(1, [2]).toArray() // [0, 0]
 */
export const randint: OpFunction<{
  (high: number, size: readonly Size[], options?: RandomOptions): Tensor
  (low: number, high: number, size: readonly Size[], options?: RandomOptions): Tensor
}> = defineOp({
  schema: `randint(int low=0, any high=None, SymInt[]? size=None, ${OPTIONS}) -> Tensor`,
  tags: ['random', 'creation'],
  meta: (low, high, size, _generator, dtype) => ({ shape: integersOf(low, high, size)[2], dtype: dtype ?? 'int64' }),
  decompose: (low, high, size, generator, dtype, requiresGrad) => {
    const [from, range, shape] = integersOf(low, high, size)
    return finish(philoxInteger(shape, from, range, ...draw(generator)), dtype ?? 'int64', requiresGrad)
  },
})

/**
 * The numbers 0 to n - 1 in random order. PyTorch's `torch.randperm`.
 *
 * Shape: [n]. The result is int64 unless `dtype` says otherwise.
 *
 * @throws ArgumentError if `n` is negative.
 * @example torch.randperm(4).sum().item() // 6
 */
export const randperm: OpFunction<(n: number, options?: RandomOptions) => Tensor> = defineOp({
  schema: `randperm(int n, ${OPTIONS}) -> Tensor`,
  tags: ['random', 'creation'],
  meta: (n, _generator, dtype) => ({ shape: [n], dtype: dtype ?? 'int64' }),
  decompose: (n, generator, dtype, requiresGrad) => {
    if (!Number.isInteger(n) || n < 0) throw new ArgumentError(`torch.randperm: n must be a non-negative integer, got ${n}.`)
    return finish(philoxPermutation(n, ...draw(generator)), dtype ?? 'int64', requiresGrad)
  },
})

const floatLike = (self: Tensor, dtype: DType | null): DType => dtype ?? asFloating(self.dtype)

/**
 * {@link rand} in the shape and dtype of `self`. PyTorch's `torch.rand_like`.
 *
 * Shape: that of `self`; integers give the default dtype.
 *
 * @throws ArgumentError if `dtype` is not floating.
 * @example torch.randLike(torch.zeros([2, 3])).shape // [2, 3]
 */
export const randLike: OpFunction<(self: Tensor, options?: RandomOptions) => Tensor> = defineOp({
  schema: `rand_like(Tensor self, ${OPTIONS}) -> Tensor`,
  tags: ['random', 'creation'],
  meta: (self, _generator, dtype) => ({ shape: self.symSizes, dtype: floatLike(self, dtype) }),
  decompose: (self, generator, dtype, requiresGrad) => rand(self.symSizes, { generator, dtype: floatLike(self, dtype), requiresGrad }),
})

/**
 * {@link randint} in the shape and dtype of `self`; with one number, from 0 to below it. PyTorch's `torch.randint_like`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError unless `low` and `high` are integers with low < high.
 * @example torch.randintLike(torch.zeros([2]), 7, 8).toArray() // [7, 7]
 */
export const randintLike: OpFunction<{
  (self: Tensor, high: number, options?: RandomOptions): Tensor
  (self: Tensor, low: number, high: number, options?: RandomOptions): Tensor
}> = defineOp({
  schema: `randint_like(Tensor self, int low, int? high=None, ${OPTIONS}) -> Tensor`,
  tags: ['random', 'creation'],
  meta: (self, _low, _high, _generator, dtype) => ({ shape: self.symSizes, dtype: dtype ?? self.dtype }),
  decompose: (self, low, high, generator, dtype, requiresGrad) =>
    randint(high === null ? 0 : low, high ?? low, self.symSizes, { generator, dtype: dtype ?? self.dtype, requiresGrad }),
})

/**
 * {@link randn} in the shape and dtype of `self`. PyTorch's `torch.randn_like`.
 *
 * Shape: that of `self`; integers give the default dtype.
 *
 * @throws ArgumentError if `dtype` is not floating.
 * @example torch.randnLike(torch.zeros([2, 3])).shape // [2, 3]
 */
export const randnLike: OpFunction<(self: Tensor, options?: RandomOptions) => Tensor> = defineOp({
  schema: `randn_like(Tensor self, ${OPTIONS}) -> Tensor`,
  tags: ['random', 'creation'],
  meta: (self, _generator, dtype) => ({ shape: self.symSizes, dtype: floatLike(self, dtype) }),
  decompose: (self, generator, dtype, requiresGrad) => randn(self.symSizes, { generator, dtype: floatLike(self, dtype), requiresGrad }),
})

/**
 * 1 with the probability that `self` gives for each element, or with the probability `p` everywhere, else 0. PyTorch's `torch.bernoulli`.
 *
 * Shape: that of `self`, and its dtype.
 *
 * @throws ArgumentError if there is no `p` and `self` is not floating.
 * @example torch.bernoulli(torch.tensor([0, 1])).toArray() // [0, 1]
 */
export const bernoulli: Op['bernoulli'] = defineOp({
  schema: 'bernoulli(Tensor self, float? p=None, *, Generator? generator=None) -> Tensor',
  method: true,
  tags: ['random'],
  meta: (self) => ({ shape: self.symSizes, dtype: self.dtype }),
  decompose: (self, p, generator) => {
    if (p === null && !dtypeInfo[self.dtype].floating)
      throw new ArgumentError(
        `torch.bernoulli: self holds probabilities and must be floating, got ${self.dtype} (shape ${formatShape(self.symSizes)}).`,
      )
    return to(lt(philoxUniform(self.symSizes, ...draw(generator)), p ?? self), self.dtype)
  },
})

/**
 * Fills `self` with uniform random numbers in [from, to). PyTorch's `Tensor.uniform_`.
 *
 * Shape: that of `self`. Returns `self`.
 *
 * @throws ArgumentError unless from <= to.
 * @example torch.zeros([2]).uniform_(3, 3).toArray() // [3, 3]
 */
export const uniform_: Op['uniform_'] = defineOp({
  schema: 'uniform_(Tensor(a!) self, float from=0, float to=1, *, Generator? generator=None) -> Tensor(a!)',
  namespace: 'torch.ops.tensorfx',
  method: true,
  tags: ['random', 'mutates'],
  meta: (self) => ({ shape: self.symSizes, dtype: self.dtype }),
  decompose: (self, from, end, generator) => {
    if (!(from <= end)) throw new ArgumentError(`uniform_: expected from <= to, got from=${from} and to=${end}.`)
    return copy_(self, add(mul(uniform(self.symSizes, generator, self.dtype), end - from), from))
  },
})

/**
 * Fills `self` with random numbers of a normal distribution. PyTorch's `Tensor.normal_`.
 *
 * Shape: that of `self`. Returns `self`.
 *
 * @throws ArgumentError if `std` is negative.
 * @example torch.zeros([2]).normal_(3, 0).toArray() // [3, 3]
 */
export const normal_: Op['normal_'] = defineOp({
  schema: 'normal_(Tensor(a!) self, float mean=0, float std=1, *, Generator? generator=None) -> Tensor(a!)',
  namespace: 'torch.ops.tensorfx',
  method: true,
  tags: ['random', 'mutates'],
  meta: (self) => ({ shape: self.symSizes, dtype: self.dtype }),
  decompose: (self, mean, std, generator) => {
    if (!(std >= 0)) throw new ArgumentError(`normal_: std must be >= 0, got ${std}.`)
    return copy_(self, add(mul(philoxNormal(self.symSizes, ...draw(generator)), std), mean))
  },
})

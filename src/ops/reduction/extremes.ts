// Greatest and least values, and where they stand.
import {
  assign,
  bufferParam,
  call,
  cast,
  compileKernel,
  constant,
  declare,
  dtypeInfo,
  forLoop,
  iota,
  load,
  local,
  loopVar,
  read,
  sizeParam,
  store,
} from '../../kernels/index.ts'
import type { CompiledKernel, DType, Index } from '../../kernels/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { Tensor, wrapDim } from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'
import { launch } from '../eager/launch.ts'
import { div, maximum, minimum, mul } from '../pointwise/arithmetic.ts'
import { eq } from '../pointwise/comparison.ts'
import { to } from '../pointwise/cast.ts'
import { contiguous, gather, squeeze, unsqueeze } from '../view/index.ts'
import { sum, withReducedDims } from './sum.ts'
import type { ReductionOptions } from './sum.ts'

type Dims = number | readonly number[] | null

/** Gradient of amax and amin: shared evenly among equal extremes. */
function extremeGradient(g: Tensor, x: Tensor, out: Tensor, dim: Dims, keepdim: boolean): Tensor {
  const hits = to(eq(x, withReducedDims(out, x, dim, keepdim)), g.dtype)
  return mul(div(hits, sum(hits, dim, true)), withReducedDims(g, x, dim, keepdim))
}

/** Greatest value over `dim`. PyTorch's `torch.amax`. */
export const amax: OpFunction<(self: Tensor, dim?: Dims | ReductionOptions, keepdim?: boolean) => Tensor> = defineOp({
  schema: 'amax(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor',
  method: true,
  reduction: { combine: 'max', dtype: (d: DType): DType => d },
  derivative: ([g], { args: [x, dim, keepdim], outputs: [out] }) => [
    extremeGradient(g as Tensor, x as Tensor, out as Tensor, dim as Dims, keepdim as boolean),
    null,
    null,
  ],
})

/** Least value over `dim`. PyTorch's `torch.amin`. */
export const amin: OpFunction<(self: Tensor, dim?: Dims | ReductionOptions, keepdim?: boolean) => Tensor> = defineOp({
  schema: 'amin(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor',
  method: true,
  reduction: { combine: 'min', dtype: (d: DType): DType => d },
  derivative: ([g], { args: [x, dim, keepdim], outputs: [out] }) => [
    extremeGradient(g as Tensor, x as Tensor, out as Tensor, dim as Dims, keepdim as boolean),
    null,
    null,
  ],
})

/** Whether any element is not zero. PyTorch's `torch.any`. */
export const any: OpFunction<(self: Tensor, dim?: Dims | ReductionOptions, keepdim?: boolean) => Tensor> = defineOp({
  schema: 'any(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor',
  method: true,
  decompose: (self: Tensor, dim: Dims, keepdim: boolean): Tensor => to(amax(to(to(self, 'bool'), 'int32'), dim, keepdim), 'bool'),
})

/** Whether all elements are not zero. PyTorch's `torch.all`. */
export const all: OpFunction<(self: Tensor, dim?: Dims | ReductionOptions, keepdim?: boolean) => Tensor> = defineOp({
  schema: 'all(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor',
  method: true,
  decompose: (self: Tensor, dim: Dims, keepdim: boolean): Tensor => to(amin(to(to(self, 'bool'), 'int32'), dim, keepdim), 'bool'),
})

function argSpec(op: string, self: Tensor, dim: number | null, keepdim: boolean): TensorSpec {
  if (self.numel === 0) throw new ArgumentError(`${op}: the tensor has no elements (shape [${self.shape.join(', ')}]).`)
  if (dim === null) return { shape: keepdim ? self.shape.map(() => 1) : [], dtype: 'int32' }
  const at = wrapDim(op, dim, self.ndim)
  return { shape: self.shape.flatMap((n, i) => (i === at ? (keepdim ? [1] : []) : [n])), dtype: 'int32' }
}

const kernels = new Map<string, CompiledKernel>()

/** Index of the first extreme of each line of [outer, n, inner]; NaN counts as extreme. */
function argKernel(dtype: DType, greatest: boolean): CompiledKernel {
  const key = `${dtype} ${greatest}`
  let kernel = kernels.get(key)
  if (kernel !== undefined) return kernel
  const [outer, n, inner] = [sizeParam('outer'), sizeParam('n'), sizeParam('inner')]
  const lineSize = sizeParam('line')
  const [o, i, k] = [loopVar('o', outer), loopVar('i', inner), loopVar('k', n)]
  const out = bufferParam('out', 'int32', 'write')
  const a = bufferParam('a', dtype)
  const wide: DType = dtype === 'bool' ? 'int32' : dtype
  const index = (withK: boolean): Index => ({
    base: 0,
    terms: [{ loop: o, stride: lineSize }, ...(withK ? [{ loop: k, stride: inner }] : []), { loop: i, stride: 1 }],
    dynamic: [],
  })
  const best = local('best', wide)
  const where = local('where', 'int32')
  const value = cast(load(a, index(true)), wide)
  const better = call(greatest ? 'gt' : 'lt', value, read(best))
  const nan = dtypeInfo[wide].floating ? call('and', call('ne', value, value), call('eq', read(best), read(best))) : null
  const wins = nan === null ? better : call('or', better, nan)
  const taken = local('taken', 'bool')
  kernel = compileKernel({
    name: greatest ? 'argmax' : 'argmin',
    params: [out, a, outer, n, inner, lineSize],
    body: [
      forLoop(o, 'serial', [
        forLoop(i, 'serial', [
          declare(best, cast(load(a, index(false)), wide)),
          declare(where, constant('int32', 0)),
          forLoop(k, 'serial', [
            declare(taken, wins),
            assign(where, call('where', read(taken), iota(k), read(where))),
            assign(best, call('where', read(taken), value, read(best))),
          ]),
          store(
            out,
            {
              base: 0,
              terms: [
                { loop: o, stride: inner },
                { loop: i, stride: 1 },
              ],
              dynamic: [],
            },
            read(where),
          ),
        ]),
      ]),
    ],
  })
  kernels.set(key, kernel)
  return kernel
}

function launchArg(op: string, self: Tensor, dim: number | null, keepdim: boolean, greatest: boolean): Tensor {
  const spec = argSpec(op, self, dim, keepdim)
  const x = contiguous(self)
  const out = Tensor.empty(spec.shape, 'int32')
  const at = dim === null ? 0 : wrapDim(op, dim, self.ndim)
  const n = dim === null || self.ndim === 0 ? self.numel : (self.shape[at] as number)
  const inner = dim === null ? 1 : self.shape.slice(at + 1).reduce((p, q) => p * q, 1)
  launch(argKernel(self.dtype, greatest), [out, x], [self.numel / (n * inner), n, inner, n * inner])
  return out
}

type ArgOptions = { readonly dim?: number | null; readonly keepdim?: boolean }

/** Index of the greatest value over `dim`, or in the flattened tensor. int32. PyTorch's `torch.argmax`. */
export const argmax: OpFunction<(self: Tensor, dim?: number | null | ArgOptions, keepdim?: boolean) => Tensor> = defineOp({
  schema: 'argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor',
  method: true,
  meta: (self: Tensor, dim: number | null, keepdim: boolean) => argSpec('torch.argmax', self, dim, keepdim),
  kernel: (self: Tensor, dim: number | null, keepdim: boolean): Tensor => launchArg('torch.argmax', self, dim, keepdim, true),
})

/** Index of the least value over `dim`, or in the flattened tensor. int32. PyTorch's `torch.argmin`. */
export const argmin: OpFunction<(self: Tensor, dim?: number | null | ArgOptions, keepdim?: boolean) => Tensor> = defineOp({
  schema: 'argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor',
  method: true,
  meta: (self: Tensor, dim: number | null, keepdim: boolean) => argSpec('torch.argmin', self, dim, keepdim),
  kernel: (self: Tensor, dim: number | null, keepdim: boolean): Tensor => launchArg('torch.argmin', self, dim, keepdim, false),
})

type Extreme = {
  (self: Tensor): Tensor
  (self: Tensor, other: Tensor): Tensor
  (self: Tensor, dim: number | { readonly dim: number; readonly keepdim?: boolean }, keepdim?: boolean): readonly Tensor[]
}

function checkDim(op: string, dim: unknown): number {
  if (typeof dim === 'number' && Number.isInteger(dim)) return dim
  throw new ArgumentError(`${op}: argument 'dim' must be an integer, or a Tensor to compare with, got ${typeof dim}.`)
}

/** The pair of values and indices along one dimension. */
function valuesAndIndices(self: Tensor, dim: number, keepdim: boolean, indices: Tensor): readonly Tensor[] {
  const full = keepdim || self.ndim === 0 ? indices : unsqueeze(indices, dim)
  const values = self.ndim === 0 ? self : gather(self, dim, full)
  return [keepdim || self.ndim === 0 ? values : squeeze(values, dim), indices]
}

/** Greatest of all values; with `dim` [values, indices] along it; with another tensor the elementwise maximum. PyTorch's `torch.max`. */
export const max: OpFunction<Extreme> = defineOp({
  schema: 'max(Tensor self, any dim=None, bool keepdim=False) -> any',
  method: true,
  decompose: (self: Tensor, dim: number | null | Tensor, keepdim: boolean) => {
    if (dim === null) return amax(self)
    if (dim instanceof Tensor) return maximum(self, dim)
    return valuesAndIndices(self, dim, keepdim, argmax(self, checkDim('torch.max', dim), keepdim))
  },
})

/** Least of all values; with `dim` [values, indices] along it; with another tensor the elementwise minimum. PyTorch's `torch.min`. */
export const min: OpFunction<Extreme> = defineOp({
  schema: 'min(Tensor self, any dim=None, bool keepdim=False) -> any',
  method: true,
  decompose: (self: Tensor, dim: number | null | Tensor, keepdim: boolean) => {
    if (dim === null) return amin(self)
    if (dim instanceof Tensor) return minimum(self, dim)
    return valuesAndIndices(self, dim, keepdim, argmin(self, checkDim('torch.min', dim), keepdim))
  },
})

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    amax(dim?: number | readonly number[] | null | ReductionOptions, keepdim?: boolean): Tensor
    amin(dim?: number | readonly number[] | null | ReductionOptions, keepdim?: boolean): Tensor
    any(dim?: number | readonly number[] | null | ReductionOptions, keepdim?: boolean): Tensor
    all(dim?: number | readonly number[] | null | ReductionOptions, keepdim?: boolean): Tensor
    argmax(dim?: number | null | { readonly dim?: number | null; readonly keepdim?: boolean }, keepdim?: boolean): Tensor
    argmin(dim?: number | null | { readonly dim?: number | null; readonly keepdim?: boolean }, keepdim?: boolean): Tensor
    max(): Tensor
    max(other: Tensor): Tensor
    max(dim: number | { readonly dim: number; readonly keepdim?: boolean }, keepdim?: boolean): readonly Tensor[]
    min(): Tensor
    min(other: Tensor): Tensor
    min(dim: number | { readonly dim: number; readonly keepdim?: boolean }, keepdim?: boolean): readonly Tensor[]
  }
}

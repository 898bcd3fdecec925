// Where the greatest and the least values are: argmax, argmin.
import type { Size } from '../../protocol/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import {
  assign,
  at,
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
import type { CompiledKernel, DType } from '../../kernels/index.ts'
import { numbersOf, sizeEq, Tensor, wrapDim } from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import { kernelCache, launch } from '../eager/launch.ts'
import { linesOf } from '../shared/shapes.ts'
import { contiguous } from '../view/reshape.ts'

function argSpec(op: string, self: Tensor, dim: number | null, keepdim: boolean): TensorSpec<Size> {
  if (sizeEq(self.symNumel, 0)) throw new ArgumentError(`${op}: the tensor has no elements (shape [${self.symSizes.join(', ')}]).`)
  if (dim === null) return { shape: keepdim ? self.symSizes.map(() => 1) : [], dtype: 'int64' }
  const wrapped = wrapDim(op, dim, self.ndim)
  return { shape: self.symSizes.flatMap((n, i) => (i === wrapped ? (keepdim ? [1] : []) : [n])), dtype: 'int64' }
}

/** Index of the first extreme of each line of [outer, n, inner]; NaN counts as extreme. */
const kernelOf = kernelCache((dtype: DType, greatest: boolean): CompiledKernel => {
  const [outer, n, inner, lineSize] = [sizeParam('outer'), sizeParam('n'), sizeParam('inner'), sizeParam('line')]
  const [o, i, k] = [loopVar('o', outer), loopVar('i', inner), loopVar('k', n)]
  const out = bufferParam('out', 'int64', 'write')
  const a = bufferParam('a', dtype)
  const wide: DType = dtype === 'bool' ? 'int32' : dtype
  const [best, where, taken] = [local('best', wide), local('where', 'int32'), local('taken', 'bool')]
  const first = cast(load(a, at([o, lineSize], [i, 1])), wide)
  const value = cast(load(a, at([o, lineSize], [k, inner], [i, 1])), wide)
  const better = call(greatest ? 'gt' : 'lt', value, read(best))
  const firstNaN = call('and', call('ne', value, value), call('eq', read(best), read(best)))
  return compileKernel({
    name: greatest ? 'argmax' : 'argmin',
    params: [out, a, outer, n, inner, lineSize],
    body: [
      forLoop(o, 'serial', [
        forLoop(i, 'serial', [
          declare(best, first),
          declare(where, constant('int32', 0)),
          forLoop(k, 'serial', [
            declare(taken, dtypeInfo[wide].floating ? call('or', better, firstNaN) : better),
            assign(where, call('where', read(taken), iota(k), read(where))),
            assign(best, call('where', read(taken), value, read(best))),
          ]),
          store(out, at([o, inner], [i, 1]), cast(read(where), 'int64')),
        ]),
      ]),
    ],
  })
})

function launchArg(op: string, self: Tensor, dim: number | null, keepdim: boolean, greatest: boolean): Tensor {
  const { shape } = numbersOf(argSpec(op, self, dim, keepdim))
  const out = Tensor.empty(shape, 'int64')
  const [outer, n, inner] = dim === null ? [1, self.numel, 1] : linesOf(self.sizes, wrapDim(op, dim, self.ndim))
  launch(kernelOf(self.dtype, greatest), [out, contiguous(self)], [outer, n, inner, n * inner])
  return out
}

/** Options of {@link argmax} and {@link argmin}. */
export interface ArgExtremeOptions {
  readonly dim?: number | null
  readonly keepdim?: boolean
}

/**
 * The index of the greatest value along `dim`, or in the flattened tensor; the first one of equals. PyTorch's `torch.argmax`.
 *
 * Shape: that of `self` without `dim`; with `keepdim` it stays, with size 1. The result is int64.
 *
 * @throws ArgumentError if `self` has no elements.
 * @throws ShapeError if `dim` is out of range.
 * @example torch.argmax(torch.tensor([[1, 5], [7, 2]]), 1).toArray() // [1, 0]
 */
export const argmax: OpFunction<(self: Tensor, dim?: number | null | ArgExtremeOptions, keepdim?: boolean) => Tensor> = defineOp({
  schema: 'argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor',
  method: true,
  vmap: 'argExtreme',
  onnx: 'argMax',
  autocast: 'as is',
  meta: (self, dim, keepdim) => argSpec('torch.argmax', self, dim, keepdim),
  kernel: (self, dim, keepdim) => launchArg('torch.argmax', self, dim, keepdim, true),
})

/**
 * The index of the least value along `dim`, or in the flattened tensor; the first one of equals. PyTorch's `torch.argmin`.
 *
 * Shape: that of `self` without `dim`; with `keepdim` it stays, with size 1. The result is int64.
 *
 * @throws ArgumentError if `self` has no elements.
 * @throws ShapeError if `dim` is out of range.
 * @example torch.argmin(torch.tensor([[1, 5], [7, 2]])).item() // 0
 */
export const argmin: OpFunction<(self: Tensor, dim?: number | null | ArgExtremeOptions, keepdim?: boolean) => Tensor> = defineOp({
  schema: 'argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor',
  method: true,
  vmap: 'argExtreme',
  onnx: 'argMin',
  autocast: 'as is',
  meta: (self, dim, keepdim) => argSpec('torch.argmin', self, dim, keepdim),
  kernel: (self, dim, keepdim) => launchArg('torch.argmin', self, dim, keepdim, false),
})

// Softmax and its logarithm in one kernel: each line is read for its maximum, for the sum of the exponentials, and for the result, while it is in the cache.
import {
  accumulate,
  at,
  bufferParam,
  call,
  compileKernel,
  constant,
  declare,
  forLoop,
  identityOf,
  isStrict,
  load,
  local,
  loopVar,
  read,
  sizeParam,
  sizeProduct,
  store,
} from '../../kernels/index.ts'
import type { CompiledKernel, DType, Expr, Index, LoopVar, Stmt } from '../../kernels/index.ts'
import { Tensor, numelOf, wrapDim } from '../../tensor/index.ts'
import { kernelCache, launch } from '../eager/launch.ts'
import { sizeAt } from '../shared/shapes.ts'
import { contiguous } from '../view/reshape.ts'

type Kind = 'softmax' | 'log_softmax'

/**
 * Lanes run along lines whose elements are neighbours, or over neighbouring lines. Params: result, input, lines or blocks of them, elements of a line, and without `alongLines` the
 * lines of a block.
 */
const linesKernel = kernelCache((kind: Kind, dtype: DType, alongLines: boolean): CompiledKernel => {
  const [out, x] = [bufferParam('out', dtype, 'readwrite'), bufferParam('x', dtype)]
  const [outer, n, lines] = [sizeParam('outer'), sizeParam('n'), sizeParam('lines')]
  const step = alongLines ? 1 : lines
  const [o, line] = [loopVar('o', outer), loopVar('line', lines)]
  const [greatest, sum, logarithm, inverse] = [local('greatest', dtype), local('sum', dtype), local('logarithm', dtype), local('inverse', dtype)]
  const pass = (name: string, body: (place: Index) => readonly Stmt[]): Stmt => {
    const c: LoopVar = loopVar(name, n)
    return forLoop(c, alongLines ? 'simd' : 'serial', body(at([o, sizeProduct(n, step)], [c, step], ...(alongLines ? [] : [[line, 1] as const]))))
  }
  const shifted = (place: Index): Expr => call('sub', load(x, place), read(greatest))
  const body = [
    declare(greatest, identityOf('max', dtype)),
    pass('c0', (place) => [accumulate(greatest, 'max', load(x, place))]),
    declare(sum, constant(dtype, 0)),
    ...(kind === 'softmax' ? ofExponentials() : ofLogarithms()),
  ]

  function ofExponentials(): readonly Stmt[] {
    const exponentials = pass('c1', (place) => {
      const power = call('exp', shifted(place))
      return [store(out, place, power), accumulate(sum, 'add', power)]
    })
    if (dtype !== 'float32' || isStrict()) return [exponentials, pass('c2', (place) => [store(out, place, call('div', load(out, place), read(sum)))])]
    const invert = declare(inverse, call('div', constant(dtype, 1), read(sum)))
    return [exponentials, invert, pass('c2', (place) => [store(out, place, call('mul', load(out, place), read(inverse)))])]
  }

  function ofLogarithms(): readonly Stmt[] {
    return [
      pass('c1', (place) => [accumulate(sum, 'add', call('exp', shifted(place)))]),
      declare(logarithm, call('log', read(sum))),
      pass('c2', (place) => [store(out, place, call('sub', shifted(place), read(logarithm)))]),
    ]
  }

  return compileKernel({
    name: kind,
    params: [out, x, outer, n, ...(alongLines ? [] : [lines])],
    body: [forLoop(o, 'serial', alongLines ? body : [forLoop(line, 'simd', body)])],
  })
})

/** Softmax, or its logarithm, of the lines along a dimension of a float32 or float64 tensor. */
export function softmaxOfLines(kind: Kind, self: Tensor, dim: number): Tensor {
  const out = Tensor.empty(self.sizes, self.dtype)
  if (self.numel === 0) return out
  const d = wrapDim(kind, dim, self.ndim)
  const n = self.ndim === 0 ? 1 : sizeAt(self.sizes, d)
  const lines = numelOf(self.sizes.slice(d + 1))
  const outer = self.numel / (n * lines)
  launch(linesKernel(kind, self.dtype, lines === 1), [out, contiguous(self)], lines === 1 ? [outer, n] : [outer, n, lines])
  return out
}

// Kernels that compute a formula of complex numbers in one pass over their pairs. The formula is that of the operators: they run once on fake tensors, and what each computes of an element is put
// together. They run where nothing but the caller hears of the operators in between; otherwise the formula itself is called.
import { isWatched, withMode } from '../../dispatch/index.ts'
import type { Arg, DispatchMode, OpDef, PointwiseArg, Result } from '../../dispatch/index.ts'
import { InternalError } from '../../errors/index.ts'
import {
  bufferParam,
  cast,
  compileKernel,
  constant,
  load,
  loopVar,
  pointwiseKernel,
  realDType,
  rounded,
  sizeParam,
  store,
} from '../../kernels/index.ts'
import type { CompiledKernel, DType, Expr, Index } from '../../kernels/index.ts'
import { Tensor, pairsOf } from '../../tensor/index.ts'
import { kernelCache, launch } from '../eager/launch.ts'
import { pointwiseDTypes } from '../eager/pointwiseTypes.ts'
import type { Parts } from './elementary.ts'
import type { ComplexTensor } from './parts.ts'
import { fromPairs } from './views.ts'

type Formula = (...operands: readonly Parts[]) => Parts

/** Gives for each operator a fake tensor, and keeps what its element is computed of. */
class Recorder implements DispatchMode {
  readonly name = 'formulas of complex numbers'
  readonly #values = new Map<Tensor, Expr>()

  operand(dtype: DType, value: Expr): Tensor {
    const fake = Tensor.fake({ shape: [], dtype })
    this.#values.set(fake, value)
    return fake
  }

  valueOf(tensor: Tensor): Expr {
    const value = this.#values.get(tensor)
    if (value === undefined) throw new InternalError('a formula of complex numbers has a tensor that is no operand')
    return value
  }

  handle(op: OpDef, args: readonly Arg[]): Result {
    const [self] = args
    if (op.qualname === 'torch.detach' && self instanceof Tensor) return self
    const rule = op.pointwise
    if (rule === null) throw new InternalError(`${op.qualname} is no part of a formula of complex numbers`)
    const { compute, result } = pointwiseDTypes(op, args)
    const operands = args.map((arg, i): PointwiseArg => {
      if (arg instanceof Tensor) return cast(this.valueOf(arg), compute)
      const isBaked = typeof arg !== 'number' || rule.baked?.includes(op.schema.args[i]?.name ?? '') === true
      return isBaked ? arg : constant(compute, rounded(compute, arg))
    })
    return this.operand(result, cast(rule.compute(...operands), result))
  }
}

const kernelOf = (formula: Formula, count: number): ((dtype: DType) => CompiledKernel) =>
  kernelCache((dtype: DType): CompiledKernel => {
    const n = sizeParam('n')
    const i = loopVar('i', n)
    const part = (base: 0 | 1): Index => ({ base, terms: [{ loop: i, stride: 2 }], dynamic: [] })
    const buffers = Array.from({ length: count }, (_, k) => bufferParam(`a${k}`, dtype))
    const out = bufferParam('out', dtype, 'write')
    const recorder = new Recorder()
    const operands = buffers.map((buffer): Parts => [recorder.operand(dtype, load(buffer, part(0))), recorder.operand(dtype, load(buffer, part(1)))])
    const [re, im] = withMode(recorder, () => formula(...operands)).map((tensor) => recorder.valueOf(tensor))
    if (re === undefined || im === undefined) throw new InternalError('a complex number has two parts')
    const body = [store(out, part(0), re), store(out, part(1), im)]
    return compileKernel(pointwiseKernel({ name: 'complex', params: [out, ...buffers, n], loops: [i], body }, false))
  })

const canRun = (operands: readonly ComplexTensor[]): boolean => {
  const [first] = operands
  return (
    first !== undefined &&
    first.numel > 0 &&
    !isWatched(operands) &&
    operands.every(
      (z) =>
        !z.isFake && z.contiguousLayout && z.dtype === first.dtype && z.ndim === first.ndim && z.sizes.every((size, d) => size === first.sizes[d]),
    )
  )
}

/** A formula as a function that runs one kernel where it can: null where it cannot. */
export function fused(formula: Formula, count: number): (...operands: readonly ComplexTensor[]) => Tensor | null {
  const kernel = kernelOf(formula, count)
  return (...operands) => {
    const [first] = operands
    if (first === undefined || !canRun(operands)) return null
    const dtype = realDType(first.dtype)
    const out = Tensor.empty([...first.sizes, 2], dtype)
    launch(kernel(dtype), [out, ...operands.map(pairsOf)], [first.numel])
    return fromPairs(out)
  }
}

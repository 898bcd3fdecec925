// Eager reductions: one kernel per operator, dtype and layout class.
import type { Arg, OpDef } from '../../dispatch/index.ts'
import {
  accumulate,
  bufferParam,
  cast,
  compileKernel,
  declare,
  forLoop,
  identityOf,
  load,
  local,
  loopVar,
  read,
  scalar,
  scalarParam,
  sizeParam,
  store,
} from '../../kernels/index.ts'
import type { CompiledKernel, DType, Index, LoopVar, Param, Size, Stmt } from '../../kernels/index.ts'
import { Tensor, sameShape } from '../../tensor/index.ts'
import { launch } from './launch.ts'
import { reducedDims, reductionSpec } from './reductionSpec.ts'

const kernels = new Map<string, CompiledKernel>()
/** Everything about a call but the data. */
interface Plan {
  readonly shape: readonly number[]
  readonly strides: readonly number[]
  readonly dtype: DType
  readonly dim: Arg
  readonly keepdim: Arg
  readonly outShape: readonly number[]
  readonly outType: DType
  /** null where the result has no elements. */
  readonly kernel: CompiledKernel | null
  readonly numbers: readonly number[]
}

/** The last plan of each operator: in a loop the next call is mostly like the last. */
const lastPlan = new WeakMap<OpDef, Plan>()

const sameDims = (a: Arg, b: Arg): boolean =>
  a === b || (Array.isArray(a) && Array.isArray(b) && sameShape(a as readonly number[], b as readonly number[]))

/** Runs a reduction on a real tensor. */
export function launchReduction(op: OpDef, args: readonly Arg[]): Tensor {
  const self = args[0] as Tensor
  const dim = args[1] ?? null
  const keepdim = args[2] ?? false
  let plan = lastPlan.get(op)
  if (
    plan === undefined ||
    plan.dtype !== self.dtype ||
    plan.keepdim !== keepdim ||
    !sameShape(plan.shape, self.shape) ||
    !sameShape(plan.strides, self.strides) ||
    !sameDims(plan.dim, dim)
  ) {
    plan = makePlan(op, args, dim, keepdim)
    lastPlan.set(op, plan)
  }
  const out = Tensor.empty(plan.outShape, plan.outType)
  if (plan.kernel !== null) launch(plan.kernel, [out, self], plan.numbers)
  return out
}

function makePlan(op: OpDef, args: readonly Arg[], dim: Arg, keepdim: Arg): Plan {
  const self = args[0] as Tensor
  const spec = reductionSpec(op, args)
  const { reduced } = reducedDims(op, args)
  const known = { shape: self.shape, strides: self.strides, dtype: self.dtype, dim, keepdim, outShape: spec.shape, outType: spec.dtype }
  if (spec.shape.includes(0)) return { ...known, kernel: null, numbers: [] }
  const count = self.shape.reduce((n, size, i) => (reduced[i] === true ? n * size : n), 1)
  const { dims, strides, flags } = collapse(self, reduced)
  const key = `${op.id} ${self.dtype} ${flags.map((f, d) => `${f ? 'r' : 'k'}${strides[d] === 1 && d === dims.length - 1 ? '1' : strides[d] === 0 ? '0' : 's'}`).join('')}`
  let kernel = kernels.get(key)
  if (kernel === undefined) {
    kernel = build(op, self, flags, strides)
    kernels.set(key, kernel)
  }
  const numbers: number[] = [...dims]
  strides.forEach((v, d) => (v === 0 || (v === 1 && d === dims.length - 1) ? 0 : numbers.push(v)))
  // Strides of the contiguous result over the kept dimensions.
  const outStrides: number[] = []
  let step = 1
  for (let d = dims.length - 1; d >= 0; d--) {
    if (flags[d] === true) continue
    outStrides.unshift(step)
    step *= dims[d] as number
  }
  return { ...known, kernel, numbers: [...numbers, ...outStrides, count] }
}

/** Collapsed dimensions with strides and reduce flags; at least one dimension. */
function collapse(self: Tensor, reduced: readonly boolean[]): { dims: number[]; strides: number[]; flags: boolean[] } {
  const dims: number[] = []
  const strides: number[] = []
  const flags: boolean[] = []
  for (let d = self.ndim - 1; d >= 0; d--) {
    const size = self.shape[d] as number
    if (size === 1) continue
    const flag = reduced[d] === true
    const stride = self.strides[d] as number
    if (dims.length > 0 && flags[0] === flag && stride === (strides[0] as number) * (dims[0] as number)) {
      dims[0] = (dims[0] as number) * size
      continue
    }
    dims.unshift(size)
    strides.unshift(stride)
    flags.unshift(flag)
  }
  if (dims.length === 0) return { dims: [1], strides: [1], flags: [true] }
  return { dims, strides, flags }
}

function build(op: OpDef, self: Tensor, flags: readonly boolean[], strides: readonly number[]): CompiledKernel {
  const rule = op.reduction as NonNullable<OpDef['reduction']>
  const dtype = rule.dtype(self.dtype)
  const out = bufferParam('out', dtype, 'write')
  const input = bufferParam('a', self.dtype)
  const sizes = flags.map((_, d) => sizeParam(`n${d}`))
  const loops = sizes.map((size, d) => loopVar(`${flags[d] === true ? 'r' : 'i'}${d}`, size))
  const strideParams: Param[] = []
  const terms = strides.flatMap((v, d): { loop: LoopVar; stride: Size }[] => {
    if (v === 0) return []
    if (v === 1 && d === strides.length - 1) return [{ loop: loops[d] as LoopVar, stride: 1 }]
    const param = sizeParam(`t${d}`)
    strideParams.push(param)
    return [{ loop: loops[d] as LoopVar, stride: param }]
  })
  const index: Index = { base: 0, terms, dynamic: [] }
  const kept = loops.filter((_, d) => flags[d] !== true)
  const outStrides = kept.map((_, d) => sizeParam(`o${d}`))
  const lastKept = flags.at(-1) !== true
  const outIndex: Index = {
    base: 0,
    terms: kept.map((loop, d) => ({ loop, stride: lastKept && d === kept.length - 1 ? 1 : (outStrides[d] as Size) })),
    dynamic: [],
  }
  const count = scalarParam('count', dtype)
  const acc = local('acc', dtype)
  const value = cast(load(input, index), dtype)
  let inner: Stmt[] = [accumulate(acc, rule.combine, rule.map === undefined ? value : rule.map(value))]
  const reduced = loops.filter((_, d) => flags[d] === true)
  for (let d = reduced.length - 1; d >= 0; d--)
    inner = [forLoop(reduced[d] as LoopVar, d === reduced.length - 1 && !lastKept ? 'simd' : 'serial', inner)]
  const result = rule.finish === undefined ? read(acc) : rule.finish(read(acc), scalar(count))
  let body: readonly Stmt[] = [declare(acc, identityOf(rule.combine, dtype)), ...inner, store(out, outIndex, result)]
  for (let d = kept.length - 1; d >= 0; d--) body = [forLoop(kept[d] as LoopVar, d === kept.length - 1 && lastKept ? 'simd' : 'serial', body)]
  return compileKernel({ name: op.name, params: [out, input, ...sizes, ...strideParams, ...outStrides, count], body })
}

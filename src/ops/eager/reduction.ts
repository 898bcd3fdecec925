// Eager reductions: one kernel per operator, dtype and layout class.
import { isArgList, tensorAt } from '../../dispatch/index.ts'
import type { Arg } from '../../dispatch/index.ts'
import { InternalError } from '../../errors/index.ts'
import {
  PerEngine,
  accumulate,
  at,
  bufferParam,
  cast,
  compileKernel,
  declare,
  forLoop,
  identityOf,
  kernelBytes,
  kernelsByCall,
  load,
  local,
  loopVar,
  read,
  scalar,
  scalarParam,
  sizeParam,
  store,
} from '../../kernels/index.ts'
import type { CompiledKernel, DType, LoopVar, Param, Size, Stmt } from '../../kernels/index.ts'
import { numbersOf, sameShape, Tensor } from '../../tensor/index.ts'
import { cacheKey, launch } from './launch.ts'
import { collapseLayout } from './layout.ts'
import type { Layout } from './layout.ts'
import { accumulatedIn } from './promotion.ts'
import { reducedDims, reductionSpec } from './reductionSpec.ts'
import type { ReductionOp } from './reductionSpec.ts'

const owner = new PerEngine(cacheKey)

/** Everything about a call but the data. */
interface Plan {
  readonly shape: readonly number[]
  readonly strides: readonly number[]
  readonly dtype: DType
  readonly dim: Arg
  readonly keepdim: Arg
  readonly outShape: readonly number[]
  readonly outType: DType
  /** null if the result has no elements. */
  readonly kernel: CompiledKernel | null
  readonly numbers: readonly number[]
}

/** How many plans of an operator are kept: a training loop comes back to the same few calls. */
const PLANS = 8
const plansOf = new PerEngine(() => new WeakMap<ReductionOp, Plan[]>())

const sameDims = (a: Arg, b: Arg): boolean => a === b || (isArgList(a) && isArgList(b) && a.length === b.length && a.every((dim, i) => dim === b[i]))

const isPlanOf = (plan: Plan, { dtype, sizes, steps }: Tensor, dim: Arg, keepdim: Arg): boolean =>
  plan.dtype === dtype && plan.keepdim === keepdim && sameShape(plan.shape, sizes) && sameShape(plan.strides, steps) && sameDims(plan.dim, dim)

/** Runs a reduction on a real tensor. */
export function launchReduction(op: ReductionOp, args: readonly Arg[]): Tensor {
  const self = tensorAt(args, 0)
  const dim = args[1] ?? null
  const keepdim = args[2] ?? false
  let plans = plansOf.current.get(op)
  if (plans === undefined) plansOf.current.set(op, (plans = []))
  let plan = plans.find((known) => isPlanOf(known, self, dim, keepdim))
  if (plan === undefined) {
    plan = makePlan(op, args, dim, keepdim)
    if (plans.length === PLANS) plans.shift()
    plans.push(plan)
  }
  const out = Tensor.empty(plan.outShape, plan.outType)
  if (plan.kernel !== null) launch(plan.kernel, [out, self], plan.numbers)
  return out
}

function makePlan(op: ReductionOp, args: readonly Arg[], dim: Arg, keepdim: Arg): Plan {
  const self = tensorAt(args, 0)
  const spec = numbersOf(reductionSpec(op, args))
  const { reduced } = reducedDims(op, args)
  const known = { shape: self.sizes, strides: self.steps, dtype: self.dtype, dim, keepdim, outShape: spec.shape, outType: spec.dtype }
  if (spec.shape.includes(0)) return { ...known, kernel: null, numbers: [] }
  const count = self.sizes.reduce((n, size, i) => (reduced[i] === true ? n * size : n), 1)
  const layout = collapseLayout(self.sizes, [self.steps], reduced)
  const walk = walkOf(layout)
  const key = `${owner.current} ${op.id} ${self.dtype} ${walk.map(({ isReduced, kind }) => `${isReduced ? 'r' : 'k'}${kind}`).join('')}`
  let kernel = kernelsByCall.get(key)
  if (kernel === undefined) {
    kernel = build(op, self, walk)
    kernelsByCall.set(key, kernel, kernelBytes(kernel))
  }
  // Strides of the contiguous result over the kept dimensions.
  const outStrides: number[] = []
  let step = 1
  for (const { isReduced, size } of walk.toReversed()) {
    if (isReduced) continue
    outStrides.unshift(step)
    step *= size
  }
  const strides = walk.flatMap(({ kind, stride }) => (kind === 's' ? [stride] : []))
  return { ...known, kernel, numbers: [...layout.dims, ...strides, ...outStrides, count] }
}

/** One dimension of the input. `kind` says how its stride reaches the kernel: built in as 0 or 1, or as a parameter ('s'). */
interface WalkedDim {
  readonly size: number
  readonly stride: number
  readonly isReduced: boolean
  readonly kind: '0' | '1' | 's'
}

function walkOf({ dims, strides: [own = []], reduced }: Layout): readonly WalkedDim[] {
  return dims.map((size, d) => {
    const stride = own[d] ?? 0
    return { size, stride, isReduced: reduced[d] === true, kind: stride === 0 ? '0' : stride === 1 && d === dims.length - 1 ? '1' : 's' }
  })
}

function build(op: ReductionOp, self: Tensor, walk: readonly WalkedDim[]): CompiledKernel {
  const rule = op.reduction
  if (rule === null) throw new InternalError(`operator ${op.qualname} has no reduction rule`)
  const dtype = rule.dtype(self.dtype)
  const out = bufferParam('out', dtype, 'write')
  const input = bufferParam('a', self.dtype)
  const strideParams: Param[] = []
  const loops = walk.map(({ isReduced, kind }, d) => {
    const extent = sizeParam(`n${d}`)
    const loop = loopVar(`${isReduced ? 'r' : 'i'}${d}`, extent)
    if (kind !== 's') return { loop, extent, isReduced, stride: Number(kind) }
    const stride = sizeParam(`t${d}`)
    strideParams.push(stride)
    return { loop, extent, isReduced, stride }
  })
  const index = at(...loops.map(({ loop, stride }): readonly [LoopVar, Size] => [loop, stride]))
  const kept = loops.filter(({ isReduced }) => !isReduced).map(({ loop }, d) => ({ loop, outStride: sizeParam(`o${d}`) }))
  const reduced = loops.filter(({ isReduced }) => isReduced)
  const lastKept = walk.at(-1)?.isReduced === false
  const outIndex = at(...kept.map(({ loop, outStride }, d): readonly [LoopVar, Size] => [loop, lastKept && d === kept.length - 1 ? 1 : outStride]))
  const accumulator = accumulatedIn(dtype)
  const count = scalarParam('count', accumulator)
  const acc = local('acc', accumulator)
  const value = cast(load(input, index), accumulator)
  const innermost: readonly Stmt[] = [accumulate(acc, rule.combine, rule.map === undefined ? value : rule.map(value))]
  const inner = reduced.reduceRight<readonly Stmt[]>(
    (body, { loop }, d) => [forLoop(loop, d === reduced.length - 1 && !lastKept ? 'simd' : 'serial', body)],
    innermost,
  )
  const result = rule.finish === undefined ? read(acc) : rule.finish(read(acc), scalar(count))
  const body = kept.reduceRight<readonly Stmt[]>(
    (statements, { loop }, d) => [forLoop(loop, d === kept.length - 1 && lastKept ? 'simd' : 'serial', statements)],
    [declare(acc, identityOf(rule.combine, accumulator)), ...inner, store(out, outIndex, cast(result, dtype))],
  )
  const sizes = loops.map(({ extent }) => extent)
  const outStrides = kept.map(({ outStride }) => outStride)
  return compileKernel({ name: op.name, params: [out, input, ...sizes, ...strideParams, ...outStrides, count], body })
}

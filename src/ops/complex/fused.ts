// Kernels that compute a formula of complex numbers in one pass over their pairs. The formula is that of the operators: they run once on fake tensors, and what each computes of an element is put
// together. They run where nothing but the caller hears of the operators in between; otherwise the formula itself is called. Where a gradient is recorded, the formula is one operator of the
// tape, whose derivative is a formula as well.
import { dispatch, dispatchState, isWatched, tensorAt, withMode } from '../../dispatch/index.ts'
import type { Arg, DerivativeContext, DispatchMode, OpDef, PointwiseArg, Result } from '../../dispatch/index.ts'
import { InternalError } from '../../errors/index.ts'
import {
  bufferParam,
  cast,
  compileKernel,
  complexDType,
  constant,
  load,
  loopVar,
  pointwiseKernel,
  realDType,
  rounded,
  sizeParam,
  store,
} from '../../kernels/index.ts'
import type { BufferParam, CompiledKernel, DType, Expr, Index, LoopVar } from '../../kernels/index.ts'
import { Tensor, broadcastShapes, pairsOf, sameShape } from '../../tensor/index.ts'
import { makeOp } from '../define/defineOp.ts'
import { kernelCache, launch } from '../eager/launch.ts'
import { pointwiseDTypes } from '../eager/pointwiseTypes.ts'
import { contiguous } from '../view/reshape.ts'
import { expand } from '../view/windows.ts'
import type { Parts } from './elementary.ts'
import { fromParts, im, isComplex, re } from './parts.ts'
import { fromPairs } from './views.ts'

/** What an element is computed of, and the numbers of the operands that it is computed from. */
interface Value {
  readonly expr: Expr
  readonly reads: ReadonlySet<number>
}

/** Gives for each operator a fake tensor, and keeps what its element is computed of. */
class Recorder implements DispatchMode {
  readonly name = 'formulas of complex numbers'
  readonly #values = new Map<Tensor, Value>()

  operand(dtype: DType, expr: Expr, reads: ReadonlySet<number>): Tensor {
    const fake = Tensor.fake({ shape: [], dtype })
    this.#values.set(fake, { expr, reads })
    return fake
  }

  valueOf(tensor: Tensor): Value {
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
      if (arg instanceof Tensor) return cast(this.valueOf(arg).expr, compute)
      const isBaked = typeof arg !== 'number' || rule.baked?.includes(op.schema.args[i]?.name ?? '') === true
      return isBaked ? arg : constant(compute, rounded(compute, arg))
    })
    const reads = new Set(args.flatMap((arg) => (arg instanceof Tensor ? [...this.valueOf(arg).reads] : [])))
    return this.operand(result, cast(rule.compute(...operands), result), reads)
  }
}

/** Parts of the result: two, or one that is real. */
export type Formula = (...operands: readonly Parts[]) => Parts | readonly [Tensor]

/** What a formula takes: complex numbers, real ones, or null for an operand that it does not read. */
type Operand = Tensor | null

/** The parts of a formula's result. `sides` tells of each operand how many numbers it has for an element: 2, 1 if it is real, 0 if it is null. */
function partsOf(formula: Formula, buffers: readonly BufferParam[], sides: string, i: LoopVar): readonly Value[] {
  const recorder = new Recorder()
  const operands = buffers.map((buffer, k): Parts => {
    const stride = Number(sides[k])
    const part = (base: number): Tensor => {
      const isRead = base < stride
      const expr = isRead ? load(buffer, at(base, i, stride)) : constant(buffer.dtype, 0)
      return recorder.operand(buffer.dtype, expr, new Set(isRead ? [k] : []))
    }
    return [part(0), part(1)]
  })
  return withMode(recorder, () => formula(...operands)).map((tensor) => recorder.valueOf(tensor))
}

const at = (base: number, loop: LoopVar, stride: number): Index => ({ base, terms: [{ loop, stride }], dynamic: [] })

const buffersOf = (count: number, dtype: DType): readonly BufferParam[] => Array.from({ length: count }, (_, k) => bufferParam(`a${k}`, dtype))

const kernelOf = (formula: Formula): ((dtype: DType, sides: string) => CompiledKernel) =>
  kernelCache((dtype: DType, sides: string): CompiledKernel => {
    const n = sizeParam('n')
    const i = loopVar('i', n)
    const buffers = buffersOf(sides.length, dtype)
    const out = bufferParam('out', dtype, 'write')
    const params = [out, ...buffers.filter((_, k) => sides[k] !== '0'), n]
    const body = partsOf(formula, buffers, sides, i).map(({ expr }, base, { length }) => store(out, at(base, i, length), expr))
    return compileKernel(pointwiseKernel({ name: 'complex', params, loops: [i], body }, false))
  })

/** What is known of a formula without numbers. */
interface FormulaFacts {
  /** Which of its operands it reads. */
  readonly reads: readonly boolean[]
  /** Whether its results are real. */
  readonly isReal: boolean
}

function factsOf(formula: Formula, count: number): FormulaFacts {
  const buffers = buffersOf(count, 'float32')
  const parts = partsOf(formula, buffers, '2'.repeat(count), loopVar('i', 1))
  return { reads: buffers.map((_, k) => parts.some(({ reads }) => reads.has(k))), isReal: parts.length === 1 }
}

/** {@link factsOf}, asked for once, at the first call: declaring a function must not run its formula. */
function lazyFacts(formula: Formula, count: number): () => FormulaFacts {
  let facts: FormulaFacts | null = null
  return () => (facts ??= factsOf(formula, count))
}

/** A formula as one kernel: of tensors of one shape. */
function inOnePass(formula: Formula): (given: readonly Operand[], facts: FormulaFacts) => Tensor {
  const kernel = kernelOf(formula)
  return (given, { isReal }) => {
    const operands = given.map((operand) => (operand === null ? null : contiguous(operand)))
    const tensors = operands.filter((operand) => operand !== null)
    const [first] = tensors
    if (first === undefined) throw new InternalError('a formula of no numbers')
    const dtype = realDType(complexDType(first.dtype))
    const out = Tensor.empty(isReal ? first.sizes : [...first.sizes, 2], dtype)
    const sides = operands.map((operand) => (operand === null ? '0' : isComplex(operand) ? '2' : '1')).join('')
    if (first.numel > 0) launch(kernel(dtype, sides), [out, ...tensors.map((x) => (isComplex(x) ? pairsOf(x) : x))], [first.numel])
    return isReal ? out : fromPairs(out)
  }
}

/** A function of complex numbers, computed element by element. */
export interface ComplexFunction {
  readonly name: string
  readonly formula: Formula
  /** For each operand the formula of its gradient: of the gradient of the result, the operands, and the result. That of a real operand is real. */
  readonly gradients: readonly Formula[]
}

/** The value of a formula by one operator after the other. */
function composed(formula: Formula, operands: readonly Operand[]): Tensor {
  const any = operands.find((operand) => operand !== null)
  if (any === undefined) throw new InternalError('a formula of no numbers')
  const [x, y] = formula(...operands.map((operand): Parts => [re(operand ?? any), im(operand ?? any)]))
  return y === undefined ? x : fromParts(x, y)
}

/** The gradient by a formula, as a function of the call's arguments and result, of which it takes those that the formula reads: others may have been overwritten since. */
function gradientOf(formula: Formula, count: number): (grad: Tensor, ctx: DerivativeContext) => Tensor {
  const inPass = inOnePass(formula)
  const facts = lazyFacts(formula, count + 2)
  return (grad, { args, outputs }) => {
    const { reads } = facts()
    const given = Array.from({ length: count }, (_, i) => (reads[i + 1] === true ? tensorAt(args, i) : null))
    const operands = [grad, ...given, reads[count + 1] === true ? (outputs[0] ?? null) : null]
    return isWatched(operands) ? composed(formula, operands) : inPass(operands, facts())
  }
}

/**
 * A function of complex tensors of one dtype. One kernel computes it, and one each of its gradients. Where a mode (a capture, vmap, a profiler) looks on, and in gradients of gradients, it is the
 * operators that the formulas consist of.
 */
export function complexFunction({ name, formula, gradients }: ComplexFunction): (...operands: readonly Tensor[]) => Tensor {
  const value = inOnePass(formula)
  const facts = lazyFacts(formula, gradients.length)
  const backward = gradients.map((gradient) => gradientOf(gradient, gradients.length))
  const alone = { none: 'only called where nothing looks on' } as const
  const { op } = makeOp({
    schema: `${name}(${gradients.map((_, i) => `Tensor x${i}`).join(', ')}) -> Tensor`,
    vmap: alone,
    onnx: alone,
    autocast: 'as is',
    meta: (first) => {
      const { sizes, dtype } = tensorAt([first ?? null], 0)
      return { shape: sizes, dtype: facts().isReal ? realDType(complexDType(dtype)) : dtype }
    },
    kernel: (...args) => {
      const operands = args.map((_, i) => tensorAt(args, i))
      return value(operands, facts())
    },
    derivative: ([grad], ctx) => backward.map((gradient, i) => (grad instanceof Tensor && ctx.needs[i] === true ? gradient(grad, ctx) : null)),
  })
  return (...operands) => {
    if (dispatchState.mode !== null || operands.some(({ isFake }) => isFake)) return composed(formula, operands)
    const shape = operands.map(({ sizes }) => sizes).reduce((a, b) => broadcastShapes(`torch.${name}`, a, b))
    const whole = operands.map((operand) => (sameShape(operand.sizes, shape) ? operand : expand(operand, shape)))
    return tensorAt([dispatch(op, whole, true)].flat(), 0)
  }
}

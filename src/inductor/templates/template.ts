// Templates: hand-written kernels for operators that plain loops compute slowly. A template is one object that says which operators it takes, whether it can
// compute a call, what loops its result has, and how its kernel is made. Pointwise operators that follow are fused into the kernel as its epilogue.
import { checkArgument, isPlainObject } from '../../protocol/index.ts'
import type { OpDef, Result } from '../../dispatch/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import type { ScheduledKernel } from '../../kernels/index.ts'
import { opOf } from '../../ops/index.ts'
import type { TargetFunction } from '../../protocol/index.ts'
import type { Tensor, TensorSpec } from '../../tensor/index.ts'
import type { BufferView, TemplateIo, TemplateSum } from '../ir.ts'
import type { OpCall } from '../opCall.ts'

/** The window of a buffer that a tensor of the graph stands for. */
export type ViewOf = (tensor: Tensor) => BufferView

/** What a template computes for one call. */
export interface TemplateSpec {
  /** The result of the kernel, which is contiguous. */
  readonly out: TensorSpec
  /** The loops over the result, outermost first: the product of their extents is the number of its elements. */
  readonly iter: readonly number[]
  /** What the kernel reads. */
  readonly reads: readonly BufferView[]
  /** How many products are added up to each element of the result, for the FLOPs of reports. Default 0. */
  readonly depth?: number
  /** What the kernel adds up. Without it the template runs as WebAssembly only. */
  readonly sum?: TemplateSum
  /** Computes the operator's result from the kernel's with further operators (a bias, a reshape), which are fused if possible. Default: they are the same. */
  readonly finish?: (result: Tensor) => Result
}

/** A template. `P` describes the problem of a call: what {@link TemplateDefinition.match} found out about it. */
export interface TemplateDefinition<P> {
  /** The name of the template in reports and errors. */
  readonly name: string
  /** The public functions of the operators that it takes. */
  readonly ops: readonly TargetFunction[]
  /** Whether pointwise operators may be fused into the kernel. Default true. */
  readonly fuses?: boolean
  /** The problem, or null when the template cannot compute the call, which is then lowered in another way. */
  readonly match: (call: OpCall, viewOf: ViewOf) => P | null
  readonly spec: (problem: P) => TemplateSpec
  /** Makes the kernel, which must run the statements of `io.epilogue` for each element of the result: they store it. */
  readonly emit: (problem: P, io: TemplateIo) => ScheduledKernel
}

/** A template bound to the problem of one call. */
export interface BoundTemplate extends TemplateSpec {
  readonly name: string
  readonly fuses: boolean
  readonly emit: (io: TemplateIo) => ScheduledKernel
}

/** A template in the registry. */
export interface Template {
  readonly name: string
  readonly ops: readonly OpDef[]
  /** The template for a call; null when it cannot compute it. */
  readonly bind: (call: OpCall, viewOf: ViewOf) => BoundTemplate | null
}

/** Defines a template. Throws ArgumentError when one of its `ops` is not an operator, or can never reach it. */
export function defineTemplate<P>(definition: TemplateDefinition<P>): Template {
  checkArgument(
    isPlainObject(definition) && Array.isArray(definition.ops),
    'defineTemplate',
    'definition',
    'an object { name, ops, match, spec, emit }',
    definition,
  )
  const { name, match, spec, emit, fuses = true } = definition
  const ops = definition.ops.map((fn) => {
    const op = opOf(fn)
    if (op === undefined)
      throw new ArgumentError(
        `template '${name}': ${fn.name || 'an entry of ops'} is not an operator; list functions of the operator table, e.g. torch.mm.`,
      )
    if (op.derivative === null && op.decompose !== null)
      throw new ArgumentError(
        `template '${name}': ${op.qualname} is composed of other operators and is decomposed before compilation; list those operators instead.`,
      )
    return op
  })
  const bind = (call: OpCall, viewOf: ViewOf): BoundTemplate | null => {
    const problem = match(call, viewOf)
    return problem === null ? null : { ...spec(problem), name, fuses, emit: (io) => emit(problem, io) }
  }
  return { name, ops, bind }
}

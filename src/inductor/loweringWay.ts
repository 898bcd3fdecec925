// How the lowering takes an operator, by its declaration alone: the one rule that the lowering and the operator table follow.
import type { OpDef, PointwiseRule, ReductionRule } from '../dispatch/index.ts'

/** A way to lower calls of an operator. Those of a template take it first, and this one where the template does not fit a call. */
export type LoweringWay =
  | { readonly kind: 'pointwise'; readonly rule: PointwiseRule }
  | { readonly kind: 'reduction'; readonly rule: ReductionRule }
  /** A window of the memory of its argument. */
  | { readonly kind: 'view' }
  /** Its values are computed where they are used. */
  | { readonly kind: 'fill' }
  /** The operators that it decomposes into. */
  | { readonly kind: 'parts'; readonly decompose: NonNullable<OpDef['decompose']> }
  /** Its eager kernel. */
  | { readonly kind: 'extern' }

/** Operators whose parts have tables, which a graph would need as inputs. */
const HAS_TABLES: ReadonlySet<string> = new Set(['torch.ops.tensorfx.resample', 'torch.ops.tensorfx.resample_backward'])

/** How calls of a functional operator are lowered. With `composed` those whose own kernel is faster are decomposed, too. */
export function loweringWayOf(op: OpDef, composed = false): LoweringWay {
  if (op.pointwise !== null) return { kind: 'pointwise', rule: op.pointwise }
  if (op.reduction !== null) return { kind: 'reduction', rule: op.reduction }
  if (op.tags.has('view') || op.tags.has('takesMemory')) return { kind: 'view' }
  if (op.tags.has('fill') || op.tags.has('range')) return { kind: 'fill' }
  const isComposed = composed && !HAS_TABLES.has(op.qualname)
  return op.decompose !== null && (isComposed || !op.tags.has('fusedKernel')) ? { kind: 'parts', decompose: op.decompose } : { kind: 'extern' }
}

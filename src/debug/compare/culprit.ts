// What a comparison says of a node and of a backend.
import type { Node } from '../../fx/index.ts'
import type { DType } from '../../kernels/index.ts'
import type { Measured, Rule } from './measure.ts'

/** One node of the graph. */
export interface NodeRow {
  readonly node: Node
  readonly dtype: DType
  readonly shape: readonly number[]
  /** By backend: the node alone, on the inputs of the reference. */
  readonly alone: Map<string, Measured>
  /** By backend: the node in the compiled graph, on the values that the backend computed before it. */
  readonly inGraph: Map<string, Measured>
}

/** What a comparison says of a backend. */
export type Status = 'right' | 'wrong' | 'failed' | 'flaky' | 'not judged'

/** Why a backend is not right. */
export interface Culprit {
  /** `wrong`: its numbers, or `rule`; `failed`: it throws; `flaky`: it is right in some runs only; `not judged`: whether it is right is not known. */
  readonly kind: Exclude<Status, 'right'>
  /** One node, or a block of nodes that fail only together. */
  readonly nodes: readonly Node[]
  /** See `tol`; Infinity for a different shape, dtype, NaN or infinity, and for a rule; NaN if nothing was computed. */
  readonly error: number
  /** Which run showed it. */
  readonly found: 'alone' | 'in the graph' | 'only where it is fused'
  /** The rule that the backend breaks while its numbers are right; null if it breaks none. */
  readonly rule: Rule | null
  /** How many of the runs with the same inputs were not right: 1, or less for a backend that is `flaky`. */
  readonly rate: number
  /** What was wrong, in words; null if the error says it all. */
  readonly reason: string | null
  /** What the backend threw; null if it did not throw. */
  readonly thrown: unknown
  /** Which inputs showed it: 0 for `inputs`, from 1 for those of `moreInputs`, and after them those that `worstInput` has found. */
  readonly set: number
  /** The half of a joint graph that the node belongs to (`gradients`). */
  readonly half: 'forward' | 'backward'
  /** For a node of the backward half, the name of the node whose gradient it computes; null if that is not known. */
  readonly forward: string | null
}

/** What a measurement says. */
export const statusOf = ({ status }: Pick<Measured, 'status'>): Status =>
  status === 'ok' ? 'right' : status === 'differs' ? 'wrong' : status === 'skipped' ? 'not judged' : status

/** A result that is not right, as a culprit. */
export function culpritAt(nodes: readonly Node[], measured: Measured, where: Pick<Culprit, 'found' | 'set' | 'half' | 'forward'>): Culprit {
  const { error, rule, rate, reason, thrown } = measured
  const kind = statusOf(measured)
  return { ...{ kind: kind === 'right' ? 'wrong' : kind, nodes, error, rule, rate, reason, thrown }, ...where }
}

/** A node of a graph without a backward. */
export const FORWARD: Pick<Culprit, 'half' | 'forward'> = { half: 'forward', forward: null }

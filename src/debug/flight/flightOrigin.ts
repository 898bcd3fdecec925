// FlightOrigin: where the trouble of a step comes from, as data: an operator, a tensor that was bad before, compiled code, a jump of the loss, or nothing that was found.
import type { CapturedStack } from '../../provenance/index.ts'
import type { Given, Phase } from './places.ts'
import type { StateKind } from './state.ts'

/** A bad element, where it first was. */
interface FirstElement {
  /** The index of the element, and the element: NaN or an infinity. */
  readonly index: readonly number[]
  readonly element: number
}

/** An operator whose arguments were good and whose result is not. */
export interface OperatorOrigin extends FirstElement {
  readonly kind: 'operator'
  /** The part of the step that computed it. */
  readonly phase: Phase
  /** The operator that the program called. In the backward, the one whose derivative it is. */
  readonly operator: string
  /** The operator that computed the element, which in the backward is a part of the derivative. */
  readonly computedBy: string
  /** PyTorch's name of the derivative (`LogBackward0`); null in forward and optimizer. */
  readonly gradFn: string | null
  /** Which result of the operator it is. */
  readonly output: number
  /** What the arguments had at that place. */
  readonly given: readonly Given[]
  /** Where the program called the operator. */
  readonly stack: CapturedStack | undefined
  /** The parameter, buffer or state that it was first written to; null if it was written to none. */
  readonly reached: string | null
}

/** A tensor that was bad before the step: a weight, a batch. No operator of the recorded steps made it so. */
export interface TensorOrigin extends FirstElement {
  readonly kind: StateKind
  readonly name: string
  /** Whether it was still good when an earlier step started: then the program wrote to it outside of the recorded steps. */
  readonly wasGood: boolean
}

/** Compiled code that gives what the graph, run on eager kernels, does not. */
export interface CompilerOrigin extends FirstElement {
  readonly kind: 'compiled code'
  readonly backend: string
  /** The name of the graph. */
  readonly graph: string
  /** The first node whose result is bad when it is compiled; null if none is bad alone. */
  readonly node: string | null
  readonly operator: string | null
  readonly stack: CapturedStack | undefined
  readonly output: number
}

/** The loss jumped; no element is bad. */
export interface JumpOrigin {
  readonly kind: 'jump'
  /** The weights by how unusual the update before the step was. */
  readonly changes: readonly Change[]
  /** The inputs with their largest magnitudes, and the median of the earlier steps'. */
  readonly inputs: readonly { readonly name: string; readonly largest: number; readonly usual: number | null }[]
}

/** One weight around a jump. Norms are Euclidean. */
export interface Change {
  readonly name: string
  /** The norm of the last update before the step, relative to that of the weight, and the median of the earlier ones; null if they are not recorded. */
  readonly update: number | null
  readonly usualUpdate: number | null
  /** The norm of the gradient after the step; null if there is none. */
  readonly gradient: number | null
  /** The median of the norms of the gradients when the earlier steps started. */
  readonly usualGradient: number | null
}

/** The step gave something else when it was run again, so that nothing can be said. */
export interface UnknownOrigin {
  readonly kind: 'unknown'
  readonly why: string
}

/** Where a value that went wrong came from. */
export type FlightOrigin = OperatorOrigin | TensorOrigin | CompilerOrigin | JumpOrigin | UnknownOrigin

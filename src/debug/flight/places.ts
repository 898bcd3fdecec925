// Where a bad element comes from, as the report tells it.
import type { GradNode } from '../../autograd/index.ts'
import type { CapturedStack } from '../../provenance/index.ts'
import type { Node } from '../../fx/index.ts'
import type { StateKind } from './state.ts'

/** Which part of a step computes something. */
export type Phase = 'forward' | 'backward' | 'optimizer'

/** What an operator was given: an element of a tensor, or the largest magnitude in it if no single element leads to the bad one. */
export interface Given {
  readonly argument: string
  /** Null for the largest magnitude. */
  readonly index: readonly number[] | null
  readonly element: number
}

/** An operator made it. */
export interface OperatorPlace {
  readonly kind: 'operator'
  readonly phase: Phase
  /** The operator that the program called. In the backward, the one whose derivative it is. */
  readonly operator: string
  /** The operator that computed the element: another one if it is part of a derivative. */
  readonly computedBy: string
  /** PyTorch's name of the derivative, in the backward. */
  readonly gradFn: string | null
  readonly given: readonly Given[]
  /** Where the program called the operator; in the backward, the forward call. */
  readonly stack: CapturedStack | undefined
  /** The node of the recorded step. */
  readonly node: Node
  /** The derivative that it is a part of. */
  readonly derivative: GradNode | null
}

/** It was there before the step: in a weight, the batch, or another tensor. */
export interface TensorPlace {
  readonly kind: StateKind
  readonly name: string
  readonly node: Node
}

export type Place = OperatorPlace | TensorPlace

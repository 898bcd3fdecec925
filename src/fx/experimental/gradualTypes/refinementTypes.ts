// Equations between sizes. PyTorch's torch.fx.experimental.refinement_types.
import type { NodeType } from '../../../protocol/index.ts'
import { typesEqual } from './tensorType.ts'
import type { Dimension } from './tensorType.ts'

/** That two sizes, or two types, are equal. It prints as `~0 = 3`. PyTorch's Equality. */
export class Equality {
  readonly lhs: Dimension | NodeType
  readonly rhs: Dimension | NodeType

  constructor(lhs: Dimension | NodeType, rhs: Dimension | NodeType) {
    this.lhs = lhs
    this.rhs = rhs
  }

  /** Whether this is the same equation, with the sides in the same order. Python's `==`. */
  equals(other: unknown): boolean {
    return other instanceof Equality && typesEqual(this.lhs, other.lhs) && typesEqual(this.rhs, other.rhs)
  }

  toString(): string {
    return `${String(this.lhs)} = ${String(this.rhs)}`
  }
}

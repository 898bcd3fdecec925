// findFirst: the first value in a run of a graph that has an element of some kind, such as NaN.
import type { GraphModule, Node } from '../../fx/index.ts'
import { checkCallable } from '../../protocol/index.ts'
import { exactElements } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { visitValues } from './values.ts'

/** What {@link findFirst} found. */
export interface Found {
  readonly node: Node
  /** The tensor that has the element, and those that the node took. */
  readonly value: Tensor
  readonly inputs: readonly Tensor[]
  /** The position of the element, and the element. */
  readonly index: readonly number[]
  readonly element: number
}

/**
 * Runs a graph and returns the first node whose value has an element for which `predicate` is true; null if there is none. Inputs and attributes count as well, so
 * a NaN that comes with the data is found at its placeholder. Neither the module nor the inputs are changed.
 *
 *     const found = findFirst(gm, inputs, isNaN)
 *     const overflow = findFirst(gm, inputs, (v) => Math.abs(v) > 65504)
 *
 * @throws ArgumentError if `gm` is not a GraphModule or `predicate` not a function.
 */
export function findFirst(gm: GraphModule, inputs: readonly unknown[], predicate: (element: number) => boolean): Found | null {
  checkCallable('findFirst', 'predicate', predicate)
  let found: Found | null = null
  visitValues('findFirst', gm, inputs, (node, tensors, given) => {
    for (const value of tensors) {
      const elements = Array.from(exactElements(value), Number)
      const at = elements.findIndex((element) => predicate(element))
      if (at < 0) continue
      found = { node, value, inputs: given, index: indexOf(value.shape, at), element: elements[at] ?? NaN }
      return true
    }
    return false
  })
  return found
}

/** The index of the element at a place in row-major order. */
function indexOf(shape: readonly number[], place: number): readonly number[] {
  let rest = place
  return shape
    .toReversed()
    .map((size) => {
      const index = rest % size
      rest = Math.floor(rest / size)
      return index
    })
    .toReversed()
}

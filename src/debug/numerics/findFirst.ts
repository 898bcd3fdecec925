// findFirst: the first value in a run of a graph that has an element of some kind, such as NaN.
import type { GraphModule, Node } from '../../fx/index.ts'
import { checkCallable, checkCount } from '../../protocol/index.ts'
import { exactElements, Tensor } from '../../tensor/index.ts'
import { indexOf } from '../flight/badness.ts'
import { visitValues } from './visitValues.ts'

/**
 * The source of the element: 'origin' for a node that computes it of values without such elements; 'input', 'parameter', 'buffer' or 'constant' if it was there
 * before the run, in a tensor that the node is or reads.
 */
export type FoundKind = 'origin' | 'input' | 'parameter' | 'buffer' | 'constant'

/** What {@link findFirst} found. */
export interface Found {
  readonly node: Node
  readonly kind: FoundKind
  /** The name of the input, parameter or buffer that had such an element before the run; null for an origin. */
  readonly name: string | null
  /** The tensor that has the element, and those that the node took. */
  readonly value: Tensor
  readonly inputs: readonly Tensor[]
  /** The position of the element, and the element. */
  readonly index: readonly number[]
  readonly element: number
}

/**
 * Runs a graph and returns the first node whose value has an element for which `predicate` is true; null if there is none. Inputs and attributes count as well, so
 * a NaN that comes with the data is found at its placeholder. `kind` tells an origin from what reads a bad input or weight, such as a layer whose weight is NaN already.
 * Neither the module nor the inputs are changed.
 *
 *     const found = findFirst(gm, inputs, isNaN)
 *     const overflow = findFirst(gm, inputs, (v) => Math.abs(v) > 65504)
 *
 * @throws ArgumentError if `gm` is not a GraphModule or `predicate` not a function.
 */
export function findFirst(gm: GraphModule, inputs: readonly unknown[], predicate: (element: number) => boolean): Found | null {
  checkCount('findFirst', arguments, 3)
  checkCallable('findFirst', 'predicate', predicate)
  let found: Found | null = null
  visitValues('findFirst', gm, inputs, (node, tensors, given) => {
    for (const value of tensors) {
      const at = placeOf(value, predicate)
      if (at < 0) continue
      const element = Number(exactElements(value)[at])
      found = { node, ...sourceOf(gm, node, predicate), value, inputs: given, index: indexOf(value.shape, at), element }
      return true
    }
    return false
  })
  return found
}

/** The place of the first element for which `predicate` is true; -1 if there is none. */
const placeOf = (tensor: Tensor, predicate: (element: number) => boolean): number =>
  Array.from(exactElements(tensor), Number).findIndex((element) => predicate(element))

/** Whether a node computes the element itself, or was given it by an input, an attribute, or a tensor of the module that it calls. */
function sourceOf(gm: GraphModule, node: Node, predicate: (element: number) => boolean): Pick<Found, 'kind' | 'name'> {
  if (node.op === 'placeholder') return { kind: 'input', name: node.target }
  const reads = node.op === 'get_attr' || node.op === 'call_module' ? node.target : null
  if (reads === null) return { kind: 'origin', name: null }
  const isRead = (name: string): boolean => name === reads || (node.op === 'call_module' && name.startsWith(`${reads}.`))
  for (const [kind, tensors] of [
    ['parameter', gm.namedParameters()],
    ['buffer', gm.namedBuffers()],
  ] as const)
    for (const [name, tensor] of tensors) if (isRead(name) && tensor instanceof Tensor && placeOf(tensor, predicate) >= 0) return { kind, name }
  return node.op === 'get_attr' ? { kind: 'constant', name: reads } : { kind: 'origin', name: null }
}

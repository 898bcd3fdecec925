// A write to a view changes the tensor behind it: the base gets a history in which a window of what it was is replaced by what was written.
import { present } from '../errors/index.ts'
import { coveringOrder, permute, reshape, scatter, where, windowCopy, windowPlaces, zeros } from '../ops/index.ts'
import { inverseOrder } from '../tensor/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { anomaly, notePlace } from './anomaly.ts'
import { GradNode, pushEdge } from './node.ts'
import type { EdgeList } from './node.ts'

/** The history of a base after a write to one of its views. PyTorch's CopySlices. */
export class CopySlices extends GradNode {
  readonly name = 'CopySlices'
  released = false
  /** The window, in elements from the start of the base. */
  readonly #shape: readonly number[]
  readonly #strides: readonly number[]
  readonly #first: number
  /** The dimensions of the base in the order of its memory. */
  readonly #order: readonly number[]

  /** `written`: the node that computed what is in the view now. */
  constructor(base: Tensor, view: Tensor, written: GradNode, order: readonly number[]) {
    const edges: EdgeList = { targets: [], outputNrs: null }
    pushEdge(edges, base)
    edges.targets.push(written)
    super(edges, 1)
    this.#shape = view.sizes
    this.#strides = view.steps
    this.#first = view.offset - base.offset
    this.#order = order
    if (anomaly.notesPlaces) notePlace(this)
  }

  apply(grads: readonly (Tensor | null)[], needs: readonly boolean[]): readonly (Tensor | null)[] {
    const grad = present(grads[0], 'the gradient of the base')
    // In the order of the base's memory.
    const whole = permute(grad, this.#order)
    const written = windowCopy(whole, this.#shape, this.#strides, this.#first)
    // What was written leads to the base, too: whenever a gradient is wanted, its own is.
    return [needs[0] === true ? permute(this.#outside(whole), inverseOrder(this.#order)) : null, written]
  }

  /** The gradient of what was not written. */
  #outside(whole: Tensor): Tensor {
    if (coveringOrder(this.#shape, this.#strides, whole.numel) !== null) return zeros(whole.sizes, { dtype: whole.dtype })
    const places = reshape(windowPlaces(this.#shape, this.#strides, this.#first), [-1])
    const inside = scatter(zeros([whole.numel], { dtype: 'bool' }), 0, places, 1)
    return where(reshape(inside, whole.sizes), 0, whole)
  }

  release(): null {
    this.released = true
    return null
  }
}

// The tape is state of the program, too: a condition may call detach_, and a custom Function has a backward that no operator shows. A compiled backward is used only
// for a tape like the one that it was compiled from; otherwise the tape itself is kept, with the values that it recorded, and a backward walks it as in eager mode.
import { GradNode, FunctionNode, OpNode, gradBetween, isGradEnabled, producerOf, versionOf } from '../autograd/index.ts'
import { ProxyTensorMode, traceBackward } from '../aot/index.ts'
import type { CallTape, JointGraph } from '../aot/index.ts'
import { withoutModes } from '../dispatch/index.ts'
import { present } from '../errors/index.ts'
import type { Graph, Node } from '../fx/index.ts'
import { Tensor } from '../tensor/index.ts'
import { AutogradError } from '../autograd/index.ts'
import { derivativeReads } from './saved.ts'
import type { Segment } from './segment.ts'

/** The outside tensors of a segment whose gradients a backward of it gives: positions in `slots`, and the tensors. */
export function gradInputsOf(
  segment: Segment,
  slots: readonly number[],
): { readonly positions: readonly number[]; readonly tensors: readonly Tensor[] } {
  const positions: number[] = []
  const tensors: Tensor[] = []
  for (const [i, slot] of slots.entries()) {
    const input = segment.bound[slot]
    if (!(input instanceof Tensor) || !input.requiresGrad) continue
    positions.push(i)
    tensors.push(input)
  }
  return { positions, tensors }
}

/** The nodes that lead into the segment: those of its inputs that are not leaves, with the slot of one. */
function entrances(segment: Segment): ReadonlyMap<GradNode, number> {
  const found = new Map<GradNode, number>()
  segment.bound.forEach((input, slot) => {
    const node = input instanceof Tensor ? producerOf(input) : null
    if (node !== null) found.set(node, slot)
  })
  return found
}

/**
 * What the segment recorded behind `heads`: operators with the slots of their results, traceable Functions, and the edges between them. Equal lists mean equal gradients.
 * Null if no list can tell: a custom Function runs its own backward, or the tape leads around the inputs.
 */
export function tapeOf(segment: Segment, heads: readonly Tensor[]): readonly unknown[] | null {
  const outside = entrances(segment)
  const numbers = new Map<GradNode, number>()
  const nodes: GradNode[] = []
  const list: unknown[] = []
  let isKnown = true
  const edge = (target: GradNode | Tensor | null): void => {
    if (target === null) list.push(null)
    else if (target instanceof Tensor) {
      const slot = segment.slotOf(target)
      if (segment.bound[slot] !== target || !target.requiresGrad) isKnown = false
      list.push('leaf', slot)
    } else if (outside.has(target)) list.push('input', outside.get(target))
    else {
      let number = numbers.get(target)
      if (number === undefined) {
        number = nodes.push(target) - 1
        numbers.set(target, number)
        if (target.seq < segment.firstSeq) isKnown = false
      }
      list.push(number)
    }
  }
  for (const head of heads) {
    edge(producerOf(head))
    list.push(head.outputNr)
  }
  for (const node of nodes) {
    if (!isKnown) return null
    if (node instanceof OpNode) {
      list.push(node.op)
      for (const output of node.outputs) list.push(segment.slotOf(output))
    } else if (node instanceof FunctionNode && node.identity !== null) list.push(node.identity)
    else return null
    list.push(node.released)
    node.targets.forEach((target, k) => {
      edge(target)
      list.push(node.outputNrs?.[k] ?? 0)
    })
  }
  return isKnown ? list : null
}

/** Throws AutogradError if something was overwritten that the node's derivative would read: a compiled backward may do without it, but eager could not. */
function checkSaved(node: OpNode): void {
  if (!node.isOverwritten) return
  const { args, outputs, versions } = node
  const tensors = [...args.flat(), ...outputs].filter((value) => value instanceof Tensor)
  const isStale = (tensor: Tensor, i: number): boolean => versionOf(tensor) !== (versions?.[i] ?? 0)
  if (!tensors.some(isStale)) return
  const reads = derivativeReads(node.op, args, outputs, (i) => (node.targets[i] ?? null) !== null)
  const stale = tensors.find((tensor, i) => reads[i] === true && isStale(tensor, i))
  if (stale !== undefined)
    throw new AutogradError(
      `backward of ${node.op.qualname}: a tensor of shape [${stale.shape.join(', ')}] that its gradient needs has been modified in place after the call. ` +
        'Use the operator without the trailing underscore, or call clone() before you modify the tensor.',
    )
}

/** The tape of one call behind the heads of its compiled graph. It holds the recorded nodes, not their values. */
export class SegmentTape implements CallTape {
  readonly #segment: Segment
  /** Stand-ins for the heads with the history that was recorded; those of the program lead to the compiled backward. */
  readonly #roots: readonly Tensor[]
  readonly #inputs: readonly Tensor[]
  readonly #entrances: ReadonlyMap<GradNode, number>
  readonly #slotNode: (slot: number) => Node | undefined
  readonly #freed = new Set<number>()
  /** What the function itself has released: gradients do not get there, or the backward could not have been traced. Null: nothing. */
  readonly #released: ReadonlySet<GradNode> | null
  /** Called when the tape itself is needed, which is slow: later calls keep it. */
  readonly #onEager: () => void

  constructor(
    segment: Segment,
    heads: readonly Tensor[],
    inputs: readonly Tensor[],
    slotNode: (slot: number) => Node | undefined,
    hasReleased: boolean,
    onEager: () => void,
  ) {
    this.#segment = segment
    this.#roots = heads.map((head) => {
      const { shape, dtype, storage, strides, offset, requiresGrad, gradFn, outputNr } = head
      return Object.assign(new Tensor(shape, dtype, storage, strides, offset, head), { requiresGrad, gradFn, outputNr })
    })
    this.#inputs = inputs
    this.#entrances = entrances(segment)
    this.#slotNode = slotNode
    this.#onEager = onEager
    const released = new Set<GradNode>()
    if (hasReleased)
      this.#walk([...heads.keys()], (node) => {
        if (node.released) released.add(node)
      })
    this.#released = hasReleased ? released : null
  }

  #nodeOf(tensor: Tensor): Node | undefined {
    const { lazies, bound } = this.#segment
    // The tensors may belong to other captures by now, so their own slots do not count.
    let slot = lazies.lastIndexOf(tensor)
    if (slot < 0) slot = bound.lastIndexOf(tensor)
    return slot < 0 ? undefined : this.#slotNode(slot)
  }

  /** Calls `visit` with the recorded nodes behind some of the heads. */
  #walk(heads: readonly number[], visit: (node: GradNode) => void): void {
    const seen = new Set<GradNode>()
    const stack = heads.map((i) => producerOf(this.#root(i)))
    for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
      if (node === null || seen.has(node) || this.#entrances.has(node) || node.seq < this.#segment.firstSeq) continue
      seen.add(node)
      visit(node)
      for (const target of node.targets) if (target instanceof GradNode) stack.push(target)
    }
  }

  #root(i: number): Tensor {
    return present(this.#roots[i], 'a head of the tape')
  }

  check(heads: readonly number[]): void {
    this.#walk(heads, (node) => {
      if (node.released && this.#released?.has(node) !== true)
        throw new AutogradError(
          `backward: the graph through ${node.name} has been walked before, and what it saved was freed. Pass { retainGraph: true } to the first backward, or compute the forward pass again.`,
        )
      if (node instanceof OpNode) checkSaved(node)
    })
  }

  release(heads: readonly number[]): boolean {
    for (const head of heads) this.#freed.add(head)
    return this.#freed.size === this.#roots.length
  }

  free(heads: readonly number[]): void {
    this.#walk(heads, (node) => node.release())
  }

  trace(heads: readonly number[], graph: Graph): Pick<JointGraph, 'tangents' | 'grads'> {
    const mode = new ProxyTensorMode({ graph, resolve: (tensor) => this.#nodeOf(tensor) })
    const roots = heads.map((i) => this.#root(i))
    return withoutModes(() => traceBackward(mode, roots, (tangents) => gradBetween(roots, this.#inputs, tangents)))
  }

  differentiate(heads: readonly number[], grads: readonly Tensor[]): readonly (Tensor | null)[] {
    this.#onEager()
    return gradBetween(
      heads.map((i) => this.#root(i)),
      this.#inputs,
      grads,
      isGradEnabled(),
    )
  }
}

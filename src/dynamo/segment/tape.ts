// The tape is state of the program, too: a condition may call detach_, and a custom Function has a backward that no operator shows. A compiled backward is used only
// for a tape like the one that it was compiled from; otherwise the tape itself is kept, with the values that it recorded, and a backward walks it as in eager mode.
import { AutogradError, OpNode, gradBetween, isAsSaved, isGradEnabled, isNode, laidAt, producerOf, walkedBefore } from '../../autograd/index.ts'
import type { Edge, GradNode } from '../../autograd/index.ts'
import { ProxyTensorMode, traceBackward } from '../../aot/index.ts'
import type { CallTape, JointGraph } from '../../aot/index.ts'
import { isArgList, withoutModes } from '../../dispatch/index.ts'
import type { Arg } from '../../dispatch/index.ts'
import { tapeState } from '../../guards/index.ts'
import { present } from '../../errors/index.ts'
import type { Graph, Node } from '../../fx/index.ts'
import { Tensor } from '../../tensor/index.ts'
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
  const { bound } = segment
  let found: Map<GradNode, number> | null = null
  for (let slot = 0; slot < bound.length; slot++) {
    const input = bound[slot]
    if (!(input instanceof Tensor) || input.gradFn === null) continue
    const node = producerOf(input)
    found ??= new Map()
    if (node !== null) found.set(node, slot)
  }
  return found ?? NO_ENTRANCES
}

const NO_ENTRANCES: ReadonlyMap<GradNode, number> = new Map()

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
    for (const kind of tapeState) {
      const value = kind.read(node)
      // Only running the node tells what it does.
      if (value === null) return null
      list.push(value)
    }
    if (node instanceof OpNode) for (const output of node.outputs) list.push(segment.slotOf(output))
    node.targets.forEach((target, k) => {
      edge(target)
      list.push(node.outputNrs?.[k] ?? 0)
    })
  }
  return isKnown ? list : null
}

/** The slots of the inputs to which a list of {@link tapeOf} leads. */
export const exitsOf = (tape: readonly unknown[]): readonly number[] =>
  tape.flatMap((item, i) => {
    const slot = item === 'leaf' || item === 'input' ? tape[i + 1] : null
    return typeof slot === 'number' ? [slot] : []
  })

/**
 * Throws AutogradError if something was overwritten that the node's derivative would read: a compiled backward may do without it, but eager could not. `reached` gives the results
 * of the node that gradients reach.
 */
function checkSaved(node: OpNode, reached: () => ReadonlySet<number>): void {
  if (!node.isOverwritten) return
  const { args, outputs, versions, savedAt } = node
  const tensors = [...args.flat(), ...outputs].filter((value) => value instanceof Tensor)
  const isStale = (tensor: Tensor, i: number): boolean => !isAsSaved(tensor, versions?.[i] ?? 0, savedAt)
  if (!tensors.some(isStale)) return
  const then = (arg: Arg): Arg => (arg instanceof Tensor ? laidAt(arg, savedAt) : isArgList(arg) ? arg.map(then) : arg)
  const results = outputs.map((output) => laidAt(output, savedAt))
  const reads = derivativeReads(node.op, args.map(then), results, (i) => (node.targets[i] ?? null) !== null, reached())
  const stale = tensors.find((tensor, i) => reads[i] === true && isStale(tensor, i))
  if (stale !== undefined)
    throw new AutogradError(
      `backward of ${node.op.qualname}: a tensor of shape [${stale.shape.join(', ')}] that its gradient needs has been modified in place after the call. ` +
        'Use the operator without the trailing underscore, or call clone() before you modify the tensor.',
    )
}

/** A tensor with the memory and the history of `head`, which it keeps when the head gets another. */
function standIn(head: Tensor): Tensor {
  const gradFn = producerOf(head)
  const { sizes, dtype, storage, outputNr } = head
  return Object.assign(new Tensor(sizes, dtype, storage, undefined, undefined, head), { requiresGrad: true, gradFn, outputNr })
}

/** The tape of one call behind the heads of its compiled graph. It holds the recorded nodes, not their values. */
export class SegmentTape implements CallTape {
  readonly #segment: Segment
  /** Stand-ins for the heads, with the history that was recorded; the program's tensors lead to the compiled backward. */
  readonly #roots: readonly Tensor[]
  readonly #inputs: readonly Tensor[]
  readonly #entrances: ReadonlyMap<GradNode, number>
  readonly #slotNode: (slot: number) => Node | undefined
  #freed: Set<number> | null = null
  /** The recorded nodes behind all heads, once they were looked for. */
  #nodes: readonly GradNode[] | null = null
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
    this.#roots = heads.map(standIn)
    this.#inputs = inputs
    this.#entrances = entrances(segment)
    this.#slotNode = slotNode
    this.#onEager = onEager
    this.#released = hasReleased ? new Set(this.#behind([...heads.keys()]).filter((node) => node.released)) : null
  }

  #nodeOf(tensor: Tensor): Node | undefined {
    const { lazies, bound } = this.#segment
    // The tensors may belong to other captures by now, so their own slots do not count.
    let slot = lazies.lastIndexOf(tensor)
    if (slot < 0) slot = bound.lastIndexOf(tensor)
    return slot < 0 ? undefined : this.#slotNode(slot)
  }

  /** The recorded nodes behind some of the heads. */
  #behind(heads: readonly number[]): readonly GradNode[] {
    if (heads.length === this.#roots.length && this.#nodes !== null) return this.#nodes
    const seen = new Set<GradNode>()
    const nodes: GradNode[] = []
    const see = (node: Edge): void => {
      if (!isNode(node) || node.seq < this.#segment.firstSeq || seen.has(node) || this.#entrances.has(node)) return
      seen.add(node)
      nodes.push(node)
    }
    for (const root of this.#at(heads)) see(producerOf(root))
    for (const node of nodes) node.targets.forEach(see)
    if (heads.length === this.#roots.length) this.#nodes = nodes
    return nodes
  }

  #at(heads: readonly number[]): readonly Tensor[] {
    return heads.map((i) => present(this.#roots[i], 'a head of the tape'))
  }

  check(heads: readonly number[]): void {
    const nodes = this.#behind(heads)
    for (const node of nodes) {
      if (node.released && this.#released?.has(node) !== true) throw walkedBefore(node.name)
      if (node instanceof OpNode) checkSaved(node, () => this.#reached(node, nodes, heads))
    }
  }

  /** The results of a node that gradients of these heads reach, by `nodes`. */
  #reached(node: GradNode, nodes: readonly GradNode[], heads: readonly number[]): ReadonlySet<number> {
    const reached = new Set<number>()
    for (const root of this.#at(heads)) if (producerOf(root) === node) reached.add(root.outputNr)
    for (const { targets, outputNrs } of nodes) targets.forEach((target, k) => target === node && reached.add(outputNrs?.[k] ?? 0))
    return reached
  }

  release(heads: readonly number[]): boolean {
    if (heads.length === this.#roots.length) return true
    this.#freed ??= new Set()
    for (const head of heads) this.#freed.add(head)
    return this.#freed.size === this.#roots.length
  }

  free(heads: readonly number[]): void {
    for (const node of this.#behind(heads)) node.release()
  }

  trace(heads: readonly number[], graph: Graph): Pick<JointGraph, 'tangents' | 'grads'> {
    const mode = new ProxyTensorMode({ graph, resolve: (tensor) => this.#nodeOf(tensor) })
    const roots = this.#at(heads)
    return withoutModes(() => traceBackward(mode, roots, (tangents) => gradBetween(roots, this.#inputs, tangents)))
  }

  differentiate(heads: readonly number[], grads: readonly Tensor[]): readonly (Tensor | null)[] {
    this.#onEager()
    return gradBetween(this.#at(heads), this.#inputs, grads, isGradEnabled())
  }
}

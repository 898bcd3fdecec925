// One walk of the tape, from the newest node to the oldest: which nodes run, how gradients add up, when hooks run, and what is freed.
import { devices } from '../dispatch/index.ts'
import { allocating } from '../kernels/index.ts'
import { add } from '../ops/index.ts'
import { PriorityQueue } from '../protocol/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { anomaly, applyChecked } from './anomaly.ts'
import { walkedBefore } from './errors.ts'
import { applyHooks, hasLeafHooks, hookState, leafHooksOf } from './hooks.ts'
import { isNode, producerOf } from './node.ts'
import type { Edge, GradNode } from './node.ts'

/** The tensors whose gradients the caller wants. */
export interface Wanted {
  readonly leaves: ReadonlySet<Tensor>
  readonly outputs: ReadonlyMap<GradNode, ReadonlyMap<number, Tensor>>
  /** The nodes from which a wanted tensor can be reached. The others are not run. */
  readonly useful: ReadonlySet<GradNode>
  /** Whether to stop at the nodes that produced the wanted tensors, and leave their hooks to the caller. */
  readonly stopThere?: boolean
}

let walks = 0

/** What a node's derivative gives. */
const applied = (node: GradNode, grads: readonly (Tensor | null)[], needs: readonly boolean[]): readonly (Tensor | null)[] =>
  anomaly.enabled ? applyChecked(node, grads, needs) : node.apply(grads, needs)

/** The same where the gradients may be on a device. */
const appliedThere = (node: GradNode, grads: readonly (Tensor | null)[], needs: readonly boolean[]): readonly (Tensor | null)[] =>
  devices.operators?.forGradients(grads, () => applied(node, grads, needs)) ?? applied(node, grads, needs)

/** The nodes that can be reached from some tensors. */
export function nodesBehind(roots: readonly Tensor[]): readonly GradNode[] {
  const walk = ++walks
  const nodes: GradNode[] = []
  const visit = (edge: Edge): void => {
    if (!isNode(edge) || edge.visitedBy === walk) return
    edge.visitedBy = walk
    nodes.push(edge)
  }
  for (const root of roots) visit(producerOf(root))
  // The list grows while it is walked.
  for (const node of nodes) for (const target of node.targets) visit(target)
  return nodes
}

/** What the gradients of `inputs` need of the tape behind `roots`. */
export function reachability(roots: readonly Tensor[], inputs: readonly Tensor[]): Wanted {
  const leaves = new Set<Tensor>()
  const outputs = new Map<GradNode, Map<number, Tensor>>()
  for (const input of inputs) {
    const node = producerOf(input)
    if (node === null) leaves.add(input)
    else {
      const known = outputs.get(node) ?? new Map<number, Tensor>()
      known.set(input.outputNr, input)
      outputs.set(node, known)
    }
  }
  // Sorting all reachable nodes by age puts every target before its users, so that one sweep from the oldest suffices.
  const useful = new Set<GradNode>()
  for (const node of nodesBehind(roots).toSorted((a, b) => a.seq - b.seq)) {
    const reaches = outputs.has(node) || node.targets.some((t) => t !== null && (isNode(t) ? useful.has(t) : leaves.has(t)))
    if (reaches) useful.add(node)
  }
  return { leaves, outputs, useful }
}

/** A tensor to start from, and its gradient. */
export interface Root {
  readonly tensor: Tensor
  readonly grad: Tensor
}

/**
 * How many edges lead to each leaf that has hooks, from the nodes that this pass may run: when the last has delivered, the hooks can run. Null if no leaf has
 * any.
 */
function pendingLeaves(roots: readonly Tensor[], nodes: readonly GradNode[], wanted: Wanted | null): Map<Tensor, number> | null {
  if (hookState.leaves === 0) return null
  const pending = new Map<Tensor, number>()
  const count = (target: Edge): void => {
    if (target !== null && !isNode(target) && hasLeafHooks(target)) pending.set(target, (pending.get(target) ?? 0) + 1)
  }
  for (const tensor of roots) if (tensor.gradFn === null) count(tensor)
  for (const node of nodes) if (wanted === null || wanted.useful.has(node)) node.targets.forEach(count)
  return pending.size === 0 ? null : pending
}

/** The backward pass that is under way, for tools that watch operators: how many there are (one may start another), whose derivative is computed, and who hears of it. */
export const backwardState: {
  depth: number
  /** How many backward passes have started so far. */
  started: number
  node: GradNode | null
  /** Called with each node, the gradients that it gave, and those that it was given, before it is released. */
  onApplied: ((node: GradNode, gradients: readonly (Tensor | null)[], given: readonly (Tensor | null)[]) => void) | null
} = { depth: 0, started: 0, node: null, onApplied: null }

/** Receives gradients: `one` while the pass is under way, `all` those of the leaves that have no hooks, at its end. */
export interface Sink {
  one(tensor: Tensor, grad: Tensor): void
  all(gradients: ReadonlyMap<Tensor, Tensor>): void
}

/** One walk of the tape, from the newest node to the oldest. */
export class Walk {
  readonly #wanted: Wanted | null
  /** Whether what nodes saved is kept. */
  readonly #keep: boolean
  readonly #sink: Sink
  /** Whether hooks of leaves and of the nodes that were asked for are left to the caller. */
  readonly #leavesHooks: boolean
  /** The gradients that have come so far: of the results of nodes that are still to be walked, and of leaves. */
  readonly #buffers = new Map<GradNode, (Tensor | null)[]>()
  readonly #leafGrads = new Map<Tensor, Tensor>()
  /** Nodes waiting to run, newest first. */
  readonly #queue = new PriorityQueue<GradNode>((a, b) => a.seq > b.seq)
  /** How many edges to each leaf with hooks are still to be walked. */
  readonly #pending: Map<Tensor, number> | null
  /**
   * Each node is freed as soon as it has been walked, which keeps the peak of memory low; but a pass that may turn out to be impossible frees nothing before its end, so that
   * what it could walk is still there for others: these nodes. Null: they are freed at once, or kept.
   */
  readonly #walked: GradNode[] | null
  readonly #later: (() => void)[] = []

  constructor(roots: readonly Tensor[], wanted: Wanted | null, keep: boolean, sink: Sink) {
    this.#wanted = wanted
    this.#keep = keep
    this.#sink = sink
    this.#leavesHooks = wanted?.stopThere === true
    const nodes = keep && hookState.leaves === 0 ? [] : nodesBehind(roots)
    this.#pending = this.#leavesHooks ? null : pendingLeaves(roots, nodes, wanted)
    this.#walked = !keep && nodes.some((node) => node.released) ? [] : null
  }

  run(roots: readonly Root[]): void {
    for (const { tensor, grad } of roots) {
      this.#deliver(producerOf(tensor) ?? tensor, tensor.outputNr, grad)
      if (this.#pending !== null && tensor.gradFn === null) this.#arrived(tensor)
    }
    for (let node = this.#queue.take(); node !== undefined; node = this.#queue.take()) {
      const grads = this.#completeGradients(node)
      if (this.#leavesHooks && this.#wanted?.outputs.has(node) === true) continue
      const needs = this.#needsOf(node)
      if (needs !== null) this.#apply(node, grads, needs)
    }
    this.#walked?.forEach((node) => this.#release(node))
    for (const afterwards of this.#later) afterwards()
    if (hookState.leaves > 0) for (const [leaf, grad] of this.#leafGrads) this.#leafGrads.set(leaf, this.#finished(leaf, grad))
    this.#sink.all(this.#leafGrads)
  }

  /** Adds a gradient to that of a leaf, or of a result of a node. */
  #deliver(target: GradNode | Tensor, outputNr: number, grad: Tensor): void {
    const wanted = this.#wanted
    if (!isNode(target)) {
      if (wanted !== null && !wanted.leaves.has(target)) return
      const known = this.#leafGrads.get(target)
      this.#leafGrads.set(target, known === undefined ? grad : add(known, grad))
      return
    }
    if (wanted !== null && !wanted.useful.has(target)) return
    let buffer = this.#buffers.get(target)
    if (buffer === undefined) {
      buffer = new Array<Tensor | null>(target.numOutputs).fill(null)
      this.#buffers.set(target, buffer)
      this.#queue.add(target)
    }
    const known = buffer[outputNr] ?? null
    buffer[outputNr] = known === null ? grad : add(known, grad)
  }

  /** One edge to a leaf has been walked, with or without a gradient. The last one makes its gradient complete. */
  #arrived(leaf: Tensor): void {
    const left = this.#pending?.get(leaf)
    if (left === undefined) return
    this.#pending?.set(leaf, left - 1)
    const grad = this.#leafGrads.get(leaf)
    if (left > 1 || grad === undefined) return
    this.#leafGrads.delete(leaf)
    this.#sink.one(leaf, this.#finished(leaf, grad))
  }

  #finished(leaf: Tensor, grad: Tensor): Tensor {
    return hookState.leaves === 0 || this.#leavesHooks ? grad : applyHooks(leafHooksOf(leaf), grad)
  }

  /** The gradients of a node's results, after its hooks. Those that were asked for go to the sink. */
  #completeGradients(node: GradNode): (Tensor | null)[] {
    const grads = this.#buffers.get(node) ?? []
    this.#buffers.delete(node)
    for (let i = 0; i < grads.length; i++) {
      const grad = grads[i] ?? null
      if (grad === null) continue
      const asked = this.#wanted?.outputs.get(node)?.get(i)
      const hooked = this.#leavesHooks && asked !== undefined ? grad : applyHooks(node.hooks?.[i], grad)
      grads[i] = hooked
      if (asked !== undefined) this.#sink.one(asked, hooked)
    }
    return grads
  }

  /** For each edge of a node, whether its gradient is of use; null if none is. */
  #needsOf({ targets }: GradNode): readonly boolean[] | null {
    const wanted = this.#wanted
    const needs = new Array<boolean>(targets.length)
    let any = false
    for (let i = 0; i < targets.length; i++) {
      const target = targets[i] ?? null
      const need = target !== null && (wanted === null || (isNode(target) ? wanted.useful.has(target) : wanted.leaves.has(target)))
      needs[i] = need
      any ||= need
    }
    return any ? needs : null
  }

  /** Computes the derivative of a node and delivers what it gives. */
  #apply(node: GradNode, grads: readonly (Tensor | null)[], needs: readonly boolean[]): void {
    const { targets } = node
    if (node.released) throw walkedBefore(node.name)
    backwardState.node = node
    allocating.node = node
    const results = devices.operators === null ? applied(node, grads, needs) : appliedThere(node, grads, needs)
    backwardState.node = null
    backwardState.onApplied?.(node, results, grads)
    for (let i = 0; i < targets.length; i++) {
      const result = results[i] ?? null
      const target = targets[i] ?? null
      if (result !== null && target !== null && needs[i] === true) this.#deliver(target, node.outputNrs?.[i] ?? 0, result)
    }
    // Leaves hear of it when all edges have been served, in PyTorch's order: that of buckets depends on it.
    if (this.#pending !== null)
      for (const target of node.lastGradientFirst ? targets.toReversed() : targets) if (target !== null && !isNode(target)) this.#arrived(target)
    if (this.#walked !== null) this.#walked.push(node)
    else if (!this.#keep) this.#release(node)
  }

  #release(node: GradNode): void {
    const afterwards = node.release()
    if (afterwards !== null) this.#later.push(afterwards)
  }
}

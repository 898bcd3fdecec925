// The engine: walks the tape from the newest node to the oldest, adds up gradients, and delivers them to leaves or to the inputs asked for.
// It is iterative, so graphs may have any depth, and never reads data, so it runs on fake and pending tensors too.
import { dispatchState } from '../dispatch/index.ts'
import { ArgumentError, ShapeError } from '../errors/index.ts'
import { allocating, dtypeInfo } from '../kernels/index.ts'
import { add, onesLike } from '../ops/index.ts'
import { checkArgument, checkCount, checkOptions, valueText } from '../protocol/index.ts'
import { formatShape, sameShape, Tensor } from '../tensor/index.ts'
import { accumulate } from './accumulate.ts'
import { anomaly, applyChecked } from './anomaly.ts'
import { AutogradError } from './errors.ts'
import { accumulatedHooksOf, applyHooks, hasLeafHooks, hookState, leafHooksOf } from './hooks.ts'
import { isNode, producerOf } from './node.ts'
import type { Edge, GradNode } from './node.ts'

/** Options of a backward pass. */
export interface BackwardOptions {
  /** Whether to keep what the nodes saved, so that the graph can be walked again. Default: the value of createGraph. */
  readonly retainGraph?: boolean
  /** Whether to record the backward pass itself, for derivatives of derivatives. Default false. */
  readonly createGraph?: boolean
}

/** Nodes waiting to run, newest first: a binary heap over `seq`. */
class NodeQueue {
  readonly #heap: GradNode[] = []

  push(node: GradNode): void {
    const heap = this.#heap
    let i = heap.length
    heap.push(node)
    while (i > 0) {
      const parent = (i - 1) >> 1
      const above = heap[parent]
      if (above === undefined || above.seq >= node.seq) break
      heap[i] = above
      i = parent
    }
    heap[i] = node
  }

  pop(): GradNode | undefined {
    const heap = this.#heap
    const top = heap[0]
    const last = heap.pop()
    if (last === undefined || top === last) return top
    let i = 0
    for (;;) {
      let child = 2 * i + 1
      let below = heap[child]
      const sibling = heap[child + 1]
      if (below !== undefined && sibling !== undefined && sibling.seq > below.seq) {
        child++
        below = sibling
      }
      if (below === undefined || below.seq <= last.seq) break
      heap[i] = below
      i = child
    }
    heap[i] = last
    return top
  }
}

/** The tensors whose gradients the caller wants. */
interface Wanted {
  readonly leaves: ReadonlySet<Tensor>
  readonly outputs: ReadonlyMap<GradNode, ReadonlyMap<number, Tensor>>
  /** The nodes from which a wanted tensor can be reached. The others are not run. */
  readonly useful: ReadonlySet<GradNode>
  /** Whether to stop at the nodes that produced the wanted tensors, and leave their hooks to the caller. */
  readonly stopThere?: boolean
}

let walks = 0

/** The nodes that can be reached from some tensors. */
function nodesBehind(roots: readonly Tensor[]): readonly GradNode[] {
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

function reachability(roots: readonly Tensor[], inputs: readonly Tensor[]): Wanted {
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
interface Root {
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
interface Sink {
  one(tensor: Tensor, grad: Tensor): void
  all(gradients: ReadonlyMap<Tensor, Tensor>): void
}

/** A sink that keeps the gradients in a map. */
const intoMap = (results: Map<Tensor, Tensor>): Sink => ({
  one: (tensor, grad) => void results.set(tensor, grad),
  all: (gradients) => gradients.forEach((grad, leaf) => results.set(leaf, grad)),
})

/** One backward pass. `sink` receives the gradient of each wanted tensor, or of every leaf if `wanted` is null. */
function run(roots: readonly Root[], wanted: Wanted | null, keep: boolean, sink: Sink): void {
  const outer = backwardState.node
  const outerNode = allocating.node
  backwardState.depth++
  backwardState.started++
  try {
    // Looking for NaN reads every gradient, which a capture would compile one by one.
    if (anomaly.enabled) dispatchState.mode?.abandon?.()
    walk(roots, wanted, keep, sink)
  } finally {
    backwardState.depth--
    backwardState.node = outer
    allocating.node = outerNode
  }
}

function walk(roots: readonly Root[], wanted: Wanted | null, keep: boolean, sink: Sink): void {
  const buffers = new Map<GradNode, (Tensor | null)[]>()
  const leafGrads = new Map<Tensor, Tensor>()
  const queue = new NodeQueue()
  const tensors = roots.map(({ tensor }) => tensor)
  const nodes = keep && hookState.leaves === 0 ? [] : nodesBehind(tensors)
  const pending = wanted?.stopThere === true ? null : pendingLeaves(tensors, nodes, wanted)

  const finished = (leaf: Tensor, grad: Tensor): Tensor =>
    hookState.leaves === 0 || wanted?.stopThere === true ? grad : applyHooks(leafHooksOf(leaf), grad)
  /** One edge to a leaf has been walked, with or without a gradient. The last one makes its gradient complete. */
  const arrived = (leaf: Tensor): void => {
    const left = pending?.get(leaf)
    if (left === undefined) return
    pending?.set(leaf, left - 1)
    const grad = leafGrads.get(leaf)
    if (left > 1 || grad === undefined) return
    leafGrads.delete(leaf)
    sink.one(leaf, finished(leaf, grad))
  }
  const deliver = (target: GradNode | Tensor, outputNr: number, grad: Tensor): void => {
    if (!isNode(target)) {
      if (wanted !== null && !wanted.leaves.has(target)) return
      const known = leafGrads.get(target)
      leafGrads.set(target, known === undefined ? grad : add(known, grad))
      return
    }
    if (wanted !== null && !wanted.useful.has(target)) return
    let buffer = buffers.get(target)
    if (buffer === undefined) {
      buffer = new Array<Tensor | null>(target.numOutputs).fill(null)
      buffers.set(target, buffer)
      queue.push(target)
    }
    const known = buffer[outputNr] ?? null
    buffer[outputNr] = known === null ? grad : add(known, grad)
  }

  const later: (() => void)[] = []
  const release = (node: GradNode): void => {
    const afterwards = node.release()
    if (afterwards !== null) later.push(afterwards)
  }
  // Each node is freed as soon as it has been walked, which keeps the peak of memory low; but a pass that may turn out to be impossible frees nothing before its
  // end, so that what it could walk is still there for others.
  const walked: GradNode[] | null = !keep && nodes.some((node) => node.released) ? [] : null
  for (const { tensor, grad } of roots) {
    deliver(producerOf(tensor) ?? tensor, tensor.outputNr, grad)
    if (pending !== null && tensor.gradFn === null) arrived(tensor)
  }
  for (let node = queue.pop(); node !== undefined; node = queue.pop()) {
    const grads = buffers.get(node) ?? []
    buffers.delete(node)
    for (let i = 0; i < grads.length; i++) {
      const grad = grads[i] ?? null
      if (grad === null) continue
      const asked = wanted?.outputs.get(node)?.get(i)
      const hooked = wanted?.stopThere === true && asked !== undefined ? grad : applyHooks(node.hooks?.[i], grad)
      grads[i] = hooked
      if (asked !== undefined) sink.one(asked, hooked)
    }
    if (wanted?.stopThere === true && wanted.outputs.has(node)) continue
    const { targets } = node
    const needs = new Array<boolean>(targets.length)
    let any = false
    for (let i = 0; i < targets.length; i++) {
      const target = targets[i] ?? null
      const need = target !== null && (wanted === null || (isNode(target) ? wanted.useful.has(target) : wanted.leaves.has(target)))
      needs[i] = need
      any ||= need
    }
    if (!any) continue
    if (node.released) {
      throw new AutogradError(
        `backward: the graph through ${node.name} has been walked before, and what it saved was freed. ` +
          'Pass { retainGraph: true } to the first backward, or compute the forward pass again.',
      )
    }
    backwardState.node = node
    allocating.node = node
    const results = anomaly.enabled ? applyChecked(node, grads, needs) : node.apply(grads, needs)
    backwardState.node = null
    backwardState.onApplied?.(node, results, grads)
    for (let i = 0; i < targets.length; i++) {
      const result = results[i] ?? null
      const target = targets[i] ?? null
      if (result !== null && target !== null && needs[i] === true) deliver(target, node.outputNrs?.[i] ?? 0, result)
    }
    // Leaves hear of it when all edges have been served, in PyTorch's order: that of buckets depends on it.
    if (pending !== null)
      for (const target of node.lastGradientFirst ? targets.toReversed() : targets) if (target !== null && !isNode(target)) arrived(target)
    if (walked !== null) walked.push(node)
    else if (!keep) release(node)
  }
  walked?.forEach(release)
  for (const afterwards of later) afterwards()
  if (hookState.leaves > 0) for (const [leaf, grad] of leafGrads) leafGrads.set(leaf, finished(leaf, grad))
  sink.all(leafGrads)
}

function checkRoot(name: string, root: Tensor, index: number): void {
  if (!(root instanceof Tensor)) throw new ArgumentError(`${name}: output ${index} must be a Tensor, got ${valueText(root)}.`)
  if (root.requiresGrad) return
  throw new AutogradError(
    `${name}: output ${index} does not require grad and has no gradFn, so there is nothing to differentiate. ` +
      'Call requiresGrad_() on a leaf before the computation, and check that it was not inside noGrad.',
  )
}

function rootGradient(name: string, root: Tensor, gradient: Tensor | null | undefined): Tensor {
  if (gradient === null || gradient === undefined) {
    if (root.numel === 1) return onesLike(root)
    throw new AutogradError(
      `${name}: the gradient of a tensor of shape ${formatShape(root.sizes)} must be given; only for one element it is 1 by default. ` +
        'Reduce it first (sum(), mean()), or pass a gradient of the same shape.',
    )
  }
  if (!(gradient instanceof Tensor)) throw new ArgumentError(`${name}: the gradient must be a Tensor, got ${valueText(gradient)}.`)
  if (!sameShape(gradient.sizes, root.sizes)) {
    throw new ShapeError(
      `${name}: the gradient has shape ${formatShape(gradient.sizes)}, but the output has shape ${formatShape(root.sizes)}; they must be equal.`,
    )
  }
  return gradient
}

function withGrad<T>(enabled: boolean, fn: () => T): T {
  const { gradEnabled, internal } = dispatchState
  dispatchState.gradEnabled = enabled
  dispatchState.internal = true
  try {
    return fn()
  } finally {
    dispatchState.gradEnabled = gradEnabled
    dispatchState.internal = internal
  }
}

/** One or several tensors, as a list. Throws ArgumentError for anything else. */
function tensorsOf(where: string, name: string, given: Tensor | readonly Tensor[]): readonly Tensor[] {
  if (given instanceof Tensor) return [given]
  checkArgument(Array.isArray(given), where, name, 'a Tensor or an array of Tensors', given)
  given.forEach((item: unknown, i) => checkArgument(item instanceof Tensor, where, `${name}[${i}]`, 'a Tensor', item))
  return given
}

/**
 * Computes the gradients of `tensors` and adds them to `.grad` of the leaves, or of `inputs` only, if given. PyTorch's `torch.autograd.backward`.
 * `gradTensors[i]` is the gradient of `tensors[i]`; it may be left out for a tensor of one element. Throws AutogradError if a tensor does not require grad.
 */
export function backward(
  tensors: Tensor | readonly Tensor[],
  gradTensors: Tensor | readonly (Tensor | null)[] | null = null,
  options: BackwardOptions & { readonly inputs?: readonly Tensor[] | Tensor } = {},
): void {
  checkCount('backward', arguments, 3)
  checkOptions('backward', options, { retainGraph: 'boolean', createGraph: 'boolean', inputs: true })
  const roots = tensorsOf('backward', 'tensors', tensors)
  const given = gradTensors instanceof Tensor ? [gradTensors] : (gradTensors ?? [])
  const createGraph = options.createGraph ?? false
  const keep = options.retainGraph ?? createGraph
  roots.forEach((root, i) => checkRoot('backward', root, i))
  const inputs = options.inputs === undefined ? null : tensorsOf('backward', 'inputs', options.inputs)
  withGrad(createGraph, () => {
    const starts = roots.map((tensor, i) => ({ tensor, grad: rootGradient('backward', tensor, given[i]) }))
    const shared = new Set<Tensor>()
    for (const gradient of given) if (gradient !== null) shared.add(gradient)
    const wanted = inputs === null ? null : reachability(roots, inputs)
    const sink: Sink = {
      one(tensor, grad) {
        accumulate(new Map([[tensor, grad]]), createGraph, shared)
        if (hookState.leaves > 0) for (const hook of accumulatedHooksOf(tensor)?.slice() ?? []) hook(tensor)
      },
      all(gradients) {
        accumulate(gradients, createGraph, shared)
      },
    }
    withCallbacks(() => run(starts, wanted, keep, sink))
  })
}

/** What is to run at the end of the backward pass that is under way; null outside of one. */
let callbacks: (() => void)[] | null = null

function withCallbacks(pass: () => void): void {
  const outer = callbacks
  const own: (() => void)[] = []
  callbacks = own
  try {
    pass()
    // A callback may queue another.
    for (const callback of own) callback()
  } finally {
    callbacks = outer
  }
}

/**
 * Calls `callback` when the backward pass that is under way has delivered all gradients; for hooks. The callbacks of a pass that throws are dropped. Throws
 * AutogradError outside of a backward pass. PyTorch's `Variable._execution_engine.queue_callback`.
 */
export function queueBackwardCallback(callback: () => void): void {
  checkCount('autograd.queueBackwardCallback', arguments, 1)
  if (callbacks === null)
    throw new AutogradError(
      'queueBackwardCallback: no backward pass is under way. Call it from a hook (registerHook, registerPostAccumulateGradHook).',
    )
  callbacks.push(callback)
}

/**
 * Returns the gradients of the sum of `outputs` with respect to `inputs`, and leaves `.grad` alone. PyTorch's `torch.autograd.grad`.
 * Throws AutogradError for an input that the outputs do not depend on, or returns null for it with `allowUnused`.
 */
export function grad(
  outputs: Tensor | readonly Tensor[],
  inputs: Tensor | readonly Tensor[],
  options: BackwardOptions & { readonly gradOutputs?: Tensor | readonly (Tensor | null)[] | null; readonly allowUnused?: boolean } = {},
): (Tensor | null)[] {
  checkCount('grad', arguments, 3)
  checkOptions('grad', options, { gradOutputs: true, retainGraph: 'boolean', createGraph: 'boolean', allowUnused: 'boolean' })
  const roots = tensorsOf('grad', 'outputs', outputs)
  const wantedTensors = tensorsOf('grad', 'inputs', inputs)
  const given = options.gradOutputs instanceof Tensor ? [options.gradOutputs] : (options.gradOutputs ?? [])
  const createGraph = options.createGraph ?? false
  const keep = options.retainGraph ?? createGraph
  roots.forEach((root, i) => checkRoot('grad', root, i))
  wantedTensors.forEach((input, i) => {
    if (input.requiresGrad) return
    throw new AutogradError(
      `grad: input ${i} (shape ${formatShape(input.sizes)}, dtype ${input.dtype}) does not require grad; call requiresGrad_() on it before the computation.`,
    )
  })
  const results = new Map<Tensor, Tensor>()
  withGrad(createGraph, () => {
    const starts = roots.map((tensor, i) => ({ tensor, grad: rootGradient('grad', tensor, given[i]) }))
    run(starts, reachability(roots, wantedTensors), keep, intoMap(results))
  })
  return wantedTensors.map((input, i) => {
    const value = gradientOf(input, results)
    if (value !== null || options.allowUnused === true) return value
    throw new AutogradError(
      `grad: input ${i} (shape ${formatShape(input.sizes)}) was not used to compute the outputs. Pass { allowUnused: true } to get null for it.`,
    )
  })
}

/** The gradient of `input`. Two tensor objects may stand for one output of one node, and the walk reports one of them. */
function gradientOf(input: Tensor, results: ReadonlyMap<Tensor, Tensor>): Tensor | null {
  const direct = results.get(input)
  if (direct !== undefined || input.gradFn === null) return direct ?? null
  for (const [tensor, value] of results) if (tensor.gradFn === input.gradFn && tensor.outputNr === input.outputNr) return value
  return null
}

/**
 * The gradients of what was computed between `inputs` and `outputs`: the walk ends at the inputs, whose hooks do not run, and the tape is kept. Null for
 * inputs that were not used. compile calls it to attach a backward of its own to that part. `createGraph` records the walk itself.
 */
export function gradBetween(
  outputs: readonly Tensor[],
  inputs: readonly Tensor[],
  gradOutputs: readonly Tensor[],
  createGraph = false,
): (Tensor | null)[] {
  const results = new Map<Tensor, Tensor>()
  const wanted: Wanted = { ...reachability(outputs, inputs), stopThere: true }
  const starts = outputs.flatMap((tensor, i) => {
    const grad = gradOutputs[i]
    return grad === undefined ? [] : [{ tensor, grad }]
  })
  withGrad(createGraph, () => run(starts, wanted, true, intoMap(results)))
  return inputs.map((input) => gradientOf(input, results))
}

/** Whether a tensor can have gradients at all. */
export const isDifferentiable = (tensor: Tensor): boolean => dtypeInfo[tensor.dtype].floating

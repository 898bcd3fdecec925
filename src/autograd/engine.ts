// The engine: walks the tape (walk.ts), and delivers gradients to leaves or to the inputs asked for.
// It is iterative, so graphs may have any depth, and never reads data, so it runs on fake and pending tensors too.
import { dispatchState } from '../dispatch/index.ts'
import { ArgumentError, ShapeError } from '../errors/index.ts'
import { allocating, dtypeInfo, isComplexDType } from '../kernels/index.ts'
import { onesLike } from '../ops/index.ts'
import { checkArgument, checkCount, checkOptions, valueText } from '../protocol/index.ts'
import { formatShape, sameShape, sizeEq, Tensor } from '../tensor/index.ts'
import { accumulate } from './accumulate.ts'
import { anomaly } from './anomaly.ts'
import { AutogradError } from './errors.ts'
import { accumulatedHooksOf, hookState } from './hooks.ts'
import { Walk, backwardState, reachability } from './walk.ts'
import type { Root, Sink, Wanted } from './walk.ts'

/** Options of a backward pass. */
export interface BackwardOptions {
  /** Whether to keep what the nodes saved, so that the graph can be walked again. Default: the value of createGraph. */
  readonly retainGraph?: boolean
  /** Whether to record the backward pass itself, for derivatives of derivatives. Default false. */
  readonly createGraph?: boolean
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
    const tensors = roots.map(({ tensor }) => tensor)
    new Walk(tensors, wanted, keep, sink).run(roots)
  } finally {
    backwardState.depth--
    backwardState.node = outer
    allocating.node = outerNode
  }
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
    if (isComplexDType(root.dtype))
      throw new ArgumentError(
        `${name}: the gradient of a complex output of dtype ${root.dtype} must be given; differentiate a real number, such as torch.abs(x).sum(), or pass the gradient.`,
      )
    if (sizeEq(root.symNumel, 1)) return onesLike(root)
    throw new AutogradError(
      `${name}: the gradient of a tensor of shape ${formatShape(root.symSizes)} must be given; only for one element it is 1 by default. ` +
        'Reduce it first (sum(), mean()), or pass a gradient of the same shape.',
    )
  }
  if (!(gradient instanceof Tensor)) throw new ArgumentError(`${name}: the gradient must be a Tensor, got ${valueText(gradient)}.`)
  if (!sameShape(gradient.symSizes, root.symSizes)) {
    throw new ShapeError(
      `${name}: the gradient has shape ${formatShape(gradient.symSizes)}, but the output has shape ${formatShape(root.symSizes)}; they must be equal.`,
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
export const isDifferentiable = (tensor: Tensor): boolean => dtypeInfo[tensor.dtype].differentiable

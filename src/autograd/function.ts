// User-defined differentiable functions, and the low-level way to give tensors a backward, which compiled graphs use.
import { checkArgument, isFunction } from '../protocol/index.ts'
import { dispatchState } from '../dispatch/index.ts'
import { ArgumentError, ShapeError } from '../errors/index.ts'
import { dtypeInfo } from '../kernels/index.ts'
import { detach, to, zerosLike } from '../ops/index.ts'
import { formatShape, sameShape, Tensor } from '../tensor/index.ts'
import { AutogradError } from './errors.ts'
import { GradNode, pushEdge, setGradFn, upcomingSeq } from './node.ts'
import type { EdgeList } from './node.ts'
import { isAsSaved, versionOf } from './versions.ts'

/** Computes the gradients of the inputs from those of the outputs; null where there is none. */
export type BackwardFn = (grads: readonly (Tensor | null)[], needs: readonly boolean[]) => readonly (Tensor | null)[]

/** A node whose backward is a function: of a compiled graph, or a custom one. */
export class FunctionNode extends GradNode {
  readonly name: string
  released = false
  #backward: BackwardFn | null
  /** Only the shapes, as holding the inputs would keep their memory alive. */
  readonly #shapes: readonly (readonly number[])[]
  readonly options: AttachOptions
  /** What the backward is the same for, in all calls; null if only running it tells what it does. compile traces the former. */
  readonly identity: object | null

  constructor(inputs: readonly Tensor[], edges: EdgeList, numOutputs: number, backward: BackwardFn, options: AttachOptions) {
    super(edges, numOutputs)
    this.name = options.name ?? 'CompiledFunctionBackward'
    this.identity = options.identity ?? null
    this.#backward = backward
    this.#shapes = inputs.map(({ sizes }) => sizes)
    this.options = options
  }

  apply(grads: readonly (Tensor | null)[], needs: readonly boolean[]): readonly (Tensor | null)[] {
    const backward = this.#backward
    if (backward === null)
      throw new AutogradError(`${this.name}: its saved tensors were freed by an earlier backward; pass { retainGraph: true } to that one.`)
    const results = backward(grads, needs)
    if (!Array.isArray(results) || results.length !== this.#shapes.length) {
      throw new ArgumentError(
        `${this.name}: its backward must return ${this.#shapes.length} gradients (null where there is none), one per tensor input, got ${Array.isArray(results) ? String(results.length) : typeof results}.`,
      )
    }
    return this.#shapes.map((shape, i) => {
      const result = results[i] ?? null
      if (result !== null && !sameShape(result.sizes, shape)) {
        throw new ShapeError(
          `${this.name}: its backward returned a gradient of shape ${formatShape(result.sizes)} for input ${i} of shape ${formatShape(shape)}.`,
        )
      }
      return result
    })
  }

  release(): (() => void) | null {
    const { isLast, afterwards } = this.options.release?.() ?? { isLast: true, afterwards: null }
    if (isLast) {
      this.options.onRelease?.()
      this.#backward = null
      this.released = true
    }
    return afterwards
  }
}

/** Options of {@link attachGradNode}. */
export interface AttachOptions {
  /** The value of `gradFn.name`; default 'CompiledFunctionBackward'. */
  readonly name?: string
  /** Called when the saved tensors are freed (after a backward without retainGraph). */
  readonly onRelease?: () => unknown
  /** Called before that: says whether nothing else needs them, and what is to be done when the pass is over. */
  readonly release?: () => { readonly isLast: boolean; readonly afterwards: (() => void) | null }
  /** See {@link FunctionNode.identity}. */
  readonly identity?: object | null
}

/**
 * Gives tensors a history: `outputs` were computed from `inputs`, and `backward` computes the gradients of all inputs from those of all outputs.
 * Inputs that do not require grad get none. Integer outputs are left alone. Returns the node, or null if no input requires grad.
 */
export function attachGradNode(
  outputs: readonly Tensor[],
  inputs: readonly Tensor[],
  backward: BackwardFn,
  options: AttachOptions = {},
): GradNode | null {
  if (!inputs.some((t) => t.requiresGrad)) return null
  const edges: EdgeList = { targets: [], outputNrs: null }
  for (const input of inputs) pushEdge(edges, input)
  const node = new FunctionNode(inputs, edges, outputs.length, backward, options)
  outputs.forEach((output, i) => {
    if (dtypeInfo[output.dtype].differentiable) setGradFn(output, node, i)
  })
  return node
}

const traceable = new WeakSet<object>()
let traceAll = 0

/** Declares that the backward of a {@link Function} depends only on its arguments and on what ctx saved: compile may trace it. */
export function allowTracing(fn: object): void {
  traceable.add(fn)
}

/** Runs `code`; Functions that it applies may be traced, see {@link allowTracing}. */
export function tracingFunctions<T>(code: () => T): T {
  traceAll++
  try {
    return code()
  } finally {
    traceAll--
  }
}

/** What the forward and the backward of a custom function share. PyTorch's `ctx`. */
export class FunctionContext {
  /** Anything else that forward passes to backward. */
  [key: string]: unknown
  #saved: readonly Tensor[] = []
  #versions: readonly number[] = []
  #savedAt = 0
  #freed = false
  readonly #nonDifferentiable = new Set<Tensor>()
  /** Whether each argument of `apply` needs a gradient. PyTorch's `ctx.needs_input_grad`. */
  needsInputGrad: readonly boolean[] = []

  /** Keeps tensors for backward. */
  saveForBackward(...tensors: Tensor[]): void {
    this.#saved = tensors
    this.#versions = tensors.map(versionOf)
    this.#savedAt = upcomingSeq()
  }

  /** Declares that these results have no gradient. */
  markNonDifferentiable(...tensors: Tensor[]): void {
    for (const tensor of tensors) this.#nonDifferentiable.add(tensor)
  }

  /** Whether the result was marked by markNonDifferentiable. */
  isNonDifferentiable(tensor: Tensor): boolean {
    return this.#nonDifferentiable.has(tensor)
  }

  /** The tensors given to saveForBackward. Throws AutogradError if they were freed, or one was modified in place since. */
  get savedTensors(): readonly Tensor[] {
    if (this.#freed) throw new AutogradError('ctx.savedTensors: freed by an earlier backward; pass { retainGraph: true } to that one.')
    this.#saved.forEach((tensor, i) => {
      if (isAsSaved(tensor, this.#versions[i] ?? 0, this.#savedAt)) return
      throw new AutogradError(
        `ctx.savedTensors: saved tensor ${i} (shape ${formatShape(tensor.sizes)}) has been modified in place since forward; save a clone() of it.`,
      )
    })
    return this.#saved
  }

  /** Drops the saved tensors. */
  free(): void {
    this.#saved = []
    this.#freed = true
  }
}

/** A gradient in the dtype of its tensor: a backward may compute in another one, as under autocast. */
const gradientAs = (tensor: Tensor | undefined, grad: Tensor | null): Tensor | null =>
  tensor === undefined || !(grad instanceof Tensor) || grad.dtype === tensor.dtype ? grad : to(grad, tensor.dtype)

/** What {@link Function.apply} needs of a subclass: its forward takes `A` and gives `R`. */
interface Differentiable<A extends readonly unknown[], R> {
  forward(ctx: FunctionContext, ...args: A): R
  backward(ctx: FunctionContext, ...grads: never[]): Tensor | null | readonly (Tensor | null)[]
}

/**
 * A custom differentiable function; PyTorch's `torch.autograd.Function`. Subclass it with static `forward(ctx, ...args)` and `backward(ctx, ...grads)`,
 * and call `YourClass.apply(...args)`. `backward` returns one gradient per argument of forward (null for arguments that are not tensors).
 */
// eslint-disable-next-line typescript/no-extraneous-class -- PyTorch's API: a namespace of two static methods that users override
export class Function {
  /** Computes the result from the arguments. Operators in it are not recorded. Throws ArgumentError where a class does not define it. */
  static forward(_ctx: FunctionContext, ..._args: never[]): Tensor | readonly Tensor[] {
    throw new ArgumentError(`${this.name}: define a static method forward(ctx, ...args).`)
  }

  /** Computes the gradients of the arguments from those of the results. Throws ArgumentError where a class does not define it. */
  static backward(_ctx: FunctionContext, ..._grads: never[]): Tensor | null | readonly (Tensor | null)[] {
    throw new ArgumentError(`${this.name}: define a static method backward(ctx, ...grads).`)
  }

  /** Runs forward and records backward. It has the arguments of forward, and its results. */
  static apply<A extends readonly unknown[], R extends Tensor | readonly Tensor[]>(this: Differentiable<A, R>, ...args: A): R
  static apply(...args: unknown[]): Tensor | readonly Tensor[] {
    checkArgument(isFunction(this), 'Function.apply', 'this', 'a subclass of torch.autograd.Function', this)
    const ctx = new FunctionContext()
    const recording = dispatchState.gradEnabled
    ctx.needsInputGrad = args.map((arg) => arg instanceof Tensor && arg.requiresGrad)
    dispatchState.gradEnabled = false
    let result: Tensor | readonly Tensor[]
    try {
      result = this.forward(ctx, ...(args as never[]))
    } finally {
      dispatchState.gradEnabled = recording
    }
    if (!recording || !ctx.needsInputGrad.includes(true)) return result
    // An argument that forward returns as it is must not become its own parent.
    const outputs = (result instanceof Tensor ? [result] : result).map((t) => (args.includes(t) ? detach(t) : t))
    const tensors = args.filter((arg) => arg instanceof Tensor)
    const positions = args.flatMap((arg, i) => (arg instanceof Tensor ? [i] : []))
    const backward = (grads: readonly (Tensor | null)[]): readonly (Tensor | null)[] => {
      const full = outputs.map((output, i) => grads[i] ?? zerosLike(output))
      const returned = this.backward(ctx, ...(full as never[]))
      const list = returned instanceof Tensor || returned === null ? [returned] : returned
      return positions.map((i, k) => gradientAs(tensors[k], list[i] ?? null))
    }
    const node = attachGradNode(outputs, tensors, backward, {
      name: `${this.name}Backward`,
      onRelease: () => ctx.free(),
      identity: traceAll > 0 || traceable.has(this) ? this : null,
    })
    if (node !== null) {
      for (const output of outputs) {
        if (!ctx.isNonDifferentiable(output)) continue
        output.requiresGrad = false
        output.gradFn = null
      }
    }
    const [only] = outputs
    return result instanceof Tensor && only !== undefined ? only : outputs
  }
}

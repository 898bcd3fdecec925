// compile: a function that captures itself on the way and runs as compiled graphs.
import { compileDifferentiable } from '../aot/index.ts'
import { isGradEnabled } from '../autograd/index.ts'
import { dispatchState, withMode, withoutModes } from '../dispatch/index.ts'
import { ArgumentError, UnsupportedError } from '../errors/index.ts'
import type { GraphModule } from '../fx/index.ts'
import { Module } from '../module/index.ts'
import { treeFlatten, treeLeaves } from '../pytree/index.ts'
import { Tensor } from '../tensor/index.ts'
import { lookupBackend, wrapAotCompiler, wrapBackend } from './backends.ts'
import type { Backend } from './backends.ts'
import { Capture } from './capture.ts'
import type { CaptureHost } from './capture.ts'
import { config } from './config.ts'
import { BackendCompilerFailed } from './errors.ts'
import { ExplainOutput } from './explain.ts'
import { buildGraph } from './segment.ts'
import type { CompiledSegment } from './segment.ts'
import { Step } from './traceTree.ts'

export interface CompileOptions {
  /** A registered backend's name or a function (gm, exampleInputs) => compiled. Default 'inductor'. */
  readonly backend?: string | Backend
  /** A graph break is an error. Default false. */
  readonly fullgraph?: boolean
  /** The caller's promise that the function is pure: on a hit the arguments are checked and the function is not run. Default false. */
  readonly skipReplay?: boolean
  /** Called with each graph before the backend gets it. */
  readonly onGraph?: (gm: GraphModule, exampleInputs: readonly unknown[]) => void
}

/** A compiled function. */
export interface Compiled<F extends (...args: never[]) => unknown> {
  (...args: Parameters<F>): ReturnType<F>
  /** Kernels of the graphs compiled so far, when the backend reports them (inductor does). */
  kernels(): readonly { readonly name: string; readonly ops: readonly string[]; readonly text: string; readonly kind: string }[]
  /** Graphs compiled so far. */
  graphs(): readonly GraphModule[]
  /** Why other paths than the first were recorded. */
  recompileReasons(): readonly string[]
}

const OPTIONS = new Set(['backend', 'fullgraph', 'skipReplay', 'onGraph'])

/** Functions and modules that were compiled; `reset` forgets their trees. */
const compiledFunctions = new Set<WeakRef<CompiledFunction>>()

type Callable = (...args: never[]) => unknown
type CallOf<M extends Module> = (...args: Parameters<M['forward']>) => ReturnType<M['forward']>

/**
 * Compiles a function or module; PyTorch's torch.compile. Your code runs at every call: its operators are recorded, or checked against what
 * was recorded, and run as fused kernels when the function returns or needs a value.
 *
 *     const fast = compile((x) => torch.relu(x.mul(2)).sum())
 */
export function compile<F extends Callable>(fn: F, options?: CompileOptions): Compiled<F>
export function compile<M extends Module>(module: M, options?: CompileOptions): Compiled<CallOf<M>>
export function compile(target: Callable | Module, options: CompileOptions = {}): Compiled<Callable> {
  for (const key of Object.keys(options))
    if (!OPTIONS.has(key)) throw new ArgumentError(`compile: unknown option '${key}'; known are ${[...OPTIONS].join(', ')}.`)
  if (!(target instanceof Module) && typeof target !== 'function') throw new ArgumentError('compile: expected a function or a Module.')
  const backend = options.backend ?? 'inductor'
  if (typeof backend === 'string') lookupBackend(backend)
  const compiled = new CompiledFunction(target, backend, options)
  compiledFunctions.add(new WeakRef(compiled))
  const call = (...args: never[]): unknown => compiled.call(args)
  return Object.assign(call, {
    kernels: () => compiled.graphRecords.flatMap((r) => r.kernels),
    graphs: () => compiled.graphRecords.map((r) => r.gm),
    recompileReasons: () => compiled.reasons,
  })
}

/** Forgets everything that was compiled. PyTorch's torch._dynamo.reset. */
export function reset(): void {
  for (const ref of compiledFunctions) ref.deref()?.reset()
}

/** Runs `fn` eagerly also inside a compiled function (which breaks its graph). PyTorch's torch.compiler.disable. */
export function disable<F extends Callable>(fn: F): F {
  return ((...args: never[]): unknown => {
    // What the function does is not seen (it may write to anything): all that came before is computed first.
    if (dispatchState.mode instanceof Capture)
      dispatchState.mode.breakGraph([], `a disabled function (${fn.name === '' ? 'anonymous' : fn.name})`, true)
    for (const leaf of treeLeaves(args)) if (leaf instanceof Tensor) leaf.realize()
    return withoutModes(() => fn(...args))
  }) as F
}

/** explain(fn)(...args) runs the function once from scratch and reports its graphs and breaks. PyTorch's torch._dynamo.explain. */
export function explain(fn: Callable | Module): (...args: readonly unknown[]) => ExplainOutput {
  return (...args) => {
    const compiled = new CompiledFunction(fn, 'eager', {})
    compiled.call(args as never[])
    return new ExplainOutput(
      compiled.graphRecords.map((r) => r.gm),
      compiled.breaks(),
      compiled.graphRecords.map((r) => r.milliseconds),
    )
  }
}

interface GraphRecord {
  readonly gm: GraphModule
  readonly kernels: ReturnType<Compiled<Callable>['kernels']>
  readonly milliseconds: number
}

let graphCount = 0

class CompiledFunction implements CaptureHost {
  readonly #target: Callable | Module
  readonly #backend: string | Backend
  readonly #options: CompileOptions
  readonly #trees = new Map<string, Step>()
  #names: Map<Tensor, string> | null = null
  readonly graphRecords: GraphRecord[] = []
  readonly reasons: string[] = []
  #branches = 0
  #warned = false
  #argNames: readonly string[] = []

  constructor(target: Callable | Module, backend: string | Backend, options: CompileOptions) {
    this.#target = target
    this.#backend = backend
    this.#options = options
  }

  get fullgraph(): boolean {
    return this.#options.fullgraph ?? false
  }

  reset(): void {
    this.#trees.clear()
    this.graphRecords.length = 0
    this.reasons.length = 0
    this.#branches = 0
  }

  #runTarget(args: never[]): unknown {
    return this.#target instanceof Module ? (this.#target.call as (...a: never[]) => unknown).apply(this.#target, args) : this.#target(...args)
  }

  call(args: never[]): unknown {
    // Inside another capture the code is part of that graph; under any other mode it is not ours to capture.
    if (dispatchState.mode !== null) return this.#runTarget(args)
    if (this.#branches > config.recompileLimit) {
      this.#warnOnce()
      return this.#runTarget(args)
    }
    const root = this.#treeFor(args)
    const capture = new Capture(this, root)
    let result: unknown
    try {
      result = withMode(capture, () => this.#runTarget(args))
    } catch (error) {
      // What the program wrote before it failed must stand, as it would eagerly.
      try {
        capture.segment.finish([])
      } catch {
        capture.segment.abandon()
      }
      throw error
    }
    if (result instanceof Promise) {
      capture.segment.abandon()
      throw new UnsupportedError(
        'compile: the function returned a Promise. Compile the synchronous part that computes with tensors, and await around it.',
      )
    }
    const outputs = treeLeaves(result).filter((leaf): leaf is Tensor => leaf instanceof Tensor)
    capture.segment.finish(outputs, isGradEnabled())
    for (const tensor of outputs) if (tensor.storage === null) tensor.realize()
    return result
  }

  #warnOnce(): void {
    if (this.#warned) return
    this.#warned = true
    const name = this.#target instanceof Module ? this.#target.constructor.name : this.#target.name
    console.warn(
      `compile: config.recompileLimit (${config.recompileLimit}) reached for '${name}'; it runs eagerly from now on. Last reason: ${this.reasons.at(-1) ?? 'unknown'}`,
    )
  }

  /** The tree for calls with arguments of this structure. */
  #treeFor(args: readonly unknown[]): Step {
    const { leaves, spec } = treeFlatten(args)
    let key = `${isGradEnabled()}|${leaves.length === args.length ? '' : JSON.stringify(spec)}`
    for (const leaf of leaves) {
      key +=
        leaf instanceof Tensor
          ? `|${leaf.dtype}[${leaf.shape.join()}]${leaf.contiguousLayout ? '' : leaf.strides.join()}${leaf.requiresGrad ? 'g' : ''}`
          : `|${typeof leaf === 'object' || typeof leaf === 'function' || typeof leaf === 'number' ? typeof leaf : String(leaf)}`
    }
    let root = this.#trees.get(key)
    if (root === undefined) {
      if (this.#trees.size > 0) this.onBranch('arguments of other shapes or values')
      root = Step.root()
      this.#trees.set(key, root)
      this.#names = null
    }
    this.#argNames = []
    return root
  }

  nameOf(tensor: Tensor): string | null {
    if (this.#names === null) {
      this.#names = new Map()
      if (this.#target instanceof Module) {
        for (const [name, p] of this.#target.namedParameters()) this.#names.set(p as unknown as Tensor, `p_${name.replaceAll('.', '_')}`)
        for (const [name, b] of this.#target.namedBuffers()) this.#names.set(b as unknown as Tensor, `b_${name.replaceAll('.', '_')}`)
      }
    }
    void this.#argNames
    return this.#names.get(tensor) ?? null
  }

  onBranch(why: string): void {
    this.#branches++
    this.reasons.push(why)
  }

  breaks(): ExplainOutput['breakReasons'][number][] {
    const found: ExplainOutput['breakReasons'][number][] = []
    const visit = (step: Step): void => {
      if (step.breakReason !== null) found.push(step.breakReason)
      step.children.forEach(visit)
      if (step.after !== null) visit(step.after)
    }
    for (const root of this.#trees.values()) visit(root)
    return found
  }

  compileSegment(
    capture: Capture,
    end: Step,
    outputs: readonly number[],
    writeBacks: ReadonlyMap<number, number>,
    differentiable: readonly number[],
  ): CompiledSegment {
    const names = new Map<number, string>()
    for (const step of end.path()) for (const arg of step.args) if (arg.kind === 'input' && arg.spec.name !== null) names.set(arg.slot, arg.spec.name)
    const { gm, inputSlots } = buildGraph(
      end,
      outputs,
      (slot) => names.get(slot) ?? null,
      writeBacks,
      `__compiled_fn_${graphCount++}`,
      differentiable.length > 0,
    )
    const inputs = inputSlots.map((slot) => capture.segment.bound[slot])
    this.#options.onGraph?.(gm, inputs)
    const start = performance.now()
    const label = typeof this.#backend === 'string' ? this.#backend : this.#backend.name === '' ? 'custom' : this.#backend.name
    const raw = typeof this.#backend === 'string' ? lookupBackend(this.#backend) : this.#backend
    const backend = wrapBackend(raw, label)
    const parts: CompiledPart[] = []
    const compilePart =
      (compiler: Backend) =>
      (part: GraphModule, examples: readonly unknown[]): ((...values: readonly unknown[]) => readonly unknown[]) => {
        const compiled = this.#guarded(compiler, label, part, examples)
        parts.push(compiled as unknown as CompiledPart)
        return compiled
      }
    const positions = differentiable.map((slot) => outputs.indexOf(slot))
    const differentiated = positions.length === 0 ? null : compileDifferentiable(gm, inputs, positions, compilePart(wrapAotCompiler(raw, label)))
    const aot = wrapAotCompiler(backend, label)
    const run = differentiated?.forward ?? compilePart(aot)(gm, inputs)
    const kernels = parts.flatMap((p) => p.kernels ?? [])
    this.graphRecords.push({ gm, kernels, milliseconds: performance.now() - start })
    return {
      gm,
      run,
      inputSlots,
      outputSlots: outputs,
      writtenInPlace: differentiated === null ? ((run as unknown as CompiledPart).writtenInPlace ?? new Set()) : new Set(),
      attach: differentiated?.attach ?? null,
      results: outputs.length,
    }
  }

  /** Calls the backend; its failure is a BackendCompilerFailed, or, with suppressErrors, a warning and eager. */
  #guarded(backend: Backend, label: string, gm: GraphModule, inputs: readonly unknown[]): (...values: readonly unknown[]) => readonly unknown[] {
    try {
      const compiled = backend(gm, inputs) as (...values: readonly unknown[]) => unknown
      if (typeof compiled !== 'function') throw new ArgumentError('compiler_fn did not return callable')
      const call = (...values: readonly unknown[]): readonly unknown[] => {
        const out = compiled(...values)
        return Array.isArray(out) ? (out as readonly unknown[]) : [out]
      }
      const part = compiled as unknown as CompiledPart
      return Object.assign(
        call,
        part.kernels === undefined ? {} : { kernels: part.kernels },
        part.writtenInPlace === undefined ? {} : { writtenInPlace: part.writtenInPlace },
      )
    } catch (error) {
      if (!config.suppressErrors) throw new BackendCompilerFailed(label, error)
      console.warn(`compile: backend '${label}' failed and config.suppressErrors is set: running eagerly. ${String(error)}`)
      return (...values) => gm.forward(...values) as readonly unknown[]
    }
  }
}

interface CompiledPart {
  readonly kernels?: GraphRecord['kernels']
  readonly writtenInPlace?: ReadonlySet<number>
}

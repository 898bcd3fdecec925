// makeFx: the operators that a function runs, those of gradients inside it included, as a GraphModule.
import { withMode } from '../../dispatch/index.ts'
import { ArgumentError, UnsupportedError } from '../../errors/index.ts'
import { PyTreeCodeGen, makeGraphModule } from '../../fx/index.ts'
import type { Argument, GraphModule } from '../../fx/index.ts'
import { signatureOf } from '../../fx/trace/parameters.ts'
import { guardedCall, modulesBelow } from '../../guards/index.ts'
import { Module } from '../../module/index.ts'
import { checkArgument, checkCount, checkOptions, checkSynchronous, isCallable, isClass, isFunction, valueText } from '../../protocol/index.ts'
import { isSymbolic } from '../../protocol/index.ts'
import type { TargetFunction } from '../../protocol/index.ts'
import { treeFlatten, treeLeaves, treeMap } from '../../pytree/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { withoutDrawing } from '../trace/draws.ts'
import { ProxyTensorMode } from '../trace/proxyMode.ts'
import type { Decomposition } from '../trace/proxyOptions.ts'
import { SizeNodes } from '../trace/sizeNodes.ts'
import { SourceRecorder } from './sources.ts'
import { newShapeEnv, noteSymbols } from './symbolicGraphs.ts'
import { noteGuards } from './traceGuards.ts'
import { TraceInputs } from './traceInputs.ts'

/** Options of {@link makeFx}. */
export interface MakeFxOptions {
  /** Decompose operators that have a decomposition and neither a template nor a rule that fuses. Default false. */
  readonly decompose?: boolean
  /**
   * `'fake'` (default) computes only shapes and dtypes. `'real'` computes values too, which operators need whose shapes depend on data; the program cannot read them in
   * either mode. `'symbolic'`: sizes of at least 2, and integers among the arguments, are symbols, and the graph serves for all sizes that satisfy the guards of the trace (see
   * `evalGuards`). The program then reads SymInts: `torch.symMax(x.shape[0], 8)` and `x.shape[0].mul(2)` stay symbolic, while JavaScript's own operators make the size a constant.
   */
  readonly tracingMode?: 'real' | 'fake' | 'symbolic'
  /** Functions to record in place of operators that the graph would contain: `new Map([[torch.silu, (x) => x.mul(x.sigmoid())]])`. */
  readonly decompositionTable?: ReadonlyMap<TargetFunction, Decomposition>
  /** Whether the program may use tensors that are neither arguments nor computed from them; they become attributes. Default true (PyTorch: false for fake tensors). */
  readonly allowNonFakeInputs?: boolean
}

const MODES: readonly string[] = ['real', 'fake', 'symbolic']

function checkMakeFxOptions(options: MakeFxOptions): void {
  checkOptions('makeFx', options, { decompose: 'boolean', tracingMode: true, decompositionTable: true, allowNonFakeInputs: 'boolean' })
  const { tracingMode = 'fake' } = options
  if (!MODES.includes(tracingMode))
    throw new ArgumentError(`makeFx: options.tracingMode must be 'real', 'fake' or 'symbolic', got ${valueText(tracingMode)}.`)
}

/**
 * Runs a function or module on fake tensors shaped like the arguments and records every operator below autograd (and, with `decompose`,
 * decompositions). Numbers become constants; those among the arguments keep their places, but the graph does not use them. The graph
 * is called with arguments of the same structure, nested ones too. In-place operators are recorded as functional ones, and writes to views as scatters; what was written to
 * arguments, parameters and buffers is copied back at the end of the graph. Random operators draw anew whenever the graph runs. Nodes know the layer or
 * function that they come from (`meta.source_fn_stack`) and the modules around it (`meta.nn_module_stack`). PyTorch's torch.fx.experimental.proxy_tensor.make_fx.
 *
 *     const gm = makeFx((x) => { const y = x.sin().sum(); return grad(y, x)[0] })(torch.ones([3], { requiresGrad: true }))
 *
 * @throws ArgumentError for an option that does not exist; UnsupportedError for a tensor from outside with `allowNonFakeInputs: false`.
 */
export function makeFx(fn: Module | ((...args: never[]) => unknown), options: MakeFxOptions = {}): (...args: readonly unknown[]) => GraphModule {
  checkCount('makeFx', arguments, 2)
  checkArgument(isCallable(fn) && !isClass(fn), 'makeFx', 'fn', 'a function or a Module', fn)
  checkMakeFxOptions(options)
  // Arguments have the types that `fn` takes, or its own checks fail.
  const run = (...args: readonly unknown[]): unknown => Reflect.apply(fn, undefined, args)
  return (...args) => {
    const call = guardedCall(args)
    const sources = new SourceRecorder(fn)
    const env = options.tracingMode === 'symbolic' ? newShapeEnv() : null
    const mode = new ProxyTensorMode({
      ...(options.decompose !== undefined && { decompose: options.decompose }),
      ...(options.decompositionTable !== undefined && { decompositions: options.decompositionTable }),
      real: options.tracingMode === 'real',
      ...(env !== null && { sizes: (graph) => new SizeNodes(graph, env) }),
      onNode: (node) => sources.note(node),
    })
    const names = argumentNames(fn, args.length)
    // With nested arguments every value in them has a placeholder, and the graph is called with nested arguments, too.
    const isNested = call.spec.kind === 'array' && call.spec.children.some(({ kind }) => kind !== 'leaf')
    const inputs = new TraceInputs(mode, env)
    const fakes = args.map((arg, i) => inputs.add(names[i] ?? `arg${i}`, arg, isNested))
    let gm: GraphModule
    try {
      const result = withoutDrawing(
        () => sources.within(() => withMode(mode, () => explainMissing(fn, args.length, () => run(...fakes)))),
        () => mode.drawCount,
      )
      checkSynchronous('makeFx', 'fn', result)
      // What the function returns of its arguments are the arguments, so they get their values first.
      mode.writeBack()
      inputs.relayBack()
      mode.joinResults(treeLeaves(result))
      const nodes = treeMap(result, (leaf) => nodeFor(mode, leaf)) as Argument
      mode.graph.output(isNested ? (treeLeaves(nodes) as Argument) : nodes)
      if (isNested) mode.graph.setCodegen(new PyTreeCodeGen({ origArgs: names, inSpec: call.spec, outSpec: treeFlatten(result).spec }))
      if (options.allowNonFakeInputs === false) refuseConstants(mode.constants)
      const name = fn instanceof Module ? fn.getName() : fn.name
      gm = makeGraphModule(Object.fromEntries(mode.constants), mode.graph, name === '' ? 'GraphModule' : name)
    } finally {
      mode.restoreHistories()
    }
    if (env !== null) noteSymbols(gm, { env, inputs: inputs.layoutsIn(env) })
    noteGuards(gm, call, [...mode.constants.values()], modulesBelow([fn, ...call.leaves, ...sources.called]))
    return gm
  }
}

/** Runs the function. If it fails on an argument that was not given, the error says so. */
function explainMissing<T>(fn: object, given: number, run: () => T): T {
  try {
    return run()
  } catch (error) {
    const called: unknown = fn instanceof Module ? Reflect.get(fn, 'forward') : fn
    const wanted = isFunction(called) ? called.length : 0
    if (!(error instanceof TypeError) || given >= wanted) throw error
    const text = `makeFx: the function takes ${wanted} argument${wanted === 1 ? '' : 's'} but got ${given}. Call what makeFx returns with example inputs: makeFx(fn)(x).`
    throw new ArgumentError(text, { cause: error })
  }
}

/** What a graph returns for a value of the program. */
const nodeFor = (mode: ProxyTensorMode, value: unknown): unknown =>
  value instanceof Tensor ? mode.nodeOf(value) : isSymbolic(value) ? mode.sizeNode(value) : value

function refuseConstants(constants: ReadonlyMap<string, Tensor>): void {
  const [name] = constants.keys()
  if (name !== undefined)
    throw new UnsupportedError(
      `makeFx: the program uses ${constants.size} ${constants.size === 1 ? 'tensor' : 'tensors'} from outside; pass them as arguments, or leave out allowNonFakeInputs: false.`,
    )
}

/** The names of a function's parameters; arg0, arg1, … for a module, and if they have no names. */
function argumentNames(fn: Module | ((...args: never[]) => unknown), count: number): string[] {
  const parameters = fn instanceof Module ? [] : signatureOf(fn).parameters
  const named = parameters.length >= count && !parameters.some((p) => p.rest || p.properties !== null)
  return Array.from({ length: count }, (_, i) => (named ? parameters[i]?.name : undefined) ?? `arg${i}`)
}

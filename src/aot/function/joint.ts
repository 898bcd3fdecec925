// A backward that runs outside of the compiled function: the joint graph of the forward and its gradient is split into a forward graph, which also returns
// what the backward needs, and a backward graph. The backend compiles both (the backward when it first runs).
import { AutogradError, OpNode, backwardState, gradBetween, noGrad, nodesBehind, upcomingSeq } from '../../autograd/index.ts'
import { checkArgument, checkArray, checkCallable, isObject, valueText } from '../../protocol/index.ts'
import { fakeLike, withMode } from '../../dispatch/index.ts'
import { ArgumentError, UnsupportedError, present } from '../../errors/index.ts'
import { currentScope, inScope, newId } from '../../events/index.ts'
import { GraphModule, Interpreter, Node } from '../../fx/index.ts'
import { readState, segmentState, underSegmentState } from '../../guards/index.ts'
import { checkGraph, checkGraphModule } from '../../protocol/graphChecks.ts'
import { CapturedStack } from '../../provenance/index.ts'
import { Tensor, asTensors } from '../../tensor/index.ts'
import type { Memory } from '../trace/aliases.ts'
import { attachBackward } from './callTape.ts'
import type { BackwardCode, BackwardPart } from './callTape.ts'
import type { CompileGraph, CompiledCode } from '../meta/compiled.ts'
import { drawNumbers, withoutDrawing } from '../trace/draws.ts'
import { originOf } from './effects.ts'
import type { Effects } from './effects.ts'
import { announceGraph, announceJoint, announcePartition } from '../joint/graphEvent.ts'
import { backwardModule, forwardModule } from '../joint/jointParts.ts'
import type { JointGraph } from '../joint/jointGraph.ts'
import { memoryRead, minCutPartition } from '../joint/partition.ts'
import type { Partition } from '../joint/partition.ts'
import { ProxyTensorMode } from '../trace/proxyMode.ts'
import { backwardOfSome } from '../joint/someHeads.ts'
import { standIn } from './standIns.ts'

/** How a joint graph is split and compiled. */
export interface JointOptions {
  /** Compiles the forward graph. PyTorch's fw_compiler. */
  readonly fwCompiler: CompileGraph
  /** Compiles the backward graph; default fwCompiler. */
  readonly bwCompiler?: CompileGraph
  /** Chooses what is saved; default {@link minCutPartition}. */
  readonly partition?: Partition
}

/** A compiled pair of graphs. */
export interface Differentiable {
  /** Returns the outputs of the graph; the heads have a history when an input requires grad. */
  readonly run: (...inputs: readonly unknown[]) => readonly unknown[]
  readonly forwardGraph: GraphModule
  readonly backwardGraph: GraphModule
  /** What fwCompiler returned. */
  readonly compiledForward: CompiledCode
}

/** Splits a functional graph whose outputs at `heads` will be differentiated, and compiles both parts. All inputs must be tensors. */
export function compileDifferentiable(gm: GraphModule, inputs: readonly unknown[], heads: readonly number[], options: JointOptions): Differentiable {
  checkGraphModule('compileDifferentiable', gm)
  checkArray('compileDifferentiable', 'inputs', inputs)
  const names = gm.graph.findNodes({ op: 'placeholder' }).map((n) => n.name)
  const results = (...fakes: readonly Tensor[]): readonly Tensor[] => {
    const outputs: unknown = new Interpreter(gm).run(...fakes)
    checkArray('compileDifferentiable', 'the outputs of the graph', outputs)
    return asTensors(outputs, 'the outputs of the graph')
  }
  const joint = traceJoint(results, asTensors(inputs, 'the inputs'), { names, heads })
  return compileJoint({ ...joint, writeBacks: writeBacksOf(gm) ?? joint.writeBacks }, inputs, gm.className, options)
}

/** What a captured graph writes to its inputs: from positions of outputs to positions of inputs. */
function writeBacksOf(gm: GraphModule): ReadonlyMap<number, number> | undefined {
  const given = gm.meta['writeBacks']
  return given instanceof Map ? given : undefined
}

/** Looks at how a joint graph is split. */
export interface SplitWatch {
  /** Gets the halves before they are compiled. */
  readonly split: (forward: GraphModule, backward: GraphModule) => void
  /** Gets what the forward gets, before each call. */
  readonly called: (values: readonly unknown[]) => void
}

/** Called with every joint graph before it is split; null without a debugger, which sets it. */
export const splitting: { watch: ((joint: JointGraph, name: string) => SplitWatch | null) | null } = { watch: null }

/** Splits and compiles a joint graph. `inputs` are examples. */
export function compileJoint(joint: JointGraph, inputs: readonly unknown[], name: string, options: JointOptions): Differentiable {
  checkArgument(isObject(options), 'compileJoint', 'options', 'an object', options)
  const partition = options.partition ?? minCutPartition
  const watch = splitting.watch?.(joint, name) ?? null
  const saved = partition(joint)
  // A backward is compiled when it first runs, but belongs to this graph and function.
  const { fn, graph: parent } = currentScope()
  announceJoint(joint)
  announcePartition(joint, saved, name, partition.name)
  const forwardGraph = forwardModule(joint, saved, `${name}_forward`)
  const backwardGraph = backwardModule(joint, saved, `${name}_backward`)
  watch?.split(forwardGraph, backwardGraph)
  const { constants = [], draws = 0 } = joint
  const half = (role: 'forward' | 'backward', compiler: CompileGraph, graph: GraphModule, args: readonly unknown[]): CompiledCode =>
    inScope({ fn, graph: newId('graph') }, () => {
      announceGraph(graph, { role, parent, reason: role, isJoint: false })
      return compiler(graph, args)
    })
  const examples = [...inputs, ...constants, ...Array.from({ length: 4 * draws }, () => 0)]
  const forward = half('forward', options.fwCompiler, forwardGraph, examples)
  let backward: CompiledCode | null = null
  // The backward is compiled and run when the program may have changed what the graph belongs to, such as the default dtype.
  const state = readState(segmentState, null)
  const compile = (graph: GraphModule, args: readonly unknown[]): CompiledCode => {
    const compiled = underSegmentState(state, () => half('backward', options.bwCompiler ?? options.fwCompiler, graph, args))
    return (...values) => underSegmentState(state, () => compiled(...values))
  }
  const parts = new Map<string, BackwardPart>()
  const code: BackwardCode = {
    joint,
    whole: (args) => ({ graph: backwardGraph, code: (backward ??= compile(backwardGraph, args)) }),
    part: (heads, tape, args) => {
      const key = heads.join('_')
      let part = parts.get(key)
      if (part === undefined) {
        const some = { ...joint, ...(tape === null ? backwardOfSome(joint, heads) : tape.trace(heads, joint.graph)) }
        const gm = backwardModule(some, saved, `${name}_backward_${key}`)
        const needs = gm.graph.findNodes({ op: 'placeholder' }).map((node) => node.users.size > 0)
        part = { graph: gm, code: compile(gm, args), needs, reads: memoryRead(some) }
        parts.set(key, part)
      }
      return part
    },
  }
  const run = (...given: readonly unknown[]): readonly unknown[] => {
    const values = constants.length + draws === 0 ? given : [...given, ...constants, ...drawNumbers(draws)]
    watch?.called(values)
    // The history comes from the backward graph.
    const results = noGrad(() => forward(...values))
    const outputs = results.slice(0, joint.outputs.length)
    const kept = results.slice(joint.outputs.length)
    attachBackward(code, values, outputs, joint.relaysInputs === true ? kept.map(sameLayoutForever) : kept)
    return outputs
  }
  return { run, forwardGraph, backwardGraph, compiledForward: forward }
}

/** A tensor object of its own, which keeps its layout when that of the program's tensor changes. */
const sameLayoutForever = (value: unknown): unknown =>
  value instanceof Tensor ? new Tensor(value.sizes, value.dtype, value.storage, undefined, undefined, value) : value

/**
 * The joint graph of a function of tensors, which runs it on fake tensors and differentiates what autograd recorded. `heads`: the outputs to differentiate;
 * default all that require grad. What the function wrote to its inputs becomes further outputs, which `writeBacks` lists. Throws ArgumentError if it returns no array of tensors.
 */
export function traceJoint(
  fn: (...fakes: readonly Tensor[]) => readonly Tensor[],
  inputs: readonly Tensor[],
  options: { readonly names?: readonly string[]; readonly heads?: readonly number[]; readonly effects?: Effects } = {},
): JointGraph {
  checkCallable('traceJoint', 'fn', fn)
  checkArray('traceJoint', 'inputs', inputs)
  const mode = new ProxyTensorMode({ drawsAsInputs: true, constantsAsInputs: true })
  const placeholders: Node[] = []
  const leaves = inputs.map((input, i) => {
    const { shape, dtype, strides } = fakeLike(input)
    // The graph's inputs are its leaves.
    const leaf = Tensor.fake({ shape, dtype, strides })
    leaf.requiresGrad = input.requiresGrad
    placeholders.push(mode.placeholder(options.names?.[i] ?? `primals_${i + 1}`, leaf))
    return leaf
  })
  const given = options.effects === undefined ? leaves : leaves.map((leaf, i) => standIn(present(inputs[i], 'an input'), leaf, mode))
  const memories = given.map((tensor) => mode.memoryOf(tensor))
  const starts = given.map(originOf)
  const firstSeq = upcomingSeq()
  try {
    return withoutDrawing(trace, () => mode.drawCount)
  } finally {
    mode.restoreHistories()
  }

  function trace(): JointGraph {
    const { effects } = options
    effects?.enter(mode)
    const returned = withMode(mode, () => fn(...given))
    if (!Array.isArray(returned)) throw new ArgumentError(`traceJoint: fn must return an array of tensors, got ${valueText(returned)}.`)
    const memoriesNow = (): Memory[] => [...memories, ...[...mode.constants.values()].map((constant) => mode.memoryOf(constant))]
    const results = effects?.end(returned, memoriesNow) ?? returned
    mode.joinResults(results)
    const outputs = results.map((r) => mode.nodeOf(r))
    const isHead = (result: Tensor, i: number): boolean =>
      result.requiresGrad && (effects === undefined || result.gradFn !== null) && (options.heads?.includes(i) ?? true)
    const heads = [...results.keys()].filter((i) => results[i] !== undefined && isHead(results[i], i))
    const roots = results.filter(isHead)
    const constants = [...mode.constants.values()]
    const before = constants.map((constant) => mode.beforeTrace(constant))
    const origins = [...starts, ...before.map(originOf)]
    const writeBacks = new Map<number, number>()
    for (const [i, memory] of memoriesNow().entries()) {
      const constant = constants[i - leaves.length]
      // What the function makes is made anew at each call.
      if (memory.version === 0 || (constant !== undefined && mode.isOwn(constant))) continue
      const root = mode.rootOf(memory)
      const position = outputs.push(mode.nodeOf(root)) - 1
      writeBacks.set(position, i)
      // A write that was recorded gives the input a history.
      if (root.gradFn === null || originOf(root) === origins[i]) continue
      heads.push(position)
      roots.push(root)
    }
    // What the function froze was a leaf before.
    for (const [i, leaf] of leaves.entries()) if (inputs[i]?.requiresGrad === true) leaf.requiresGrad = true
    // A gradient ends at an outer tensor that is not a leaf; from there it goes on at run time.
    const sources = [...leaves, ...before]
    const gradInputs = [...sources.keys()].filter((i) => sources[i]?.requiresGrad === true && (i >= leaves.length || sources[i].gradFn === null))
    const sharing = sharedNodes(roots, firstSeq)
    const versions = memoriesNow().map(({ version }) => version)
    const { failures, ...backward } = traceWithFailures(
      mode,
      roots,
      gradInputs.map((i) => present(sources[i], 'an input')),
    )
    const writes = memoriesNow().some(({ version }, i) => version !== (versions[i] ?? 0))
    const writing = writes
      ? new UnsupportedError('a backward writes to an input of the function, which a graph cannot do. Write to a clone() of what you have saved.')
      : null
    const { graph, drawInputs, drawCount: draws } = mode
    const captured = [...mode.constants.keys()].map((name) => present(graph.findNodes({ op: 'placeholder', target: name })[0], `the input ${name}`))
    // What only the backward draws or takes from outside comes in with the rest.
    const forwardNodes = new Set([...backward.forwardNodes, ...captured, ...drawInputs])
    return {
      ...backward,
      graph,
      inputs: [...placeholders, ...captured, ...drawInputs],
      outputs,
      heads,
      sharing,
      gradInputs,
      writeBacks,
      mayBeOverwritten: true,
      draws,
      forwardNodes,
      failures: failures.map((failure) => failure ?? writing),
      constants,
      relaysInputs: effects?.relaysArguments ?? false,
    }
  }
}

/** See {@link JointGraph.sharing}. Nodes before `firstSeq` are not the function's. */
function sharedNodes(roots: readonly Tensor[], firstSeq: number): readonly bigint[] {
  const behind = roots.map((root) => new Set(nodesBehind([root]).filter(({ seq }) => seq >= firstSeq)))
  const meet = (a: number, b: number): boolean => a === b || [...(behind[a] ?? [])].some((node) => behind[b]?.has(node))
  return roots.map((_, a) => roots.reduce((bits, _, b) => (meet(a, b) ? bits | (1n << BigInt(b)) : bits), 0n))
}

/**
 * The gradient half. If the gradients of a head are impossible, that is the business of a backward that starts from it, and neither of the forward nor of other heads: as in eager mode, where a
 * backward meets only what its results lead to.
 */
function traceWithFailures(
  mode: ProxyTensorMode,
  roots: readonly Tensor[],
  leaves: readonly Tensor[],
): Backward & { readonly failures: readonly (Error | null)[] } {
  const failures = roots.map((): Error | null => null)
  const backward = traceBackward(mode, roots, (tangents, heads) => {
    const of = (chosen: readonly number[]): readonly (Tensor | null)[] => {
      const pick = (tensors: readonly Tensor[]): Tensor[] => chosen.map((i) => present(tensors[i], 'a head'))
      return gradBetween(pick(heads), leaves, pick(tangents))
    }
    const all = [...heads.keys()]
    try {
      return of(all)
    } catch (error) {
      if (!isImpossible(error)) throw error
    }
    for (const i of all) {
      try {
        of([i])
      } catch (error) {
        if (!isImpossible(error)) throw error
        failures[i] = error
      }
    }
    const possible = all.filter((i) => failures[i] === null)
    return possible.length === 0 ? leaves.map(() => null) : of(possible)
  })
  return { ...backward, failures }
}

const isImpossible = (error: unknown): error is Error => error instanceof AutogradError || error instanceof UnsupportedError

type Backward = Pick<JointGraph, 'forwardNodes' | 'tangents' | 'grads'>

/** The backward half of a joint graph: placeholders for the gradients of `roots`, and what `differentiate` records. */
export function traceBackward(
  mode: ProxyTensorMode,
  roots: readonly Tensor[],
  differentiate: (tangents: readonly Tensor[], roots: readonly Tensor[]) => readonly (Tensor | null)[],
): Backward {
  checkGraph('traceBackward', Reflect.get(Object(mode), 'graph'), 'mode.graph')
  checkArray('traceBackward', 'roots', roots)
  checkCallable('traceBackward', 'differentiate', differentiate)
  const forwardNodes = new Set(mode.graph.nodes)
  const tangents = roots.map(({ shape, dtype }, i) => {
    const tensor = Tensor.fake({ shape, dtype })
    return { tensor, node: mode.placeholder(`tangents_${i + 1}`, tensor) }
  })
  const gradients = notingGradients(mode, () =>
    withMode(mode, () =>
      differentiate(
        tangents.map((t) => t.tensor),
        roots,
      ),
    ),
  )
  return { forwardNodes, tangents: tangents.map((t) => t.node), grads: gradients.map((g) => (g === null ? null : mode.nodeOf(g))) }
}

/** Notes at the nodes of gradients which derivative gives them, and of which node, for anomaly mode and comparisons. */
function notingGradients<T>(mode: ProxyTensorMode, fn: () => T): T {
  const outer = backwardState.onApplied
  backwardState.onApplied = (from, gradients) => {
    const [output] = from instanceof OpNode ? from.outputs : []
    const of = output === undefined ? undefined : mode.known(output)
    const stack: unknown = of?.meta['stack_trace']
    for (const [i, gradient] of gradients.entries()) {
      const node = gradient === null ? undefined : mode.known(gradient)
      // A derivative that passes a gradient on did not compute it.
      if (node !== undefined) {
        const at = stack instanceof CapturedStack ? stack : undefined
        node.meta['gradient'] ??= { name: from.name, output: i, stack: at, of: of?.name ?? null }
      }
    }
  }
  try {
    return fn()
  } finally {
    backwardState.onApplied = outer
  }
}

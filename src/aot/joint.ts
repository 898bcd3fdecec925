// A backward that runs outside of the compiled function: the joint graph of the forward and its gradient is split into a forward graph, which also returns
// what the backward needs, and a backward graph. The backend compiles both (the backward when it first runs).
import { attachGradNode, AutogradError, enableGrad, grad, isGradEnabled, noGrad } from '../autograd/index.ts'
import { checkArgument, checkArray, checkCallable, isObject } from '../protocol/index.ts'
import { fakeLike, withMode } from '../dispatch/index.ts'
import { UnsupportedError, present } from '../errors/index.ts'
import { Graph, GraphModule, Interpreter, Node } from '../fx/index.ts'
import { checkGraph, checkGraphModule } from '../protocol/graphChecks.ts'
import { clone, zeros } from '../ops/index.ts'
import { Tensor, asTensor, asTensors, sameShape } from '../tensor/index.ts'
import type { Storage } from '../tensor/index.ts'
import type { CompileGraph, CompiledCode } from './compiled.ts'
import { drawNumbers, withoutDrawing } from './draws.ts'
import { backwardModule, forwardModule } from './halves.ts'
import { minCutPartition } from './partition.ts'
import type { JointGraph, Partition } from './partition.ts'
import { ProxyTensorMode } from './proxyMode.ts'

/** How a joint graph is split and compiled. */
export interface JointOptions {
  /** Compiles the forward graph. PyTorch's fw_compiler. */
  readonly fwCompiler: CompileGraph
  /** Compiles the backward graph; default fwCompiler. */
  readonly bwCompiler?: CompileGraph
  /** Chooses what is saved; default {@link minCutPartition}. */
  readonly partition?: Partition
}

/**
 * The tape of one call, behind the heads of its compiled graph: what is asked when a backward starts from some of the heads only, or is itself recorded.
 * `heads` are positions among the heads.
 */
export interface CallTape {
  /** Throws AutogradError if a backward has freed what these heads need. */
  check(heads: readonly number[]): void
  /** Notes that the backward of these heads has freed what it used. Returns whether nothing is left. */
  release(heads: readonly number[]): boolean
  /** Frees the recorded nodes behind these heads, which other tensors may lead to as well. */
  free(heads: readonly number[]): void
  /** Traces the backward of these heads into `graph`, the joint graph. */
  trace(heads: readonly number[], graph: Graph): Pick<JointGraph, 'tangents' | 'grads'>
  /** The gradients of the inputs, operator by operator; recorded if gradients are enabled. */
  differentiate(heads: readonly number[], grads: readonly Tensor[]): readonly (Tensor | null)[]
}

const attached = new WeakMap<object, CallState>()

interface CallState {
  tape: CallTape | null
  /** Versions of the values that were kept for the backward, which must not be written to before it. */
  versions: readonly number[]
  readonly versionsNow: () => readonly number[]
}

/** Tells the node of a compiled graph's outputs about the tape of its call, when the outputs have become the program's tensors. */
export function giveTape(gradFn: object, tape: CallTape): void {
  const state = attached.get(gradFn)
  if (state === undefined) return
  state.tape = tape
  state.versions = state.versionsNow()
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
  const results = (...fakes: readonly Tensor[]): readonly Tensor[] => asTensors(new Interpreter(gm).run(...fakes), 'the outputs of the graph')
  const joint = traceJoint(results, asTensors(inputs, 'the inputs'), { names, heads })
  return compileJoint({ ...joint, writeBacks: writeBacksOf(gm) ?? joint.writeBacks }, inputs, gm.className, options)
}

/** What a captured graph writes to its inputs: from positions of outputs to positions of inputs. */
function writeBacksOf(gm: GraphModule): ReadonlyMap<number, number> | undefined {
  const given = gm.meta['writeBacks']
  return given instanceof Map ? given : undefined
}

/** Splits and compiles a joint graph. `inputs` are examples. */
export function compileJoint(joint: JointGraph, inputs: readonly unknown[], name: string, options: JointOptions): Differentiable {
  checkArgument(isObject(options), 'compileJoint', 'options', 'an object', options)
  const saved = (options.partition ?? minCutPartition)(joint)
  const forwardGraph = forwardModule(joint, saved, `${name}_forward`)
  const backwardGraph = backwardModule(joint, saved, `${name}_backward`)
  const { constants = [], draws = 0 } = joint
  const forward = options.fwCompiler(forwardGraph, [...inputs, ...constants, ...Array.from({ length: 4 * draws }, () => 0)])
  let backward: CompiledCode | null = null
  const compile = options.bwCompiler ?? options.fwCompiler
  const compileBackward = (args: readonly unknown[]): CompiledCode => (backward ??= compile(backwardGraph, args))
  const dependsOn = dependence(joint)
  const parts = new Map<string, BackwardPart>()
  const compilePart: CompilePart = (heads, tape, args) => {
    const key = heads.join('_')
    let part = parts.get(key)
    if (part === undefined) {
      const gm = backwardModule({ ...joint, ...tape.trace(heads, joint.graph) }, saved, `${name}_backward_${key}`)
      part = { code: compile(gm, args), needs: gm.graph.findNodes({ op: 'placeholder' }).map((node) => node.users.size > 0) }
      parts.set(key, part)
    }
    return part
  }
  const run = (...given: readonly unknown[]): readonly unknown[] => {
    const values = constants.length + draws === 0 ? given : [...given, ...constants, ...drawNumbers(draws)]
    // The history comes from the backward graph.
    const results = noGrad(() => forward(...values))
    const outputs = results.slice(0, joint.outputs.length)
    attach(joint, values, outputs, results.slice(joint.outputs.length), compileBackward, compilePart, dependsOn)
    return outputs
  }
  return { run, forwardGraph, backwardGraph, compiledForward: forward }
}

/** Says whether a gradient depends on that of one of some heads. Where it does not, there is none, as opposed to zeros. */
function dependence({ grads, tangents }: JointGraph): (gradient: number, heads: readonly number[]) => boolean {
  const known = new Map<number, ReadonlySet<Node>>()
  return (gradient, heads) => {
    if (heads.length === tangents.length) return true
    let inputs = known.get(gradient)
    if (inputs === undefined) {
      const seen = new Set<Node>()
      const stack = [grads[gradient] ?? null]
      for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
        if (node === null || seen.has(node)) continue
        seen.add(node)
        stack.push(...node.allInputNodes)
      }
      inputs = seen
      known.set(gradient, seen)
    }
    return heads.some((head) => {
      const tangent = tangents[head]
      return tangent !== undefined && inputs.has(tangent)
    })
  }
}

/** The backward of some of the heads. It takes every saved value; `needs` says which ones it reads. */
interface BackwardPart {
  readonly code: CompiledCode
  readonly needs: readonly boolean[]
}
type CompilePart = (heads: readonly number[], tape: CallTape, args: readonly unknown[]) => BackwardPart

/** Gives the heads among the `outputs` of a call a history; `kept` are the saved values. */
function attach(
  joint: JointGraph,
  inputs: readonly unknown[],
  outputs: unknown[],
  kept: readonly unknown[],
  compileBackward: (args: readonly unknown[]) => CompiledCode,
  compilePart: CompilePart,
  dependsOn: (gradient: number, heads: readonly number[]) => boolean,
): void {
  // Each head gets a tensor object of its own, since a backend may return one object for two outputs, or an input.
  const heads = joint.heads.map((position) => {
    const { shape, dtype, storage, strides, offset } = asTensor(outputs[position], 'a differentiable output')
    const head = new Tensor(shape, dtype, storage, strides, offset)
    outputs[position] = head
    return head
  })
  // Not the heads themselves: the tape would keep their memory alive.
  const emptyTangents = heads.map(
    ({ shape, dtype }) =>
      (): Tensor =>
        zeros(shape, { dtype }),
  )
  const versionsNow = (): readonly number[] => kept.map((value) => (value instanceof Tensor ? value.realize().version : 0))
  const state: CallState = { tape: null, versions: versionsNow(), versionsNow }
  // The heads that the latest backward started from.
  let started: readonly number[] = []
  const node = attachGradNode(
    heads,
    joint.gradInputs.map((i) => asTensor(inputs[i], 'an input that requires grad')),
    (grads) => {
      if (joint.failure) throw joint.failure
      const { tape } = state
      started = heads.flatMap((_, i) => (grads[i] === null || grads[i] === undefined ? [] : [i]))
      tape?.check(started)
      const givenGrads = started.flatMap((i) => grads[i] ?? [])
      if (isGradEnabled()) {
        if (tape !== null) return tape.differentiate(started, givenGrads)
        throw new UnsupportedError(
          'a compiled function cannot be differentiated twice (createGraph) when the backward happens outside of it. Take the gradients inside the compiled function, or run it eagerly.',
        )
      }
      const checkVersions = (needs: (i: number) => boolean): void =>
        kept.forEach((value, i) => {
          if (!(value instanceof Tensor) || value.storage?.version === state.versions[i] || !needs(i)) return
          throw new AutogradError(
            `backward of a compiled function: a tensor of shape [${value.shape.join(', ')}] that it needs has been modified in place since the forward. Clone it before you modify it, or run the backward first.`,
          )
        })
      const whole = (given: Tensor): Tensor => (given.contiguousLayout ? given : clone(given))
      if (tape !== null && started.length < heads.length) {
        const tangents = givenGrads.map(whole)
        const args = [...kept, ...tangents]
        const { code, needs } = compilePart(started, tape, args)
        checkVersions((i) => needs[i] === true)
        return withOwnMemory(code(...args).map(asGradient), kept, tangents)
      }
      checkVersions(() => true)
      const tangents = emptyTangents.map((empty, i) => {
        const given = grads[i]
        return given === null || given === undefined ? empty() : whole(given)
      })
      const args = [...kept, ...tangents]
      const gradients = compileBackward(args)(...args).map((value, i) => (dependsOn(i, started) ? asGradient(value) : null))
      return withOwnMemory(gradients, kept, tangents)
    },
    {
      name: 'CompiledFunctionBackward',
      release: () => {
        const { tape } = state
        if (tape === null) return { isLast: true, afterwards: null }
        const isLast = tape.release(started)
        if (isLast) state.tape = null
        const heads = started
        return { isLast, afterwards: () => tape.free(heads) }
      },
    },
  )
  if (node !== null) attached.set(node, state)
}

const asGradient = (value: unknown): Tensor | null => (value === null ? null : asTensor(value, 'a gradient'))

/** A gradient that is an incoming gradient becomes that very tensor, which the engine can share; any other gradient gets memory of its own. */
function withOwnMemory(grads: readonly (Tensor | null)[], kept: readonly unknown[], tangents: readonly Tensor[]): readonly (Tensor | null)[] {
  const taken = new Set<Storage | null>()
  for (const value of kept) if (value instanceof Tensor) taken.add(value.storage)
  for (const tangent of tangents) taken.add(tangent.storage)
  return grads.map((g) => {
    if (g === null) return null
    const tangent = tangents.find(
      (t) => t.storage === g.storage && t.offset === g.offset && sameShape(t.shape, g.shape) && sameShape(t.strides, g.strides),
    )
    if (tangent !== undefined) return tangent
    const own = taken.has(g.storage) ? clone(g) : g
    taken.add(own.storage)
    return own
  })
}

/**
 * The joint graph of a function of tensors, which runs it on fake tensors and differentiates what autograd recorded. `heads`: the outputs to differentiate;
 * default all that require grad. What the function wrote to its inputs becomes further outputs, which `writeBacks` lists.
 */
export function traceJoint(
  fn: (...fakes: readonly Tensor[]) => readonly Tensor[],
  inputs: readonly Tensor[],
  options: { readonly names?: readonly string[]; readonly heads?: readonly number[]; readonly keepAliases?: boolean } = {},
): JointGraph {
  checkCallable('traceJoint', 'fn', fn)
  checkArray('traceJoint', 'inputs', inputs)
  const mode = new ProxyTensorMode({ drawsAsInputs: true, constantsAsInputs: true })
  const placeholders: Node[] = []
  const fakes = inputs.map((input, i) => {
    const { shape, dtype, strides } = fakeLike(input)
    // The graph's inputs are its leaves.
    const leaf = Tensor.fake({ shape, dtype, strides })
    leaf.requiresGrad = input.requiresGrad
    placeholders.push(mode.placeholder(options.names?.[i] ?? `primals_${i + 1}`, leaf))
    return leaf
  })
  try {
    return withoutDrawing(trace, () => mode.drawCount)
  } finally {
    mode.restoreHistories()
  }

  function trace(): JointGraph {
    const returned = withMode(mode, () => fn(...fakes))
    const aliases = options.keepAliases === true ? aliasesAmong(mode, returned, fakes) : new Map<number, Alias>()
    const results = returned.filter((_, i) => !aliases.has(i))
    const outputs = results.map((r) => mode.nodeOf(r))
    const given = [...fakes, ...mode.constants.values()]
    const isHead = (result: Tensor, i: number): boolean => result.requiresGrad && (options.heads?.includes(i) ?? true)
    const heads = [...results.keys()].filter((i) => results[i] !== undefined && isHead(results[i], i))
    const roots = results.filter(isHead)
    const writeBacks = new Map<number, number>()
    for (const [i, tensor] of given.entries()) {
      if (!mode.isWritten(tensor)) continue
      const position = outputs.push(mode.nodeOf(tensor)) - 1
      writeBacks.set(position, i)
      // A write that was recorded gives the input a history.
      if (tensor.gradFn === null) continue
      heads.push(position)
      roots.push(tensor)
    }
    const isLeaf = (tensor: Tensor | undefined): boolean => tensor?.requiresGrad === true && tensor.gradFn === null
    const gradInputs = [...given.keys()].filter((i) => isLeaf(given[i]))
    const leaves = given.filter(isLeaf)
    const { failure, ...backward } = orFailure(mode, roots, leaves)
    const { graph, drawInputs, drawCount: draws } = mode
    const captured = [...mode.constants.keys()].map((name) => present(graph.findNodes({ op: 'placeholder', target: name })[0], `the input ${name}`))
    // What only the backward draws or takes from outside comes in with the rest.
    const forwardNodes = new Set([...backward.forwardNodes, ...captured, ...drawInputs])
    const inputs = [...placeholders, ...captured, ...drawInputs]
    return {
      ...backward,
      graph,
      inputs,
      outputs,
      heads,
      gradInputs,
      writeBacks,
      draws,
      forwardNodes,
      failure,
      aliases,
      constants: [...mode.constants.values()],
    }
  }
}

interface Alias {
  readonly input: number
  readonly view: (whole: Tensor) => Tensor
}

/** The results that are inputs, or views of them. */
function aliasesAmong(mode: ProxyTensorMode, results: readonly Tensor[], inputs: readonly Tensor[]): ReadonlyMap<number, Alias> {
  const aliases = new Map<number, Alias>()
  for (const [i, result] of results.entries()) {
    const { base, view } = mode.aliasOf(result)
    if (!base.isFake) mode.nodeOf(base)
    const input = [...inputs, ...mode.constants.values()].indexOf(base)
    if (input < 0 || mode.isOwn(base)) continue
    // A view that was made under noGrad has no history.
    aliases.set(i, {
      input,
      view: result === base ? (whole) => whole : (whole) => (result.requiresGrad ? enableGrad(() => view(whole)) : noGrad(() => view(whole))),
    })
  }
  return aliases
}

/** The gradient half. If a gradient is impossible, that is the business of a backward, not of the forward. */
function orFailure(mode: ProxyTensorMode, roots: readonly Tensor[], leaves: readonly Tensor[]): Backward & { readonly failure: Error | null } {
  const forwardNodes = new Set(mode.graph.nodes)
  try {
    const backward = traceBackward(mode, roots, (tangents, heads) => grad(heads, leaves, { gradOutputs: tangents, allowUnused: true }))
    return { ...backward, failure: null }
  } catch (error) {
    if (!(error instanceof AutogradError || error instanceof UnsupportedError)) throw error
    const tangents = mode.graph.findNodes({ op: 'placeholder' }).filter((node) => !forwardNodes.has(node))
    return { forwardNodes, tangents, grads: leaves.map(() => null), failure: error }
  }
}

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
  const gradients = withMode(mode, () =>
    differentiate(
      tangents.map((t) => t.tensor),
      roots,
    ),
  )
  return { forwardNodes, tangents: tangents.map((t) => t.node), grads: gradients.map((g) => (g === null ? null : mode.nodeOf(g))) }
}

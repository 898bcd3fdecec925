// The joint graph of a function: it runs on fake tensors, and what autograd recorded is differentiated into the same graph.
import { AutogradError, gradBetween, nodesBehind, upcomingSeq } from '../../autograd/index.ts'
import { fakeLike, withMode } from '../../dispatch/index.ts'
import { ArgumentError, UnsupportedError, present } from '../../errors/index.ts'
import type { Node } from '../../fx/index.ts'
import { checkArray, checkCallable, valueText } from '../../protocol/index.ts'
import { Tensor } from '../../tensor/index.ts'
import type { JointGraph } from '../joint/jointGraph.ts'
import type { Memory } from '../trace/aliases.ts'
import { withoutDrawing } from '../trace/draws.ts'
import { ProxyTensorMode } from '../trace/proxyMode.ts'
import { originOf } from './effects.ts'
import type { Effects } from './effects.ts'
import { standIn } from './standIns.ts'
import { traceBackward } from './traceBackward.ts'
import type { Backward } from './traceBackward.ts'

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

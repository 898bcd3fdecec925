// A joint graph as code: it is split into a forward graph, which also returns what the backward needs, and a backward graph. The backend compiles both, the backward when it
// first runs, and each call attaches the history of its outputs.
import { noGrad } from '../../autograd/index.ts'
import { currentScope, inScope, newId } from '../../events/index.ts'
import type { GraphModule } from '../../fx/index.ts'
import { readState, segmentState, underSegmentState } from '../../guards/index.ts'
import { checkArgument, isObject } from '../../protocol/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { announceGraph, announceJoint, announcePartition } from '../joint/graphEvent.ts'
import type { JointGraph } from '../joint/jointGraph.ts'
import { backwardModule, forwardModule } from '../joint/jointParts.ts'
import { memoryRead, minCutPartition } from '../joint/partition.ts'
import type { Partition } from '../joint/partition.ts'
import { backwardOfSome } from '../joint/someHeads.ts'
import type { CompileGraph, CompiledCode } from '../meta/compiled.ts'
import { drawNumbers } from '../trace/draws.ts'
import { attachBackward } from './callTape.ts'
import type { BackwardCode, BackwardPart } from './callTape.ts'

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

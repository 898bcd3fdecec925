// What a program runs of a backend. Where gradients are needed, compile gives a backend the forward graph and the backward graph, since what it returns for the whole graph
// need not have a history; so a failure of the backward is one of the second graph.
import { compileDifferentiable } from '../../aot/index.ts'
import type { CompileGraph } from '../../aot/index.ts'
import { lookupBackend, runnable, resultsOf } from '../../dynamo/index.ts'
import type { Backend } from '../../dynamo/index.ts'
import type { GraphModule } from '../../fx/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { runFwdMaybeBwd } from './collect.ts'
import { isolatedInputs } from './isolated.ts'

type Compiled = (...inputs: readonly unknown[]) => unknown

/**
 * What the backend makes of a graph, one after the other: the pair of forward and backward graph, unless `onlyFwd` or if the graph has no gradient, and the code of the
 * whole graph. Throws what the backend throws.
 */
export function* formsOf(backend: string | Backend, gm: GraphModule, inputs: readonly unknown[], onlyFwd: boolean): Generator<Compiled> {
  const compiler = typeof backend === 'string' ? lookupBackend(backend) : backend
  const pair = onlyFwd ? null : pairOf(compiler, gm, inputs)
  if (pair !== null) yield pair
  yield runnable(compiler(copyOf(gm), isolatedInputs(inputs)))
}

/** The forward and the backward, as compile makes them of a graph that writes to nothing; null if there is no gradient, or the graph cannot be traced. */
function pairOf(compiler: Backend, gm: GraphModule, inputs: readonly unknown[]): Compiled | null {
  const nodes = [...gm.graph.nodes]
  const held = gm.graph.findNodes({ op: 'get_attr' }).map((node) => gm.attribute(node.target))
  const needsGradient = [...inputs, ...held].some((value) => value instanceof Tensor && value.requiresGrad)
  if (!needsGradient || nodes.some((node) => node.op !== 'placeholder' && node.op !== 'output' && node.isImpure())) return null
  const outputs = gm.graph.outputNode().args[0]
  if (!Array.isArray(outputs)) return null
  let isBackends = false
  const compile: CompileGraph = (graph, examples) => {
    isBackends = true
    const compiled = runnable(compiler(graph, examples))
    return (...values) => resultsOf(compiled(...values))
  }
  try {
    const { run } = compileDifferentiable(copyOf(gm), isolatedInputs(inputs), [...outputs.keys()], { fwCompiler: compile, bwCompiler: compile })
    return run
  } catch (error) {
    if (isBackends) throw error
    return null
  }
}

/** A backward graph and what it got in a run. */
export interface BackwardRun {
  readonly gm: GraphModule
  readonly inputs: readonly unknown[]
}

/** The backward graph that compile makes of a graph, with the inputs that it gets from a run on eager kernels; null if there is none. */
export function backwardOf(gm: GraphModule, inputs: readonly unknown[]): BackwardRun | null {
  let backward: BackwardRun | null = null
  const pair = pairOf(
    (graph) =>
      (...values) => {
        if (graph.meta['half'] === 'backward') backward = { gm: copyOf(graph), inputs: isolatedInputs(values) }
        return graph.forward(...values)
      },
    gm,
    inputs,
  )
  if (pair !== null) runFwdMaybeBwd(pair, inputs)
  return backward
}

const copyOf = (gm: GraphModule): GraphModule => gm.deepCopy({ shareTensors: true })

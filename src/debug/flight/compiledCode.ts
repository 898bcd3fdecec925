// Bad elements that only compiled code makes: which graph, and which node of it.
import type { CompiledCode } from '../../aot/index.ts'
import { runWatch, runnable, resultsOf } from '../../dynamo/index.ts'
import type { Backend, GraphRun } from '../../dynamo/index.ts'
import { Graph, GraphModule, Interpreter } from '../../fx/index.ts'
import type { Node } from '../../fx/index.ts'
import { targetInfo } from '../../protocol/index.ts'
import { CapturedStack } from '../../provenance/index.ts'
import { treeLeaves } from '../../pytree/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { isolatedInputs } from '../runs/isolated.ts'
import { badnessOf, elementAt, indexOf, isBad } from './badness.ts'
import type { CompilerOrigin } from './flightOrigin.ts'

/** A compiled graph that made bad results of good inputs. */
export interface BadRun {
  readonly gm: GraphModule
  readonly inputs: readonly unknown[]
  readonly backend: Backend
  readonly label: string
  readonly output: number
  readonly index: readonly number[]
  readonly element: number
}

/** What was found, and what shows it. */
export interface CompilerFinding {
  readonly origin: CompilerOrigin
  readonly run: BadRun
}

const tensorsIn = (value: unknown): readonly Tensor[] => treeLeaves(value).filter((leaf) => leaf instanceof Tensor)
const anyBad = (value: unknown): boolean => tensorsIn(value).some((tensor) => isBad(badnessOf(tensor)))

/** Runs `fn`, and returns the first compiled graph that makes bad results of good inputs; null if none does. */
export function withCompiledGraphs(fn: () => unknown): BadRun | null {
  let found: BadRun | null = null
  const outer = runWatch.current
  runWatch.current = ({ gm, inputs, code, backend, label }: GraphRun) => {
    if (found !== null) return code(...inputs)
    // The code may overwrite its inputs.
    const copies = isolatedInputs(inputs)
    const outputs = code(...inputs)
    if (anyBad(copies)) return outputs
    for (const [output, value] of outputs.entries()) {
      if (!(value instanceof Tensor)) continue
      const { nan, infinite } = badnessOf(value)
      if (nan === null && infinite === null) continue
      const index = indexOf(value.shape, nan ?? infinite ?? 0)
      found = { gm, inputs: copies, backend, label, output, index, element: elementAt(value, index) }
      break
    }
    return outputs
  }
  try {
    fn()
  } catch {
    // What the step throws, it throws because of the bad elements or after them: the run is only watched here.
  } finally {
    runWatch.current = outer
  }
  return found
}

/** The report of a graph whose compiled code is at fault; null if eager kernels give bad results, too. */
export function compilerOrigin(run: BadRun): CompilerFinding | null {
  const { gm, inputs, label, output, index, element } = run
  if (anyBad(new Interpreter(gm).run(...isolatedInputs(inputs)))) return null
  const node = firstBadNode(run)
  const stack: unknown = node?.meta['stack_trace']
  return {
    run,
    origin: {
      kind: 'compiled code',
      backend: label,
      graph: gm.className,
      output,
      index,
      element,
      node: node?.name ?? null,
      operator: node === null ? null : operatorOf(node),
      stack: stack instanceof CapturedStack ? stack : undefined,
    },
  }
}

/** What a node calls, by its short name. */
export function operatorOf(node: Node): string {
  return node.op === 'call_function' ? (targetInfo(node.target)?.shortName ?? node.name) : String(node.target)
}

/** The first node that is bad when the graph up to it is compiled. */
function firstBadNode({ gm, inputs, backend }: BadRun): Node | null {
  for (const node of gm.graph.nodes) {
    if (node.op === 'placeholder' || node.op === 'output' || node.op === 'get_attr') continue
    const code: CompiledCode | null = compiledUpTo(gm, node, inputs, backend)
    if (code !== null && anyBad(code(...isolatedInputs(inputs)))) return node
  }
  return null
}

/** The graph up to a node, compiled to return its value; null if the backend does not compile that. */
function compiledUpTo(gm: GraphModule, last: Node, inputs: readonly unknown[], backend: Backend): CompiledCode | null {
  const graph = new Graph()
  const copies = new Map<Node, Node>()
  const copyOf = (node: Node): Node => copies.get(node) ?? node
  for (const node of gm.graph.nodes) {
    copies.set(node, graph.nodeCopy(node, copyOf))
    if (node === last) break
  }
  graph.output([copyOf(last)])
  // The inputs stay, whether they are used or not.
  graph.eliminateDeadCode((node) => node.op === 'placeholder' || node.op === 'output')
  try {
    const run = runnable(backend(new GraphModule(gm, graph, gm.className), isolatedInputs(inputs)))
    return (...values) => resultsOf(run(...values))
  } catch {
    // A part may be what the backend refuses; the graph as a whole is what counts.
    return null
  }
}

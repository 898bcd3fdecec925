// Backward outside of the compiled function: the forward graph and its gradient are traced together, split into a forward graph that also returns
// what the backward needs, and a backward graph, each compiled by the backend (the backward when it first runs).
import { attachGradNode, grad } from '../autograd/index.ts'
import { fakeLike, withMode } from '../dispatch/index.ts'
import { Graph, GraphModule, Interpreter } from '../fx/index.ts'
import type { Argument, Node } from '../fx/index.ts'
import { clone, zerosLike } from '../ops/index.ts'
import { Tensor } from '../tensor/index.ts'
import { ProxyTensorMode } from './proxyMode.ts'

/** Compiles one graph; inputs may be fake. */
export type CompileGraph = (gm: GraphModule, exampleInputs: readonly unknown[]) => (...inputs: readonly unknown[]) => readonly unknown[]

export interface Differentiable {
  /** Returns the outputs of the graph, then what is saved for the backward. */
  readonly forward: (...inputs: readonly unknown[]) => readonly unknown[]
  /** Gives the outputs (of one call) a history: the first values are the tensors that the user holds, the rest what was saved. */
  readonly attach: (inputs: readonly unknown[], outputs: readonly unknown[]) => void
  readonly forwardGraph: GraphModule
  readonly backwardGraph: GraphModule
}

/**
 * Splits a forward graph whose outputs at `positions` will be differentiated. All inputs must be tensors.
 * What the backward uses of the forward is saved; nothing is recomputed (PyTorch's default partitioner).
 */
export function compileDifferentiable(
  gm: GraphModule,
  inputs: readonly unknown[],
  positions: readonly number[],
  compile: CompileGraph,
): Differentiable {
  const { joint, primals, tangents, outputs, grads, gradInputs, forwardNodes } = traceJoint(gm, inputs as readonly Tensor[], positions)
  const written = new Set((gm.meta['writeBacks'] as ReadonlyMap<number, number> | undefined)?.values() ?? [])
  // Values of the forward that the backward reads.
  const saved: Node[] = []
  const backwardNodes = [...joint.nodes].filter((n) => !forwardNodes.has(n) && n.op !== 'placeholder')
  const live = reachable(grads.filter((g): g is Node => g !== null))
  for (const node of backwardNodes)
    if (live.has(node)) for (const input of node.allInputNodes) if (forwardNodes.has(input) && !saved.includes(input)) saved.push(input)
  for (const g of grads) if (g !== null && forwardNodes.has(g) && !saved.includes(g)) saved.push(g)

  const forwardGraph = new Graph()
  const copies = new Map<Node, Node>()
  for (const node of joint.nodes)
    if (forwardNodes.has(node))
      copies.set(
        node,
        forwardGraph.nodeCopy(node, (n) => copies.get(n) as Node),
      )
  // An input that the function overwrites is saved as it was.
  const savedCopies = saved.map((node) => {
    const copy = copies.get(node) as Node
    const position = primals.indexOf(node)
    if (position < 0 || !written.has(position)) return copy
    const kept = forwardGraph.callFunction(clone, [copy])
    kept.meta['val'] = node.meta['val']
    return kept
  })
  forwardGraph.output([...outputs.map((n) => copies.get(n) as Node), ...savedCopies])
  forwardGraph.eliminateDeadCode((n) => n.op === 'placeholder' || n.op === 'output')
  const forwardModule = new GraphModule({}, forwardGraph, `${gm.className}_forward`)

  const backwardGraph = new Graph()
  const map = new Map<Node, Node>()
  for (const node of [...saved, ...tangents]) {
    const placeholder = backwardGraph.placeholder(node.name)
    placeholder.meta['val'] = node.meta['val']
    map.set(node, placeholder)
  }
  for (const node of backwardNodes)
    if (live.has(node))
      map.set(
        node,
        backwardGraph.nodeCopy(node, (n) => map.get(n) as Node),
      )
  backwardGraph.output(grads.map((g): Argument => (g === null ? null : (map.get(g) as Node))))
  const backwardModule = new GraphModule({}, backwardGraph, `${gm.className}_backward`)

  const forward = compile(forwardModule, inputs)
  let backward: ReturnType<CompileGraph> | null = null
  const attach = (values: readonly unknown[], results: readonly unknown[]): void => {
    const kept = results.slice(outputs.length) as readonly Tensor[]
    const heads = positions.map((p) => results[p] as Tensor)
    for (const head of heads) head.gradFn = null
    attachGradNode(
      heads,
      gradInputs.map((i) => values[i] as Tensor),
      (grads_) => {
        const seeds = grads_.map((g, i) => g ?? zerosLike(heads[i] as Tensor))
        const args = [...kept, ...seeds.map((s) => (s.contiguousLayout ? s : clone(s)))]
        backward ??= compile(backwardModule, args)
        return backward(...args) as readonly (Tensor | null)[]
      },
    )
  }
  return { forward, attach, forwardGraph: forwardModule, backwardGraph: backwardModule }
}

interface Joint {
  readonly joint: Graph
  readonly primals: readonly Node[]
  readonly tangents: readonly Node[]
  readonly outputs: readonly Node[]
  /** Per differentiated input. */
  readonly grads: readonly (Node | null)[]
  readonly gradInputs: readonly number[]
  readonly forwardNodes: ReadonlySet<Node>
}

function traceJoint(gm: GraphModule, inputs: readonly Tensor[], positions: readonly number[]): Joint {
  const mode = new ProxyTensorMode()
  const names = gm.graph.findNodes({ op: 'placeholder' }).map((n) => n.name)
  const fakes = inputs.map((input, i) => {
    const fake = fakeLike(input)
    // The graph's inputs are its leaves.
    const leaf = Tensor.fake({ shape: fake.shape, dtype: fake.dtype, strides: fake.strides })
    leaf.requiresGrad = input.requiresGrad
    mode.placeholder(names[i] ?? `primals_${i}`, leaf)
    return leaf
  })
  const results = withMode(mode, () => new Interpreter(gm).run(...fakes)) as readonly Tensor[]
  const heads = positions.map((p) => results[p] as Tensor)
  const outputs = results.map((r) => mode.nodeOf(r))
  const forwardNodes = new Set(mode.graph.nodes)
  const tangents = heads.map((head, i) => {
    const tangent = Tensor.fake({ shape: head.shape, dtype: head.dtype })
    return { tensor: tangent, node: mode.placeholder(`tangents_${i + 1}`, tangent) }
  })
  const gradInputs = fakes.flatMap((f, i) => (f.requiresGrad ? [i] : []))
  const gradients = withMode(mode, () =>
    grad(
      heads,
      gradInputs.map((i) => fakes[i] as Tensor),
      { gradOutputs: tangents.map((t) => t.tensor), allowUnused: true },
    ),
  )
  return {
    joint: mode.graph,
    primals: fakes.map((f) => mode.nodeOf(f)),
    tangents: tangents.map((t) => t.node),
    outputs,
    grads: gradients.map((g) => (g === null ? null : mode.nodeOf(g))),
    gradInputs,
    forwardNodes,
  }
}

/** Nodes that the roots depend on, themselves included. */
function reachable(roots: readonly Node[]): Set<Node> {
  const seen = new Set<Node>(roots)
  const stack = [...roots]
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    for (const input of node.allInputNodes) {
      if (seen.has(input)) continue
      seen.add(input)
      stack.push(input)
    }
  }
  return seen
}

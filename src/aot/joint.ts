// Backward outside of the compiled function: a joint graph of the forward and its gradient is split into a forward graph that also returns what the
// backward needs, and a backward graph, each compiled by the backend (the backward when it first runs).
import { AutogradError, attachGradNode, grad, isGradEnabled } from '../autograd/index.ts'
import { fakeLike, withMode } from '../dispatch/index.ts'
import { UnsupportedError } from '../errors/index.ts'
import { Graph, GraphModule, Interpreter } from '../fx/index.ts'
import type { Argument, Node } from '../fx/index.ts'
import { clone, opOf, zeros } from '../ops/index.ts'
import { Tensor, sameShape } from '../tensor/index.ts'
import type { Storage } from '../tensor/index.ts'
import { backwardClosure, minCutPartition } from './partition.ts'
import type { JointGraph, Partition } from './partition.ts'
import { ProxyTensorMode } from './proxyMode.ts'

/** Compiles one graph; inputs may be fake. */
export type CompileGraph = (gm: GraphModule, exampleInputs: readonly unknown[]) => (...inputs: readonly unknown[]) => readonly unknown[]

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
  readonly compiledForward: ReturnType<CompileGraph>
}

/** Splits a functional graph whose outputs at `heads` will be differentiated, and compiles both parts. All inputs must be tensors. */
export function compileDifferentiable(gm: GraphModule, inputs: readonly unknown[], heads: readonly number[], options: JointOptions): Differentiable {
  const names = gm.graph.findNodes({ op: 'placeholder' }).map((n) => n.name)
  const joint = traceJoint((...fakes) => new Interpreter(gm).run(...fakes) as readonly Tensor[], inputs as readonly Tensor[], { names, heads })
  const writeBacks = gm.meta['writeBacks'] as ReadonlyMap<number, number> | undefined
  return compileJoint({ ...joint, writeBacks: writeBacks ?? joint.writeBacks }, inputs, gm.className, options)
}

/** Splits and compiles a joint graph. `inputs` are examples. */
export function compileJoint(joint: JointGraph, inputs: readonly unknown[], name: string, options: JointOptions): Differentiable {
  const saved = (options.partition ?? minCutPartition)(joint)
  const forwardGraph = forwardModule(joint, saved, `${name}_forward`)
  const backwardGraph = backwardModule(joint, saved, `${name}_backward`)
  const forward = options.fwCompiler(forwardGraph, inputs)
  let backward: ReturnType<CompileGraph> | null = null
  const compileBackward = (args: readonly unknown[]): ReturnType<CompileGraph> =>
    (backward ??= (options.bwCompiler ?? options.fwCompiler)(backwardGraph, args))
  const run = (...values: readonly unknown[]): readonly unknown[] => {
    const results = forward(...values)
    const outputs = results.slice(0, joint.outputs.length)
    attach(joint, values, outputs, results.slice(joint.outputs.length), compileBackward)
    return outputs
  }
  return { run, forwardGraph, backwardGraph, compiledForward: forward }
}

/** Gives the heads among `outputs` (of one call) a history; `kept` is what was saved. */
function attach(
  joint: JointGraph,
  inputs: readonly unknown[],
  outputs: unknown[],
  kept: readonly unknown[],
  compileBackward: (args: readonly unknown[]) => ReturnType<CompileGraph>,
): void {
  // Each head is a tensor object of its own, also where the backend returned one for two outputs or an input itself.
  const heads = joint.heads.map((position) => {
    const { shape, dtype, storage, strides, offset } = outputs[position] as Tensor
    return (outputs[position] = new Tensor(shape, dtype, storage, strides, offset)) as Tensor
  })
  const shapes = heads.map(({ shape, dtype }) => ({ shape, dtype }))
  const versions = kept.map((value) => (value instanceof Tensor ? value.realize().version : 0))
  attachGradNode(
    heads,
    joint.gradInputs.map((i) => inputs[i] as Tensor),
    (grads) => {
      if (isGradEnabled())
        throw new UnsupportedError(
          'a compiled function cannot be differentiated twice (createGraph) when the backward happens outside of it. Take the gradients inside the compiled function, or run it eagerly.',
        )
      kept.forEach((value, i) => {
        if (!(value instanceof Tensor) || value.storage?.version === versions[i]) return
        throw new AutogradError(
          `backward of a compiled function: a tensor of shape [${value.shape.join(', ')}] that it needs has been modified in place since the forward. Clone it before you modify it, or run the backward first.`,
        )
      })
      const tangents = grads.map((g, i) => {
        const { shape, dtype } = shapes[i] as (typeof shapes)[number]
        return g === null ? zeros(shape, { dtype }) : g.contiguousLayout ? g : clone(g)
      })
      const args = [...kept, ...tangents]
      return withOwnMemory(compileBackward(args)(...args) as readonly (Tensor | null)[], kept, tangents)
    },
    { name: 'CompiledFunctionBackward' },
  )
}

/** Gradients that are an incoming gradient are that very tensor (the engine knows how to share it); other memory is not shared. */
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

/** The tensor that a chain of views looks at. */
function viewRoot(node: Node): Node {
  let root = node
  while (root.op === 'call_function' && opOf(root.target)?.tags.has('view') === true) root = root.args[0] as Node
  return root
}

function forwardModule(joint: JointGraph, saved: readonly Node[], name: string): GraphModule {
  const graph = new Graph()
  const copies = new Map<Node, Node>()
  for (const node of joint.graph.nodes)
    if (joint.forwardNodes.has(node))
      copies.set(
        node,
        graph.nodeCopy(node, (n) => copies.get(n) as Node),
      )
  const overwritten = new Set([...joint.writeBacks.values()].map((i) => joint.inputs[i]))
  const kept = saved.map((node) => {
    const copy = copies.get(node) as Node
    if (!overwritten.has(viewRoot(node))) return copy
    // An input that the function overwrites is saved as it was.
    const was = graph.callFunction(clone, [copy])
    was.meta['val'] = node.meta['val']
    return was
  })
  graph.output([...joint.outputs.map((n) => copies.get(n) as Node), ...kept])
  graph.eliminateDeadCode((n) => n.op === 'placeholder' || n.op === 'output')
  const gm = new GraphModule({}, graph, name)
  gm.meta['writeBacks'] = joint.writeBacks
  return gm
}

function backwardModule(joint: JointGraph, saved: readonly Node[], name: string): GraphModule {
  const graph = new Graph()
  const copies = new Map<Node, Node>()
  const isSaved = new Set(saved)
  for (const node of [...saved, ...joint.tangents]) {
    const placeholder = graph.placeholder(node.name)
    placeholder.meta['val'] = node.meta['val']
    copies.set(node, placeholder)
  }
  const live = backwardClosure(joint, (node) => isSaved.has(node))
  for (const node of joint.graph.nodes)
    if (live.has(node) && !copies.has(node))
      copies.set(
        node,
        graph.nodeCopy(node, (n) => copies.get(n) as Node),
      )
  graph.output(joint.grads.map((g): Argument => (g === null ? null : (copies.get(g) as Node))))
  return new GraphModule({}, graph, name)
}

/**
 * The joint graph of a function of tensors, by running it on fake tensors and differentiating what autograd recorded. `heads`: which outputs to start
 * from; default all that require grad. What the function wrote to its inputs comes as further outputs, which `writeBacks` lists.
 */
export function traceJoint(
  fn: (...fakes: readonly Tensor[]) => readonly Tensor[],
  inputs: readonly Tensor[],
  options: { readonly names?: readonly string[]; readonly heads?: readonly number[] } = {},
): JointGraph {
  const mode = new ProxyTensorMode()
  const placeholders: Node[] = []
  const fakes = inputs.map((input, i) => {
    const { shape, dtype, strides } = fakeLike(input)
    // The graph's inputs are its leaves.
    const leaf = Tensor.fake({ shape, dtype, strides })
    leaf.requiresGrad = input.requiresGrad
    placeholders.push(mode.placeholder(options.names?.[i] ?? `primals_${i + 1}`, leaf))
    return leaf
  })
  const results = withMode(mode, () => fn(...fakes))
  const outputs = results.map((r) => mode.nodeOf(r))
  const writeBacks = new Map<number, number>()
  for (const [i, fake] of fakes.entries()) {
    const now = mode.nodeOf(fake)
    if (now !== placeholders[i]) writeBacks.set(outputs.push(now) - 1, i)
  }
  const heads = results.flatMap((r, i) => (r.requiresGrad && (options.heads?.includes(i) ?? true) ? [i] : []))
  const gradInputs = fakes.flatMap((f, i) => (f.requiresGrad ? [i] : []))
  const backward = traceBackward(
    mode,
    heads.map((p) => results[p] as Tensor),
    (tangents, roots) =>
      grad(
        roots,
        gradInputs.map((i) => fakes[i] as Tensor),
        { gradOutputs: tangents, allowUnused: true },
      ),
  )
  return { graph: mode.graph, inputs: placeholders, outputs, heads, gradInputs, writeBacks, ...backward }
}

/** The backward half: placeholders for the gradients of `roots`, and what `differentiate` records. */
export function traceBackward(
  mode: ProxyTensorMode,
  roots: readonly Tensor[],
  differentiate: (tangents: readonly Tensor[], roots: readonly Tensor[]) => readonly (Tensor | null)[],
): Pick<JointGraph, 'forwardNodes' | 'tangents' | 'grads'> {
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

// reinplace: operators write into an input that is not used afterwards. PyTorch's torch.fx.passes.reinplace.
import { ArgumentError } from '../errors/index.ts'
import { GraphModule, Node } from '../fx/index.ts'
import { lookupTarget, targetInfo } from '../protocol/index.ts'
import type { TargetFunction } from '../protocol/index.ts'
import { treeLeaves } from '../pytree/index.ts'
import { Tensor } from '../tensor/index.ts'
import { FakeTensorProp } from './fakeTensorProp.ts'

/**
 * Turns `b = torch.add(a, 1)` into `a.add_(1)` where that changes no result: `a` was computed in the graph (inputs and attributes are never written), has the shape, dtype and strides
 * of the result, occurs once among the arguments, and neither it nor a view of it is used later. Later uses of `b` become uses of `a`. For functional graphs, as makeFx captures
 * them; `sampleArgs` are inputs of the graph (their shapes matter, not their data). Changes and returns `gm`. PyTorch's reinplace.
 */
export function reinplace(gm: GraphModule, ...sampleArgs: readonly unknown[]): GraphModule {
  if (!(gm instanceof GraphModule))
    throw new ArgumentError('reinplace: the first argument must be a GraphModule; capture the function with makeFx first.')
  const memory = new Memory(gm, sampleArgs)
  for (const node of [...gm.graph.nodes]) {
    const inPlace = inPlaceVariant(node)
    const [self] = node.args
    if (inPlace === null || !(self instanceof Node) || !memory.mayWrite(self, node)) continue
    node.target = inPlace
    memory.join(node, self)
    node.replaceAllUsesWith(self)
  }
  gm.graph.lint()
  gm.recompile()
  return gm
}

/** The in-place variant of the operator that a node calls, or null. */
function inPlaceVariant(node: Node): TargetFunction | null {
  if (node.op !== 'call_function') return null
  const [, name] = /^torch\.(?:Tensor\.)?(\w*[^_])$/.exec(targetInfo(node.target)?.name ?? '') ?? []
  return name === undefined ? null : (lookupTarget(`torch.Tensor.${name}_`) ?? lookupTarget(`torch.${name}_`) ?? null)
}

/** Which values share memory, from a run on fake tensors. */
class Memory {
  readonly #gm: GraphModule
  readonly #values: ReadonlyMap<Node, unknown>
  /** The memories of each value, by the tensor that they were made for. */
  readonly #memories = new Map<Node, ReadonlySet<Tensor>>()
  /** Memories of inputs and attributes. */
  readonly #outside = new Set<Tensor>()

  constructor(gm: GraphModule, sampleArgs: readonly unknown[]) {
    this.#gm = gm
    const run = new FakeTensorProp(gm)
    run.propagateAll(...sampleArgs)
    this.#values = run.env
    for (const node of gm.graph.nodes) {
      const memories = new Set(tensorsOf(this.#values.get(node)).map((t) => t.viewBase ?? t))
      this.#memories.set(node, memories)
      if (node.op === 'placeholder' || node.op === 'get_attr') for (const memory of memories) this.#outside.add(memory)
    }
    gm.graph.numberNodes()
  }

  /** Whether `node` may write its result into `self`. */
  mayWrite(self: Node, node: Node): boolean {
    const [from, to] = [this.#values.get(self), this.#values.get(node)]
    if (!(from instanceof Tensor) || !(to instanceof Tensor)) return false
    if (from.dtype !== to.dtype || from.shape.length !== to.shape.length || from.shape.some((size, i) => size !== to.shape[i])) return false
    // The result is new memory, one place for each element: equal strides mean that the input's elements do not overlap either, and that views of the result stay possible.
    if (from.shape.some((size, i) => size > 1 && from.strides[i] !== to.strides[i])) return false
    const [memory] = this.#memories.get(self) ?? []
    if (memory === undefined || this.#outside.has(memory)) return false
    const others = treeLeaves([node.args.slice(1), node.kwargs])
    if (others.some((other) => this.#shares(other, memory))) return false
    return !this.#usedAfter(memory, node)
  }

  /** Records that `node` now writes into `self`: views of `node` are views of `self`. */
  join(node: Node, self: Node): void {
    const [gone] = this.#memories.get(node) ?? []
    const [kept] = this.#memories.get(self) ?? []
    if (gone === undefined || kept === undefined) return
    for (const [alias, memories] of this.#memories)
      if (memories.has(gone)) this.#memories.set(alias, new Set([...memories].map((memory) => (memory === gone ? kept : memory))))
  }

  #shares(value: unknown, memory: Tensor): boolean {
    return value instanceof Node && this.#memories.get(value)?.has(memory) === true
  }

  /** Whether the memory is read after the node. Making a view reads nothing, but uses of the view do. */
  #usedAfter(memory: Tensor, node: Node): boolean {
    for (const alias of this.#gm.graph.nodes) {
      if (!this.#shares(alias, memory)) continue
      for (const user of alias.users) if (user.position > node.position && !this.#isView(user, memory)) return true
    }
    return false
  }

  #isView(user: Node, memory: Tensor): boolean {
    return user.op === 'call_function' && targetInfo(user.target)?.effects === 'pure' && this.#shares(user, memory)
  }
}

const tensorsOf = (value: unknown): Tensor[] => treeLeaves(value).filter((leaf) => leaf instanceof Tensor)

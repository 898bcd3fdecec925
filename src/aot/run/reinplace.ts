// reinplace: operators write into an input that is not used afterwards. PyTorch's torch.fx.passes.reinplace.
import { FakeTensorMode, withMode } from '../../dispatch/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { GraphModule, Node } from '../../fx/index.ts'
import { asStrided, asStridedScatter, copy_, diagonal, diagonalScatter, opOf, select, selectScatter, slice, sliceScatter } from '../../ops/index.ts'
import type { OpFunction } from '../../ops/index.ts'
import { lookupTarget, targetInfo } from '../../protocol/index.ts'
import type { TargetFunction } from '../../protocol/index.ts'
import { treeLeaves } from '../../pytree/index.ts'
import { Tensor, sameShape } from '../../tensor/index.ts'
import { FakeTensorProp } from './fakeTensorProp.ts'
import { isApart, sameStrides } from '../meta/layout.ts'

/**
 * Turns `b = torch.add(a, 1)` into `a.add_(1)` where that changes no result: `a` was computed in the graph (inputs and attributes are never written), has the shape, dtype and strides
 * of the result, occurs once among the arguments, and neither it nor a view of it is used later. Later uses of `b` become uses of `a`. A scatter into such an `a` becomes a
 * copy into the view, or disappears if the values are there already. For functional graphs, as makeFx captures them; `sampleArgs` are inputs of the graph (their
 * shapes matter, not their data). A backward may need what is overwritten, so run the result under `noGrad`. Changes and returns `gm`. PyTorch's reinplace.
 * Throws ArgumentError if `gm` is no GraphModule.
 */
export function reinplace(gm: GraphModule, ...sampleArgs: readonly unknown[]): GraphModule {
  if (!(gm instanceof GraphModule))
    throw new ArgumentError('reinplace: the first argument must be a GraphModule; capture the function with makeFx first.')
  const memory = new Memory(gm, sampleArgs)
  for (const node of [...gm.graph.nodes]) {
    const [self] = node.args
    if (!(self instanceof Node)) continue
    const view = viewOfScatter(node)
    if (view !== null) {
      undoScatter(memory, node, self, view)
      continue
    }
    const inPlace = inPlaceVariant(node)
    if (inPlace === null || !memory.mayWrite(self, node)) continue
    node.target = inPlace
    memory.join(node, self)
    node.replaceAllUsesWith(self)
  }
  gm.graph.lint()
  gm.recompile()
  return gm
}

/** Makes `scatter` write into `base`, if it may. */
function undoScatter(memory: Memory, scatter: Node, base: Node, view: OpFunction): void {
  const [, src] = scatter.args
  if (!(src instanceof Node) || !memory.mayScatter(base, scatter)) return
  if (!memory.holds(base, scatter, view, src)) {
    const { graph } = scatter
    graph.insertingBefore(scatter, () => {
      const place = graph.callFunction(view, [base, ...scatter.args.slice(2)], scatter.kwargs)
      graph.callFunction(copy_, [place, src])
    })
  }
  memory.join(scatter, base)
  scatter.replaceAllUsesWith(base)
  scatter.graph.eraseNode(scatter)
}

const VIEWS: ReadonlyMap<unknown, OpFunction> = new Map<unknown, OpFunction>([
  [selectScatter, select],
  [sliceScatter, slice],
  [diagonalScatter, diagonal],
  [asStridedScatter, asStrided],
])

/** The operator that makes the view in whose place a scatter puts its values; null for other nodes. */
const viewOfScatter = (node: Node): OpFunction | null => (node.op === 'call_function' ? (VIEWS.get(node.target) ?? null) : null)

/** The in-place variant of the operator that a node calls, or null. */
function inPlaceVariant(node: Node): TargetFunction | null {
  if (node.op !== 'call_function') return null
  const [, name] = /^torch\.(?:Tensor\.)?(\w*[^_])$/.exec(targetInfo(node.target)?.name ?? '') ?? []
  return name === undefined ? null : (lookupTarget(`torch.Tensor.${name}_`) ?? lookupTarget(`torch.${name}_`) ?? null)
}

/** Which values share memory, from a run on fake tensors. */
class Memory {
  readonly #values: Map<Node, unknown>
  /** The memories of each value, by the tensor that they were made for. */
  readonly #memories = new Map<Node, ReadonlySet<Tensor>>()
  /** The values of each memory. */
  readonly #aliases = new Map<Tensor, Set<Node>>()
  /** What reads the values of each memory, but for nodes that come before the last one that was asked about: nodes are asked about in order. */
  readonly #readers = new Map<Tensor, Set<Node>>()
  /** Memories of inputs and attributes. */
  readonly #outside = new Set<Tensor>()

  constructor(gm: GraphModule, sampleArgs: readonly unknown[]) {
    const run = new FakeTensorProp(gm)
    run.propagateAll(...sampleArgs)
    this.#values = new Map(run.env)
    for (const node of gm.graph.nodes) {
      const memories = new Set(tensorsOf(this.#values.get(node)).map((t) => t.viewBase ?? t))
      this.#memories.set(node, memories)
      for (const memory of memories) this.#add(memory, [node], node.users)
      if (node.op === 'placeholder' || node.op === 'get_attr') for (const memory of memories) this.#outside.add(memory)
    }
    gm.graph.numberNodes()
  }

  #add(memory: Tensor, aliases: Iterable<Node>, readers: Iterable<Node>): void {
    const setOf = (table: Map<Tensor, Set<Node>>): Set<Node> => {
      let set = table.get(memory)
      if (set === undefined) table.set(memory, (set = new Set()))
      return set
    }
    for (const alias of aliases) setOf(this.#aliases).add(alias)
    for (const reader of readers) setOf(this.#readers).add(reader)
  }

  /** Whether `node` may write its result into `self`. */
  mayWrite(self: Node, node: Node): boolean {
    const [from, to] = [this.#values.get(self), this.#values.get(node)]
    if (!(from instanceof Tensor) || !(to instanceof Tensor)) return false
    if (from.dtype !== to.dtype || from.shape.length !== to.shape.length || from.shape.some((size, i) => size !== to.shape[i])) return false
    // The result has one place for each element, and views of it may need its strides.
    if (!isApart(from.shape, from.strides) || (!sameStrides(from, to) && (isViewed(node) || isReturned(node)))) return false
    const [memory] = this.#memories.get(self) ?? []
    if (memory === undefined || this.#outside.has(memory)) return false
    const others = treeLeaves([node.args.slice(1), node.kwargs])
    if (others.some((other) => this.#shares(other, memory))) return false
    return !this.#usedAfter(memory, node, (user) => this.#overwrites(user, self, memory))
  }

  /** Whether a scatter may write into `base`. */
  mayScatter(base: Node, scatter: Node): boolean {
    const [memory] = this.#memories.get(base) ?? []
    const to = this.#values.get(base)
    if (memory === undefined || this.#outside.has(memory) || !(to instanceof Tensor)) return false
    // Scatters give contiguous results: views of one may not be possible on a base with other strides.
    return (to.contiguousLayout || !isViewed(scatter)) && !this.#usedAfter(memory, scatter, (user) => this.#overwrites(user, base, memory))
  }

  /** Whether the values of `src` are where the scatter puts them. */
  holds(base: Node, scatter: Node, view: OpFunction, src: Node): boolean {
    const [memory] = this.#memories.get(base) ?? []
    const value = this.#values.get(src)
    return memory !== undefined && this.#shares(src, memory) && value instanceof Tensor && samePlace(this.#placeOf(base, scatter, view), value)
  }

  /** The view of `base` that a scatter replaces. */
  #placeOf(base: Node, scatter: Node, view: OpFunction): unknown {
    const rest = [...scatter.args.slice(2), ...(Object.keys(scatter.kwargs).length === 0 ? [] : [scatter.kwargs])]
    return asFake(() => view(this.#values.get(base), ...rest))
  }

  /** Whether `user` is a scatter that overwrites the place of `self`, and reads nothing else of it. */
  #overwrites(user: Node, self: Node, memory: Tensor): boolean {
    const view = viewOfScatter(user)
    const [base, src] = user.args
    if (view === null || !(base instanceof Node) || !this.#shares(base, memory) || this.#shares(src, memory)) return false
    const place = this.#placeOf(base, user, view)
    // What a view is made of contains it.
    for (let whole: unknown = self; whole instanceof Node && this.#shares(whole, memory); [whole] = whole.args) {
      const value = this.#values.get(whole)
      if (value instanceof Tensor && samePlace(place, value)) return true
      if (whole.op !== 'call_function' || opOf(whole.target)?.tags.has('view') !== true || whole.target === asStrided) return false
    }
    return false
  }

  /** What `src`, a view of `node` or `node` itself, would be if `node` were `self`; undefined if it is none. */
  #seenThrough(src: Node, node: Node, self: unknown): unknown {
    if (src === node) return self
    const [of] = src.args
    if (!(of instanceof Node) || src.op !== 'call_function' || opOf(src.target)?.tags.has('view') !== true) return undefined
    const whole = this.#seenThrough(of, node, self)
    return whole === undefined ? undefined : this.#again(src, whole)
  }

  /** The view that a node makes, of another value. */
  #again(node: Node, of: unknown): unknown {
    if (node.op !== 'call_function') return undefined
    const { target, kwargs } = node
    const rest = [...node.args.slice(1), ...(Object.keys(kwargs).length === 0 ? [] : [kwargs])]
    return asFake(() => target(of, ...rest))
  }

  /** Records that `node` now writes into `self`: views of `node` are views of `self`. */
  join(node: Node, self: Node): void {
    const [gone] = this.#memories.get(node) ?? []
    const [kept] = this.#memories.get(self) ?? []
    if (gone === undefined || kept === undefined) return
    const value = this.#values.get(self)
    const aliases = this.#aliases.get(gone) ?? []
    for (const alias of aliases) {
      const memories = this.#memories.get(alias) ?? []
      const seen = this.#seenThrough(alias, node, value)
      if (seen instanceof Tensor) this.#values.set(alias, seen)
      this.#memories.set(alias, new Set([...memories].map((memory) => (memory === gone ? kept : memory))))
    }
    this.#add(kept, aliases, this.#readers.get(gone) ?? [])
    this.#aliases.delete(gone)
    this.#readers.delete(gone)
  }

  #shares(value: unknown, memory: Tensor): boolean {
    return value instanceof Node && this.#memories.get(value)?.has(memory) === true
  }

  /** Whether the memory is read after the node, but by nodes that `harmless` accepts. Making a view reads nothing, but uses of the view do. */
  #usedAfter(memory: Tensor, node: Node, harmless: (user: Node) => boolean): boolean {
    const readers = this.#readers.get(memory) ?? new Set()
    for (const reader of readers) {
      if (reader.position <= node.position) readers.delete(reader)
      else if (!this.#isView(reader, memory) && !harmless(reader)) return true
    }
    return false
  }

  #isView(user: Node, memory: Tensor): boolean {
    return user.op === 'call_function' && targetInfo(user.target)?.effects === 'pure' && this.#shares(user, memory)
  }
}

const asFake = (make: () => unknown): unknown => withMode(new FakeTensorMode(), make)

/** Whether a view operator is called on the node. */
const isViewed = (node: Node): boolean => [...node.users].some((user) => user.op === 'call_function' && opOf(user.target)?.tags.has('view') === true)

/** Whether the graph returns the node's value, of which callers may make views. */
const isReturned = (node: Node): boolean => [...node.users].some((user) => user.op === 'output')

/** Whether two views of one memory are the same elements in the same order. */
const samePlace = (a: unknown, b: Tensor): boolean =>
  a instanceof Tensor &&
  a.offset === b.offset &&
  sameShape(a.shape, b.shape) &&
  a.strides.every((stride, i) => stride === b.strides[i] || a.shape[i] === 1)

const tensorsOf = (value: unknown): Tensor[] => treeLeaves(value).filter((leaf) => leaf instanceof Tensor)

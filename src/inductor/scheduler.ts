// The scheduler decides which nodes share a kernel. It starts with one group per node and merges along data edges (producer into consumer,
// pointwise into a template's epilogue), then between siblings that read the same buffers, as long as the groups have a common iteration
// space and the merge makes no cycle.
//
// A group's space is a list of dimensions, some of them reduced. Its nodes stand on one of three levels:
//   inner    one value per element of the whole space
//   reduce   combines over the reduced dimensions
//   outer    one value per element of the kept dimensions
// A group without reductions has no reduced dimensions, and all its nodes are `outer`.
import { isFlatIdentity, product, refine, refineFlags, squeezed, stridesOver } from './spaces.ts'
import { outputsOf } from './ir.ts'
import type { Access, Buffer, IrGraph, IrNode } from './ir.ts'

export type Level = 'inner' | 'reduce' | 'outer'

/** Nodes that become one kernel (or one call of an eager kernel). */
export interface Group {
  readonly kind: 'loops' | 'template' | 'extern'
  /** In program order. */
  readonly nodes: readonly IrNode[]
  readonly dims: readonly number[]
  readonly reduced: readonly boolean[]
  readonly levels: ReadonlyMap<IrNode, Level>
}

/** Kernels beyond this many nodes gain nothing and compile slowly. PyTorch's max_fusion_size. */
const MAX_NODES = 64

function single(node: IrNode): Group {
  if (node.kind === 'extern') return { kind: 'extern', nodes: [node], dims: [], reduced: [], levels: new Map([[node, 'outer']]) }
  if (node.kind === 'reduction') {
    const dims: number[] = []
    const reduced: boolean[] = []
    node.iter.forEach((size, i) => {
      if (size === 1) return
      dims.push(size)
      reduced.push(node.reduced[i] as boolean)
    })
    return { kind: 'loops', nodes: [node], dims, reduced, levels: new Map([[node, 'reduce']]) }
  }
  const dims = node.kind === 'template' ? [...node.iter] : squeezed(node.iter)
  return {
    kind: node.kind === 'template' ? 'template' : 'loops',
    nodes: [node],
    dims,
    reduced: dims.map(() => false),
    levels: new Map([[node, 'outer']]),
  }
}

const kept = (dims: readonly number[], reduced: readonly boolean[]): number[] => dims.filter((_, i) => !(reduced[i] as boolean))

/** The strides of a node's access over the group's dimensions (0 over reduced ones for an outer node); null when the node does not fit the space. */
export function accessStrides(
  group: { dims: readonly number[]; reduced: readonly boolean[] },
  node: IrNode,
  level: Level,
  strides: readonly number[],
): number[] | null {
  const iter = (node as { iter: readonly number[] }).iter
  if (level !== 'outer') return stridesOver(iter, strides, group.dims)
  const over = stridesOver(iter, strides, kept(group.dims, group.reduced))
  if (over === null) return null
  let next = 0
  return group.dims.map((_, i) => ((group.reduced[i] as boolean) ? 0 : (over[next++] as number)))
}

/** Whether `consumer` may take the value of `access.buffer` straight from the loop that computes it. */
function edgeFits(
  group: { dims: readonly number[]; reduced: readonly boolean[] },
  consumer: IrNode,
  level: Level,
  access: Access,
  producerLevel: Level,
): boolean {
  const strides = accessStrides(group, consumer, level, access.strides)
  if (strides === null || access.offset !== 0) return false
  if (producerLevel === 'inner') return level !== 'outer' && isFlatIdentity(group.dims, strides, 0, access.buffer.numel)
  const outer = kept(group.dims, group.reduced)
  const overOuter = strides.filter((_, i) => !(group.reduced[i] as boolean))
  if (!strides.every((s, i) => !(group.reduced[i] as boolean) || s === 0 || group.dims[i] === 1)) return false
  return isFlatIdentity(outer, overOuter, 0, access.buffer.numel)
}

/** Whether each iteration over the group's kept dimensions reads one element of the buffer: the one of the same position, as a result stored there has. */
export function readsOwnElement(group: Group, node: IrNode, access: Access): boolean {
  if (node.kind !== 'pointwise') return false
  const level = group.levels.get(node)
  return level === 'outer' && edgeFits(group.kind === 'template' ? templateSpace(group.dims) : group, node, level, access, 'outer')
}

/** A template's loops as fused nodes see them. */
const templateSpace = (dims: readonly number[]): { dims: readonly number[]; reduced: readonly boolean[] } => {
  const wide = squeezed(dims)
  return { dims: wide, reduced: wide.map(() => false) }
}

interface Space {
  dims: number[]
  reduced: boolean[]
  aLevel: 'same' | 'outer' | 'inner'
  bLevel: 'same' | 'outer' | 'inner'
}

const hasReduction = (g: Group): boolean => g.reduced.includes(true)

/** The common space of two groups: which of them moves to which level. */
function commonSpace(a: Group, b: Group): Space | null {
  const ra = hasReduction(a)
  const rb = hasReduction(b)
  const dims = refine(a.dims, b.dims)
  if (dims !== null) {
    const flagsA = refineFlags(a.dims, a.reduced, dims)
    const flagsB = refineFlags(b.dims, b.reduced, dims)
    if (ra === rb) return flagsA.every((f, i) => f === flagsB[i]) ? { dims, reduced: flagsA, aLevel: 'same', bLevel: 'same' } : null
    return { dims, reduced: ra ? flagsA : flagsB, aLevel: ra ? 'same' : 'inner', bLevel: rb ? 'same' : 'inner' }
  }
  if (ra === rb) return null
  const [big, small] = ra ? [a, b] : [b, a]
  const outer = refine(kept(big.dims, big.reduced), small.dims)
  if (outer === null) return null
  // Splice the refined kept dimensions back between the reduced ones.
  const keptOld = kept(big.dims, big.reduced)
  const pieces: number[][] = keptOld.map(() => [])
  let d = keptOld.length - 1
  let rest = keptOld[d] ?? 1
  for (let f = outer.length - 1; f >= 0; f--) {
    ;(pieces[d] as number[]).unshift(outer[f] as number)
    rest /= outer[f] as number
    if (rest === 1) rest = keptOld[--d] ?? 1
  }
  const newDims: number[] = []
  const newReduced: boolean[] = []
  let next = 0
  big.dims.forEach((size, i) => {
    const parts = (big.reduced[i] as boolean) ? [size] : (pieces[next++] as number[])
    for (const part of parts) {
      newDims.push(part)
      newReduced.push(big.reduced[i] as boolean)
    }
  })
  return { dims: newDims, reduced: newReduced, aLevel: ra ? 'same' : 'outer', bLevel: rb ? 'same' : 'outer' }
}

/** Lanes of a vector; a loop shorter than this does not fill one. */
const LANES = 4

/**
 * Whether a group whose innermost loop fills vectors would be cut into pieces too short for them, by a neighbour that sees the same memory
 * as windows (the gradient of a pooling). Computing all of it one element at a time costs more than storing the neighbour's result.
 */
function losesVectors(a: Group, b: Group, space: Space): boolean {
  const inner = space.dims.at(-1) ?? LANES
  return inner < LANES && [a, b].some((g) => (g.dims.at(-1) ?? 0) >= LANES)
}

/** The merged group of a and b (in program order), or null when they cannot share loops. Cycles are the caller's business. */
export function tryMerge(a: Group, b: Group, order: ReadonlyMap<IrNode, number>): Group | null {
  if (a.kind === 'extern' || b.kind === 'extern' || b.kind === 'template' || a.nodes.length + b.nodes.length > MAX_NODES) return null
  if (a.kind === 'template' && hasReduction(b)) return null
  const space = commonSpace(a, b)
  if (space === null || (a.kind !== 'template' && losesVectors(a, b, space))) return null
  if (a.kind === 'template') {
    // The template's own loops cannot be split.
    space.dims = [...a.dims]
    space.reduced = a.dims.map(() => false)
  }
  const levels = new Map<IrNode, Level>()
  const move = (level: Level, to: Space['aLevel']): Level => (to === 'same' ? level : to)
  for (const [node, level] of a.levels) levels.set(node, move(level, space.aLevel))
  for (const [node, level] of b.levels) levels.set(node, move(level, space.bLevel))
  const produced = new Map<Buffer, IrNode>()
  for (const node of levels.keys()) for (const out of outputsOf(node)) produced.set(out, node)
  for (const [node, level] of levels) {
    if (node.kind === 'template') continue
    for (const access of node.reads) {
      const producer = produced.get(access.buffer)
      if (producer === undefined) {
        if (accessStrides(space, node, level, access.strides) === null) return null
      } else if (!edgeFits(a.kind === 'template' ? templateSpace(space.dims) : space, node, level, access, levels.get(producer) as Level)) return null
    }
  }
  const nodes = [...a.nodes, ...b.nodes].sort((x, y) => (order.get(x) as number) - (order.get(y) as number))
  return { kind: a.kind, nodes, dims: space.dims, reduced: space.reduced, levels }
}

/** Groups a program into kernels and returns them in an order that respects the data flow. */
export function schedule(graph: IrGraph): Group[] {
  const order = new Map(graph.nodes.map((node, i) => [node, i]))
  const groupOf = new Map<IrNode, MutableGroup>()
  for (const node of graph.nodes)
    groupOf.set(node, { group: single(node), inputs: new Set(), outputs: new Set(), dead: false, position: order.get(node) as number })
  for (const node of graph.nodes) {
    const mine = groupOf.get(node) as MutableGroup
    for (const { buffer } of node.reads) {
      if (buffer.producer === null) continue
      const theirs = groupOf.get(buffer.producer) as MutableGroup
      if (theirs === mine) continue
      mine.inputs.add(theirs)
      theirs.outputs.add(mine)
    }
  }
  const merge = (a: MutableGroup, b: MutableGroup): boolean => {
    if (a === b || a.dead || b.dead) return false
    const [first, second] = a.position <= b.position ? [a, b] : [b, a]
    const [early, late] = second.outputs.has(first) ? [second, first] : [first, second]
    const merged = tryMerge(early.group, late.group, order)
    if (merged === null || reaches(early, late) || reaches(late, early)) return false
    early.group = merged
    early.position = Math.max(early.position, late.position)
    for (const g of late.inputs) {
      g.outputs.delete(late)
      if (g !== early) link(g, early)
    }
    for (const g of late.outputs) {
      g.inputs.delete(late)
      if (g !== early) link(early, g)
    }
    early.inputs.delete(late)
    early.outputs.delete(late)
    late.dead = true
    for (const node of late.group.nodes) groupOf.set(node, early)
    return true
  }
  // Producer into consumer, in program order.
  for (const node of graph.nodes) {
    for (const { buffer } of node.reads) {
      if (buffer.producer !== null) merge(groupOf.get(buffer.producer) as MutableGroup, groupOf.get(node) as MutableGroup)
    }
  }
  // Siblings: nodes that read the same buffer.
  const readers = new Map<Buffer, IrNode[]>()
  for (const node of graph.nodes) for (const { buffer } of node.reads) readers.set(buffer, [...(readers.get(buffer) ?? []), node])
  for (const nodes of readers.values()) {
    for (let i = 1; i < nodes.length && nodes.length <= 16; i++)
      merge(groupOf.get(nodes[i - 1] as IrNode) as MutableGroup, groupOf.get(nodes[i] as IrNode) as MutableGroup)
  }
  return inDependencyOrder([...new Set(groupOf.values())])
}

interface MutableGroup {
  group: Group
  readonly inputs: Set<MutableGroup>
  readonly outputs: Set<MutableGroup>
  dead: boolean
  /** Program position of its last node: nothing reachable only through earlier groups needs a search. */
  position: number
}

function link(from: MutableGroup, to: MutableGroup): void {
  from.outputs.add(to)
  to.inputs.add(from)
}

/** Whether `to` depends on `from` through at least one group between them. */
function reaches(from: MutableGroup, to: MutableGroup): boolean {
  const stack = [...from.outputs].filter((g) => g !== to)
  const seen = new Set<MutableGroup>(stack)
  for (let g = stack.pop(); g !== undefined; g = stack.pop()) {
    for (const next of g.outputs) {
      if (next === to) return true
      if (!seen.has(next)) {
        seen.add(next)
        stack.push(next)
      }
    }
  }
  return false
}

function inDependencyOrder(groups: readonly MutableGroup[]): Group[] {
  const waiting = new Map(groups.map((g) => [g, g.inputs.size]))
  const ready = groups.filter((g) => g.inputs.size === 0).sort((x, y) => x.position - y.position)
  const out: Group[] = []
  for (let i = 0; i < ready.length; i++) {
    const g = ready[i] as MutableGroup
    out.push(g.group)
    for (const next of g.outputs) {
      const left = (waiting.get(next) as number) - 1
      waiting.set(next, left)
      if (left === 0) ready.push(next)
    }
  }
  return out
}

/** Elements that a group's loops visit; for reports. */
export const spaceSize = (group: Group): number => product(group.dims)

// Groups of nodes that become one kernel, and how two groups merge.
//
// A group has an iteration space, and some of its dimensions may be reduced. Each of its nodes is on one of three levels:
//   inner    one value per element of the whole space
//   reduce   combines over the reduced dimensions
//   outer    one value per element of the kept dimensions
// A group without reductions has no reduced dimensions, and all its nodes are `outer`.
import { LANES } from '../kernels/index.ts'
import { sameShape } from '../tensor/index.ts'
import type { Access, Buffer, ExternNode, IrNode, PointwiseNode, ReductionNode, TemplateNode } from './ir.ts'
import { isFlatIdentity, keptDims, keptOf, refine, sizesOf, split, splitSpace, squeezed, stridesOver } from './spaces.ts'
import type { Dim } from './spaces.ts'

/** A node of a loop group, and its level. */
export type LoopMember =
  | { readonly level: 'inner'; readonly node: PointwiseNode }
  | { readonly level: 'reduce'; readonly node: ReductionNode }
  | { readonly level: 'outer'; readonly node: PointwiseNode }

/** Nodes that become one kernel of loops. */
export interface LoopGroup {
  readonly kind: 'loops'
  readonly space: readonly Dim[]
  /** In program order. */
  readonly members: readonly LoopMember[]
}

/** A template and the pointwise nodes of its epilogue. */
export interface TemplateGroup {
  readonly kind: 'template'
  readonly template: TemplateNode
  /** In program order. */
  readonly epilogue: readonly PointwiseNode[]
}

/** One call of an eager kernel. */
interface ExternGroup {
  readonly kind: 'extern'
  readonly node: ExternNode
}

/** Nodes that become one step of the program. */
export type Group = LoopGroup | TemplateGroup | ExternGroup

/** The nodes of a group, in program order. */
export function nodesOf(group: Group): readonly IrNode[] {
  if (group.kind === 'extern') return [group.node]
  return group.kind === 'template' ? [group.template, ...group.epilogue] : group.members.map((member) => member.node)
}

/** Kernels with more nodes than this gain nothing and compile slowly. PyTorch's max_fusion_size. */
const MAX_NODES = 64

// Why two groups are not merged.
const TOO_MANY = `the kernel would have more than ${MAX_NODES} nodes`
const NO_SPACE = 'their loops have different sizes'
const NO_FIT = 'one needs values that the other has not computed at that point of the loops'

/** The group of one node. */
export function groupOf(node: IrNode): Group {
  if (node.kind === 'extern') return { kind: 'extern', node }
  if (node.kind === 'template') return { kind: 'template', template: node, epilogue: [] }
  if (node.kind === 'pointwise') return { kind: 'loops', space: keptDims(squeezed(node.iter)), members: [{ level: 'outer', node }] }
  const space = node.iter.map((size, i) => ({ size, reduced: node.reduced[i] === true })).filter((dim) => dim.size !== 1)
  return { kind: 'loops', space, members: [{ level: 'reduce', node }] }
}

/** An access's strides over the space (0 over reduced dimensions for an outer node); null when the node does not fit the space. */
export function accessStrides(space: readonly Dim[], { node, level }: LoopMember, strides: readonly number[]): number[] | null {
  if (level !== 'outer') return stridesOver(node.iter, strides, sizesOf(space))
  const over = stridesOver(node.iter, strides, sizesOf(keptOf(space)))
  return over === null ? null : space.map((dim) => (dim.reduced ? 0 : (over.shift() ?? 0)))
}

/** Whether the consumer can use the value of `access.buffer` directly in the loop that computes it, at the producer's level. */
function edgeFits(space: readonly Dim[], consumer: LoopMember, access: Access, producer: LoopMember['level']): boolean {
  const strides = accessStrides(space, consumer, access.strides)
  if (strides === null || access.offset !== 0) return false
  if (producer === 'inner') return consumer.level !== 'outer' && isFlatIdentity(sizesOf(space), strides, 0, access.buffer.numel)
  if (space.some((dim, i) => dim.reduced && dim.size !== 1 && strides[i] !== 0)) return false
  const outer = strides.filter((_, i) => space[i]?.reduced === false)
  return isFlatIdentity(sizesOf(keptOf(space)), outer, 0, access.buffer.numel)
}

/** The space of a template's epilogue. */
const epilogueSpace = (template: TemplateNode): Dim[] => keptDims(squeezed(template.iter))

/** Whether each iteration over the group's kept dimensions reads only the element of the buffer at the position where it would store a result. */
export function readsOwnElement(group: Group, node: IrNode, access: Access): boolean {
  if (group.kind === 'extern') return false
  if (group.kind === 'loops') {
    const member = group.members.find((m) => m.node === node)
    return member?.level === 'outer' && edgeFits(group.space, member, access, 'outer')
  }
  const own = group.epilogue.find((n) => n === node)
  return own !== undefined && edgeFits(epilogueSpace(group.template), { level: 'outer', node: own }, access, 'outer')
}

/** Whether the nodes of a merged group fit its space: its loops can walk what they read from outside, and what they read from inside is available. */
function allFit(space: readonly Dim[], members: readonly LoopMember[], produced: ReadonlyMap<Buffer, LoopMember['level']>): boolean {
  return members.every((member) =>
    member.node.reads.every((access) => {
      const level = produced.get(access.buffer)
      return level === undefined ? accessStrides(space, member, access.strides) !== null : edgeFits(space, member, access, level)
    }),
  )
}

/** The merged group of a and b (a comes first in the program), or why they cannot share loops. The caller must check that merging makes no cycle. */
export function tryMerge(a: Group, b: Group, order: ReadonlyMap<IrNode, number>): Group | string {
  if (a.kind === 'extern' || b.kind === 'extern') return 'an eager kernel is called on its own'
  if (b.kind === 'template') return 'a template cannot compute what comes before it'
  return a.kind === 'template' ? mergeIntoTemplate(a, b, order) : mergeLoops(a, b, order)
}

function inOrder<T>(items: readonly T[], nodeOf: (item: T) => IrNode, order: ReadonlyMap<IrNode, number>): T[] {
  return [...items].sort((x, y) => (order.get(nodeOf(x)) ?? 0) - (order.get(nodeOf(y)) ?? 0))
}

/** A template's loops cannot be split, and cannot compute other reductions. */
function mergeIntoTemplate(a: TemplateGroup, b: LoopGroup, order: ReadonlyMap<IrNode, number>): TemplateGroup | string {
  const { template } = a
  if (!template.fuses) return 'the template takes no further operators'
  if (1 + a.epilogue.length + b.members.length > MAX_NODES) return TOO_MANY
  const space = epilogueSpace(template)
  const added = b.members.flatMap((member) => (member.level === 'outer' ? [member.node] : []))
  if (added.length < b.members.length) return 'a template cannot compute reductions'
  if (refine(sizesOf(space), sizesOf(b.space)) === null) return NO_SPACE
  const epilogue = inOrder([...a.epilogue, ...added], (node) => node, order)
  const produced = new Map<Buffer, LoopMember['level']>([template, ...epilogue].map((node) => [node.out, 'outer']))
  const members = epilogue.map((node): LoopMember => ({ level: 'outer', node }))
  return allFit(space, members, produced) ? { kind: 'template', template, epilogue } : NO_FIT
}

function mergeLoops(a: LoopGroup, b: LoopGroup, order: ReadonlyMap<IrNode, number>): LoopGroup | string {
  if (a.members.length + b.members.length > MAX_NODES) return TOO_MANY
  const common = commonSpace(a, b)
  if (common === null) return NO_SPACE
  if (losesVectors(a, b, common.space)) return 'the innermost loop would become too short for vectors'
  const { space } = common
  const members = inOrder(
    [...a.members.map((m) => moved(m, common.aLevel)), ...b.members.map((m) => moved(m, common.bLevel))],
    (member) => member.node,
    order,
  )
  const produced = new Map(members.map((member) => [member.node.out, member.level]))
  // What precedes keeps its space, and reads nothing of what is added: it fits as it did.
  const isKept = common.aLevel === 'same' && sameShape(sizesOf(space), sizesOf(a.space))
  const added = new Set(b.members.map((member) => member.node))
  const checked = isKept ? members.filter(({ node }) => added.has(node)) : members
  return allFit(space, checked, produced) ? { kind: 'loops', space, members } : NO_FIT
}

type Move = 'same' | 'outer' | 'inner'

const moved = (member: LoopMember, to: Move): LoopMember => (to === 'same' || member.level === 'reduce' ? member : { level: to, node: member.node })

/** The common space of two groups, and the level to which the nodes of each move. */
interface CommonSpace {
  readonly space: readonly Dim[]
  readonly aLevel: Move
  readonly bLevel: Move
}

const hasReduction = (group: LoopGroup): boolean => group.space.some((dim) => dim.reduced)

function commonSpace(a: LoopGroup, b: LoopGroup): CommonSpace | null {
  const [ra, rb] = [hasReduction(a), hasReduction(b)]
  const fine = refine(sizesOf(a.space), sizesOf(b.space))
  if (fine !== null) {
    const [spaceA, spaceB] = [splitSpace(a.space, fine), splitSpace(b.space, fine)]
    if (ra === rb) return spaceA.every((dim, i) => dim.reduced === spaceB[i]?.reduced) ? { space: spaceA, aLevel: 'same', bLevel: 'same' } : null
    return { space: ra ? spaceA : spaceB, aLevel: ra ? 'same' : 'inner', bLevel: rb ? 'same' : 'inner' }
  }
  if (ra === rb) return null
  // The space of one group may be the kept dimensions of the other.
  const [big, small] = ra ? [a, b] : [b, a]
  const kept = sizesOf(keptOf(big.space))
  const outer = refine(kept, sizesOf(small.space))
  if (outer === null) return null
  const parts = [...split(kept, outer)]
  const space = big.space.flatMap((dim) => (dim.reduced ? [dim] : keptDims(parts.shift() ?? [])))
  return { space, aLevel: ra ? 'same' : 'outer', bLevel: rb ? 'same' : 'outer' }
}

/**
 * Whether a group whose innermost loop fills vectors would be split into loops too short for them, by a neighbour that views the same memory as
 * windows (the gradient of a pooling). Computing one element at a time costs more than storing the neighbour's result.
 */
function losesVectors(a: LoopGroup, b: LoopGroup, space: readonly Dim[]): boolean {
  const inner = space.at(-1)?.size ?? LANES
  return inner < LANES && [a, b].some((group) => (group.space.at(-1)?.size ?? 0) >= LANES)
}

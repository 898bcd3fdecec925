// Where buffers live: which of them must be in memory at all, and which results use the memory of an input.
//
// If the captured function writes to an input, the input's new value is an output of the functional graph. Where that makes no difference to any
// reader, the kernel that computes the new value writes it directly to the input's memory, and no copy is needed.
import type { TensorSpec } from '../tensor/index.ts'
import { isContiguous } from '../tensor/index.ts'
import { nodesOf, readsOwnElement } from './groups.ts'
import type { Group } from './groups.ts'
import { coversBuffer, outputsOf, returnedBuffers } from './ir.ts'
import type { Buffer, IrGraph, IrNode } from './ir.ts'

export interface Placement {
  /** Results that must be in memory: returned, or read by another group than the one that computes them. */
  readonly stored: ReadonlySet<Buffer>
  /** Results that live in an input's memory, with the input's position. Kernels write them last in each iteration, when every old value has been read. */
  readonly inPlace: ReadonlyMap<Buffer, number>
  /** The positions of the outputs that are in `inPlace`. */
  readonly outputsInPlace: ReadonlySet<number>
}

/** Places the buffers of a program. `writeBacks` maps the position of an output to the position of the input that the caller writes it to. */
export function placeBuffers(
  graph: IrGraph,
  groups: readonly Group[],
  writeBacks: ReadonlyMap<number, number>,
  specs: readonly (TensorSpec | number)[],
): Placement {
  return { stored: storedBuffers(graph, groups), ...placeInPlace(graph, groups, writeBacks, specs) }
}

function storedBuffers(graph: IrGraph, groups: readonly Group[]): Set<Buffer> {
  const stored = new Set(returnedBuffers(graph).filter((buffer) => buffer.producer !== null))
  for (const group of groups) {
    const nodes = nodesOf(group)
    const mine = new Set(nodes.flatMap(outputsOf))
    for (const node of nodes) for (const { buffer } of node.reads) if (buffer.producer !== null && !mine.has(buffer)) stored.add(buffer)
  }
  return stored
}

/**
 * Chooses the outputs that can be written in place: the input is contiguous; the output is a whole result; every read of the input happens in
 * an earlier step, or in the loop that writes it and only of the element of that iteration; and no later step can fail, which would leave the input half
 * written: only eager kernels allocate while the program runs.
 */
function placeInPlace(
  graph: IrGraph,
  groups: readonly Group[],
  writeBacks: ReadonlyMap<number, number>,
  specs: readonly (TensorSpec | number)[],
): Omit<Placement, 'stored'> {
  const inPlace = new Map<Buffer, number>()
  const outputsInPlace = new Set<number>()
  const taken = new Set<number>()
  for (const [position, input] of writeBacks) {
    const output = graph.outputs[position]
    const target = graph.inputs[input]
    const spec = specs[input]
    if (output?.kind !== 'view' || target === null || target === undefined || typeof spec === 'number' || spec === undefined) continue
    const { buffer } = output.view
    const node = buffer.producer
    if (node === null || node.kind === 'extern' || node.kind === 'template' || taken.has(input) || inPlace.has(buffer)) continue
    if (spec.strides !== undefined && !isContiguous(spec.shape, spec.strides)) continue
    if (!coversBuffer(output.view) || buffer.numel !== target.numel || buffer.dtype !== target.dtype) continue
    // The input's old value must not be returned, whole or in part.
    if (graph.outputs.some((o) => o.kind === 'view' && o.view.buffer === target)) continue
    const [writer, ...later] = groups.slice(groups.findIndex((group) => nodesOf(group).includes(node)))
    // Results of reductions are stored as soon as they are known, other results after all reads of their element.
    if (writer === undefined || !storesLast(writer, node) || !isSafe(writer, later, target)) continue
    inPlace.set(buffer, input)
    outputsInPlace.add(position)
    taken.add(input)
  }
  return { inPlace, outputsInPlace }
}

/** Whether the node's result is stored at the end of an iteration, after all reads. */
const storesLast = (group: Group, node: IrNode): boolean =>
  group.kind === 'template'
    ? group.epilogue.some((own) => own === node)
    : group.kind === 'loops' && group.members.some((member) => member.node === node && member.level === 'outer')

/** Whether every read of the old value of `target` happens before the writer stores: an element only in its own iteration, and nothing in later steps, which cannot fail either. */
function isSafe(writer: Group, later: readonly Group[], target: Buffer): boolean {
  const reads = (node: IrNode): boolean => node.reads.some((access) => access.buffer === target)
  if (later.some((group) => group.kind === 'extern' || nodesOf(group).some(reads))) return false
  return nodesOf(writer).every((node) => node.reads.every((access) => access.buffer !== target || readsOwnElement(writer, node, access)))
}

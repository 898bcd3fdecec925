// Mutations: the captured function wrote to an input, and its new value is an output of the functional graph. Where nobody can tell the
// difference, the kernel that computes the new value writes it straight into the input's memory, and no copy is needed.
import type { TensorSpec } from '../tensor/index.ts'
import { isContiguous } from '../tensor/index.ts'
import { coversBuffer } from './lowering.ts'
import type { Buffer, IrGraph } from './ir.ts'
import { readsOwnElement } from './scheduler.ts'
import type { Group } from './scheduler.ts'

export interface InPlace {
  /** Result buffers that live in an input's memory, with the placeholder position. */
  readonly buffers: ReadonlyMap<Buffer, number>
  /** The output positions so placed. */
  readonly outputs: ReadonlySet<number>
}

/**
 * Chooses the outputs that can be written in place: the input is contiguous; the output is a whole result; and every read of the input
 * happens in an earlier step, or in the very loop that writes it and of the element at hand.
 */
export function placeInPlace(
  graph: IrGraph,
  groups: readonly Group[],
  writeBacks: ReadonlyMap<number, number>,
  specs: readonly (TensorSpec | null)[],
): InPlace {
  const buffers = new Map<Buffer, number>()
  const outputs = new Set<number>()
  const taken = new Set<number>()
  for (const [position, input] of writeBacks) {
    const output = graph.outputs[position]
    const target = graph.inputs[input]
    const spec = specs[input]
    if (output?.kind !== 'view' || target === null || target === undefined || spec === null || spec === undefined) continue
    const { buffer } = output.view
    const node = buffer.producer
    if (node === null || node.kind === 'extern' || node.kind === 'template' || taken.has(input) || buffers.has(buffer)) continue
    if (!coversBuffer(output.view) || buffer.numel !== target.numel || buffer.dtype !== target.dtype || !isContiguous(spec.shape, spec.strides ?? []))
      continue
    // The input's old value must not be an output, nor seen through another output.
    if (graph.outputs.some((o) => o.kind === 'view' && o.view.buffer === target)) continue
    const writer = groups.findIndex((g) => g.levels.has(node))
    // Results of reductions are stored as soon as they are known; the others when everything of their element has been read.
    if ((groups[writer] as Group).levels.get(node) !== 'outer' || !readsAreSafe(groups, writer, target)) continue
    buffers.set(buffer, input)
    outputs.add(position)
    taken.add(input)
  }
  return { buffers, outputs }
}

function readsAreSafe(groups: readonly Group[], writer: number, target: Buffer): boolean {
  for (let step = writer; step < groups.length; step++) {
    for (const node of (groups[step] as Group).nodes) {
      for (const access of node.reads) {
        if (access.buffer !== target) continue
        if (step > writer) return false
        if (!readsOwnElement(groups[writer] as Group, node, access)) return false
      }
    }
  }
  return true
}

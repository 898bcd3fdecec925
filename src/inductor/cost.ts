// What one run of a kernel costs, from the sizes of what it computes: for reports and profiles.
import { dtypeInfo } from '../kernels/index.ts'
import { nodesOf } from './groups.ts'
import type { Group } from './groups.ts'
import { outputsOf } from './ir.ts'
import type { Access, Buffer, IrNode } from './ir.ts'
import { product } from './spaces.ts'

/** The cost of one run. */
export interface KernelCost {
  /** Floating-point operations by FlopCounterMode's rules: 2 for each multiplication with its addition in products and convolutions. Null for an eager kernel, whose operator knows. */
  readonly flops: number | null
  /** Bytes of the elements that it reads from other kernels or inputs, and of those that it stores; each counts once. */
  readonly bytes: number
}

/** The cost of a group that stores to these buffers. */
export function costOf(group: Group, stored: ReadonlySet<Buffer>): KernelCost {
  const nodes = nodesOf(group)
  const own = new Set(nodes.flatMap(outputsOf))
  const read = new Map<Buffer, number>()
  for (const node of nodes)
    for (const access of node.reads)
      if (!own.has(access.buffer)) read.set(access.buffer, Math.max(read.get(access.buffer) ?? 0, elementsRead(node, access)))
  const sizes = [...read, ...[...stored].map((buffer) => [buffer, buffer.numel] as const)]
  return {
    flops: group.kind === 'extern' ? null : group.kind === 'loops' ? 0 : 2 * group.template.depth * product(group.template.iter),
    bytes: sizes.reduce((sum, [{ dtype }, numel]) => sum + numel * dtypeInfo[dtype].size, 0),
  }
}

/** How many elements of a buffer a node reads. Templates and eager kernels walk their operands in ways of their own: all of the buffer. */
function elementsRead(node: IrNode, { buffer, strides }: Access): number {
  if (node.kind === 'template' || node.kind === 'extern') return buffer.numel
  return Math.min(buffer.numel, product(node.iter.filter((_, i) => strides[i] !== 0)))
}

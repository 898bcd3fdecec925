// Inductor's IR as text, for snapshots between stages and for errors.
import { nodesOf } from './groups.ts'
import type { Group } from './groups.ts'
import { outputsOf } from './ir.ts'
import type { Access, Buffer, IrGraph, IrNode, IrOutput } from './ir.ts'
import type { MemoryPlan } from './memoryPlan.ts'
import type { Placement } from './placement.ts'

const dims = (sizes: readonly number[]): string => `[${sizes.join(', ')}]`

const formatBuffer = ({ name, dtype, shape }: Buffer): string => `${name} ${dtype}${dims(shape)}`

const formatAccess = ({ buffer, strides, offset }: Access): string => `${buffer.name}(${strides.join(', ')})${offset === 0 ? '' : `+${offset}`}`

/** What a node does, without its results. */
function formatWork(node: IrNode): string {
  if (node.kind === 'extern') return 'eager kernel'
  if (node.kind === 'template') return `template ${node.template} over ${dims(node.iter)}`
  if (node.kind === 'pointwise') return `pointwise over ${dims(node.iter)}`
  const reduced = node.reduced.flatMap((flag, i) => (flag ? [i] : []))
  return `reduction by ${node.combine} of ${dims(node.iter)} along ${reduced.join(', ')}`
}

/** A node as one line: `buf1 float32[4] = sum: reduction by add of [4, 8] along 1; reads buf0(8, 1)`. */
export function formatNode(node: IrNode): string {
  const reads = node.reads.length === 0 ? '' : `; reads ${node.reads.map(formatAccess).join(', ')}`
  return `${outputsOf(node).map(formatBuffer).join(', ')} = ${node.op}: ${formatWork(node)}${reads}`
}

function formatOutput(output: IrOutput): string {
  if (output.kind === 'view') return `${formatAccess(output.view)}${dims(output.view.shape)}`
  return output.kind === 'scalarInput' ? `in${output.input.placeholder}` : String(output.value)
}

/** A program as text, one node a line. */
export function printIr(graph: IrGraph): string {
  const inputs = graph.inputs.map((buffer, i) => (buffer === null ? `in${i} scalar` : formatBuffer(buffer)))
  return [`inputs ${inputs.join(', ')}`, ...graph.nodes.map(formatNode), `return ${graph.outputs.map(formatOutput).join(', ')}`].join('\n')
}

/** Groups as text: the nodes of each below a heading. */
export const printGroups = (groups: readonly Group[]): string =>
  groups.map((group, i) => [`group ${i}, ${group.kind}`, ...nodesOf(group).map((node) => `  ${formatNode(node)}`)].join('\n')).join('\n')

/** A placement as text: what is in memory, and whose memory it is. */
export const printPlacement = ({ stored, inPlace }: Placement): string =>
  [...stored].map((buffer) => `${formatBuffer(buffer)}${inPlace.has(buffer) ? ` in the memory of in${inPlace.get(buffer)}` : ''}`).join('\n')

/** A memory plan as text: each temporary with its place in the arena. */
export const printPlan = ({ offsets, bytes }: MemoryPlan): string =>
  [`arena of ${bytes} bytes`, ...[...offsets].map(([buffer, offset]) => `  ${formatBuffer(buffer)} at ${offset}`)].join('\n')

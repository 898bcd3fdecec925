// The executable specification of inductor's IR: what lowering must produce, and what later stages may rely on.
import { InternalError } from '../errors/index.ts'
import { dtypeInfo, isNarrow, realDType } from '../kernels/index.ts'
import { nodesOf } from './groups.ts'
import type { Group } from './groups.ts'
import { outputsOf } from './ir.ts'
import type { Access, Buffer, BufferView, IrGraph, IrNode } from './ir.ts'
import { formatNode } from './print.ts'
import { product } from './spaces.ts'

/** Checks a program. Throws an InternalError that shows the node and the rule that it violates. */
export function verifyIr(graph: IrGraph): void {
  const there = new Set<Buffer>()
  for (const input of graph.inputs) if (input !== null) there.add(input)
  for (const node of graph.nodes) {
    const fail = failing(`node ${formatNode(node)}`)
    for (const access of node.reads) {
      if (!there.has(access.buffer)) fail(`it reads ${access.buffer.name}, which is neither an input nor computed earlier`)
    }
    for (const out of outputsOf(node)) {
      if (there.has(out)) fail(`it writes ${out.name}, which already exists`)
      if (out.producer !== node) fail(`${out.name} has another producer`)
      if (out.numel !== product(out.shape)) fail(`${out.name} of shape [${out.shape.join(', ')}] claims to have ${out.numel} elements`)
      there.add(out)
    }
    checkShape(node, fail)
  }
  graph.outputs.forEach((output, i) => {
    if (output.kind !== 'view') return
    const fail = failing(`output ${i}`)
    checkDType(output.view, fail)
    if (!there.has(output.view.buffer)) fail(`${output.view.buffer.name} is neither an input nor computed`)
    checkAccess(output.view.shape, output.view, fail)
  })
}

type Fail = (rule: string) => void

const failing =
  (where: string): Fail =>
  (rule) => {
    throw new InternalError(`inductor: ${where}: ${rule}`)
  }

function checkShape(node: IrNode, fail: Fail): void {
  if (node.kind === 'extern') {
    for (const view of viewsOf(node.args)) {
      checkDType(view, fail)
      checkAccess(view.shape, view, fail)
    }
    return
  }
  if (node.kind === 'template') {
    if (product(node.iter) !== node.out.numel) fail(`its loops run ${product(node.iter)} times for ${node.out.numel} elements`)
    return
  }
  for (const access of node.reads) checkAccess(node.iter, access, fail)
  // PyTorch rounds such a sum once, at the end.
  if (node.kind === 'reduction' && dtypeInfo[node.dtype].floating && isNarrow(node.dtype))
    fail(`it accumulates in ${node.dtype}; accumulate in ${dtypeInfo[node.dtype].compute} and cast the result`)
  if (node.kind === 'reduction' && node.reduced.length !== node.iter.length)
    fail(`it has ${node.iter.length} dimensions, but says whether they are reduced for ${node.reduced.length}`)
  const kept = node.kind === 'reduction' ? node.iter.filter((_, i) => node.reduced[i] !== true) : node.iter
  if (product(kept) !== node.out.numel) fail(`it computes ${product(kept)} values for ${node.out.numel} elements`)
}

const viewsOf = (args: Extract<IrNode, { kind: 'extern' }>['args']): readonly BufferView[] =>
  args.flatMap((arg) => (arg.kind === 'view' ? [arg.view] : arg.kind === 'list' ? viewsOf(arg.items) : []))

function checkDType({ buffer, dtype }: BufferView, fail: Fail): void {
  if (realDType(dtype) !== buffer.dtype) fail(`it views ${buffer.name}, which is ${buffer.dtype}, as ${dtype}`)
}

/** An access must have a stride for each dimension and stay inside its buffer. (An input may be a window of a larger storage, so its bounds are not known.) */
function checkAccess(iter: readonly number[], { buffer, strides, offset }: Access, fail: Fail): void {
  if (strides.length !== iter.length) fail(`an access to ${buffer.name} has ${strides.length} strides over ${iter.length} dimensions`)
  if (buffer.input >= 0 || product(iter) === 0) return
  const ends = iter.map((size, i) => (size - 1) * (strides[i] ?? 0))
  const first = ends.reduce((at, end) => at + Math.min(0, end), offset)
  const last = ends.reduce((at, end) => at + Math.max(0, end), offset)
  if (first < 0 || last >= buffer.numel) fail(`it accesses elements ${first} to ${last} of ${buffer.name}, which has ${buffer.numel}`)
}

/** Checks that groups partition the nodes of a program and are in an order that respects the data flow. Throws InternalError. */
export function verifyGroups(graph: IrGraph, groups: readonly Group[]): void {
  const done = new Set<IrNode>()
  for (const group of groups) {
    const mine = nodesOf(group)
    for (const node of mine) {
      const fail = failing(`node ${formatNode(node)}`)
      if (done.has(node)) fail('it is in two groups')
      done.add(node)
    }
    for (const node of mine) {
      for (const { buffer } of node.reads)
        if (buffer.producer !== null && !done.has(buffer.producer))
          failing(`node ${formatNode(node)}`)(`its group runs before ${buffer.name} is computed`)
    }
  }
  for (const node of graph.nodes) if (!done.has(node)) failing(`node ${formatNode(node)}`)('it is in no group')
  if (done.size !== graph.nodes.length) failing('a group')('it has nodes that are not in the program')
}

// Memory that derivatives read and the program can write to: a backward after such a write is refused.
import { Tensor, asTensor } from '../../tensor/index.ts'
import type { Node } from '../../fx/index.ts'
import { viewRoot } from '../joint/jointGraph.ts'
import type { JointGraph } from '../joint/jointGraph.ts'
import { memoryRead } from '../joint/partition.ts'
import { watchMemory } from './callTape.ts'
import type { Watched } from './callTape.ts'

/** Where a call has memory that derivatives read: its position among the outputs or the inputs. */
interface Place {
  readonly among: 'outputs' | 'inputs'
  readonly position: number
  readonly root: Node
}

/** The memory of inputs and outputs that derivatives read, and the program can write to. */
export function watchedOf(joint: JointGraph): readonly Place[] {
  const read = memoryRead(joint)
  const { inputs, outputs, writeBacks } = joint
  const overwritten = new Set(writeBacks.values())
  const places: Place[] = []
  for (const [position, node] of inputs.entries())
    if (read.has(viewRoot(node)) && !overwritten.has(position)) places.push({ among: 'inputs', position, root: viewRoot(node) })
  for (const [position, node] of outputs.entries()) {
    const root = viewRoot(node)
    if (!read.has(root)) continue
    places.push({ among: 'outputs', position, root })
    const input = writeBacks.get(position)
    if (input !== undefined) places.push({ among: 'inputs', position: input, root })
  }
  return places
}

/** A backward is refused, as in eager mode, if the program has written to what its derivatives read. */
export function watch(outputs: readonly unknown[], inputs: readonly Tensor[], { heads: [head] }: JointGraph, places: readonly Place[]): void {
  if (head === undefined) return
  const watched: Watched[] = []
  for (const { among, position, root } of places) {
    const tensor = among === 'inputs' ? inputs[position] : outputs[position]
    if (tensor instanceof Tensor) watched.push({ tensor, root })
  }
  watchMemory(asTensor(outputs[head], 'a differentiable output').gradFn, watched)
}

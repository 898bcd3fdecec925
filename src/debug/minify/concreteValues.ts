// Before minifying, the failing graph runs once, eagerly, and every node keeps its value: candidates get these values in the place of the operators that they leave out.
// They are kept in memory, or in files where they would not fit there together.
import { noGrad } from '../../autograd/index.ts'
import { Interpreter } from '../../fx/index.ts'
import type { GraphModule, Node } from '../../fx/index.ts'
import { clone } from '../../ops/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { CONCRETE_VALUE, EARLIER_VALUES, operatorsOf } from './subgraph.ts'
import type { ReproState } from './subgraph.ts'
import { contained, isolatedInputs } from '../runs/isolated.ts'
import { folderOf } from '../files/tensorFiles.ts'
import type { TensorFiles } from '../files/tensorFiles.ts'

/** A value in a file, which is read when a candidate is run. */
export class OffloadedValue {
  readonly read: () => unknown

  constructor(read: () => unknown) {
    this.read = read
  }
}

/** The values, with those that are in files read. */
export const loaded = (values: readonly unknown[]): readonly unknown[] =>
  values.map((value) => (value instanceof OffloadedValue ? value.read() : value))

/** Where values are kept that do not stay in memory. */
export interface Offload {
  readonly files: TensorFiles
  /** The files are there, from an earlier run of the same graph. */
  readonly areWritten: boolean
}

/**
 * Runs `gm` (a copy of the state's graph) on the inputs of the state, those of each call, and stores each value in the meta of the node of the state's graph. PyTorch's
 * ConcreteProp, which knows one call.
 */
export function captureValues(gm: GraphModule, state: ReproState, offload: Offload | null = null): void {
  const byCall = state.earlier.map((inputs, call) => valuesOf(gm, loaded(inputs), offload, `.${call}`))
  const last = valuesOf(gm, loaded(state.inputs), offload, '')
  for (const node of state.graph.nodes) {
    if (node.op === 'output') continue
    node.meta[CONCRETE_VALUE] = last.get(node.name)
    node.meta[EARLIER_VALUES] = byCall.map((values) => values.get(node.name))
  }
}

/** The values of all nodes, by their names. */
function valuesOf(gm: GraphModule, inputs: readonly unknown[], offload: Offload | null, call: string): ReadonlyMap<string, unknown> {
  const values = new Map<string, unknown>()
  // Where operators write in place, a value is kept as it was before later ones. What they write to outside of the graph is put back.
  const writes = operatorsOf(gm.graph).some((node) => node.isImpure())
  const copied = (value: unknown): unknown => (writes && value instanceof Tensor ? copyOf(value) : value)
  const keep = offload === null ? null : offloading(offload, `${folderOf('eager', gm)}${call}`)
  class ConcreteProp extends Interpreter {
    override runNode(node: Node): unknown {
      const value = super.runNode(node)
      const kept = copied(value)
      values.set(node.name, keep === null ? kept : keep(node, kept))
      return value
    }
  }
  contained(() => new ConcreteProp(gm).run(...isolatedInputs(inputs)))
  return values
}

/**
 * A function that writes the value of a node to a file. A tensor that shares the memory of an earlier value has no value of its own in what is captured: read from a file, it
 * would share nothing.
 */
function offloading({ files, areWritten }: Offload, folder: string): (node: Node, value: unknown) => unknown {
  const seen = new WeakSet()
  return (node, value) => {
    // A node with several values is never replaced; that it has several is enough.
    if (Array.isArray(value)) return []
    if (!(value instanceof Tensor)) return value
    const { block } = value.realize()
    if (seen.has(block)) return undefined
    seen.add(block)
    // What is given is there already.
    if (node.op === 'placeholder') return undefined
    const name = `${folder}/${node.name}`
    if (!areWritten) files.write(name, value)
    return new OffloadedValue(() => files.read(name))
  }
}

/** A copy without a history, which requires grad if the original does. */
function copyOf(value: Tensor): Tensor {
  const copy = noGrad(() => clone(value))
  copy.requiresGrad = value.requiresGrad
  return copy
}

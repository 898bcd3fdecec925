// The tensors that a module holds: parameters, buffers, and what its graph reads.
import type { GraphModule } from '../../fx/index.ts'
import { sameShape, storedElements, Tensor } from '../../tensor/index.ts'

/** Tensors by the paths of a module. */
export type Held = ReadonlyMap<string, Tensor>

/** The tensors of a module, in an order that its copies share. */
export function heldBy(gm: GraphModule): Held {
  const held = new Map<string, Tensor>()
  const take = (name: string, value: unknown): void => {
    if (value instanceof Tensor) held.set(name, value)
  }
  for (const [name, value] of gm.namedParameters()) take(name, value)
  for (const [name, value] of gm.namedBuffers()) take(name, value)
  for (const node of gm.graph.findNodes({ op: 'get_attr' })) take(node.target, gm.attribute(node.target))
  return held
}

/** Whether two tensors have the same shape, dtype and bits. */
export function sameValues(a: Tensor | undefined, b: Tensor | undefined): boolean {
  if (a === undefined || b === undefined || a.dtype !== b.dtype || !sameShape(a.shape, b.shape)) return false
  const [x, y] = [bitsOf(a), bitsOf(b)]
  for (let i = 0; i < x.length; i++) if (x[i] !== y[i]) return false
  return true
}

/** The bits of the elements, in units that compare fast. */
function bitsOf(tensor: Tensor): Int32Array | Uint8Array {
  const { buffer, byteOffset, byteLength } = storedElements(tensor)
  return byteLength % 4 === 0 ? new Int32Array(buffer, byteOffset, byteLength / 4) : new Uint8Array(buffer, byteOffset, byteLength)
}

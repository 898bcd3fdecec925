// Layouts of several operands that are walked together: fewer dimensions where neighbours can be walked as one.
import { sameShape } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'

export interface Layout {
  readonly dims: readonly number[]
  /** Per operand, output first. */
  readonly strides: readonly (readonly number[])[]
}

/** Drops dimensions of size 1 and merges neighbours that all operands walk as one; at least one dimension remains. */
export function collapseLayout(shape: readonly number[], strides: readonly (readonly number[])[]): Layout {
  const count = strides.length
  const dims: number[] = []
  const out: number[][] = []
  for (let k = 0; k < count; k++) out.push([])
  // Innermost first; reversed at the end.
  for (let d = shape.length - 1; d >= 0; d--) {
    const size = shape[d] as number
    if (size === 1) continue
    const last = dims.length - 1
    let merge = last >= 0
    for (let k = 0; merge && k < count; k++) {
      merge = (strides[k] as readonly number[])[d] === ((out[k] as number[])[last] as number) * (dims[last] as number)
    }
    if (merge) {
      dims[last] = (dims[last] as number) * size
      continue
    }
    dims.push(size)
    for (let k = 0; k < count; k++) (out[k] as number[]).push((strides[k] as readonly number[])[d] as number)
  }
  if (dims.length === 0) {
    dims.push(1)
    for (let k = 0; k < count; k++) (out[k] as number[]).push(1)
  } else if (dims.length > 1) {
    dims.reverse()
    for (let k = 0; k < count; k++) (out[k] as number[]).reverse()
  }
  return { dims, strides: out }
}

/** The strides by which `tensor` is walked along `shape`: 0 where it is broadcast. */
export function broadcastStrides(tensor: Tensor, shape: readonly number[]): readonly number[] {
  if (sameShape(tensor.shape, shape)) return tensor.strides
  const lead = shape.length - tensor.ndim
  const out = new Array<number>(shape.length)
  for (let i = 0; i < out.length; i++) out[i] = i < lead || tensor.shape[i - lead] === 1 ? 0 : (tensor.strides[i - lead] as number)
  return out
}

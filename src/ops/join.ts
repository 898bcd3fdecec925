// Putting tensors together and taking them apart: cat, stack, split, chunk, unbind, padding.
import { ArgumentError, ShapeError } from '../errors/index.ts'
import { promoteTypes } from '../kernels/index.ts'
import { Tensor, formatShape, wrapDim } from '../tensor/index.ts'
import type { TensorSpec } from '../tensor/index.ts'
import { full } from './creation.ts'
import { defineOp } from './defineOp.ts'
import type { OpFunction } from './defineOp.ts'
import { copyInto } from './eager/copy.ts'
import { select, slice, unsqueeze } from './view/index.ts'

function catSpec(tensors: readonly Tensor[], dim: number): TensorSpec {
  const [first] = tensors
  if (first === undefined) throw new ArgumentError("torch.cat: argument 'tensors' must hold at least one tensor.")
  const at = wrapDim('torch.cat', dim, first.ndim)
  let size = 0
  let { dtype } = first
  tensors.forEach((t, k) => {
    if (t.ndim !== first.ndim || t.shape.some((s, i) => i !== at && s !== first.shape[i])) {
      throw new ShapeError(
        `torch.cat: tensors[0] has shape ${formatShape(first.shape)} but tensors[${k}] has ${formatShape(t.shape)}; all sizes but that of dimension ${dim} must agree.`,
      )
    }
    size += t.shape[at] as number
    dtype = promoteTypes(dtype, t.dtype)
  })
  return { shape: first.shape.with(at, size), dtype }
}

/** Tensors one after the other along a dimension. PyTorch's `torch.cat`. */
export const cat: OpFunction<(tensors: readonly Tensor[], dim?: number | { readonly dim: number }) => Tensor> = defineOp({
  schema: 'cat(Tensor[] tensors, int dim=0) -> Tensor',
  meta: catSpec,
  kernel: (tensors: readonly Tensor[], dim: number): Tensor => {
    const spec = catSpec(tensors, dim)
    const out = Tensor.empty(spec.shape, spec.dtype)
    const at = wrapDim('torch.cat', dim, spec.shape.length)
    let start = 0
    for (const t of tensors) {
      const size = t.shape[at] as number
      if (t.numel > 0) copyInto(t, new Tensor(t.shape, out.dtype, out.storage, out.strides, start * (out.strides[at] as number)))
      start += size
    }
    return out
  },
  derivative: ([g], { args: [tensors, dim] }) => {
    const at = wrapDim('torch.cat', dim as number, (g as Tensor).ndim)
    let start = 0
    const grads = (tensors as readonly Tensor[]).map((t) => {
      const size = t.shape[at] as number
      const part = slice(g as Tensor, at, start, start + size)
      start += size
      return part
    })
    return [grads, null]
  },
})

/** Tensors of one shape along a new dimension. PyTorch's `torch.stack`. */
export const stack: OpFunction<(tensors: readonly Tensor[], dim?: number | { readonly dim: number }) => Tensor> = defineOp({
  schema: 'stack(Tensor[] tensors, int dim=0) -> Tensor',
  decompose: (tensors: readonly Tensor[], dim: number): Tensor =>
    cat(
      tensors.map((t) => unsqueeze(t, dim)),
      dim,
    ),
})

/** Parts of `splitSize` elements (or of the listed sizes) along a dimension. PyTorch's `torch.split`. */
export const split: OpFunction<(self: Tensor, splitSize: number | readonly number[], dim?: number | { readonly dim: number }) => readonly Tensor[]> =
  defineOp({
    schema: 'split(Tensor tensor, any split_size_or_sections, int dim=0) -> Tensor[]',
    recordAs: 'keywords',
    method: true,
    decompose: (self: Tensor, splitSize: number | readonly number[], dim: number): readonly Tensor[] => {
      const at = wrapDim('torch.split', dim, self.ndim)
      const total = self.shape[at] as number
      const sizes =
        typeof splitSize === 'number'
          ? Array.from({ length: Math.ceil(total / splitSize) }, (_, i) => Math.min(splitSize, total - i * splitSize))
          : splitSize
      if (sizes.reduce((a, b) => a + b, 0) !== total)
        throw new ShapeError(`torch.split: the sizes [${sizes.join(', ')}] do not add up to ${total}, the size of dimension ${dim}.`)
      let start = 0
      return sizes.map((size) => {
        const part = slice(self, at, start, start + size)
        start += size
        return part
      })
    },
  })

/** `chunks` parts of nearly equal size. PyTorch's `torch.chunk`. */
export const chunk: OpFunction<(self: Tensor, chunks: number, dim?: number | { readonly dim: number }) => readonly Tensor[]> = defineOp({
  schema: 'chunk(Tensor self, int chunks, int dim=0) -> Tensor[]',
  method: true,
  decompose: (self: Tensor, chunks: number, dim: number): readonly Tensor[] => {
    if (chunks < 1) throw new ArgumentError(`torch.chunk: argument 'chunks' must be at least 1, got ${chunks}.`)
    const total = self.shape[wrapDim('torch.chunk', dim, self.ndim)] as number
    return split(self, Math.max(1, Math.ceil(total / chunks)), dim)
  },
})

/** One tensor per index of a dimension. PyTorch's `torch.unbind`. */
export const unbind: OpFunction<(self: Tensor, dim?: number | { readonly dim: number }) => readonly Tensor[]> = defineOp({
  schema: 'unbind.int(Tensor self, int dim=0) -> Tensor[]',
  method: true,
  decompose: (self: Tensor, dim: number): readonly Tensor[] => {
    const at = wrapDim('torch.unbind', dim, self.ndim)
    return Array.from({ length: self.shape[at] as number }, (_, i) => select(self, at, i))
  },
})

/** Pads with a value; `pad` lists before and after of the last dimension first. Negative amounts cut. PyTorch's aten.constant_pad_nd. */
export const constantPadNd: OpFunction<(self: Tensor, pad: readonly number[], value?: number) => Tensor> = defineOp({
  schema: 'constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor',
  decompose: (self: Tensor, pad: readonly number[], value: number): Tensor => {
    if (pad.length % 2 !== 0 || pad.length / 2 > self.ndim)
      throw new ArgumentError(`torch.constant_pad_nd: pad must hold pairs for at most ${self.ndim} dimensions, got [${pad.join(', ')}].`)
    let out = self
    for (let k = 0; k < pad.length / 2; k++) {
      const at = self.ndim - 1 - k
      const before = pad[2 * k] as number
      const after = pad[2 * k + 1] as number
      if (before < 0 || after < 0) out = slice(out, at, Math.max(0, -before), (out.shape[at] as number) - Math.max(0, -after))
      const block = (size: number): Tensor => full(out.shape.with(at, size), value, { dtype: out.dtype })
      const parts = [...(before > 0 ? [block(before)] : []), out, ...(after > 0 ? [block(after)] : [])]
      out = parts.length === 1 ? out : cat(parts, at)
    }
    return out
  },
})

declare module '../tensor/tensor.ts' {
  interface Tensor {
    split(splitSize: number | readonly number[], dim?: number | { readonly dim: number }): readonly Tensor[]
    chunk(chunks: number, dim?: number | { readonly dim: number }): readonly Tensor[]
    unbind(dim?: number | { readonly dim: number }): readonly Tensor[]
  }
}

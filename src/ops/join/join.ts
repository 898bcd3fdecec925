// Joining tensors and taking them apart: cat, stack, split, chunk, unbind, padding.
import { isSize, isSymbolicSize, valueText } from '../../protocol/index.ts'
import type { Size } from '../../protocol/index.ts'
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import { promoteTypes } from '../../kernels/index.ts'
import {
  formatShape,
  numbersOf,
  sameShape,
  sizeAdd,
  sizeCeilDiv,
  sizeEq,
  sizeLess,
  sizeMax,
  sizeMul,
  sizeSub,
  Tensor,
  wrapDim,
} from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'
import { full } from '../create/creation.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { copyInto } from '../eager/copy.ts'
import { partCount, sizeAt, dimAndSize } from '../shared/shapes.ts'
import { reshape, unsqueeze } from '../view/reshape.ts'
import { select, slice } from '../view/slicing.ts'

const isNothing = (t: Tensor): boolean => t.ndim === 1 && sizeEq(t.symNumel, 0)

/** Whether two shapes have the same sizes but at `at`. */
function agree(a: readonly Size[], b: readonly Size[], at: number): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (i !== at && !sizeEq(a[i], b[i])) return false
  return true
}

/** The result of cat, and the dimension along which it joins. */
function catSpec(tensors: readonly Tensor[], dim: number): { readonly spec: TensorSpec<Size>; readonly at: number } {
  // As in PyTorch, a tensor of shape [0] adds nothing to tensors of any shape.
  const first = tensors.find((t) => !isNothing(t)) ?? tensors[0]
  if (first === undefined) throw new ArgumentError("torch.cat: argument 'tensors' must hold at least one tensor.")
  const [at] = dimAndSize('torch.cat', first, dim)
  let size: Size = 0
  let { dtype } = first
  for (const t of tensors) {
    dtype = promoteTypes(dtype, t.dtype)
    if (isNothing(t)) continue
    if (!agree(t.symSizes, first.symSizes, at)) {
      throw new ShapeError(
        `torch.cat: tensors[${tensors.indexOf(first)}] has shape ${formatShape(first.symSizes)} but tensors[${tensors.indexOf(t)}] has ${formatShape(t.symSizes)}; all sizes but that of dimension ${dim} must agree.`,
      )
    }
    size = sizeAdd(size, t.symSizes[at] ?? 0)
  }
  return { spec: { shape: first.symSizes.with(at, size), dtype }, at }
}

/** Where each tensor starts along a dimension. */
function startsOf(tensors: readonly Tensor[], at: number): readonly { readonly t: Tensor; readonly start: Size; readonly size: Size }[] {
  let end: Size = 0
  return tensors.map((t) => {
    const size = isNothing(t) ? 0 : sizeAt(t.symSizes, at)
    const start = end
    end = sizeAdd(end, size)
    return { t, start, size }
  })
}

/**
 * Tensors one after the other along a dimension. PyTorch's `torch.cat`.
 *
 * Shapes: all sizes agree but those of `dim`, which add up. Tensors of shape [0] add nothing.
 *
 * @throws ShapeError if other sizes differ, or `dim` is out of range.
 * @throws ArgumentError if there are no tensors.
 * @example torch.cat([torch.tensor([1, 2]), torch.tensor([3])]).toArray() // [1, 2, 3]
 */
export const cat: Op['cat'] = defineOp({
  schema: 'cat(Tensor[] tensors, int dim=0) -> Tensor',
  vmap: 'cat',
  onnx: 'cat',
  autocast: 'promote',
  meta: (tensors, dim) => catSpec(tensors, dim).spec,
  kernel: (tensors, dim) => {
    const { spec, at } = catSpec(tensors, dim)
    const { shape, dtype } = numbersOf(spec)
    const out = Tensor.empty(shape, dtype)
    const stride = sizeAt(out.steps, at)
    let start = 0
    for (const t of tensors) {
      if (t.numel === 0) continue
      copyInto(t, new Tensor(t.sizes, out.dtype, out.storage, out.steps, start * stride))
      start += sizeAt(t.sizes, at)
    }
    return out
  },
  derivative: ([g], { args: [tensors, dim] }) => {
    const at = wrapDim('torch.cat', dim, g.ndim)
    return [
      startsOf(tensors, at).map(({ t, start, size }) => {
        const part = slice(g, at, start, sizeAdd(start, size))
        return isNothing(t) ? reshape(part, t.symSizes) : part
      }),
      null,
    ]
  },
})

/**
 * Tensors joined along a dimension: {@link cat}. PyTorch's `torch.concat`.
 *
 * Shapes: as for {@link cat}.
 *
 * @throws ShapeError if other sizes differ, or `dim` is out of range.
 * @throws ArgumentError if there are no tensors.
 * @example torch.concat([torch.tensor([1, 2]), torch.tensor([3])]).toArray() // [1, 2, 3]
 */
export const concat: Op['concat'] = defineOp({
  schema: 'concat(Tensor[] tensors, int dim=0) -> Tensor',
  decompose: (tensors, dim) => cat(tensors, dim),
})

/**
 * Tensors joined along a dimension: {@link cat}. PyTorch's `torch.concatenate`.
 *
 * Shapes: as for {@link cat}.
 *
 * @throws ShapeError if other sizes differ, or `dim` is out of range.
 * @throws ArgumentError if there are no tensors.
 * @example torch.concatenate([torch.tensor([1, 2]), torch.tensor([3])]).toArray() // [1, 2, 3]
 */
export const concatenate: Op['concatenate'] = defineOp({
  schema: 'concatenate(Tensor[] tensors, int dim=0) -> Tensor',
  decompose: (tensors, dim) => cat(tensors, dim),
})

/**
 * Tensors of one shape along a new dimension. PyTorch's `torch.stack`.
 *
 * Shape: that of the tensors, with their number inserted at `dim`.
 *
 * @throws ShapeError if the shapes differ, or `dim` is out of range.
 * @throws ArgumentError if there are no tensors.
 * @example torch.stack([torch.tensor([1, 2]), torch.tensor([3, 4])], 1).toArray() // [[1, 3], [2, 4]]
 */
export const stack: Op['stack'] = defineOp({
  schema: 'stack(Tensor[] tensors, int dim=0) -> Tensor',
  autocast: 'promote',
  decompose: (tensors, dim) => {
    const [first] = tensors
    const other = tensors.findIndex((t) => first !== undefined && !sameShape(t.symSizes, first.symSizes))
    if (other >= 0)
      throw new ShapeError(
        `torch.stack: tensors[0] has shape ${formatShape(first?.symSizes ?? [])} but tensors[${other}] has ${formatShape(tensors[other]?.symSizes ?? [])}; all tensors must have one shape. torch.cat joins others.`,
      )
    return cat(
      tensors.map((t) => unsqueeze(t, dim)),
      dim,
    )
  },
})

const isSizes = (value: unknown): value is readonly Size[] =>
  Array.isArray(value) && value.every((size: unknown) => isSymbolicSize(size) || (Number.isInteger(size) && Number(size) >= 0))

function sectionSizes(splitSize: unknown, total: Size): readonly Size[] {
  if (isSizes(splitSize)) return splitSize
  if (!isSize(splitSize) || !sizeLess(0, splitSize))
    throw new ArgumentError(
      `torch.split: argument 'split_size_or_sections' must be a positive number or a list of sizes, got ${typeof splitSize === 'number' ? splitSize : valueText(splitSize)}.`,
    )
  // How many parts there are is a fact of the program: it gets a list of them.
  const count = partCount('torch.split', Number(sizeCeilDiv(total, splitSize)))
  return Array.from({ length: count }, (_, i) => (i + 1 < count ? splitSize : sizeSub(total, sizeMul(i, splitSize))))
}

/**
 * Parts of `splitSize` elements, or of the listed sizes, along a dimension; views. PyTorch's `torch.split`.
 *
 * Shapes: that of `self`, with the size of the part in `dim`.
 *
 * @throws ShapeError if the listed sizes do not add up, or `dim` is out of range.
 * @throws ArgumentError if `splitSize` is neither a positive number nor a list of sizes.
 * @example torch.split(torch.arange(5), 2).map((t) => t.toArray()) // [[0, 1], [2, 3], [4]]
 */
export const split: OpFunction<(self: Tensor, splitSize: Size | readonly Size[], dim?: number | { readonly dim: number }) => readonly Tensor[]> =
  defineOp({
    schema: 'split(Tensor tensor, any split_size_or_sections, int dim=0) -> Tensor[]',
    recordAs: 'keywords',
    method: true,
    decompose: (self, splitSize, dim) => {
      const [at, total] = dimAndSize('torch.split', self, dim)
      const sizes = sectionSizes(splitSize, total)
      const ends: Size[] = []
      for (const size of sizes) ends.push(sizeAdd(ends.at(-1) ?? 0, size))
      if (!sizeEq(ends.at(-1) ?? 0, total))
        throw new ShapeError(`torch.split: the sizes ${formatShape(sizes)} do not add up to ${total.toString()}, the size of dimension ${dim}.`)
      return ends.map((end, i) => slice(self, at, ends[i - 1] ?? 0, end))
    },
  })

/**
 * `chunks` parts of nearly equal size along a dimension, or fewer if it is short; views. PyTorch's `torch.chunk`.
 *
 * Shapes: that of `self`, with the size of the part in `dim`.
 *
 * @throws ArgumentError if `chunks` is less than 1.
 * @throws ShapeError if `dim` is out of range.
 * @example torch.chunk(torch.arange(5), 2).map((t) => t.toArray()) // [[0, 1, 2], [3, 4]]
 */
export const chunk: Op['chunk'] = defineOp({
  schema: 'chunk(Tensor self, int chunks, int dim=0) -> Tensor[]',
  method: true,
  decompose: (self, chunks, dim) => {
    if (chunks < 1) throw new ArgumentError(`torch.chunk: argument 'chunks' must be at least 1, got ${chunks}.`)
    const [, total] = dimAndSize('torch.chunk', self, dim)
    return split(self, sizeMax(1, sizeCeilDiv(total, chunks)), dim)
  },
})

/**
 * One tensor per index of a dimension; views. PyTorch's `torch.unbind`.
 *
 * Shapes: that of `self` without `dim`.
 *
 * @throws ShapeError if `dim` is out of range.
 * @example torch.unbind(torch.tensor([[1, 2], [3, 4]])).map((t) => t.toArray()) // [[1, 2], [3, 4]]
 */
export const unbind: Op['unbind'] = defineOp({
  schema: 'unbind.int(Tensor self, int dim=0) -> Tensor[]',
  method: true,
  decompose: (self, dim) => {
    const [at, size] = dimAndSize('torch.unbind', self, dim)
    return Array.from({ length: partCount('torch.unbind', Number(size)) }, (_, i) => select(self, at, i))
  },
})

/**
 * Pads with a value; `pad` lists the amounts before and after, the last dimension first. Negative amounts cut. PyTorch's `aten.constant_pad_nd`.
 *
 * Shape: that of `self`, with the amounts added.
 *
 * @throws ArgumentError unless `pad` holds a pair per dimension, for at most all dimensions.
 * @example torch.constantPadNd(torch.tensor([1, 2]), [1, 2], 9).toArray() // [9, 1, 2, 9, 9]
 */
export const constantPadNd: Op['constantPadNd'] = defineOp({
  schema: 'constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor',
  autocast: 'untouched',
  decompose: (self, pad, value) => {
    if (pad.length % 2 !== 0 || pad.length / 2 > self.ndim)
      throw new ArgumentError(`torch.constant_pad_nd: pad must hold pairs for at most ${self.ndim} dimensions, got [${pad.join(', ')}].`)
    let out = self
    for (let k = 0; k < pad.length; k += 2) {
      const at = self.ndim - 1 - k / 2
      const [before = 0, after = 0] = pad.slice(k, k + 2)
      const size = sizeAt(out.symSizes, at)
      const [grown, isCut] = [sizeAdd(before, after), sizeLess(before, 0) || sizeLess(after, 0)]
      if (isCut && sizeLess(sizeAdd(size, grown), 0))
        throw new ShapeError(
          `torch.constant_pad_nd: ${before.toString()} and ${after.toString()} elements cannot be cut off dimension ${at} of size ${size.toString()} (shape ${formatShape(self.symSizes)}).`,
        )
      if (isCut) out = slice(out, at, sizeMax(0, sizeSub(0, before)), sizeSub(size, sizeMax(0, sizeSub(0, after))))
      const block = (length: Size): Tensor => full(out.symSizes.with(at, length), value, { dtype: out.dtype })
      const parts = [...(sizeLess(0, before) ? [block(before)] : []), out, ...(sizeLess(0, after) ? [block(after)] : [])]
      out = parts.length === 1 ? out : cat(parts, at)
    }
    return out
  },
})

/**
 * Pads each tensor with zeros along `dim` until `numChunks` divides it, makes that dimension `numChunks` rows of all that follows, and joins the rows of all tensors. PyTorch's
 * `aten._chunk_cat`.
 *
 * Shape: the sizes before `dim`, `numChunks`, and the number of elements of all tensors in a row.
 *
 * @throws ArgumentError if there are no tensors, or one has no elements, or `numChunks` is not positive.
 * @throws ShapeError if sizes before `dim` differ, or `dim` is negative or out of range for tensors with different numbers of dimensions.
 * @example torch._chunkCat([torch.tensor([1, 2, 3]), torch.tensor([4])], 0, 2).toArray() // [[1, 2, 4], [3, 0, 0]]
 */
export const chunkCat: Op['chunkCat'] = defineOp({
  schema: '_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor',
  decompose: (tensors, dim, numChunks) => {
    const op = 'torch._chunk_cat'
    const [first] = tensors
    if (numChunks < 1) throw new ArgumentError(`${op}: num_chunks must be positive, got ${numChunks}.`)
    if (first === undefined) throw new ArgumentError(`${op}: argument 'tensors' must hold at least one tensor.`)
    const alike = tensors.every((t) => t.ndim === first.ndim)
    const at = alike ? wrapDim(op, dim, first.ndim) : dim
    tensors.forEach((t, k) => {
      if (sizeEq(t.symNumel, 0)) throw new ArgumentError(`${op}: tensors[${k}] has no elements (shape ${formatShape(t.symSizes)}).`)
      if (at < 0 || at >= t.ndim) throw new ShapeError(`${op}: dim ${dim} is out of range for tensors[${k}] of shape ${formatShape(t.symSizes)}.`)
      if (!sameShape(t.symSizes.slice(0, at), first.symSizes.slice(0, at)))
        throw new ShapeError(
          `${op}: the sizes before dim ${dim} must agree, got tensors[0] of shape ${formatShape(first.symSizes)} and tensors[${k}] of ${formatShape(t.symSizes)}.`,
        )
    })
    const rows = tensors.map((t) => {
      const size = sizeAt(t.symSizes, at)
      const missing = sizeSub(sizeMul(sizeCeilDiv(size, numChunks), numChunks), size)
      const behind = t.symSizes.slice(at + 1).flatMap(() => [0, 0])
      const padded = sizeEq(missing, 0) ? t : constantPadNd(t, [...behind, 0, missing])
      return reshape(padded, [...t.symSizes.slice(0, at), numChunks, -1])
    })
    return cat(rows, at + 1)
  },
})

// Copies of elements in another arrangement: repeat, flip, roll.
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import type { Size } from '../../protocol/index.ts'
import { formatShape, sizeLess, sizeMul, sizeEq, sizeMod, sizeSub, scalarOf } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { rangeOf } from '../create/creation.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { cat } from '../join/join.ts'
import { dimAndSize } from '../shared/shapes.ts'
import { indexSelect } from './indexing.ts'
import { clone, flatten, reshape } from './reshape.ts'
import { slice } from './slicing.ts'
import { expand } from './windows.ts'

/**
 * Copies side by side: `repeats[i]` of them along dimension i; further repeats add dimensions in front. PyTorch's `Tensor.repeat`.
 *
 * Shape: the sizes of `self` times `repeats`.
 *
 * @throws ShapeError if there are fewer repeats than dimensions.
 * @throws ArgumentError if a repeat is negative.
 * @example torch.tensor([1, 2]).repeat(2, 2).toArray() // [[1, 2, 1, 2], [1, 2, 1, 2]]
 */
export const repeat: OpFunction<(self: Tensor, ...repeats: readonly (Size | readonly Size[])[]) => Tensor> = defineOp({
  schema: 'repeat(Tensor self, SymInt[] repeats) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self, repeats) => {
    const lead = repeats.length - self.ndim
    if (lead < 0)
      throw new ShapeError(
        `Tensor.repeat: ${repeats.length} repeats for a tensor of ${self.ndim} dimensions (shape ${formatShape(self.symSizes)}); give at least one per dimension.`,
      )
    if (repeats.some((r) => sizeLess(r, 0))) throw new ArgumentError(`Tensor.repeat: repeats must be at least 0, got ${formatShape(repeats)}.`)
    const pairs = repeats.map((times, i) => ({ times, size: self.symSizes[i - lead] ?? 1 }))
    const apart = reshape(
      self,
      pairs.flatMap(({ size }) => [1, size]),
    )
    const wide = expand(
      apart,
      pairs.flatMap(({ times, size }) => [times, size]),
    )
    return reshape(
      clone(wide),
      pairs.map(({ times, size }) => sizeMul(times, size)),
    )
  },
})

/**
 * A copy with the listed dimensions in reverse order. PyTorch's `torch.flip`.
 *
 * Shape: that of `self`.
 *
 * @throws ShapeError if a dimension is out of range.
 * @example torch.flip(torch.tensor([[1, 2], [3, 4]]), [1]).toArray() // [[2, 1], [4, 3]]
 */
export const flip: OpFunction<(self: Tensor, ...dims: readonly (number | readonly number[])[]) => Tensor> = defineOp({
  schema: 'flip(Tensor self, int[] dims) -> Tensor',
  method: true,
  decompose: (self, dims) => {
    let out = self
    for (const dim of dims) {
      const [at, n] = dimAndSize('torch.flip', self, dim)
      out = sizeEq(n, 0) ? out : indexSelect(out, at, rangeOf(scalarOf(sizeSub(n, 1)), -1, n, 'int32'))
    }
    return out === self ? clone(self) : out
  },
})

/**
 * The elements moved by `shifts` along `dims` (or in the flattened tensor); what is pushed out comes in at the other end. PyTorch's `torch.roll`.
 *
 * Shape: that of `self`.
 *
 * @throws ArgumentError if there are not as many shifts as dims.
 * @throws ShapeError if a dimension is out of range.
 * @example torch.roll(torch.tensor([1, 2, 3, 4]), 1).toArray() // [4, 1, 2, 3]
 */
export const roll: Op['roll'] = defineOp({
  schema: 'roll(Tensor self, int[] shifts, int[] dims=[]) -> Tensor',
  method: true,
  decompose: (self, shifts, dims) => {
    const [shift] = shifts
    if (shift === undefined) throw new ArgumentError('torch.roll: shifts must hold a number for each of dims, got [].')
    if (dims.length === 0 && shifts.length === 1) return reshape(rolled(flatten(self), shift, 0), self.symSizes)
    if (dims.length !== shifts.length) throw new ArgumentError(`torch.roll: ${shifts.length} shifts for ${dims.length} dims; give one per dimension.`)
    return shifts.reduce((out, by, i) => rolled(out, by, dimAndSize('torch.roll', self, dims[i] ?? 0)[0]), self)
  },
})

function rolled(x: Tensor, shift: number, dim: number): Tensor {
  const n = x.symSizes[dim] ?? 0
  if (sizeEq(n, 0)) return clone(x)
  const split = sizeMod(sizeSub(n, shift >= 0 ? sizeMod(shift, n) : sizeSub(n, sizeMod(-shift, n))), n)
  return sizeEq(split, 0) ? clone(x) : cat([slice(x, dim, split, n), slice(x, dim, 0, split)], dim)
}

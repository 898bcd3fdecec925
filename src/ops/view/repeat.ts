// Arranging copies: repeat, flip, roll.
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import { formatShape, wrapDim } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { arange } from '../creation.ts'
import { defineOp } from '../defineOp.ts'
import type { OpFunction } from '../defineOp.ts'
import { cat } from '../join.ts'
import { indexSelect } from './indexing.ts'
import { clone, flatten, reshape } from './reshape.ts'
import { slice } from './slicing.ts'
import { expand } from './windows.ts'

/** Copies side by side: `repeats` per dimension, further dimensions in front. PyTorch's `Tensor.repeat`. */
export const repeat: OpFunction<(self: Tensor, ...repeats: readonly (number | readonly number[])[]) => Tensor> = defineOp({
  schema: 'repeat(Tensor self, int[] repeats) -> Tensor',
  namespace: 'torch.Tensor',
  method: true,
  decompose: (self: Tensor, repeats: readonly number[]): Tensor => {
    const lead = repeats.length - self.ndim
    if (lead < 0)
      throw new ShapeError(
        `Tensor.repeat: ${repeats.length} repeats for a tensor of ${self.ndim} dimensions (shape ${formatShape(self.shape)}); give at least one per dimension.`,
      )
    if (repeats.some((r) => r < 0)) throw new ArgumentError(`Tensor.repeat: repeats must be at least 0, got [${repeats.join(', ')}].`)
    const sizes = repeats.map((_, i) => (i < lead ? 1 : (self.shape[i - lead] as number)))
    const apart = reshape(
      self,
      sizes.flatMap((n) => [1, n]),
    )
    const wide = expand(
      apart,
      sizes.flatMap((n, i) => [repeats[i] as number, n]),
    )
    return reshape(
      clone(wide),
      sizes.map((n, i) => n * (repeats[i] as number)),
    )
  },
})

/** The listed dimensions in reverse order (a copy). PyTorch's `torch.flip`. */
export const flip: OpFunction<(self: Tensor, dims: readonly number[] | number) => Tensor> = defineOp({
  schema: 'flip(Tensor self, int[] dims) -> Tensor',
  method: true,
  decompose: (self: Tensor, dims: readonly number[]): Tensor => {
    let out = self
    for (const dim of dims) {
      const at = wrapDim('torch.flip', dim, self.ndim)
      const n = self.shape[at] as number
      out = n === 0 ? out : indexSelect(out, at, arange(n - 1, -1, -1, { dtype: 'int32' }))
    }
    return out === self ? clone(self) : out
  },
})

/** Elements moved by `shifts` along `dims` (or in the flattened tensor), those pushed out come in at the other end. PyTorch's `torch.roll`. */
export const roll: OpFunction<(self: Tensor, shifts: number | readonly number[], dims?: number | readonly number[]) => Tensor> = defineOp({
  schema: 'roll(Tensor self, int[] shifts, int[] dims=[]) -> Tensor',
  method: true,
  decompose: (self: Tensor, shifts: readonly number[], dims: readonly number[]): Tensor => {
    if (dims.length === 0 && shifts.length === 1) return reshape(rolled(flatten(self), shifts[0] as number, 0), self.shape)
    if (dims.length !== shifts.length) throw new ArgumentError(`torch.roll: ${shifts.length} shifts for ${dims.length} dims; give one per dimension.`)
    return dims.reduce((out, dim, i) => rolled(out, shifts[i] as number, wrapDim('torch.roll', dim, self.ndim)), self)
  },
})

function rolled(x: Tensor, shift: number, dim: number): Tensor {
  const n = x.shape[dim] as number
  if (n === 0) return clone(x)
  const split = (((n - shift) % n) + n) % n
  return split === 0 ? clone(x) : cat([slice(x, dim, split, n), slice(x, dim, 0, split)], dim)
}

declare module '../../tensor/tensor.ts' {
  interface Tensor {
    repeat(...repeats: readonly (number | readonly number[])[]): Tensor
    flip(...dims: readonly (number | readonly number[])[]): Tensor
    roll(shifts: number | readonly number[], dims?: number | readonly number[]): Tensor
  }
}

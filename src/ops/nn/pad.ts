// Padding, PyTorch's F.pad.
import { withoutModes } from '../../dispatch/index.ts'
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import { valueText } from '../../protocol/index.ts'
import { formatShape, tensorFromFunction, sizeNumber } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { OpFunction } from '../define/declaration.ts'
import { defineOp } from '../define/defineOp.ts'
import { constantPadNd } from '../join/join.ts'
import { sizeAt } from '../shared/shapes.ts'
import { indexSelect } from '../view/indexing.ts'

/** What the border holds: one value, the mirror image without the edge, the edge, or the other side. */
export type PadMode = 'constant' | 'reflect' | 'replicate' | 'circular'

/** Options of `pad`. */
export interface PadOptions {
  /** Default 'constant'. */
  readonly mode?: PadMode
  /** What to pad with in mode 'constant'; default 0. */
  readonly value?: number | null
}

const NAME = 'torch.nn.functional.pad'

/** The position that a position outside 0..size-1 copies. */
const SOURCES: Readonly<Record<Exclude<PadMode, 'constant'>, (at: number, size: number) => number>> = {
  reflect: (at, size) => (at < 0 ? -at : at >= size ? 2 * (size - 1) - at : at),
  replicate: (at, size) => Math.min(Math.max(at, 0), size - 1),
  circular: (at, size) => ((at % size) + size) % size,
}
const isCopied = (mode: string): mode is keyof typeof SOURCES => Object.hasOwn(SOURCES, mode)

/** How many elements a side may get. */
const LIMITS: Readonly<Record<keyof typeof SOURCES, (size: number) => number>> = {
  reflect: (size) => size - 1,
  replicate: () => Infinity,
  circular: (size) => size,
}

/**
 * Pads with a value, or by mirroring, repeating or wrapping the elements (`mode`); `pad` lists the amounts before and after, the last dimension first. Negative
 * amounts cut. PyTorch's `F.pad`.
 *
 * Shape: that of `input`, with the amounts added.
 *
 * @throws ArgumentError unless `pad` holds a pair per dimension, for at most all dimensions, or for an unknown `mode`.
 * @throws ShapeError if a dimension is too short to be mirrored or wrapped that far.
 * @example
 * F.pad(torch.tensor([[1, 2]]), [1, 0], { value: 9 }).toArray() // [[9, 1, 2]]
 * F.pad(torch.tensor([[1, 2, 3]]), [2, 1], { mode: 'reflect' }).toArray() // [[3, 2, 1, 2, 3, 2]]
 */
export const pad: OpFunction<(input: Tensor, pad: readonly number[], options?: PadOptions) => Tensor> = defineOp({
  schema: "pad(Tensor input, int[] pad, str mode='constant', float? value=None) -> Tensor",
  namespace: 'torch.nn.functional',
  recordAs: 'keywords',
  decompose: (input, amounts, mode, value) => {
    if (mode === 'constant') return constantPadNd(input, amounts, value ?? 0)
    if (!isCopied(mode)) throw new ArgumentError(`${NAME}: mode must be 'constant', 'reflect', 'replicate' or 'circular', got ${valueText(mode)}.`)
    if (amounts.length % 2 !== 0 || amounts.length / 2 > input.ndim)
      throw new ArgumentError(`${NAME}: pad must hold pairs for at most ${input.ndim} dimensions, got [${amounts.join(', ')}].`)
    // What is cut off is not wrapped around either.
    let out =
      mode === 'circular' && amounts.some((n) => n < 0)
        ? constantPadNd(
            input,
            amounts.map((n) => Math.min(n, 0)),
            0,
          )
        : input
    for (let k = 0; k < amounts.length; k += 2) {
      const [before = 0, after = 0] = mode === 'circular' ? amounts.slice(k, k + 2).map((n) => Math.max(n, 0)) : amounts.slice(k, k + 2)
      if (before === 0 && after === 0) continue
      const at = input.ndim - 1 - k / 2
      // Which element stands where is a table, for this size.
      const size = sizeNumber(sizeAt(out.symSizes, at))
      if (size === 0 || before + size + after < 1 || Math.max(before, after) > LIMITS[mode](size))
        throw new ShapeError(
          `${NAME}: mode '${mode}' cannot add ${before} and ${after} elements to dimension ${at} of size ${size} (shape ${formatShape(input.symSizes)}).`,
        )
      out = indexSelect(
        out,
        at,
        withoutModes(() => tensorFromFunction([before + size + after], 'int64', (i) => SOURCES[mode](i - before, size))),
      )
    }
    return out
  },
})

// Memory formats: the order in which the elements of images and volumes lie.
import { ArgumentError, ShapeError } from '../../errors/index.ts'
import { valueText } from '../../protocol/index.ts'
import { formatShape } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'

/** PyTorch's `torch.memory_format`: as the tensor is; row after row; or with the channels, dimension 1, last. */
export type MemoryFormat = 'preserve_format' | 'contiguous_format' | 'channels_last' | 'channels_last_3d'

/** The option of operators that make copies. */
export interface FormatOptions {
  readonly memoryFormat?: MemoryFormat | null
}

/** How many dimensions a format with the channels last is for. */
const RANKS: Readonly<Record<string, number>> = { channels_last: 4, channels_last_3d: 5 }

/** The tensor with its elements in that order: itself if they lie so, or if no format is asked for. `op` is what errors name. */
export function inFormat(op: string, self: Tensor, format: string | null): Tensor {
  if (format === null || format === 'preserve_format') return self
  if (format === 'contiguous_format') return self.contiguous()
  const rank = Object.hasOwn(RANKS, format) ? RANKS[format] : undefined
  if (rank === undefined)
    throw new ArgumentError(
      `${op}: memory_format must be 'preserve_format', 'contiguous_format', 'channels_last' or 'channels_last_3d', got ${valueText(format)}.`,
    )
  if (self.ndim !== rank) throw new ShapeError(`${op}: memory_format '${format}' is for ${rank} dimensions, got shape ${formatShape(self.symSizes)}.`)
  const dims = self.symSizes.map((_, d) => d)
  const last = [0, ...dims.slice(2), 1]
  return self
    .permute(last)
    .contiguous()
    .permute(dims.map((d) => last.indexOf(d)))
}

// Attention in one kernel, for calls that no one differentiates or records: the scores of a few rows at a time are all that is ever in memory.
import { ATTENTION_BLOCK, ATTENTION_PANEL, attend, compileKernel, isStrict, packKeys, packValues } from '../../kernels/index.ts'
import type { AttentionMask } from '../../kernels/index.ts'
import { Tensor, numelOf, sameShape } from '../../tensor/index.ts'
import { kernelCache, scratchMemory } from '../eager/launch.ts'
import { sizeAt } from '../shapes.ts'
import { contiguous } from '../view/reshape.ts'

const keysKernel = kernelCache(() => compileKernel(packKeys()))
const valuesKernel = kernelCache(() => compileKernel(packValues()))
const attendKernel = kernelCache((mask: AttentionMask) => compileKernel(attend(mask)))

/** Fewer rows do not pay for packing the keys. */
const LEAST_ROWS = 16

const FLOAT_BYTES = 4

const addressOf = (tensor: Tensor): number => {
  const { ptr } = tensor.realize().block
  return ptr === 0 ? 0 : ptr + tensor.offset * FLOAT_BYTES
}

interface Attention {
  readonly query: Tensor
  /** With as many heads as `query`, or fewer: each for as many heads of `query` as there are. */
  readonly key: Tensor
  readonly value: Tensor
  /** Added to the scores. */
  readonly mask: Tensor | null
  readonly isCausal: boolean
  readonly scale: number
}

/** The result, or null where this kernel does not compute it: other dtypes, few rows, leading dimensions that broadcast, memory outside the heap. */
export function attentionByBlocks({ query, key, value, mask, isCausal, scale }: Attention): Tensor | null {
  const [rows, count, depth, width] = [sizeAt(query.sizes, -2), sizeAt(key.sizes, -2), sizeAt(query.sizes, -1), sizeAt(value.sizes, -1)]
  const isFloat32 = [query, key, value, ...(mask === null ? [] : [mask])].every(({ dtype }) => dtype === 'float32')
  if (!isFloat32 || isStrict() || rows < LEAST_ROWS || count === 0 || depth === 0 || width === 0 || width % ATTENTION_PANEL !== 0) return null
  const [lead, own] = [query.sizes.slice(0, -2), key.sizes.slice(0, -2)]
  const [heads, owners] = [numelOf(lead), numelOf(own)]
  const groups = heads / owners
  if (heads === 0 || !sameShape(own, value.sizes.slice(0, -2)) || own.length !== lead.length || !Number.isInteger(groups)) return null
  if (!lead.every((size, d) => size === own[d] || d === lead.length - 1)) return null
  const maskLead = mask === null ? 1 : numelOf(mask.sizes.slice(0, -2))
  if (
    mask !== null &&
    (sizeAt(mask.sizes, -2) !== rows || sizeAt(mask.sizes, -1) !== count || (maskLead !== 1 && !sameShape(mask.sizes.slice(0, -2), lead)))
  )
    return null

  const out = Tensor.empty([...lead, rows, width], 'float32')
  const [q, k, v, m] = [contiguous(query), contiguous(key), contiguous(value), mask === null ? null : contiguous(mask)]
  const [outAt, qAt, kAt, vAt, mAt] = [addressOf(out), addressOf(q), addressOf(k), addressOf(v), m === null ? 0 : addressOf(m)]
  if ([outAt, qAt, kAt, vAt].includes(0) || (m !== null && mAt === 0)) return null

  const padded = Math.ceil(count / ATTENTION_PANEL) * ATTENTION_PANEL
  const sizes = [padded * depth, count * width, ATTENTION_BLOCK * padded, ATTENTION_BLOCK].map(
    (elements) => Math.ceil(elements / 16) * 16 * FLOAT_BYTES,
  )
  const start = Math.ceil(scratchMemory(sizes.reduce((sum, bytes) => sum + bytes, 64)) / 64) * 64
  const [panels = 0, valuePanels = 0, scores = 0, inverse = 0] = sizes.map((_, i) => start + sizes.slice(0, i).reduce((sum, bytes) => sum + bytes, 0))
  const kind: AttentionMask = m !== null ? 'added' : isCausal ? 'causal' : 'none'
  const [pack, packV, run] = [keysKernel().run, valuesKernel().run, attendKernel(kind).run]
  for (let owner = 0; owner < owners; owner++) {
    pack(panels, kAt + owner * count * depth * FLOAT_BYTES, count, depth)
    packV(valuePanels, vAt + owner * count * width * FLOAT_BYTES, count, width)
    for (let head = owner * groups; head < (owner + 1) * groups; head++) {
      for (let row = 0; row < rows; row += ATTENTION_BLOCK) {
        const height = Math.min(ATTENTION_BLOCK, rows - row)
        const seen = kind === 'causal' ? Math.min(count, row + height) : count
        const place = (head * rows + row) * FLOAT_BYTES
        const maskAt = m === null ? [] : [mAt + ((maskLead === 1 ? 0 : head * rows) + row) * count * FLOAT_BYTES]
        run(
          ...[outAt + place * width, qAt + place * depth, panels, valuePanels, scores, inverse, ...maskAt],
          ...[height, seen, count, depth, width, ...(kind === 'causal' ? [row] : []), scale],
        )
      }
    }
  }
  return out
}

// The kernels of matrix products: the schedule for few rows or columns where it takes the product, otherwise the one for all.
import { present } from '../../errors/index.ts'
import type { CompiledKernel } from './boundedCache.ts'
import { compileKernel } from './compile.ts'
import { currentComputing, isStrict } from '../engine/computing.ts'
import { widestEngine } from '../engine/engine.ts'
import type { GemmSpec } from '../schedules/gemmSpec.ts'
import { compileScheduled } from './scheduled.ts'
import type { PackedKernel, PackedSource, SpareKernel } from './scheduled.ts'
import { gemm, gemmScratchBytes, packedElements, packedGemm } from '../schedules/gemm.ts'
import { skinnyAcross, skinnyAlong, skinnyScratchBytes } from '../schedules/skinny.ts'
import { unpackedProduct } from '../schedules/unpacked.ts'

/** A compiled product. */
export interface ProductKernel {
  readonly compiled: CompiledKernel
  /** The most bytes of scratch memory that a product of these sizes needs. `k` is that of one batch where batches are summed over. */
  readonly scratchBytes: (m: number, n: number, k: number) => number
}

/** The same where there is no room for scratch memory: it needs none. */
export const compileUnpacked = (spec: GemmSpec): CompiledKernel => compileKernel(unpackedProduct(spec))

/** Compiles a product. The same problem is compiled only once. `strict` code has no skinny schedule, whose sums are not in the order of the depth. */
export function compileProduct(spec: GemmSpec): ProductKernel {
  if (!isStrict()) {
    if (skinnyAlong.match(spec)) return { compiled: compileScheduled(skinnyAlong, spec), scratchBytes: skinnyScratchBytes }
    if (skinnyAcross.match(spec)) return { compiled: compileScheduled(skinnyAcross, spec), scratchBytes: skinnyScratchBytes }
  }
  return { compiled: compileScheduled(gemm, spec), scratchBytes: gemmScratchBytes }
}

/** A product whose B was packed before, and the kernel that packs: it takes the address of B, that of the packed elements, and the sizes of the product. */
export interface PackedProduct {
  readonly pack: CompiledKernel
  readonly product: CompiledKernel
}

/** Compiles them. B is the same in the whole batch. */
export function compilePacked(spec: GemmSpec): PackedProduct {
  const { pack, kernel } = packedSource(spec)
  return { pack: compileKernel(pack), product: compileKernel(kernel) }
}

function packedSource(spec: GemmSpec): PackedSource {
  const shared = { ...spec, b: { ...spec.b, batchStrides: spec.b.batchStrides.map(() => 0) } }
  const { pack, product } = packedGemm(shared, present(gemm.tiles(widestEngine())[0], 'a tile'))
  return { pack, kernel: product, scratchAt: null }
}

/** The product where B was packed before; null where that does not pay. */
export function packedProduct(spec: GemmSpec): PackedKernel | null {
  const elements = !isStrict() && (skinnyAlong.match(spec) || skinnyAcross.match(spec)) ? null : packedElements(spec)
  if (elements === null) return null
  return { operand: spec.b.buffer, bytes: 4 * elements, source: () => packedSource(spec), computing: currentComputing() }
}

/** The product where there is no room for scratch memory. */
export const spareProduct = (spec: GemmSpec): SpareKernel => ({
  kernel: unpackedProduct(spec),
  wide: null,
  scratchBytes: 0,
  computing: currentComputing(),
})

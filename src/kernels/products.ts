// The kernels of matrix products: a schedule where one takes the product, otherwise the register-tiled template.
import type { CompiledKernel } from './boundedCache.ts'
import { compileKernel } from './compile.ts'
import { currentEngine, isStrict } from './engine.ts'
import { InternalError } from '../errors/index.ts'
import type { GemmSpec } from './gemmSpec.ts'
import type { Kernel } from './loopIr.ts'
import type { Schedule } from './schedules/schedule.ts'
import { skinnyAcross, skinnyAlong, skinnyScratchBytes } from './schedules/skinny.ts'
import { compileGemm, gemmScratchBytes } from './templates/gemm.ts'

/** A compiled product. */
export interface ProductKernel {
  readonly compiled: CompiledKernel
  /** Bytes of scratch memory that a product of these sizes needs. `k` is that of one batch where batches are summed over. */
  readonly scratchBytes: (m: number, n: number, k: number) => number
}

/** The kernel that a schedule makes of a problem, with its best tile; null if it does not take the problem. */
function scheduled<Problem, Spec, Tile>({ name, match, spec, tiles, build }: Schedule<Problem, Spec, Tile>, problem: Problem): Kernel | null {
  if (!match(problem)) return null
  const [tile] = tiles(currentEngine())
  if (tile === undefined) throw new InternalError(`the schedule ${name} has no tile`)
  return build(spec(problem), tile)
}

/** Compiles a product. The same problem is compiled only once. `strict` code always takes the template, which adds in the order of the depth. */
export function compileProduct(spec: GemmSpec): ProductKernel {
  const kernel = isStrict() ? null : (scheduled(skinnyAlong, spec) ?? scheduled(skinnyAcross, spec))
  return kernel === null
    ? { compiled: compileGemm(spec), scratchBytes: gemmScratchBytes }
    : { compiled: compileKernel(kernel), scratchBytes: skinnyScratchBytes }
}

// The speeds that this machine reaches in this engine: of the matrix product, and of a copy. Kernels are compared with them.
import { noGrad } from '../../autograd/index.ts'
import { withoutModes } from '../../dispatch/index.ts'
import { clone, mm, ones } from '../../ops/index.ts'
import type { Peak } from './data.ts'

const PRODUCT = 256
/** Copies in a core's cache and beyond it, in elements. */
const COPIES = [2 ** 14, 2 ** 18, 2 ** 21]
const TRIES = 8

/** The least milliseconds that `run` takes. */
function fastest(run: () => unknown): number {
  let least = Infinity
  for (let i = 0; i < TRIES; i++) {
    const start = performance.now()
    run()
    least = Math.min(least, performance.now() - start)
  }
  return Math.max(least, 1e-3)
}

/** Measures for some ten milliseconds. */
export function measurePeak(): Peak {
  return withoutModes(() =>
    noGrad(() => {
      const matrix = ones([PRODUCT, PRODUCT])
      const gflops = (2 * PRODUCT ** 3) / (1e6 * fastest(() => mm(matrix, matrix)))
      const speeds = COPIES.map((count) => {
        const block = ones([count])
        // Each element is read and written.
        return (8 * count) / (1e6 * fastest(() => clone(block)))
      })
      return { gflops, gigabytesPerSecond: Math.max(...speeds) }
    }),
  )
}

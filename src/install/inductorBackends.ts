// Backends that are inductor on one engine, by names that compareBackends, scripts and the minifier take: what one of them computes and the others do not is the fault of that engine.
import type { Backend, Entry } from '../dynamo/index.ts'
import { UnsupportedError } from '../errors/index.ts'
import { compileFx } from '../inductor/index.ts'
import { hasRelaxedSimd, requireMachineCode, withComputing, withThreads } from '../kernels/index.ts'

/** Inductor, with kernels that are compiled and run within `within`. */
const inductorWithin =
  (within: <T>(fn: () => T) => T): Backend =>
  (gm, inputs) => {
    const code = within(() => compileFx(gm, inputs))
    return Object.assign((...values: readonly unknown[]) => within(() => code(...values)), {
      kernels: code.kernels,
      writtenInPlace: code.writtenInPlace,
    })
  }

const entry = (within: <T>(fn: () => T) => T, module?: string): Entry => ({
  backend: inductorWithin(within),
  options: { staticShapes: true, tags: ['debug'], ...(module !== undefined && { module }) },
})

/** The engines by the name of their backend: WebAssembly as every browser has it, with relaxed SIMD, on two threads, and machine code. */
export const inductorBackends: Readonly<Record<`inductor:${string}`, Entry>> = {
  'inductor:wasm': entry((fn) => withComputing({ engine: 'wasm', emitter: 'wasm' }, fn)),
  'inductor:relaxed': entry((fn) => {
    if (!hasRelaxedSimd()) throw new UnsupportedError('inductor:relaxed: this host has no relaxed SIMD.')
    return withComputing({ engine: 'wasm-relaxed', emitter: 'wasm' }, fn)
  }),
  'inductor:threads2': entry((fn) => withThreads(2, 'inductor:threads2', fn)),
  'inductor:c': entry((fn) => {
    requireMachineCode('inductor:c')
    return withComputing({ emitter: 'c' }, fn)
  }, 'tensorfx/native/register'),
}

// tensorfx/native/register: `node --import tensorfx/native/register program.js` runs a program with machine code, where it can be had.
import { init } from '../../native/engine.ts'

try {
  await init()
} catch (error) {
  console.warn(`tensorfx: WebAssembly computes, with the same results. ${error instanceof Error ? error.message : String(error)}`)
}

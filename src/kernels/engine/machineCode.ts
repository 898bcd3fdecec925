// Whether kernels are machine code beside WebAssembly. What makes it is tensorfx/native, which this room does not load: `native.init` says that it is there.
import { ArgumentError, UnsupportedError } from '../../errors/index.ts'
import { environmentVariable, valueText } from '../../protocol/index.ts'
import { currentComputing } from './computing.ts'
import type { Emitter } from './computing.ts'

const VARIABLE = 'TENSORFX_EMITTER'

/** Machine code for a processor with vectors of 16, 8 or 4 floats. */
export type MachineEngine = 'native16' | 'native8' | 'native4'

let machine: MachineEngine | null = null
let isEnabled = true

/** What machine code is compiled for beside WebAssembly; null where none is. */
export const machineEngine = (): MachineEngine | null => machine

/** Says that kernels are machine code too. For good: memory that was packed for its tiles stays so. */
export function setMachineEngine(engine: MachineEngine): void {
  machine = engine
}

/** Whether the program wants WebAssembly to compute for now. */
export const isMachineCodeOff = (): boolean => !isEnabled

/** Whether machine code computes, where there is some; otherwise WebAssembly does. */
export const isMachineCodeEnabled = (): boolean => machine !== null && isEnabled

/** Throws UnsupportedError, which begins with `what`, unless there is a compiler for machine code. */
export function requireMachineCode(what: string): void {
  if (machine === null)
    throw new UnsupportedError(
      `${what}: machine code is compiled by tensorfx/native, in Node, which is not initialised: import * as native from 'tensorfx/native', and await native.init() first. It says what is missing, if anything is.`,
    )
}

/** Lets machine code compute, or WebAssembly alone. Throws ArgumentError unless `value` is a boolean, and UnsupportedError for true where there is no compiler. */
export function enableMachineCode(value: boolean): void {
  if (typeof value !== 'boolean') throw new ArgumentError(`backends.native.enabled must be true or false, got ${valueText(value)}.`)
  if (value) requireMachineCode('backends.native.enabled is true')
  isEnabled = value
}

/** The emitter in the environment: c or wasm; null for none. Throws ArgumentError for another text. */
export function emitterOf(text: string): Emitter | null {
  if (text === 'c' || text === 'wasm') return text
  if (text === '') return null
  throw new ArgumentError(`${VARIABLE} must be c or wasm, got '${text}'.`)
}

/** What the environment says; undefined before that was read. */
let ofProcess: Emitter | null | undefined
let isTold = false

/** What kernels are translated to that are compiled now; null: what is faster. Without a compiler it is WebAssembly, which is said once where the environment asks for C. */
export function currentEmitter(): Emitter | null {
  if (ofProcess === undefined) ofProcess = emitterOf(environmentVariable(VARIABLE) ?? '')
  const wanted = currentComputing().emitter ?? ofProcess
  if (isMachineCodeEnabled()) return wanted
  if (wanted === 'c' && machine === null && !isTold) {
    isTold = true
    console.warn(
      `tensorfx: ${VARIABLE} is c, but WebAssembly computes, since tensorfx/native is not initialised: start the program with node --import tensorfx/native/register, or await native.init() at its beginning. The results are the same.`,
    )
  }
  return 'wasm'
}

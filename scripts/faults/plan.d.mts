import type { FaultApi } from './api.mjs'
import type { Fault } from './faulty.mjs'
import type { Program } from './models.mjs'

/** A fault in a program, and the places and levels that can see it. */
export interface DrawnFault {
  readonly seed: number
  readonly program: Program
  readonly fault: Fault
  readonly seen: readonly (readonly ['dynamo' | 'aot', number])[]
}

export const MEMORY_KINDS: readonly string[]
export const NUMBERS: readonly string[]
export const ERRORS: readonly string[]
export const DEATHS: readonly string[]
export function drawFault(api: FaultApi, seed: number): DrawnFault | null

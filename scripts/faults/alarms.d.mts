import type { FuzzApi } from '../fuzz/fuzz.mjs'
import type { FaultApi } from './api.mjs'
import type { Program } from './models.mjs'

/** A backend that is right (its name, or its variants), and a program for it. */
export interface DrawnRight {
  readonly seed: number
  readonly backend: string | readonly string[]
  readonly program: Program
  readonly after: 'dynamo' | 'aot'
}

export function drawRight(seed: number): DrawnRight
export function alarmOf(api: FaultApi, drawn: DrawnRight): string | null
export function fuzzedAlarm(api: FaultApi, fuzz: FuzzApi, seed: number): string | null

import type { FuzzApi } from './fuzz.mjs'
import type { Tensor } from '../../src/index.ts'

/** A program that writes to views while gradients are recorded. */
export interface ViewWrites {
  readonly bases: readonly object[]
  readonly steps: readonly object[]
}

export function drawViewWrites(api: FuzzApi, seed: number): ViewWrites
/** Both run the program, with memory and without, and return one number; `w` are three weights. */
export function withMemory(api: FuzzApi, program: ViewWrites, w: Tensor): Tensor
export function withoutMemory(api: FuzzApi, program: ViewWrites, w: Tensor): Tensor
export function textOfViewWrites(program: ViewWrites): string

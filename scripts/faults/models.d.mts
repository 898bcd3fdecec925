import type { Backend } from 'tensorfx/compile'
import type { FaultApi } from './api.mjs'

/** A program: a model, how it is used, and its numbers. */
export interface Program {
  readonly model: string
  readonly mode: string
  readonly dtype: string
  readonly seed: number
  readonly nan?: boolean
  readonly calls?: number
}

export function runProgram(api: FaultApi, program: Program, backend: string | Backend): void

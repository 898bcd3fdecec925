import type { Backend } from 'tensorfx/compile'
import type { FaultApi } from './api.mjs'

/** What is wrong with a backend. */
export interface Fault {
  /** The operator by its schema, and the name that code calls it by. */
  readonly operator: string
  readonly name: string
  readonly kind: string
  readonly dtype?: string
  readonly producer?: string
  readonly phase?: 'compile' | 'run'
  readonly from?: number
  readonly rate?: number
}

export function faultyBackend(api: FaultApi, fault: Fault): Backend

import type { Backend } from 'tensorfx/compile'
import type { FaultApi } from './api.mjs'

/** How the backends compute otherwise. */
export const VARIANT_NAMES: readonly string[]
/** The backends of the package that are right. */
export const REGISTERED: readonly string[]
export function rightBackend(api: FaultApi, names: readonly string[]): Backend

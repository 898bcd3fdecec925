// Modules that an earlier process has emitted.
import { kept } from '../../protocol/index.ts'
import { isStrict } from '../engine/computing.ts'
import { currentEngine } from '../engine/engine.ts'

const isModule = (found: unknown): found is Uint8Array<ArrayBuffer> => found instanceof Uint8Array

/** What `emit` returns for a kernel of that text, which is emitted as `what`: by this process, or an earlier one. */
export const keptModule = (text: () => string, what: string, emit: () => Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> =>
  kept('module', () => `${what} ${isStrict() ? 'strict' : 'default'} ${currentEngine()}\n${text()}`, isModule, emit)

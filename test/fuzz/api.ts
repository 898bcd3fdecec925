// The names that the fuzzer's programs use, from the sources.
import { loadApi } from '../../scripts/fuzz/api.mjs'
import type { FuzzApi } from '../../scripts/fuzz/fuzz.mjs'

const modules: Readonly<Record<string, () => Promise<unknown>>> = {
  index: () => import('../../src/index.ts'),
  'entries/aot': () => import('../../src/entries/aot.ts'),
  'entries/compile': () => import('../../src/entries/compile.ts'),
  'entries/func': () => import('../../src/entries/func.ts'),
  'entries/debug': () => import('../../src/entries/debug.ts'),
  'entries/dispatch': () => import('../../src/entries/dispatch.ts'),
  'ops/index': () => import('../../src/ops/index.ts'),
  'dispatch/index': () => import('../../src/dispatch/index.ts'),
}

export const api: FuzzApi = await loadApi((name) => modules[name]?.() ?? Promise.reject(new Error(name)))

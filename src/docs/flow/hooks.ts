// Hooks of Node's loader: instruments the modules of a project. They run in a thread of their own.
import { fileURLToPath } from 'node:url'
import { instrument } from './instrument.ts'
import { sourceOf } from './sourceOf.ts'

const root = new URL(import.meta.url).searchParams.get('root') ?? ''

interface Loaded {
  readonly format: string
  readonly source?: string | ArrayBuffer | Uint8Array | null
}

/** Called by Node for each module. CommonJS is left to the thread that runs it. */
export async function load(url: string, context: object, next: (url: string, context: object) => Promise<Loaded>): Promise<Loaded> {
  const loaded = await next(url, context)
  if (loaded.format !== 'module' || !url.startsWith('file:') || loaded.source === null || loaded.source === undefined) return loaded
  const code = typeof loaded.source === 'string' ? loaded.source : new TextDecoder().decode(loaded.source)
  const source = sourceOf(root, fileURLToPath(url), code)
  const noted = source === null ? null : instrument(code, source, 'module')
  return noted === null ? loaded : { ...loaded, source: noted }
}

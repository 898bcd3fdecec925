// The load hook of Node that `node --import tensorfx/register` installs: it rewrites the modules of a program, but neither packages nor tensorfx itself.
import { rewriteSource } from './rewriteSource.ts'

interface Loaded {
  readonly format: string | null | undefined
  readonly source?: unknown
}

type Load<C> = (url: string, context: C) => Promise<Loaded>

const OWN = new URL('..', import.meta.url).href
const RUNTIME_URL = new URL('../entries/rewriter/runtime.js', import.meta.url).href

const isText = (source: unknown): source is string | Uint8Array => typeof source === 'string' || source instanceof Uint8Array

/** Node's load hook. */
export async function load<C>(url: string, context: C, nextLoad: Load<C>): Promise<Loaded> {
  const loaded = await nextLoad(url, context)
  const { format, source } = loaded
  if (format !== 'module' || !isText(source) || !url.startsWith('file:') || url.includes('/node_modules/') || url.startsWith(OWN)) return loaded
  const code = typeof source === 'string' ? source : new TextDecoder().decode(source)
  const rewritten = rewriteSource(code, { runtime: RUNTIME_URL, file: url })
  return rewritten === null ? loaded : { ...loaded, source: `${rewritten.code}\n//# sourceMappingURL=${rewritten.map.toUrl()}` }
}

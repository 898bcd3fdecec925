// The files of a checkpoint: in a folder, below a URL, or given as Blobs. Those of a URL can be kept in a folder, or in a page's CacheStorage.
import { ArgumentError, UnsupportedError } from '../errors/index.ts'
import { DRAFT } from '../interop/atomicFile.ts'
import { bytesOf } from '../interop/fileSource.ts'
import type { FileSource } from '../interop/fileSource.ts'
import { valueText } from '../protocol/index.ts'

/** Where a checkpoint is: the path of a folder, the URL below which its files are, a Blob that {@link pretrainedBlob} made, or its files, such as those dropped onto a page. */
export type PretrainedSource = string | URL | Blob | readonly File[]

/** Gets how much of a file has arrived. */
export type OnBytes = (loaded: number, total: number | null) => void

/** The files of a checkpoint by name. */
export interface PretrainedFiles {
  /** A text for messages. */
  readonly name: string
  /** A small file as text; null if there is none of that name. */
  text(file: string): Promise<string | null>
  /** A file of weights. A file of that name that does not exist may only be noticed when it is read. */
  weights(file: string, onBytes: OnBytes): Promise<FileSource>
}

const WHERE = 'loadPretrained'

/** The files of a source; null for a lone Blob, which has all in it. */
export function filesOf(source: PretrainedSource, cache: string | null): PretrainedFiles | null {
  if (typeof source === 'string' && /^https?:/.test(source)) return remote(new URL(source), cache)
  if (source instanceof URL && source.protocol !== 'file:') return remote(source, cache)
  if (typeof source === 'string' || source instanceof URL) return folder(source)
  if (Array.isArray(source)) return given(source)
  if (source instanceof Blob) return null
  throw new ArgumentError(`${WHERE}: argument 'source' must be the path of a folder, a URL, a Blob or an array of Files, got ${valueText(source)}.`)
}

function given(files: readonly unknown[]): PretrainedFiles {
  const named = new Map<string, File>()
  for (const file of files) {
    if (!(file instanceof File)) throw new ArgumentError(`${WHERE}: argument 'source' must be an array of Files, got ${valueText(file)} in it.`)
    named.set(file.name, file)
  }
  return {
    name: 'the given files',
    text: async (name) => (await named.get(name)?.text()) ?? null,
    weights(name) {
      const file = named.get(name)
      if (file === undefined) throw new ArgumentError(`${WHERE}: there is no file '${name}' among ${[...named.keys()].join(', ') || 'no files'}.`)
      return Promise.resolve(file)
    },
  }
}

function folder(source: string | URL): PretrainedFiles {
  const [fs, path, url] = [
    globalThis.process?.getBuiltinModule?.('node:fs'),
    globalThis.process?.getBuiltinModule?.('node:path'),
    globalThis.process?.getBuiltinModule?.('node:url'),
  ]
  if (fs === undefined || path === undefined || url === undefined)
    throw new UnsupportedError(`${WHERE}: there is no file system here to read ${valueText(source)} from; give a URL, a Blob or Files.`)
  const base = source instanceof URL ? url.fileURLToPath(source) : source
  if (!fs.existsSync(base) || !fs.statSync(base).isDirectory())
    throw new ArgumentError(`${WHERE}: ${valueText(base)} is not a folder; give the folder in which config.json is.`)
  return {
    name: base,
    text: (name) => Promise.resolve(fs.existsSync(path.join(base, name)) ? fs.readFileSync(path.join(base, name), 'utf8') : null),
    weights: (name) => Promise.resolve(path.join(base, name)),
  }
}

function remote(base: URL, cache: string | null): PretrainedFiles {
  const below = base.pathname.endsWith('/') ? base : new URL(`${base.pathname}/${base.search}`, base)
  const at = (name: string): URL => {
    const url = new URL(name, below)
    url.search = base.search
    return url
  }
  return {
    name: base.href,
    async text(name) {
      const kept = cache === null ? null : await cached(at(name), cache, () => {})
      if (cache !== null) return kept === null ? null : new TextDecoder().decode(await bytesOf(WHERE, kept))
      return (await fetched(at(name)))?.text() ?? null
    },
    async weights(name, onBytes) {
      if (cache === null) return at(name)
      const kept = await cached(at(name), cache, onBytes)
      if (kept === null) throw new ArgumentError(`${WHERE}: ${at(name).href} could not be read: the server answered 404.`)
      return kept
    },
  }
}

/** The answer of a server; null if it has no such file. */
async function fetched(url: URL): Promise<Response | null> {
  const response = await fetch(url)
  if (response.ok) return response
  await response.body?.cancel()
  if (response.status === 404) return null
  throw new ArgumentError(`${WHERE}: ${url.href} could not be read: the server answered ${response.status} ${response.statusText}.`)
}

/** A file of a server, from the cache if it is there; null if the server has no such file. */
async function cached(url: URL, cache: string, onBytes: OnBytes): Promise<FileSource | null> {
  const [fs, path] = [globalThis.process?.getBuiltinModule?.('node:fs'), globalThis.process?.getBuiltinModule?.('node:path')]
  if (fs === undefined || path === undefined) return fromCacheStorage(url, cache)
  // A name that no two files share, and that leads out of no folder.
  const file = path.join(cache, encodeURIComponent(url.host + url.pathname + url.search).replaceAll('*', '%2A'))
  if (fs.existsSync(file)) return file
  const response = await fetched(url)
  if (response === null) return null
  fs.mkdirSync(cache, { recursive: true })
  // Under another name until it is whole; two processes may load it at once.
  const draftName = `${file}.${globalThis.process.pid}${DRAFT}`
  const draft = fs.openSync(draftName, 'w')
  try {
    const length = Number(response.headers.get('content-length') ?? NaN)
    let loaded = 0
    for await (const part of response.body ?? []) {
      for (let at = 0; at < part.length;) at += fs.writeSync(draft, part, at)
      loaded += part.length
      onBytes(loaded, Number.isNaN(length) ? null : length)
    }
    fs.fsyncSync(draft)
  } catch (error) {
    fs.rmSync(draftName, { force: true })
    throw error
  } finally {
    fs.closeSync(draft)
  }
  fs.renameSync(draftName, file)
  return file
}

/** The same in a page, in its CacheStorage. */
async function fromCacheStorage(url: URL, cache: string): Promise<FileSource | null> {
  const storage = await caches.open(cache)
  const known = await storage.match(url)
  if (known !== undefined) return known.blob()
  const response = await fetched(url)
  if (response === null) return null
  await storage.put(url, response.clone())
  return response.blob()
}

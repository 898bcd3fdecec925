// The bytes of a file: given as bytes, as a Blob, by its path, or by its URL.
import { ArgumentError, UnsupportedError } from '../errors/index.ts'
import { isObject, valueText } from '../protocol/index.ts'

/** A file: its path (where there is a file system), its URL, a Blob such as a File of a browser, or its bytes. */
export type FileSource = string | URL | Blob | Uint8Array | ArrayBuffer

const isBlob = (source: object): source is Blob => 'arrayBuffer' in source && 'size' in source

/** Reads a file whole. `where` is the function that the errors name. */
export async function bytesOf(where: string, source: FileSource): Promise<Uint8Array> {
  if (source instanceof Uint8Array) return source
  if (source instanceof ArrayBuffer) return new Uint8Array(source)
  if (source instanceof URL && source.protocol !== 'file:') return fetched(where, source)
  if (source instanceof URL || typeof source === 'string') {
    const fs = globalThis.process?.getBuiltinModule?.('node:fs/promises')
    if (fs === undefined)
      throw new UnsupportedError(`${where}: there is no file system here to read ${valueText(source)} from; give a URL, a Blob or the bytes.`)
    return fs.readFile(source).catch((error: unknown) => {
      throw new ArgumentError(`${where}: ${valueText(source)} could not be read: ${messageOf(error)}`, { cause: error })
    })
  }
  // For callers in JavaScript.
  if (isObject(source) && isBlob(source)) return new Uint8Array(await source.arrayBuffer())
  throw new ArgumentError(`${where}: the file must be a path, a URL, a Blob, a Uint8Array or an ArrayBuffer, got ${valueText(source)}.`)
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

async function fetched(where: string, url: URL): Promise<Uint8Array> {
  const response = await fetch(url)
  if (!response.ok) throw new ArgumentError(`${where}: ${url.href} could not be read: the server answered ${response.status} ${response.statusText}.`)
  return new Uint8Array(await response.arrayBuffer())
}

// The bytes of a file: given as bytes, as a Blob, by its path, or by its URL.
import { ArgumentError, UnsupportedError, messageOf } from '../errors/index.ts'
import { isObject, valueText } from '../protocol/index.ts'
import { joinBytes } from '../protocol/joinBytes.ts'
import type { PartReader } from '../formats/safetensors.ts'

/** A file: its path (where there is a file system), its URL, a Blob such as a File of a browser, or its bytes. */
export type FileSource = string | URL | Blob | Uint8Array | ArrayBuffer

const isBlob = (source: object): source is Blob => 'arrayBuffer' in source && 'size' in source

/** Reads a file whole. `where` is the function that the errors name. */
export async function bytesOf(where: string, source: FileSource): Promise<Uint8Array> {
  if (source instanceof Uint8Array) return source
  if (source instanceof ArrayBuffer) return new Uint8Array(source)
  if (source instanceof URL && source.protocol !== 'file:') return new Uint8Array(await (await fetched(where, source)).arrayBuffer())
  if (source instanceof URL || typeof source === 'string') {
    const fs = globalThis.process?.getBuiltinModule?.('node:fs/promises')
    if (fs === undefined)
      throw new UnsupportedError(`${where}: there is no file system here to read ${valueText(source)} from; give a URL, a Blob or the bytes.`)
    return fs.readFile(source).catch(unreadable(where, source))
  }
  // For callers in JavaScript.
  if (isObject(source) && isBlob(source)) return new Uint8Array(await source.arrayBuffer())
  throw new ArgumentError(`${where}: the file must be a path, a URL, a Blob, a Uint8Array or an ArrayBuffer, got ${valueText(source)}.`)
}

/** What a path that cannot be read throws. */
const unreadable =
  (where: string, source: string | URL) =>
  (error: unknown): never => {
    throw new ArgumentError(`${where}: ${valueText(source)} could not be read: ${messageOf(error)}`, {
      cause: error,
    })
  }

/** Reads a file in parts, and closes it at the end, whatever happens. A path and a Blob are never held whole. */
export async function withParts<T>(where: string, source: FileSource, read: (file: PartReader) => Promise<T>): Promise<T> {
  const fs = globalThis.process?.getBuiltinModule?.('node:fs/promises')
  if ((typeof source === 'string' || (source instanceof URL && source.protocol === 'file:')) && fs !== undefined) {
    const handle = await fs.open(source).catch(unreadable(where, source))
    try {
      const { size } = await handle.stat()
      let at = 0
      const next = async (count: number): Promise<Uint8Array> => {
        checkLeft(where, at, count, size)
        const bytes = new Uint8Array(count)
        for (let done = 0; done < count;) {
          const { bytesRead } = await handle.read(bytes, done, count - done, at + done)
          if (bytesRead === 0) throw cutOff(where, at + done)
          done += bytesRead
        }
        at += count
        return bytes
      }
      return await read({ size, next })
    } finally {
      await handle.close()
    }
  }
  if (isObject(source) && isBlob(source)) {
    let at = 0
    const next = async (count: number): Promise<Uint8Array> => {
      checkLeft(where, at, count, source.size)
      at += count
      return new Uint8Array(await source.slice(at - count, at).arrayBuffer())
    }
    return read({ size: source.size, next })
  }
  if (source instanceof URL && source.protocol !== 'file:') return fetchedParts(where, source, read)
  const bytes = await bytesOf(where, source)
  let at = 0
  const next = (count: number): Promise<Uint8Array> => {
    checkLeft(where, at, count, bytes.length)
    at += count
    return Promise.resolve(bytes.subarray(at - count, at))
  }
  return read({ size: bytes.length, next })
}

/** The bytes of a file in parts, as they come: nothing is held whole but what is in memory already. */
export async function* chunksOf(where: string, source: FileSource): AsyncGenerator<Uint8Array, void, undefined> {
  const fs = globalThis.process?.getBuiltinModule?.('node:fs')
  const isPath = typeof source === 'string' || (source instanceof URL && source.protocol === 'file:')
  if (isPath && fs !== undefined) {
    try {
      yield* fs.createReadStream(source)
    } catch (error) {
      unreadable(where, source)(error)
    }
    return
  }
  const isFetched = source instanceof URL && source.protocol !== 'file:'
  const stream = isFetched ? (await fetched(where, source)).body : isObject(source) && isBlob(source) ? source.stream() : null
  if (stream === null) {
    yield await bytesOf(where, source)
    return
  }
  const reader = stream.getReader()
  try {
    for (let part = await reader.read(); part.value !== undefined; part = await reader.read()) yield part.value
  } finally {
    await reader.cancel()
  }
}

const cutOff = (where: string, at: number): ArgumentError =>
  new ArgumentError(`${where}: the file ends after ${at} bytes, in the middle of its data; copy it again.`)

function checkLeft(where: string, at: number, count: number, size: number): void {
  if (at + count > size) throw cutOff(where, size)
}

/** The body of a response, as it arrives. */
async function fetchedParts<T>(where: string, url: URL, read: (file: PartReader) => Promise<T>): Promise<T> {
  const response = await fetched(where, url)
  const reader = response.body?.getReader()
  let [rest, at] = [new Uint8Array(), 0]
  const next = async (count: number): Promise<Uint8Array> => {
    const parts = [rest]
    let have = rest.length
    while (have < count) {
      const chunk = await reader?.read()
      if (chunk?.value === undefined) throw cutOff(where, at + have)
      parts.push(chunk.value)
      have += chunk.value.length
    }
    const all = joinBytes(parts)
    rest = all.slice(count)
    at += count
    return all.subarray(0, count)
  }
  try {
    return await read({ size: null, next })
  } finally {
    await reader?.cancel()
  }
}

async function fetched(where: string, url: URL): Promise<Response> {
  const response = await fetch(url)
  if (!response.ok) throw new ArgumentError(`${where}: ${url.href} could not be read: the server answered ${response.status} ${response.statusText}.`)
  return response
}

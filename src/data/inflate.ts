// Decompression by the host.
import { ArgumentError, messageOf } from '../errors/index.ts'
import { joinBytes } from '../protocol/joinBytes.ts'

/** Decompresses bytes. Throws ArgumentError for damaged ones, and if there is more than `most`, so that a small file does not fill the memory. */
export async function inflate(where: string, packed: Uint8Array, format: 'gzip' | 'deflate-raw', most: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = []
  let size = 0
  // A copy: a view of shared memory is no part of a Blob.
  const reader = new Blob([Uint8Array.from(packed)]).stream().pipeThrough(new DecompressionStream(format)).getReader()
  try {
    for (let part = await reader.read(); part.value !== undefined; part = await reader.read()) {
      parts.push(part.value)
      size += part.value.length
      if (size > most) break
    }
  } catch (error) {
    throw new ArgumentError(`${where}: the compressed data are damaged: ${messageOf(error)}. Copy the file again.`, {
      cause: error,
    })
  }
  if (size > most) {
    await reader.cancel()
    throw new ArgumentError(`${where}: the compressed data are more than the ${most} bytes that they should be. Copy the file again.`)
  }
  return joinBytes(parts)
}

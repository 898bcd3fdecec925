// loadSafetensors reads a file tensor by tensor from every kind of source, converts dtypes that tensorfx lacks, and says where a file is cut off.
import { createServer } from 'node:http'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { describe, expect, test, vi } from 'vitest'
import { loadSafetensors, readSafetensors } from 'tensorfx/interop'

const path = fileURLToPath(new URL('../goldens/weights/tagger.safetensors', import.meta.url))
const bytes = new Uint8Array(readFileSync(path))
const shown = (tensors: Awaited<ReturnType<typeof loadSafetensors>>): unknown => [...tensors].map(([name, t]) => [name, t.dtype, t.toArray()])
const wanted = shown(readSafetensors(bytes).tensors)

test('a path, a file URL, a Blob and bytes give the same tensors', async () => {
  for (const source of [path, pathToFileURL(path), new Blob([bytes]), bytes, bytes.slice().buffer])
    expect(shown(await loadSafetensors(source))).toEqual(wanted)
})

test('a response is read as it arrives', async () => {
  const server = createServer((_, response) => {
    for (let at = 0; at < bytes.length; at += 1000) response.write(bytes.subarray(at, at + 1000))
    response.end()
  })
  await new Promise<void>((resolve) => server.listen(0, resolve))
  try {
    const address = server.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    expect(shown(await loadSafetensors(new URL(`http://localhost:${port}/`)))).toEqual(wanted)
  } finally {
    server.close()
  }
})

test('a file that is cut off is refused, and says where', async () => {
  const cut = join(mkdtempSync(join(tmpdir(), 'tensorfx-')), 'cut.safetensors')
  writeFileSync(cut, bytes.subarray(0, 5))
  await expect(loadSafetensors(cut)).rejects.toThrow('loadSafetensors: the file ends after 5 bytes')
  await expect(loadSafetensors(new Blob([bytes.subarray(0, 40)]))).rejects.toThrow('the file ends after 40 bytes')
  await expect(loadSafetensors(bytes.subarray(0, bytes.length - 1))).rejects.toThrow('bytes of data')
})

function file(dtype: string, size: number, data: readonly number[]): Uint8Array {
  const text = new TextEncoder().encode(JSON.stringify({ a: { dtype, shape: [data.length / size], data_offsets: [0, data.length] } }))
  const out = new Uint8Array(8 + text.length + data.length)
  new DataView(out.buffer).setBigUint64(0, BigInt(text.length), true)
  out.set(text, 8)
  out.set(data, 8 + text.length)
  return out
}

describe('dtypes that tensorfx does not have', () => {
  test.each([
    ['F8_E4M3', 1, [0x00, 0x01, 0x38, 0x7e, 0xb8, 0x80], 'float32', [0, 2 ** -9, 1, 448, -1, -0]],
    ['F8_E5M2', 1, [0x00, 0x01, 0x3c, 0x7b, 0x7c, 0xfc], 'float32', [0, 2 ** -16, 1, 57344, Infinity, -Infinity]],
    ['U16', 2, [0x01, 0x00, 0xff, 0xff], 'int32', [1, 65535]],
    ['U32', 4, [0x01, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff], 'int64', [1, 4294967295]],
    ['U64', 8, [0x02, 0, 0, 0, 0, 0, 0, 0], 'int64', [2]],
  ] as const)('%s', async (stored, size, data, dtype, values) => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined)
    const a = (await loadSafetensors(file(stored, size, data))).get('a')
    expect([a?.dtype, Array.from(a?.toTypedArray() ?? [], Number)]).toEqual([dtype, [...values]])
    expect(warn.mock.calls.flat()).toEqual([`readSafetensors: 1 tensor(s) of dtype ${stored}, which tensorfx does not have, became ${dtype}: a.`])
    warn.mockRestore()
  })

  test('a value that does not fit is refused', async () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined)
    await expect(loadSafetensors(file('U64', 8, [0, 0, 0, 0, 0, 0, 0, 255]))).rejects.toThrow(
      "tensor 'a' cannot be converted to int64: a value is above 2 ** 63 - 1",
    )
    warn.mockRestore()
  })
})

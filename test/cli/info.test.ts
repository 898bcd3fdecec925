// tensorfx info: the tensors in files of weights.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import { readSafetensors, writeSafetensors } from 'tensorfx/interop'
import { temporaryFolder } from '../helpers/folder.ts'
import { runTensorfx } from '../../src/cli/commands.ts'
import type { Result } from '../../src/cli/line.ts'
import { root } from '../built/node.ts'

const folder = temporaryFolder('tensorfx-info-')
const run = async (...words: string[]): Promise<Result> => runTensorfx(['info', ...words], { print: () => {}, note: () => {} })
const golden = (name: string): string => join(root, 'test/goldens/weights', name)
const file = (name: string, bytes: Uint8Array): string => {
  const path = join(folder, name)
  writeFileSync(path, bytes)
  return path
}

/** What the command prints with --json. */
interface Described {
  readonly tensors: readonly { readonly name: string; readonly dtype: string; readonly shape: readonly number[]; readonly bytes: number }[]
  readonly total: { readonly bytes: number }
}

const sorted = <T extends { readonly name: string }>(tensors: readonly T[]): readonly T[] => tensors.toSorted((a, b) => a.name.localeCompare(b.name))

describe('tensorfx info', () => {
  const small = file(
    'small.safetensors',
    writeSafetensors(
      [
        ['w', torch.ones([2, 3])],
        ['n', torch.ones([4], { dtype: 'int8' })],
      ],
      { made: 'by\na test' },
    ),
  )

  it('lists tensors, dtypes, totals and texts', async () => {
    const { text, code } = await run(small)
    expect(code).toBe(0)
    expect(text.split('\n')).toEqual([
      'tensor  dtype    shape   elements  size',
      'w       float32  [2, 3]  6         24 bytes',
      'n       int8     [4]     4         4 bytes',
      '',
      'float32  1 tensor   6 elements   24 bytes',
      'int8     1 tensor   4 elements   4 bytes',
      'total    2 tensors  10 elements  28 bytes',
      '',
      'metadata',
      '  made  by a test',
    ])
  })

  it('prints JSON', async () => {
    const { text, code } = await run(small, '--json')
    expect([code, JSON.parse(text)]).toEqual([
      0,
      {
        file: small,
        tensors: [
          { name: 'w', dtype: 'float32', shape: [2, 3], elements: 6, bytes: 24 },
          { name: 'n', dtype: 'int8', shape: [4], elements: 4, bytes: 4 },
        ],
        dtypes: { float32: { tensors: 1, elements: 6, bytes: 24 }, int8: { tensors: 1, elements: 4, bytes: 4 } },
        metadata: { made: 'by\na test' },
        total: { tensors: 2, elements: 10, bytes: 28 },
      },
    ])
  })

  it.each(['dtypes', 'encoder', 'resnet18_w8', 'unet'])(
    'says of %s.pt and %s.safetensors, written by PyTorch, what the loader reads',
    async (name) => {
      const loaded = readSafetensors(readFileSync(golden(`${name}.safetensors`))).tensors
      const wanted = sorted([...loaded].map(([key, { dtype, shape }]) => ({ name: key, dtype, shape: [...shape] })))
      for (const extension of ['.pt', '.safetensors']) {
        const { data, code } = await run(golden(`${name}${extension}`))
        expect(code).toBe(0)
        const { tensors, total } = data as Described
        expect(sorted(tensors.map(({ name: key, dtype, shape }) => ({ name: key, dtype, shape })))).toEqual(wanted)
        expect(total.bytes).toBe(tensors.reduce((sum, { bytes }) => sum + bytes, 0))
      }
    },
  )

  it('reads only the header of a safetensors file, and names dtypes that tensorfx lacks as the file does', async () => {
    const header = new TextEncoder().encode(JSON.stringify({ q: { dtype: 'F8_E4M3', shape: [5], data_offsets: [0, 5] } }))
    const bytes = new Uint8Array(8 + header.length + 5).fill(0xff)
    new DataView(bytes.buffer).setBigUint64(0, BigInt(header.length), true)
    bytes.set(header, 8)
    expect((await run(file('f8.safetensors', bytes))).data).toMatchObject({
      tensors: [{ name: 'q', dtype: 'F8_E4M3', shape: [5], elements: 5, bytes: 5 }],
    })
  })

  it.each([
    [['absent.safetensors'], /there is no file 'absent.safetensors'/],
    [['a.onnx'], /'a.onnx' is of no known format\. Known are \.safetensors, \.pt, \.pth, \.bin/],
    [[small, small], /expected one file of weights, got 2/],
    [[small, '--key', 'model'], /--key is for files of torch\.save/],
    [[small, '--keys', 'model'], /unknown option '--keys'\. Did you mean '--key'\?/],
    [[file('cut.safetensors', readFileSync(small).subarray(0, -3))], /safetensors file: .*ends at 28, but there are only 25 bytes/],
    [[file('short.safetensors', Uint8Array.of(1, 2))], /the file/],
    [[file('noise.safetensors', new Uint8Array(64).fill(0x41))], /header has \d+ bytes/],
    [[file('noise.pt', new Uint8Array(64).fill(0x41))], /loadTorchFile/],
    [[file('cut.pt', readFileSync(golden('encoder.pt')).subarray(0, 900))], /loadTorchFile/],
  ])('%j is refused with exit code 2', async (words, message) => {
    const { text, code } = await run(...words)
    expect([code, text]).toEqual([2, expect.stringMatching(message)])
    const json = await run(...words, '--json')
    expect([json.code, JSON.parse(json.text)]).toEqual([2, { error: expect.stringMatching(message) as string }])
  })

  it.each(['arrays', 'arraysCompressed'])('reads the headers of %s.npz, written by numpy', async (name) => {
    const { data, code } = await run(golden(`${name}.npz`))
    expect(code).toBe(0)
    expect((data as Described).tensors.map((tensor) => [tensor.name, tensor.dtype, tensor.shape, tensor.bytes])).toEqual([
      ['w', 'float32', [2, 3], 24],
      ['h', 'float16', [4], 8],
      ['d', 'float64', [], 8],
      ['n', 'int64', [1, 2, 3], 48],
      ['b', 'bool', [2], 2],
      ['u', 'uint8', [2, 0], 0],
      ['i8', 'int8', [3], 3],
      ['big', 'int32', [64, 64], 16384],
      // numpy's names of what tensorfx lacks: two characters of four bytes each, and complex numbers.
      ['text', '<U2', [2], 16],
      ['c', '<c8', [2], 16],
      ['layer.0/weight', 'float32', [3, 2], 24],
    ])
  })

  it('refuses what is no archive of arrays', async () => {
    const whole = readFileSync(golden('arrays.npz'))
    const other = Uint8Array.from(whole)
    other.set([0x41], whole.indexOf('NUMPY') + 1)
    for (const [name, bytes, message] of [
      ['cut', whole.subarray(0, 300), /the zip archive is damaged/],
      ['other', other, /the entry 'w\.npy' is no array of numpy: it does not begin as one/],
    ] as const) {
      const { text, code } = await run(file(`${name}.npz`, bytes))
      expect([code, text]).toEqual([2, expect.stringMatching(message)])
    }
  })

  it('has help', async () => expect((await run('--help')).text).toMatch(/^usage: tensorfx info WEIGHTS/))
})

// Files as datasets: arrays of numpy, IDX, CSV, JSON lines, folders of images.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import { DataLoader, ImageFolder, readCsv, readIdx, readJsonLines, readNpy, readNpz, streamCsv, streamJsonLines } from 'tensorfx/data'
import { temporaryFolder } from '../helpers/folder.ts'

const golden = (name: string): string => fileURLToPath(new URL(`../goldens/around/${name}`, import.meta.url))
const folder = temporaryFolder('tensorfx-data-')
const bytes = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text)

async function all<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = []
  for await (const item of stream) items.push(item)
  return items
}

describe('arrays of numpy', () => {
  // Written by numpy: savez, savez_compressed and save.
  const arrays = {
    f4: [
      'float32',
      [
        [0, 0.25, 0.5],
        [0.75, 1, 1.25],
      ],
    ],
    fortran: [
      'int32',
      [
        [0, 1, 2],
        [3, 4, 5],
      ],
    ],
    big: ['float64', [1.5, -2]],
    half: ['float16', [0.5, 2]],
    flag: ['bool', [true, false]],
    zero: ['int64', 7],
    empty: ['uint8', []],
  }

  it('come by name, stored or compressed, in either order and byte order', async () => {
    for (const name of ['arrays.npz', 'arrays-compressed.npz'])
      for (const source of [golden(name), new Blob([readFileSync(golden(name))])]) {
        const read = await readNpz(source)
        expect(Object.fromEntries([...read].map(([key, x]) => [key, [x.dtype, x.ndim === 0 ? x.item() : x.toArray()]]))).toEqual(arrays)
        expect(read.get('empty')?.shape).toEqual([0, 3])
      }
    expect((await readNpy(golden('array.npy'))).toArray()).toEqual(arrays.fortran[1])
  })

  it('are refused by name if tensorfx lacks the dtype, and if the file is cut', async () => {
    await expect(readNpz(golden('unsigned.npz'))).rejects.toThrow("readNpz: the entry 'x.npy' has dtype <u2, but tensorfx reads f2, f4")
    const whole = readFileSync(golden('array.npy'))
    await expect(readNpy(whole.subarray(0, whole.length - 1))).rejects.toThrow('readNpy: the file has 23 bytes of elements')
    await expect(readNpy(bytes('x,y\n'))).rejects.toThrow('is no array of numpy: it does not begin as one')
    const packed = Uint8Array.from(readFileSync(golden('arrays-compressed.npz')))
    for (let at = 0; at < packed.length; at += 7) {
      const damaged = Uint8Array.from(packed)
      damaged[at] = (damaged[at] ?? 0) ^ 0x5a
      await readNpz(damaged).catch((error: unknown) => expect(error).toHaveProperty('code', 'TFX_ARGUMENT'))
    }
  })
})

it('IDX files have the most significant byte first, compressed or not', async () => {
  const file = Uint8Array.from([0, 0, 0x0b, 2, 0, 0, 0, 2, 0, 0, 0, 1, 0x01, 0x02, 0xff, 0xfe])
  for (const source of [file, gzipSync(file)]) {
    const read = await readIdx(source)
    expect([read.dtype, read.toArray()]).toEqual(['int16', [[0x102], [-2]]])
  }
  await expect(readIdx(file.subarray(0, 15))).rejects.toThrow('has 3 bytes of elements, but its sizes [2, 1] of int16 take 4')
  await expect(readIdx(bytes('text'))).rejects.toThrow('this is no IDX file')
})

describe('CSV', () => {
  const text = '\ufeffname,x,note\r\n"a ""b""",1.5,"two\nlines, and a comma"\r\nc,,""\r\n\r\nd,-3e2,end'
  const rows = [
    { name: 'a "b"', x: 1.5, note: 'two\nlines, and a comma' },
    { name: 'c', x: NaN, note: '' },
    { name: 'd', x: -300, note: 'end' },
  ]

  it('has quotes, ends of lines within them, and columns of numbers', async () => {
    expect(await readCsv(bytes(text))).toEqual(rows)
    const path = join(folder, 'a.csv')
    writeFileSync(path, text)
    expect(await readCsv(path)).toEqual(rows)
    expect(await all(streamCsv(path, { numbers: ['x'] }))).toEqual(rows)
    expect((await readCsv(bytes('1;b\n2;c'), { columns: ['n', 't'], delimiter: ';', numbers: [] }))[1]).toEqual({ n: '2', t: 'c' })
  })

  it('gives the same rows whatever the parts are that it comes in', async () => {
    const data = bytes(text)
    for (let size = 1; size < 12; size++) {
      const parts = new Blob([data])
      Object.defineProperty(parts, 'stream', {
        value: () =>
          new ReadableStream({
            start(controller) {
              for (let at = 0; at < data.length; at += size) controller.enqueue(data.slice(at, at + size))
              controller.close()
            },
          }),
      })
      expect(await all(streamCsv(parts, { numbers: ['x'] }))).toEqual(rows)
    }
  })

  it('is refused where rows, quotes or numbers are wrong', async () => {
    await expect(readCsv(bytes('a,b\n1\n'))).rejects.toThrow('readCsv: row 2 has 1 values, but there are 2 columns: a, b.')
    await expect(readCsv(bytes('a\n"open'))).rejects.toThrow('the quote that opens in line 2 does not end')
    await expect(readCsv(bytes('a\n"x"y'))).rejects.toThrow("'y' follows the end of a quoted value")
    await expect(readCsv(bytes('a\nx'), { numbers: ['a'] })).rejects.toThrow("column 'a' is one of numbers, but has the value 'x'")
    await expect(readCsv(bytes('a\nx'), { numbers: ['b'] })).rejects.toThrow("there is no column 'b'; there are a.")
    await expect(readCsv(bytes('a,a\n1,2'))).rejects.toThrow("two columns are called 'a'")
    await expect(readCsv(Uint8Array.from([0xff, 0xfe]))).rejects.toThrow('not UTF-8')
    await expect(readCsv(join(folder, 'none.csv'))).rejects.toThrow('could not be read')
  })
})

it('JSON lines are values, and a wrong one is named by its line', async () => {
  const data = bytes('{"x": 1}\n\n{"x": 2}')
  expect(await readJsonLines(data)).toEqual([{ x: 1 }, { x: 2 }])
  const [batch] = await all(new DataLoader(streamJsonLines<{ x: number }>(data), { batchSize: 2 }))
  expect(batch?.x.toArray()).toEqual([1, 2])
  await expect(readJsonLines(bytes('1\n{x}'))).rejects.toThrow('line 2')
})

it('folders of images are classes, in the order of their names', async () => {
  for (const name of ['dog/b.PNG', 'dog/more/a.png', 'cat/z.jpg', 'cat/readme.txt']) {
    mkdirSync(join(folder, 'pets', name, '..'), { recursive: true })
    writeFileSync(join(folder, 'pets', name), name)
  }
  const pets = new ImageFolder(join(folder, 'pets'), { decode: (data, path) => [torch.tensor(data.length), path.split('/').at(-1) ?? ''] as const })
  expect(pets.classes).toEqual(['cat', 'dog'])
  const [batch] = await all(new DataLoader(pets, { batchSize: 3 }))
  expect([batch?.[0][1], batch?.[1].toArray()]).toEqual([
    ['z.jpg', 'b.PNG', 'a.png'],
    [0, 1, 1],
  ])
  expect(() => new ImageFolder(join(folder, 'pets'), { decode: 'sharp' as never })).toThrow("argument 'decode' must be a function")
  mkdirSync(join(folder, 'pets', 'bird'))
  expect(() => new ImageFolder(join(folder, 'pets'), { decode: () => 0 })).toThrow("the class 'bird' has no images")
})

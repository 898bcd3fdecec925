// What the readers and writers of inputs say of what they cannot take, and the edges of what they can.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { InputReader, InputWriter, MemoryFileStore } from 'tensorfx/debug'
import type { LoadedStorage } from '../../src/debug/files/inputReader.ts'

const store = new MemoryFileStore()

/** What is thrown. */
function said(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
  return 'nothing'
}

/** The messages of these calls: each argument is of a wrong kind somewhere. */
function expectSaid(cases: readonly (readonly [run: () => unknown, text: string])[]): void {
  expect(cases.map(([run, text]) => said(run).slice(0, text.length))).toEqual(cases.map(([, text]) => text))
}

describe('an InputReader', () => {
  const reader = (): InputReader => new InputReader(store, 'dir')
  const eight: LoadedStorage = { bytes: new Uint8Array(8), nbytes: 8 }
  const hash = '0'.repeat(40)

  it('says what is wrong with where it reads', () => {
    expectSaid([
      [() => new InputReader(3 as never, 'dir'), "InputReader: argument 'store' must be a FileStore, which has the methods read and write, got 3"],
      [() => new InputReader(store, 3 as never), "InputReader: argument 'dir' must be a string, got 3"],
      [() => new InputReader(store, 'dir', { randomly: true } as never), "InputReader: unknown option 'randomly'"],
      [() => new InputReader(null, null, { random: true }), 'nothing'],
    ])
  })

  it('says what is wrong with a storage', () => {
    const bytes = "InputReader.storage: argument 'nbytes' must be a number of bytes, got "
    const count = "reader.fill: argument 'count' must be a number of elements, got "
    const element = "reader.fill: argument 'element' must be a number, bigint or boolean, got "
    const list = "reader.values: argument 'elements' must be "
    expectSaid([
      [() => reader().storage(3 as never, 8), "InputReader.storage: argument 'hash' must be a string, got 3"],
      [() => reader().storage(hash, -1), `${bytes}-1`],
      [() => reader().storage(hash, 0.5), `${bytes}0.5`],
      [
        () => new InputReader(null, null).storage(hash, 8),
        `the script needs the storage ${hash} (8 bytes), but it was told of no folder. Name the one that holds 'storages' with --save-dir DIR. --no-save-dir runs on random numbers instead.`,
      ],
      [() => reader().values(3 as never), `${list}an array, got 3`],
      [() => reader().values([1, '2' as never]), `${list}a list of numbers, bigints or booleans, got '2'`],
      [() => reader().values([1], 'f32' as never), "reader.values: unknown dtype 'f32'."],
      [() => reader().fill(-1, 0), `${count}-1`],
      [() => reader().fill(0.5, 0), `${count}0.5`],
      [() => reader().fill(2 ** 31 + 1, 0), `${count}2147483649`],
      [() => reader().fill(1, '0' as never), `${element}'0'`],
      [() => reader().fill(1, 0, 3 as never), 'reader.fill: unknown dtype 3.'],
      [() => reader().bytes(3 as never), "reader.bytes: argument 'text' must be a string, got 3"],
    ])
    expect(reader().fill(0, 1)).toEqual({ bytes: new Uint8Array(0), nbytes: 0 })
    expect(reader().fill(3, true, 'bool')).toEqual({ bytes: Uint8Array.of(1, 1, 1), nbytes: 3 })
    expect(reader().fill(2, 1n, 'int64')).toEqual({ bytes: Uint8Array.of(1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0), nbytes: 16 })
    expect(reader().values([1n, 2], 'int64').nbytes).toBe(16)
    expect(reader().values([true, 0], 'bool').bytes).toEqual(Uint8Array.of(1, 0))
  })

  it('says what is wrong with a tensor', () => {
    const of =
      (shape: unknown, options: unknown = {}, storage: unknown = eight) =>
      (): unknown =>
        reader().tensor(storage as never, shape as never, options as never)
    const where = "InputReader.tensor: argument '"
    const needs = (text: string): string => `reader.tensor: a ${text}, but its storage has 8.`
    expectSaid([
      [of([1], {}, 3), `${where}storage' must be what storage() returns, got 3`],
      [of([1], {}, { nbytes: 4 }), `${where}storage' must be what storage() returns, got `],
      [of([1], { stride: [1] }), "InputReader.tensor: unknown option 'stride'"],
      [of([1], { dtype: 'f32' }), "reader.tensor: unknown dtype 'f32'."],
      [of([-1]), 'reader.tensor: shape'],
      [of([1], { strides: [1, 1] }), 'reader.tensor: a shape of 1 sizes needs as many strides, got 2.'],
      [of([1], { offset: -1 }), `${where}offset' must be a number of elements, got -1`],
      [of([1], { offset: 0.5 }), `${where}offset' must be a number of elements, got 0.5`],
      [of([1], { requiresGrad: 1 }), "InputReader.tensor: option 'requiresGrad' must be true or false, got 1."],
      [of([1], { parameter: 1 }), "InputReader.tensor: option 'parameter' must be true or false, got 1."],
      [of([1], { dtype: 'bool', requiresGrad: true }), 'reader.tensor: a tensor of bool cannot require gradients.'],
      [of([3]), needs('float32 tensor of shape [3] at 0 needs 12 bytes')],
      [of([2], { dtype: 'float64' }), needs('float64 tensor of shape [2] at 0 needs 16 bytes')],
      [of([2, 1], { offset: 1 }), needs('float32 tensor of shape [2, 1] at 1 needs 12 bytes')],
      [of([2], { strides: [2] }), needs('float32 tensor of shape [2] at 0 needs 12 bytes')],
      [of([2]), 'nothing'],
      [of([1], { offset: 1, requiresGrad: true, parameter: true, strides: [5], dtype: 'float32' }), 'nothing'],
      [of([0, 7], { offset: 9 }), 'nothing'],
    ])
  })

  it('collects the arguments of each call', () => {
    const one = reader()
    const value = one.tensor(eight, [2])
    expect([one.number(3), one.value('text')]).toEqual([3, 'text'])
    one.nextCall()
    const again = one.tensor(eight, [1], { offset: 1 })
    expect([one.earlier, one.args]).toEqual([[[value, 3, 'text']], [again]])
    expect(again.storage).toBe(value.storage)
    expect([value.requiresGrad, value.isParameter, one.isRandom]).toEqual([false, false, false])
    const parameter = one.load(eight, [1], { requiresGrad: true, parameter: true })
    expect([parameter.requiresGrad, parameter.isParameter, one.args.length]).toEqual([true, true, 1])
  })

  it('has random numbers of each floating dtype, in all of a storage, and zeros for others', () => {
    const one = new InputReader(null, null, { random: true })
    for (const [dtype, size] of [
      ['float32', 4],
      ['float64', 8],
      ['float16', 2],
    ] as const) {
      const values = [
        ...one
          .tensor(one.storage(hash, 40 * size + 1), [40], { dtype })
          .to('float64')
          .toTypedArray(),
      ].map(Number)
      expect([dtype, values.every(Number.isFinite), values.slice(-20).every((value) => Math.abs(value) > 1e-9 && Math.abs(value) < 9)]).toEqual([
        dtype,
        true,
        true,
      ])
      expect(new Set(values).size).toBeGreaterThan(35)
    }
    expect(one.tensor(one.storage(hash, 3), [3], { dtype: 'uint8' }).toArray()).toEqual([0, 0, 0])
    expect(one.tensor(one.storage(hash, 0), [0]).numel).toBe(0)
    expect(one.isRandom).toBe(true)
  })
})

describe('an InputWriter', () => {
  const x = torch.tensor([1, 2])

  it('says what is wrong with where it writes, and with what', () => {
    const bytes = "InputWriter: argument 'inlineBytes' must be a number of bytes, got "
    expectSaid([
      [() => new InputWriter(3 as never, 'dir'), "InputWriter: argument 'store' must be a FileStore, which has the methods read and write, got 3"],
      [() => new InputWriter(store, 3 as never), "InputWriter: argument 'dir' must be a string, got 3"],
      [() => new InputWriter(store, 'dir', { inline: 3 } as never), "InputWriter: unknown option 'inline'"],
      [() => new InputWriter(store, 'dir', { inlineBytes: -1 }), `${bytes}-1`],
      [() => new InputWriter(store, 'dir', { inlineBytes: '1' as never }), "InputWriter: option 'inlineBytes' must be a number, got '1'."],
      [() => new InputWriter(store, 'dir', { inlineBytes: 0, wholeStorages: true }), 'nothing'],
      [() => new InputWriter(null, null).add(3 as never, x), "InputWriter: argument 'name' must be a string, got 3"],
      [() => new InputWriter(null, null).use(3 as never, x, String), "InputWriter: argument 'name' must be a string, got 3"],
    ])
  })

  it('writes up to four kibibytes into the script, of all storages together', () => {
    const random = (bytes: number): Tensor => torch.arange(bytes, { dtype: 'uint8' })
    const kinds = (...sizes: readonly number[]): string[] => {
      const writer = new InputWriter(new MemoryFileStore(), 'dir')
      for (const size of sizes) writer.add('x', random(size))
      return writer.lines().flatMap((line) => /^const buf\d = reader\.(\w+)/.exec(line)?.[1] ?? [])
    }
    expect([kinds(4096), kinds(4097), kinds(4000, 96, 1), kinds(4000, 97, 96)]).toEqual([
      ['bytes'],
      ['storage'],
      ['bytes', 'bytes', 'storage'],
      ['bytes', 'storage', 'bytes'],
    ])
  })

  it('writes new lines after what was added later, and the calls before apart', () => {
    const writer = new InputWriter(null, null)
    writer.add('a', x)
    const first = writer.lines()
    expect(writer.lines()).toBe(first)
    writer.nextCall()
    writer.add('b', x)
    writer.use('w', 3, (expression) => `const w = ${expression}`)
    expect([first, writer.lines(), writer.paths()]).toEqual([
      ['const buf0 = reader.values([1, 2])', 'reader.tensor(buf0, [2]) // a'],
      ['const buf0 = reader.values([1, 2])', 'const t0 = reader.tensor(buf0, [2]) // a', 'reader.nextCall()', 'reader.value(t0) // b', 'const w = 3'],
      [],
    ])
  })

  it('names the dtype of a file, of what is repeated and of what is listed', () => {
    const line = (value: Tensor): string | undefined => {
      const writer = new InputWriter(new MemoryFileStore(), 'dir', { inlineBytes: 8 })
      writer.add('x', value)
      return writer.lines()[0]?.replace(/[0-9a-f]{40}/, 'HASH')
    }
    expect([
      line(torch.arange(9)),
      line(torch.arange(9, { dtype: 'int64' })),
      line(torch.ones([90], { dtype: 'int64' })),
      line(torch.tensor([1, 2]).to('int8')),
    ]).toEqual([
      "const buf0 = reader.storage('HASH', 36)",
      "const buf0 = reader.storage('HASH', 72, { dtypeHint: 'int64' })",
      "const buf0 = reader.fill(90, 1, 'int64')",
      "const buf0 = reader.values([1, 2], 'int8')",
    ])
  })
})

// The parts of a repro by themselves: bytes as text and back, names by content, and what a record of a run means.
import { createHash } from 'node:crypto'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { MemoryFileStore, setLogSink } from 'tensorfx/debug'
import { randomFrom } from '../../scripts/fuzz/random.mjs'
import { pathOf } from '../../src/debug/common/node.ts'
import { failureOfLastRun, writeRecord } from '../../src/debug/minify/record.ts'
import { sha1 } from '../../src/debug/files/sha1.ts'
import { base64Literal, bytesOf, bytesOfBase64, literalsOf, repeatedLiteral } from '../../src/debug/files/storageText.ts'
import { dtypeInfo, isComplexDType } from '../../src/kernels/index.ts'
import type { DType } from '../../src/kernels/index.ts'

afterEach(() => {
  vi.unstubAllGlobals()
  setLogSink(null)
})

/** Bytes that look drawn. */
const drawn = (length: number, seed: number): Uint8Array => {
  const { int } = randomFrom(seed)
  return Uint8Array.from({ length }, () => int(256))
}
// oxlint-disable-next-line no-eval -- the literal is what is tested
const evaluate = (source: string): unknown => (0, eval)(source)

describe('the name of data', () => {
  it('is its SHA-1, in pages too, for every length around the blocks of the algorithm', () => {
    const lengths = [...Array.from({ length: 140 }, (_, i) => i), 1000, 8191]
    const expected = lengths.map((length) => createHash('sha1').update(drawn(length, length)).digest('hex'))
    expect(lengths.map((length) => sha1(drawn(length, length)))).toEqual(expected)
    vi.stubGlobal('process', undefined)
    expect(lengths.map((length) => sha1(drawn(length, length)))).toEqual(expected)
  })
})

describe('bytes as text', () => {
  const dtypes = Object.keys(dtypeInfo) as DType[]
  const withLiterals = dtypes.filter((dtype) => !isComplexDType(dtype))

  it('give the same bytes, as a list of literals or not at all', () => {
    let lists = 0
    for (const dtype of dtypes)
      for (let count = 0; count <= 18; count++) {
        const bytes = drawn(count * dtypeInfo[dtype].size, count + 7)
        // Small numbers, which have short literals.
        if (count % 2 === 0) bytes.fill(0).forEach((_, i) => (bytes[i] = i % dtypeInfo[dtype].size === 0 ? i % 2 : 0))
        const text = literalsOf(bytes, dtype)
        if (count > 16) expect(text).toBeNull()
        if (text === null) continue
        lists++
        expect(bytesOf(evaluate(text) as number[], dtype)).toEqual(bytes)
      }
    expect(lists).toBeGreaterThan(9 * withLiterals.length)
    expect(literalsOf(new Uint8Array(7), 'float32')).toBeNull()
    // The bytes may lie anywhere in a larger memory.
    expect(literalsOf(new Uint8Array(new Float32Array([1, 0.1, 3]).buffer).subarray(4), 'float32')).toBe('[0.1, 3]')
    expect(literalsOf(new Uint8Array(new Float64Array([1 / 3, 1e300, NaN, -0]).buffer), 'float64')).toBe('[0.3333333333333333, 1e+300, NaN, -0]')
    expect(literalsOf(Uint8Array.of(0, 1, 2), 'bool')).toBeNull()
    expect(literalsOf(Uint8Array.of(0, 1), 'bool')).toBe('[false, true]')
  })

  it('are one literal where they repeat an element often', () => {
    const repeated = (values: readonly number[], dtype: DType = 'float32'): unknown => repeatedLiteral(bytesOf(values, dtype), dtype)
    const many = (value: number, count = 17): number[] => Array.from({ length: count }, () => value)
    expect(repeated(many(0.1))).toEqual({ count: 17, literal: '0.1' })
    expect(repeated(many(-3, 100), 'int64')).toEqual({ count: 100, literal: '-3' })
    expect([repeated(many(1, 16)), repeated([...many(1), 2]), repeated([2, ...many(1)]), repeatedLiteral(new Uint8Array(70), 'float32')]).toEqual([
      null,
      null,
      null,
      null,
    ])
    const payload = new Uint8Array(new Uint32Array(20).fill(0x7fc00001).buffer)
    expect(repeatedLiteral(payload, 'float32')).toBeNull()
  })

  it('are base64 in lines of a hundred characters', () => {
    for (const length of [0, 1, 2, 3, 74, 75, 76, 150, 151, 8191, 8192, 8193, 20_000]) {
      const bytes = drawn(length, length)
      const literal = base64Literal(bytes)
      const text = evaluate(literal) as string
      expect(text).toBe(Buffer.from(bytes).toString('base64'))
      expect(bytesOfBase64(text)).toEqual(bytes)
      const lines = literal.split(' +\n  ')
      expect(lines).toHaveLength(Math.max(1, Math.ceil(text.length / 100)))
      for (const line of lines) expect(line).toMatch(/^'[A-Za-z0-9+/=]{0,100}'$/)
    }
    expect(() => bytesOfBase64('?')).toThrow('reader.bytes: the text is not base64; the script is damaged.')
  })
})

describe('a place', () => {
  it('is a path, a URL or none', () => {
    expect([pathOf('f', 'where', 'a/b'), pathOf('f', 'where', null), pathOf('f', 'where', new URL('file:///a%20b'))]).toEqual(['a/b', null, '/a b'])
    expect(() => pathOf('f', 'where', 3 as never)).toThrow("f: argument 'where' must be a path, a URL or null, got 3.")
    vi.stubGlobal('process', undefined)
    expect(pathOf('f', 'where', new URL('https://a.page/b'))).toBe('https://a.page/b')
  })
})

describe('the record of a run', () => {
  it('says what to look for, and the launcher says so', () => {
    const store = new MemoryFileStore()
    const told = (write: () => void): unknown => {
      const lines: string[] = []
      setLogSink((level, line) => void lines.push(`${level}: ${line}`))
      write()
      return [failureOfLastRun(store, 'r.json'), ...lines]
    }
    const { pid } = process
    expect(told(() => {})).toEqual([
      { findFailure: true },
      'info: There is no record of the run that wrote this script (r.json). Finding out how the graph fails.',
    ])
    expect(told(() => writeRecord(store, 'r.json', 'run', 'failed'))).toEqual([{}])
    for (const [phase, doing] of [
      ['compile', 'compiled'],
      ['run', 'ran'],
    ] as const) {
      expect(told(() => writeRecord(store, 'r.json', phase, 'ended'))).toEqual([
        {},
        `info: The run that wrote this script ended without a failure (process ${pid} ${doing} the graph). Looking for errors all the same.`,
      ])
      expect(told(() => writeRecord(store, 'r.json', phase, 'started'))).toEqual([
        { death: 'any' },
        `info: The run that wrote this script did not end: process ${pid} died or hung while it ${doing} the graph. Looking for candidates that do the same.`,
      ])
    }
    vi.stubGlobal('process', undefined)
    writeRecord(store, 'page.json', 'run', 'ended')
    expect(new TextDecoder().decode(store.files.get('page.json'))).toBe('{"phase":"run","state":"ended","pid":0}\n')
  })
})

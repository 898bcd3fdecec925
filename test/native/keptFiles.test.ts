// Results that are kept for later processes: found only where they are those that would be made now, whole, and written by this user.
import { chmodSync, mkdtempSync, readFileSync, readdirSync, rmSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { keptModule } from '../../src/kernels/emit/keptModules.ts'
import { emitKernel, printKernel, withComputing } from '../../src/kernels/index.ts'
import { openFolder } from '../../src/native/folder.ts'
import { keptIn } from '../../src/native/keptFiles.ts'
import type { KeptCounts } from '../../src/native/keptFiles.ts'
import { kept, setResultStore } from '../../src/protocol/index.ts'
import type { ResultStore } from '../../src/protocol/index.ts'
import { RandomKernel } from '../kernels/problems/randomKernel.ts'

const work = mkdtempSync(join(tmpdir(), 'tensorfx-kept-test-'))
afterAll(() => rmSync(work, { recursive: true }))
let folders = 0
let path = ''
beforeEach(() => (path = join(work, String(folders++))))
afterEach(() => {
  setResultStore(null)
  vi.restoreAllMocks()
})

const counts = (): KeptCounts => ({ module: { made: 0, found: 0 }, library: { made: 0, found: 0 }, graph: { made: 0, found: 0 } })

function store(): ResultStore {
  const results = keptIn(openFolder(path), counts())
  if (results === null) throw new Error('what makes results is not known')
  return results
}

const fileIn = (folder: string): string => {
  const [name = '', ...others] = readdirSync(folder)
  expect(others).toEqual([])
  return join(folder, name)
}

const RESULT = { numbers: new Map([[1, -0]]), bytes: Uint8Array.of(1, 2, 3), big: 5n }

test('another process finds what was kept under the same text, as it was', () => {
  store().keep('module', 'a text', RESULT)
  expect(store().find('module', 'a text')).toEqual(RESULT)
  for (const [kind, text] of [
    ['module', 'another text'],
    ['library', 'a text'],
  ] as const)
    expect(store().find(kind, text)).toBeUndefined()
})

test('what is not found is made, and what is found is not', () => {
  setResultStore(store())
  const isText = (found: unknown): found is string => typeof found === 'string'
  const make = vi.fn(() => 'made')
  const get = (): string => kept('library', () => 'from', isText, make)
  expect([get(), get(), make.mock.calls.length]).toEqual(['made', 'made', 1])
  setResultStore(store())
  expect([get(), make.mock.calls.length]).toEqual(['made', 1])
  // A result of another kind is none.
  store().keep('library', 'from', 7)
  setResultStore(store())
  expect([get(), make.mock.calls.length]).toEqual(['made', 2])
})

describe('is not found', () => {
  test.each([
    ['cut off', (file: string) => truncateSync(file, 80)],
    ['empty', (file: string) => truncateSync(file, 0)],
    ['changed in one bit', (file: string) => writeFileSync(file, readFileSync(file).with(90, (readFileSync(file)[90] ?? 0) ^ 1))],
    ['garbage', (file: string) => writeFileSync(file, 'garbage')],
    ['writable by others', (file: string) => chmodSync(file, 0o666)],
    ['a folder', (file: string) => (rmSync(file), void openFolder(file))],
  ])('a file that is %s', (_, change) => {
    store().keep('module', 'text', RESULT)
    change(fileIn(path))
    expect(store().find('module', 'text')).toBeUndefined()
  })

  test('what other code has made', () => {
    store().keep('module', 'text', RESULT)
    const fs = process.getBuiltinModule('node:fs')
    const stat = fs.statSync.bind(fs)
    const changed = vi.spyOn(fs, 'statSync').mockImplementation(((file: string, options: never) => {
      const facts = stat(file, options) as ReturnType<typeof stat> | undefined
      if (facts !== undefined && file.endsWith('emit.ts')) facts.size += 1
      return facts
    }) as never)
    const other = store()
    expect(other.find('module', 'text')).toBeUndefined()
    expect(changed).toHaveBeenCalled()
    changed.mockRestore()
    expect(store().find('module', 'text')).toEqual(RESULT)
  })
})

test('what is kept later is there once the program has time, unless it is null or no plain data', async () => {
  const results = store()
  results.keepLater('graph', 'plain', () => RESULT)
  results.keepLater('graph', 'nothing', () => null)
  results.keepLater('graph', 'a function', () => ({ f: () => 1 }))
  expect(store().find('graph', 'plain')).toBeUndefined()
  await new Promise((done) => setTimeout(done, 10))
  expect(['plain', 'nothing', 'a function'].map((text) => store().find('graph', text))).toEqual([RESULT, undefined, undefined])
})

test('where the disk is full nothing is kept and nothing left behind, without an error', () => {
  const results = store()
  const fs = process.getBuiltinModule('node:fs')
  const rename = vi.spyOn(fs, 'renameSync').mockImplementation(() => {
    throw new Error('ENOSPC: no space left on device')
  })
  results.keep('module', 'text', RESULT)
  results.keep('module', 'text', RESULT)
  expect(rename).toHaveBeenCalledTimes(1)
  expect(readdirSync(path)).toEqual([])
})

test('a folder that has become too large loses its oldest results', () => {
  const results = store()
  const old = join(openFolder(path).path, 'old.kept')
  writeFileSync(old, '')
  truncateSync(old, 600 * 2 ** 20)
  utimesSync(old, 1, 1)
  results.keep('module', 'small', 1)
  expect(readdirSync(path)).toHaveLength(2)
  results.keep('module', 'large', new Uint8Array(17 * 2 ** 20))
  expect(readdirSync(path)).toHaveLength(2)
  expect(readdirSync(path)).not.toContain('old.kept')
})

test('modules of kernels are those that would be emitted, whatever engine and order of sums was asked for before', () => {
  const ways = [{}, { accuracy: 'strict' }, { engine: 'wasm', emitter: 'wasm' }] as const
  const kernels = Array.from({ length: 20 }, (_, seed) => new RandomKernel(seed).kernel())
  const emitted = kernels.map((kernel) => ways.map((way) => withComputing(way, () => emitKernel(kernel))))
  for (const _ of ['made', 'found']) {
    setResultStore(store())
    kernels.forEach((kernel, i) =>
      ways.forEach((way, at) => {
        const module = withComputing(way, () =>
          keptModule(
            () => printKernel(kernel),
            'whole',
            () => emitKernel(kernel),
          ),
        )
        expect(module).toEqual(emitted[i]?.[at])
      }),
    )
  }
})

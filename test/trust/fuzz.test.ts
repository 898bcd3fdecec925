// 400 mutants of files in each of the formats that come from outside, and all files that were once read wrongly. npm run fuzz:files reads more.
import { readFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import * as front from 'tensorfx'
import * as debug from 'tensorfx/debug'
import * as dispatch from 'tensorfx/dispatch'
import * as json from 'tensorfx/fx/json'
import * as viewer from 'tensorfx/fx/viewer'
import * as interop from 'tensorfx/interop'
import * as torchFile from '../../src/interop/torchFile/stateDict.ts'
import { formats } from '../../scripts/fuzz/files/formats.mjs'
import { Watch, fuzz, judge, minimize } from '../../scripts/fuzz/files/judge.mjs'

const api = { ...torchFile, ...dispatch, ...debug, ...viewer, ...json, ...interop, ...front }
const folder = fileURLToPath(new URL('../goldens/fuzz-files', import.meta.url))

beforeAll(() => void vi.spyOn(console, 'warn').mockImplementation(() => {}))
afterAll(() => void vi.restoreAllMocks())

describe.each(Object.keys(formats))('%s', (format) => {
  it('400 mutants are read, or refused by an error of tensorfx, and change nothing', () => {
    const findings: string[] = []
    const { accepted, refused } = fuzz(api, format, {
      count: 400,
      seed: 1,
      onFinding: ({ index, problem }) => findings.push(`mutant ${index}: ${problem}`),
    })
    expect(findings).toEqual([])
    // Most mutants say something wrong, and some are still files: otherwise the mutants test nothing.
    expect(accepted).toBeGreaterThan(20)
    expect(refused).toBeGreaterThan(100)
  }, 120_000)

  const files = readdirSync(folder).filter((name) => name.startsWith(`${format}-`))
  it.each(files.length === 0 ? [] : files)('%s, which was once read wrongly, is read rightly', (name) => {
    const watch = new Watch(api)
    expect(judge(api, watch, format, readFileSync(`${folder}/${name}`)).problem).toBeNull()
    watch.end()
  })
})

describe('the judge of mutants', () => {
  const bytes = new TextEncoder().encode('{}')
  const problemOf = (read: () => void): string | null => {
    const watch = new Watch(api)
    const original = formats['graph-json']
    try {
      Object.assign(formats, { 'graph-json': { ...original, read } })
      return judge(api, watch, 'graph-json', bytes).problem
    } finally {
      Object.assign(formats, { 'graph-json': original })
      watch.end()
    }
  }

  it('finds errors that are none of tensorfx, code that ran, changed prototypes, opened files, and memory', () => {
    expect(problemOf(() => {})).toBeNull()
    expect(problemOf(() => Reflect.get(JSON.parse('null') as object, 'x'))).toContain('TypeError: ')
    expect(problemOf(() => void new Function('globalThis.__tensorfxFuzzRan = true')())).toBe('code of the file ran')
    expect(problemOf(() => void Reflect.set(Object.prototype, 'polluted', 1))).toBe('a prototype was changed')
    Reflect.deleteProperty(Object.prototype, 'polluted')
    const forward = front.fx.GraphModule.prototype.forward
    expect(problemOf(() => void Reflect.set(front.fx.GraphModule.prototype, 'forward', () => 1))).toBe('a prototype was changed')
    front.fx.GraphModule.prototype.forward = forward
    const fs = process.getBuiltinModule('node:fs')
    expect(problemOf(() => void fs.existsSync('/tensorfx-fuzz-canary/secret.txt'))).toBe('the file /tensorfx-fuzz-canary/secret.txt was opened')
    const held: unknown[] = []
    expect(problemOf(() => void held.push(new Uint8Array(100e6)))).toMatch(/^took \d+ MB for a file of 2 bytes$/)
    expect(held).toHaveLength(1)
  })

  it('makes findings smaller', () => {
    const original = formats['graph-json']
    const watch = new Watch(api)
    try {
      const read = (_: object, given: Uint8Array): void => {
        if (new TextDecoder().decode(given).includes('"b":')) throw new TypeError('raw')
      }
      Object.assign(formats, { 'graph-json': { ...original, read } })
      const large = new TextEncoder().encode(JSON.stringify({ a: [1, 2, 3], b: { c: 'text' }, d: Array.from({ length: 50 }, () => 'x') }))
      const finding = { format: 'graph-json', seed: 1, index: 0, problem: 'TypeError: raw', bytes: large, watch }
      expect(new TextDecoder().decode(minimize(api, finding))).toBe('"b":')
    } finally {
      Object.assign(formats, { 'graph-json': original })
      watch.end()
    }
  })
})

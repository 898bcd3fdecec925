// Mutants of files in each of the formats that come from outside, and all files that were once read wrongly. npm run fuzz:files reads more.
import { readFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import * as front from 'tensorfx'
import * as core from 'tensorfx/core'
import * as debug from 'tensorfx/debug'
import * as dispatch from 'tensorfx/dispatch'
import { destroyProcessGroup, initProcessGroup } from 'tensorfx/distributed'
import * as fsdp from 'tensorfx/distributed/fsdp'
import * as json from 'tensorfx/fx/json'
import * as viewer from 'tensorfx/fx/viewer'
import * as interop from 'tensorfx/interop'
import * as data from 'tensorfx/data'
import * as byRanks from '../../src/checkpoint/byRanks.ts'
import * as checkpointFolder from '../../src/checkpoint/folder.ts'
import * as loading from '../../src/checkpoint/load.ts'
import * as trainingParts from '../../src/checkpoint/parts.ts'
import * as saving from '../../src/checkpoint/save.ts'
import * as checkpointTeam from '../../src/checkpoint/team.ts'
import * as idx from '../../src/data/idx.ts'
import * as npy from '../../src/data/npy.ts'
import * as torchFile from '../../src/interop/stateDict.ts'
import { formats } from '../../scripts/fuzz/files/formats.mjs'
import { Watch, fuzz, judge, minimize } from '../../scripts/fuzz/files/judge.mjs'

const training = { ...loading, ...trainingParts, ...saving, ...byRanks, ...checkpointFolder, ...checkpointTeam }
const api = {
  ...torchFile,
  ...dispatch,
  ...debug,
  ...viewer,
  ...json,
  ...interop,
  ...core,
  ...front,
  fsdp,
  data: { ...data, ...idx, ...npy },
  training,
}
const folder = fileURLToPath(new URL('../goldens/fuzz-files', import.meta.url))

beforeAll(async () => {
  vi.spyOn(console, 'warn').mockImplementation(() => {})
  await initProcessGroup({ backend: 'single' })
})
afterAll(() => {
  destroyProcessGroup()
  vi.restoreAllMocks()
})

/** Mutants of each format. */
const COUNT = 400

describe.each(Object.keys(formats))('%s', (format) => {
  it('mutants are read, or refused by an error of tensorfx, and change nothing', async () => {
    const findings: string[] = []
    const { accepted, refused } = await fuzz(api, format, {
      count: COUNT,
      seed: 1,
      onFinding: ({ index, problem }) => findings.push(`mutant ${index}: ${problem}`),
    })
    expect(findings).toEqual([])
    // Most mutants say something wrong, and some are still files: otherwise the mutants test nothing.
    expect(accepted).toBeGreaterThan(COUNT / 20)
    expect(refused).toBeGreaterThan(COUNT / 4)
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

  it('finds which mutants of a batch are wrong, though prototypes are compared after the whole batch', async () => {
    const original = formats['graph-json']
    const seeds = [new TextEncoder().encode('{}')]
    const kinds: Record<string, (() => unknown) | undefined> = {
      3: () => void Reflect.set(Object.prototype, 'polluted', 1),
      5: () => void Reflect.set(Object.prototype, 'polluted', 1),
      8: () => void new Function('globalThis.__tensorfxFuzzRan = true')(),
      20: () => void Reflect.set(globalThis, 'leaked', 1),
      21: () => void process.getBuiltinModule('node:fs').existsSync('/tensorfx-fuzz-canary/secret.txt'),
      150: () => Reflect.get(JSON.parse('null') as object, 'x'),
      199: () => Object.setPrototypeOf(front.fx.Graph.prototype, null),
    }
    const wrong = async (faults: typeof kinds): Promise<string[]> => {
      const findings: string[] = []
      let made = 0
      const mutate = (): Uint8Array => new TextEncoder().encode(String(made++))
      const read = (_: object, bytes: Uint8Array): unknown => faults[new TextDecoder().decode(bytes)]?.()
      Object.assign(formats, { 'graph-json': { ...original, seeds: () => seeds, mutate, read } })
      await fuzz(api, 'graph-json', { count: 250, seed: 1, onFinding: ({ index, problem }) => findings.push(`${index}: ${problem}`) })
      return findings
    }
    const parent: unknown = Object.getPrototypeOf(front.fx.Graph.prototype)
    try {
      expect(await wrong(kinds)).toEqual([
        '3: a prototype was changed',
        '5: a prototype was changed',
        '8: code of the file ran',
        '20: a prototype was changed',
        '21: the file /tensorfx-fuzz-canary/secret.txt was opened',
        expect.stringMatching(/^150: TypeError: /),
        '199: a prototype was changed',
      ])
      expect(Object.getPrototypeOf(front.fx.Graph.prototype)).toBe(parent)
      expect({}).not.toHaveProperty('polluted')
      const held: unknown[] = []
      expect(await wrong({ 7: () => void held.push(new Uint8Array(100e6)) })).toEqual([expect.stringMatching(/^7: took \d+ MB for a file/)])
      expect(held).toHaveLength(1)
      // Two seconds by the clock, in which the processor has computed, or waited.
      const [now, cpu] = [vi.spyOn(performance, 'now'), vi.spyOn(process, 'cpuUsage')]
      let [passed, computed] = [0, 0]
      now.mockImplementation(() => passed)
      cpu.mockImplementation((start) => ({ user: 1000 * computed - (start?.user ?? 0), system: 0 }))
      const computes = (): void => void (computed += 2000)
      const waits = (): void => void (passed += 2000)
      expect(await wrong({ 7: () => [waits(), computes()] })).toEqual(['7: took 2000 ms'])
      expect(await wrong({ 7: waits })).toEqual([])
      now.mockRestore()
      cpu.mockRestore()
      // Only the first time: no single mutant can be named.
      let times = 0
      const once = (): void => {
        if (times++ === 0) Reflect.set(Object.prototype, 'polluted', 1)
      }
      expect(await wrong({ 130: once })).toEqual(['100: a prototype was changed by several of 100 mutants'])
    } finally {
      Object.assign(formats, { 'graph-json': original })
    }
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

// What the levels cost and leave alone: the files of level 3 do not grow with the number of runs, and level 4 compares graphs that draw random numbers without
// changing what they draw.
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { config, graphBreak } from 'tensorfx/compile'
import { MemoryFileStore, fileStore, setFileStore, setLogSink } from 'tensorfx/debug'
import { F } from 'tensorfx/nn'
import { removeFolder } from '../helpers/folder.ts'
import { resetConfig } from './inProcess.ts'
import { distUrl, folderWith, launcherIn, readRepro, runScript } from './processes.ts'

const nodeStore = fileStore()
beforeEach(() => void setLogSink(() => {}))
afterEach(() => {
  setLogSink(null)
  setFileStore(nodeStore)
  resetConfig()
})

describe('level 3', () => {
  const weight = torch.randn([64, 64])
  const models: Readonly<Record<string, (x: Tensor) => Tensor>> = {
    'one graph': (x) => torch.relu(x.matmul(weight)),
    'two graphs with a tensor in common': (x) => {
      const y = torch.sin(x)
      graphBreak()
      return y.add(x).matmul(weight)
    },
  }

  it.each(['dynamo', 'aot'].flatMap((after) => Object.keys(models).map((name) => [after, name] as const)))(
    'after %s keeps the inputs of the last runs only, and no more files than for these: %s',
    (reproAfter, name) => {
      const store = new MemoryFileStore()
      setFileStore(store)
      Object.assign(config, { reproAfter, reproLevel: 3 })
      const run = compile(models[name] ?? torch.sin)
      const filesAfter = (runs: number): number => {
        for (let i = 0; i < runs; i++) run(torch.randn([64, 64])).toArray()
        return store.files.size
      }
      const files = filesAfter(config.reproHistory)
      expect(files).toBeGreaterThan(config.reproHistory)
      expect(filesAfter(12)).toBe(files)
      // The launcher has all that it needs.
      const launcher = [...store.files.keys()].find((path) => path.endsWith('minifier_launcher.mjs')) ?? ''
      const hashes = [...new TextDecoder().decode(store.read(launcher) ?? undefined).matchAll(/reader\.storage\('(\w+)'/g)].map(
        (match) => match[1] ?? '',
      )
      expect(hashes.length).toBeGreaterThan(0)
      for (const hash of hashes) expect([...store.files.keys()].some((path) => path.endsWith(`storages/${hash}`))).toBe(true)
    },
  )
})

const noisy = (x: Tensor): Tensor =>
  F.dropout(torch.sin(x), { p: 0.5 })
    .add(torch.randn([3]))
    .mul(torch.randLike(x))

describe('level 4', () => {
  it.each([
    ['dynamo', 'inductor'],
    ['dynamo', 'aot_eager'],
    ['aot', 'inductor'],
    ['aot', 'aot_eager'],
  ] as const)(
    'after %s, with %s: random operators are compared on the same draws, and the program draws what it draws without the debugger',
    (after, backend) => {
      const draws = (reproAfter: 'dynamo' | 'aot' | null): unknown => {
        Object.assign(config, { reproAfter, reproLevel: 4 })
        torch.manualSeed(7)
        const run = compile(noisy, { backend })
        return [1, 2, 3].map(() => run(torch.ones([2, 3])).toArray())
      }
      const store = new MemoryFileStore()
      setFileStore(store)
      expect(draws(after)).toEqual(draws(null))
      expect([...store.files.keys()]).toEqual([])
    },
  )
})

/** A backend that adds 1 to what the operators of that name compute. */
const wrongAt = (name: string): string => `
  import { registerBackend } from '${distUrl('entries/compile.js')}'
  import { Interpreter } from '${distUrl('entries/fx.js')}'
  class Wrong extends Interpreter {
    runNode(node) {
      const value = super.runNode(node)
      return node.name.startsWith('${name}') ? value.add(1) : value
    }
  }
  registerBackend('wrong', (gm) => (...inputs) => new Wrong(gm).run(...inputs), { module: import.meta.url })`

describe('wrong numbers among random operators', { timeout: 240_000 }, () => {
  it.concurrent.each([
    ['beside them, in relu', 'relu', ['relu'], 1],
    // A graph draws from the state of the generator, which it takes as numbers.
    ['in one of them, randn', 'philox_normal', ['philoxNormal'], 0],
  ])('%s, end in a repro', async (_where, name, operators, elements) => {
    const folder = folderWith({
      'backend.mjs': wrongAt(name),
      'program.mjs': `
        import { compile, torch } from '${distUrl('index.js')}'
        import './backend.mjs'
        const f = compile((x) => torch.cos(torch.relu(torch.nn.functional.dropout(torch.sin(x), { p: 0.5 })).add(torch.randn([4]))), { backend: 'wrong' })
        f(torch.randn([8, 4])).toArray()`,
    })
    const first = await runScript(folder, 'program.mjs', [], { env: { TENSORFX_REPRO_AFTER: 'dynamo', TENSORFX_REPRO_LEVEL: '4' } })
    expect([first.how, first.output.includes('AccuracyError')], first.output).toEqual(['exit 1', true])
    const launched = await runScript(folder, launcherIn(folder) ?? '')
    expect(launched.how, launched.output).toBe('exit 0')
    expect(launched.output).not.toContain('comes and goes')
    const repro = join(folder, 'repro.mjs')
    expect(readRepro(repro)).toMatchObject({ operators, elements })
    const again = await runScript(folder, repro)
    expect([again.how, again.output.includes('AccuracyError')]).toEqual(['exit 1', true])
    expect((await runScript(folder, repro, ['--backend', 'eager'])).how).toBe('exit 0')
    removeFolder(folder)
  })
})

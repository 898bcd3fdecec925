// The recorded runs of PyTorch's minifier (test/goldens/minifier/runs.json), done again: the program fails as it did there, the launcher needs at most 0.6 of the
// queries, the repro is never larger, and in a fresh process it fails in the way in which the program failed. Where PyTorch left nothing, or scripts that do not
// work, these runs must end in a repro all the same.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { root } from '../built/node.ts'
import { distUrl, folderWith, launcherIn, readRepro, runScript } from './processes.ts'
import { removeFolder } from '../helpers/folder.ts'
import { tenth } from '../helpers/rotation.ts'

/** What PyTorch did. */
interface Golden {
  readonly exit?: number
  readonly queries?: number | null
  readonly launcherExit?: number | null
  readonly operators?: readonly string[]
  readonly elements?: readonly number[]
}

const goldens = JSON.parse(readFileSync(join(root, 'test/goldens/minifier/runs.json'), 'utf8')) as Readonly<Record<string, Golden>>

/** The name of the error that each kind of failure ends in. */
const ERRORS: Readonly<Record<string, string>> = {
  compile: 'ReluCompileError',
  runtime: 'ReluRuntimeError',
  accuracy: 'AccuracyError',
  toy: 'RangeError: toy backend: cannot compile relu',
}

const toyModule = `
  export function toyBackend(gm) {
    if (String(gm.code).includes('relu')) throw new RangeError('toy backend: cannot compile relu')
    return gm
  }`

function program(kind: string, isModel: boolean): string {
  const backend = kind === 'toy' ? 'toyBackend' : `'relu_${kind}_error_TESTING_ONLY'`
  const chain = `(x) => {
      for (let i = 0; i < 5; i++) x = torch.sin(x)
      x = torch.relu(x)
      for (let i = 0; i < 5; i++) x = torch.cos(x)
      return x
    }`
  const model = `(x) => second(torch.cos(torch.relu(torch.sigmoid(first(torch.sin(x))))))`
  return `
    import { compile, nn, torch } from '${distUrl('index.js')}'
    import { toyBackend } from './toy.mjs'
    const [first, second] = [new nn.Linear(4, 8), new nn.Linear(8, 2)]
    const f = compile(${isModel ? model : chain}, { backend: ${backend} })
    f(torch.randn(${isModel ? '[3, 4]' : '[20, 20]'})).toArray()
    console.log('finished without an exception')`
}

/** The queries that the table of the guide tells. */
function documented(after: string, isModel: boolean): { readonly pytorch: number; readonly tensorfx: number } {
  const page = readFileSync(join(root, 'docs/guide/debugging-a-compile.md'), 'utf8')
  const start = `| ${isModel ? 'a model with two layers' : '11 operators'}, after ${after}`
  const [, , pytorch, , tensorfx] =
    page
      .split('\n')
      .find((line) => line.startsWith(start))
      ?.split('|') ?? []
  return { pytorch: Number(pytorch), tensorfx: Number(tensorfx) }
}

describe('the recorded runs', { timeout: 600_000 }, () => {
  it('are all that PyTorch recorded', () => {
    expect(Object.keys(goldens)).toHaveLength(26)
  })

  it.concurrent.each(tenth(Object.entries(goldens), ([name]) => name))('%s', async (name, golden) => {
    const [after = '', kind = '', level = ''] = name.split('-')
    const error = ERRORS[kind] ?? ''
    const folder = folderWith({ 'program.mjs': program(kind, name.endsWith('-model')), 'toy.mjs': toyModule })
    const env = { TENSORFX_REPRO_AFTER: after, TENSORFX_REPRO_LEVEL: level.slice(1) }
    const first = await runScript(folder, 'program.mjs', [], { env })
    const fails = golden.exit !== 0
    expect(first.how, first.output).toBe(fails ? 'exit 1' : 'exit 0')
    expect(first.output).toContain(fails ? error : 'finished without an exception')
    const launcher = launcherIn(folder)
    const named = kind === 'toy' ? ['--backend', './toy.mjs#toyBackend'] : []
    const repro = join(folder, 'repro.mjs')
    if (kind === 'toy') {
      // A script cannot find a function of the program, and says what it needs.
      expect(first.output).toContain('run the script with --backend ./file.mjs#export')
      expect(first.output.match(/--backend/g)).toHaveLength(1)
      const nameless = await runScript(folder, launcher ?? repro)
      expect(nameless.how).toBe('exit 1')
      expect(nameless.output).toContain('Name it: --backend ./file.mjs#export')
    }
    if (level === 'L1') {
      expect(launcher).toBeNull()
      if (!fails) return
    } else if (!fails) {
      expect(launcher !== null).toBe(level === 'L3')
      if (launcher === null) return
      const launched = await runScript(folder, launcher)
      expect(launched.how).toBe(`exit ${golden.launcherExit ?? 1}`)
      expect(launched.output).toContain('ended without a failure')
      expect(launched.output).toContain('Input graph did not fail the tester')
      return
    } else {
      const launched = await runScript(folder, launcher ?? 'the launcher', named)
      expect(launched.how, launched.output).toBe('exit 0')
      const queries = Number(/^Made (\d+) queries$/m.exec(launched.output)?.[1])
      expect(queries).toBeLessThanOrEqual(0.6 * (golden.queries ?? 24))
      const row = documented(after, name.endsWith('-model'))
      expect([golden.queries ?? row.pytorch, queries]).toEqual([row.pytorch, row.tensorfx])
      const { operators, elements, nodes } = readRepro(repro)
      expect(operators).toEqual(['relu'])
      expect(elements).toBe(1)
      expect(nodes).toBe(3)
    }
    const again = await runScript(folder, repro, level === 'L1' ? named : [])
    expect(again.how).toBe('exit 1')
    expect(again.output).toContain(error)
    removeFolder(folder)
  })
})

// Which backend a script runs: one that a module registers or exports. And failures that other settings would show: of a backward graph, of an environment that is wrong.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { removeFolder } from '../helpers/folder.ts'
import { half, turn } from '../helpers/rotation.ts'
import { distUrl, folderWith, launcherIn, readRepro, runScript } from './processes.ts'

const failing = `(gm) => {
  if (String(gm.code).includes('relu')) throw new RangeError('no relu here')
  return gm
}`

const program = (setup: string, backend: string): string => `
  import { compile, torch } from '${distUrl('index.js')}'
  import { registerBackend } from '${distUrl('entries/compile.js')}'
  ${setup}
  compile((x) => torch.cos(torch.relu(torch.sin(x))), { backend: ${backend} })(torch.randn([3]))`

const env = { TENSORFX_REPRO_AFTER: 'dynamo', TENSORFX_REPRO_LEVEL: '2' }

describe('the backend of a launcher', () => {
  it.concurrent('is imported from the module that registers it', async () => {
    const folder = folderWith({
      'mine.mjs': `import { registerBackend } from '${distUrl('entries/compile.js')}'
        registerBackend('mine', ${failing}, { module: import.meta.url })`,
      'program.mjs': program(`import './mine.mjs'`, `'mine'`),
    })
    const first = await runScript(folder, 'program.mjs', [], { env })
    expect(first.output).toContain('no relu here')
    expect(first.output).not.toContain('--backend')
    expect((await runScript(folder, launcherIn(folder) ?? '')).how).toBe('exit 0')
    const repro = join(folder, 'repro.mjs')
    expect(readRepro(repro).operators).toEqual(['relu'])
    const again = await runScript(folder, repro)
    expect([again.how, again.output.includes('RangeError: no relu here')]).toEqual(['exit 1', true])
    removeFolder(folder)
  })

  const NAMES = ['./exported.mjs#mine', './registered.mjs#theirs']
  const WRONG = [
    ['./exported.mjs#yours', "the module exports no function 'yours', and registers no backend with that name"],
    ['./absent.mjs#mine', 'its module cannot be imported'],
  ] as const

  // Each with one of the names, and with the other one on the next day.
  it.concurrent.each([
    ['registered without a module', `registerBackend('mine', ${failing})`, `'mine'`, turn(NAMES), turn(WRONG)],
    ['a function with the name of another backend', `const inductor = ${failing}`, 'inductor', turn(NAMES.toReversed()), turn(WRONG.toReversed())],
  ])('that is %s is named on the command line, as an export or a registered name', async (_what, setup, backend, names, wrong) => {
    const folder = folderWith({
      'exported.mjs': `export const mine = ${failing}`,
      'registered.mjs': `import { registerBackend } from '${distUrl('entries/compile.js')}'
        registerBackend('theirs', ${failing}, { module: import.meta.url })`,
      'program.mjs': program(setup, backend),
    })
    const first = await runScript(folder, 'program.mjs', [], { env })
    expect(first.output).toContain('run the script with --backend ./file.mjs#export')
    const launcher = launcherIn(folder) ?? ''
    expect(readFileSync(launcher, 'utf8')).toMatch(/\/\/ Needs --backend: .*\n/)
    expect(await runScript(folder, launcher)).toMatchObject({ how: 'exit 1', output: expect.stringContaining('Name it: --backend') as string })
    for (const name of names) {
      const launched = await runScript(folder, launcher, ['--backend', name])
      expect(launched.how, launched.output).toBe('exit 0')
      const again = await runScript(folder, join(folder, 'repro.mjs'))
      expect([again.how, again.output.includes('RangeError: no relu here')]).toEqual(['exit 1', true])
    }
    for (const [name, message] of wrong) expect((await runScript(folder, launcher, ['--backend', name])).output).toContain(message)
    removeFolder(folder)
  })
})

/** Fails on the backward graph of tanh, which multiplies, in that way. */
const backward = (phase: 'compile' | 'run'): string => `
  import { registerBackend } from '${distUrl('entries/compile.js')}'
  registerBackend('backwards', (gm) => {
    const isBad = gm.graph.findNodes({ op: 'placeholder' }).length > 1 || gm.className.includes('backward')
    if (isBad && ${phase === 'compile'}) throw new RangeError('no backward here')
    return (...inputs) => {
      if (isBad) throw new RangeError('no backward here')
      return gm.forward(...inputs)
    }
  }, { module: import.meta.url })`

const training = `
  import { compile, torch } from '${distUrl('index.js')}'
  import './backwards.mjs'
  const x = torch.randn([3])
  x.requiresGrad = true
  compile((x) => torch.tanh(torch.sin(x)), { backend: 'backwards' })(x).sum().backward()`

describe('a backward that fails', () => {
  // Each after one of the tracers, and after the other one on the next day.
  it.concurrent.each([
    ['compile', turn(['dynamo', 'aot'])],
    ['run', turn(['aot', 'dynamo'])],
  ] as const)('in the %s ends in a repro of the backward graph, after dynamo and after aot', async (phase, tracers) => {
    const folder = folderWith({ 'backwards.mjs': backward(phase), 'program.mjs': training })
    for (const TENSORFX_REPRO_AFTER of tracers) {
      removeFolder(join(folder, 'tensorfx_compile_debug'))
      const first = await runScript(folder, 'program.mjs', [], { env: { ...env, TENSORFX_REPRO_AFTER } })
      expect(first.how).toBe('exit 1')
      expect(first.output).toContain('RangeError: no backward here')
      const launched = await runScript(folder, launcherIn(folder) ?? '')
      expect(launched.how, launched.output).toBe('exit 0')
      const again = await runScript(folder, join(folder, 'repro.mjs'))
      expect([again.how, again.output.includes('RangeError: no backward here')]).toEqual(['exit 1', true])
    }
    removeFolder(folder)
  })
})

describe('the environment', () => {
  const MISTAKES = [
    ['TENSORFX_REPRO_LEVEL', 'abc'],
    ['TENSORFX_REPRO_LEVEL', '5'],
    ['TENSORFX_REPRO_LEVEL', ''],
    ['TENSORFX_REPRO_AFTER', 'dynammo'],
    ['TENSORFX_REPRO_TOLERANCE', 'small'],
    ['TENSORFX_REPRO_FORWARD_ONLY', 'maybe'],
  ] as const
  it.concurrent.each(half(MISTAKES))('%s=%s is an error that names it', async (name, value) => {
    const folder = folderWith({ 'program.mjs': `import '${distUrl('index.js')}'` })
    const run = await runScript(folder, 'program.mjs', [], { env: { [name]: value } })
    expect(run.how).toBe('exit 1')
    expect(run.output).toContain(`ArgumentError: ${name}=${value}: `)
    removeFolder(folder)
  })
})

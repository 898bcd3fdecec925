// From a difference between two backends to a script that names both: by program and by command. All run on dist/, each script in a process of its own.
import { cpSync, existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { removeFolder } from '../helpers/folder.ts'
import { runTensorfx } from '../../src/cli/commands.ts'
import { bundledCommand } from '../../scripts/bundled.mjs'
import { distUrl, folderWith, runScript } from './processes.ts'
import type { Ended } from './processes.ts'

// A name that must not be taken apart, by a script or a shell.
const NAME = `it's a "folder" \`$(touch hacked)\` & más`
const work = folderWith()
const folder = join(work, NAME)
afterAll(() => removeFolder(work))

/** Backends whose relu is wrong by 1, as an export and by registration; and one that is right. */
const mine = `
  import { registerBackend } from '${distUrl('entries/compile.js')}'
  import { Interpreter } from '${distUrl('entries/fx.js')}'
  class Wrong extends Interpreter {
    runNode(node) {
      const value = super.runNode(node)
      return node.name.startsWith('relu') ? value.add(1) : value
    }
  }
  export const wrong = (gm) => (...inputs) => new Wrong(gm).run(...inputs)
  export const right = (gm) => gm
  registerBackend('registered', wrong, { module: import.meta.url })`

const program = (rest: string): string => `
  import { mkdirSync, writeFileSync } from 'node:fs'
  import { fx, torch } from '${distUrl('index.js')}'
  import { compareBackends } from '${distUrl('entries/debug.js')}'
  import { saveGraphModule, writeSafetensors } from '${distUrl('entries/interop.js')}'
  const gm = fx.symbolicTrace((x, y) => torch.cos(torch.relu(torch.sin(x)).mul(2)).add(y))
  const inputs = [torch.randn([8, 8]), torch.randn([8, 8])]
  ${rest}`

const comparing = (backend: string, options: string, setup = ''): string =>
  program(`${setup}
  const result = await compareBackends(gm, inputs, { backends: [${backend}, 'eager'] })
  const small = await result.minify([...result.culprits.keys()][0], { against: 'eager', directory: 'repro', ${options} })
  console.log(JSON.stringify({
    path: small.path,
    operators: [...small.gm.graph.nodes].filter((node) => !['placeholder', 'output'].includes(node.op)).map((node) => node.name),
    sizes: small.inputs.map((input) => input.numel),
    checks: small.checks,
  }))`)

let cases = 0
/** A folder of its own with that program in it, run. */
async function inFolder(text: string, script = 'program.mjs'): Promise<{ readonly at: string; readonly ended: Ended }> {
  const at = join(folder, String(cases++))
  const made = folderWith({ [`x/${NAME}/mine.mjs`]: mine, [`x/${NAME}/${script}`]: text })
  cpSync(join(made, 'x', NAME), at, { recursive: true })
  removeFolder(made)
  return { at, ended: await runScript(at, script) }
}

/** The last lines of a comparison's table, without the address of the folder and the error. */
const verdict = (output: string): string[] =>
  output
    .split('\n')
    .filter((line) => /: ('.*differs|no node differs)/.test(line))
    .map((line) => line.replace(/^.*#/, '').replace(/ \(.*/, ''))

describe('a difference between two backends', { timeout: 240_000 }, () => {
  it.concurrent.each([
    ['by its module and export', `'./mine.mjs#wrong'`, '', '', 'wrong'],
    ['by its name, which its module registers', `'registered'`, '', `await import('./mine.mjs')`, 'registered'],
    ['as a function, with its module', 'wrong', `module: './mine.mjs'`, `const { wrong } = await import('./mine.mjs')`, 'wrong'],
  ])('ends in a script that names both, where the backend is given %s', async (_what, backend, options, setup, name) => {
    const { at, ended } = await inFolder(comparing(backend, options, setup))
    expect(ended.how, ended.output).toBe('exit 0')
    const small = JSON.parse(ended.output.trim().split('\n').at(-1) ?? '') as {
      readonly operators: string[]
      readonly sizes: number[]
      readonly checks: number
    }
    expect([small.operators, small.sizes]).toEqual([['relu'], [1]])
    expect(small.checks).toBeLessThanOrEqual(20)
    const script = readFileSync(join(at, 'repro/compare.mjs'), 'utf8')
    expect(script).toMatch(new RegExp(`const backends = \\['[^]*#${name}', 'eager'\\]`))
    // In another working directory, and in a process that has nothing of the program.
    const again = await runScript('/', join(at, 'repro/compare.mjs'))
    expect([again.how, verdict(again.output)]).toEqual(['exit 1', [`${name}: 'relu' differs`, 'eager: no node differs']])
    expect(readdirSync('/')).not.toContain('hacked')
    expect(existsSync(join(at, 'hacked')) || existsSync(join(at, 'repro/hacked'))).toBe(false)
  })

  it.concurrent('that is mended is none: the exit code of the script is 0', async () => {
    const { at } = await inFolder(comparing(`'./mine.mjs#wrong'`, ''))
    writeFileSync(join(at, 'mine.mjs'), `export const wrong = (gm) => gm`)
    expect(await runScript('/', join(at, 'repro/compare.mjs'))).toMatchObject({ how: 'exit 0' })
  })

  it.concurrent.each([
    ['a function of the program', '(gm) => gm', '', `no script can import the backend 'backend'`],
    ['registered without a module', `'nameless'`, '', `no script can import the backend 'nameless'`],
    ['not in the module that is given', 'absent', `module: './mine.mjs'`, `the module exports no function 'absent'`],
    ['in a module that is not there', 'absent', `module: './none.mjs'`, 'its module cannot be imported'],
  ])('of a backend that is %s leaves no script, and says what to do', async (_what, backend, options, message) => {
    const setup = `import { registerBackend } from '${distUrl('entries/compile.js')}'
      const absent = (gm) => (...inputs) => [gm.forward(...inputs).add(1)].at(0)
      registerBackend('nameless', (gm) => absent(gm))`
    const { at, ended } = await inFolder(comparing(backend, options, setup))
    expect(ended.how).toBe('exit 1')
    expect(ended.output).toContain(message)
    expect(existsSync(join(at, 'repro'))).toBe(false)
  })

  it.concurrent('that both backends show is not the difference between them', async () => {
    const text = program(`
      const result = await compareBackends(gm, inputs, { backends: ['./mine.mjs#wrong', 'relu_accuracy_error_TESTING_ONLY'] })
      await result.minify('./mine.mjs#wrong', { against: 'relu_accuracy_error_TESTING_ONLY' })`)
    const { ended } = await inFolder(text)
    expect(ended.output).toContain('Input graph did not fail the tester')
  })
})

describe('tensorfx compare', { timeout: 240_000 }, () => {
  const save = program(`
    mkdirSync('saved')
    writeFileSync('saved/graph.safetensors', saveGraphModule(gm))
    writeFileSync('saved/inputs.safetensors', writeSafetensors(new Map(inputs.map((input, i) => ['input_' + i, input]))))`)
  let at = ''
  beforeAll(async () => {
    const made = await inFolder(save)
    expect(made.ended.how, made.ended.output).toBe('exit 0')
    ;({ at } = made)
  })
  const compare = (...words: readonly string[]): { readonly status: number | null; readonly output: string } => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [bundledCommand, 'compare', ...words], { cwd: at, encoding: 'utf8' })
    return { status, output: stdout + stderr }
  }

  it('prints the errors by node, and its exit code says whether a backend differs', () => {
    const { status, output } = compare('saved', '--backends', 'eager,./mine.mjs#wrong,./mine.mjs#right')
    expect([status, verdict(output)]).toEqual([1, ['eager: no node differs', `wrong: 'relu' differs`, 'right: no node differs']])
    expect(output).toMatch(/^node +target +value +eager +\.\/mine\.mjs#wrong +\.\/mine\.mjs#right\n/)
    expect(compare('saved', '--backends', 'inductor,eager').status).toBe(0)
    expect(compare('saved', '--backends', './mine.mjs#wrong', '--tol', '100').status).toBe(0)
  })

  it('writes the smallest graph, with a script that names the backend that differs and one that is right', async () => {
    const { status, output } = compare('saved', '--backends', 'inductor,./mine.mjs#wrong', '--minify', 'small')
    expect(status).toBe(1)
    expect(output).toMatch(/8 nodes -> 3, in \d+ queries\nWrote the repro: node small\/compare\.mjs/)
    const again = await runScript('/', join(at, 'small/compare.mjs'))
    expect([again.how, verdict(again.output)]).toEqual(['exit 1', [`wrong: 'relu' differs`, 'inductor: no node differs']])
    // What it writes can be compared again.
    expect(compare('small', '--backends', 'eager,./mine.mjs#wrong').status).toBe(1)
  })

  it('compares gradients, and searches for the worst input', () => {
    const { status, output } = compare('saved', '--backends', './mine.mjs#wrong,eager', '--gradients', '--worst-input', '5')
    expect([status, verdict(output)]).toEqual([1, [`wrong: 'relu' differs`, 'eager: no node differs']])
    expect(output).toMatch(/^gradient +value/m)
    expect(output).toMatch(/^input 1 +float32/m)
    expect(output).toMatch(/^eager: the worst inputs found are/m)
  })

  it.each([
    [['saved', '--backends', 'eager', '--worst-input', '0'], `--worst-input needs a whole number of at least 1, got '0'`],
    [[], 'usage: tensorfx compare FOLDER'],
    [['saved'], '--backends is missing'],
    [['saved', '--backends'], '--backends needs a value'],
    [['saved', '--backend', 'eager'], `unknown option '--backend'. Did you mean '--backends'?`],
    [['saved', 'other', '--backends', 'eager'], 'expected one folder, got 2'],
    [['saved', '--backends', 'eager', '--tol', 'small'], `--tol needs a positive number, got 'small'`],
    [['saved', '--backends', 'eager', '--reference', 'float32'], `--reference is float64 or eager, got 'float32'`],
    [['saved', '--backends', 'inductr'], 'inductr'],
    [['nowhere', '--backends', 'eager'], 'there is no nowhere/graph.safetensors'],
  ])('%j ends with exit code 2 and a reason', async (words, reason) => {
    const { text, code } = await runTensorfx(['compare', ...words.map((word) => (word === 'saved' ? join(at, word) : word))], {
      print: () => {},
      note: () => {},
    })
    expect(code).toBe(2)
    expect(text).toContain(reason)
  })
})

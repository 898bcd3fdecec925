// The command line of scripts, the ways to die, and backends that are named by their module.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { ArgumentError } from 'tensorfx'
import { registerBackend } from 'tensorfx/compile'
import { importBackend, isModuleBackend, whyNotNameable } from '../../src/debug/backendModule.ts'
import { parseCommandLine, USAGE } from '../../src/debug/commandLine.ts'
import type { CommandLine } from '../../src/debug/commandLine.ts'
import { deathOf, isDeath, isDeathKind, isDeathSignature, isSameDeath } from '../../src/debug/death.ts'
import { checkFailureSpec } from '../../src/debug/judge.ts'
import { lookupBackend } from '../../src/dynamo/index.ts'

const usual = (): CommandLine => ({
  command: 'run',
  backend: 'eager',
  accuracy: 'none',
  checkStr: null,
  signature: 'Error||x',
  death: 'crash',
  onlyFwd: false,
  saveDir: '/inputs',
  isolate: true,
  maxGranularity: null,
  timeoutMs: 30_000,
  runs: 1,
})

describe('the command line', () => {
  it.each<[string, Partial<CommandLine>]>([
    ['', {}],
    ['minify', { command: 'minify' }],
    ['analyze', { command: 'analyze' }],
    ['minify run', { command: 'run' }],
    ['--accuracy', { accuracy: 'accuracy' }],
    ['--strict-accuracy', { accuracy: 'strict_accuracy' }],
    ['--accuracy --no-accuracy', { accuracy: 'none' }],
    ['--check-str minify', { checkStr: 'minify' }],
    ['--death hang', { death: 'hang' }],
    ['--no-death', { death: null }],
    ['--no-isolate', { isolate: false }],
    ['--no-isolate --isolate', { isolate: true }],
    ['--max-granularity 4', { maxGranularity: 4 }],
    ['--timeout-ms 1', { timeoutMs: 1 }],
    ['--runs 7', { runs: 7 }],
    ['--save-dir /other', { saveDir: '/other' }],
    ['--no-save-dir', { saveDir: null }],
    ['--backend inductor', { backend: 'inductor' }],
    ['--only-fwd', { onlyFwd: true }],
    ['minify --runs 2 --accuracy --backend ./b.mjs#x', { command: 'minify', runs: 2, accuracy: 'accuracy', backend: './b.mjs#x' }],
  ])('%s', (words, changes) => {
    const line = usual()
    expect(parseCommandLine(words.split(' ').filter(Boolean), line)).toBe(true)
    expect(line).toEqual({ ...usual(), ...changes })
  })

  it('asks for help', () => {
    expect([parseCommandLine(['--help'], usual()), parseCommandLine(['minify', '-h'], usual())]).toEqual([false, false])
  })

  it('has each option in its usage', () => {
    for (const [option] of USAGE.matchAll(/--[a-z-]+/g)) {
      const value = option === '--death' ? ['any'] : /^--(check-str|max|timeout|runs|save-dir|backend)/.test(option) ? ['1'] : []
      expect(parseCommandLine([option, ...value], usual()), option).toBe(true)
    }
  })

  it.each([
    ['--runs 1.5', "--runs needs a whole number that is at least 1, got '1.5'."],
    ['--runs 0', "--runs needs a whole number that is at least 1, got '0'."],
    ['--runs', '--runs needs a value.\nusage:'],
    ['--isolated', "unknown argument '--isolated'. Did you mean '--isolate'?\nusage:"],
    ['minfy', "unknown argument 'minfy'. Did you mean 'minify'?"],
    ['xyzzyxyzzy', "unknown argument 'xyzzyxyzzy'.\nusage:"],
  ])('%s is an error', (words, message) => {
    const parse = (): unknown => parseCommandLine(words.split(' '), usual())
    expect(parse).toThrow(ArgumentError)
    expect(parse).toThrow(message)
  })
})

describe('a death', () => {
  it.each([
    ['exit code 7', 'exit 7'],
    ['exit code 0', 'exit 0'],
    ['exit code 127', 'exit 127'],
    ['exit code 128', 'crash'],
    ['exit code 3221225477', 'crash'],
    ['signal SIGKILL', 'crash'],
    ['spawn ENOENT: exit code 7', 'crash'],
    ['exit code 7 or so', 'crash'],
  ])('%s is %s', (reason, death) => {
    expect(deathOf(reason)).toBe(death)
  })

  it.each([
    ['any', 'exit 3', true],
    ['any', 'hang', true],
    ['crash', 'crash', true],
    ['crash', 'hang', true],
    ['crash', 'exit 3', false],
    ['hang', 'crash', false],
    ['exit 3', 'exit 3', true],
    ['exit 3', 'hang', false],
  ])('looking for %s, %s counts: %s', (wanted, death, counts) => {
    expect(isSameDeath(wanted, death)).toBe(counts)
  })

  it('has a kind that is known', () => {
    const known = ['any', 'crash', 'hang', 'exit 0', 'exit 12']
    expect(known.map(isDeathKind)).toEqual([true, true, true, true, true])
    expect(known.map(isDeathSignature)).toEqual([false, true, true, true, true])
    expect(['', 'exit', 'exit x', 'an exit 1', 'exit 1x', 'Error||exit 1'].filter(isDeathKind)).toEqual([])
    expect(['crash', null, undefined].map(isDeath)).toEqual([true, false, false])
  })
})

it('a spec from outside is checked', () => {
  const spec = { backend: 'eager', accuracy: 'none', checkStr: null, signature: null, onlyFwd: false } as const
  for (const good of [
    spec,
    { ...spec, accuracy: 'accuracy' },
    { ...spec, accuracy: 'strict_accuracy', death: null },
    { ...spec, death: 'exit 3' },
  ] as const)
    expect(checkFailureSpec(good)).toBe(good)
  expect(() => checkFailureSpec({ ...spec, accuracy: 'exact' as never })).toThrow(
    "accuracy must be 'none', 'accuracy' or 'strict_accuracy', got 'exact'.",
  )
  expect(() => checkFailureSpec({ ...spec, death: 'murder' })).toThrow("death must be 'crash', 'hang', 'any', 'exit N' or null, got 'murder'.")
})

describe('a backend that is named by its module', () => {
  const work = mkdtempSync(join(tmpdir(), 'tensorfx-named-'))
  afterAll(() => rmSync(work, { recursive: true, force: true }))
  const file = join(work, 'backends.mjs')
  writeFileSync(file, `export const mine = (gm) => gm\nexport const number = 3`)
  const url = pathToFileURL(file).href

  it('has a # behind the name of the module', () => {
    expect(['./a.mjs#b', 'eager', '#b', 'a#'].map(isModuleBackend)).toEqual([true, false, false, true])
  })

  it('is registered under its address; a path is relative to the working directory', async () => {
    const wanted = { name: `${url}#mine`, reference: `${url}#mine`, imports: [url] }
    for (const text of [`${file}#mine`, `${relative(process.cwd(), file)}#mine`, `${url}#mine`]) expect(await importBackend(text)).toEqual(wanted)
    expect(lookupBackend(wanted.name).name).toBe('mine')
    expect(whyNotNameable(wanted.name)).toBeNull()
  })

  it('may be one that is registered by that name', async () => {
    registerBackend('registered_elsewhere', (gm) => gm)
    expect(await importBackend(`${file}#registered_elsewhere`)).toEqual({
      name: 'registered_elsewhere',
      reference: `${url}#registered_elsewhere`,
      imports: [url],
    })
  })

  it('is neither: an error', async () => {
    const message = (name: string): string =>
      `the backend ${file}#${name}: the module exports no function '${name}', and registers no backend with that name.`
    await expect(importBackend(`${file}#number`)).rejects.toThrow(message('number'))
    await expect(importBackend(`${file}#absent`)).rejects.toThrow(message('absent'))
    await expect(importBackend(`${join(work, 'absent.mjs')}#mine`)).rejects.toThrow(/its module cannot be imported: /)
  })

  it('a function of the program is none', () => {
    expect(whyNotNameable('some function')).toMatch(/^the backend 'some function' is a function that a script cannot import\. Register it/)
    expect(whyNotNameable('inductor')).toBeNull()
  })
})

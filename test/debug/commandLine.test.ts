// The command line of scripts, the ways to die, and backends that are named by their module.
import { writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it, vi } from 'vitest'
import { ArgumentError } from 'tensorfx'
import { listBackends, registerBackend } from 'tensorfx/compile'
import { temporaryFolder } from '../helpers/folder.ts'
import { importBackend, isModuleBackend, whyNotNameable } from '../../src/debug/script/backendModule.ts'
import { parseCommandLine } from '../../src/debug/script/commandLine.ts'
import type { CommandLine } from '../../src/debug/script/commandLine.ts'
import { deathOf, isDeath, isDeathKind, isDeathSignature, isSameDeath } from '../../src/debug/judge/death.ts'
import { checkFailureSpec } from '../../src/debug/judge/judge.ts'
import { lookupBackend } from '../../src/dynamo/index.ts'

const usual = (): CommandLine => ({
  command: 'run',
  backend: 'eager',
  accuracy: 'none',
  checkStr: null,
  signature: 'Error||x',
  death: 'crash',
  onlyFwd: false,
  contract: false,
  saveDir: '/inputs',
  random: false,
  tracingMode: 'real',
  sizes: new Map<string, number>(),
  isolate: true,
  maxGranularity: null,
  timeoutMs: 30_000,
  runs: 1,
  skipSanity: false,
  skipCheckDeterministic: false,
  offloadToDisk: false,
  valuesDir: null,
  savedEager: false,
  savedCompiled: false,
  savedFloat64: false,
})

describe('the command line', () => {
  it.each<[string, Partial<CommandLine>]>([
    ['', {}],
    ['minify', { command: 'minify' }],
    ['analyze', { command: 'analyze' }],
    ['minifier-query', { command: 'minifier-query' }],
    ['get_args', { command: 'get_args' }],
    ['--accuracy', { accuracy: 'accuracy' }],
    ['--strict-accuracy', { accuracy: 'strict_accuracy' }],
    ['--no-accuracy', { accuracy: 'none' }],
    ['--check-str minify', { checkStr: 'minify' }],
    ['--check-str=--accuracy', { checkStr: '--accuracy' }],
    ['--death hang', { death: 'hang' }],
    ['--no-death', { death: null }],
    ['--no-isolate', { isolate: false }],
    ['minify --max-granularity 4', { command: 'minify', maxGranularity: 4 }],
    ['minify --timeout-ms 1', { command: 'minify', timeoutMs: 1 }],
    ['--runs 72', { runs: 72 }],
    ['--save-dir /other', { saveDir: '/other', valuesDir: '/other' }],
    ['--no-save-dir', { saveDir: null, random: true }],
    ['--no-save-dir --save-dir /other', { saveDir: '/other', valuesDir: '/other' }],
    ['--backend inductor', { backend: 'inductor' }],
    ['--only-fwd', { onlyFwd: true }],
    ['--tracing-mode fake', { tracingMode: 'fake' }],
    ['--tracing-mode=real', {}],
    ['--tracing-mode symbolic', { tracingMode: 'symbolic' }],
    [
      '--size s0=7 --size s12=0',
      {
        tracingMode: 'symbolic',
        sizes: new Map([
          ['s0', 7],
          ['s12', 0],
        ]),
      },
    ],
    ['--skip-sanity minify', { command: 'minify', skipSanity: true }],
    ['minify --offload-to-disk --skip-saving-eager-intermediates', { command: 'minify', offloadToDisk: true, savedEager: true }],
    [
      'analyze --skip-saving-inductor-intermediates --skip-saving-float64-intermediates --skip-check-deterministic --stable-hash',
      { command: 'analyze', skipCheckDeterministic: true, savedCompiled: true, savedFloat64: true },
    ],
    ['run --runs 2 --accuracy --backend ./b.mjs#x', { runs: 2, accuracy: 'accuracy', backend: './b.mjs#x' }],
  ])('%s', (words, changes) => {
    const line = usual()
    expect(parseCommandLine(words.split(' ').filter(Boolean), line)).toBeNull()
    expect(line).toEqual({ ...usual(), ...changes })
  })

  it.each([
    ['--runs 1.5', "--runs needs a whole number that is at least 1, got '1.5'."],
    ['--runs 0', "--runs needs a whole number that is at least 1, got '0'."],
    ['--runs 0x10', "--runs needs a whole number that is at least 1, got '0x10'."],
    ['--runs', '--runs needs a value.\nusage:'],
    ['minify --max-granularity 6', "--max-granularity needs a power of two, got '6'."],
    ['--isolated', "unknown argument '--isolated'. Did you mean '--isolate'?\nusage:"],
    ['minfy', "unknown argument 'minfy'. Did you mean 'minify'?"],
    ['xyzzyxyzzy', "unknown argument 'xyzzyxyzzy'.\nusage:"],
    ['other.mjs', "unknown argument 'other.mjs': a script takes no other script."],
    ['minify run', "the command 'run' follows 'minify': give one.\nusage:"],
    ['run --accuracy --no-accuracy', '--no-accuracy is not allowed with --accuracy.\nusage: repro.mjs run [-h]'],
    ['minify --isolate --no-isolate', '--no-isolate is not allowed with --isolate.\nusage: repro.mjs minify [-h]'],
    ['run --skip-sanity', '--skip-sanity is no option of run, but of minify.\nusage: repro.mjs run'],
    ['--only-fwd=1', '--only-fwd takes no value.'],
    ['--size s0', "--size is a symbol and a number, such as s0=7, got 's0'."],
    ['--tracing-mode x', "--tracing-mode is real, fake or symbolic, got 'x'."],
    ['--death slowly', "--death is crash, hang, any or 'exit N', got 'slowly'."],
  ])('%s is an error', (words, message) => {
    const parse = (): unknown => parseCommandLine(words.split(' '), usual())
    expect(parse).toThrow(ArgumentError)
    expect(parse).toThrow(message)
  })

  it('sets nothing if any of it is wrong', () => {
    const line = usual()
    expect(() => parseCommandLine(['--accuracy', '--skip-sanity'], line)).toThrow()
    expect(line).toEqual(usual())
  })
})

describe('its help', () => {
  const helpOf = (...words: string[]): string => parseCommandLine([...words, '--help'], usual()) ?? ''
  const text = helpOf()

  it('of the script names the commands, and its settings', () => {
    expect(text).toMatchInlineSnapshot(`
      "usage: repro.mjs [-h] {run,minify,analyze,minifier-query,get_args} [options]

      A repro script. Without arguments it defaults to 'run'; 'run --help' lists the
      options of that command, and so for the others.

      default settings on this script:
        accuracy="none"
        tracingMode="real"
        saveDir="/inputs"
        checkStr=null
        backend="eager"

      commands:
        run                   run the repro with its backend and with eager: exit code 1 if it fails, 0 if
                              it passes, 2 if eager fails too
        minify                run the minifier on the repro
        analyze               compare every intermediate value with eager and float64
        minifier-query        judge the graph as the minifier judges a candidate: exit code 1 if it still
                              fails, 0 if it passes
        get_args              load the graph and its inputs, and say what they are

      options:
        -h, --help            show this help message and exit"
    `)
  })

  it('of a command names its options', () => {
    expect(helpOf('analyze')).toMatchInlineSnapshot(`
      "usage: repro.mjs analyze [-h] [--no-accuracy | --accuracy | --strict-accuracy] [--save-dir DIR]
                               [--no-save-dir] [--tracing-mode {real,fake,symbolic}] [--size SYMBOL=N]
                               [--backend BACKEND] [--skip-saving-inductor-intermediates]
                               [--skip-saving-float64-intermediates] [--skip-check-deterministic]
                               [--stable-hash]

      compare every intermediate value with eager and float64

      options:
        -h, --help            show this help message and exit
        --no-accuracy         errors count; numbers are not looked at
        --accuracy            wrong numbers count: floating-point results that are further from the
                              float64 reference than those of eager, beyond the tolerance. The compiled
                              graph may differ from eager where it is closer to the reference. Differences
                              in integers and booleans alone do not count, since they are often the effect
                              of a rounding before them.
        --strict-accuracy     any difference counts, also one in integers and booleans. The minifier makes
                              progress in more cases, and may end at a comparison whose inputs are only
                              rounded differently.
        --save-dir DIR        folder that holds the storages which are not in the script; analyze saves
                              the values that it compares there
        --no-save-dir         use random numbers for the storages which are not in the script; says so
        --tracing-mode {real,fake,symbolic}
                              real (default): the graph is used as it is. fake: it runs on fake tensors
                              first, which gives its nodes shapes. symbolic: with symbols for the sizes
                              that the script says may differ from call to call, or for all if it names
                              none
        --size SYMBOL=N       another value of a size, with the inputs repeated or cut; implies
                              --tracing-mode symbolic, which says what the sizes are. May be given several
                              times
        --backend BACKEND     another backend: a registered name, or ./file.mjs#export
        --skip-saving-inductor-intermediates
                              take the values of the backend that an earlier run saved in the folder
                              --save-dir
        --skip-saving-float64-intermediates
                              take the values in float64 that an earlier run saved in the folder
                              --save-dir
        --skip-check-deterministic
                              do not check that the backend computes the same twice
        --stable-hash         name data by SHA-1, which tensorfx always does"
    `)
    expect(parseCommandLine(['-h', 'run'], usual())).toBe(helpOf('run'))
  })

  /** PyTorch's, whose help of `accuracy` and the like says the same in other words. */
  const PYTORCH: Readonly<Record<string, string>> = {
    run: '--no-accuracy | --accuracy | --strict-accuracy, --save-dir DIR, --no-save-dir, --tracing-mode {real,fake,symbolic}',
    minify:
      '--no-accuracy | --accuracy | --strict-accuracy, --save-dir DIR, --no-save-dir, --tracing-mode {real,fake,symbolic}, --isolate | --no-isolate, --skip-saving-eager-intermediates, --offload-to-disk, --skip-sanity, --max-granularity MAX_GRANULARITY, --check-str CHECK_STR',
    'minifier-query':
      '--no-accuracy | --accuracy | --strict-accuracy, --save-dir DIR, --no-save-dir, --tracing-mode {real,fake,symbolic}, --check-str CHECK_STR',
    analyze:
      '--no-accuracy | --accuracy | --strict-accuracy, --save-dir DIR, --no-save-dir, --tracing-mode {real,fake,symbolic}, --skip-saving-inductor-intermediates, --skip-saving-float64-intermediates, --skip-check-deterministic, --stable-hash',
    get_args: '--no-accuracy | --accuracy | --strict-accuracy, --save-dir DIR, --no-save-dir, --tracing-mode {real,fake,symbolic}',
  }

  it.each(Object.entries(PYTORCH))("of %s has PyTorch's options (difference: repro-commands)", (command, options) => {
    const help = helpOf(command)
    const usage = help.split('\n\n')[0]?.replace(/\s+/g, ' ') ?? ''
    for (const option of options.split(', ')) {
      expect(usage).toContain(`[${option}]`)
      for (const term of option.split(' | ')) expect(help).toMatch(new RegExp(`^  ${term.replace(/[{}]/g, '\\$&')}( {2,}|$)`, 'm'))
    }
    expect(Math.max(...help.split('\n').map((line) => line.length))).toBeLessThanOrEqual(100)
  })

  it('has each option, which the command takes', () => {
    for (const command of Object.keys(PYTORCH))
      for (const [, option = '', value] of helpOf(command).matchAll(/^ {2}(--[a-z\d-]+)( \S+)?/gm)) {
        const words =
          value === undefined ? [] : option === '--death' ? ['any'] : option === '--tracing-mode' ? ['fake'] : option === '--size' ? ['s0=2'] : ['2']
        expect(parseCommandLine([command, option, ...words], usual()), `${command} ${option}`).toBeNull()
      }
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
  const work = temporaryFolder('tensorfx-named-')
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
    expect(listBackends()).not.toContain(wanted.name)
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
    const thrown = [`${file}#absent`, `${join(work, 'absent.mjs')}#mine`].map((text) => importBackend(text).catch((error: unknown) => error))
    for (const error of await Promise.all(thrown)) expect(error).toMatchObject({ name: 'ArgumentError', cause: expect.any(Error) })
    // A scheme comes first, and has no slashes.
    for (const path of ['no/where:7.mjs', '7:8.mjs']) {
      const error: unknown = await importBackend(`${path}#mine`).catch((cause: unknown) => cause)
      expect(String(error)).toContain(pathToFileURL(path).pathname)
    }
    // In a page there are no paths.
    vi.stubGlobal('process', {})
    const inPage = importBackend('./absent.mjs#mine')
    vi.unstubAllGlobals()
    await expect(inPage).rejects.toThrow(/^the backend \.\/absent\.mjs#mine: its module cannot be imported: /)
    // A drive of Windows is no scheme of a URL.
    for (const path of ['C:\\none.mjs', 'c:/none.mjs'])
      await expect(importBackend(`${path}#mine`)).rejects.toThrow(
        /its module cannot be imported: .*(Cannot find|Invalid module|Failed to load|Does the file exist)/s,
      )
  })

  it('a function of the program is none', () => {
    expect(whyNotNameable('some function')).toMatch(/^the backend 'some function' is a function that a script cannot import\. Register it/)
    expect(whyNotNameable('inductor')).toBeNull()
  })
})

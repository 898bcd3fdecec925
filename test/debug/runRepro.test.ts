// What a repro script does when it runs: with its backend and with eager, by its command line, and with inputs that may be missing.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { registerBackend } from 'tensorfx/compile'
import { AccuracyError, InputWriter, MemoryFileStore, childEntry, fileStore, runRepro, setFileStore, setLogSink } from 'tensorfx/debug'
import type { InputReader, LoadArgs, RunReproOptions } from 'tensorfx/debug'
import { temporaryFolder } from '../helpers/folder.ts'
import { present } from '../../src/errors/index.ts'
import { VERSION } from '../../src/version.ts'
import { processWith } from './inProcess.ts'
import { distUrl } from './processes.ts'

childEntry.url = distUrl('entries/debugChild.js')

const work = temporaryFolder('tensorfx-repro-')
const nodeStore = fileStore()
afterEach(() => {
  setLogSink(null)
  setFileStore(nodeStore)
  vi.unstubAllGlobals()
})

describe('runRepro', () => {
  class Repro extends nn.Module {
    forward(x: Tensor): Tensor[] {
      return [torch.cos(torch.relu(torch.sin(x)))]
    }
  }
  const loadArgs = (reader: { args: unknown[] }): void => void reader.args.push(torch.ones([2]))
  const usual = {
    after: 'dynamo',
    command: 'run',
    backend: 'eager',
    accuracy: 'none',
    checkStr: null,
    signature: null,
    onlyFwd: false,
    imports: [],
    saveDir: null,
  } as const
  let exitCode: number | undefined
  let printed = ''
  const run = async (words: readonly string[], options: Partial<RunReproOptions> = {}, args: LoadArgs = loadArgs): Promise<string> => {
    const host = processWith(['node', 'repro.mjs', ...words])
    const print = vi.spyOn(console, 'log').mockImplementation(() => {})
    try {
      await runRepro(Repro, args, { ...usual, ...options })
      return print.mock.calls.flat().join('\n')
    } finally {
      exitCode = host.exitCode
      printed = print.mock.calls.flat().join('\n')
      print.mockRestore()
    }
  }

  it('runs what passes, and says so', async () => {
    expect([await run([]), exitCode]).toEqual(['with eager: passes\nThe repro ran without an error.', undefined])
    expect(await run(['--runs', '3', '--backend', 'inductor'])).toBe(
      'with inductor: passes; with eager: passes\nThe repro ran without an error (3 times).',
    )
    expect(await run(['--accuracy'])).toBe('with eager: passes\nThe repro ran, and its numbers are right.')
  })

  it('throws what the failure throws', async () => {
    await expect(run([], { backend: 'relu_compile_error_TESTING_ONLY' })).rejects.toThrow('relu found in graph')
    await expect(run(['--backend', 'relu_runtime_error_TESTING_ONLY'])).rejects.toThrow('ReluRuntimeError')
    const wrong = run([], { backend: 'relu_accuracy_error_TESTING_ONLY', accuracy: 'accuracy' })
    await expect(wrong).rejects.toThrow(AccuracyError)
    await expect(wrong).rejects.toMatchObject({ cause: expect.stringContaining('RMSE') as string })
  })

  it('has every operator of the script in its graph, also those that take constants alone', async () => {
    class Constants extends nn.Module {
      forward(x: Tensor): Tensor[] {
        const full = torch.ops.tensorfx.full([2], 3, 'float32')
        const range = torch.ops.tensorfx.range(0, 1, 2, 'float32')
        const mul = torch.mul(full, range)
        return [torch.add(x, mul), full]
      }
    }
    const got = await runRepro(Constants, loadArgs, { ...usual, command: 'get_args' })
    expect([...present(got, 'the graph').gm.graph.nodes].map((node) => node.name)).toEqual(['x', 'full', 'range_1', 'mul', 'add', 'output'])
    registerBackend('no_full', (gm) => {
      if (gm.code.includes('.full(')) throw new RangeError('no kernel for full')
      return gm
    })
    await expect(runRepro(Constants, loadArgs, { ...usual, backend: 'no_full' })).rejects.toThrow('no kernel for full')
  })

  it('runs the backward unless it is told not to, and refuses scripts of newer versions', async () => {
    registerBackend('no_backward', (gm) => {
      if (gm.graph.findNodes({ op: 'placeholder' }).some((node) => node.name.startsWith('tangents'))) throw new RangeError('no backward')
      return gm
    })
    const given = (reader: { args: unknown[] }): void => void reader.args.push(torch.ones([2]).requiresGrad_())
    await expect(run([], { backend: 'no_backward' }, given)).rejects.toThrow('no backward')
    expect(await run(['--only-fwd'], { backend: 'no_backward' }, given)).toMatch(/^with no_backward: passes; with eager: passes\n/)
    await expect(run([], {}, Object.assign(given, { version: 1 }))).rejects.toThrow(
      'this repro was made by a newer tensorfx (loadArgs.version 1); update tensorfx.',
    )
    expect(await run([], {}, Object.assign(given, { version: 0 }))).toContain('passes')
    await expect(run([], { save: null } as never)).rejects.toThrow(/runRepro: .*save/)
  })

  it('analyzes, and prints its usage', async () => {
    expect(await run(['analyze', '--backend', 'relu_accuracy_error_TESTING_ONLY'])).toContain('DIVERGED at relu')
    expect(await run(['--help'])).toContain('usage: repro.mjs [-h]')
    expect(await run(['minify', '--help'])).toContain('usage: repro.mjs minify [-h]')
  })

  it('finds its inputs by URL, also where there is no Node', async () => {
    const store = new MemoryFileStore()
    setFileStore(store)
    const x = torch.tensor([1, -2])
    const writer = new InputWriter(store, '/saved', { inlineBytes: 0 })
    writer.add('x', x)
    const loads = new Function('reader', writer.lines().join('\n')) as LoadArgs
    const passed = 'with eager: passes\nThe repro ran without an error.'
    expect(await run([], { saveDir: new URL('file:///saved') }, loads)).toBe(passed)
    vi.stubGlobal('process', undefined)
    const print = vi.spyOn(console, 'log').mockImplementation(() => {})
    const options = { after: 'aot', command: 'run', backend: 'eager', accuracy: 'none', checkStr: null, signature: null, onlyFwd: true } as const
    store.write(`https://a.page/saved/storages/${[...store.files.keys()][0]?.split('/').at(-1) ?? ''}`, [...store.files.values()][0] ?? '')
    await runRepro(Repro, loads, { ...options, imports: [], saveDir: new URL('https://a.page/saved') })
    vi.unstubAllGlobals()
    expect(print.mock.calls.flat().join('\n')).toBe(passed)
  })

  it('never runs on numbers that it made up, unless it is asked to, and says so (difference: repro-data)', async () => {
    setFileStore(new MemoryFileStore())
    const loads = (reader: InputReader): void => void reader.tensor(reader.storage('0'.repeat(40), 40), [10])
    const missing = `there is no file /elsewhere/storages/${'0'.repeat(40)}. Copy the folder 'storages'`
    for (const command of ['run', 'minify', 'analyze', 'minifier-query', 'get_args'])
      await expect(run([command], { saveDir: new URL('file:///elsewhere') }, loads)).rejects.toThrow(missing)
    await expect(run([], {}, loads)).rejects.toThrow('it was told of no folder')
    const lines: string[] = []
    setLogSink((level, line) => void lines.push(`${level}: ${line}`))
    const text = await run(['--no-save-dir', '--accuracy'], { saveDir: new URL('file:///elsewhere') }, loads)
    expect(lines).toEqual(['warning: THE INPUTS ARE RANDOM NUMBERS, not those that failed: you asked for that with --no-save-dir.'])
    expect(text).toBe('with eager: passes\nThe repro ran, but on random inputs instead of those that failed: that says little about the failure.')
  })

  it('says what the backend does, and what eager does', async () => {
    const failing = { backend: 'relu_compile_error_TESTING_ONLY' } as const
    const said = async (options: Partial<RunReproOptions>, words: readonly string[] = [], args: LoadArgs = loadArgs): Promise<string> => {
      printed = ''
      await run(words, options, args).catch(() => {})
      return printed
    }
    expect([await said(failing), exitCode]).toEqual([`with ${failing.backend}: ReluCompileError: relu found in graph; with eager: passes`, 1])
    expect(await said({ ...failing, signature: 'ReluCompileError|TFX_RELU_COMPILE|relu found in graph' })).not.toContain('recorded')
    expect(await said({ ...failing, signature: 'Error||other' })).toContain('relu found in graph (not the failure that was recorded); with eager')
    expect(await said({ ...failing, checkStr: 'tanh' })).toContain('(not the failure that was recorded)')
    expect(await said({ ...failing, checkStr: 'relu' })).not.toContain('recorded')
    expect(await said({ backend: 'relu_accuracy_error_TESTING_ONLY' }, ['--accuracy'])).toBe(
      'with relu_accuracy_error_TESTING_ONLY: AccuracyError: Bad accuracy detected; with eager: passes',
    )
    expect(await said({ ...failing, accuracy: 'accuracy' })).toContain('relu found in graph (not the failure that was recorded)')
    // A graph that cannot run at all is no failure of the backend.
    const lines: string[] = []
    setLogSink((level, line) => void lines.push(`${level}: ${line}`))
    const wrong = (reader: { args: unknown[] }): void => void reader.args.push('text')
    expect([await said(failing, [], wrong), exitCode]).toEqual([expect.stringMatching(/; with eager: fails too: /) as string, 2])
    expect(lines).toEqual([`error: The graph fails with eager too, so that this is no failure of ${failing.backend}.`])
  })

  it('says so where the script was written, if it passes elsewhere', async () => {
    const lines: string[] = []
    setLogSink((level, line) => void lines.push(`${level}: ${line}`))
    await run(['--backend', 'inductor'], { written: { tensorfx: '0.0.1', node: process.version } })
    expect(lines).toEqual([`info: Note that the script was written with tensorfx 0.0.1; here it runs with tensorfx ${VERSION}.`])
  })

  it('judges as the minifier does, by its exit code', async () => {
    expect(await run(['minifier-query'])).toBe('passes: compiled and ran')
    expect(exitCode).toBe(0)
    expect(await run(['minifier-query'], { backend: 'relu_compile_error_TESTING_ONLY' })).toMatch(/^fails: .*relu found in graph/)
    expect(exitCode).toBe(1)
    expect(await run(['minifier-query', '--check-str', 'other'], { backend: 'relu_compile_error_TESTING_ONLY' })).toMatch(/^unrelated: /)
    expect(exitCode).toBe(0)
  })

  it('returns the graph and its inputs', async () => {
    processWith(['node', 'repro.mjs'])
    const print = vi.spyOn(console, 'log').mockImplementation(() => {})
    const options = {
      after: 'aot',
      backend: null,
      accuracy: 'none',
      checkStr: null,
      signature: null,
      onlyFwd: true,
      imports: [],
      saveDir: null,
    } as const
    const given = await runRepro(Repro, loadArgs, { ...options, command: 'get_args' })
    expect(print.mock.calls).toEqual([['x: a Tensor of shape [2]']])
    print.mockRestore()
    const { gm, args } = present(given, 'the graph and its inputs')
    expect((gm.forward(...(args as [Tensor])) as Tensor[])[0]?.shape).toEqual([2])
    expect(await run(['get_args'])).toContain('x: ')
  })

  it('runs the graph on fake tensors first', async () => {
    let shape: unknown
    registerBackend('looking', (gm) => {
      shape = [...gm.graph.nodes].find((node) => node.op === 'call_function')?.meta['val']
      return gm
    })
    await run(['--backend', 'looking'])
    expect(shape).toBeUndefined()
    await run(['--backend', 'looking', '--tracing-mode', 'fake'])
    expect(shape).toMatchObject({ shape: [2], dtype: 'float32' })
    shape = undefined
    await run(['--backend', 'looking'], { tracingMode: 'fake' })
    expect(shape).toMatchObject({ shape: [2] })
  })

  it('minifies, and writes a checkpoint of each state', async () => {
    const store = new MemoryFileStore()
    setFileStore(store)
    vi.spyOn(console, 'error').mockImplementation(() => {})
    await run(['minify', '--no-isolate'], { backend: 'relu_compile_error_TESTING_ONLY' })
    const written = [...store.files.keys()].filter((path) => path.endsWith('.mjs')).map((path) => path.slice(path.lastIndexOf('/') + 1))
    expect(written.toSorted()).toEqual(['3.mjs', '4.mjs', '5.mjs', 'repro.mjs'])
  })

  it('minifies and analyzes with values in files', async () => {
    const store = new MemoryFileStore()
    setFileStore(store)
    vi.spyOn(console, 'error').mockImplementation(() => {})
    const values = (): string[] =>
      [...store.files.keys()].filter((path) => path.includes('/tensors/')).map((path) => path.replace(/-[0-9a-f]{12}\//, '/'))
    const bad = { backend: 'relu_compile_error_TESTING_ONLY' }
    await run(['minify', '--no-isolate', '--offload-to-disk', '--save-dir', '/values'], bad)
    expect(values()).toContain('/values/tensors/eager/relu.json')
    await run(['minify', '--no-isolate', '--offload-to-disk', '--skip-saving-eager-intermediates', '--save-dir', '/values'], bad)
    await run(['analyze', '--save-dir', '/values'])
    expect(
      values()
        .filter((path) => path.endsWith('/relu.json'))
        .map((path) => path.split('/')[3]),
    ).toEqual(['eager', 'compiled-eager', 'float64'])
    await run(['analyze', '--skip-saving-inductor-intermediates', '--skip-saving-float64-intermediates', '--save-dir', '/values'])
    for (const words of [
      ['minify', '--offload-to-disk'],
      ['analyze', '--skip-saving-float64-intermediates'],
    ])
      await expect(run(words, bad)).rejects.toThrow(
        /^--(offload-to-disk|skip-saving-…) is about values in files, and no folder was named for them\. Name one: --save-dir DIR\.$/,
      )
  })

  it.each([
    [['--check-str'], '--check-str needs a value'],
    [['--runs', 'many'], "--runs needs a whole number that is at least 1, got 'many'"],
    [['--timeout-ms', '0'], '--timeout-ms needs a whole number'],
    [['--death', 'murder'], "--death is crash, hang, any or 'exit N', got 'murder'"],
    [['analyse'], "unknown argument 'analyse'. Did you mean 'analyze'?"],
    [['run_2/launcher.mjs'], "unknown argument 'run_2/launcher.mjs': a script takes no other script. If a pattern such as run_*"],
  ])('%j is an error', async (words, message) => {
    const errors = vi.spyOn(console, 'error').mockImplementation(() => {})
    expect(await run(words)).toBe('')
    expect([errors.mock.calls.flat().join('\n'), exitCode]).toEqual([expect.stringContaining(message), 2])
    errors.mockRestore()
  })

  it.each([
    ['started', 'run', 'died or hung while it ran the graph'],
    ['started', 'compile', 'died or hung while it compiled the graph'],
    ['ended', 'run', 'ended without a failure (process 1 ran the graph)'],
  ])('reads from the record that the last run has %s its %s', async (state, phase, message) => {
    const record = join(work, `${state}.json`)
    writeFileSync(record, JSON.stringify({ phase, state, pid: 1 }))
    const lines: string[] = []
    setLogSink((_level, line) => void lines.push(line))
    const minify = run(['minify'], { record })
    // eager neither fails nor dies.
    await expect(minify).rejects.toThrow('Input graph did not fail the tester')
    expect(lines.join('\n')).toContain(message)
    expect(readFileSync(record, 'utf8')).toContain(state)
  })
})

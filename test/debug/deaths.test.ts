// Failures that end the process, or never end: the run that died leaves a launcher and a record, the launcher knows from it what to look for, and the repro ends its
// process in the same way.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { removeFolder } from '../helpers/folder.ts'
import { distUrl, fileNamed, folderWith, launcherIn, readRepro, runScript } from './processes.ts'
import { turn } from '../helpers/rotation.ts'

/** A WebAssembly module whose function f is `unreachable`. */
const TRAP = '[0,97,115,109,1,0,0,0,1,4,1,96,0,0,3,2,1,0,7,5,1,1,102,0,0,10,5,1,3,0,0,11]'

const ways: Readonly<Record<string, string>> = {
  kill: `process.kill(process.pid, 'SIGKILL')`,
  segfault: `process.kill(process.pid, 'SIGSEGV')`,
  exit: `process.exit(7)`,
  memory: `const all = []; for (;;) all.push(new Array(2 ** 20).fill(all.length))`,
  trap: `new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array(${TRAP}))).exports.f()`,
  // Loops that never end are in limits.test.ts; this one waits, so that the other tests have the processor.
  hang: `Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)`,
}

/** A backend that ends in that way when it compiles a relu, or runs one. */
const backendModule = (way: string, phase: 'compile' | 'run'): string => `
  import { registerBackend } from '${distUrl('entries/compile.js')}'
  const end = () => { ${ways[way] ?? ''} }
  registerBackend('deadly', (gm) => {
    const isBad = [...gm.graph.nodes].some((node) => String(node.name).startsWith('relu'))
    if (isBad && ${phase === 'compile'}) end()
    return (...inputs) => {
      if (isBad) end()
      return gm.forward(...inputs)
    }
  }, { module: import.meta.url })`

const program = `
  import { compile, torch } from '${distUrl('index.js')}'
  import './backend.mjs'
  const f = compile((x) => torch.cos(torch.cos(torch.relu(torch.sin(torch.sin(x))))), { backend: 'deadly' })
  f(torch.randn([6, 5])).toArray()`

// A small heap is soon exhausted.
const node = ['--max-old-space-size=64']

/** After which tracer, in what way, when, and what is said of it. A third of them each day. */
const WAYS = turn([
  [
    ['dynamo', 'kill', 'compile', 'signal SIGKILL'],
    ['aot', 'hang', 'run', 'hang'],
    ['aot', 'exit', 'compile', 'exit 7'],
  ],
  [
    ['aot', 'kill', 'run', 'signal SIGKILL'],
    ['dynamo', 'hang', 'compile', 'hang'],
    ['dynamo', 'memory', 'run', 'signal SIGABRT'],
  ],
  [
    ['aot', 'segfault', 'compile', 'signal SIGSEGV'],
    ['dynamo', 'exit', 'run', 'exit 7'],
  ],
] as const).flat()

/** The time limit of a candidate's processor. One that waits gets none, and is given up after twenty times as long. */
const LIMIT = ['--timeout-ms', '1000']

describe('a run that does not end', { timeout: 600_000 }, () => {
  it.concurrent.each(WAYS)('after %s: %s in the %s ends in a repro that ends with %s', async (after, way, phase, how) => {
    const folder = folderWith({ 'program.mjs': program, 'backend.mjs': backendModule(way, phase) })
    const env = { TENSORFX_REPRO_AFTER: after, TENSORFX_REPRO_LEVEL: '3' }
    const first = await runScript(folder, 'program.mjs', [], { env, node, ms: way === 'hang' ? 20_000 : 180_000 })
    expect(first.how, first.output).toBe(how)
    const record = JSON.parse(readFileSync(fileNamed(folder, 'last_run.json') ?? '', 'utf8')) as object
    expect(record).toMatchObject({ phase, state: 'started' })

    const nodeOptions = { NODE_OPTIONS: node.join(' ') }
    const launched = await runScript(folder, launcherIn(folder) ?? '', LIMIT, { env: nodeOptions, ms: 400_000 })
    expect(launched.how, launched.output).toBe('exit 0')
    expect(launched.output).toContain(`died or hung while it ${phase === 'run' ? 'ran' : 'compiled'} the graph`)
    expect(launched.output).not.toContain('comes and goes')
    const repro = join(folder, 'repro.mjs')
    expect(readRepro(repro)).toEqual({ operators: ['relu'], elements: 1, nodes: 3 })
    // In a process of its own, so that the script can say what happened, and what eager does.
    const again = await runScript(folder, repro, LIMIT, { env: nodeOptions })
    expect(again.how).toBe('exit 1')
    expect(again.output).toMatch(/^with deadly: .*(the isolated process died: |no answer within ).*; with eager: passes$/m)
    if (way !== 'exit') return removeFolder(folder)
    const here = await runScript(folder, repro, ['--no-isolate'])
    expect(here.how).toBe(how)
    expect(here.output).toMatch(/with eager: passes[^]*it ends this process \(exit 7\)/)
    removeFolder(folder)
  })

  it.concurrent('a trap is an error, which level 2 minifies', async () => {
    const folder = folderWith({ 'program.mjs': program, 'backend.mjs': backendModule('trap', 'run') })
    const first = await runScript(folder, 'program.mjs', [], { env: { TENSORFX_REPRO_AFTER: 'aot', TENSORFX_REPRO_LEVEL: '2' } })
    expect(first.output).toContain('RuntimeError: unreachable')
    expect((await runScript(folder, launcherIn(folder) ?? '')).how).toBe('exit 0')
    const repro = join(folder, 'repro.mjs')
    expect(readRepro(repro)).toEqual({ operators: ['relu'], elements: 1, nodes: 3 })
    const again = await runScript(folder, repro)
    expect(again.how).toBe('exit 1')
    expect(again.output).toContain('RuntimeError: unreachable')
    removeFolder(folder)
  })

  it.concurrent('cannot be minified in the process that judges it', async () => {
    const folder = folderWith({ 'program.mjs': program, 'backend.mjs': backendModule('kill', 'compile') })
    await runScript(folder, 'program.mjs', [], { env: { TENSORFX_REPRO_AFTER: 'dynamo', TENSORFX_REPRO_LEVEL: '3' } })
    const launched = await runScript(folder, launcherIn(folder) ?? '', ['--no-isolate'])
    expect(launched.how).toBe('exit 1')
    expect(launched.output).toContain('candidates need one of their own, but isolate is false')
    removeFolder(folder)
  })
})

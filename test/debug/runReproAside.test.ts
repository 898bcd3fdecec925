// Scripts of failures that end the process: the graph runs in a child process, which may end, or here if it cannot run there.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { registerBackend } from 'tensorfx/compile'
import { childEntry, runRepro, setLogSink } from 'tensorfx/debug'
import type { LoadArgs, RunReproOptions } from 'tensorfx/debug'
import { temporaryFolder } from '../helpers/folder.ts'
import { processWith } from './inProcess.ts'
import { distUrl } from './processes.ts'

childEntry.url = distUrl('entries/debugChild.js')

const work = temporaryFolder('tensorfx-aside-')
afterEach(() => {
  setLogSink(null)
  vi.unstubAllGlobals()
})

class Repro extends nn.Module {
  forward(x: Tensor): Tensor[] {
    return [torch.relu(x)]
  }
}

class WithLayer extends nn.Module {
  readonly layer = new nn.ReLU()
  forward(x: Tensor): unknown[] {
    return [this.layer.call(x)]
  }
}

const module = join(work, 'backend.mjs')
writeFileSync(
  module,
  `import { registerBackend } from '${distUrl('entries/compile.js')}'
registerBackend('aside_exits', (gm) => () => process.exit(7))
registerBackend('aside_throws', (gm) => () => { throw new RangeError('no kernel') })
registerBackend('aside_passes', (gm) => gm)
let calls = 0
registerBackend('aside_exits_second', (gm) => (x) => (++calls > 1 ? process.exit(7) : [x.relu()]))`,
)
// Here none of them ends anything.
for (const name of ['aside_exits', 'aside_passes', 'aside_exits_second']) registerBackend(name, (gm) => gm)
registerBackend('aside_throws', () => () => {
  throw new RangeError('no kernel')
})

const one: LoadArgs = (reader) => void reader.args.push(torch.ones([2]))

/** What a script says, prints and exits with. */
async function ran(
  backend: string,
  options: Partial<RunReproOptions> = {},
  words: readonly string[] = [],
  loads = one,
  Root: new () => nn.Module = Repro,
): Promise<unknown> {
  const lines: string[] = []
  setLogSink((level, line) => void lines.push(`${level}: ${line}`))
  const host = processWith(['node', 'repro.mjs', ...words])
  const print = vi.spyOn(console, 'log').mockImplementation((line: unknown) => void lines.push(String(line)))
  try {
    await runRepro(Root, loads, {
      ...{ after: 'dynamo', command: 'run', backend, accuracy: 'none', checkStr: null, signature: null, onlyFwd: true, saveDir: null },
      ...{ imports: [pathToFileURL(module).href], death: 'exit 7', ...options },
    })
  } catch (error) {
    lines.push(`thrown: ${String(error)}`)
  } finally {
    print.mockRestore()
  }
  return [...lines, host.exitCode ?? 0]
}

const EAGER = 'info: with eager: passes'
const PASSED = 'The repro ran without an error.'

describe('a script of a failure that ends the process', { timeout: 120_000 }, () => {
  it('says how the child process ended, after what eager does', async () => {
    expect(await ran('aside_exits')).toEqual([EAGER, expect.stringMatching(/^with aside_exits: .*exit code 7.*; with eager: passes$/), 1])
    expect(await ran('aside_throws')).toEqual([
      EAGER,
      'with aside_throws: fails in another way: an error, not the end of the process: RangeError: no kernel; with eager: passes',
      1,
    ])
    expect(await ran('aside_exits_second', { runs: 2 })).toEqual([EAGER, expect.stringMatching(/^with aside_exits_second: .*exit code 7/), 1])
    expect(await ran('aside_passes', { runs: 2 })).toEqual([
      EAGER,
      'with aside_passes: passes; with eager: passes',
      'The repro ran without an error (2 times).',
      0,
    ])
  })

  it('by the record of a run that did not end looks for any end', async () => {
    const record = join(work, 'last_run.json')
    writeFileSync(record, JSON.stringify({ phase: 'run', state: 'started', pid: 1 }))
    const did =
      'info: The run that wrote this script did not end: process 1 died or hung while it ran the graph. Looking for candidates that do the same.'
    expect(await ran('aside_exits', { death: null, record })).toEqual([did, EAGER, expect.stringMatching(/exit code 7/), 1])
    // Where the script knows what to look for, the record says nothing new.
    expect(await ran('aside_passes', { death: null, record, signature: 'RangeError||x' })).toEqual([
      'with aside_passes: passes; with eager: passes',
      PASSED,
      0,
    ])
  })

  it('runs the graph here where it is told to, or where the graph cannot be sent', async () => {
    const passed = [EAGER, 'with aside_exits: passes; with eager: passes', PASSED, 0]
    expect(await ran('aside_exits', {}, ['--no-isolate'])).toEqual([
      EAGER,
      'info: The graph runs in this process, since of --no-isolate: if the failure is still there, it ends this process (exit 7).',
      ...passed.slice(1),
    ])
    expect(await ran('aside_exits', { death: 'hang' }, ['--no-isolate'])).toEqual([
      EAGER,
      'info: The graph runs in this process, since of --no-isolate: if the failure is still there, this script does not end by itself.',
      ...passed.slice(1),
    ])
    expect(await ran('aside_exits', {}, [], one, WithLayer)).toEqual([
      EAGER,
      'info: The graph runs in this process, since the graph calls modules: if the failure is still there, it ends this process (exit 7).',
      ...passed.slice(1),
    ])
    expect(await ran('aside_throws', {}, ['--no-isolate'])).toEqual([
      EAGER,
      'info: The graph runs in this process, since of --no-isolate: if the failure is still there, it ends this process (exit 7).',
      'with aside_throws: RangeError: no kernel; with eager: passes',
      'thrown: RangeError: no kernel',
      1,
    ])
  })
})

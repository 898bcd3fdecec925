// Control experiments: what is accepted fails with the backend and passes on eager. A right backend has no repro, however busy the machine is and however long its module
// takes to import.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { registerBackend } from 'tensorfx/compile'
import { MemoryFileStore, MinifierError, childEntry, fileStore, judge, minifier, minifyBackendFailure, setFileStore } from 'tensorfx/debug'
import { symbolicTrace } from 'tensorfx/fx'
import type { GraphModule } from 'tensorfx/fx'
import { removeFolder } from '../helpers/folder.ts'
import { whyHung } from '../../src/debug/isolate/clock.ts'
import { childEnv, childOptions } from '../../src/debug/isolate/childOptions.ts'
import { progressOf } from '../../src/debug/isolate/protocol.ts'
import { distUrl, folderWith } from './processes.ts'
import { isFull } from '../helpers/rotation.ts'

childEntry.url = distUrl('entries/debugChild.js')
const folders: string[] = []
afterAll(() => folders.forEach((folder) => removeFolder(folder)))

const chain = (): GraphModule => symbolicTrace((x: Tensor) => [torch.cos(torch.relu(torch.sin(x)))])
const operators = (gm: GraphModule): string[] => [...gm.graph.nodes].filter((n) => n.op === 'call_function').map((n) => n.name.replace(/_\d+$/, ''))
const has = (gm: GraphModule, name: string): boolean => operators(gm).includes(name)

describe('the control of the minifier', () => {
  it('keeps out candidates that fail where they must pass, and is counted apart', async () => {
    const seen: boolean[] = []
    // Graphs without a sin fail everywhere.
    const control = (gm: GraphModule, _inputs: readonly unknown[], isFinal: boolean): boolean => (seen.push(isFinal), has(gm, 'sin'))
    const fails = (gm: GraphModule): boolean => has(gm, 'relu')
    const without = await minifier(chain(), [torch.ones([2])], fails)
    const result = await minifier(chain(), [torch.ones([2])], fails, { control })
    expect([operators(without.gm), without.controls]).toEqual([['relu'], 0])
    expect([operators(result.gm), result.controls]).toEqual([['sin', 'relu'], seen.length])
    // A result of several operators is judged eight times.
    expect(seen.filter(Boolean)).toHaveLength(8)
  })

  it('ends the search of an original that fails where it must pass, and of a result that does so at the end', async () => {
    const options = { control: (): boolean => false }
    await expect(minifier(chain(), [torch.ones([2])], () => true, options)).rejects.toThrow('Input graph fails on a backend that is right too')
    const atLast = minifier(chain(), [torch.ones([2])], () => true, { control: (_gm, _inputs, isFinal) => !isFinal })
    await expect(atLast).rejects.toThrow('On a backend that is right it fails too.')
  })
})

describe('a right backend', () => {
  it('has no repro for any model', async () => {
    const store = new MemoryFileStore()
    const before = fileStore()
    setFileStore(store)
    registerBackend(
      'right',
      (gm) =>
        (...inputs: never[]) =>
          gm.forward(...inputs),
    )
    class Scores extends nn.Module {
      readonly layer = new nn.Linear(3, 3)
      forward(x: Tensor): Tensor[] {
        return [torch.matmul(x, this.layer.weight).add(this.layer.bias ?? 0)]
      }
    }
    const graphs: readonly GraphModule[] = [
      chain(),
      symbolicTrace(new Scores()),
      symbolicTrace((x: Tensor) => [torch.argmax(x, 1), torch.topk(x, 2)[0] as Tensor, torch.log(x)]),
      symbolicTrace((x: Tensor) => [
        x
          .clone()
          .add_(1)
          .mul_(torch.tensor([1, 2, 3])),
      ]),
    ]
    try {
      for (const [i, gm] of graphs.entries())
        for (const accuracy of ['none', 'accuracy', 'strict_accuracy'] as const)
          for (const requiresGrad of [false, true]) {
            const x = torch.randn([3, 3], { requiresGrad: requiresGrad && i !== 2 })
            const options = { backend: 'right', accuracy, isolate: false, runDir: 'run', print: () => {} } as const
            await expect(minifyBackendFailure(gm, [x], options)).rejects.toThrow(MinifierError)
          }
      expect([...store.files.keys()]).toEqual([])
    } finally {
      setFileStore(before)
    }
  })

  it('is what a fault of two neighbours is told from, which is minified to the pair', async () => {
    // Wrong only where a relu follows a sin.
    registerBackend('wrong_fusion', (gm) => (...inputs: never[]) => {
      const isPair = [...gm.graph.nodes].some(
        (node) => node.name.startsWith('relu') && node.allInputNodes.some((n) => n.op === 'call_function' && n.name.startsWith('sin')),
      )
      const outputs = gm.forward(...inputs) as Tensor[]
      return isPair ? outputs.map((value) => value.add(0.5)) : outputs
    })
    const gm = symbolicTrace((x: Tensor) => [torch.cos(torch.relu(torch.sin(torch.relu(torch.exp(x)))))])
    const result = await minifyBackendFailure(gm, [torch.randn([4])], {
      backend: 'wrong_fusion',
      accuracy: 'accuracy',
      isolate: false,
      print: () => {},
    })
    expect(operators(result.gm)).toEqual(['sin', 'relu'])
    const spec = { accuracy: 'accuracy', checkStr: null, signature: null, onlyFwd: false } as const
    expect(judge(result.gm, result.inputs, { ...spec, backend: 'wrong_fusion' }).status).toBe('fails')
    expect(judge(result.gm, result.inputs, { ...spec, backend: 'eager' }).status).toBe('passes')
  })

  // Four busy processes for two minutes, which other tests would meet.
  if (isFull)
    it('is not called hanging because its module is slow, or the machine busy; one that hangs is', { timeout: 300_000 }, async () => {
      const hogs = Array.from({ length: 4 }, () =>
        spawn(process.execPath, ['-e', 'for (const began = Date.now(); Date.now() - began < 120_000; );'], { stdio: 'ignore' }),
      )
      const folder = folderWith({
        'slow.mjs': `
          import { registerBackend } from '${distUrl('entries/compile.js')}'
          for (const began = performance.now(); performance.now() - began < 4000; );
          registerBackend('slow_import', (gm) => {
            const names = [...gm.graph.nodes].map((node) => node.name)
            if (names.includes('relu')) for (;;);
            // A fifth of the limit of processor time, which may take longer than the limit on a busy machine.
            const cpu = () => { const { user, system } = process.cpuUsage(); return (user + system) / 1000 }
            for (const began = cpu(); cpu() - began < 200; );
            return gm
          }, { module: import.meta.url })`,
      })
      folders.push(folder)
      registerBackend('slow_import', (gm) => gm, { module: pathToFileURL(join(folder, 'slow.mjs')).href })
      const options = { backend: 'slow_import', death: 'any', timeoutMs: 1000, print: () => {} } as const
      try {
        const right = symbolicTrace((x: Tensor) => [torch.cos(torch.sin(x))])
        await expect(minifyBackendFailure(right, [torch.ones([2])], options)).rejects.toThrow('did not fail the tester')
        const small = await minifyBackendFailure(chain(), [torch.ones([2])], options)
        expect(operators(small.gm)).toEqual(['relu'])
      } finally {
        for (const hog of hogs) hog.kill('SIGKILL')
      }
    })
})

describe('a candidate that gives no answer', () => {
  it.each([
    [999, 5000, false],
    [1000, 1000, true],
    [1000, 999, false],
    [1000, null, true],
    // One that sleeps.
    [4999, 0, false],
    [5000, 49, true],
    [5000, 50, false],
    // One that gets little of a busy machine.
    [19_999, 900, false],
    [20_000, 900, true],
  ])('after %d ms, with %s ms of processor time and a limit of 1000, has hung: %s', (wallMs, cpuMs, hung) => {
    expect(whyHung({ wallMs, cpuMs }, 1000) !== null).toBe(hung)
  })

  it('says what it is about: progress is no answer', () => {
    expect([{ imported: 3, cpuMs: 5 }, { cpuMs: 5 }, { imported: 3 }].map(progressOf)).toEqual([
      { imported: 3, cpuMs: 5 },
      { cpuMs: 5 },
      { imported: 3 },
    ])
    expect([null, 3, {}, { cpuMs: '5' }, { id: 1, cpuMs: 5 }].map(progressOf)).toEqual([null, null, null, null, null])
  })
})

describe('a child', () => {
  it('gets the options of this process but for those that only this one can have', () => {
    const kept = ['--import', 'tsx', '-r', './hook.cjs', '--conditions=dev', '--experimental-vm-modules', '--max-old-space-size=64']
    expect(childOptions(kept)).toEqual(kept)
    expect(childOptions(['--inspect', '--inspect-brk=9229', '--import', 'tsx', '-e', 'code', '--no-warnings'])).toEqual([
      '--import',
      'tsx',
      '--no-warnings',
    ])
    expect(childOptions(['--input-type', 'module', '--print', 'x', '-p', '--test', '--watch-path', 'src', '--cpu-prof', '-'])).toEqual([])
  })

  it('gets the environment without the switches of the debugger, and without a port to wait at', () => {
    expect(childEnv({ TENSORFX_REPRO_AFTER: 'aot', OTHER: 'kept' })).toEqual({ OTHER: 'kept' })
    expect(childEnv({ NODE_OPTIONS: '--inspect-brk=1 --import tsx --inspect' })).toEqual({ NODE_OPTIONS: '--import tsx' })
  })
})

describe('a launcher without a record', () => {
  it.each([
    ['relu_compile_error_TESTING_ONLY', 'fails: '],
    ['relu_accuracy_error_TESTING_ONLY', 'computes wrong numbers'],
  ])('finds out by itself how the graph fails: %s', async (backend, how) => {
    const lines: string[] = []
    const options = { backend, findFailure: true, isolate: false, print: (line: string) => void lines.push(line) }
    expect(operators((await minifyBackendFailure(chain(), [torch.ones([2])], options)).gm)).toEqual(['relu'])
    expect(lines.join('\n')).toContain(`With '${backend}', the graph ${how}`)
  })

  it('says that there is nothing to find', async () => {
    const nothing = minifyBackendFailure(chain(), [torch.ones([2])], { backend: 'aot_eager', findFailure: true, isolate: false, print: () => {} })
    await expect(nothing).rejects.toThrow(
      "With 'aot_eager', the graph runs, ends, and its numbers are right (in 3 runs), so there is nothing to minify.",
    )
  })
})

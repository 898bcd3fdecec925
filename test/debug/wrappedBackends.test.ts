// A backend that is watched, without a program around it: what is watched and what is not, what compiled code reports of itself, and what is written where the program itself fails.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { config } from 'tensorfx/compile'
import { AccuracyError, MemoryFileStore, fileStore, setFileStore, setLogSink, wrapBackendDebug, wrapCompilerDebug } from 'tensorfx/debug'
import { fakeLike } from 'tensorfx/dispatch'
import { symbolicTrace } from 'tensorfx/fx'
import type { GraphModule } from 'tensorfx/fx'
import type { Backend } from '../../src/dynamo/index.ts'
import { listen, pathOf, resetConfig, textOf, thrownBy } from './inProcess.ts'

const nodeStore = fileStore()
let store = new MemoryFileStore()
beforeEach(() => {
  store = new MemoryFileStore()
  setFileStore(store)
  listen()
})
afterEach(() => {
  setLogSink(null)
  setFileStore(nodeStore)
  resetConfig()
})

const t = torch.tensor
const watch = (reproAfter: 'dynamo' | 'aot' | null, reproLevel: number): void =>
  void Object.assign(config, { reproAfter, reproLevel, debugDirRoot: '/dumps' })
const double = (): GraphModule => symbolicTrace((x: Tensor) => [torch.mul(x, 2)])
const asTensor = (value: unknown): Tensor => value as Tensor
type Code = ((...inputs: readonly unknown[]) => unknown) & { readonly kernels?: unknown; readonly writtenInPlace?: unknown }
const compiled = (backend: Backend, gm = double(), inputs: readonly unknown[] = [t([1])]): Code => backend(gm, inputs) as Code
const record = (): unknown => JSON.parse(textOf(store, pathOf(store, 'last_run.json')))
const scripts = (): string[] =>
  [...store.files.keys()]
    .map((path) => path.slice(path.lastIndexOf('/') + 1))
    .filter((name) => /\.m?js(on)?$/.test(name))
    .toSorted()

const triple: Backend = () => (x) => [torch.mul(asTensor(x), 3)]

describe('what is watched', () => {
  it('is what the settings say, under the name of the backend', () => {
    const wraps = { dynamo: wrapBackendDebug, aot: wrapCompilerDebug }
    const caught = (where: keyof typeof wraps): boolean => {
      const watched = wraps[where](triple, 'mine')
      expect(Reflect.get(watched, 'backendName')).toBe('mine')
      try {
        compiled(watched)(t([1]))
        return false
      } catch (error) {
        expect(error).toBeInstanceOf(AccuracyError)
        return true
      }
    }
    const both = (): boolean[] => [caught('dynamo'), caught('aot')]
    watch(null, 4)
    expect(both()).toEqual([false, false])
    watch('dynamo', 4)
    // Backward graphs are compiled later, by themselves.
    expect(both()).toEqual([true, true])
    watch('aot', 4)
    expect(both()).toEqual([false, true])
    for (const level of [1, 2, 3]) {
      watch('aot', level)
      expect(both()).toEqual([false, false])
    }
  })

  it('is not what a watched backend compiles, or runs, itself', () => {
    watch('dynamo', 4)
    const inner = wrapCompilerDebug(triple, 'inner')
    const outer = wrapBackendDebug((gm, inputs) => {
      const wrong = compiled(inner, gm, [...inputs])
      return (x) => {
        wrong(x)
        compiled(inner)(x)
        return [torch.mul(asTensor(x), 2)]
      }
    }, 'outer')
    expect((compiled(outer)(t([3])) as Tensor[]).map((y) => y.toArray())).toEqual([[6]])
    // Afterwards it is again.
    expect(() => compiled(inner)(t([1]))).toThrow(AccuracyError)
    const failing = wrapBackendDebug(() => {
      throw new RangeError('no kernel')
    }, 'failing')
    expect(() => compiled(failing)).toThrow('no kernel')
    expect(() => compiled(inner)(t([1]))).toThrow(AccuracyError)
  })

  it('is not the backward where only forwards are looked at', () => {
    watch('aot', 4)
    config.reproForwardOnly = true
    const backward = double()
    backward.meta['half'] = 'backward'
    expect(() => compiled(wrapCompilerDebug(triple, 'mine'), backward)(t([1]))).not.toThrow()
    expect(() => compiled(wrapCompilerDebug(triple, 'mine'))(t([1]))).toThrow(AccuracyError)
    config.reproForwardOnly = false
    expect(() => compiled(wrapCompilerDebug(triple, 'mine'), backward)(t([1]))).toThrow(AccuracyError)
  })
})

describe('compiled code', () => {
  it('keeps what it reports of itself, and holds its tensors once', () => {
    watch('dynamo', 4)
    const kernels = ['a kernel']
    const writtenInPlace = new Set([1])
    const reporting: Backend = () => Object.assign((x: unknown) => [torch.mul(asTensor(x), 2)], { kernels, writtenInPlace }) as never
    const reported = compiled(wrapBackendDebug(reporting, 'mine'))
    expect([reported.kernels, reported.writtenInPlace]).toEqual([kernels, writtenInPlace])
    const silent = compiled(wrapBackendDebug(() => (x) => [torch.mul(asTensor(x), 2)], 'mine'))
    expect(Object.keys(silent)).toEqual([])
    const ofGraph = compiled(wrapBackendDebug((gm) => gm, 'mine'))
    expect([Object.keys(ofGraph), (ofGraph(t([3])) as Tensor[])[0]?.toArray()]).toEqual([[], [6]])
  })

  it('is judged by the graph that it was made of, whatever the backend does to it, with the tensors of the program', () => {
    watch('dynamo', 4)
    const weight = t([5])
    const gm = symbolicTrace((x: Tensor) => [torch.mul(x, weight)])
    const changing: Backend = (graph) => {
      for (const node of graph.graph.nodes) if (node.target === torch.mul) node.target = torch.add
      graph.recompile()
      return graph
    }
    expect(() => compiled(wrapBackendDebug(changing, 'mine'), gm)(t([1]))).toThrow(AccuracyError)
    const kept = symbolicTrace((x: Tensor) => [torch.mul(x, weight)])
    const run = compiled(
      wrapBackendDebug((graph) => graph, 'mine'),
      kept,
    )
    torch.noGrad(() => weight.fill_(7))
    expect((run(t([1])) as Tensor[])[0]?.toArray()).toEqual([7])
  })
})

describe('a failure of the program itself', () => {
  const reshaping = (): GraphModule => symbolicTrace((x: Tensor) => [torch.reshape(x, [2])])

  it('is thrown as it is, and nothing is written for it', () => {
    for (const level of [1, 2, 4]) {
      watch('dynamo', level)
      const run = compiled(
        wrapBackendDebug((gm) => gm, 'mine'),
        reshaping(),
        [t([1, 2])],
      )
      expect((run(t([1, 2])) as Tensor[])[0]?.toArray()).toEqual([1, 2])
      const error = thrownBy(() => run(t([1, 2, 3])))
      expect([error.message, error.minifierPath, scripts()]).toEqual([expect.stringContaining('reshape'), undefined, []])
    }
    watch('dynamo', 3)
    const run = compiled(
      wrapBackendDebug((gm) => gm, 'mine'),
      reshaping(),
      [t([1, 2])],
    )
    expect(() => run(t([1, 2, 3]))).toThrow('reshape')
    expect(record()).toEqual({ phase: 'run', state: 'ended', pid: process.pid })
  })

  it('is none where the backend alone fails', () => {
    watch('dynamo', 2)
    const failing: Backend = () => () => {
      throw new RangeError('no kernel')
    }
    const error = thrownBy(() => compiled(wrapBackendDebug(failing, 'mine'))(t([1])))
    expect([error.message, error.minifierPath, scripts()]).toEqual([
      expect.stringContaining('no kernel'),
      pathOf(store, 'minifier_launcher.mjs'),
      ['minifier_launcher.mjs'],
    ])
  })
})

describe('level 3', () => {
  it('says what is about to be done, and what has ended', () => {
    watch('dynamo', 3)
    const seen: unknown[] = []
    const backend: Backend = () => {
      seen.push(record())
      return (x) => {
        seen.push(record())
        return [torch.mul(asTensor(x), 2)]
      }
    }
    const run = compiled(wrapBackendDebug(backend, 'mine'), double(), [t([1]), 3])
    seen.push(record())
    run(t([1]))
    seen.push(record())
    const { pid } = process
    expect(seen).toEqual([
      { phase: 'compile', state: 'started', pid },
      { phase: 'compile', state: 'ended', pid },
      { phase: 'run', state: 'started', pid },
      { phase: 'run', state: 'ended', pid },
    ])
  })

  it('writes nothing before a compile of which any example has no data, and at other levels', () => {
    const files: string[][] = []
    const backend: Backend = () => {
      files.push(scripts())
      return (x) => [torch.mul(asTensor(x), 2)]
    }
    watch('dynamo', 3)
    for (const inputs of [[fakeLike(t([1]))], [t([1]), fakeLike(t([1]))], [3, fakeLike(t([1]))]]) {
      store.files.clear()
      compiled(wrapBackendDebug(backend, 'mine'), double(), inputs)
    }
    store.files.clear()
    for (const level of [1, 2, 4]) {
      watch('dynamo', level)
      compiled(wrapBackendDebug(backend, 'mine'))(t([1]))
    }
    expect(files).toEqual([[], [], [], [], [], []])
  })
})

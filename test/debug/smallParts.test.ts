// Small parts of the debugger by themselves: kinds of differences, storages by content, values of a failing run.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { DType, Tensor } from 'tensorfx'
import { Graph, GraphModule, operator, symbolicTrace } from 'tensorfx/fx'
import { MemoryFileStore, signatureOf } from 'tensorfx/debug'
import { captureValues } from '../../src/debug/minify/concreteValues.ts'
import { ContentStore } from '../../src/debug/files/contentStore.ts'
import { CONCRETE_VALUE, EARLIER_VALUES, operatorsOf } from '../../src/debug/minify/subgraph.ts'
import type { ReproState } from '../../src/debug/minify/subgraph.ts'
import { differenceKind } from '../../src/debug/closeness/differenceKind.ts'
import { sha1 } from '../../src/debug/files/sha1.ts'
import { valueText } from '../../src/protocol/index.ts'

const t = torch.tensor
const ints = (...values: number[]): Tensor => t(values, { dtype: 'int64' })

it.each<[string, string, unknown, unknown, boolean]>([
  ['gradient', 'gradient of weight', t([1]), t([1, 2]), false],
  ['written', 'input 0', t([1]), t([1, 2]), true],
  ['form', 'output', [t([1]), t([2])], [t([1])], true],
  ['form', 'output', [t([1]), t([2])], [t([1]), t([[2]])], true],
  ['form', 'output', [t([1])], [ints(1)], true],
  ['form', 'output', [t([1])], [1], true],
  ['form', 'output', [1], [t([1])], true],
  ['form', 'output', [1], ['1'], true],
  ['integer', 'output', ['a', 1, ints(1)], ['a', 1, ints(2)], false],
  ['nan', 'output', [1, 2], [1, NaN], true],
  ['nan', 'output', [Infinity], [1], true],
  ['value', 'output', [1, 2], [3, 4], true],
  ['value', 'output', ['a', NaN, ints(1, 2)], ['b', Infinity, ints(3, 4)], true],
  ['nan', 'output', { a: t([1]), b: t([1, 2]) }, { a: t([1]), b: t([1, NaN]) }, true],
  ['value', 'output', [t([1, NaN])], [t([2, -Infinity])], true],
])('a difference of the kind %s: %#', (kind, name, wanted, got, inFloats) => {
  expect(differenceKind(name, wanted, got, () => inFloats)).toBe(kind)
})

it.each<DType>(['float64', 'float32', 'float16', 'bfloat16'])('a NaN of %s is another place', (dtype) => {
  const [good, bad] = [t([1, 2], { dtype }), t([1, NaN], { dtype })]
  expect([differenceKind('output', good, bad, () => true), differenceKind('output', bad, bad.mul(2), () => true)]).toEqual(['nan', 'value'])
})

describe('storages by content', () => {
  const bytes = new Uint8Array([1, 2, 3])
  const hash = sha1(bytes)
  const path = `dir/storages/${hash}`

  it('are written once, replaced if they have another length, and taken back if they are new', () => {
    const files = new MemoryFileStore()
    const first = new ContentStore(files, 'dir')
    first.takeBack()
    expect([first.write(bytes), [...files.files.keys()], first.read(hash, 3)]).toEqual([hash, [path], bytes])
    expect(first.read(first.write(new Uint8Array()), 0)).toEqual(new Uint8Array())
    // Bytes of that length are taken for them.
    files.write(path, new Uint8Array(3))
    expect([first.write(bytes), files.read(path)]).toEqual([hash, new Uint8Array(3)])
    files.write(path, new Uint8Array(2))
    const second = new ContentStore(files, 'dir')
    expect([second.write(bytes), files.read(path)]).toEqual([hash, bytes])
    second.takeBack()
    expect(files.read(path)).toEqual(bytes)
    first.takeBack()
    expect(files.files.size).toBe(0)
    files.write(path, bytes)
    first.takeBack()
    expect(files.read(path)).toEqual(bytes)
  })

  it('are refused where the arguments mean nothing, or the files are not theirs', () => {
    const files = new MemoryFileStore()
    expect(() => new ContentStore({} as never, 'dir')).toThrow(
      "ContentStore: argument 'store' must be a FileStore, which has the methods read and write, got an object.",
    )
    expect(() => new ContentStore(files, 3 as never)).toThrow("ContentStore: argument 'dir' must be a string, got 3.")
    const store = new ContentStore(files, 'dir')
    expect(() => store.read(3 as never, 1)).toThrow("ContentStore.read: argument 'hash' must be a string, got 3.")
    for (const name of [`${hash}0`, `x${hash}`, hash.toUpperCase(), ''])
      expect(() => store.read(name, 3)).toThrow(`a storage is named by the SHA-1 of its bytes, 40 hexadecimal digits; got ${valueText(name)}.`)
    for (const count of [-1, 1.5, NaN])
      expect(() => store.read(hash, count)).toThrow(`ContentStore.read: argument 'nbytes' must be a number of bytes, got ${count}.`)
    expect(() => store.read(hash, 3)).toThrow(
      `the script needs the storage ${hash} (3 bytes), but there is no file ${path}. Copy the folder 'storages' to where the script looks for it, name the folder that holds it with --save-dir DIR, or ask for the repro as one file (npx tensorfx repro pack). --no-save-dir runs on random numbers instead.`,
    )
    files.write(path, new Uint8Array(2))
    expect(() => store.read(hash, 3)).toThrow(`the storage ${path} has 2 bytes, but the script expects 3; the file is damaged.`)
    files.write(path, new Uint8Array(3))
    expect(() => store.read(hash, 3)).toThrow(`the storage ${path} does not hold the bytes that its name stands for; the file is damaged.`)
  })
})

it('a signature masks what is quoted, of any length', () => {
  expect(signatureOf(new Error('\'\' \'ab\' "" "cd" `` `ef` [] [1] [gh, i] x'))).toBe('Error||_ _ _ _ _ _ [] [] [] x')
})

describe('the values of a failing run', () => {
  const stateOf = (gm: GraphModule, ...inputs: Tensor[]): ReproState => {
    const state = { graph: gm.graph.deepCopy(), inputs, earlier: [] }
    captureValues(new GraphModule(gm, gm.graph.deepCopy()), state)
    return state
  }
  const valueOf = (state: ReproState, name: string): unknown => [...state.graph.nodes].find((node) => node.name === name)?.meta[CONCRETE_VALUE]

  it('are those of each node but the output, and views stay views where nothing is written', () => {
    const state = stateOf(
      symbolicTrace((a: Tensor) => [torch.sin(a).t().neg()]),
      torch.ones([1, 2], { requiresGrad: true }),
    )
    const held = [...state.graph.nodes].map(({ name, meta }) => [name, CONCRETE_VALUE in meta, meta[EARLIER_VALUES]])
    expect(held).toEqual([
      ['a', true, []],
      ['sin', true, []],
      ['t', true, []],
      ['neg', true, []],
      ['output', false, undefined],
    ])
    expect((valueOf(state, 't') as Tensor).storage).toBe((valueOf(state, 'sin') as Tensor).storage)
  })

  it('are copies, without a history, where something is written', () => {
    const graph = new Graph()
    const x = graph.placeholder('x')
    const sin = graph.callFunction(torch.sin, [x])
    const pair = graph.callFunction(torch.topk, [sin, 1])
    const first = graph.callFunction(operator.getitem as never, [pair, 0])
    graph.output([graph.callMethod('add_', [graph.callFunction(torch.neg, [first]), 1])])
    const state = stateOf(new GraphModule({}, graph), torch.zeros([2], { requiresGrad: true }))
    const values = operatorsOf(state.graph).map(({ name, meta }) => {
      const value: unknown = meta[CONCRETE_VALUE]
      return [name, value instanceof torch.Tensor ? [value.toArray(), value.requiresGrad, value.isLeaf] : Array.isArray(value)]
    })
    expect(values).toEqual([
      ['sin', [[0, 0], true, true]],
      ['topk', true],
      ['getitem', [[0], true, true]],
      ['neg', [[-0], true, true]],
      ['add_', [[1], true, true]],
    ])
  })
})

// Names that every object has: wherever a program or a file names something so, it is kept as a name like any other, or refused; nothing is lost, and no prototype changes.
import { afterEach, describe, expect, it } from 'vitest'
import { ArgumentError, compile, fx, nn, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { trackDynamismAcrossExamples } from 'tensorfx/fx/experimental'
import { graphFromJson, graphToJson } from 'tensorfx/fx/json'
import { loadGraphModule, loadTorchFile, readSafetensors, saveGraphModule, writeSafetensors } from 'tensorfx/interop'
import { treeFlatten, treeUnflatten } from 'tensorfx/pytree'
import { storedZip } from '../../scripts/fuzz/files/storedZip.mjs'

const NAMES = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'valueOf']
const own = <T>(name: string, value: T): Readonly<Record<string, T>> => Object.fromEntries([[name, value]])
const prototypes = [Object.prototype, Function.prototype, Array.prototype, nn.Module.prototype, fx.GraphModule.prototype]
const members = (): string => prototypes.map((p) => Reflect.ownKeys(p).map(String).join()).join('|')
const before = members()
afterEach(() => expect(members()).toBe(before))

const ones = (): Tensor => torch.ones([1])
/** Whether an object has the name as a property of its own. */
const has = (value: unknown, name: string): boolean => typeof value === 'object' && value !== null && Object.hasOwn(value, name)

describe.each(NAMES)('the name %s', (name) => {
  it('is kept as a key of arguments, structures and results', () => {
    const { leaves, spec } = treeFlatten(own(name, [1, 2]))
    expect(has(treeUnflatten(leaves, spec), name)).toBe(true)
    const graph = new fx.Graph()
    graph.output({ ...own(name, graph.placeholder(name)) } as never)
    const gm = new fx.GraphModule({}, graph)
    for (const module of [gm, gm.deepCopy(), new fx.Interpreter(gm)]) {
      const result: unknown = 'call' in module ? module.call(7) : module.run(7)
      // A spread copies `__proto__` too.
      expect(has(result, name)).toBe(true)
      expect(Object.getPrototypeOf(result)).toBe(Object.prototype)
    }
    const compiled = compile((x: Tensor) => own(name, x.add(1)))(ones())
    expect(compiled[name]?.item()).toBe(2)
    const read = compile((given: Readonly<Record<string, Tensor>>) => given[name]?.add(1))
    expect(read(own(name, ones()))?.item()).toBe(2)
  })

  it('is kept as the name of an input whose examples are compared', () => {
    const found = trackDynamismAcrossExamples([own(name, torch.ones([2, 3])), own(name, torch.ones([4, 3]))])
    expect(has(found, name)).toBe(true)
    expect(found[name]).toEqual({ [`L['${name}']`]: [true, false] })
  })

  it('is kept as the name of a node, and as a keyword', () => {
    const graph = new fx.Graph()
    const wrapped = fx.wrap((_: unknown, options: object) => (Object.hasOwn(options, name) ? 1 : 0), { name: `trustNames_${name}` })
    const node = graph.createNode('call_function', wrapped as never, [graph.placeholder('x')], own(name, 7), name)
    graph.output(node)
    const gm = new fx.GraphModule({}, graph)
    expect([gm.call(1), new fx.Interpreter(gm).run(1)]).toEqual([1, 1])
    expect(graph.lint()).toBeUndefined()
  })

  it('is the name of a tensor in files, or refused', async () => {
    const text = (value: string): string => `X${String.fromCharCode(value.length, 0, 0, 0)}${value}`
    const storage = `(${text('storage')}ctorch\nFloatStorage\n${text('0')}${text('cpu')}K\x01tQ`
    const pickle = `\x80\x02}${text(name)}ctorch._utils\n_rebuild_tensor_v2\n(${storage}K\0(K\x01t(K\x01t\x89}tRs.`
    const file = storedZip({ 'x/data.pkl': Uint8Array.from(pickle, (c) => c.charCodeAt(0)), 'x/data/0': new Uint8Array(Float32Array.of(9).buffer) })
    expect((await loadTorchFile(file)).get(name)?.item()).toBe(9)
    const write = (): Uint8Array => writeSafetensors([[name, ones()]], own(name, 'note'))
    if (name === '__proto__') return expect(write).toThrow(ArgumentError)
    const { tensors, metadata } = readSafetensors(write())
    expect([tensors.get(name)?.item(), metadata[name]]).toEqual([1, 'note'])
  })

  it('is kept in the JSON of graphs and in GraphModule files, or refused', () => {
    const graph = new fx.Graph()
    graph.output({ ...own(name, graph.placeholder('x')) } as never)
    const gm = new fx.GraphModule({}, graph)
    Object.defineProperty(gm.meta, name, { value: 5, enumerable: true })
    const json = JSON.stringify(graphToJson(graph))
    if (name === '__proto__') {
      expect(() => graphFromJson(JSON.parse(json))).toThrow(ArgumentError)
      return expect(() => loadGraphModule(saveGraphModule(gm))).toThrow(ArgumentError)
    }
    expect(has(new fx.GraphModule({}, graphFromJson(JSON.parse(json))).call(7), name)).toBe(true)
    expect(loadGraphModule(saveGraphModule(gm)).meta[name]).toBe(5)
  })

  it('is no key of a state dict, no child and no option unless someone made it one', () => {
    const linear = new nn.Linear(1, 1)
    const given = { ...Object.fromEntries(linear.stateDict()), ...own(name, ones()) } as never
    expect(linear.loadStateDict(given, { strict: false }).unexpectedKeys).toEqual([name])
    expect([new nn.ModuleDict({}).has(name), new nn.ParameterDict({}).has(name)]).toEqual([false, false])
    expect(() => linear.getSubmodule(name)).toThrow(ArgumentError)
    const wrong = own(name, 1) as never
    const parameter = new nn.Parameter(ones())
    for (const call of [() => torch.sum(ones(), wrong), () => new nn.Linear(2, 2, wrong), () => new optim.SGD([parameter], wrong)])
      expect(call).toThrow(/unknown|no argument/)
    expect(() => new optim.SGD([{ params: [parameter], ...own(name, 1) }], { lr: 0.1 })).toThrow(/unknown option/)
    expect(() => fx.symbolicTrace((x: Tensor) => x, { concreteArgs: own(name, 1) })).toThrow('has no parameter')
  })
})

// Running graphs: node by node without the compiler, attributes and copies of GraphModules, and what an Interpreter keeps.
import { describe, expect, test } from 'vitest'
import { ArgumentError, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Graph, GraphError, GraphModule, Interpreter, PH, symbolicTrace, useLazyGraphModule } from 'tensorfx/fx'
import type { Node } from 'tensorfx/fx'
import { Container, freePath } from '../../src/fx/run/attributes.ts'
import { copyTensor, copyable } from '../../src/module/copyTensor.ts'
import { evaluateAttribute, evaluateFunction, evaluateMethod, evaluateModule, lastUses, runGraph, takeInput } from '../../src/fx/run/evaluate.ts'
import { LazyGraphModule } from '../../src/fx/run/lazyGraphModule.ts'

const { tensor } = torch
const list = (value: unknown): unknown => (value instanceof torch.Tensor ? value.toArray() : value)
const nodesOf = (gm: GraphModule): readonly Node[] => [...gm.graph.nodes]

class Net extends nn.Module {
  readonly fc = new nn.Linear(2, 2)
  readonly scale = new nn.Parameter(tensor([2, 3]))
  constructor() {
    super()
    this.registerBuffer('shift', tensor([1, 1]))
  }
  override forward(x: Tensor, by = 2): unknown {
    const y = torch.add(this.fc.call(x).mul(this.scale), by)
    return { out: y, x }
  }
}

describe('running node by node', () => {
  test('gives what the compiled code gives, for every kind of node', () => {
    const gm = symbolicTrace(new Net())
    const x = tensor([[1, 2]])
    for (const inputs of [[x], [x, 5], [x, undefined]]) {
      const [want, got] = [Reflect.apply(gm.call, gm, inputs), runGraph(gm, inputs)] as unknown as { out: Tensor; x: Tensor }[]
      expect([list(got?.out), got?.x === x]).toEqual([list(want?.out), true])
    }
    const nested = symbolicTrace((d: { a: Tensor; b: Tensor }) => ({ sum: d.a.add(d.b) }), { concreteArgs: { d: { a: PH, b: PH } } })
    expect(list((runGraph(nested, [{ a: tensor([1]), b: tensor([2]) }]) as { sum: Tensor }).sum)).toEqual([3])
  })

  test('an error names the node, and a graph without output gives undefined', () => {
    const graph = new Graph()
    graph.callMethod('nope', [graph.placeholder('x')])
    const gm = new GraphModule({}, graph)
    expect(() => runGraph(gm, [tensor([1])])).toThrow(/call_method: the value has no method 'nope'\.[\s\S]*nope/)
    const silent = new Graph()
    silent.placeholder('x')
    expect(runGraph(new GraphModule({}, silent), [1])).toBeUndefined()
  })

  test('inputs: in order, with defaults for those left out, and all others for a rest parameter', () => {
    const inputs = [1, undefined, null, 4, 5]
    expect([takeInput('a', [9], inputs), takeInput('b', [9], inputs), takeInput('c', [9], inputs), takeInput('*rest', [], inputs), inputs]).toEqual([
      1,
      9,
      null,
      [4, 5],
      [],
    ])
    expect([takeInput('d', [7], inputs), takeInput('e', [], [undefined]), takeInput('**options', [], [{ a: 1 }])]).toEqual([7, undefined, { a: 1 }])
    expect(() => takeInput('f', [], [])).toThrow(new GraphError('Expected positional argument for parameter f, but one was not passed in!'))
  })

  test('functions, methods and modules get options as a last object, if there are any', () => {
    const all = (...args: readonly unknown[]): unknown => args
    expect([evaluateFunction(all, [1], {}), evaluateFunction(all, [1], { a: 2 }), evaluateFunction(all, [], {})]).toEqual([[1], [1, { a: 2 }], []])
    const self = {
      base: 1,
      method(this: { base: number }, ...args: readonly unknown[]) {
        return [this.base, ...args]
      },
    }
    expect([evaluateMethod('method', [self, 2], {}), evaluateMethod('method', [self], { a: 3 }), evaluateMethod('__call__', [all, 4], {})]).toEqual([
      [1, 2],
      [1, { a: 3 }],
      [4],
    ])
    expect(evaluateMethod('toFixed', [1.5, 2], {})).toBe('1.50')
    for (const nothing of [null, undefined, 3])
      expect(() => evaluateMethod('relu', [nothing], {})).toThrow(new GraphError("call_method: the value has no method 'relu'."))
    class Echo extends nn.Module {
      override forward(...args: readonly unknown[]): unknown {
        return args
      }
    }
    expect(evaluateModule('echo', new Echo(), [1], { a: 2 })).toEqual([1, { a: 2 }])
    expect(() => evaluateModule('echo', {}, [], {})).toThrow(new GraphError("call_module: the attribute 'echo' is not a Module."))
  })

  test('a missing attribute is named up to its first missing part', () => {
    const values: Readonly<Record<string, unknown>> = { a: {}, 'a.b': {}, 'a.zero': 0 }
    const holder = { attribute: (path: string): unknown => values[path] }
    expect(evaluateAttribute(holder, 'a.zero')).toBe(0)
    for (const [path, missing] of [
      ['x', 'x'],
      ['x.y.z', 'x'],
      ['a.x.y', 'a.x'],
      ['a.b.c', 'a.b.c'],
    ] as const)
      expect(() => evaluateAttribute(holder, path)).toThrow(new GraphError(`Node referenced nonexistent target ${missing}`))
  })

  test('lastUses gives each value to its last user', () => {
    const gm = symbolicTrace((x: Tensor, y: Tensor) => {
      const a = x.neg()
      return a.add(y).mul(a)
    })
    expect(Object.fromEntries([...lastUses(gm.graph)].map(([user, values]) => [user.name, values.map((v) => v.name)]))).toEqual({
      neg: ['x'],
      add: ['y'],
      mul: ['add', 'neg'],
      output: ['mul'],
    })
  })
})

describe('attributes', () => {
  test('containers hold attributes only, and print as Module', () => {
    const held = new Container()
    expect(() => held.forward()).toThrow(new ArgumentError('this module only holds attributes of a GraphModule; call the GraphModule.'))
    expect(String(held)).toBe('Module()')
  })

  test('freePath appends a number if another value is there', () => {
    const [owner, value] = [new Container(), tensor([1])]
    owner.registerBuffer('a', value)
    owner.registerBuffer('b', tensor([2]))
    owner.registerBuffer('b_1', tensor([2]))
    expect([freePath(owner, 'a', value), freePath(owner, 'b', value), freePath(owner, 'c', value)]).toEqual(['a', 'b_2', 'c'])
  })

  test('copies of tensors keep what they are, without history', () => {
    const x = tensor([1, 2], { requiresGrad: true })
    const frozen = new nn.Parameter(tensor([1]), { requiresGrad: false })
    const of = (t: Tensor): unknown => {
      const copy = copyTensor(t)
      return copy instanceof torch.Tensor && [copy.toArray(), copy.requiresGrad, copy.isParameter, copy.gradFn, copy === t]
    }
    expect([of(x), of(x.mul(2)), of(tensor([3])), of(frozen), of(new nn.Parameter(tensor([4])))]).toEqual([
      [[1, 2], true, false, null, false],
      [[2, 4], true, false, null, false],
      [[3], false, false, null, false],
      [[1], false, true, null, false],
      [[4], true, true, null, false],
    ])
    expect(copyable(x)).toBe(x)
    for (const missing of ['detach', 'clone', 'asParameter'])
      expect(() => copyable(new Proxy(x, { has: (target, key) => key !== missing && Reflect.has(target, key) }))).toThrow(
        new ArgumentError('cannot copy this tensor: it has no methods detach, clone and asParameter.'),
      )
  })

  test('a GraphModule takes attributes from a module or from an object of paths', () => {
    const graph = new Graph()
    const x = graph.placeholder('x')
    graph.output(graph.callModule('a.b.fc', [graph.callFunction(torch.mul, [x, graph.getAttr('a.gain')])]))
    const [fc, gain] = [new nn.Linear(1, 1), tensor([2])]
    const gm = new GraphModule({ 'a.b.fc': fc, 'a.gain': gain }, graph)
    expect([gm.attribute('a.b.fc'), gm.attribute('a.gain'), gm.className]).toEqual([fc, gain, 'GraphModule'])
    expect([...gm.namedBuffers()].map(([name]) => name)).toEqual(['a.gain'])
    expect(() => new GraphModule({ 'a.b.fc': fc }, graph.deepCopy())).toThrow(
      new ArgumentError('Node a_gain referenced target a.gain but that target was not provided in `root`!'),
    )
    const again = new Graph()
    again.output([again.getAttr('w'), again.getAttr('w')])
    expect(() => new GraphModule({}, again)).toThrow('Node w referenced target w but')
  })

  test('names that modules use themselves are refused', () => {
    const gm = symbolicTrace((x: Tensor) => x)
    for (const name of ['meta', 'training', 'className', 'graph', 'call'])
      expect(() => gm.assignAttribute(`${name}.x`, tensor([1]))).toThrow(
        new ArgumentError(
          `GraphModule: the attribute '${name}.x' cannot be called '${name}', because every GraphModule has a member of that name; rename it.`,
        ),
      )
    expect(() => gm.addSubmodule('a.forward', new nn.ReLU())).toThrow(
      new ArgumentError(
        "addSubmodule: the attribute 'a.forward' cannot be called 'forward', because every Module has a member of that name; rename it.",
      ),
    )
    expect(gm.addSubmodule('a.graph', new nn.ReLU())).toBe(true)
  })

  test('other roots and graphs are refused', () => {
    const graph = (): Graph => symbolicTrace((x: Tensor) => x).graph
    for (const [root, text] of [
      [null, 'null'],
      [3, 'number'],
      [[], 'Array'],
      [new Map(), 'Map'],
    ] as const)
      expect(() => new GraphModule(root as never, graph())).toThrow(
        new ArgumentError(`Unsupported type ${text} passed for root! Pass a Module, or an object from path to value.`),
      )
    expect(() => new GraphModule({}, {} as never)).toThrow(new ArgumentError("GraphModule: argument 'graph' must be a Graph, got an object."))
    const gm = symbolicTrace((x: Tensor) => x)
    expect(() => Object.assign(gm, { graph: 3 })).toThrow(new ArgumentError("GraphModule: argument 'graph' must be a Graph, got 3."))
    for (const name of ['registerReplaceNodeHook', 'registerCreateNodeHook', 'registerEraseNodeHook'] as const)
      expect(() => gm[name](null as never)).toThrow(new ArgumentError(`${name}: argument 'hook' must be a function, got null.`))
  })

  test('unused submodules go, used ones stay with all that is in them', () => {
    class Outer extends nn.Module {
      readonly used = new nn.Sequential(new nn.Linear(1, 1), new nn.ReLU())
      readonly use = new nn.ReLU()
      override forward(x: Tensor): Tensor {
        return this.used.call(x)
      }
    }
    const gm = symbolicTrace(new Outer())
    gm.addSubmodule('use', new nn.ReLU())
    gm.addSubmodule('usedToo', new nn.ReLU())
    gm.addSubmodule('deep.one', new nn.ReLU())
    gm.assignAttribute('deep.weight', tensor([1]))
    const graph = new Graph()
    graph.output(graph.callFunction(torch.mul, [graph.callModule('used', [graph.placeholder('x')]), graph.getAttr('deep.weight')]))
    const whole = new GraphModule({ used: new Outer().used, 'deep.weight': tensor([1]) }, graph)
    for (const path of ['use', 'usedToo', 'deep.one']) whole.addSubmodule(path, new nn.ReLU())
    whole.deleteAllUnusedSubmodules()
    expect([...whole.namedModules()].map(([path]) => path)).toEqual(['', 'used', 'used.0', 'used.1', 'deep'])
    gm.deleteAllUnusedSubmodules()
    expect([...gm.namedModules()].map(([path]) => path)).toEqual(['', 'used', 'used.0', 'used.1'])
  })

  test('deepCopy copies meta, class name and attributes, and not the graph’s owner', () => {
    const gm = symbolicTrace(new Net())
    gm.meta['note'] = 1
    Object.assign(gm, { extra: { a: [1] } })
    const copy = gm.deepCopy()
    copy.meta['note'] = 2
    expect([gm.meta['note'], copy.className, copy.attribute('extra'), copy.graph === gm.graph, copy.graph.owningModule === copy]).toEqual([
      1,
      'Net',
      { a: [1] },
      false,
      true,
    ])
    expect(copy.attribute('extra')).not.toBe(gm.attribute('extra'))
  })

  test('printReadable has child GraphModules, and prints once or not at all', () => {
    const lines: unknown[] = []
    const { log } = console
    console.log = (text: unknown) => void lines.push(text)
    try {
      const gm = symbolicTrace((x: Tensor) => x)
      gm.addSubmodule(
        'a.inner',
        symbolicTrace((y: Tensor) => y.neg()),
      )
      gm.addSubmodule('b', new nn.Sequential(new nn.ReLU()))
      const text = gm.printReadable()
      expect(lines).toEqual([text])
      expect(text.match(/\/\/ child '.*':/g)).toEqual(["// child 'a.inner':"])
      expect(gm.printReadable({ print: false })).toBe(text)
      expect(lines).toHaveLength(1)
    } finally {
      console.log = log
    }
  })
})

describe('Interpreter', () => {
  const gm = symbolicTrace((input: Tensor) => input.neg().exp().sin())
  const x = tensor([0])

  test('keeps no values, all, the live ones, or those asked for', () => {
    const names = (keep?: 'all' | 'live' | readonly Node[], collect = true): readonly string[] => {
      const run = new Interpreter(gm, { garbageCollectValues: collect })
      run.runWith([x], keep === undefined ? {} : { keep })
      return [...run.env.keys()].map((node) => node.name)
    }
    const all = ['input_1', 'neg', 'exp', 'sin', 'output']
    expect([names(), names(undefined, false), names('all'), names('live'), names('live', false)]).toEqual([
      ['output'],
      all,
      all,
      ['output'],
      ['output'],
    ])
    expect(names(nodesOf(gm).filter((node) => node.name === 'exp'))).toEqual(['exp', 'output'])
  })

  test('processIo: false takes and gives the values of the nodes', () => {
    const nested = symbolicTrace((d: { a: Tensor; b: Tensor }) => ({ sum: d.a.add(d.b) }), { concreteArgs: { d: { a: PH, b: PH } } })
    const [a, b] = [tensor([1]), tensor([2])]
    const run = new Interpreter(nested)
    expect(list((run.run({ a, b }) as { sum: Tensor }).sum)).toEqual([3])
    const flat = run.runWith([a, b], { processIo: false })
    expect(list(Array.isArray(flat) ? flat[0] : flat)).toEqual([3])
  })

  test('boxedRun takes the inputs out of the array', () => {
    const inputs: unknown[] = [x]
    expect(list(new Interpreter(gm).boxedRun(inputs))).toEqual([Math.fround(Math.sin(1))])
    expect(inputs).toEqual([])
  })

  test('runAsync gives the same, between other tasks, and stops when aborted', async () => {
    const run = new Interpreter(gm)
    expect(list(await run.runAsync([x]))).toEqual(list(run.run(x)))
    let turns = 0
    const timer = setInterval(() => turns++)
    try {
      await run.runAsync([x], { yieldTurns: true })
    } finally {
      clearInterval(timer)
    }
    const controller = new AbortController()
    const pending = run.runAsync([x], { signal: controller.signal, yieldTurns: true })
    controller.abort(new Error('stopped'))
    await expect(pending).rejects.toThrow('stopped')
    const nested = symbolicTrace((d: { a: Tensor }) => ({ out: d.a.neg() }), { concreteArgs: { d: { a: PH } } })
    expect(list(((await new Interpreter(nested).runAsync([{ a: tensor([1]) }])) as { out: Tensor }).out)).toEqual([-1])
  })
})

test('useLazyGraphModule holds for a function, or until its scope is disposed', () => {
  const isLazy = (): boolean => symbolicTrace((x: Tensor) => x) instanceof LazyGraphModule
  expect(isLazy()).toBe(false)
  expect(useLazyGraphModule(true, isLazy)).toBe(true)
  expect(isLazy()).toBe(false)
  const scope = useLazyGraphModule(true)
  expect([isLazy(), useLazyGraphModule(false, isLazy), isLazy()]).toEqual([true, false, true])
  scope[Symbol.dispose]()
  expect(isLazy()).toBe(false)
})

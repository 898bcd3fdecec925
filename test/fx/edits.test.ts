// When an edit of a graph takes effect: at recompile, whether or not the code existed before the edit. Until then the module warns, once.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { MockInstance } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Graph, GraphModule, LazyGraphModule, Tracer, TraceError, symbolicTrace, useLazyGraphModule } from 'tensorfx/fx'
import type { Node, Proxied } from 'tensorfx/fx'

const x = torch.tensor([-1, 4])
const values = (t: unknown): unknown => (t as Tensor).toArray()
const traced = (): GraphModule => symbolicTrace((t: Tensor) => torch.relu(t))

/** Every way to change what a graph computes. Each makes `relu(x)` something else. */
const EDITS: Readonly<Record<string, (gm: GraphModule) => void>> = {
  'a target': (gm) => {
    for (const node of gm.graph.nodes) if (node.op === 'call_function') node.target = torch.neg
  },
  'an op': (gm) => {
    const node = relu(gm)
    node.op = 'call_method'
    node.target = 'neg'
  },
  args: (gm) => {
    const output = gm.graph.outputNode()
    output.args = [output.allInputNodes[0]?.args[0] ?? null]
  },
  updateArg: (gm) => gm.graph.outputNode().updateArg(0, relu(gm).args[0]),
  replaceAllUsesWith: (gm) => void relu(gm).replaceAllUsesWith(relu(gm).args[0] as Node),
  'an inserted node': (gm) => {
    const output = gm.graph.outputNode()
    output.args = [gm.graph.insertingBefore(output, () => gm.graph.callFunction(torch.neg, [relu(gm)]))]
  },
  'an erased node': (gm) => {
    const node = relu(gm)
    gm.graph.outputNode().args = [node.args[0]]
    gm.graph.eraseNode(node)
  },
  'a transformer of the code': (gm) => {
    gm.graph.onGenerateCode(() => (body) => body.map((line) => line.replace(/torch\.relu\((\w+)\)/, '$1.neg()')))
  },
}

const relu = (gm: GraphModule): Node => gm.graph.findNodes({ op: 'call_function', target: torch.relu })[0] as Node

let warn: MockInstance<typeof console.warn>
beforeEach(() => {
  warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
})
afterEach(() => {
  warn.mockRestore()
})

const WARNING =
  "GraphModule 't => torch.relu(t)': its graph was edited, but the code from before the edit is still running; call recompile() on the module after editing its graph."

describe.each(Object.entries(EDITS))('an edit (%s)', (_name, edit) => {
  const prepare: Readonly<Record<string, (gm: GraphModule) => unknown>> = {
    'before the code was read': () => undefined,
    'after the code was read': (gm) => gm.code,
    'after a call': (gm) => gm(x),
  }
  it.each(Object.entries(prepare))('%s: the old code runs until recompile', (_when, before) => {
    const gm = traced()
    before(gm)
    const { code } = traced()
    edit(gm)
    expect(gm.code).toBe(code)
    expect(values(gm(x))).toEqual([0, 4])
    gm.recompile()
    expect(values(gm(x))).not.toEqual([0, 4])
  })
})

describe('the warning', () => {
  const message = (gm: GraphModule): string => WARNING.replace("'t => torch.relu(t)'", `'${gm.className}'`)

  it('comes with the first call after an edit, once for each module, and not after recompile', () => {
    const gm = traced()
    gm(x)
    EDITS['a target']?.(gm)
    expect(warn).not.toHaveBeenCalled()
    gm(x)
    gm(x)
    expect(warn.mock.calls).toEqual([[message(gm)]])
    gm.recompile()
    gm(x)
    gm.graph.outputNode().rename('result')
    gm(x)
    expect(warn).toHaveBeenCalledTimes(1)
    const other = traced()
    EDITS['a target']?.(other)
    other(x)
    expect(warn).toHaveBeenCalledTimes(2)
  })

  it('does not come for an unedited or a recompiled module, a copy, or a graph that is built after its module', () => {
    const gm = traced()
    EDITS['a target']?.(gm)
    const copy = gm.deepCopy()
    expect(values(copy(x))).toEqual([1, -4])
    gm.recompile()
    gm(x)
    const built = new GraphModule({}, new Graph())
    built.graph.output(built.graph.callFunction(torch.neg, [built.graph.placeholder('t')]))
    built.recompile()
    expect(values(built(x))).toEqual([1, -4])
    expect(warn).not.toHaveBeenCalled()
  })

  it('comes for the module that gave its graph away, too', () => {
    const gm = traced()
    const next = new GraphModule(gm, gm.graph)
    EDITS['a target']?.(next)
    next.recompile()
    expect(values(next(x))).toEqual([1, -4])
    expect(values(gm(x))).toEqual([0, 4])
    expect(warn.mock.calls).toEqual([[message(gm)]])
  })
})

it('a lazy module has no old code until it runs', () => {
  const gm = useLazyGraphModule(true, traced)
  expect(gm).toBeInstanceOf(LazyGraphModule)
  EDITS['a target']?.(gm)
  expect(values(gm(x))).toEqual([1, -4])
  for (const node of gm.graph.nodes) if (node.op === 'call_function') node.target = torch.abs
  expect(values(gm(x))).toEqual([1, -4])
  expect(warn).toHaveBeenCalledTimes(1)
})

it('a graph that is too long to compile runs as it was, too', () => {
  const graph = new Graph()
  const zero = (): number => 0
  let node = graph.placeholder('x')
  for (let i = 0; i < 20_001; i++) node = graph.callFunction(i === 0 ? torch.relu : zero, [node])
  graph.output(node)
  const inner = [...graph.nodes]
  for (const abs of inner.slice(2, -1)) abs.replaceAllUsesWith(inner[1] as Node)
  const gm = new GraphModule({}, graph)
  for (const first of graph.findNodes({ op: 'call_function', target: torch.relu })) first.target = torch.neg
  graph.eliminateDeadCode()
  expect(graph.size).toBe(3)
  expect(values(gm(x))).toEqual([0, 4])
  expect(warn).toHaveBeenCalledTimes(1)
  gm.recompile()
  expect(values(gm(x))).toEqual([1, -4])
})

describe('the class name', () => {
  it("is PyTorch's default, or the one that is given", () => {
    class Net extends nn.Module {
      override forward(t: Tensor): Tensor {
        return t.neg()
      }
    }
    const net = new Net()
    const graph = new Tracer().trace(net)
    expect([new GraphModule(net, graph).className, new GraphModule(net, graph, 'Mine').className, symbolicTrace(net).className]).toEqual([
      'GraphModule',
      'Mine',
      'Net',
    ])
  })
})

describe('traced values', () => {
  it('x[-1] is getitem, as x[0] is', () => {
    const gm = symbolicTrace((t: Readonly<Record<number, Tensor>>) => [t[-1], t[0], t[-2]])
    const items = gm.graph.findNodes({ op: 'call_function', target: [...gm.graph.nodes][1]?.target ?? '' })
    expect(items.map((n) => [(n.target as { name: string }).name, n.args[1]])).toEqual([
      ['getitem', -1],
      ['getitem', 0],
      ['getitem', -2],
    ])
    const rows = torch.tensor([[1], [2], [3]])
    expect((gm(rows as never) as unknown as Tensor[]).map((t) => t.toArray())).toEqual([[3], [1], [2]])
  })

  it('throw a TraceError when they are used after their trace', () => {
    let kept: Proxied | undefined
    const gm = symbolicTrace((t: Tensor) => {
      kept = t as unknown as Proxied
      return t.neg()
    })
    const late = kept as Proxied
    const { size } = gm.graph
    for (const use of [() => late['add'](1), () => torch.relu(late as never), () => late[0], () => Reflect.apply(Object(late), undefined, [1])]) {
      expect(use).toThrow(TraceError)
      expect(use).toThrow(/a traced value was used after its trace had ended/)
    }
    expect(gm.graph.size).toBe(size)
    // Another trace, with the same tracer or not, has values of its own.
    expect(() => symbolicTrace((t: Tensor) => t.add(late as never))).toThrow(TraceError)
  })

  it('throw after a trace that failed, and the tracer can trace again', () => {
    const tracer = new Tracer()
    let kept: Proxied | undefined
    expect(() =>
      tracer.trace((t: Proxied) => {
        kept = t
        throw new Error('mine')
      }),
    ).toThrow('mine')
    expect(() => (kept as Proxied)['neg']()).toThrow(/after its trace had ended \(neg\)/)
    expect(tracer.trace((t: Proxied) => t['neg']()).size).toBe(3)
  })
})

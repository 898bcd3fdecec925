// Code generation: what the code says, and the ways to change it.
import { describe, expect, it } from 'vitest'
import { nn, operator, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { CodeGen, Graph, GraphModule, PH, Slice, symbolicTrace, tuple, wrap } from 'tensorfx/fx'
import { ShapeProp } from 'tensorfx/fx/passes'
import { setTrace } from 'tensorfx/fx/experimental'
import { expectGraph, readExtra } from './golden.ts'
import type { GoldenGraph } from './golden.ts'

const golden = readExtra<Readonly<Record<'lambda' | 'custom_codegen' | 'tensor_constants' | 'unused_placeholder', GoldenGraph>>>('codegen')

describe('graphs of PyTorch’s cases', () => {
  it('defaults', () =>
    expectGraph(
      // oxlint-disable-next-line no-unused-vars -- the golden's graph has this placeholder, unused
      symbolicTrace((x: Tensor, y = 3, k = null) => x.add(y)),
      golden.lambda,
    ))
  it('a parameter that nobody uses', () =>
    expectGraph(
      symbolicTrace((x: Tensor, y: Tensor) => [x.add(1), y][0]),
      golden.unused_placeholder,
    ))
  it('tensors made while tracing', () => {
    const eye = (): Tensor =>
      torch.tensor([
        [1, 0, 0],
        [0, 1, 0],
      ])
    expectGraph(
      symbolicTrace((x: Tensor) => torch.ones([2, 3]).mul(x).add(eye())),
      golden.tensor_constants,
    )
  })
})

describe('the code', () => {
  it('releases values at their last use, and what nobody uses is not kept', () => {
    const gm = symbolicTrace((x: Tensor) => {
      const a = torch.relu(x)
      torch.neg(a)
      return a.add(a)
    })
    expect(gm.code).toBe(`function forward(x) {
  let relu = torch.relu(x); x = null
  torch.neg(relu)
  const add = relu.add(relu); relu = null
  return add
}`)
  })

  it('test_delete_unused_values: what a call with effects used last is released after it, and its own value is not kept', () => {
    const gm = symbolicTrace((a: Tensor, b: Tensor, c: Tensor) => {
      const y = b.add(c)
      y.copy_(a.add(1))
      return torch.relu(a)
    })
    expect(gm.code).toBe(`function forward(a, b, c) {
  let add = b.add(c); b = c = null
  let add_1 = a.add(1)
  add.copy_(add_1); add = add_1 = null
  const relu = torch.relu(a); a = null
  return relu
}`)
  })

  it('test_imul_code_print: operators that write print as calls, and write (difference: in-place-operators)', () => {
    const graph = new Graph()
    const [a, b] = [graph.placeholder('a'), graph.placeholder('b')]
    graph.callFunction(operator.imul, [a, b])
    graph.output(a)
    const gm = new GraphModule({}, graph)
    expect(gm.code).toContain('operator.imul(a, b)')
    expect((gm.call(torch.tensor(2), torch.tensor(3)) as Tensor).item()).toBe(6)
  })

  it('test_enum: members of an enumeration stand in the code', () => {
    const Color = { red: 'red', green: 2 } as const
    class Member {
      readonly value: number
      constructor(value: number) {
        this.value = value
      }
    }
    const [one, two] = [new Member(1), new Member(2)]
    const pick = wrap((list: unknown[], member: Member | string | number) => [...list, typeof member === 'object' ? member.value : member].at(-1), {
      name: 'test.codegen.pick',
    })
    const gm = symbolicTrace((x: unknown[]) => [pick(x, Color.red), pick(x, Color.green)])
    expect(gm.code).toMatch(/pick\(\w+, 'red'\)[\s\S]*pick\(\w+, 2\)/)
    expect(gm.call([])).toEqual(['red', 2])
    // Objects are constants that the code refers to.
    const graph = new Graph()
    const x = graph.placeholder('x')
    graph.output([graph.callFunction(pick, [x, one]), graph.callFunction(pick, [x, two])])
    expect(new GraphModule({}, graph).call([])).toEqual([1, 2])
  })

  it('test_ellipsis: an index may leave dimensions out', () => {
    const index = [new Slice(null, null, null), new Slice(1, 10, null), '...']
    const gm = symbolicTrace((x: Tensor, y: Tensor) => x.add(operator.getitem(y, index) as Tensor))
    const [x, y] = [torch.rand([5, 9, 3, 4]), torch.rand([5, 15, 3, 4])]
    expect((gm.call(x, y) as Tensor).toArray()).toEqual(x.add(torch.narrow(y, 1, 1, 9)).toArray())
    expect(gm.code).toContain("'...'")
  })

  it('reads attributes by path, numbered children with brackets', () => {
    const gm = symbolicTrace(new nn.Sequential(new nn.Sequential(new nn.ReLU())))
    expect(gm.code).toContain('this[0][0].call(input_1)')
  })

  it('test_empty_graph_codegen: an empty graph is an empty function', () => {
    const gm = new GraphModule({}, new Graph())
    expect(gm.code).toBe('function forward() {\n}')
    expect(gm.call()).toBeUndefined()
  })

  it('test_inf_nan: infinities and NaN are constants that run', () => {
    const gm = symbolicTrace((x: Tensor) => [x.add(Infinity), x.add(-Infinity), x.add(NaN)])
    expect(gm.code).toMatch(/add\(Infinity\)[^]*add\(-Infinity\)[^]*add\(NaN\)/)
    expect((gm.call(torch.ones([2])) as Tensor[]).map((t) => t.toArray())).toEqual([
      [Infinity, Infinity],
      [-Infinity, -Infinity],
      [NaN, NaN],
    ])
  })

  it('test_inf_nan_kwds: nodes that should be called inf and nan get other names, and the constants stay', () => {
    const graph = new Graph()
    const x = graph.placeholder('x')
    const b = graph.createNode('call_function', operator.add, [x, Infinity], {}, 'inf')
    const c = graph.createNode('call_function', operator.add, [x, NaN], {}, 'nan')
    const d = graph.createNode('call_function', operator.add, [x, -Infinity], {}, 'Infinity')
    graph.output([b, c, d])
    expect([b.name, c.name, d.name]).toEqual(['inf_1', 'nan_1', 'Infinity_1'])
    const gm = new GraphModule({}, graph)
    expect((gm.call(torch.ones([1])) as Tensor[]).map((t) => t.toArray())).toEqual([[Infinity], [NaN], [-Infinity]])
  })

  it('test_reserved_getattr: no variable has the name of what the code refers to', () => {
    const graph = new Graph()
    const x = graph.placeholder('x')
    const node = graph.createNode('call_function', torch.relu, [x], {}, 'torch')
    graph.output(graph.callFunction(torch.neg, [node]))
    const gm = new GraphModule({}, graph)
    expect(gm.code).toMatch(/let torch_1 = torch\.relu\(x\)/)
    expect((gm.call(torch.tensor([-1, 2])) as Tensor).toArray()).toEqual([-0, -2])
  })

  it('test_return_tuple, test_dict: returns structures', () => {
    const gm = symbolicTrace((x: Tensor) => ({ a: x, b: [x.add(1), { c: x }] }))
    const x = torch.tensor([1])
    const out = gm.call(x) as { a: Tensor; b: [Tensor, { c: Tensor }] }
    expect(out.b[0].toArray()).toEqual([2])
    expect(out.b[1].c).toBe(x)
  })

  it('shapes, strides and devices stand in readable code when asked for', () => {
    const gm = symbolicTrace((x: Tensor) => torch.relu(x))
    new ShapeProp(gm).propagate(torch.ones([2, 3]))
    const readable = (options: object): string => gm.printReadable({ print: false, ...options })
    expect(readable({})).toContain('// f32[2, 3]')
    expect(readable({ includeStride: true })).toContain('// f32[2, 3][3, 1]')
  })
})

describe('changing the code', () => {
  it('test_lineno_map: lines know their nodes, also when lines were put before them', () => {
    const gm = symbolicTrace((x: Tensor) => torch.neg(torch.relu(x)))
    expect([...gm.lineMap].map(([line, node]) => [line, node.name])).toEqual([
      [2, 'relu'],
      [3, 'neg'],
      [4, 'output'],
    ])
    gm.graph.onGenerateCode(() => (body) => ['console.assert(true)', ...body])
    gm.recompile()
    expect([...gm.lineMap].map(([line, node]) => [line, node.name])).toEqual([
      [3, 'relu'],
      [4, 'neg'],
      [5, 'output'],
    ])
  })

  it('transformers of code wrap each other, and go when their scope ends', () => {
    const gm = symbolicTrace((x: Tensor) => torch.relu(x))
    const plain = gm.code
    {
      using _outer = gm.graph.onGenerateCode((before) => (body) => ['// outer', ...(before === null ? body : before(body))])
      {
        using _inner = gm.graph.onGenerateCode((before) => (body) => ['// inner', ...(before === null ? body : before(body))])
        gm.recompile()
        expect(gm.code).toMatch(/\/\/ inner\n\s+\/\/ outer/)
      }
      gm.recompile()
      expect(gm.code).toMatch(/^function forward\(x\) \{\n\s+\/\/ outer/)
    }
    gm.recompile()
    expect(gm.code).toBe(plain)
  })

  it('what is no code generator, no transformer, or no JavaScript is an error that says so', () => {
    const gm = symbolicTrace((x: Tensor) => torch.relu(x))
    const before = gm.code
    expect(() => gm.graph.setCodegen({} as CodeGen)).toThrow("Graph.setCodegen: argument 'codegen' must be a CodeGen")
    for (const make of [3, () => 3])
      expect(() => gm.graph.onGenerateCode(make as never)).toThrow("Graph.onGenerateCode: argument 'make' must be a function that returns one")
    expect(gm.recompile().source).toBe(before)
    {
      using _ = gm.graph.onGenerateCode(() => (() => 'no lines') as never)
      expect(() => gm.recompile()).toThrow('onGenerateCode: the transformer must return the lines of the body as an array')
    }
    {
      using _ = gm.graph.onGenerateCode(() => (body) => ['let let', ...body])
      gm.recompile()
      expect(() => gm.call(torch.ones([1]))).toThrow(/the generated code of \w+ is not valid JavaScript: [^]*let let/)
    }
    gm.recompile()
    expect((gm.call(torch.tensor([-1])) as Tensor).toArray()).toEqual([0])
  })

  it('a graph that no code can say leaves the module as it was', () => {
    const gm = symbolicTrace((x: Tensor) => torch.relu(x))
    const [code, { graph }] = [gm.code, gm]
    const other = new Graph()
    other.output(other.callFunction(() => 1, [other.placeholder('x')]))
    expect(() => (gm.graph = other)).toThrow('Unable to represent an anonymous function')
    expect([gm.graph === graph, other.owningModule, graph.owningModule === gm]).toEqual([true, null, true])
    const output = graph.outputNode()
    output.args = [graph.insertingBefore(output, () => graph.callFunction(() => 1, []))]
    expect(() => gm.recompile()).toThrow('Unable to represent an anonymous function')
    expect(gm.code).toBe(code)
    expect((gm.call(torch.tensor([-1])) as Tensor).toArray()).toEqual([0])
  })

  it('setTrace puts a breakpoint that stays until the next recompile', () => {
    const gm = symbolicTrace((x: Tensor) => torch.relu(x))
    expect(setTrace(gm).code).toContain('  debugger\n')
    gm.recompile()
    expect(gm.code).not.toContain('debugger')
  })

  it('test_custom_codegen: another head, and inputs of another form', () => {
    class ListCodeGen extends CodeGen {
      override functionHead(parameters: readonly string[]): string {
        return `function forward(list) {\n  let [${parameters.join(', ')}] = list`
      }
      override processInputs(...args: readonly unknown[]): readonly unknown[] {
        return args[0] as readonly unknown[]
      }
    }
    const gm: GraphModule = symbolicTrace((x: Tensor, y: Tensor) => x.add(y))
    gm.graph.setCodegen(new ListCodeGen())
    gm.recompile()
    expect((gm.call([torch.tensor([1]), torch.tensor([2])]) as Tensor).toArray()).toEqual([3])
    expect(gm.graph.deepCopy().codegen).toBeInstanceOf(ListCodeGen)
  })

  it('nested inputs and outputs keep their form', () => {
    const gm = symbolicTrace((d: { a: Tensor; b: Tensor[] }) => [d.a, { k: d.b[0] }], { concreteArgs: { d: { a: PH, b: [PH] } } })
    const [a, b] = [torch.tensor([1]), torch.tensor([2])]
    const out = gm.call({ a, b: [b] }) as [Tensor, { k: Tensor }]
    expect(out[0]).toBe(a)
    expect(out[1].k).toBe(b)
  })

  it('tuples stay tuples when a graph says so', () => {
    const graph = new Graph()
    const x = graph.placeholder('x')
    graph.output(tuple(x, tuple(x)))
    expect(String(graph)).toContain('return (x, (x,))')
    expect(new GraphModule({}, graph).call(1)).toEqual([1, [1]])
  })
})

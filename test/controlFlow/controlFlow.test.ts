// Branches and loops as data: what they compute, what graphs hold of them, and that every way of running a graph gives the same.
import { describe, expect, it } from 'vitest'
import { compile, fx, nn, torch } from 'tensorfx'
import { graphFromJson, graphToJson } from 'tensorfx/fx/json'
import type { Tensor } from 'tensorfx'
import { FakeTensorMode, fakeLike, withMode } from 'tensorfx/dispatch'
import { GraphModule, Interpreter, Transformer, symbolicTrace } from 'tensorfx/fx'
import { MetaTracer } from 'tensorfx/fx/experimental'
import { ShapeProp } from 'tensorfx/fx/passes'
import { loadGraphModule, saveGraphModule } from 'tensorfx/interop'
import { makeFx } from 'tensorfx/aot'

const { cond, map, scan, tensor, whileLoop } = torch

const numbers = (value: unknown): number[] =>
  Array.isArray(value) ? (value as unknown[]).flatMap(numbers) : Array.from((value as Tensor).contiguous().toTypedArray(), Number)
const close = (got: unknown, want: unknown): void => {
  const [a, b] = [numbers(got), numbers(want)]
  expect(a.length).toBe(b.length)
  a.forEach((v, i) => expect(v).toBeCloseTo(b[i] as number, 5))
}
const nodes = (gm: GraphModule): string[] => [...gm.graph.nodes].map((n) => `${n.op} ${n.name}`)
const child = (gm: GraphModule, path: string): GraphModule => gm.attribute(path) as GraphModule

/** A program with control flow, the same in plain JavaScript, and inputs that take it in all directions. */
interface Case {
  readonly program: (...inputs: Tensor[]) => Tensor | readonly Tensor[]
  readonly plain: (...inputs: Tensor[]) => Tensor | readonly Tensor[]
  readonly inputs: () => readonly (readonly Tensor[])[]
  readonly target: string
}

const v = (...values: number[]): Tensor => tensor(values)
const cases: Readonly<Record<string, Case>> = {
  cond: {
    program: (x) =>
      cond(
        x.sum().gt(0),
        (a) => a.cos().mul(a),
        (a) => a.sin(),
        [x],
      ),
    plain: (x) => ((x.sum().item() as number) > 0 ? x.cos().mul(x) : x.sin()),
    inputs: () => [[v(1, -0.5, 2)], [v(-1, 0.5, -2)]],
    target: 'torch.ops.higher_order.cond',
  },
  'cond with values from outside, and several results': {
    program: (x, w) => {
      const k = x.mul(w)
      return cond(
        w.sum().gt(0),
        () => [k.add(x), w] as readonly Tensor[],
        () => [k, x.sub(w)] as readonly Tensor[],
      )
    },
    plain: (x, w) => ((w.sum().item() as number) > 0 ? [x.mul(w).add(x), w] : [x.mul(w), x.sub(w)]),
    inputs: () => [
      [v(1, 2), v(0.5, 1)],
      [v(1, 2), v(-0.5, -1)],
    ],
    target: 'torch.ops.higher_order.cond',
  },
  'cond inside of cond': {
    program: (x, y) =>
      cond(
        x.sum().gt(0),
        (a) =>
          cond(
            y.sum().gt(0),
            () => a.mul(y),
            () => a.add(y),
          ),
        (a) => a.neg(),
        [x],
      ),
    plain: (x, y) => ((x.sum().item() as number) > 0 ? ((y.sum().item() as number) > 0 ? x.mul(y) : x.add(y)) : x.neg()),
    inputs: () => [
      [v(1, 2), v(3, 4)],
      [v(1, 2), v(-3, -4)],
      [v(-1, -2), v(3, 4)],
    ],
    target: 'torch.ops.higher_order.cond',
  },
  whileLoop: {
    program: (x, limit) =>
      whileLoop(
        (y) => y.sum().lt(limit.sum()),
        (y) => [y.mul(2).add(x)],
        [x],
      )[0],
    plain: (x, limit) => {
      let y = x
      while ((y.sum().item() as number) < (limit.sum().item() as number)) y = y.mul(2).add(x)
      return y
    },
    inputs: () => [
      [v(1, 2), v(100)],
      [v(1, 2), v(0)],
    ],
    target: 'torch.ops.higher_order.while_loop',
  },
  scan: {
    program: (xs, w) => {
      const [last, all] = scan((carry, x) => [carry.mul(w).add(x), carry.mul(x)] as [Tensor, Tensor], w, xs)
      return [last, all]
    },
    plain: (xs, w) => {
      let carry = w
      const ys: Tensor[] = []
      for (const x of torch.unbind(xs)) {
        ys.push(carry.mul(x))
        carry = carry.mul(w).add(x)
      }
      return [carry, torch.stack(ys)]
    },
    inputs: () => [
      [
        tensor([
          [1, 2],
          [3, 4],
          [5, 6],
        ]),
        v(0.5, -0.5),
      ],
    ],
    target: 'torch.ops.higher_order.scan',
  },
  'scan backwards along another dimension': {
    program: (xs) => [...scan((carry, x) => [carry.add(x), carry.mul(x)] as [Tensor, Tensor], torch.ones([2]), xs, { dim: 1, reverse: true })],
    plain: (xs) => {
      let carry = torch.ones([2])
      const ys: Tensor[] = []
      for (const x of torch.unbind(xs, 1).toReversed()) {
        ys.unshift(carry.mul(x))
        carry = carry.add(x)
      }
      return [carry, torch.stack(ys)]
    },
    inputs: () => [
      [
        tensor([
          [1, 2, 3],
          [4, 5, 6],
        ]),
      ],
    ],
    target: 'torch.ops.higher_order.scan',
  },
  map: {
    program: (xs, w) => map((x, u) => x.mul(u).sum().add(w.mean()), xs, w),
    plain: (xs, w) => torch.stack(torch.unbind(xs).map((x) => x.mul(w).sum().add(w.mean()))),
    inputs: () => [
      [
        tensor([
          [1, 2],
          [3, 4],
          [5, 6],
        ]),
        v(0.5, -1),
      ],
    ],
    target: 'torch.ops.higher_order.map_impl',
  },
}

describe.each(Object.entries(cases))('%s', (_, { program, plain, inputs, target }) => {
  const gm = symbolicTrace(program) as GraphModule

  it('computes what plain JavaScript does, eagerly and traced', () => {
    for (const given of inputs()) {
      close(program(...given), plain(...given))
      close(gm.call(...given), plain(...given))
    }
  })

  it('is one node with its functions as child graphs, on well-formed graphs', () => {
    gm.graph.lint()
    const calls = [...gm.graph.nodes].filter((n) => n.op === 'call_function' && fx.operator.getitem !== n.target)
    expect(String(calls.at(-1))).toBeTruthy()
    expect(String(gm.graph)).toContain(`call_function[target=${target}]`)
    const children = [...gm.namedChildren()].filter(([, m]) => m instanceof GraphModule)
    expect(children.length).toBeGreaterThan(0)
    for (const [name, module] of children) {
      ;(module as GraphModule).graph.lint()
      expect(gm.printReadable({ print: false })).toContain(`class ${name} extends nn.Module`)
    }
  })

  it('every way of running and keeping the graph computes the same', async () => {
    const ways: GraphModule[] = [
      new Transformer(gm).transform(),
      symbolicTrace(gm),
      gm.deepCopy(),
      loadGraphModule(saveGraphModule(gm)),
      new GraphModule(gm, graphFromJson(JSON.parse(JSON.stringify(graphToJson(gm.graph))) as never)),
    ]
    const cleaned = gm.deepCopy()
    expect(cleaned.graph.eliminateDeadCode()).toBe(false)
    for (const given of inputs()) {
      const want = plain(...given)
      close(new Interpreter(gm).run(...given), want)
      close(new ShapeProp(gm.deepCopy()).propagate(...given), want)
      for (const way of ways) {
        way.graph.lint()
        close(way.call(...given), want)
      }
    }
  })

  it('has the gradients of plain JavaScript', () => {
    for (const given of inputs()) {
      const gradients = (run: (...xs: Tensor[]) => unknown): number[] => {
        const leaves = given.map((t) => t.clone().requiresGrad_())
        const out = run(...leaves)
        const total = (Array.isArray(out) ? (out as Tensor[]) : [out as Tensor]).map((t) => t.mul(t).sum()).reduce((a, b) => a.add(b))
        total.backward()
        return leaves.flatMap((leaf) => (leaf.grad === null ? [0] : numbers(leaf.grad)))
      }
      const want = gradients(plain)
      gradients(program).forEach((g, i) => expect(g).toBeCloseTo(want[i] as number, 4))
      gradients((...xs) => gm.call(...xs)).forEach((g, i) => expect(g).toBeCloseTo(want[i] as number, 4))
    }
  })

  it('compiles, with the results of eager', () => {
    const compiled = compile(program as (...xs: Tensor[]) => unknown)
    for (const given of inputs()) for (let round = 0; round < 2; round++) close(compiled(...given), plain(...given))
  })

  it('knows shapes when it is traced with some', () => {
    const [given] = inputs() as [readonly Tensor[]]
    const names = [...gm.graph.findNodes({ op: 'placeholder' })].map((n) => n.name)
    const metaArgs = Object.fromEntries(names.map((name, i) => [name, given[i]]))
    const withShapes = symbolicTrace(program, { tracer: new MetaTracer({ metaArgs }) })
    close(withShapes.call(...given), plain(...given))
  })
})

describe('cond', () => {
  it('graphs and child graphs read as PyTorch’s', () => {
    const gm = symbolicTrace((x: Tensor) =>
      cond(
        x.sum().gt(0),
        (a) => a.cos(),
        (a) => a.sin(),
        [x],
      ),
    )
    expect(String(gm.graph)).toBe(`graph():
    %x : [num_users=2] = placeholder[target=x]
    %sum_1 : [num_users=1] = call_method[target=sum](args = (%x,), kwargs = {})
    %gt : [num_users=1] = call_method[target=gt](args = (%sum_1, 0), kwargs = {})
    %true_graph_0 : [num_users=1] = get_attr[target=true_graph_0]
    %false_graph_0 : [num_users=1] = get_attr[target=false_graph_0]
    %cond : [num_users=1] = call_function[target=torch.ops.higher_order.cond](args = (%gt, %true_graph_0, %false_graph_0, [%x]), kwargs = {})
    %getitem : [num_users=1] = call_function[target=operator.getitem](args = (%cond, 0), kwargs = {})
    return getitem`)
    expect(String(child(gm, 'true_graph_0').graph)).toBe(`graph():
    %x : [num_users=1] = placeholder[target=x]
    %cos : [num_users=1] = call_method[target=cos](args = (%x,), kwargs = {})
    return [cos]`)
    expect(gm.code).toContain('torch.ops.higher_order.cond(gt, true_graph_0, false_graph_0, [x])')
  })

  class Branches extends nn.Module {
    up = new nn.Linear(3, 3)
    down = new nn.Linear(3, 3)
    scale = new nn.Parameter(torch.full([3], 2))
    override forward(x: Tensor): Tensor {
      return cond(
        x.sum().gt(0),
        () => this.up.call(x),
        () => this.down.call(x).mul(this.scale),
      )
    }
  }

  it('branches may call modules and read parameters; the traced module is left as it was', () => {
    const model = new Branches()
    const gm = symbolicTrace(model)
    const x = v(1, 2, 3)
    close(gm.call(x), model.call(x))
    close(gm.call(x.neg()), model.call(x.neg()))
    expect([...model.namedChildren()].map(([name]) => name)).toEqual(['up', 'down'])
    expect(child(gm, 'false_graph_0').attribute('down')).toBe(model.down)
    gm.call(x.neg()).sum().backward()
    expect(model.down.weight.grad).not.toBe(null)
    expect(model.scale.grad).not.toBe(null)
    expect(model.up.weight.grad).toBe(null)
  })

  it('a plain condition chooses while tracing', () => {
    const gm = symbolicTrace((x: Tensor) =>
      cond(
        true,
        (a) => a.cos(),
        (a) => a.sin(),
        [x],
      ),
    )
    expect(nodes(gm)).toEqual(['placeholder x', 'call_method cos', 'output output'])
  })

  it('operands may be nested, and hold numbers', () => {
    const program = (x: Tensor): Tensor =>
      cond(
        x.sum().gt(0),
        ({ a, by }) => a.mul(by),
        ({ a, by }) => a.sub(by),
        [{ a: x, by: 3 }],
      )
    const gm = symbolicTrace(program)
    for (const x of [v(1, 2), v(-1, -2)]) close(gm.call(x), program(x))
  })

  it('branches of different structure, and what is no function, are errors that say so', () => {
    expect(() =>
      symbolicTrace((x: Tensor) =>
        cond<[Tensor], unknown>(
          x.sum().gt(0),
          (a) => a,
          (a) => [a, a],
          [x],
        ),
      ),
    ).toThrow(/cond: the result of trueFn and that of falseFn must have the same structure/)
    expect(() => cond(true, 1 as never, (() => 1) as never)).toThrow('cond: trueFn must be a function, got number.')
    expect(() =>
      cond(
        true,
        () => 1,
        () => 2,
        3 as never,
      ),
    ).toThrow('cond: operands must be an array')
  })

  it('test_control_flow_tracing: a value of a tracer without child graphs is refused', () => {
    const graph = new fx.Graph()
    const x = new fx.Proxy(graph.placeholder('x'))
    expect(() =>
      cond(
        x as never,
        () => 1,
        () => 2,
      ),
    ).toThrow('Unable to symbolically trace HigherOrderOperators')
  })

  it('a failed trace leaves the module as it was', () => {
    class Fails extends nn.Module {
      override forward(x: Tensor): Tensor {
        const y = cond(
          x.sum().gt(0),
          (a) => a.cos(),
          (a) => a.sin(),
          [x],
        )
        return y.item() as never
      }
    }
    const model = new Fails()
    expect(() => symbolicTrace(model)).toThrow()
    expect('true_graph_0' in model).toBe(false)
  })

  it('dead code: unused branches go, unless they have effects', () => {
    const pure = symbolicTrace((x: Tensor) => {
      cond(
        x.sum().gt(0),
        (a) => a.cos(),
        (a) => a.sin(),
        [x],
      )
      return x
    })
    pure.graph.eliminateDeadCode()
    expect(nodes(pure)).toEqual(['placeholder x', 'output output'])
    const writes = symbolicTrace((x: Tensor) => {
      cond(
        x.sum().gt(0),
        (a) => a.add_(1),
        (a) => a.sin(),
        [x],
      )
      return x
    })
    writes.graph.eliminateDeadCode()
    expect(nodes(writes)).toContain('call_function cond')
  })

  it('on fake tensors both branches must agree', () => {
    const gm = symbolicTrace((x: Tensor) =>
      cond(
        x.sum().gt(0),
        (a) => a.cos(),
        (a) => a.sum(),
        [x],
      ),
    )
    const fakes = new FakeTensorMode()
    expect(() => withMode(fakes, () => gm.call(fakeLike(v(1, 2))))).toThrow(/must have the same shapes and dtypes/)
    const constants = symbolicTrace((x: Tensor) =>
      cond<unknown>(
        x.sum().gt(0),
        () => 1,
        () => 2,
      ),
    )
    expect(() => withMode(fakes, () => constants.call(fakeLike(v(1, 2))))).toThrow(/value 0 is number 1 in the first and number 2 in the second/)
    const agree = symbolicTrace((x: Tensor) =>
      cond(
        x.sum().gt(0),
        (a) => a.cos(),
        (a) => a.sin(),
        [x],
      ),
    )
    expect(withMode(fakes, () => agree.call(fakeLike(v(1, 2)))).shape).toEqual([2])
  })

  it('makeFx, which sees operators and no branches, refuses a condition on values', () => {
    expect(() =>
      makeFx((x: Tensor) =>
        cond(
          x.sum().gt(0),
          (a) => a.cos(),
          (a) => a.sin(),
          [x],
        ),
      )(v(1, 2)),
    ).toThrow(/cond: the condition depends on values, which are not known while operators are recorded/)
    const unrolled = makeFx((xs: Tensor) => map((x: Tensor) => x.cos(), xs))(torch.ones([2, 3]))
    close(unrolled.call(v(1, 2, 3, 4, 5, 6).reshape([2, 3])), v(1, 2, 3, 4, 5, 6).cos())
  })
})

describe('loops', () => {
  it('whileLoop: counters and several values; the graph is PyTorch’s', () => {
    const program = (x: Tensor): readonly Tensor[] =>
      whileLoop(
        (n) => n.lt(4),
        (n, y) => [n.add(1), y.mul(2)],
        [tensor(0), x],
      )
    const gm = symbolicTrace(program)
    close(program(v(1, 3))[1], v(16, 48))
    close((gm.call(v(1, 3)) as Tensor[])[1], v(16, 48))
    expect(String(gm.graph)).toContain('while_loop](args = (%cond_fn_0, %body_fn_0, (%_tensor_constant0, %x), ()), kwargs = {})')
  })

  it('whileLoop: values that change their shape, and values that are no tensors, are refused', () => {
    expect(() =>
      whileLoop(
        (n) => n.sum().lt(4),
        (n) => [torch.cat([n, n])],
        [v(1, 1)],
      ),
    ).toThrow(
      'whileLoop: the carried values and what bodyFn returns must have the same shapes and dtypes, but value 0 is float32[2] in the first and float32[4] in the second.',
    )
    expect(() =>
      symbolicTrace((x: Tensor) =>
        whileLoop(
          (_, n) => (n as unknown as Tensor).lt(4),
          (y, n) => [y, n] as never,
          [x, 0],
        ),
      ),
    ).toThrow('whileLoop: carried must hold tensors only when it is traced, but value 1 is number; write torch.tensor(…).')
    expect(() => whileLoop((n) => n.sum().lt(4), ((n: Tensor) => n) as never, [v(1)])).toThrow('must have the same structure')
  })

  it('scan and map: nothing to walk, and sizes that differ, are refused', () => {
    expect(() => scan((c: Tensor, x: Tensor) => [c.add(x), c], v(0), torch.ones([0]))).toThrow(
      'scan: xs must have at least one slice in dimension 0.',
    )
    expect(() => map((x: readonly Tensor[]) => x[0] as Tensor, [torch.ones([2]), torch.ones([3])])).toThrow(
      'map: all xs must have the same size in dimension 0',
    )
    expect(() => scan((c: Tensor) => c as never, v(0), torch.ones([2]))).toThrow('scan: combineFn must return an array of two: [carry, y].')
  })

  it('structures: carries, slices and results of any shape of object', () => {
    const program = (a: Tensor, b: Tensor): Tensor => {
      const [carry, ys] = scan(
        (c: { sum: Tensor }, { p, q }: { p: Tensor; q: Tensor }) => [{ sum: c.sum.add(p.mul(q)) }, [p, q]] as [{ sum: Tensor }, Tensor[]],
        { sum: torch.zeros([]) },
        { p: a, q: b },
      )
      return carry.sum.add((ys[0] as Tensor).sum())
    }
    const gm = symbolicTrace(program)
    close(gm.call(v(1, 2, 3), v(4, 5, 6)), tensor(38))
    close(program(v(1, 2, 3), v(4, 5, 6)), tensor(38))
  })
})

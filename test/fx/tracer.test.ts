// What a Tracer records, and what of it can be overridden.
import { describe, expect, it } from 'vitest'
import { ArgumentError, Tensor, UnsupportedError, operator, torch } from 'tensorfx'
import {
  FX_CREATE_ARG,
  GraphModule,
  PH,
  TraceError,
  Tracer,
  _assert,
  bool,
  isFxTracing,
  isProxy,
  nodeOf,
  proxyable,
  symbolicTrace,
  tuple,
  wrap,
} from 'tensorfx/fx'
import type { Argument, Kwargs, Node, Opcode, Proxied, Target, TracerBase } from 'tensorfx/fx'
import * as nn from 'tensorfx/nn'

const { ones, tensor } = torch

const { Module, Parameter } = nn
const F = torch.nn.functional
const values = (t: unknown): number[] => Array.from((t as Tensor).contiguous().toTypedArray(), Number)
const run = (m: GraphModule, ...args: readonly unknown[]): unknown => (m.forward as (...a: readonly unknown[]) => unknown)(...args)
const lines = (m: GraphModule): string[] =>
  String(m.graph)
    .split('\n')
    .slice(1)
    .map((l) => l.trim())
const ops = (m: GraphModule): string[] => [...m.graph.nodes].map((n) => n.op)

class Weighted extends Module {
  readonly weight = new Parameter(ones([2, 2]))
  override forward(x: Tensor): Tensor {
    return x.add(this.weight)
  }
}

describe('modules and functions', () => {
  it('test_graph_module: modules with parameters and submodules trace, lint and compute the same', () => {
    class Sub extends Module {
      readonly w = new Parameter(ones([3]))
      override forward(x: Tensor): Tensor {
        return x.mul(this.w).add(1)
      }
    }
    class Root extends Module {
      readonly sub = new Sub()
      readonly b = new Parameter(ones([3]))
      override forward(x: Tensor): [Tensor, Tensor] {
        const y = this.sub.call(x)
        return [y.add(this.b), F.relu(y)]
      }
    }
    const root = new Root()
    const gm = symbolicTrace(root)
    gm.graph.lint()
    expect([...gm.graph.nodes].filter((n) => n.op === 'get_attr').map((n) => n.target)).toEqual(['sub.w', 'b'])
    const x = tensor([1, -2, 3])
    const [a, b] = root.call(x)
    const [c, d] = run(gm, x) as [Tensor, Tensor]
    expect([values(c), values(d)]).toEqual([values(a), values(b)])
  })

  it('test_trace_function: a free function is traced, and gives its name to the GraphModule', () => {
    function double(x: Tensor): Tensor {
      return x.add(x)
    }
    const gm = symbolicTrace(double)
    expect(gm.getName()).toBe('double')
    expect(values(run(gm, tensor([2])))).toEqual([4])
  })

  it('test_symbolic_trace_sequential: a Sequential is traced through to its leaves', () => {
    const gm = symbolicTrace(new nn.Sequential(new nn.Linear(2, 3), new nn.ReLU()))
    expect(lines(gm)).toEqual([
      '%input_1 : [num_users=1] = placeholder[target=input]',
      '%_0 : [num_users=1] = call_module[target=0](args = (%input_1,), kwargs = {})',
      '%_1 : [num_users=1] = call_module[target=1](args = (%_0,), kwargs = {})',
      'return _1',
    ])
  })

  it('test_leaf_module: without leaves there is no call_module', () => {
    class NoLeaves extends Tracer {
      override isLeafModule(): boolean {
        return false
      }
    }
    const gm = symbolicTrace(new nn.Sequential(new nn.ReLU(), new nn.Linear(2, 2)), { tracer: new NoLeaves() })
    expect(ops(gm)).not.toContain('call_module')
  })

  it('test_trace_multiple_funcs: tracedFuncName chooses the method; one that does not exist is an error', () => {
    class Two extends Module {
      override forward(x: Tensor, y: Tensor): Tensor {
        return x.add(y)
      }
      minus(x: Tensor, y: Tensor): Tensor {
        return x.sub(y)
      }
    }
    const two = new Two()
    const trace = (name: string): Tracer => Object.assign(new Tracer(), { tracedFuncName: name })
    const [x, y] = [tensor([5]), tensor([3])]
    expect(values(run(symbolicTrace(two, { tracer: trace('minus') }), x, y))).toEqual([2])
    expect(values(run(symbolicTrace(two), x, y))).toEqual([8])
    expect(() => symbolicTrace(two, { tracer: trace('times') })).toThrow("traced_func_name=times doesn't exist in Two")
  })

  it('test_deepcopy_tracer: one tracer traces many programs, each afresh', () => {
    const tracer = new Tracer()
    const c = tensor([1])
    const first = tracer.trace((x: Tensor) => x.add(c))
    const second = tracer.trace((y: Tensor) => y.mul(c))
    expect([...first.nodes].map((n) => n.name)).toEqual(['x', '_tensor_constant0', 'add', 'output'])
    expect([...second.nodes].map((n) => n.name)).toEqual(['y', '_tensor_constant0', 'mul', 'output'])
  })

  it('traces may nest, and isFxTracing tells whether one is running', () => {
    const seen: boolean[] = [isFxTracing()]
    symbolicTrace((x: Tensor) => {
      const inner = symbolicTrace((y: Tensor) => y.relu())
      seen.push(isFxTracing(), inner.graph.nodes.length === 3)
      return x.add(1)
    })
    seen.push(isFxTracing())
    expect(seen).toEqual([false, true, true, false])
  })

  it('what is no function, an async function and a generator are refused', () => {
    expect(() => symbolicTrace(3 as never)).toThrow(ArgumentError)
    expect(() => symbolicTrace(3 as never)).toThrow("argument 'root' must be a function or a Module, got 3")
    expect(() => symbolicTrace(Weighted as never)).toThrow('got the class Weighted; pass an instance')
    expect(() => symbolicTrace((x: Tensor) => Promise.resolve(x))).toThrow('an async function cannot be traced')
    expect(() =>
      symbolicTrace(function* (x: Tensor) {
        yield x
      }),
    ).toThrow('a generator cannot be traced')
  })

  it('a failed trace leaves the module as it was', () => {
    class Fails extends Module {
      readonly w = new Parameter(ones([2]))
      override forward(x: Tensor): Tensor {
        const y = x.add(this.w).add(tensor([1, 2]))
        if (y.sum().item() === 0) return x
        return y
      }
    }
    const module = new Fails()
    const { w } = module
    expect(() => symbolicTrace(module)).toThrow(TraceError)
    expect(module.w).toBe(w)
    expect(Object.getOwnPropertyDescriptor(module, 'w')?.get).toBeUndefined()
    expect(Object.keys(module).filter((k) => k.startsWith('_tensor'))).toEqual([])
  })

  it('a module that is no submodule of the root is refused', () => {
    class Makes extends Module {
      override forward(x: Tensor): Tensor {
        return new nn.Linear(2, 2).call(x)
      }
    }
    expect(() => symbolicTrace(new Makes())).toThrow('module Linear is not installed as a submodule')
  })
})

describe('parameters of the traced function', () => {
  it('test_single_default_arg, test_multiple_default_args, test_regular_and_default_args: defaults stand on the placeholders', () => {
    const gm = symbolicTrace((x: Tensor, y = 2, z: number | null = null, s = 'a', list = [1, -2]) => {
      void [z, s, list]
      return x.mul(y)
    })
    expect(lines(gm).slice(0, 5)).toEqual([
      '%x : [num_users=1] = placeholder[target=x]',
      '%y : [num_users=1] = placeholder[target=y](default=2)',
      '%z : [num_users=0] = placeholder[target=z](default=None)',
      '%s : [num_users=0] = placeholder[target=s](default=a)',
      '%list_1 : [num_users=0] = placeholder[target=list](default=[1, -2])',
    ])
    expect(values(run(gm, tensor([3])))).toEqual([6])
    expect(values(run(gm, tensor([3]), 5))).toEqual([15])
  })

  it('a default that only running the program would tell makes a parameter without default', () => {
    const scale = 4
    const gm = symbolicTrace((x: Tensor, y = scale) => x.mul(y))
    expect(gm.graph.first?.next?.args).toEqual([])
  })

  it('test_args_kwargs: elements of a rest parameter are read from one placeholder (difference: rest-parameter)', () => {
    const gm = symbolicTrace((...args: Tensor[]) => (args[0] as Tensor).add(args[1] as Tensor))
    expect(lines(gm)).toEqual([
      '%_args : [num_users=2] = placeholder[target=*args]',
      '%getitem : [num_users=1] = call_function[target=operator.getitem](args = (%_args, 0), kwargs = {})',
      '%getitem_1 : [num_users=1] = call_function[target=operator.getitem](args = (%_args, 1), kwargs = {})',
      '%add : [num_users=1] = call_method[target=add](args = (%getitem, %getitem_1), kwargs = {})',
      'return add',
    ])
    expect(values(run(gm, tensor([1]), tensor([2])))).toEqual([3])
    const again = symbolicTrace(gm)
    expect(again.graph.nodes.length).toBe(gm.graph.nodes.length)
    expect(values(run(again, tensor([1]), tensor([2])))).toEqual([3])
  })

  it('test_args_kwargs: an options object has a placeholder for each of its properties (difference: options-object)', () => {
    const gm = symbolicTrace((x: Tensor, { scale = 2, bias = null as Tensor | null } = {}) => {
      void bias
      return x.mul(scale)
    })
    expect(lines(gm).slice(0, 3)).toEqual([
      '%x : [num_users=1] = placeholder[target=x]',
      '%scale : [num_users=1] = placeholder[target=scale](default=2)',
      '%bias : [num_users=0] = placeholder[target=bias](default=None)',
    ])
    expect(gm.code).toContain('function forward(x, { scale = 2, bias = null } = {}) {')
    const three = tensor([3])
    expect([run(gm, three), run(gm, three, {}), run(gm, three, { scale: 5 })].map(values)).toEqual([[6], [6], [15]])
    expect(String(symbolicTrace(gm).graph)).toBe(String(gm.graph))
  })

  it('an options object may hold patterns, and defaults that only running the program would tell; those are inputs without default', () => {
    const scale = 2
    const gm = symbolicTrace((x: Tensor, { by: { n }, to = scale }: { by: { n: number }; to?: number }) => x.mul(n).add(to))
    expect(gm.code).toContain('function forward(x, { by, to } = {}) {')
    expect(values(run(gm, tensor([3]), { by: { n: 2 }, to: 1 }))).toEqual([7])
  })

  it('defaults that a traced value would hide are refused', () => {
    expect(() => symbolicTrace(([a, b = 1]: [Tensor, number?]) => a.add(b))).toThrow('the pattern of parameter 1 contains a default')
    expect(() => symbolicTrace((x: Tensor, { o: { n = 1 } }: { o: { n?: number } }) => x.add(n))).toThrow('the pattern of parameter 2 has a default')
    expect(() => symbolicTrace((x: Tensor, { n = 1 } = { n: 2 }) => x.add(n))).toThrow('the pattern of parameter 2 contains a default')
    const gm = symbolicTrace((x: Tensor, { n = 1 } = { n: 2 }) => x.add(n), { concreteArgs: { arg1: { n: 5 } } })
    expect(values(run(gm, tensor([1]), { n: 5 }))).toEqual([6])
  })

  it('a pattern of an array reads elements', () => {
    const gm = symbolicTrace(([a, b]: [Tensor, Tensor]) => a.sub(b))
    expect(values(run(gm, [tensor([5]), tensor([3])]))).toEqual([2])
  })

  it('a rest parameter whose length matters asks for concreteArgs', () => {
    const all = (...xs: Tensor[]): Tensor => torch.cat(xs)
    expect(() => symbolicTrace(all)).toThrow('the rest parameter ...xs has no known length')
    const gm = symbolicTrace(all, { concreteArgs: { xs: [PH, PH] } })
    expect(lines(gm)[2]).toBe('%cat : [num_users=1] = call_function[target=torch.cat](args = ([%xs_1, %xs_2],), kwargs = {})')
    expect(values(run(gm, tensor([1]), tensor([2])))).toEqual([1, 2])
  })

  it('test_varargs_concrete: an array of PH for a function of only a rest parameter', () => {
    const gm = symbolicTrace((...args: Tensor[]) => args.reduce((a, b) => a.add(b)), { concreteArgs: [PH, PH, PH] })
    expect([...gm.graph.nodes].slice(0, 3).map((n) => n.target)).toEqual(['input_0', 'input_1', 'input_2'])
    expect(values(run(gm, tensor([1]), tensor([2]), tensor([3])))).toEqual([6])
  })
})

describe('values', () => {
  it('test_dict: a plain object as input and output', () => {
    const gm = symbolicTrace((d: { a: Tensor; b: Tensor }) => {
      const { a, b } = d
      return { sum: a.add(b), a }
    })
    const out = run(gm, { a: tensor([1]), b: tensor([2]) }) as { sum: Tensor; a: Tensor }
    expect([values(out.sum), values(out.a)]).toEqual([[3], [1]])
  })

  it('test_unpack: destructuring reads as many elements as there are names', () => {
    const gm = symbolicTrace((pair: Tensor[]) => {
      const [a, b] = pair as [Tensor, Tensor]
      return a.add(b)
    })
    expect([...gm.graph.nodes].filter((n) => n.target === operator.getitem)).toHaveLength(2)
    expect(values(run(gm, [tensor([1]), tensor([2])]))).toEqual([3])
  })

  it('test_matmul_tracing: a constant on either side', () => {
    const c = tensor([
      [1, 2],
      [3, 4],
    ])
    const x = ones([2, 2])
    for (const f of [(t: Tensor) => t.matmul(c), (t: Tensor) => c.matmul(t)]) expect(values(run(symbolicTrace(f), x))).toEqual(values(f(x)))
  })

  it('test_return_tuple, test_string_literal_return: arrays, tuples, strings, numbers and null are returned as they are', () => {
    const gm = symbolicTrace((x: Tensor) => tuple(x, [x, 2], 'done', null))
    expect(lines(gm)[1]).toBe("return (x, [x, 2], 'done', None)")
    expect((run(gm, 7) as unknown[])[2]).toBe('done')
  })

  it('test_tensor_constant, test_trace_fn_constant: a tensor from outside becomes an attribute', () => {
    const bias = tensor([10, 20])
    const gm = symbolicTrace((x: Tensor) => x.add(bias))
    expect(lines(gm)[1]).toBe('%_tensor_constant0 : [num_users=1] = get_attr[target=_tensor_constant0]')
    expect(values(run(gm, tensor([1, 2])))).toEqual([11, 22])
  })

  it('test_tensor_attribute_coalseced: one tensor is one attribute, however often it is used', () => {
    const c = tensor([2])
    const gm = symbolicTrace((x: Tensor) => x.add(c).mul(c).sub(c))
    const reads = [...gm.graph.nodes].filter((n) => n.op === 'get_attr')
    expect(reads.map((n) => n.target)).toEqual(['_tensor_constant0', '_tensor_constant0', '_tensor_constant0'])
    expect(reads.map((n) => n.name)).toEqual(['_tensor_constant0', '_tensor_constant0_1', '_tensor_constant0_2'])
  })

  it('test_tensor_attribute: tensors that are attributes of modules keep their paths', () => {
    class Inner extends Module {
      readonly t = tensor([3])
      override forward(x: Tensor): Tensor {
        return x.add(this.t)
      }
    }
    class Outer extends Module {
      readonly inner = new Inner()
      readonly own = tensor([4])
      override forward(x: Tensor): Tensor {
        return this.inner.call(x).mul(this.own)
      }
    }
    const gm = symbolicTrace(new Outer())
    expect([...gm.graph.nodes].filter((n) => n.op === 'get_attr').map((n) => n.target)).toEqual(['inner.t', 'own'])
    expect(values(run(gm, tensor([1])))).toEqual([16])
  })

  it('test_direct_param_use: a parameter as argument and as output; a foreign one is refused', () => {
    class Direct extends Module {
      readonly p = new Parameter(ones([2]))
      override forward(): unknown {
        return [this.p, torch.relu(this.p)]
      }
    }
    const gm = symbolicTrace(new Direct())
    expect([...gm.graph.nodes].map((n) => n.name)).toEqual(['p', 'relu', 'output'])
    const foreign = new Parameter(ones([2]))
    expect(() => symbolicTrace((x: Tensor) => x.add(foreign))).toThrow('parameter is not a member of this module')
  })

  it('test_trace_buffer_slice: an index into a buffer is recorded (difference: buffers-traced)', () => {
    class Buffered extends Module {
      declare table: Tensor
      constructor() {
        super()
        this.registerBuffer('table', tensor([1, 2, 3]))
      }
      override forward(x: Tensor): Tensor {
        return x.add(this.table.select(0, 1))
      }
    }
    const gm = symbolicTrace(new Buffered())
    expect(lines(gm)[1]).toBe('%table : [num_users=1] = get_attr[target=table]')
    expect(values(run(gm, tensor([1])))).toEqual([3])
    class Baked extends Tracer {
      override proxyBufferAttributes = false
    }
    const baked = symbolicTrace(new Buffered(), { tracer: new Baked() })
    expect([...baked.graph.nodes].map((n) => n.name)).toEqual(['x', '_tensor_constant0', 'add', 'output'])
    expect(values(run(baked, tensor([1])))).toEqual([3])
  })

  it('test_trace_return_dataclass: an instance of a class is built again by the graph', () => {
    class Pair {
      readonly first: unknown
      readonly second: unknown
      constructor(first: unknown, second: unknown) {
        this.first = first
        this.second = second
      }
      swapped(): Pair {
        return new Pair(this.second, this.first)
      }
    }
    const gm = symbolicTrace((x: Tensor) => new Pair(x, x.add(1)))
    expect(lines(gm)[2]).toBe('%pair : [num_users=1] = call_function[target=Pair](args = (), kwargs = {first: %x, second: %add})')
    const out = run(gm, tensor([1])) as Pair
    expect(out).toBeInstanceOf(Pair)
    expect(values(out.swapped().first)).toEqual([2])
  })

  it('test_trace_return_dataclass_nested: instances in instances', () => {
    class Inner {
      readonly value: unknown
      constructor(value: unknown) {
        this.value = value
      }
    }
    class Outer {
      readonly inner: Inner
      readonly other: unknown
      constructor(inner: Inner, other: unknown) {
        this.inner = inner
        this.other = other
      }
    }
    const gm = symbolicTrace((x: Tensor) => new Outer(new Inner(x), [1, x]))
    const out = run(gm, tensor([5])) as Outer
    expect(out.inner).toBeInstanceOf(Inner)
    expect(values(out.inner.value)).toEqual([5])
  })

  it('test_trace_return_namedtuple, test_namedtuple_return_trace: named values are returned under their names, a tuple as one', () => {
    class Pair {
      readonly foo: Tensor
      readonly bar: Tensor
      constructor(foo: Tensor, bar: Tensor) {
        this.foo = foo
        this.bar = bar
      }
    }
    const d = tensor([2])
    const named = run(
      symbolicTrace((x: Tensor) => ({ foo: x.add(x), bar: x.mul(3) })),
      d,
    ) as Pair
    expect([values(named.foo), values(named.bar)]).toEqual([[4], [6]])
    const pair = run(
      symbolicTrace((x: Tensor) => new Pair(x, x)),
      d,
    )
    expect(pair).toBeInstanceOf(Pair)
    expect(pair).toEqual(new Pair(d, d))
    const gm = symbolicTrace((x: Tensor) => tuple(x, x.neg()))
    expect(lines(gm).at(-1)).toMatch(/^return \(\w+, neg\)$/)
    expect((run(gm, d) as Tensor[]).map(values)).toEqual([[2], [-2]])
  })

  it('test_named_tuple_inlined: a tuple that is made in a call is an argument, and stays a tuple', () => {
    const gm = symbolicTrace((x: Tensor) => torch.cat(tuple(x, x) as never))
    expect(lines(gm)[1]).toContain('args = ((%x, %x),)')
    expect(values(run(gm, tensor([2])))).toEqual([2, 2])
  })

  it('test_trace_dict_int_keys: a Map of values is an argument (difference: map-for-dict)', () => {
    class Sums extends Module {
      override forward(d: Map<number, Tensor>): Tensor {
        return (d.get(1) as Tensor).add(d.get(2) as Tensor)
      }
    }
    class Root extends Module {
      readonly sums = new Sums()
      override forward(x: Tensor): Tensor {
        return this.sums.call(
          new Map([
            [1, x],
            [2, x],
          ]),
        )
      }
    }
    class Leaves extends Tracer {
      override isLeafModule(): boolean {
        return true
      }
    }
    const gm = symbolicTrace(new Root(), { tracer: new Leaves() })
    expect(lines(gm).slice(1, 3)).toEqual([
      '%map_1 : [num_users=1] = call_function[target=builtins.Map](args = ([[1, %x], [2, %x]],), kwargs = {})',
      '%sums : [num_users=1] = call_module[target=sums](args = (%map_1,), kwargs = {})',
    ])
    expect(values(run(gm, tensor([4])))).toEqual([8])
  })

  it('test_trace_dict_proxy_keys: a traced value as a key is an error', () => {
    expect(() => symbolicTrace((x: Tensor) => new Map([[x, 3]]))).toThrow(
      'Keys for dictionaries used as an argument cannot contain a Node. Got key: x',
    )
    expect(() => symbolicTrace((x: Tensor) => ({ [x as never]: 3 }))).toThrow(TraceError)
  })

  it('test_fx_create_arg: an object says what it becomes', () => {
    class Settings {
      readonly scale: number
      constructor(scale: number) {
        this.scale = scale
      }
      [FX_CREATE_ARG](_tracer: TracerBase): Argument {
        return { scale: this.scale }
      }
    }
    const scaled = wrap((x: Tensor, s: Settings) => x.mul(s.scale), { name: 'test.tracer.scaled' })
    const gm = symbolicTrace((x: Tensor) => scaled(x, new Settings(3)))
    expect(lines(gm)[1]).toContain('args = (%x, {scale: 3})')
    expect(values(run(gm, tensor([2])))).toEqual([6])
  })

  it('sets, symbols and instances without traced values cannot stand in a graph', () => {
    expect(() => symbolicTrace((x: Tensor) => new Set([x]))).toThrow('argument of type: Set')
    expect(() => symbolicTrace((_x: Tensor) => new Date(0))).toThrow(UnsupportedError)
    expect(() => symbolicTrace((x: Tensor) => [x, Symbol('s')])).toThrow('argument of type: symbol')
  })

  it('a value of another trace is refused, with both tracers and the operation', () => {
    class Other extends Tracer {}
    let leaked: unknown
    new Other().trace((x: Tensor) => {
      leaked = x
      return x
    })
    expect(() => symbolicTrace((y: Tensor) => torch.add(y, leaked as Tensor))).toThrow(
      'Found multiple different tracers [Other, Tracer] while trying to trace operations add',
    )
  })

  it('assigning a traced value to a tensor attribute is an error that says what to do', () => {
    class Assigns extends Module {
      declare last: Tensor
      constructor() {
        super()
        this.registerBuffer('last', ones([1]))
      }
      override forward(x: Tensor): Tensor {
        this.last = x.mul(2)
        return x
      }
    }
    expect(() => symbolicTrace(new Assigns())).toThrow("assigns a traced value to 'last' of a module")
  })
})

describe('modules that look at themselves', () => {
  class Mixed extends Module {
    readonly a = new Parameter(ones([2]))
    readonly act = new nn.ReLU()
    readonly b = new Parameter(ones([3]))
    declare table: Tensor
    constructor() {
      super()
      this.registerBuffer('table', ones([1]))
    }
    override forward(x: Tensor): Tensor {
      let y = x
      for (const child of this.children()) y = (child.call as (t: Tensor) => Tensor)(y)
      for (const parameter of this.parameters()) y = y.add(parameter.sum())
      for (const [, buffer] of this.namedBuffers()) y = y.add(buffer)
      return y
    }
  }

  it.each([true, false])(
    'parameters(), buffers and children() give what they give outside a trace (paramShapesConstant: %s)',
    (paramShapesConstant) => {
      const module = new Mixed()
      const gm = symbolicTrace(module, { tracer: new Tracer({ paramShapesConstant }) })
      expect([...gm.graph.nodes].map((n) => n.target)).toEqual(['x', 'act', 'a', 'sum', 'add', 'b', 'sum', 'add', 'table', 'add', 'output'])
      expect(values(run(gm, tensor([1])))).toEqual(values(module.call(tensor([1]))))
    },
  )

  it('accessors and frozen properties are left as they are', () => {
    class Odd extends Module {
      readonly kept = tensor([2])
      override forward(x: Tensor): Tensor {
        return x.mul(this.kept).add((this as unknown as { half: Tensor }).half)
      }
    }
    const module = new Odd()
    Object.defineProperty(module, 'half', { configurable: true, enumerable: true, get: () => tensor([0.5]) })
    Object.defineProperty(module, 'kept', { configurable: false, writable: false })
    const gm = symbolicTrace(module)
    expect(typeof Object.getOwnPropertyDescriptor(module, 'half')?.get).toBe('function')
    expect(Object.getOwnPropertyDescriptor(module, 'kept')?.writable).toBe(false)
    expect(values(run(gm, tensor([1])))).toEqual([2.5])
  })

  it('methods with private fields have their parameters’ names', () => {
    class Private extends Module {
      readonly #scale = 3
      override forward(hidden: Tensor, shift = 1): Tensor {
        return hidden.mul(this.#scale).add(shift)
      }
    }
    const gm = symbolicTrace(new Private())
    expect([...gm.graph.nodes].slice(0, 2).map((n) => [n.name, n.args])).toEqual([
      ['hidden', []],
      ['shift', [1]],
    ])
  })
})

describe('override points', () => {
  it('test_disallow_override: createNode may refuse in-place operators, as method and as function', () => {
    class NoInPlace extends Tracer {
      override createNode(op: Opcode, target: Target, args: readonly Argument[], kwargs: Kwargs, name: string | null = null): Node {
        const text = typeof target === 'string' ? target : target.name
        if (text.endsWith('_')) throw new Error(`in-place: ${text}`)
        return super.createNode(op, target, args, kwargs, name)
      }
    }
    const tracer = new NoInPlace()
    expect(() => tracer.trace((x: Tensor) => x.add_(1))).toThrow('in-place: add_')
    expect(() => tracer.trace((x: Tensor) => (torch.Tensor as unknown as { add_(a: Tensor, b: Tensor): Tensor }).add_(x, x))).toThrow(
      'in-place: add_',
    )
    expect([...tracer.trace((x: Tensor) => x.add(1)).nodes]).toHaveLength(3)
  })

  it('test_node_tagging: createNode may add meta', () => {
    class Tags extends Tracer {
      override createNode(op: Opcode, target: Target, args: readonly Argument[], kwargs: Kwargs, name: string | null = null): Node {
        const node = super.createNode(op, target, args, kwargs, name)
        node.meta['tag'] = 'foo'
        return node
      }
    }
    const graph = new Tags().trace((a: Tensor, b: Tensor) => a.add(b))
    expect([...graph.nodes].map((n) => n.meta['tag'])).toEqual(['foo', 'foo', 'foo', 'foo'])
  })

  it('getattr decides what reading a parameter gives', () => {
    const asked: string[] = []
    class Spy extends Tracer {
      override getattr(path: string, value: never, cache: Map<string, Proxied>): unknown {
        asked.push(path)
        return super.getattr(path, value, cache)
      }
    }
    new Spy().trace(new Weighted())
    expect(asked).toEqual(['weight'])
  })

  it('toBool, iter and keys decide how values behave (difference: bool-by-call)', () => {
    class Knows extends Tracer {
      override toBool(): boolean {
        return true
      }
      override *iter(value: Proxied): Generator<Proxied> {
        yield value[0] as Proxied
        yield value[1] as Proxied
      }
      override keys(): readonly string[] {
        return ['a', 'b']
      }
    }
    const gm = symbolicTrace(
      (x: Tensor, pair: Iterable<Tensor>, d: Record<string, Tensor>) => {
        let y = bool(x.sum().gt(0)) ? x.relu() : x
        for (const item of pair) y = y.add(item)
        return { ...d, y }
      },
      { tracer: new Knows() },
    )
    const out = run(gm, tensor([-1, 2]), [tensor([1, 1]), tensor([2, 2])], { a: 1, b: 2 }) as Record<string, unknown>
    expect(Object.keys(out)).toEqual(['a', 'b', 'y'])
    expect(values(out['y'])).toEqual([3, 5])
  })

  it('test_throw_out_variant: checkMutableOperations refuses operators that write', () => {
    class Functional extends Tracer {
      override checkMutableOperations = true
    }
    expect(() => new Functional().trace((x: Tensor) => x.add_(1))).toThrow('Tried to trace mutable operation add_')
    expect(() => new Functional().trace((x: Tensor) => (torch.Tensor as unknown as { add_(a: Tensor, b: Tensor): Tensor }).add_(x, x))).toThrow(
      'Tried to trace mutable operation add_',
    )
    expect([...new Tracer().trace((x: Tensor) => x.add_(1)).nodes]).toHaveLength(3)
  })

  it('test_assert, test_call_to_assert_with_msg: traceAsserts records console.assert, and sets it back (difference: assert-by-call)', () => {
    class Asserts extends Tracer {
      override traceAsserts = true
    }
    const original = console.assert
    const gm = symbolicTrace(
      (x: Tensor) => {
        console.assert(x.sum().gt(0) as never, 'must be', 'positive')
        return x.add(1)
      },
      { tracer: new Asserts() },
    )
    expect(console.assert).toBe(original)
    expect(lines(gm)[3]).toBe('%_assert : [num_users=0] = call_function[target=torch._assert](args = (%gt, must be positive), kwargs = {})')
    expect(values(run(gm, tensor([1])))).toEqual([2])
    expect(() => run(gm, tensor([-1]))).toThrow('must be positive')
  })

  it('test_symbolic_trace_assert: an assertion is recorded, kept, and effective', () => {
    const gm = symbolicTrace((x: Tensor) => {
      _assert(x.sum().gt(0), 'message')
      return x
    })
    gm.graph.eliminateDeadCode()
    gm.recompile()
    expect(ops(gm)).toEqual(['placeholder', 'call_method', 'call_method', 'call_function', 'output'])
    expect(() => run(gm, tensor([-1]))).toThrow('message')
  })
})

describe('classes whose construction is recorded', () => {
  const Pair = proxyable(
    class TensorPair {
      readonly left: Tensor
      readonly right: Tensor
      constructor(left: Tensor, right: Tensor) {
        this.left = left
        this.right = right
      }
      plus(other: TensorPair): TensorPair {
        return new Pair(this.left.add(other.left), this.right.add(other.right))
      }
    },
    { name: 'test.tracer.TensorPair' },
  )

  it('test_custom_proxy_type, test_custom_proxy_dynamic_value: an instance comes in and goes out, its methods are recorded', () => {
    const gm = symbolicTrace((x: InstanceType<typeof Pair>, y: Tensor) => x.plus(new Pair(y, y)))
    expect(lines(gm).slice(2)).toEqual([
      '%tensor_pair : [num_users=1] = call_function[target=test.tracer.TensorPair](args = (%y, %y), kwargs = {})',
      '%plus : [num_users=1] = call_method[target=plus](args = (%x, %tensor_pair), kwargs = {})',
      'return plus',
    ])
    const out = run(gm, new Pair(tensor([1]), tensor([2])), tensor([10])) as InstanceType<typeof Pair>
    expect(out).toBeInstanceOf(Pair)
    expect([values(out.left), values(out.right)]).toEqual([[11], [12]])
  })

  it('test_custom_proxy_type_literal: an instance made outside the trace becomes a constant', () => {
    const fixed = new Pair(tensor([1]), tensor([2]))
    const gm = symbolicTrace((x: InstanceType<typeof Pair>) => x.plus(fixed))
    expect(lines(gm)[1]).toBe('%_tensor_pair_constant_0 : [num_users=1] = get_attr[target=_TensorPair_constant_0]')
    const out = run(gm, new Pair(tensor([5]), tensor([6]))) as InstanceType<typeof Pair>
    expect([values(out.left), values(out.right)]).toEqual([[6], [8]])
  })

  it('test_custom_proxy_input_dependent_control_flow: its own code runs when the graph runs, and may decide on values', () => {
    const Sign = proxyable(
      class Sign {
        readonly text: string
        constructor(x: Tensor) {
          this.text = (x.sum().item() as number) > 0 ? 'positive' : 'negative'
        }
      },
      { name: 'test.tracer.Sign' },
    )
    const gm = symbolicTrace((x: Tensor) => new Sign(x))
    expect([run(gm, tensor([1])), run(gm, tensor([-1]))].map((s) => (s as { text: string }).text)).toEqual(['positive', 'negative'])
  })

  it('a subclass is a class of its own, and an anonymous one needs a name', () => {
    class Sub extends Pair {}
    expect(isProxy(new Sub(tensor([1]), tensor([2])))).toBe(false)
    expect(() => proxyable(class {})).toThrow('an anonymous class needs a name')
    expect(() => proxyable(3 as never)).toThrow(ArgumentError)
  })
})

describe('names', () => {
  it('test_reserved_getattr: attributes with reserved names give nodes with legal ones', () => {
    const gm = symbolicTrace((x: { sum: unknown; max: unknown; new: unknown }) => [x.sum, x.max, x.new])
    expect([...gm.graph.nodes].map((n) => n.name)).toEqual(['x', 'getattr_1', 'getattr_2', 'getattr_3', 'output'])
    expect(run(gm, { sum: 1, max: 2, new: 3 })).toEqual([1, 2, 3])
  })

  it('test_graph_unique_names: nodes added through traced values have fresh names', () => {
    const gm = symbolicTrace((x: Tensor) => x.add(1).add(2))
    const names = [...gm.graph.nodes].map((n) => n.name)
    expect(new Set(names).size).toBe(names.length)
  })

  it('nodeOf of a placeholder is the node', () => {
    const seen: string[] = []
    symbolicTrace((x: Tensor) => {
      seen.push(nodeOf(x as unknown as Proxied).name)
      return x
    })
    expect(seen).toEqual(['x'])
  })
})

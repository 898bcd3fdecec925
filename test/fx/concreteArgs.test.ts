// concreteArgs: parameters that are fixed, with assertions; PH and nested inputs, with code that takes nested values.
import { describe, expect, it, vi } from 'vitest'
import { operator, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { AssertionFailed, CodeGen, Graph, GraphModule, Interpreter, PH, PHWithMeta, PyTreeCodeGen, Transformer, symbolicTrace } from 'tensorfx/fx'
import { registerPytreeNode } from 'tensorfx/pytree'

const { tensor } = torch

const values = (t: unknown): number[] => Array.from((t as Tensor).contiguous().toTypedArray(), Number)
const run = (m: GraphModule, ...args: readonly unknown[]): unknown => (m.forward as (...a: readonly unknown[]) => unknown)(...args)
const lines = (m: GraphModule): string[] =>
  String(m.graph)
    .split('\n')
    .slice(1)
    .map((l) => l.trim())

describe('fixed values', () => {
  const f = (a: Tensor, b: boolean): Tensor => (b ? a : a.mul(2))

  it('concrete_args: the value is used, its input stays, and an assertion compares them', () => {
    const gm = symbolicTrace(f, { concreteArgs: { b: false } })
    expect(lines(gm)).toEqual([
      '%a : [num_users=1] = placeholder[target=a]',
      '%b_1 : [num_users=1] = placeholder[target=b_1]',
      '%eq : [num_users=1] = call_function[target=operator.eq](args = (%b_1, False), kwargs = {})',
      '%_assert : [num_users=0] = call_function[target=torch._assert](args = (%eq, b has been specialized to have value False but got another value), kwargs = {})',
      '%mul : [num_users=1] = call_method[target=mul](args = (%a, 2), kwargs = {})',
      'return mul',
    ])
    expect(values(run(gm, tensor([3]), false))).toEqual([6])
    expect(() => run(gm, tensor([3]), true)).toThrow(AssertionFailed)
    expect(() => run(gm, tensor([3]), true)).toThrow('b has been specialized to have value False but got another value')
  })

  it('test_partial_trace: several values, among them strings and numbers; dead-code elimination keeps the assertions', () => {
    const g = (x: Tensor, op: string, n: number): Tensor => (op === 'add' ? x.add(n) : x.sub(n))
    const add = symbolicTrace(g, { concreteArgs: { op: 'add', n: 3 } })
    const sub = symbolicTrace(g, { concreteArgs: { op: 'sub', n: 3 } })
    add.graph.eliminateDeadCode()
    add.recompile()
    expect([values(run(add, tensor([1]), 'add', 3)), values(run(sub, tensor([1]), 'sub', 3))]).toEqual([[4], [-2]])
    expect(() => run(add, tensor([1]), 'sub', 3)).toThrow('op has been specialized to have value add')
    expect(() => run(add, tensor([1]), 'add', 4)).toThrow('n has been specialized to have value 3')
  })

  it('test_concrete_arg_none_assert: null is asserted to be null', () => {
    const g = (x: Tensor, y: Tensor | null = null): Tensor => (y === null ? x : x.add(y))
    const gm = symbolicTrace(g, { concreteArgs: { y: null } })
    expect(lines(gm)[2]).toBe(
      '%_assert_is_none : [num_users=0] = call_function[target=torch.fx._symbolic_trace._assert_is_none](args = (%y_1, y has been specialized to have value None but got another value), kwargs = {})',
    )
    expect([run(gm, tensor([1])), run(gm, tensor([1]), null)].map(values)).toEqual([[1], [1]])
    expect(() => run(gm, tensor([1]), tensor([2]))).toThrow('y has been specialized to have value None but got another value')
  })

  it('concrete_args.none_arg: defaults stay on the inputs of fixed parameters', () => {
    const h = (x: Tensor, y: Tensor, scale = 2, bias: null | Tensor = null): Tensor => {
      void bias
      return x.add(y).mul(scale)
    }
    const gm = symbolicTrace(h, { concreteArgs: { bias: null, scale: 3 } })
    expect(lines(gm)[2]).toBe('%scale_1 : [num_users=1] = placeholder[target=scale_1](default=2)')
    expect(values(run(gm, tensor([1]), tensor([2]), 3))).toEqual([9])
    expect(() => run(gm, tensor([1]), tensor([2]))).toThrow('scale has been specialized')
  })

  it('a property of an options object is fixed by its name', () => {
    const h = (x: Tensor, { scale = 2, bias = null as Tensor | null } = {}): Tensor => (bias === null ? x.mul(scale) : x.mul(scale).add(bias))
    const gm = symbolicTrace(h, { concreteArgs: { bias: null, scale: 3 } })
    expect(gm.code).toContain('function forward(x, { scale: scale_1 = 2, bias: bias_1 = null } = {}) {')
    expect(values(run(gm, tensor([1]), { scale: 3 }))).toEqual([3])
    expect(() => run(gm, tensor([1]))).toThrow('scale has been specialized to have value 3 but got another value')
    expect(() => run(gm, tensor([1]), { scale: 3, bias: tensor([1]) })).toThrow('bias has been specialized to have value None')
  })

  it('by position: one value for each parameter', () => {
    const gm = symbolicTrace(f, { concreteArgs: [PH, true] })
    expect(gm.graph.first?.target).toBe('a_1')
    expect(values(run(gm, tensor([3]), true))).toEqual([3])
    expect(() => symbolicTrace(f, { concreteArgs: [true] })).toThrow('Tracing expected 2 arguments but got 1 concrete arguments')
  })

  it('a name that is no parameter is refused, with the names that are', () => {
    expect(() => symbolicTrace(f, { concreteArgs: { c: 1 } })).toThrow("the function has no parameter 'c'; its parameters are a, b")
  })

  it('a value that cannot be compared gives a warning instead of an assertion', () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
    const date = new Date(0)
    const gm = symbolicTrace((x: Tensor, d: Date) => x.add(d.getTime()), { concreteArgs: { d: date } })
    expect(warn.mock.calls[0]?.[0]).toContain('Was not able to add assertion to guarantee correct input d to specialized function')
    warn.mockRestore()
    expect(values(run(gm, tensor([1]), date))).toEqual([1])
  })
})

describe('nested inputs', () => {
  const sum = (x: Record<string, Tensor>): Tensor => Object.values(x).reduce((a, b) => a.add(b))

  it('concrete_args.pytree_ph: each PH is an input of the graph; the code takes the whole value', () => {
    const gm = symbolicTrace(sum, { concreteArgs: { x: { a: PH, b: PH, c: PH } } })
    expect(lines(gm)).toEqual([
      '%x_1 : [num_users=1] = placeholder[target=x_1]',
      '%x_2 : [num_users=1] = placeholder[target=x_2]',
      '%x_3 : [num_users=1] = placeholder[target=x_3]',
      '%add : [num_users=1] = call_method[target=add](args = (%x_1, %x_2), kwargs = {})',
      '%add_1 : [num_users=1] = call_method[target=add](args = (%add, %x_3), kwargs = {})',
      'return [add_1]',
    ])
    expect(gm.code).toBe(`function forward(x) {
  let [x_1, x_2, x_3] = pytree.treeFlattenSpec(x, inSpec.children[0])
  let add = x_1.add(x_2); x_1 = x_2 = null
  const add_1 = add.add(x_3); add = x_3 = null
  return pytree.treeUnflatten([add_1], outSpec)
}`)
    expect(values(run(gm, { a: tensor([1]), b: tensor([2]), c: tensor([3]) }))).toEqual([6])
  })

  it('another structure at run time is an error that shows both', () => {
    const gm = symbolicTrace(sum, { concreteArgs: { x: { a: PH, b: PH } } })
    expect(() => run(gm, { a: tensor([1]) })).toThrow('Cannot flatten pytree { a: * }, given spec: { a: *, b: * }')
    expect(() => run(gm, [tensor([1]), tensor([2])])).toThrow('Cannot flatten pytree [*, *]')
  })

  class Pair {
    readonly first: unknown
    readonly second: unknown
    constructor(first: unknown, second: unknown) {
      this.first = first
      this.second = second
    }
  }
  registerPytreeNode(Pair, {
    flatten: ({ first, second }) => ({ children: [first, second], context: null }),
    unflatten: ([first, second]) => new Pair(first, second),
  })

  /** A nested value with the numbers of its tensors. */
  const flat = (v: unknown): unknown => {
    if (typeof v !== 'object' || v === null) return v
    if ('dtype' in v) return values(v)
    if (v instanceof Map) return ['Map', ...[...v].map(flat)]
    if (v instanceof Pair) return ['Pair', flat(v.first), flat(v.second)]
    return Array.isArray(v) ? v.map(flat) : Object.entries(v).map(flat)
  }

  const inputs: readonly [string, unknown, unknown, (x: never) => unknown][] = [
    ['a leaf', PH, tensor([2]), (x: Tensor) => x.mul(2)],
    ['an array', [PH, PH], [tensor([1]), tensor([2])], ([a, b]: Tensor[]) => (a as Tensor).add(b as Tensor)],
    [
      'arrays in arrays',
      [[PH], [PH, [PH]]],
      [[tensor([1])], [tensor([2]), [tensor([3])]]],
      (x: [[Tensor], [Tensor, [Tensor]]]) => [x[0][0].add(x[1][0]), x[1][1]],
    ],
    ['an object', { a: PH, z: [PH] }, { a: tensor([1]), z: [tensor([2])] }, ({ a, z }: { a: Tensor; z: [Tensor] }) => ({ out: a.sub(z[0]), a })],
    ['a Map', new Map([['k', PH]]), new Map([['k', tensor([4])]]), (x: Map<string, Tensor>) => new Map([['r', (x.get('k') as Tensor).neg()]])],
    [
      'a registered class',
      new Pair(PH, [PH]),
      new Pair(tensor([1]), [tensor([2])]),
      (x: Pair) => new Pair((x.second as Tensor[])[0], (x.first as Tensor).add(1)),
    ],
  ]

  it.each(inputs)('test_pytree: %s as input, traced, run, copied and traced again', (_name, concrete, value, f) => {
    const fn = (x: never): unknown => f(x)
    const gm = symbolicTrace(fn, { concreteArgs: { x: concrete } })
    const expected = f(value as never)
    expect(flat(run(gm, value))).toEqual(flat(expected))
    expect(flat(run(gm.deepCopy(), value))).toEqual(flat(expected))
    expect(flat(new Interpreter(gm).run(value))).toEqual(flat(expected))
    expect(flat(run(new Transformer(gm).transform(), value))).toEqual(flat(expected))
    if (!(concrete instanceof Pair)) {
      const whole = symbolicTrace(gm)
      expect(whole.code).not.toContain('treeFlattenSpec')
      expect([...whole.graph.nodes].filter((n) => n.op === 'placeholder')).toHaveLength(1)
      expect(flat(run(whole, value))).toEqual(flat(expected))
    } else expect(() => symbolicTrace(gm)).toThrow('a traced value cannot be taken apart as a Pair(*, [*])')
    const again = symbolicTrace(gm, { concreteArgs: [concrete] })
    again.graph.lint()
    expect(flat(run(again, value))).toEqual(flat(expected))
  })

  it('test_pytree_concrete: PH and fixed values side by side', () => {
    const f = (b: [Tensor, number], a: Tensor): Tensor => (b[1] === 3 ? b[0].mul(b[1]) : a)
    const gm = symbolicTrace(f, { concreteArgs: { b: [PH, 3] } })
    expect(gm.code).toContain('function forward(b, a) {')
    expect(values(run(gm, [tensor([2]), 3], tensor([0])))).toEqual([6])
    expect(() => run(gm, [tensor([2]), 4], tensor([0]))).toThrow('b has been specialized to have value 3 but got another value')
  })

  it('nested inputs stand beside options objects and defaults', () => {
    const f = (x: Tensor[], { scale = 2 } = {}, n = 1): Tensor => (x[0] as Tensor).mul(scale).add(n)
    const gm = symbolicTrace(f, { concreteArgs: { x: [PH] } })
    expect(gm.code).toContain('function forward(x, { scale = 2 } = {}, n = 1) {')
    const t = tensor([3])
    expect([run(gm, [t]), run(gm, [t], { scale: 3 }), run(gm, [t], {}, 5)].map(values)).toEqual([[7], [10], [11]])
    expect([new Interpreter(gm).run([t]), new Interpreter(gm).run([t], { scale: 3 }, 0)].map(values)).toEqual([[7], [9]])
  })

  it('no variable of the function takes the name of a nested parameter', () => {
    const gm = symbolicTrace((x: { x: { x: Tensor } }) => x.x.x.relu(), { concreteArgs: { x: { x: PH } } })
    const node = [...gm.graph.nodes].find((n) => n.op === 'call_function')
    node?.rename('x')
    gm.recompile()
    expect(values(run(gm, { x: { x: tensor([-1]) } }))).toEqual([0])
  })

  it('test_metadata_on_ph: what a PH of one’s own says is in the meta of its placeholder (difference: ph-meta)', () => {
    class Named extends PHWithMeta {
      readonly note = 'kept'
      readonly _hidden = 1
    }
    const gm = symbolicTrace((x: Tensor[]) => (x[0] as Tensor).add(x[1] as Tensor), {
      concreteArgs: { x: [new Named('key0'), new PHWithMeta('key1')] },
    })
    const [first, second] = [...gm.graph.nodes]
    expect([first?.meta['phKey'], first?.meta['note'], first?.meta['_hidden'], second?.meta['phKey']]).toEqual(['key0', 'kept', undefined, 'key1'])
  })
})

describe('code generators of one’s own', () => {
  class ListCodeGen extends CodeGen {
    override functionHead(parameters: readonly string[]): string {
      return `function forward(argsList) {\n  let [${parameters.join(', ')}] = argsList`
    }
    override processInputs(inputs: readonly unknown[]): readonly unknown[] {
      return inputs[0] as readonly unknown[]
    }
  }
  const traced = (): GraphModule => {
    const gm = symbolicTrace((a: Tensor, b: Tensor) => a.add(b))
    gm.graph.setCodegen(new ListCodeGen())
    gm.recompile()
    return gm
  }

  it('test_custom_codegen, test_interpreter_with_codegen: inputs as one array, compiled and interpreted', () => {
    const gm = traced()
    const input = [tensor([1]), tensor([2])]
    expect(values(run(gm, input))).toEqual([3])
    expect(values(new Interpreter(gm).run(input))).toEqual([3])
    expect(values(new Interpreter(gm).runWith(input, { processIo: false }))).toEqual([3])
    expect(values(gm.graph.processOutputs(new Interpreter(gm).boxedRun([...gm.graph.processInputs(input)])))).toEqual([3])
  })

  it('test_custom_codegen_with_transformer: what a Transformer makes takes its inputs by the same code generator', () => {
    class AddToMul extends Transformer {
      override callMethod(target: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
        return super.callMethod(target === 'add' ? 'mul' : target, args, kwargs)
      }
    }
    const gm = traced()
    const transformed = new AddToMul(gm).transform()
    expect(transformed.graph.codegen).toBeInstanceOf(ListCodeGen)
    expect(transformed.code).toContain('let [a, b] = argsList')
    const input = [tensor([3]), tensor([4])]
    expect([values(run(gm, input)), values(run(transformed, input)), values(new Interpreter(transformed).run(input))]).toEqual([[7], [12], [12]])
  })

  it('PyTreeCodeGen refuses structures that do not fit', () => {
    expect(() => new PyTreeCodeGen({ origArgs: ['a', 'b'], inSpec: { kind: 'leaf' }, outSpec: null })).toThrow(
      'must be the structure of an array of 2 inputs',
    )
    const graph = new Graph()
    graph.output(graph.callFunction(operator.add, [graph.placeholder('x'), 1]))
    graph.setCodegen(
      new PyTreeCodeGen({
        origArgs: ['x'],
        inSpec: { kind: 'array', children: [{ kind: 'array', children: [{ kind: 'leaf' }, { kind: 'leaf' }] }] },
        outSpec: null,
      }),
    )
    expect(() => graph.generateCode()).toThrow('has 2 leaves, but the graph has 1 placeholders')
  })
})

// What traced values do, and where they refuse: each refusal names the user's own line.
import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { fx, operator, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { GraphModule, TraceError, isProxy, makeProxy, nodeOf, symbolicTrace, tracerOf } from 'tensorfx/fx'
import type { Proxied } from 'tensorfx/fx'

const { tensor } = torch

const values = (t: unknown): number[] => Array.from((t as Tensor).contiguous().toTypedArray(), Number)
const run = (m: GraphModule, ...args: readonly unknown[]): unknown => (m.forward as (...a: readonly unknown[]) => unknown)(...args)
const lines = (m: GraphModule): string[] =>
  String(m.graph)
    .split('\n')
    .slice(1)
    .map((l) => l.trim())
/** The error of tracing `fn`, whose parameters are traced values. */
function traceError(fn: (...args: never[]) => unknown): TraceError {
  try {
    symbolicTrace(fn)
  } catch (error) {
    if (error instanceof TraceError) return error
    throw error
  }
  throw new Error('the trace did not fail')
}
const CONTROL_FLOW = 'symbolically traced variables cannot be used as inputs to control flow'
const ITERATED = 'Proxy object cannot be iterated'

describe('what is recorded', () => {
  it('methods, functions, properties and indices each become a node', () => {
    const gm = symbolicTrace((x: Tensor) => [x.add(1), torch.relu(x), x.shape[0], (x as unknown as Tensor[])[2], x.ndim])
    expect(lines(gm).slice(1, -1)).toEqual([
      '%add : [num_users=1] = call_method[target=add](args = (%x, 1), kwargs = {})',
      '%relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})',
      '%getattr_1 : [num_users=1] = call_function[target=builtins.getattr](args = (%x, shape), kwargs = {})',
      '%getitem : [num_users=1] = call_function[target=operator.getitem](args = (%getattr_1, 0), kwargs = {})',
      '%getitem_1 : [num_users=1] = call_function[target=operator.getitem](args = (%x, 2), kwargs = {})',
      '%getattr_2 : [num_users=1] = call_function[target=builtins.getattr](args = (%x, ndim), kwargs = {})',
    ])
  })

  it('an attribute that is only called or never used leaves no node', () => {
    const gm = symbolicTrace((x: Tensor) => {
      void x.shape
      return x.relu()
    })
    expect([...gm.graph.nodes].map((n) => n.name)).toEqual(['x', 'relu', 'output'])
  })

  it('a trailing plain object of a method call holds keyword arguments', () => {
    const gm = symbolicTrace((x: Tensor) => x.sum({ dim: 0, keepdim: true } as never))
    expect(lines(gm)[1]).toBe('%sum_1 : [num_users=1] = call_method[target=sum](args = (%x,), kwargs = {dim: 0, keepdim: True})')
  })

  it('test_fx_shifts, test_fx_and_or: operators that JavaScript cannot overload are methods', () => {
    const gm = symbolicTrace((x: Record<string, (n: number) => unknown>) => [
      x['lshift']?.(3),
      x['rshift']?.(3),
      x['bitwiseAnd']?.(1),
      x['bitwiseOr']?.(1),
    ])
    expect([...gm.graph.nodes].filter((n) => n.op === 'call_method').map((n) => n.target)).toEqual(['lshift', 'rshift', 'bitwiseAnd', 'bitwiseOr'])
  })

  it('test_torch_fx_getattr: an attribute is read when the graph runs', () => {
    const gm = symbolicTrace((x: { foo: number }) => x.foo)
    expect(run(gm, { foo: 7 })).toBe(7)
  })

  it('an entry of a record is read like an attribute, and like an element with operator.getitem (difference: entries-as-attributes)', () => {
    const attribute = symbolicTrace((d: Record<string, number>) => d['x'])
    expect(lines(attribute)[1]).toBe('%getattr_1 : [num_users=1] = call_function[target=builtins.getattr](args = (%d, x), kwargs = {})')
    const element = symbolicTrace((d: Record<string, number>) => operator.getitem(d, 'x'))
    expect(lines(element)[1]).toBe('%getitem : [num_users=1] = call_function[target=operator.getitem](args = (%d, x), kwargs = {})')
    for (const gm of [attribute, element]) expect(run(gm, { x: 7 })).toBe(7)
  })

  it('calling a traced value is recorded as __call__, and calls it', () => {
    const gm = symbolicTrace((f: (n: number) => number) => f(3))
    expect(lines(gm)[1]).toBe('%call : [num_users=1] = call_method[target=__call__](args = (%f, 3), kwargs = {})')
    expect(gm.code).toContain('f(3)')
    expect(run(gm, (n: number) => n * 2)).toBe(6)
  })

  it('a constructor of a size is recorded', () => {
    const gm = symbolicTrace((x: Tensor) => torch.ones([x.shape[0] as number]))
    expect(values(run(gm, tensor([5, 6])))).toEqual([1, 1])
  })
})

describe('what is refused, with PyTorch’s words and the user’s line', () => {
  const cases: readonly [string, (...args: never[]) => unknown, string][] = [
    ['bool: a comparison with an operator', (x: number) => (x > 0 ? x : -x), CONTROL_FLOW],
    ['int_compare: an argument that is compared', (x: Tensor, n: number) => (n > 2 ? x.view([n, -1]) : x), CONTROL_FLOW],
    [
      'control_flow_failure: the value of a reduction (difference: reads-refused)',
      (x: Tensor) => (x.sum().gt(0).item<boolean>() ? x : x.neg()),
      CONTROL_FLOW,
    ],
    ['float: arithmetic with an operator', (x: number) => x + 1, CONTROL_FLOW],
    ['int: a unary plus', (x: number) => +x, CONTROL_FLOW],
    ['text: a template', (x: Tensor) => `${x as unknown as string}`, CONTROL_FLOW],
    ['text: JSON.stringify', (x: Tensor) => JSON.stringify({ x }), CONTROL_FLOW],
    ['index: a traced value as an index', (x: number) => [1, 2, 3][x], CONTROL_FLOW],
    [
      'iter, listcomp: a loop',
      (x: Iterable<Tensor>) => {
        let sum: unknown = 0
        for (const v of x) sum = v
        return sum
      },
      ITERATED,
    ],
    ['star_of_proxy, test_unpack_list_better_error: spreading into arguments', (x: Iterable<Tensor>) => torch.cat([...x]), ITERATED],
    ['unpack_star: a rest element', ([_a, ...b]: Tensor[]) => b, ITERATED],
    ['kwargs_of_proxy, test_unpack_dict_better_error: spreading into an object', (x: object) => ({ ...x }), ITERATED],
    ['keys: for … in', (x: object) => Object.keys(x), ITERATED],
    ['contains: membership', (x: object) => 'a' in x, 'the properties of a traced value are not known'],
    ['len: a length', (x: Tensor[]) => x.length, "'length' is not supported in symbolic tracing by default"],
    [
      'setitem: assigning an element',
      (x: number[]) => {
        x[0] = 1
        return x
      },
      'assigning the element [0] of a traced value cannot be recorded',
    ],
    [
      'assigning a property',
      (x: { grad: unknown }) => {
        x.grad = null
        return x
      },
      "assigning the property 'grad' of a traced value",
    ],
    [
      'deleting a property',
      (x: { grad?: unknown }) => {
        delete x.grad
        return x
      },
      'deleting the property',
    ],
    ['a call with an array-like of unknown length', (x: number[]) => Math.max.apply(null, x), "'length' is not supported"],
  ]

  it.each(cases)('%s', (_name, fn, text) => {
    const error = traceError(fn)
    expect(error.message).toContain(text)
    expect(error.code).toBe('TFX_TRACE')
    expect(error.frame?.file).toMatch(/proxy\.test\.ts$/)
    expect(error.message).toMatch(/> +\d+ \|.*\n +\| +\^/)
    expect(error.message.length).toBeGreaterThan(text.length + 80)
  })

  it('the error stands on the line of the user’s program, below the helper that was called', () => {
    const positive = (x: number): boolean => x > 0
    const error = traceError((x: number) => (positive(x) ? 1 : 2))
    expect(error.message).toContain('> ')
    expect(error.message).toContain('positive')
  })
})

describe('traced values as values', () => {
  it('what JavaScript does not ask about goes its way: promises, concat, instanceof, typeof', async () => {
    const seen: unknown[] = []
    symbolicTrace((x: Tensor) => {
      seen.push(typeof x, x instanceof Map, Array.isArray(x), [].concat(x as never).length, (x as unknown as Promise<void>).then)
      return x
    })
    expect(seen).toEqual(['function', false, false, 1, undefined])
  })

  it('a traced value prints as Proxy(name)', () => {
    const seen: string[] = []
    symbolicTrace((x: Tensor) => {
      seen.push(inspect(x), inspect({ y: x.relu() }))
      return x
    })
    expect(seen).toEqual(['Proxy(x)', '{ y: Proxy(relu) }'])
  })

  it('isProxy, nodeOf and tracerOf look inside', () => {
    const { graph } = symbolicTrace((x: Tensor) => {
      const p = x as unknown as Proxied
      expect(isProxy(p)).toBe(true)
      expect(nodeOf(p).name).toBe('x')
      expect(tracerOf(p).constructor.name).toBe('Tracer')
      return x
    })
    expect(isProxy(graph)).toBe(false)
    expect(isProxy(null)).toBe(false)
  })

  it('fx.Proxy makes traced values and tells them, and they have node and tracer, as in PyTorch', () => {
    const graph = new fx.Graph()
    const node = graph.placeholder('x')
    const tracer = new fx.GraphAppendingTracer(graph)
    const x = new fx.Proxy(node, tracer)
    expect(x.node).toBe(node)
    expect(x.tracer).toBe(tracer)
    expect(x instanceof fx.Proxy).toBe(true)
    expect(node instanceof fx.Proxy).toBe(false)
    expect(String((x['relu'] as () => Proxied)().node.target)).toBe('relu')
  })

  it('test_graph_edit_with_proxy: operations on makeProxy(node) append to the node’s graph', () => {
    const gm = symbolicTrace((a: Tensor, b: Tensor) => a.add(b))
    const output = gm.graph.outputNode()
    const appended = gm.graph.insertingBefore(output, () => nodeOf((makeProxy(output.args[0] as never)['add'] as (n: number) => Proxied)(7)))
    output.args = [appended]
    gm.recompile()
    gm.graph.lint()
    expect(values(run(gm, tensor([3]), tensor([4])))).toEqual([14])
  })

  it('test_pretty_print_targets: functions print by their qualified names', () => {
    const gm = symbolicTrace((x: Tensor) => operator.add(torch.sum(x), x.shape))
    expect(String(gm.graph)).toContain('target=torch.sum')
    expect(String(gm.graph)).toContain('target=operator.add')
    expect(String(gm.graph)).toContain('target=builtins.getattr')
  })
})

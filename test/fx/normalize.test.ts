// One spelling for each thing: arguments by name, operators as functions, values with types.
import { describe, expect, it } from 'vitest'
import { operator, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { builtInOps } from '../ops/builtInOps.ts'
import { Graph, GraphModule, getSignatureForTorchOp, normalizeFunction, symbolicTrace } from 'tensorfx/fx'
import type { Argument, Kwargs } from 'tensorfx/fx'
import { AnnotateTypesWithSchema, NormalizeArgs, NormalizeOperators } from 'tensorfx/fx/experimental'
import * as nn from 'tensorfx/nn'
import { F, Linear, Module } from 'tensorfx/nn'

const x = torch.arange(0, 12, { dtype: 'float32' }).view(3, 4).sub(5)
const run = (gm: GraphModule, ...inputs: readonly unknown[]): Tensor => gm.forward(...inputs) as Tensor
const lines = (gm: GraphModule): string[] =>
  String(gm.graph)
    .split('\n')
    .slice(2)
    .map((line) => line.trim())

describe('normalizeFunction', () => {
  it('gives every argument a name, or only those that have a default', () => {
    expect(normalizeFunction(torch.flatten, [1, 2], {}, { onlyKwargs: true })).toEqual({ args: [], kwargs: { input: 1, startDim: 2, endDim: -1 } })
    expect(normalizeFunction(torch.flatten, [1], { endDim: 3 })).toEqual({ args: [1], kwargs: { startDim: 0, endDim: 3 } })
    expect(normalizeFunction(F.softmax, [], { input: 1, dim: -1 }, { onlyKwargs: true })).toEqual({
      args: [],
      kwargs: { input: 1, dim: -1, dtype: null },
    })
  })

  it('test_get_torch_func_signature, test_get_torch_func_signature_exhaustive: every operator has a signature that its arguments fit', () => {
    for (const { fn, schema, qualname } of builtInOps()) {
      expect(getSignatureForTorchOp(fn)).toEqual([schema])
      const required = schema.args.filter((arg) => !arg.hasDefault)
      const positional = required.filter((arg) => !arg.kwargOnly).map((_, i) => i)
      const named = Object.fromEntries(required.filter((arg) => arg.kwargOnly).map((arg) => [arg.name, 0]))
      expect([qualname, normalizeFunction(fn, positional, named) === null]).toEqual([qualname, false])
    }
    expect(getSignatureForTorchOp((x: unknown) => x)).toBeNull()
    expect(getSignatureForTorchOp('relu')).toBeNull()
  })

  it('test_normalize_operator_exhaustive: every operator of the table has all its arguments by name', () => {
    for (const { fn, schema, qualname } of builtInOps()) {
      const args = schema.args.filter((arg) => !arg.kwargOnly).map((_, i) => i)
      const required = schema.args.filter((arg) => arg.kwargOnly && !arg.hasDefault).map((arg): [string, number] => [arg.name, 0])
      const call = normalizeFunction(fn, args, Object.fromEntries(required), { onlyKwargs: true })
      const names = schema.args.map(({ name }) => (name === 'self' ? 'input' : name))
      expect([qualname, Object.keys(call?.kwargs ?? {})]).toEqual([qualname, names])
      expect(normalizeFunction(fn, [], call?.kwargs, { onlyKwargs: true })).toEqual(call)
    }
  })

  it('gives null for what has no schema, and for arguments that do not fit it', () => {
    expect(normalizeFunction('relu', [1])).toBeNull()
    expect(normalizeFunction((a: unknown) => a, [1])).toBeNull()
    expect(normalizeFunction(torch.relu, [1, 2])).toBeNull()
    expect(normalizeFunction(torch.relu, [])).toBeNull()
    expect(normalizeFunction(torch.relu, [1], { input: 2 })).toBeNull()
    expect(normalizeFunction(torch.sum, [1], { size: 2 })).toBeNull()
    expect(normalizeFunction(torch.add, [1, 2, 3])).toBeNull()
  })
})

class Scaled extends Module {
  override forward(input: Tensor, { scale = 2 }: { scale?: number } = {}): Tensor {
    return input.mul(scale)
  }
}

describe('NormalizeArgs', () => {
  const traced = (): GraphModule => symbolicTrace((a: Tensor) => torch.cat([torch.sum(a, 1, true), torch.flatten(F.relu(a), 1)], 1))

  it('test_normalize_args: arguments by name compute the same', () => {
    const gm = new NormalizeArgs(traced()).transform()
    gm.graph.lint()
    for (const node of gm.graph.nodes) if (node.op === 'call_function') expect(node.args).toEqual([])
    expect(lines(gm)[0]).toBe(
      '%sum_1 : [num_users=1] = call_function[target=torch.sum](args = (), kwargs = {input: %a, dim: 1, keepdim: True, dtype: None})',
    )
    expect(torch.equal(run(gm, x), run(traced(), x))).toBe(true)
  })

  it('test_normalize_args_perserve_type, test_normalize_args_preserve_meta: types and meta stay', () => {
    const gm = traced()
    for (const node of gm.graph.nodes) {
      node.type = 'Mine'
      node.meta['mine'] = 7
      node.meta['stack_trace'] = 'here'
    }
    const normalized = new NormalizeArgs(gm, { onlyKwargs: false }).transform()
    for (const node of normalized.graph.nodes) expect([node.type, node.meta['mine'], node.meta['stack_trace']]).toEqual(['Mine', 7, 'here'])
    expect(lines(normalized)[0]).toContain('args = (%a,), kwargs = {dim: 1, keepdim: True, dtype: None}')
    expect(torch.equal(run(normalized, x), run(gm, x))).toBe(true)
  })

  it('test_normalize_modules_exhaustive: layers get every argument that their forward names, and compute the same', () => {
    const [image, ids] = [torch.randn([2, 4, 6, 6]), torch.tensor([1n, 2n])]
    const samples: readonly (readonly [Module, ...unknown[]])[] = [
      ...[new nn.Linear(4, 2), new nn.LayerNorm(4), new nn.Softmax(-1), new nn.GELU(), new nn.Flatten()].map((layer) => [layer, x] as const),
      ...[new nn.Conv2d(4, 2, 3), new nn.BatchNorm2d(4).eval(), new nn.MaxPool2d(2), new nn.AdaptiveAvgPool2d(1), new nn.GroupNorm(2, 4)].map(
        (layer) => [layer, image] as const,
      ),
      [new nn.Embedding(4, 3), ids],
      [new nn.MSELoss(), x, x.mul(2)],
      [new Scaled(), x],
      [new nn.MultiheadAttention(4, 2, { batchFirst: true }), x, x, x],
    ]
    for (const [layer, ...inputs] of samples) {
      const graph = new Graph()
      const values = inputs.map((_, k) => graph.placeholder(`x${k}`))
      graph.output(graph.callModule('layer', values))
      const gm = new GraphModule({ layer }, graph)
      const normalized = new NormalizeArgs(gm).transform()
      const [call] = normalized.graph.findNodes({ op: 'call_module' })
      expect([layer.getName(), call?.args.length, call?.kwargs]).toEqual([
        layer.getName(),
        inputs.length,
        layer instanceof Scaled ? { scale: 2 } : {},
      ])
      const [before, after] = [gm.call(...inputs), normalized.call(...inputs)].map((value) => [value].flat())
      expect(before?.every((value, i) => value === after?.[i] || torch.equal(value as Tensor, after?.[i] as Tensor))).toBe(true)
    }
  })

  it('functions without schema get the defaults that their source tells, and no others', () => {
    const fallback = 3
    const normal = (fn: (...args: never[]) => unknown, args: readonly Argument[], kwargs: Kwargs = {}): unknown => {
      const graph = new Graph()
      graph.output(graph.callFunction(fn, args, kwargs))
      const [call] = [...new NormalizeArgs(new GraphModule({}, graph)).transform().graph.nodes].filter((node) => node.op === 'call_function')
      return [call?.args, call?.kwargs]
    }
    const options = (a: number, { b = 2, c }: { b?: number; c?: number } = {}): number => a + b + (c ?? 0)
    expect(normal(options, [1])).toEqual([[1], { b: 2 }])
    expect(normal(options, [1], { c: 5 })).toEqual([[1], { b: 2, c: 5 }])
    expect(normal(options, [1], { d: 5 })).toEqual([[1], { d: 5 }])
    expect(normal(options, [], { b: 5 })).toEqual([[], { b: 5 }])
    expect(normal((a: number, b = fallback) => a + b, [1])).toEqual([[1], {}])
    expect(normal((a: number, b = fallback, c = 1) => a + b + c, [1, 2])).toEqual([[1, 2, 1], {}])
    expect(normal((a: number, b: object = {}) => [a, b], [1], { c: 1 })).toEqual([[1], { c: 1 }])
    expect(normal((...all: number[]) => all, [1])).toEqual([[1], {}])
  })

  it('test_normalize_args_op_overload: arguments by position and by name, in one call (operators have no overload objects here)', () => {
    expect(normalizeFunction(torch.add, [1], { other: 2 }, { onlyKwargs: true })).toEqual({ args: [], kwargs: { input: 1, other: 2, alpha: 1 } })
    expect(normalizeFunction(F.softmax, [1], { dim: 2 }, { onlyKwargs: true })?.kwargs).toEqual({ input: 1, dim: 2, dtype: null })
  })
})

describe('NormalizeOperators and AnnotateTypesWithSchema', () => {
  it('test_normalize_binary_operators: functions and methods of two values become operators', () => {
    for (const name of ['add', 'mul', 'sub', 'div', 'floorDivide', 'remainder', 'eq', 'ne', 'lt', 'le', 'gt', 'ge'] as const) {
      const fn = torch[name] as (a: Tensor, b: Tensor) => Tensor
      const programs = [(a: Tensor, b: Tensor): Tensor => fn(a, b), (a: Tensor, b: Tensor): Tensor => (a[name] as (b: Tensor) => Tensor)(b)]
      for (const gm of programs.map((p) => symbolicTrace(p))) {
        const normalized = new NormalizeOperators(gm).transform()
        const [node] = [...normalized.graph.nodes].filter((n) => n.op === 'call_function')
        expect(Object.values(operator)).toContain(node?.target)
        expect(torch.equal(run(normalized, x, x.mul(2).add(1)), run(gm, x, x.mul(2).add(1)))).toBe(true)
      }
    }
  })

  it('other calls stay: options, other arities', () => {
    const gm = symbolicTrace((a: Tensor) => torch.add(a, 1, { alpha: 2 }).sum(0))
    expect(lines(new NormalizeOperators(gm).transform()).map((line) => line.replace(' : torch.Tensor ', ' : '))).toEqual(lines(gm))
  })

  it('test_annotate_returns_with_schema: types from schemas and attributes; known ones stay', () => {
    class Scaled extends Module {
      linear: Linear = new Linear(4, 4)
      override forward(a: Tensor): unknown {
        return torch.chunk(F.relu(a.add(this.linear.weight)), 2)
      }
    }
    const gm = symbolicTrace(new Scaled())
    const [weight] = gm.graph.findNodes({ op: 'get_attr' })
    if (weight !== undefined) weight.type = 'Parameter'
    const typed = new AnnotateTypesWithSchema(gm).transform()
    expect([...typed.graph.nodes].map((n) => [n.name, n.type])).toEqual([
      ['a', null],
      ['linear_weight', 'Parameter'],
      ['add', null],
      ['relu', 'torch.Tensor'],
      ['chunk', null],
      ['output', null],
    ])
  })
})

describe('operators by name', () => {
  it('take their first argument as `input`', () => {
    const sum = torch.sum as unknown as (options: object) => Tensor
    expect(torch.equal(sum({ input: x, dim: 1 }), x.sum(1))).toBe(true)
    expect(() => sum({ inputs: x })).toThrow(/unknown option 'inputs'/)
  })
})

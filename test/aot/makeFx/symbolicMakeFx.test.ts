// makeFx with symbolic sizes: the functions that PyTorch's make_fx was recorded with, and programs on sizes that were not traced. The judge of a graph is the program itself, run eagerly
// on the same inputs.
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { SymBool, bindSymbols, checkGuards, evalGuards, makeFx, shapeEnvOf } from 'tensorfx/aot'
import { customOp } from 'tensorfx/library'
import { GraphModule, operator } from 'tensorfx/fx'
import { graphFromJson, graphToJson } from 'tensorfx/fx/json'
import { targetInfo } from '../../../src/protocol/target.ts'
import { compileExpr, freeSymbols, parseExpr, symbol } from '../../../src/symbols/index.ts'
import type { Expr } from '../../../src/symbols/index.ts'
import { randomNumbers } from '../../symbols/shapes.ts'

const F = torch.nn.functional

type Program = (...args: readonly Tensor[]) => unknown

const sizeOf = (x: Tensor, dim: number): number => x.shape.at(dim) ?? NaN
/** What a comparison of sizes says: a boolean, or in a symbolic trace a SymBool. */
const holds = (comparison: unknown): boolean => (comparison instanceof SymBool ? comparison.toBool() : comparison === true)

interface Case {
  readonly run: Program
  /** Targets of the graph, where they are not those of PyTorch's under tensorfx's names. */
  readonly nodes?: readonly string[]
  /** Why the guards are stronger than PyTorch's: JavaScript's own operators make a size a constant. */
  readonly specializes?: true
}

/** PyTorch's functions as a user of tensorfx writes them. */
const programs: Readonly<Record<string, Case>> = {
  'lambda x: x.sin()': { run: (x) => x.sin() },
  'lambda x: x.view(-1)': { run: (x) => x.view(-1) },
  'lambda x: x.view(x.shape[0], -1)': { run: (x) => x.view(sizeOf(x, 0), -1) },
  'lambda x: x + x.shape[0]': { run: (x) => x.add(sizeOf(x, 0)) },
  'lambda x: torch.zeros(x.shape[0]+1, x.shape[1]*2)': {
    run: (x) => torch.zeros([operator.add(sizeOf(x, 0), 1), operator.mul(sizeOf(x, 1), 2)]),
    nodes: ['symSize', 'add', 'symSize', 'mul', 'full'],
  },
  'lambda x, y: x + y': { run: (x, y) => x.add(y) },
  'lambda x, y: x @ y': { run: (x, y) => x.matmul(y) },
  'lambda x, y: torch.cat([x, y])': { run: (x, y) => torch.cat([x, y]) },
  'lambda x, y: torch.cat([x, y], 1).sum(1)': { run: (x, y) => torch.cat([x, y], 1).sum(1) },
  'lambda x: x.expand(5, -1, -1)': { run: (x) => x.expand(5, -1, -1) },
  'lambda x: x[:, :x.shape[0]]': { run: (x) => x.slice(1, 0, sizeOf(x, 0)), nodes: ['symSize', 'slice'] },
  'lambda x: x.narrow(0, 1, x.shape[0]-1)': { run: (x) => x.narrow(0, 1, operator.sub(sizeOf(x, 0), 1)), nodes: ['symSize', 'slice'] },
  'lambda x: x.unsqueeze(0).transpose(1, 2)': { run: (x) => x.unsqueeze(0).transpose(1, 2) },
  'lambda x: x.sum() / x.numel()': { run: (x) => x.sum().div(x.numel), nodes: ['sum', 'symSize', 'symSize', 'mul', 'div'] },
  'lambda x: x * (x.shape[0] // 2)': { run: (x) => x.mul(operator.floordiv(sizeOf(x, 0), 2)) },
  'lambda x: x * (2 if x.shape[0] > 2 else 3)': { run: (x) => x.mul(sizeOf(x, 0) > 2 ? 2 : 3), specializes: true },
  'lambda x: x if x.shape[0] == 6 else -x': {
    run: (x) => (holds(operator.eq(sizeOf(x, 0), 6)) ? x : x.neg()),
  },
  'lambda x: x.view(x.shape[0]//2, 2, x.shape[1])': { run: (x) => x.view(operator.floordiv(sizeOf(x, 0), 2), 2, sizeOf(x, 1)) },
  'lambda x: torch.arange(x.shape[0])': { run: (x) => torch.arange(sizeOf(x, 0)), nodes: ['symSize', 'range'] },
  'lambda x: torch.tril(torch.ones(x.shape[0], x.shape[0]))': {
    run: (x) => torch.tril(torch.ones([sizeOf(x, 0), sizeOf(x, 0)])),
    nodes: ['symSize', 'full', 'range', 'unsqueeze', 'range', 'ge', 'where'],
  },
  'lambda x: F.softmax(x, -1)': { run: (x) => F.softmax(x, -1), nodes: ['softmax'] },
  'lambda x: F.layer_norm(x, (x.shape[-1],))': { run: (x) => F.layerNorm(x, [sizeOf(x, -1)]) },
  'lambda x: x.repeat(2, 1)': { run: (x) => x.repeat(2, 1), nodes: ['symSize', 'symSize', 'view', 'expand', 'clone', 'mul', 'view'] },
  'lambda x: torch.stack([x, x], -1).flatten(1)': {
    run: (x) => torch.stack([x, x], -1).flatten(1),
    nodes: ['unsqueeze', 'unsqueeze', 'cat', 'symSize', 'symSize', 'mul', 'view'],
  },
  'lambda x: torch.zeros(int(x.shape[0]))': { run: (x) => torch.zeros([Number(sizeOf(x, 0))]), nodes: ['full'] },
  'lambda x: sum(x[i] for i in range(x.shape[0]))': {
    run: (x) => {
      let sum: Tensor | null = null
      for (let i = 0; i < sizeOf(x, 0); i++) sum = sum === null ? x.select(0, i).add(0) : sum.add(x.select(0, i))
      return sum
    },
  },
  'lambda x: x.new_empty(x.size()).copy_(x)': { run: (x) => x.newEmpty(x.size()).copy_(x), nodes: ['symSize', 'symSize', 'full', 'copy'] },
  'lambda x: x.clone().add_(x.shape[1])': { run: (x) => x.clone().add_(sizeOf(x, 1)), nodes: ['clone', 'symSize', 'add'] },
  'lambda x: x.t().contiguous().view(-1)': { run: (x) => x.t().contiguous().view(-1), nodes: ['transpose', 'clone', 'view'] },
  'lambda x: x.as_strided((x.shape[0],), (x.shape[1],))': { run: (x) => x.asStrided([sizeOf(x, 0)], [sizeOf(x, 1)]) },
  'lambda x: x.unflatten(0, (2, -1))': { run: (x) => x.unflatten(0, [2, -1]) },
  'lambda x: torch.full((x.shape[1],), x.shape[0])': {
    run: (x) => torch.full([sizeOf(x, 1)], sizeOf(x, 0), { dtype: 'int64' }),
  },
  'lambda x: max(x.shape[0], x.shape[1]) * x': { run: (x) => x.mul(Math.max(sizeOf(x, 0), sizeOf(x, 1))), nodes: ['mul'], specializes: true },
  'lambda x: torch.sym_max(x.shape[0], x.shape[1]) * x': { run: (x) => x.mul(torch.symMax(sizeOf(x, 0), sizeOf(x, 1))) },
  'lambda x, w: F.conv2d(x, w, padding=1)': { run: (x, w) => F.conv2d(x, w ?? x, null, { padding: 1 }), nodes: ['convolution'] },
  'lambda x: F.max_pool2d(x, 2)': { run: (x) => F.maxPool2d(x, 2), nodes: ['max_pool2d_with_indices', 'getitem', 'getitem'] },
  // The number stays symbolic; the graph reads it.
  'lambda x: x.sum().item()': { run: (x) => x.sum().item(), nodes: ['sum', 'item'] },
  'lambda x: x.nonzero()': { run: (x) => x.nonzero(), nodes: ['nonzero_rows'] },
  'lambda x: (x.shape[0] / 2) * x': { run: (x) => x.mul(operator.truediv(sizeOf(x, 0), 2)) },
}

interface Golden {
  readonly function: string
  readonly inputs: readonly (readonly number[])[]
  readonly graph: string
  readonly values: Readonly<Record<string, unknown>>
  readonly guards: readonly string[]
}

const { cases } = JSON.parse(readFileSync(new URL('../../goldens/symbols/makeFx.json', import.meta.url), 'utf8')) as {
  readonly cases: readonly Golden[]
}

const inputsOf = (shapes: readonly (readonly number[])[]): readonly Tensor[] => shapes.map((shape) => torch.rand([...shape]))

/** The targets of the nodes that compute, without their rooms. */
const targetsOf = (gm: ReturnType<ReturnType<typeof makeFx>>): readonly string[] =>
  [...gm.graph.nodes].flatMap((node) =>
    node.op === 'call_function' ? [(targetInfo(node.target)?.name.split('.').at(-1) ?? '').replace(/^_+/, '')] : [],
  )

/** PyTorch's targets, as this package calls them. */
const recordedTargets = (graph: string): readonly string[] =>
  [...graph.matchAll(/call_function\[target=(?:torch\.ops\.aten\.|torch\.|operator\.)(\w+)/g)].map(([, name = '']) =>
    name.replace(/^sym_(\w)/, (_, first: string) => `sym${first.toUpperCase()}`).replace(/^_+/, ''),
  )

/** Values of the symbols s0, s1, …, by name. */
type Values = Readonly<Record<string, number>>
const evaluateAt = (expr: Expr, values: Values): number => {
  const symbols = [...freeSymbols(expr)]
  return compileExpr(expr, symbols)(symbols.map(({ name }) => values[name] ?? NaN))
}

/** Whether two results are alike, element by element. */
const alike = (a: unknown, b: unknown): boolean =>
  (typeof a === 'number' && a === b) ||
  (a instanceof torch.Tensor && b instanceof torch.Tensor && a.dtype === b.dtype && a.shape.join() === b.shape.join() && torch.equal(a, b))

describe('makeFx traces what PyTorch traces with symbolic sizes', () => {
  for (const golden of cases) {
    const found = programs[golden.function]
    if (found === undefined) throw new Error(`no program for ${golden.function}`)
    it(`${golden.function} of ${JSON.stringify(golden.inputs)}`, () => {
      const gm = makeFx(found.run, { tracingMode: 'symbolic' })(...inputsOf(golden.inputs))
      expect(targetsOf(gm)).toEqual(found.nodes ?? recordedTargets(golden.graph))
      const env = shapeEnvOf(gm)
      const names = [...env.values.keys()].map(({ name }) => name)
      const recorded = golden.guards.map((guard) => parseExpr(guard, (name) => symbol(name, { positive: true })))
      const draw = randomNumbers(7)
      let compared = 0
      for (let attempt = 0; attempt < 200; attempt++) {
        // Each dimension is drawn: that of the trace, near it, or anything; symbols that are one size stay one.
        const sizes = new Map(names.map((name) => [name, 2 + Math.floor(draw() * 7)]))
        const traced = bindSymbols(gm, inputsOf(golden.inputs))
        const keep = draw() < 0.3
        const at = (value: number): number => {
          const name = [...traced].find(([, size]) => size === value)?.[0]
          return name === undefined || keep ? value : (sizes.get(name) ?? value)
        }
        const inputs = inputsOf(golden.inputs.map((shape) => shape.map(at)))
        const values = Object.fromEntries(bindSymbols(gm, inputs))
        const holdsInPyTorch = recorded.every((guard) => evaluateAt(guard, values) === 1)
        const isServed = evalGuards(gm, inputs)
        if (found.specializes !== true && holdsInPyTorch) expect(isServed, `${JSON.stringify(values)} satisfies PyTorch's guards`).toBe(true)
        if (!isServed) continue
        compared++
        const wanted = found.run(...inputs)
        expect(alike(gm(...inputs), wanted), JSON.stringify(values)).toBe(true)
      }
      expect(compared, 'sizes that satisfy the guards').toBeGreaterThan(0)
    })
  }
})

const symbolically = (run: Program): ((...args: readonly unknown[]) => GraphModule) => makeFx(run, { tracingMode: 'symbolic' })

describe('a graph of a symbolic trace', () => {
  it('computes gradients for sizes that it was not traced with', () => {
    const run = (x: Tensor): Tensor => torch.autograd.grad(F.softmax(x.matmul(x.t()), 1).square().sum(), [x])[0] ?? x
    const gm = symbolically(run)(torch.rand([3, 4], { requiresGrad: true }))
    for (const shape of [
      [2, 5],
      [7, 2],
      [4, 4],
    ]) {
      const x = torch.rand(shape, { requiresGrad: true })
      if (evalGuards(gm, [x])) expect(torch.allclose(gm(x), run(x))).toBe(true)
      else expect(shape).toEqual([4, 4])
    }
  })

  it('takes integers as sizes, and other numbers as what they are', () => {
    const run = (x: Tensor, rows: number, scale: number): Tensor => x.narrow(0, 0, rows).mul(scale)
    const gm = makeFx(run, { tracingMode: 'symbolic' })(torch.rand([6, 2]), 3, 0.5)
    const x = torch.rand([9, 2])
    expect(alike(gm(x, 5, 0.5), run(x, 5, 0.5))).toBe(true)
    expect([...bindSymbols(gm, [x, 5, 0.5])]).toEqual([
      ['s0', 9],
      ['s1', 2],
      ['s2', 5],
    ])
    expect(evalGuards(gm, [x, 10, 0.5]), 'more rows than there are').toBe(false)
    expect(evalGuards(gm, [x, 5, 0.25]), 'a number that the graph has as a constant').toBe(false)
  })

  it('asks whether a size that follows from others is 1', () => {
    const program = (x: Tensor, y: Tensor): Tensor => x.sumToSize([operator.sub(sizeOf(y, 0), 1)])
    const sums = makeFx(program, { tracingMode: 'symbolic' })(torch.ones([5]), torch.ones([2]))
    expect([sums.call(torch.ones([7]), torch.ones([2])), program(torch.ones([7]), torch.ones([2]))].map(String)).toEqual([
      'tensor([7.])',
      'tensor([7.])',
    ])
    expect(checkGuards(sums, [torch.ones([2]), torch.ones([3])])).toBe('Ne(s0, s1 - 1)')
  })

  it('returns sizes', () => {
    const gm = symbolically((x) => [x.shape[0], operator.mul(x.numel, 2), x.sum()])(torch.rand([3, 4]))
    const [rows, twice] = gm(torch.rand([5, 6])) as readonly unknown[]
    expect([rows, twice]).toEqual([5, 60])
  })

  it('reads like the program: x.shape[0], and runs after a round trip through JSON', () => {
    const gm = symbolically((x) => x.view(x.size(0), -1))(torch.rand([3, 4, 5]))
    expect(gm.code).toContain('x_1.shape[0]')
    const again = new GraphModule({}, graphFromJson(graphToJson(gm.graph)))
    expect(again(torch.ones([2, 3, 4]))).toHaveProperty('shape', [2, 12])
  })

  it('is refused for other dtypes by checkGuards, and for sizes that its guards exclude', () => {
    const gm = symbolically((x) => (holds(operator.gt(x.shape[0], 4)) ? x.neg() : x.exp()))(torch.rand([3, 4]))
    expect(checkGuards(gm, [torch.rand([2, 7])])).toBe(null)
    expect(checkGuards(gm, [torch.rand([6, 7])])).toContain('s0')
    expect(checkGuards(gm, [torch.rand([2, 7], { dtype: 'float64' })])).toContain('dtype')
    expect(checkGuards(gm, [torch.rand([2, 7, 2])])).toContain('dimensions')
    expect(evalGuards(gm, [torch.rand([1, 7])]), 'a size of 1 is of another kind').toBe(false)
    expect(evalGuards(gm, [torch.rand([7, 2]).t()]), 'other strides').toBe(false)
  })

  it('has no symbols if it was traced otherwise, and says so', () => {
    const gm = makeFx((x: Tensor) => x.sin())(torch.rand([3]))
    expect(() => shapeEnvOf(gm)).toThrow("tracingMode: 'symbolic'")
    expect(() => bindSymbols(symbolically((x) => x.sin())(torch.rand([3])), [])).toThrow('takes 1 tensors and numbers')
  })

  it('is not made of an operator without a rule for symbols: the error names it', () => {
    const opaque = customOp('symbolic_make_fx::opaque', { schema: '(Tensor x) -> Tensor', forward: (x) => x.clone(), fake: (x) => x.clone() })
    expect(() => symbolically((x) => opaque(x))(torch.rand([3, 4]))).toThrow('torch.ops.symbolic_make_fx.opaque has no rule for symbolic sizes')
  })
})

describe('functions of sizes', () => {
  it('take plain numbers too', () => {
    expect([
      torch.symMax(2, 5),
      torch.symMin(2, 5),
      torch.symSum([1, 2, 3]),
      torch.symInt(-2.5),
      torch.symNot(true),
      torch.symIte(false, 1, 2),
    ]).toEqual([5, 2, 6, -2, false, 2])
  })

  it('refuse what is no size', () => {
    expect(() => Reflect.apply(torch.symMax, undefined, ['2', 3])).toThrow("torch.symMax: expected numbers or symbolic values, got '2'")
  })
})

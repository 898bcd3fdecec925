// What a ShapeEnv knows and asks; PyTorch's experimental.symbolic_shapes. Answers, guards, ranges and texts are PyTorch's.
import { expect } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { bindSymbols, evalGuards, makeFx, shapeEnvOf } from 'tensorfx/aot'
import { FakeTensorMode, withMode } from 'tensorfx/dispatch'
import { operator } from 'tensorfx/fx'
import {
  ShapeEnv,
  SymInt,
  freeSymbolsOf,
  freeUnbackedSymbols,
  guardOrFalse,
  guardOrTrue,
  guardSizeOblivious,
  hasFreeSymbols,
  produceGuards,
  staticallyKnownTrue,
} from 'tensorfx/fx/experimental'
import { canonicalBoolean, integerRange, parseExpr, rangeText, substitute, symbol, textOf } from '../../../src/symbols/index.ts'
import type { Constraint, DimDynamic, SymbolicLayout } from '../../../src/symbols/index.ts'
import { describeGolden, messageOf, resultOf } from './golden.ts'

const sym = (value: SymInt | number | undefined): SymInt => {
  if (!(value instanceof SymInt)) throw new Error(`no SymInt: ${String(value)}`)
  return value
}
const sint = (env: ShapeEnv, value: number, dynamic: DimDynamic = 'dynamic'): SymInt => sym(env.createSymInt(value, dynamic))
const guards = (env: ShapeEnv): string[] => env.guards.map(({ expr }) => textOf(expr))
const ranges = (env: ShapeEnv): Record<string, string> => Object.fromEntries([...env.ranges].map(([of, range]) => [of.name, rangeText(range)]))
const texts = (list: readonly unknown[]): string[] => list.map((one) => (one instanceof SymInt ? one.toString() : String(one)))

function layout(
  env: ShapeEnv,
  sizes: readonly number[],
  dims?: readonly DimDynamic[],
  constraints: readonly (Constraint | null)[] = [],
): SymbolicLayout {
  const strides = sizes.map((_, i) => sizes.slice(i + 1).reduce((a, b) => a * b, 1))
  return env.createSymbolicLayout(sizes, strides, { dims: dims ?? sizes.map(() => 'dynamic'), constraints })
}
/** The sizes of a layout as SymInts. */
const sizesOf = ({ sizes }: SymbolicLayout): readonly [SymInt, SymInt] => [sym(sizes[0]), sym(sizes[1])]
const produced = (env: ShapeEnv, value: SymbolicLayout, constraints: readonly (Constraint | null)[] = []): readonly string[] =>
  produceGuards(env, [{ name: 'x', value, constraints }])
const errorOf = (golden: { readonly result: unknown }): string => (golden.result as { error: string }).error

/** Fake tensors whose sizes are all symbols of their own, as in PyTorch's programs. */
const fakeOf = (mode: FakeTensorMode<object>, tensor: Tensor): Tensor => mode.fromTensor(tensor, { dims: tensor.shape.map(() => 'dynamic') })

describeGolden('symbolic_shapes', {
  duck_shaping: (golden) => {
    const env = new ShapeEnv()
    const apart = new ShapeEnv({ duckShape: false })
    const [a, b, c] = [sint(env, 4, 'duck'), sint(env, 4, 'duck'), sint(env, 5, 'duck')]
    const pair = texts([sint(apart, 4, 'duck'), sint(apart, 4, 'duck')])
    const [d1, d2] = texts([sint(env, 4), sint(env, 4)])
    expect([...texts([a, b, c]), pair, d1 !== d2]).toEqual(resultOf(golden))
  },
  fake_tensor_sizes_and_strides: (golden) => {
    const env = new ShapeEnv()
    const mode = new FakeTensorMode<object>({ shapeEnv: env })
    const t = fakeOf(mode, torch.zeros([3, 4]))
    withMode(mode, () => {
      const found = [t.shape, t.strides].map(texts)
      const others = [t.t().reshape(-1), torch.cat([t, t]), t.add(torch.zerosLike(t))].map(({ shape }) => texts(shape))
      expect([...found, texts([t.offset])[0], texts([t.numel])[0], ...others, guards(env)]).toEqual(resultOf(golden))
    })
  },
  produced_guards: (golden) => {
    const env = new ShapeEnv()
    const x = layout(env, [3, 4])
    const [rows, columns] = sizesOf(x)
    expect([rows.mul(2).gt(5).toBool(), rows.add(columns).eq(7).toBool()]).toEqual([true, true])
    expect([produced(env, x), guards(env), ranges(env)]).toEqual(resultOf(golden))
  },
  static_dims: (golden) => {
    const env = new ShapeEnv()
    const x = layout(env, [3, 4], ['static', 'dynamic'])
    expect([texts(x.sizes), produced(env, x)]).toEqual(resultOf(golden))
  },
  constraint_violated_by_specialisation: (golden) => {
    const env = new ShapeEnv()
    const constraints: (Constraint | null)[] = [{ kind: 'strict', range: integerRange(2, 10) }, null]
    const x = layout(env, [3, 4], undefined, constraints)
    sizesOf(x)[0].toInt()
    expect(messageOf(() => produced(env, x, constraints))).toBe(errorOf(golden))
  },
  relaxed_constraint_violated: (golden) => {
    const env = new ShapeEnv()
    const constraints: (Constraint | null)[] = [{ kind: 'relaxed' }, null]
    const x = layout(env, [3, 4], undefined, constraints)
    sizesOf(x)[0].eq(3).toBool()
    expect(messageOf(() => produced(env, x, constraints))).toBe(errorOf(golden))
  },
  constraint_out_of_range_guard: (golden) => {
    const env = new ShapeEnv()
    const constraints: (Constraint | null)[] = [{ kind: 'strict', range: integerRange(2, 10) }, null]
    const x = layout(env, [6, 4], undefined, constraints)
    sizesOf(x)[0].gt(4).toBool()
    expect(messageOf(() => produced(env, x, constraints))).toBe(errorOf(golden))
  },
  unbacked_integers: (golden) => {
    const env = new ShapeEnv()
    const [u, v] = [env.createUnbackedSymInt(), env.createUnbackedSymInt()]
    const before = ranges(env)
    const isUnbacked = u.expr.op === 'symbol' && env.isUnbacked(u.expr)
    const shown = [u.add(1), env.createUnbackedSymBool(), env.createUnbackedSymFloat()].map((value) => value.toString())
    expect([...texts([u, v]), u.hint !== null, before, ...shown, isUnbacked]).toEqual(resultOf(golden))
  },
  branching_on_unbacked_fails: (golden) => {
    const u = new ShapeEnv().createUnbackedSymInt()
    const [branch, number] = resultOf<[{ error: string }, { error: string }]>(golden)
    expect(messageOf(() => u.gt(3).toBool()).split('(Size-like')[0]).toBe(branch.error)
    expect(messageOf(() => u.toInt()).split('(Size-like')[0]).toBe(number.error)
  },
  checks_on_unbacked: (golden) => {
    const env = new ShapeEnv()
    const u = env.createUnbackedSymInt()
    env.check(u.ge(2))
    env.check(u.le(10))
    const known = ranges(env)
    const answers = [u.gt(1).toBool(), u.lt(11).toBool(), staticallyKnownTrue(u.gt(3))]
    const even = (): ReturnType<SymInt['eq']> => u.remainder(2).eq(0)
    env.check(even())
    const asserts = [...env.deferredRuntimeAsserts].map(([of, list]) => [of.name, list.map(({ expr }) => textOf(expr))] as const)
    expect([known, answers, Object.fromEntries(asserts), even().toBool(), asserts.flatMap(([, list]) => list).length]).toEqual(resultOf(golden))
  },
  sizes_of_unbacked: (golden) => {
    const env = new ShapeEnv()
    const u = env.createUnbackedSymInt()
    Reflect.apply(torch._checkIsSize, undefined, [u])
    const found = [ranges(env), guardSizeOblivious(u.eq(0)), guardSizeOblivious(u.eq(1)), guardOrFalse(u.eq(5)), guardOrTrue(u.eq(5))]
    expect(found).toEqual(resultOf<unknown[]>(golden).slice(0, -1))
    expect(() => u.eq(0).toBool()).toThrow('data-dependent')
  },
  symbols_of_values: (golden) => {
    const env = new ShapeEnv()
    const [a, b, u] = [sint(env, 5), sint(env, 7), env.createUnbackedSymInt()]
    const t = fakeOf(new FakeTensorMode<object>({ shapeEnv: env }), torch.zeros([3, 4]))
    const unbacked = [...freeUnbackedSymbols([a, u.add(1)])].map(({ name }) => name)
    expect([
      freeSymbolsOf(a.add(b)).size,
      unbacked,
      hasFreeSymbols(5),
      freeSymbolsOf(t).size,
      freeSymbolsOf([a, [b, 3]]).size,
      freeSymbolsOf(null).size,
    ]).toEqual(resultOf(golden))
  },
  simplification_and_replacement: (golden) => {
    const env = new ShapeEnv()
    const [a, b] = [sint(env, 6), sint(env, 3)]
    const [s, t] = [a.expr, b.expr]
    a.eq(b.mul(2)).toBool()
    const sum = substitute(env.simplify(a.add(b).expr), new Map([[t, symbol('b', {})]]))
    const equation = parseExpr('Eq(s0, 2*s1)', (name) => (name === 's0' ? s : t) as ReturnType<typeof symbol>)
    expect([textOf(sum), textOf(env.simplify(equation)), staticallyKnownTrue(a.gt(b)), a.remainder(2).eq(0).toBool(), guards(env).length]).toEqual(
      resultOf(golden),
    )
  },
  canonical_booleans: (golden) => {
    const named = (name: string): ReturnType<typeof symbol> => symbol(name, { positive: true })
    const sources = ['a > b', 'a >= b', 'a < b', 'Eq(2*a, 4*b)', 'Ne(a + 1, b + 1)', '2*a > 4', 'a - b <= 0', 'a >= b', '(b > a) & (a > 3)']
    expect(sources.map((source) => textOf(canonicalBoolean(parseExpr(source, named))))).toEqual(resultOf(golden))
  },
  range_driven_answers: (golden) => {
    const env = new ShapeEnv()
    const a = sint(env, 9)
    a.gt(5).toBool()
    a.lt(20).toBool()
    const answers = [a.gt(4), a.ge(6), a.lt(100), a.add(1).gt(6), a.mul(2).lt(40), a.floorDivide(3).ge(2)].map((one) => one.toBool())
    expect([answers, guards(env), ranges(env)]).toEqual(resultOf(golden))
  },
  suppressed_guards: (golden) => {
    const env = new ShapeEnv()
    const a = sint(env, 5)
    const answer = env.suppressGuards(() => a.gt(3).toBool())
    expect([answer, guards(env)]).toEqual(resultOf(golden))
    expect([a.gt(3).toBool(), guards(env)]).toEqual([true, ['s0 > 3']])
  },
  data_dependent_output_sizes: (golden) => {
    const env = new ShapeEnv()
    const mode = new FakeTensorMode<object>({ shapeEnv: env })
    const x = mode.fromTensor(torch.zeros([4]), { dims: ['static'] })
    withMode(mode, () => {
      const n = torch.nonzero(x)
      const i: number = x.sum().to('int64').item()
      const z = torch.empty([i])
      expect([texts(n.shape), texts([i])[0], texts(z.shape), ranges(env), texts(n.add(1).shape)]).toEqual(resultOf(golden))
    })
  },
  without_scalar_outputs: (golden) => {
    const mode = new FakeTensorMode<object>({ shapeEnv: new ShapeEnv({ allowScalarOutputs: false, allowDynamicOutputShapeOps: false }) })
    const x = mode.fromTensor(torch.zeros([4]), { dims: ['static'] })
    expect(resultOf<{ error_type: string }[]>(golden).map(({ error_type }) => error_type.split('.').at(-1))).toEqual([
      'DynamicOutputShapeException',
      'DataDependentOutputException',
    ])
    expect(() => withMode(mode, () => torch.nonzero(x))).toThrow('allowDynamicOutputShapeOps is false')
    expect(() => withMode(mode, () => x.sum().item())).toThrow('allowScalarOutputs is false')
  },
  evaluation_of_guards: (golden) => {
    const run = (x: Tensor, y: Tensor): Tensor => x.reshape(operator.mul(x.shape[0] ?? NaN, x.shape[1] ?? NaN)).add(y)
    const gm = makeFx(run, { tracingMode: 'symbolic' })(torch.zeros([3, 4]), torch.zeros([12]))
    const given = [torch.zeros([5, 6]), torch.zeros([30])]
    const answers = [
      evalGuards(gm, [torch.zeros([3, 4]), torch.zeros([12])]),
      evalGuards(gm, given),
      evalGuards(gm, [torch.zeros([5, 6]), torch.zeros([31])]),
    ]
    const [yes, alsoYes, no, guardText, bound] = resultOf<[boolean, boolean, boolean, string, Record<string, number>]>(golden)
    expect(answers).toEqual([yes, alsoYes, no])
    expect(
      guards(shapeEnvOf(gm))
        .map((guard) => ` - ${guard}`)
        .join('\n'),
    ).toBe(guardText)
    expect(Object.fromEntries(bindSymbols(gm, given))).toMatchObject(bound)
  },
})

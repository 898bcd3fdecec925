// Constraints as formulas, decided by Z3 and by the search that stands in for it; PyTorch's torch.fx.experimental.migrate_gradual_types.transform_to_z3.
import * as fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { operator } from 'tensorfx/fx'
import type { GraphModule, NodeType, TargetFunction } from 'tensorfx/fx'
import * as m from 'tensorfx/fx/experimental/migrateGradualTypes'
import { TensorType } from 'tensorfx/fx/experimental'
import { Conv2d, Embedding } from 'tensorfx/nn'
import { isFull, turn } from '../../helpers/rotation.ts'
import { Chained, Dyn, TT, typed } from './gradual.ts'
import { describeGolden, messageOf, resultOf } from './golden.ts'

const { BVar, BinConstraintD, BinConstraintT, Const, DVar, Prod, TVar, opConsistency, opEq, opGt, opLeq, opMul, opNeq } = m

interface Solved {
  readonly status: string
  readonly values?: Readonly<Record<string, string>>
}

/** Whether the types fit, and the type of each node if only one is possible. */
async function solved(gm: GraphModule, solver: m.SolverChoice): Promise<Solved> {
  const formula = m.transformAllConstraints(gm)
  const generator = new m.ConstraintGenerator(gm)
  generator.generateConstraints(0)
  const { status, model, solver: used } = await m.solve(formula, { solver })
  expect(used).toBe(solver)
  if (model === null) return { status }
  const values: Record<string, string> = {}
  for (const [node, symbol] of generator.symbolDict) {
    if (!(symbol instanceof TVar)) continue
    const value = model.tensor(Const(symbol.tvar))
    const other = await m.solve(m.And(formula, m.Not(m.sameTensor(Const(symbol.tvar), value))), { solver })
    values[(node as { name: string }).name] = other.status === 'unsat' ? m.tensorText(value) : 'not forced'
  }
  return { status, values }
}

/** A solver agrees with the golden, each of the two on every other day. */
async function agree(programs: readonly GraphModule[], golden: unknown): Promise<void> {
  for (const [i, gm] of programs.entries())
    for (const solver of turn(['search', 'z3'] as const)) expect(await solved(gm, solver), solver).toEqual((golden as unknown[])[i])
}

const of = (program: (x: Tensor) => unknown, type: NodeType): GraphModule => typed(program as TargetFunction, type)
const two = (program: (x: Tensor, y: Tensor) => unknown, x: NodeType, y: NodeType): GraphModule => typed(program as TargetFunction, x, y)
const plus = (x: Tensor, y: Tensor): unknown => operator.add(x, y)

/** Whether a condition can be true, and false, by both solvers. */
async function decided(gm: GraphModule, name: string): Promise<[string, string]> {
  const node = [...gm.graph.nodes].find((n) => n.name === name)
  if (node === undefined) throw new Error(`no node ${name}`)
  const [search, z3] = [
    await m.evaluateConditionalWithConstraints(gm, gm.graph, node, 0, { solver: 'search' }),
    await m.evaluateConditionalWithConstraints(gm, gm.graph, node, 0, { solver: 'z3' }),
  ]
  expect([search.solver, z3.solver]).toEqual(['search', 'z3'])
  expect([search.condition, search.negation]).toEqual([z3.condition, z3.negation])
  return [z3.condition, z3.negation]
}

const goldens: Record<string, (golden: Parameters<typeof resultOf>[0]) => void | Promise<void>> = {
  add_static: (golden) => agree([two(plus, TT(2, 3), TT(2, 3)), two(plus, TT(2, 3), TT(4, 3))], golden.result),
  add_padding: (golden) => agree([two(plus, TT(4, 1, 3), TT(2, 1)), two(plus, TT(3), TT(2, 3))], golden.result),
  add_dyn: (golden) => agree([two(plus, Dyn, TT(2, 3)), two(plus, TT(Dyn, 3), TT(2, 3))], golden.result),
  conv_sat_unsat: async (golden) => {
    const conv = new Chained({ c: new Conv2d(3, 8, 3, { stride: 2, padding: 1 }) })
    await agree([typed(conv, TT(2, 3, 16, 17)), typed(conv, TT(2, 4, 16, 17)), typed(conv, TT(2, 3, 16))], golden.result)
    expect((conv.call(torch.zeros([2, 3, 16, 17])) as Tensor).shape).toEqual(resultOf<unknown[]>(golden)[3])
  },
  reshape_sat_unsat: (golden) => {
    const reshaped = (type: TensorType, ...shape: readonly number[]): GraphModule => of((x) => torch.reshape(x, shape), type)
    return agree([reshaped(TT(2, 6), 3, 4), reshaped(TT(2, 6), 5, 4), reshaped(TT(2, 6), 4, -1), reshaped(TT(Dyn, 6), 5, 4)], golden.result)
  },
  conditional_on_dim: async (golden) => {
    expect(
      await decided(
        of((x) => operator.eq(x.dim(), 3), TT(2, Dyn, 4)),
        'eq',
      ),
    ).toEqual(golden.result)
  },
  conditional_on_size: async (golden) => {
    const found = []
    for (const type of [TT(2, 4), TT(Dyn, 4), TT(9, 4), Dyn])
      found.push([
        String(type),
        ...(await decided(
          of((x) => operator.gt(x.size(0), 3), type),
          'gt',
        )),
      ])
    expect(found).toEqual(golden.result)
  },
  bmm_and_transpose: (golden) => {
    const bmm = (x: Tensor, y: Tensor): Tensor => torch.bmm(x, y)
    const swap = (x: Tensor): Tensor => x.transpose(0, 2)
    return agree([two(bmm, TT(2, 3, 4), TT(2, 4, 5)), two(bmm, TT(2, 3, 4), TT(3, 4, 5)), of(swap, TT(2, 3, 4)), of(swap, TT(2, 3))], golden.result)
  },
  flatten_embedding_cumsum: (golden) =>
    agree(
      [
        of((x) => torch.flatten(x, 1), TT(2, 3, 4)),
        typed(new Chained({ e: new Embedding(10, 6) }), TT(2, 5)),
        of((x) => torch.cumsum(x, 1), TT(2, 3)),
        of((x) => torch.cumsum(x, 2), TT(2, 3)),
      ],
      golden.result,
    ),
  z3_text_of_small_constraints: (golden) => {
    const a = new DVar(1)
    const [c, d] = [new DVar(3), new DVar(4)]
    const constraints = [
      new BinConstraintD(a, 3, opEq),
      new BinConstraintD(a, Dyn, opEq),
      new BinConstraintD(a, Dyn, opNeq),
      new BinConstraintD(0, a, opLeq),
      new BinConstraintT(new TVar(2), TensorType([a, 4]), opEq),
      new BinConstraintT(new TVar(2), Dyn, opEq),
      new BinConstraintD(a, new BinConstraintD(c, 2, opMul), opEq),
      new BinConstraintD(new BVar(9), new BinConstraintD(a, 3, opGt), opEq),
      new BinConstraintD(a, new Prod([c, d]), opEq),
      new BinConstraintD(a, c, opNeq),
      new BinConstraintD(5, c, opNeq),
    ]
    const flags: m.DimensionDict = new Map()
    const results = resultOf<unknown[]>(golden)
    let counter = 100
    const found = constraints.map((constraint) => {
      const [formula, next] = m.transformToZ3(constraint, counter, flags)
      counter = next
      return [String(constraint), m.formulaText(formula), counter]
    })
    const spaced = (row: unknown): unknown => (row as unknown[]).map((cell) => (typeof cell === 'string' ? cell.replaceAll(/ +/g, ' ') : cell))
    expect(found).toEqual(results.slice(0, -1).map(spaced))
    expect(messageOf(() => m.transformToZ3(new BinConstraintT(new TVar(1), new TVar(2), opConsistency), 1))).toContain('is not in its simplest form')
  },
  size_five_is_too_large: (golden) => {
    expect(messageOf(() => m.transformAllConstraints(of((x) => operator.add(x, 1), TT(1, 2, 3, 4, 5))))).toContain(
      resultOf<{ error: string }>(golden).error,
    )
  },
}

describeGolden('migrate_gradual_types.transform_to_z3', goldens as Readonly<Record<string, (golden: Parameters<typeof resultOf>[0]) => void>>)

describe('solve', () => {
  const [a, b] = [m.Int('a'), m.Int('b')]

  it('says what answered, and refuses other solvers', async () => {
    const formula = m.sameInt(a, 3)
    expect((await m.solve(formula)).solver).toBe('z3')
    expect((await m.solve(formula, { solver: 'search' })).solver).toBe('search')
    await expect(m.solve(formula, { solver: 'minisat' as never })).rejects.toThrow("solver must be 'auto', 'z3' or 'search', got 'minisat'")
    await expect(m.solve(formula, { solve: 'z3' } as never)).rejects.toThrow("did you mean 'solver'")
  })

  it('runs several formulas at a time', async () => {
    const answers = await Promise.all(
      Array.from({ length: 5 }, (_, i) => m.solve(m.And(m.sameInt(a, i), i % 2 === 0 ? m.sameInt(b, -i) : m.compare(a, '<', 0)))),
    )
    expect(answers.map(({ status }) => status)).toEqual(['sat', 'unsat', 'sat', 'unsat', 'sat'])
    expect(answers[4]?.model?.int(b)).toBe(-4)
  })

  it("says 'unknown' where the search leaves out values, which Z3 decides", async () => {
    // No square is twice another.
    const square: m.IntTerm = { op: '*', lhs: a, rhs: a }
    const twice: m.IntTerm = { op: '*', lhs: m.Int('two'), rhs: { op: '*', lhs: b, rhs: b } }
    const formula = m.And(m.compare(1, '<=', a), m.compare(1, '<=', b), m.sameInt(m.Int('two'), 2), m.sameInt(square, twice))
    expect((await m.solve(formula, { solver: 'search' })).status).toBe('unknown')
  })

  it('answers without z3-solver, and says how to get it', async () => {
    vi.resetModules()
    vi.doMock('z3-solver', () => {
      throw new Error('not installed')
    })
    const { solve, hasZ3 } = await import('../../../src/fx/experimental/migrateGradualTypes/solver/solver.ts')
    const formula = m.And(m.sameInt(a, 3), m.compare(a, '<', b))
    expect([await hasZ3(), (await solve(formula)).solver, (await solve(formula)).status]).toEqual([false, 'search', 'sat'])
    await expect(solve(formula, { solver: 'z3' })).rejects.toThrow("Install it: npm install z3-solver, or choose { solver: 'search' }")
    vi.doUnmock('z3-solver')
  })
})

/** Random formulas of three integers between 0 and 3, two conditions, and types of two tensors. */
const formula: fc.Arbitrary<m.Formula> = fc.letrec<{ formula: m.Formula }>((tie) => {
  const int = fc.oneof(
    fc.constantFrom(m.Int('x'), m.Int('y'), m.Int('z')),
    fc.integer({ min: 0, max: 3 }).map((value): m.IntTerm => ({ op: 'number', value })),
  )
  const term = fc.oneof(
    int,
    fc.tuple(fc.constantFrom('+' as const, '-' as const, '*' as const), int, int).map(([op, lhs, rhs]): m.IntTerm => ({ op, lhs, rhs })),
    fc
      .tuple(fc.constantFrom('/' as const, '%' as const), int, fc.integer({ min: 1, max: 3 }))
      .map(([op, lhs, by]): m.IntTerm => ({ op, lhs, rhs: { op: 'number', value: by } })),
  )
  const size = fc.tuple(fc.constantFrom(0, 1), int).map(([flag, value]) => m.D(flag, value))
  const type = fc.oneof(
    fc.constantFrom(Const(1), Const(2), m.z3Dyn),
    fc.array(size, { minLength: 1, maxLength: 2 }).map((dims) => m.tensor(...dims)),
  )
  return {
    formula: fc.oneof(
      { maxDepth: 3 },
      fc.tuple(term, term).map(([lhs, rhs]) => m.sameInt(lhs, rhs)),
      fc.tuple(term, fc.constantFrom('!=' as const, '<=' as const, '<' as const), term).map(([lhs, op, rhs]) => m.compare(lhs, op, rhs)),
      fc.tuple(type, type).map(([lhs, rhs]) => m.sameTensor(lhs, rhs)),
      fc.constantFrom<m.Formula>({ op: 'bool', name: 'p' }, { op: 'bool', name: 'q' }),
      fc.array(tie('formula'), { minLength: 1, maxLength: 3 }).map((args) => m.And(...args)),
      fc.array(tie('formula'), { minLength: 1, maxLength: 3 }).map((args) => m.Or(...args)),
      tie('formula').map((arg) => m.Not(arg)),
      fc
        .tuple(fc.constant<m.Formula>({ op: 'bool', name: 'p' }), tie('formula'))
        .map(([lhs, rhs]): m.Formula => ({ op: '==', sort: 'bool', lhs, rhs })),
    ),
  }
}).formula

describe('random formulas', () => {
  it('are decided alike by the search and by Z3, and the values that are found fit', { timeout: 120_000 }, async () => {
    const bounded = ['x', 'y', 'z'].flatMap((name) => [m.compare(0, '<=', m.Int(name)), m.compare(m.Int(name), '<=', 3)])
    await fc.assert(
      fc.asyncProperty(formula, async (f) => {
        const whole = m.And(...bounded, f)
        const [search, z3] = [await m.solve(whole, { solver: 'search' }), await m.solve(whole, { solver: 'z3' })]
        expect(search.status).toBe(z3.status)
        const { model } = search
        if (model === null) return
        const values = m.And(
          ...['x', 'y', 'z'].map((name) => m.sameInt(m.Int(name), model.int(m.Int(name)))),
          ...[1, 2].map((name) => m.sameTensor(Const(name), model.tensor(Const(name)))),
        )
        // Dyn is one value, whatever it says inside.
        expect((await m.solve(m.And(whole, values), { solver: 'z3' })).status).toBe('sat')
      }),
      { numRuns: isFull ? 60 : 15 },
    )
  })
})

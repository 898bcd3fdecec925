// Shapes as constraints: their classes, what each operator gives, how they become simpler, and what a solver says; PyTorch's
// torch.fx.experimental.migrate_gradual_types. What a solver decides is checked with Z3 and with the search that stands in for it.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Slice, operator, tuple } from 'tensorfx/fx'
import type { GraphModule, NodeType, TargetFunction } from 'tensorfx/fx'
import * as m from 'tensorfx/fx/experimental/migrateGradualTypes'
import { TensorType } from 'tensorfx/fx/experimental'
import { Dropout, Embedding, GELU, LayerNorm, Linear, Module, Parameter } from 'tensorfx/nn'
import { Chained, Dyn, TT, traced, typed } from './gradual.ts'
import { describeGolden, messageOf, resultOf } from './golden.ts'

const { BVar, BinConstraintD, BinConstraintT, Conj, DVar, Disj, F, Prod, T, TVar } = m
const { opAdd, opConsistency, opEq, opLeq, opMatching, opNeq, opPrecision } = m
const errorOf = (golden: unknown): string => (golden as { error: string }).error
const full = new Slice(null, null)

describeGolden('migrate_gradual_types.constraint', {
  printing_and_equality: (golden) => {
    const [a, b, t] = [new DVar(1), new DVar(2), new TVar(3)]
    const all = [
      new Conj([new T(), new F()]),
      new Disj([new BinConstraintD(a, b, opEq)]),
      new Prod([a, 3]),
      new BinConstraintT(t, Dyn, opEq),
      new BinConstraintT(t, TensorType([a, b]), opEq),
      new BinConstraintD(a, new BinConstraintD(b, 1, opAdd), opEq),
      new m.TGreatestUpperBound(new TVar(1), new TVar(2), new TVar(3)),
      new m.DGreatestUpperBound(a, b, Dyn),
      new m.CanReshape(t, TensorType([1, Dyn])),
      new m.IndexSelect(2, t, a, 0, new TVar(4)),
      new m.Transpose(2, t, 0, 1, new TVar(4)),
      new m.GetItem(2, 1, a, t),
      new m.GetItemTensor(2, [null, full], t, new TVar(5)),
      new m.CalcConv(t, new TVar(1), 8, [3, 3], [0, 0], [1, 1], [1, 1], [a, b, a, b]),
      new m.CalcMaxPool(t, new TVar(1), 2, 0, 2, 1, [a]),
      new m.ApplyBroadcasting(new TVar(1), new TVar(2), new TVar(3), new TVar(4)),
      new m.CalcProduct(1, 3, t, [a, b]),
      new BVar(7),
    ]
    expect(all.map(String)).toEqual(golden.result)
  },
  equality: (golden) => {
    expect([
      new Conj([new T()]).equals(new Conj([new T()])),
      new Conj([new T()]).equals(new Disj([new T()])),
      new TVar(1).equals(new TVar(1)),
      new TVar(1).equals(new DVar(1)),
      new BinConstraintD(new DVar(1), 2, opEq).equals(new BinConstraintD(new DVar(1), 2, opEq)),
      new BinConstraintD(new DVar(1), 2, opEq).equals(new BinConstraintD(new DVar(1), 2, opNeq)),
      new BinConstraintT(new TVar(1), Dyn, opEq).equals(new BinConstraintD(1, 2, opEq)),
      new T().equals(new T()),
      new T().equals(new F()),
    ]).toEqual(golden.result)
  },
  invalid_operands: (golden) => {
    const [d, t] = [new DVar(1), new TVar(1)]
    const calls = [
      () => new BinConstraintT(d as never, Dyn, opEq),
      () => new BinConstraintD(t as never, 2, opEq),
      () => new BinConstraintD(1, 'a' as never, opEq),
      () => new m.DGreatestUpperBound(t as never, 1, 1),
      () => new m.IndexSelect(1, d as never, d, 0, t),
      () => new m.Transpose(1, t, 0.5, 1, new TVar(2)),
      () => new m.GetItem(1, 0, t as never, new TVar(2)),
      () => new m.CalcProduct(0, 1, t, 3 as never),
    ]
    // The class that is wrong has its name here; Python's str and tuple are String and a number.
    const wanted = resultOf<readonly unknown[]>(golden).map((error) =>
      errorOf(error).replaceAll(
        /<class '(?:[\w.]*\.)?_?(\w+)'>/g,
        (_, name: string) => ({ DynType: 'Dyn', str: 'string', tuple: 'number' })[name] ?? name,
      ),
    )
    expect(calls.map((call) => messageOf(call).replace(/^\w+: /, ''))).toEqual(wanted)
  },
  operators: (golden) => {
    const names = Object.entries(m).flatMap(([name, value]) =>
      name.startsWith('op') && typeof value === 'string' ? [[`op_${name.slice(2).toLowerCase()}`, value]] : [],
    )
    expect(Object.fromEntries(names)).toEqual(golden.result)
  },
  fresh_names: (golden) => {
    const [t, c] = m.genTvar(0)
    const [d, c2] = m.genDvar(c)
    const [b, c3] = m.genBvar(c2)
    const [ds, c4] = m.genTensorDims(3, c3)
    const list = (values: readonly unknown[]): string => `[${values.map((v) => (Array.isArray(v) ? list(v) : String(v))).join(', ')}]`
    const [lists, last] = m.genListsOfDims(2, 2, 10)
    expect([String(t), String(d), String(b), list(ds), c4, list(m.genNatConstraints(ds)), `(${list(lists)}, ${last})`]).toEqual(golden.result)
  },
  'checks_made_at_once (difference: negative-dims)': (golden) => {
    const ds = [new DVar(1), new DVar(2)]
    const found = [
      m.rangeCheck(0, 2),
      m.rangeCheck(2, 2),
      m.rangeCheck(-1, 2),
      m.rangeCheck(-2, 2),
      m.validIndex(1, ds),
      m.validIndex(2, ds),
      m.validIndex(-2, ds),
      m.validIndexTensor([full, null], ds),
      m.validIndexTensor([full, full, full], ds),
    ]
    expect(found.map(String)).toEqual(resultOf<string[]>(golden).with(2, 'True').with(3, 'True'))
    expect(String(m.rangeCheck(-3, 2))).toBe('False')
  },
  divisibility_and_possibilities: (golden) => {
    const [a, b] = [new DVar(1), new DVar(2)]
    const list = (values: readonly unknown[]): string => `[${values.join(', ')}]`
    expect([
      String(m.isDimDivByTarget([2, 3], a)),
      String(m.isTargetDivByDim([2, 3], new Prod([a, b]))),
      m.generateAllIntDynDimPossibilities([a, b]).map((p) => `(${p.join(', ')})`),
      String(m.genAllReshapePossibilities([a, b], [2, 3])),
      list(m.addLinearConstraints([a, b], [new DVar(3), new DVar(4)], 5, 6)),
      list(m.addLayerNormConstraints([a, b], [7])),
      list(m.addLayerNormConstraints([a], [7, 8])),
    ]).toEqual(golden.result)
  },
})

interface Generated {
  readonly constraints: readonly string[]
  readonly counter: number
  readonly symbols: Readonly<Record<string, string>>
}

/** The constraints of a graph, as the goldens have them. */
function generate(gm: GraphModule): Generated {
  const generator = new m.ConstraintGenerator(gm)
  const [{ conjuncts }, counter] = generator.generateConstraints(0)
  const symbols = [...generator.symbolDict].map(([node, symbol]) => [(node as { name: string }).name, String(symbol)] as const)
  return { constraints: conjuncts.map(String), counter, symbols: Object.fromEntries(symbols) }
}

const generated = (programs: readonly GraphModule[], golden: unknown): void => {
  for (const [i, program] of programs.entries()) expect(generate(program)).toEqual((golden as unknown[])[i])
}

/** A program of one tensor. */
const of = (program: (x: Tensor) => unknown, type: NodeType): GraphModule => typed(program as TargetFunction, type)
const two = (program: (x: Tensor, y: Tensor) => unknown, x: NodeType, y: NodeType): GraphModule => typed(program as TargetFunction, x, y)

class WithParameter extends Module {
  w: Parameter = new Parameter(torch.zeros([3, 4]))
  s: Parameter = new Parameter(torch.tensor(1))

  override forward(x: Tensor): unknown {
    return operator.add(x, this.w)
  }
}

describeGolden('migrate_gradual_types.constraint_generator', {
  placeholders: (golden) => {
    const gm = typed(((x: Tensor, _y: Tensor, _z: Tensor) => x) as TargetFunction, TT(1, Dyn), Dyn)
    const names = { _y: 'y', _z: 'z' }
    const found = generate(gm)
    const symbols = Object.fromEntries(Object.entries(found.symbols).map(([name, symbol]) => [name in names ? name.replace(/^_/, '') : name, symbol]))
    expect({ ...found, symbols }).toEqual(golden.result)
  },
  add_tensors_and_scalar: (golden) =>
    generated(
      [
        two((x, y) => operator.add(x, y), TT(2, Dyn), TT(2, 3)),
        of((x) => operator.add(x, 1), TT(2, Dyn)),
        of((x) => operator.add(1, x.size(0)), TT(2, Dyn)),
      ],
      golden.result,
    ),
  linear_module: (golden) => generated([typed(new Chained({ l: new Linear(3, 4) }), TT(Dyn, 3))], [golden.result]),
  reshape_view_flatten: (golden) =>
    generated(
      [of((x) => torch.reshape(x, [1, -1]), TT(2, Dyn)), of((x) => x.view([2, -1]), TT(2, Dyn)), of((x) => torch.flatten(x, 1), TT(2, Dyn, 3))],
      golden.result,
    ),
  size_and_getitem: (golden) =>
    generated(
      [
        of((x) => x.size(), TT(2, Dyn)),
        of((x) => x.size(1), TT(2, Dyn)),
        of((x) => operator.getitem(x.size(), -1), TT(2, Dyn)),
        of((x) => operator.getitem(x, tuple(full, null, full)), TT(2, Dyn)),
      ],
      golden.result,
    ),
  comparisons_of_sizes: (golden) =>
    generated(
      [
        of((x) => operator.gt(x.size(0), 3), TT(2, Dyn)),
        of((x) => operator.eq(x.dim(), 2), TT(2, Dyn)),
        two((x, y) => operator.lt(x.size(0), y.size(1)), TT(2, Dyn), TT(4, 5)),
        two((x, y) => operator.gt(x, y), TT(2, Dyn), TT(2, 5)),
      ],
      golden.result,
    ),
  'bmm_transpose_expand (difference: bmm-inner-size)': (golden) => {
    const [bmm, transpose, expand] = resultOf<readonly Generated[]>(golden)
    const found = generate(two((x, y) => torch.bmm(x, y), TT(2, Dyn, 4), Dyn))
    expect(found).toEqual({
      ...bmm,
      constraints: bmm?.constraints.map((text) => text.replace('DV(10) = DV(4)⊔DV(7)]', 'DV(10) = DV(4)⊔DV(7), (DV(6) ~ DV(8))]')),
    })
    generated([of((x) => x.transpose(0, 1), TT(2, Dyn)), of((x) => x.expand([3, 4]), TT(1, 4))], [transpose, expand])
  },
  embedding_layernorm: (golden) => {
    const model = new Chained({ e: new Embedding(10, 6), n: new LayerNorm([6]), d: new Dropout() })
    generated([typed(model, TT(2, Dyn))], [golden.result])
  },
  constructors: (golden) => {
    type WithTypeAs = Tensor & { typeAs(other: Tensor): Tensor }
    const same = (x: Tensor): unknown => (x.contiguous().detach().long() as WithTypeAs).typeAs(x)
    // The tensor that uses no input is a constant of the graph, without a type.
    const constant = of((x) => [x, torch.full([2, 3], 1)], TT(2, Dyn))
    expect(String(constant.graph)).not.toContain('full')
    const [none, arange, equal] = resultOf<readonly Generated[]>(golden)
    const { constraints, symbols } = generate(constant)
    expect([constraints.slice(0, 2), symbols['x']]).toEqual([none?.constraints, none?.symbols['x']])
    generated([of((x) => torch.arange(x.size(0)), TT(4, Dyn)), of(same, TT(4, Dyn))], [arange, equal])
  },
  'what_has_no_rule (difference: gradual-rules)': (golden) => {
    const [sin, method, layer, shape, mismatch, dtype] = resultOf<readonly unknown[]>(golden).map(errorOf)
    const programs: readonly (readonly [GraphModule, string | undefined, string])[] = [
      [of((x) => torch.sin(x), Dyn), sin, 'No inference rule registered for target torch.sin!'],
      [of((x) => x.sigmoid(), Dyn), method, 'No inference rule registered for target sigmoid!'],
      [traced(new Chained({ g: new GELU() })), layer, 'No inference rule registered for class GELU!'],
      [of((x) => x.shape, Dyn), shape, 'Not yet implemented'],
      [two((x, y) => operator.gt(x.size(0), y), TT(2), TT(2)), mismatch, 'Sort Mismatch'],
      [of((x) => x.dtype, Dyn), dtype, 'Not yet implemented'],
    ]
    for (const [gm, theirs, ours] of programs) {
      const message = messageOf(() => generate(gm))
      expect(message.startsWith(ours)).toBe(true)
      expect(theirs?.startsWith(ours.split(' for ')[0] ?? ours)).toBe(true)
    }
  },
  parameter_get_attr: (golden) => generated([typed(new WithParameter(), TT(Dyn, 4))], [golden.result]),
})

interface Transformed {
  readonly in: string
  readonly out: string
  readonly counter: number
}

/** One step of the transformation, as the goldens have it. */
function step(constraint: m.Constraint, counter = 10): Transformed {
  const [result, last] = m.transformConstraint(constraint, counter)
  return { in: String(constraint), out: String(result), counter: last }
}

const t1 = new TVar(1)
const dims = (...names: readonly number[]): m.Size[] => names.map((name) => new DVar(name))

describeGolden('migrate_gradual_types.constraint_transformation', {
  precision_and_matching: (golden) => {
    const constraints = [
      new BinConstraintT(Dyn, t1, opPrecision),
      new BinConstraintT(TT(1, 2), t1, opPrecision),
      new BinConstraintT(TT(1, Dyn), t1, opPrecision),
      new BinConstraintT(t1, TensorType(dims(2, 3, 4, 5)), opMatching),
      new BinConstraintT(t1, 2, opLeq),
      new BinConstraintT(t1, Dyn, opEq),
      new BinConstraintD(3, new DVar(1), opPrecision),
      new BinConstraintD(Dyn, new DVar(1), opPrecision),
      new BinConstraintD(new DVar(2), new DVar(1), opConsistency),
    ]
    expect(constraints.map((c) => step(c))).toEqual(golden.result)
  },
  consistency_of_tensors: (golden) => {
    expect(step(new BinConstraintT(t1, new TVar(2), opConsistency))).toEqual(golden.result)
  },
  greatest_upper_bounds: (golden) => {
    const bounds = [new m.DGreatestUpperBound(new DVar(1), new DVar(2), new DVar(3)), new m.TGreatestUpperBound(t1, new TVar(2), new TVar(3))]
    expect(bounds.map((c) => step(c))).toEqual(golden.result)
  },
  getitem_tensor: (golden) => {
    const item = (rank: number, ...index: readonly (null | Slice)[]): m.GetItemTensor => new m.GetItemTensor(rank, index, t1, new TVar(2))
    const results = resultOf<unknown[]>(golden)
    const found = [item(2, full, null), item(1, null, null, full), item(1, full, full), item(3, null, null)].map((c) => step(c))
    expect(found).toEqual(results.slice(0, -1))
    expect(messageOf(() => step(item(2, new Slice(1, 2))))).toContain(errorOf(results.at(-1)))
  },
  conv_and_pool: (golden) => {
    const input = dims(1, 2, 3, 4)
    const layers = [
      new m.CalcConv(new TVar(5), new TVar(6), 8, [3, 3], [1, 0], [2, 1], [1, 2], input),
      new m.CalcMaxPool(new TVar(5), new TVar(6), 2, 0, 2, 1, input),
    ]
    expect(layers.map((c) => step(c))).toEqual(golden.result)
  },
  product_of_flatten: (golden) => {
    expect([new m.CalcProduct(1, 3, new TVar(9), dims(1, 2, 3)), new m.CalcProduct(2, 2, new TVar(9), dims(1, 2))].map((c) => step(c))).toEqual(
      golden.result,
    )
  },
  can_reshape_static: (golden) => {
    expect(step(new m.CanReshape(t1, TensorType([2, 3])))).toEqual(golden.result)
  },
  broadcasting_counter_and_size: (golden) => {
    const [r, counter] = m.transformConstraint(new m.ApplyBroadcasting(t1, new TVar(2), new TVar(3), new TVar(4)), 4)
    const conjuncts = r instanceof Conj ? r.conjuncts : []
    const [first] = conjuncts
    const alternatives = first instanceof Disj ? first.disjuncts : []
    expect({
      counter,
      'number of alternatives': alternatives.length,
      'first three': alternatives.slice(0, 3).map(String),
      'rank 2 padding of argument 1': String(alternatives[4]),
      conjuncts: conjuncts.length,
    }).toEqual(golden.result)
  },
  conj_and_fixed_point: (golden) => {
    const c = new Conj([new BinConstraintT(TT(1, Dyn), t1, opPrecision), new Disj([new BinConstraintD(new DVar(2), 3, opConsistency), new T()])])
    const [fixed, counter] = m.iterateTillFixedPoint(c, 5)
    expect({ once: step(c, 5), fixed: String(fixed), counter }).toEqual(golden.result)
  },
})

describe('constraints that PyTorch gets wrong', () => {
  it('compare the fourth size of four (difference: fourth-size)', () => {
    const [unknownTarget] = m.transformConstraint(new m.CanReshape(t1, TT(2, Dyn)), 10)
    expect(String(unknownTarget)).toContain('Or([(DV(11) = Dyn), (DV(12) = Dyn), (DV(13) = Dyn), (DV(14) = Dyn)])')
    const gm = of((x) => operator.ne(x.size(), [1, 2, 3, 4]), Dyn)
    expect(generate(gm).constraints.at(-1)).toContain('And([(4 != Dyn), (DV(6) != Dyn), (4 != DV(6))])')
  })

  it('refuse an index that a tensor of low rank lacks, instead of failing (difference: fourth-size)', () => {
    expect(step(new m.IndexSelect(1, t1, new DVar(9), 1, new TVar(2))).out).toContain('False')
    expect(step(new m.GetItemTensor(1, [full, full, null], t1, new TVar(2))).out).toBe('False')
  })
})

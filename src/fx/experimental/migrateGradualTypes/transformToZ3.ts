// Constraints as formulas for a solver. PyTorch's torch.fx.experimental.migrate_gradual_types.transform_to_z3.
import { UnsupportedError } from '../../../errors/index.ts'
import type { Module } from '../../../module/index.ts'
import type { Graph } from '../../graph/graph.ts'
import type { Node } from '../../graph/node.ts'
import { Dyn, isTensorType } from '../gradualTypes/tensorType.ts'
import { BVar, BinConstraintD, BinConstraintT, Conj, DVar, Disj, F, Prod, T, TVar, isAlgebraicExpression, isBoolExpr, isDim } from './constraint.ts'
import type { Constraint, Size, SizeTerm, TensorTerm } from './constraint.ts'
import { ConstraintGenerator } from './constraintGenerator.ts'
import { iterateTillFixedPoint } from './constraintTransformation.ts'
import { opAdd, opDiv, opEq, opGt, opLeq, opLt, opMod, opMul, opNeq, opSub } from './operation.ts'
import type { Operation } from './operation.ts'
import { MAX_TENSOR_RANK } from './ruleParts.ts'
import { solve } from './solver/solver.ts'
import type { SolverOptions, SolverResult } from './solver/solver.ts'
import { And, Const, D, FALSE, Int, Not, TRUE, compare, number, sameInt, sameTensor, tensor, z3Dyn } from './z3Types.ts'
import type { DimTerm, Formula, IntTerm, TensorTermZ3 } from './z3Types.ts'

/** The variables of flags, by the names of the variables of sizes. */
export type DimensionDict = Map<number | string, number>

class Transformation {
  counter: number
  readonly #flags: DimensionDict

  constructor(counter: number, flags: DimensionDict) {
    this.counter = counter
    this.#flags = flags
  }

  formula(constraint: Constraint): Formula {
    if (constraint instanceof Conj) return { op: 'and', args: constraint.conjuncts.map((c) => this.formula(c)) }
    if (constraint instanceof Disj) return { op: 'or', args: constraint.disjuncts.map((c) => this.formula(c)) }
    if (constraint instanceof T) return TRUE
    if (constraint instanceof F) return FALSE
    if (constraint instanceof BVar) return { op: 'bool', name: constraint.c }
    if (constraint instanceof BinConstraintT && constraint.op === opEq && typeof constraint.rhs !== 'number')
      return sameTensor(this.tensor(constraint.lhs), this.tensor(constraint.rhs))
    if (constraint instanceof BinConstraintD) return this.#comparison(constraint)
    throw new UnsupportedError(`transformToZ3: ${String(constraint)} is not in its simplest form; run iterateTillFixedPoint first.`)
  }

  #comparison({ lhs, rhs, op }: BinConstraintD): Formula {
    if (op === opEq) {
      if (lhs instanceof BVar && isBoolExpr(rhs)) return { op: '==', sort: 'bool', lhs: { op: 'bool', name: lhs.c }, rhs: this.formula(rhs) }
      if (isDim(lhs) && isDim(rhs)) return { op: '==', sort: 'dim', lhs: this.size(lhs), rhs: this.size(rhs) }
      return sameInt(this.integer(lhs), this.integer(rhs))
    }
    if (op === opNeq && isDim(lhs) && isDim(rhs)) return this.#different(lhs, rhs)
    if (op !== opLeq && op !== opLt && op !== opGt) throw new UnsupportedError(`transformToZ3: operation ${op} not yet implemented`)
    const [a, b] = [this.integer(lhs), this.integer(rhs)]
    if (op === opLeq) return compare(a, '<=', b)
    return op === opLt ? compare(a, '<', b) : compare(b, '<', a)
  }

  /** Sizes differ if one is Dyn and the other is not, or both are known and have different values. */
  #different(lhs: Size, rhs: Size): Formula {
    const [a, b] = [this.size(lhs), this.size(rhs)]
    if (rhs === Dyn) return sameInt(a.flag, 1)
    if (lhs === Dyn) return sameInt(b.flag, 1)
    const differ = compare(a.value, '!=', b.value)
    if (typeof lhs === 'number' || typeof rhs === 'number') {
      const { flag } = typeof lhs === 'number' ? b : a
      return { op: 'or', args: [sameInt(flag, 0), And(sameInt(flag, 1), differ)] }
    }
    const [aKnown, bKnown] = [compare(a.flag, '!=', 0), compare(b.flag, '!=', 0)]
    return { op: 'or', args: [And(sameInt(a.flag, 0), bKnown), And(aKnown, sameInt(b.flag, 0)), And(aKnown, bKnown, differ)] }
  }

  tensor(term: TensorTerm): TensorTermZ3 {
    if (term instanceof TVar) return Const(term.tvar)
    if (!isTensorType(term)) return z3Dyn
    const dims = term.dims.map((size) => this.size(isDim(size) ? size : Dyn))
    if (dims.length <= MAX_TENSOR_RANK && dims.length > 0) return tensor(...dims)
    throw new UnsupportedError(
      `transformToZ3: Expected res length <= ${MAX_TENSOR_RANK}, got ${dims.length}: types of rank 1 to ${MAX_TENSOR_RANK} can be solved.`,
    )
  }

  size(size: Size): DimTerm {
    if (typeof size === 'number') return D(1, size)
    if (!(size instanceof DVar)) return D(0, Int(++this.counter))
    let flag = this.#flags.get(size.c)
    if (flag === undefined) this.#flags.set(size.c, (flag = ++this.counter))
    return D(Int(flag), Int(size.c))
  }

  integer(term: SizeTerm): IntTerm {
    if (isDim(term)) return this.size(term).value
    if (term instanceof Prod) {
      const values = term.products.map((size) => this.size(size).value)
      return values.length === 0 ? number(1) : values.slice(1).reduce((lhs, rhs): IntTerm => ({ op: '*', lhs, rhs }), values[0] ?? number(1))
    }
    if (!isAlgebraicExpression(term)) throw new UnsupportedError(`transformToZ3: ${String(term)} is no size.`)
    const [lhs, rhs] = [this.integer(term.lhs), this.integer(term.rhs)]
    return { op: arithmetic(term.op), lhs, rhs }
  }
}

function arithmetic(op: Operation): '+' | '-' | '*' | '/' | '%' {
  if (op === opAdd || op === opSub || op === opMul || op === opDiv || op === opMod) return op
  throw new UnsupportedError(`transformToZ3: operation ${op} not yet implemented`)
}

/**
 * A constraint in its simplest form as a formula, and the counter after its variables. `dimensionDict` keeps the variables of flags between calls. PyTorch's
 * transform_to_z3.
 * @throws UnsupportedError for a constraint that is not in its simplest form, and for types of more than four dimensions.
 */
export function transformToZ3(
  constraint: Constraint,
  counter: number,
  dimensionDict: DimensionDict = new Map(),
): [formula: Formula, counter: number] {
  const transformation = new Transformation(counter, dimensionDict)
  return [transformation.formula(constraint), transformation.counter]
}

/**
 * What must hold for the types in a graph, as a formula. The type of a node's value is the variable `Const(n)` for `TV(n)` of its symbol. PyTorch's
 * transform_all_constraints.
 *
 *     const result = await solve(transformAllConstraints(gm))
 *     result.status  // 'sat': the shapes fit; 'unsat': they cannot
 */
export function transformAllConstraints(traced: Module, counter = 0): Formula {
  const [constraints, next] = new ConstraintGenerator(traced).generateConstraints(counter)
  const [simple, last] = iterateTillFixedPoint(constraints, next)
  return transformToZ3(simple, last)[0]
}

/**
 * For a node that is a condition of sizes: what must hold for it to be true, and for it to be false. PyTorch's
 * transform_all_constraints_trace_time, for which the node must be the last one. Throws UnsupportedError if the node is no such condition.
 */
export function transformAllConstraintsTraceTime(root: Module, graph: Graph, node: Node, counter = 0): [whenTrue: Formula, whenFalse: Formula] {
  const generator = new ConstraintGenerator(root, graph)
  const [{ conjuncts }, next] = generator.generateConstraints(counter)
  const condition = generator.constraintsOf.get(node)?.at(-1)
  if (!(condition instanceof BinConstraintD) || !(condition.lhs instanceof BVar) || !isBoolExpr(condition.rhs))
    throw new UnsupportedError(`node '${node.name}' is no condition of sizes: it must compare sizes, as operator.gt(x.size(0), 3) does.`)
  const [simple, after] = iterateTillFixedPoint(new Conj(conjuncts.filter((conjunct) => conjunct !== condition)), next)
  const [wanted, last] = iterateTillFixedPoint(condition.rhs, after)
  const flags: DimensionDict = new Map()
  const [rest, between] = transformToZ3(simple, last, flags)
  const [formula] = transformToZ3(wanted, between, flags)
  return [And(rest, formula), And(rest, Not(formula))]
}

/** Whether a condition can be true, and whether it can be false. */
export interface ConditionalResult {
  readonly condition: SolverResult['status']
  readonly negation: SolverResult['status']
  /** What decided: Z3, or the search that stands in for it. */
  readonly solver: SolverResult['solver']
}

/**
 * Whether a condition of sizes in a graph, `x.size(0) > 3`, can be true and can be false, given the types of the placeholders. If only one of them is 'sat', the branch is
 * decided for all inputs of these types. PyTorch's evaluate_conditional_with_constraints, which returns a pair.
 *
 *     await evaluateConditionalWithConstraints(gm, gm.graph, node)  // { condition: 'sat', negation: 'unsat', solver: 'z3' }
 */
export async function evaluateConditionalWithConstraints(
  root: Module,
  graph: Graph,
  node: Node,
  counter = 0,
  options: SolverOptions = {},
): Promise<ConditionalResult> {
  const [whenTrue, whenFalse] = transformAllConstraintsTraceTime(root, graph, node, counter)
  const condition = await solve(whenTrue, options)
  const negation = await solve(whenFalse, options)
  return { condition: condition.status, negation: negation.status, solver: condition.solver }
}

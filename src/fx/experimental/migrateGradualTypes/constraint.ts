// Constraints on the types of tensors, their sizes, and what is computed from sizes. PyTorch's torch.fx.experimental.migrate_gradual_types.constraint.
import { ArgumentError } from '../../../errors/index.ts'
import { isObject, kindOf } from '../../../protocol/index.ts'
import { Dyn, isTensorType, typesEqual } from '../gradualTypes/tensorType.ts'
import type { DynType, TensorType } from '../gradualTypes/tensorType.ts'
import { opAdd, opDiv, opEq, opGt, opLt, opMod, opMul, opNeq, opSub } from './operation.ts'
import type { Operation } from './operation.ts'

/** Whether two parts of constraints are the same. */
function same(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, i) => same(item, b[i]))
  if (!isObject(a) || !isObject(b) || Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false
  if (isTensorType(a)) return typesEqual(a, b)
  const entries = Object.entries(a)
  return entries.every(([key, value]) => same(value, Reflect.get(b, key)))
}

/** What constraints are made of, and constraints. They print as PyTorch's. */
export abstract class Constraint {
  /** Whether this says the same, part by part. Python's `==`. */
  equals(other: unknown): boolean {
    return same(this, other)
  }
}

/** A variable that stands for the type of a tensor. PyTorch's TVar. */
export class TVar extends Constraint {
  readonly tvar: number | string

  constructor(tvar: number | string) {
    super()
    this.tvar = tvar
  }

  override toString(): string {
    return `TV(${this.tvar})`
  }
}

/** A variable that stands for a size. PyTorch's DVar. */
export class DVar extends Constraint {
  readonly c: number | string

  constructor(c: number | string) {
    super()
    this.c = c
  }

  override toString(): string {
    return `DV(${this.c})`
  }
}

/** A variable that is true or false. PyTorch's BVar. */
export class BVar extends Constraint {
  readonly c: number | string

  constructor(c: number | string) {
    super()
    this.c = c
  }

  override toString(): string {
    return `BV(${this.c})`
  }
}

/** A size: a number, a variable, or Dyn. */
export type Size = number | DVar | DynType
/** A tensor's type: a variable, a type, or Dyn. */
export type TensorTerm = TVar | TensorType | DynType

const isDyn = (value: unknown): value is DynType => value === Dyn

/** Whether a value is a size. PyTorch's is_dim. */
export const isDim = (value: unknown): value is Size => typeof value === 'number' || value instanceof DVar || isDyn(value)

const isTensorTerm = (value: unknown): boolean => value instanceof TVar || isTensorType(value) || typeof value === 'number' || isDyn(value)

/** What a value is, for messages. */
export const describe = (value: unknown): string => (isDyn(value) ? 'Dyn' : isTensorType(value) ? 'TensorType' : kindOf(value))

/** Throws ArgumentError unless a condition holds. */
export function check(holds: boolean, message: () => string): void {
  if (!holds) throw new ArgumentError(message())
}

/** All of these hold. PyTorch's Conj. */
export class Conj extends Constraint {
  readonly conjuncts: readonly Constraint[]

  constructor(conjuncts: readonly Constraint[]) {
    super()
    this.conjuncts = conjuncts
  }

  override toString(): string {
    return `And([${this.conjuncts.join(', ')}])`
  }
}

/** One of these holds. PyTorch's Disj. */
export class Disj extends Constraint {
  readonly disjuncts: readonly Constraint[]

  constructor(disjuncts: readonly Constraint[]) {
    super()
    this.disjuncts = disjuncts
  }

  override toString(): string {
    return `Or([${this.disjuncts.join(', ')}])`
  }
}

/** The product of sizes. PyTorch's Prod. */
export class Prod extends Constraint {
  readonly products: readonly Size[]

  constructor(products: readonly Size[]) {
    super()
    this.products = products
  }

  override toString(): string {
    return `Product([${this.products.join(', ')}])`
  }
}

/** Always true. PyTorch's T. */
export class T extends Constraint {
  override toString(): string {
    return 'True'
  }
}

/** Never true. PyTorch's F. */
export class F extends Constraint {
  override toString(): string {
    return 'False'
  }
}

/** A constraint between two tensors' types; with `≤`, the right side is the highest rank. PyTorch's BinConstraintT. @throws ArgumentError for other operands. */
export class BinConstraintT extends Constraint {
  readonly lhs: TensorTerm
  readonly rhs: TensorTerm | number
  readonly op: Operation

  constructor(lhs: TensorTerm, rhs: TensorTerm | number, op: Operation) {
    super()
    check(isTensorTerm(lhs) && isTensorTerm(rhs), () => `BinConstraintT: Invalid types: lhs=${describe(lhs)}, rhs=${describe(rhs)}`)
    this.lhs = lhs
    this.rhs = rhs
    this.op = op
  }

  override toString(): string {
    return `(${String(this.lhs)} ${this.op} ${String(this.rhs)})`
  }
}

/** What a constraint between sizes compares or computes with. */
export type SizeTerm = Size | BVar | Prod | BinConstraintD | Conj | Disj

/** A constraint between sizes, or a size computed from two. PyTorch's BinConstraintD. @throws ArgumentError for other operands. */
export class BinConstraintD extends Constraint {
  readonly lhs: SizeTerm
  readonly rhs: SizeTerm
  readonly op: Operation

  constructor(lhs: SizeTerm, rhs: SizeTerm, op: Operation) {
    super()
    const fits = (value: unknown): boolean => isAlgebraicExpression(value) || isDim(value) || isBoolExpr(value)
    check(fits(lhs), () => `BinConstraintD: Invalid lhs type: ${describe(lhs)}`)
    check(fits(rhs), () => `BinConstraintD: Invalid rhs type: ${describe(rhs)}`)
    this.lhs = lhs
    this.rhs = rhs
    this.op = op
  }

  override toString(): string {
    return `(${String(this.lhs)} ${this.op} ${String(this.rhs)})`
  }
}

const ARITHMETIC: ReadonlySet<unknown> = new Set([opAdd, opSub, opMul, opDiv, opMod])
const COMPARISONS: ReadonlySet<unknown> = new Set([opGt, opLt, opNeq, opEq])

/** Whether a value is a size computed from others. PyTorch's is_algebraic_expression. */
export const isAlgebraicExpression = (value: unknown): value is BinConstraintD | Prod =>
  value instanceof BinConstraintD ? ARITHMETIC.has(value.op) : value instanceof Prod

/** Whether a value is true or false. PyTorch's is_bool_expr. */
export const isBoolExpr = (value: unknown): value is BinConstraintD | BVar | Conj | Disj =>
  value instanceof BinConstraintD ? COMPARISONS.has(value.op) : value instanceof BVar || value instanceof Conj || value instanceof Disj

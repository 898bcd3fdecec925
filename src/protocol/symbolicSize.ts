// A size that a symbolic trace knows as an expression, as far as rooms below and beside src/symbols know it.

/** On every symbolic number or truth value: its kind. */
export const SYMBOLIC: unique symbol = Symbol('tensorfx.symbolic')

export type SymbolicKind = 'int' | 'float' | 'bool'

/** The functions that compute with symbolic values; PyTorch's `torch.sym_max` and so on. */
export type SymbolicFunction = 'symMax' | 'symMin' | 'symSum' | 'symFloat' | 'symInt' | 'symNot' | 'symIte' | 'symSqrt' | '_check' | '_checkIsSize'

/** A number or truth value that a symbolic trace knows as an expression: SymInt, SymFloat and SymBool of src/symbols. */
export interface SymbolicValue {
  readonly [SYMBOLIC]: SymbolicKind
  /** What a function gives for these arguments, at least one of which is symbolic. */
  applied(name: SymbolicFunction, args: readonly unknown[]): unknown
  /** The expression as text, without a guard. */
  toString(): string
}

export type SizeOperation = 'add' | 'subtract' | 'multiply' | 'floorDivide' | 'remainder' | 'min' | 'max'
export type SizeRelation = 'Eq' | 'Lt' | 'Le'

/** A symbolic size; SymInt of src/symbols is one. */
export interface SymbolicSize extends SymbolicValue {
  readonly [SYMBOLIC]: 'int'
  /** The result of an operation on two sizes, at least one of which is symbolic; a number if it is one. */
  combined(operation: SizeOperation, a: Size, b: Size): Size
  /** Whether a relation between two sizes holds in this run, with a guard unless it always does. */
  holds(relation: SizeRelation, a: Size, b: Size): boolean
  /** Whether a relation between two sizes holds for all values that are possible. Makes no guard. */
  alwaysHolds(relation: SizeRelation, a: Size, b: Size): boolean
  /** Whether two sizes that an operator needs to be equal are equal; for those that depend on data it becomes an assertion of the trace. */
  mustEqual(a: Size, b: Size): boolean
  /** Says that a tensor has this size: one that depends on data counts as at least 2 in the questions of shape rules from here on. */
  becomeSize(): void
  /** The value of this run, with a guard that the size is this one. PyTorch's `int(s)`. */
  toInt(): number
}

/** A size: a number, or a symbolic one. PyTorch's SymInt. */
export type Size = number | SymbolicSize

export const isSymbolic = (value: unknown): value is SymbolicValue => typeof value === 'object' && value !== null && SYMBOLIC in value
export const isSymbolicSize = (value: unknown): value is SymbolicSize => isSymbolic(value) && value[SYMBOLIC] === 'int'
/** Whether a value is a size: a number, or a symbolic one. */
export const isSize = (value: unknown): value is Size => typeof value === 'number' || isSymbolicSize(value)

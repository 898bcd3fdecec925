// The operators of constraints, as they print. PyTorch's torch.fx.experimental.migrate_gradual_types.operation.

/** The sum of two sizes. */
export const opAdd = '+'
/** The difference of two sizes. */
export const opSub = '-'
/** The product of two sizes. */
export const opMul = '*'
/** The quotient of two sizes. */
export const opDiv = '/'
/** The remainder of two sizes. */
export const opMod = '%'
/** Two sizes or types are equal. */
export const opEq = '='
/** Two sizes or types differ. */
export const opNeq = '!='
/** If the left constraint holds, the right one does. */
export const opImp = '=>'
/** A type is Dyn, or a tensor of these dimensions. */
export const opMatching = '⊳'
/** Two types, or sizes, are equal, or one of them is Dyn. */
export const opConsistency = '~'
/** The right side says at least as much as the left one. */
export const opPrecision = '⊑'
/** The left size is at most the right one. */
export const opLeq = '≤'
/** The left size is less than the right one. */
export const opLt = '<'
/** The left size is greater than the right one. */
export const opGt = '>'

/** An operator between two sizes that gives a size. */
export type Arithmetic = typeof opAdd | typeof opSub | typeof opMul | typeof opDiv | typeof opMod

/** An operator of a constraint. */
export type Operation =
  | Arithmetic
  | typeof opEq
  | typeof opNeq
  | typeof opImp
  | typeof opMatching
  | typeof opConsistency
  | typeof opPrecision
  | typeof opLeq
  | typeof opLt
  | typeof opGt

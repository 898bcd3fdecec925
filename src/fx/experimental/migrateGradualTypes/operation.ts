// The operators of constraints, as they print. PyTorch's torch.fx.experimental.migrate_gradual_types.operation.

export const opAdd = '+'
export const opSub = '-'
export const opMul = '*'
export const opDiv = '/'
export const opMod = '%'
export const opEq = '='
export const opNeq = '!='
export const opImp = '=>'
/** A type is Dyn, or a tensor of these dimensions. */
export const opMatching = '⊳'
/** Two types, or sizes, are equal, or one of them is Dyn. */
export const opConsistency = '~'
/** The right side says at least as much as the left one. */
export const opPrecision = '⊑'
export const opLeq = '≤'
export const opLt = '<'
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

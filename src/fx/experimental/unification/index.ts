// Unification of terms with variables, and functions chosen by patterns and by classes. PyTorch's torch.fx.experimental.unification.
export { Var, isVar, isvar, variable, variables, vars } from './variable.ts'
export { Substitution, reify, unify, walk } from './core.ts'
export { reifyObject, unifiable, unifyObject } from './more.ts'
export type { ClassOfValues } from './parts.ts'
export * as match from './match.ts'
export * as multipledispatch from './multipledispatch/index.ts'
export * as unificationTools from './unificationTools.ts'
export * as utils from './utils.ts'

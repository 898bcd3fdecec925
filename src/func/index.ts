// func: derivatives and batches of functions, as functions. PyTorch's torch.func.
export { functionalCall } from '../module/index.ts'
export type { FunctionalCallOptions } from '../module/index.ts'
export { grad, gradAndValue, jvp, linearize, vjp } from './derivatives.ts'
export { hessian, jacfwd, jacrev } from './jacobians.ts'
export type { Argnums, DerivativeOptions } from './derivatives.ts'
export { vmap } from './vmap.ts'
export type { Dims, VmapOptions } from './vmap.ts'

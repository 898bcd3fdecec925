// Graphs ahead of time: makeFx, joint forward and backward graphs.
export { makeFx } from './makeFx.ts'
export { compileDifferentiable } from './joint.ts'
export type { CompileGraph, Differentiable } from './joint.ts'
export { ProxyTensorMode } from './proxyMode.ts'
export { spell } from './spell.ts'

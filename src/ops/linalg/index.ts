// Matrix products.
export { addmm, baddbmm, bmm, linear, mm } from './mm.ts'
export type { AddmmOptions } from './mm.ts'
export { dot, matmul, mv, outer } from './matmul.ts'
export { einsum } from './einsum.ts'

// kernels/: dtypes, the loop IR and what makes it run. See DESIGN section 7.
export * from './dtype.ts'
export * from './loopIr.ts'
export type * from './contracts.ts'
export * from './heap.ts'
export * from './storageBlock.ts'
export * from './print.ts'
export * from './compile.ts'
export * from './gemm.ts'

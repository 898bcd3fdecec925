// tensorfx/kernels
export * from '../kernels/index.ts'

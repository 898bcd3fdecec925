// tensorfx/pytree
export * from '../pytree/index.ts'

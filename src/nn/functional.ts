// torch.nn.functional: what layers compute, as functions.
export * from '../ops/names/functional.ts'

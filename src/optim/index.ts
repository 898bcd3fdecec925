// Optimizers. PyTorch's torch.optim.
export { Optimizer } from './optimizer.ts'
export type { ParamGroup, ResolvedGroup } from './optimizer.ts'
export { SGD } from './sgd.ts'
export type { SGDOptions } from './sgd.ts'
export { Adam, AdamW } from './adam.ts'
export type { AdamOptions } from './adam.ts'

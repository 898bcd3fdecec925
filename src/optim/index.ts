// optim: optimizers and learning-rate schedules. PyTorch's torch.optim.
export { Adam, AdamW } from './adam.ts'
export type { AdamOptions } from './adam.ts'
export { CosineAnnealingLR, LambdaLR, LRScheduler, StepLR } from './lrScheduler.ts'
export type { LRSchedulerState, ScheduledOptimizer } from './lrScheduler.ts'
export { Optimizer } from './optimizer.ts'
export type { BaseOptions, OptimizerState, ParamGroup, ParamGroupInput, ParamState, Params } from './optimizer.ts'
export { SGD } from './sgd.ts'
export type { SGDOptions } from './sgd.ts'

// optim: optimizers and learning-rate schedules. PyTorch's torch.optim.
export { Adam, AdamW } from './adam.ts'
export type { AdamOptions } from './adam.ts'
export { Adadelta, Adagrad, Adamax, RMSprop } from './adaptive.ts'
export type { AdadeltaOptions, AdagradOptions, AdamaxOptions, RMSpropOptions } from './adaptive.ts'
export { CyclicLR, OneCycleLR, ReduceLROnPlateau } from './cycles.ts'
export type { CyclicOptions, OneCycleOptions, PlateauOptions } from './cycles.ts'
export {
  ChainedScheduler,
  ConstantLR,
  CosineAnnealingWarmRestarts,
  ExponentialLR,
  LinearLR,
  MultiStepLR,
  MultiplicativeLR,
  PolynomialLR,
  SequentialLR,
} from './schedules.ts'
export { CosineAnnealingLR, LambdaLR, LRScheduler, StepLR } from './lrScheduler.ts'
export type { LRSchedulerState, ScheduledOptimizer } from './lrScheduler.ts'
export { Optimizer } from './optimizer.ts'
export type { BaseOptions, OptimizerState, ParamGroup, ParamGroupInput, ParamState, Params } from './optimizer.ts'
export { SGD } from './sgd.ts'
export type { SGDOptions } from './sgd.ts'

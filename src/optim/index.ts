// optim: optimizers and learning-rate schedules. PyTorch's torch.optim.
export { GradScaler } from './gradScaler.ts'
export type { GradScalerOptions, GradScalerState, ScaledOptimizer } from './gradScaler.ts'
export { Adafactor } from './adafactor.ts'
export type { AdafactorOptions } from './adafactor.ts'
export { Adam, AdamW } from './adam.ts'
export type { AdamOptions } from './adam.ts'
export { Adadelta, Adagrad, Adamax, RMSprop } from './adaptive.ts'
export type { AdadeltaOptions, AdagradOptions, AdamaxOptions, RMSpropOptions } from './adaptive.ts'
export { CyclicLR, OneCycleLR, ReduceLROnPlateau } from './cycles.ts'
export type { CyclicOptions, OneCycleOptions, PlateauOptions, PlateauState } from './cycles.ts'
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
export type { LRSchedulerState, PerGroup, ScheduledOptimizer } from './lrScheduler.ts'
export { LBFGS } from './lbfgs.ts'
export type { LBFGSOptions } from './lbfgs.ts'
export { Muon } from './muon.ts'
export type { MuonOptions } from './muon.ts'
export { NAdam, RAdam } from './nadam.ts'
export type { NAdamOptions, RAdamOptions } from './nadam.ts'
export { Optimizer } from './optimizer.ts'
export type { BaseOptions, DecayOptions, ParamGroup, ParamGroupInput, Params } from './optimizer.ts'
export { ASGD, Rprop } from './rprop.ts'
export type { ASGDOptions, RpropOptions } from './rprop.ts'
export { SGD } from './sgd.ts'
export type { SGDOptions } from './sgd.ts'
export type { OptimizerState, ParamState, TorchOptimizerState } from './stateDict.ts'

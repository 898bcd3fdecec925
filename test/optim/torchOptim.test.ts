// optim has the classes and functions of torch.optim: those that it lacks are listed here, each with its reason.
import { expect, test } from 'vitest'
import * as optim from 'tensorfx/optim'

const names = (text: string): readonly string[] => text.trim().split(/\s+/)

const missing = (pytorch: string, owner: object): readonly string[] => names(pytorch).filter((name) => !(name in owner))

/** torch.optim.__all__ of PyTorch 2.13, without its modules. */
const OPTIMIZERS = 'ASGD Adadelta Adafactor Adagrad Adam AdamW Adamax LBFGS Muon NAdam Optimizer RAdam RMSprop Rprop SGD SparseAdam'

/** torch.optim.lr_scheduler.__all__. */
const SCHEDULES = `ChainedScheduler ConstantLR CosineAnnealingLR CosineAnnealingWarmRestarts CyclicLR ExponentialLR LRScheduler LambdaLR LinearLR MultiStepLR
  MultiplicativeLR OneCycleLR PolynomialLR ReduceLROnPlateau SequentialLR StepLR`

/** torch.optim.swa_utils.__all__, in camelCase. */
const AVERAGES = 'AveragedModel SWALR getEmaAvgFn getEmaMultiAvgFn getSwaAvgFn getSwaMultiAvgFn updateBn'

test('optim has every optimizer of torch.optim but SparseAdam, since there are no sparse tensors', () => {
  expect(missing(OPTIMIZERS, optim)).toEqual(['SparseAdam'])
})

test('optim has every schedule of torch.optim.lr_scheduler', () => {
  expect(missing(SCHEDULES, optim)).toEqual([])
})

test('optim.swaUtils has everything of torch.optim.swa_utils', () => {
  expect(missing(AVERAGES, optim.swaUtils)).toEqual([])
})

// The composition root of optimizers: tensors, and what optimizers say about PyTorch's names that they do not have.
import { Optimizer } from '../optim/index.ts'
import { explainUnknownNames } from '../protocol/index.ts'
import { installTensors } from './tensors.ts'
import { OTHER_LIBRARIES } from './otherLibraries.ts'

const INSTEAD_OF_OPTIMIZER = new Map<string, string>([
  ...Object.entries(OTHER_LIBRARIES.optimizer),
  ['lr', 'the learning rate belongs to the groups: optimizer.paramGroups[0].lr'],
])

/** Makes optimizers work; they explain PyTorch's spelling of their methods, and where the learning rate is. */
export function installOptim(): void {
  installTensors()
  explainUnknownNames(Optimizer.prototype, {
    owner: 'optimizer',
    known: () => ['paramGroups', 'state', 'defaults', ...Object.getOwnPropertyNames(Optimizer.prototype)],
    instead: INSTEAD_OF_OPTIMIZER,
    insteadOfSetting: INSTEAD_OF_OPTIMIZER,
    extensible: true,
  })
}

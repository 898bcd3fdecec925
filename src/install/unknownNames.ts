// What tensors say about PyTorch's names that they do not have.
import { elementByKey, setElementByKey } from '../ops/view/getitem.ts'
import { explainUnknownNames } from '../protocol/index.ts'
import { Tensor } from '../tensor/index.ts'
import { OTHER_LIBRARIES } from './otherLibraries.ts'

const NO_DEVICES = 'there are no devices here: tensors live in one memory, and every operator runs where it is'

const INSTEAD_OF_TENSOR = new Map<string, string>([
  ...Object.entries(OTHER_LIBRARIES.tensor),

  ['length', 'x.shape[0] is the size of the first dimension, x.numel the number of elements'],
  ['numpy', 'x.toTypedArray() copies the values in row-major order, x.toArray() as nested arrays'],
  ['tolist', 'write x.toArray()'],
  ['data', 'x.detach() is the same memory without history; write into x within torch.noGrad(() => …)'],
  ['nelement', 'x.numel is a property'],
  ['device', NO_DEVICES],
  ['cuda', `leave it out, as ${NO_DEVICES}`],
  ['cpu', `leave it out, as ${NO_DEVICES}`],
  ['ndimension', 'write x.ndim'],
  ['H', 'write x.t()'],
])

/** Names of tensors that are properties, not methods. */
const PROPERTIES = ['shape', 'strides', 'dtype', 'numel', 'requiresGrad', 'grad', 'gradFn', 'isParameter', 'mT', 'mH']
/** Internal names, never suggested. */
const HIDDEN = new Set(['constructor', 'realize', 'valueOf', 'copyFrom', 'asParameter'])

/** Tensors explain unknown names, and `x[0]` reads them. For the composition root, once all methods are there. */
export function explainTensorNames(): void {
  explainUnknownNames(Tensor.prototype, {
    owner: 'x',
    known: () => [...PROPERTIES, ...Object.getOwnPropertyNames(Tensor.prototype).filter((name) => !HIDDEN.has(name))],
    instead: INSTEAD_OF_TENSOR,
    at: elementByKey,
    setAt: setElementByKey,
  })
}

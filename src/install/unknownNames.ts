// What tensors say about PyTorch's names that they do not have.
import { OTHER_LIBRARIES } from './otherLibraries.ts'
import { addTensorNames } from './tensorNames.ts'

const CARD = "import tensorfx/webgpu and write x.to('webgpu') for the graphics card"

const INSTEAD_OF_TENSOR = new Map<string, string>([
  ...Object.entries(OTHER_LIBRARIES.tensor),

  ['length', 'x.shape[0] is the size of the first dimension, x.numel the number of elements'],
  ['numpy', 'x.toTypedArray() copies the values in row-major order, x.toArray() as nested arrays'],
  ['tolist', 'write x.toArray()'],
  ['data', 'x.detach() is the same memory without history; write into x within torch.noGrad(() => …)'],
  ['nelement', 'x.numel is a property'],
  ['cuda', CARD],
  ['is_cuda', CARD],
  ['ndimension', 'write x.ndim'],
  ['H', 'write x.t()'],
])

/** Tensors explain PyTorch's names, and those of other libraries. */
export const explainTensorNames = (): void => addTensorNames(INSTEAD_OF_TENSOR)

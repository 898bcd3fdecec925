// Parameters as one vector, and back; PyTorch's torch.nn.utils.convert_parameters.
import { noGrad } from '../autograd/index.ts'
import { ArgumentError, ShapeError } from '../errors/index.ts'
import { cat, copy_, reshape } from '../ops/index.ts'
import { checkCount, checkIterable, valueText } from '../protocol/index.ts'
import type { TensorLike } from '../protocol/index.ts'
import { Tensor, checkTensor, formatShape } from '../tensor/index.ts'

function listOf(where: string, parameters: Iterable<TensorLike>): readonly Tensor[] {
  checkIterable(where, 'parameters', parameters)
  return [...parameters].map((p) => {
    if (p instanceof Tensor) return p
    throw new ArgumentError(`${where}: parameters must be Tensors, got ${valueText(p)}.`)
  })
}

/** All elements of all parameters, one after the other. Gradients flow through it. PyTorch's `parameters_to_vector`. */
export function parametersToVector(parameters: Iterable<TensorLike>): Tensor {
  checkCount('parametersToVector', arguments, 1)
  return cat(listOf('parametersToVector', parameters).map((p) => reshape(p, [-1])))
}

/** Copies the elements of a vector into the parameters. Throws ShapeError if their number differs. PyTorch's `vector_to_parameters`. */
export function vectorToParameters(vector: Tensor, parameters: Iterable<TensorLike>): void {
  checkCount('vectorToParameters', arguments, 2)
  const list = listOf('vectorToParameters', parameters)
  checkTensor('vectorToParameters', 'vector', vector)
  const count = list.reduce((sum, p) => sum + p.numel, 0)
  if (vector.ndim !== 1 || vector.numel !== count)
    throw new ShapeError(`vectorToParameters: the parameters have ${count} elements, but the vector has shape ${formatShape(vector.shape)}.`)
  let from = 0
  for (const p of list) {
    const own = reshape(vector.narrow(0, from, p.numel), p.shape)
    noGrad(() => copy_(p, own))
    from += p.numel
  }
}

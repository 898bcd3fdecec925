// The loss that judges run backward from. Unlike a mean, whose gradient vanishes behind a softmax or a normalization, it gives every element a weight of its own.
import { noGrad } from '../../autograd/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import { add, mul, sum, to } from '../../ops/index.ts'
import { treeLeaves } from '../../pytree/index.ts'
import { Tensor, tensorFromValues } from '../../tensor/index.ts'

/** A scalar from the tensors of an output that require grad: the average of weighted means, in float32 or wider. Null if there is none. */
export function lossOf(output: unknown): Tensor | null {
  const parts = treeLeaves(output).flatMap((leaf) => (leaf instanceof Tensor && leaf.requiresGrad && leaf.numel > 0 ? [leaf] : []))
  const [first, ...rest] = parts.map((part) => weightedMean(part, parts.length))
  return first === undefined ? null : rest.reduce((a, b) => add(a, b), first)
}

function weightedMean(tensor: Tensor, parts: number): Tensor {
  // Weights between 1/2 and 3/2, which are exact in every float type.
  const weights = Array.from({ length: tensor.numel }, (_, i) => (8 + ((i * 7 + 3) % 17)) / 16)
  const weight = noGrad(() => to(tensorFromValues(weights, tensor.shape, 'float32'), tensor.dtype))
  const wide = dtypeInfo[tensor.dtype].size < 4 ? to(tensor, 'float32') : tensor
  return mul(sum(mul(wide, weight)), 1 / (tensor.numel * parts))
}

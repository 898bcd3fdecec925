// TensorDataset: samples along the first dimension of tensors.
import { ArgumentError } from '../errors/index.ts'
import { select, slice } from '../ops/index.ts'
import { checkCount } from '../protocol/index.ts'
import { checkTensor, formatShape } from '../tensor/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { Dataset, checkIndex } from './dataset.ts'

/**
 * Samples along the first dimension of tensors of equal first size: `get(i)` is `[a[i], b[i]]`. PyTorch's `TensorDataset`.
 *
 * @example new TensorDataset(inputs, targets).get(0) // [inputs[0], targets[0]]
 */
export class TensorDataset<const A extends readonly Tensor[]> extends Dataset<{ -readonly [K in keyof A]: Tensor }> {
  readonly tensors: A
  readonly length: number

  constructor(...tensors: A) {
    super()
    const [first] = tensors
    if (first === undefined) throw new ArgumentError('TensorDataset: at least one tensor is needed, got none.')
    for (const [i, tensor] of tensors.entries()) {
      checkTensor('TensorDataset', `tensors[${i}]`, tensor)
      if (tensor.ndim === 0 || tensor.shape[0] !== first.shape[0])
        throw new ArgumentError(
          `TensorDataset: Size mismatch between tensors: all need the same first size, tensors[0] has shape ${formatShape(first.shape)} and tensors[${i}] ${formatShape(tensor.shape)}.`,
        )
    }
    this.tensors = tensors
    this.length = first.shape[0] ?? 0
  }

  get(index: number): { -readonly [K in keyof A]: Tensor } {
    checkCount('TensorDataset.get', arguments, 1)
    const at = checkIndex('TensorDataset.get', index, this.length)
    return this.#each((tensor) => select(tensor, 0, at))
  }

  /** The samples from `start` to before `end`, along the first dimension still. PyTorch's `dataset[start:end]`. */
  slice(start = 0, end: number = this.length): { -readonly [K in keyof A]: Tensor } {
    checkCount('TensorDataset.slice', arguments, 2)
    return this.#each((tensor) => slice(tensor, 0, start, end))
  }

  #each(part: (tensor: Tensor) => Tensor): { -readonly [K in keyof A]: Tensor } {
    // A mapped array has the length of the tuple, which its type does not say.
    return this.tensors.map(part) as { -readonly [K in keyof A]: Tensor }
  }
}

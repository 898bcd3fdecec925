// Parameter: a leaf tensor that a module owns and an optimizer trains. It is an ordinary Tensor with `isParameter` set, no class of its own, so that
// operators and kernels see one kind of object. This file also gives Tensor what modules need of it: copies into, and parameters from, any tensor.
import { noGrad } from '../autograd/index.ts'
import { ArgumentError, DTypeError } from '../errors/index.ts'
import { dtypeInfo } from '../kernels/index.ts'
import { copy_ } from '../ops/index.ts'
import { checkCount, checkOptions, isParameter, valueText } from '../protocol/index.ts'
import type { TensorLike } from '../protocol/index.ts'
import { Tensor } from '../tensor/index.ts'

/** A tensor with `isParameter` true; PyTorch's `torch.nn.Parameter`. An ordinary tensor cannot take its place: `linear.weight = torch.zeros([2, 2])` is a type error. */
export interface Parameter extends Tensor {
  isParameter: true
}

/** Options of {@link Parameter}. */
export interface ParameterOptions {
  /** Default true; must be false for integers and booleans. */
  readonly requiresGrad?: boolean
}

function makeParameter(data: Tensor, options: ParameterOptions = {}): Parameter {
  checkOptions('nn.Parameter', options, { requiresGrad: 'boolean' })
  // For callers in JavaScript.
  if (!(data instanceof Tensor))
    throw new ArgumentError(`nn.Parameter: the data must be a Tensor, got ${valueText(data)}. Make one: new nn.Parameter(torch.tensor(data)).`)
  const requiresGrad = options.requiresGrad ?? true
  if (requiresGrad && !dtypeInfo[data.dtype].differentiable) {
    throw new DTypeError(
      `Parameter: only floating-point and complex tensors can require gradients, this one is ${data.dtype}. Pass { requiresGrad: false }, or register it as a buffer.`,
    )
  }
  const storage = data.isFake ? null : data.realize()
  const parameter = new Tensor(data.sizes, data.dtype, storage, undefined, undefined, data)
  parameter.requiresGrad = requiresGrad
  return Object.assign(parameter, { isParameter: true as const })
}

/** Makes parameters: `this.scale = new Parameter(torch.ones([3]))`. `x instanceof Parameter` tells them from other tensors. PyTorch's `torch.nn.Parameter`. */
export class Parameter {
  /** A parameter on the memory of `data` (not a copy), cut from its history. Throws DTypeError when an integer tensor should require gradients. */
  constructor(data: Tensor, options?: ParameterOptions) {
    checkCount('nn.Parameter', arguments, 2)
    return makeParameter(data, options)
  }

  static [Symbol.hasInstance](value: unknown): boolean {
    return isParameter(value)
  }
}

declare module '../protocol/tensorLike.ts' {
  interface TensorClasses {
    readonly parameter: Parameter
  }
}

declare module '../tensor/tensor.ts' {
  interface Tensor {
    /** A parameter on this tensor's memory, cut from its history. */
    asParameter(requiresGrad?: boolean): Tensor
    /** Copies the values of `source` (cast, broadcast) into this tensor without recording it; what loading a state dict does. */
    copyFrom(source: TensorLike): void
  }
}

/** Parameters from any tensor, and copies into it. */
export const parameterMethods: object = {
  asParameter(this: Tensor, requiresGrad?: boolean): Tensor {
    return makeParameter(this, requiresGrad === undefined ? {} : { requiresGrad })
  },
  copyFrom(this: Tensor, source: TensorLike): void {
    if (!(source instanceof Tensor)) throw new ArgumentError('copyFrom: the source must be a Tensor.')
    noGrad(() => copy_(this, source))
  },
}

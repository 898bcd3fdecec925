// Bounding gradients before a step; PyTorch's torch.nn.utils.clip_grad.
import { noGrad } from '../autograd/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { abs, add, amax, clamp, clamp_, mul, mul_, norm, pow, reciprocal, stack, sum, zeros } from '../ops/index.ts'
import { checkArgument, checkCount, isTensorLike, valueText } from '../protocol/index.ts'
import type { TensorLike } from '../protocol/index.ts'
import { Tensor } from '../tensor/index.ts'
import { readOptions } from './options.ts'

type Parameters = TensorLike | Iterable<TensorLike>

/** Options of `nn.utils.clipGradNorm_`. */
export interface ClipGradNormOptions {
  /** p of the p-norm, or Infinity; default 2. */
  readonly normType?: number
  /** Throw when the norm is NaN or infinite. It reads the norm, which ends a compiled graph. */
  readonly errorIfNonfinite?: boolean
}

function gradients(where: string, parameters: Parameters): Tensor[] {
  // For callers in JavaScript.
  const fits = isTensorLike(parameters) || (typeof parameters === 'object' && parameters !== null && Symbol.iterator in parameters)
  checkArgument(fits, where, 'parameters', 'a Tensor or several of them, such as model.parameters()', parameters)
  const list = isTensorLike(parameters) ? [parameters] : [...parameters]
  return list.map((p) => p.grad).filter((g) => g instanceof Tensor)
}

function vectorNorm(x: Tensor, normType: number): Tensor {
  if (normType === Infinity) return amax(abs(x))
  if (normType === 2) return norm(x)
  if (normType === 1) return sum(abs(x))
  return pow(sum(pow(abs(x), normType)), 1 / normType)
}

/**
 * Scales all gradients so that their total norm is at most `maxNorm`; returns the norm before. PyTorch's `nn.utils.clip_grad_norm_`.
 * Throws ArgumentError for a norm type that is not positive.
 */
export function clipGradNorm_(parameters: Parameters, maxNorm: number, options: ClipGradNormOptions = {}): Tensor {
  checkCount('clipGradNorm_', arguments, 3)
  const { normType, errorIfNonfinite } = readOptions('nn.utils.clipGradNorm_', { normType: 2, errorIfNonfinite: false }, [options])
  const grads = gradients('nn.utils.clipGradNorm_', parameters)
  if (typeof maxNorm !== 'number' || Number.isNaN(maxNorm))
    throw new ArgumentError(`nn.utils.clipGradNorm_: maxNorm must be a number, got ${valueText(maxNorm)}.`)
  if (typeof normType !== 'number' || !(normType > 0))
    throw new ArgumentError(`nn.utils.clipGradNorm_: normType must be positive, got ${valueText(normType)}.`)
  return noGrad(() => {
    if (grads.length === 0) return zeros([])
    const norms = grads.map((g) => vectorNorm(g, normType))
    const [first] = norms
    // Norms are not negative, so their maximum is their vectorNorm for Infinity too.
    const total = first !== undefined && norms.length === 1 ? first : vectorNorm(stack(norms), normType)
    if (errorIfNonfinite && !Number.isFinite(Number(total.item()))) {
      throw new ArgumentError(
        `nn.utils.clipGradNorm_: the total norm of the gradients is ${String(total.item())}; pass { errorIfNonfinite: false } to scale them anyway.`,
      )
    }
    const factor = clamp(mul(reciprocal(add(total, 1e-6)), maxNorm), null, 1)
    for (const grad of grads) mul_(grad, factor)
    return total
  })
}

/** Bounds every element of the gradients to [-clipValue, clipValue]. PyTorch's `nn.utils.clip_grad_value_`. */
export function clipGradValue_(parameters: Parameters, clipValue: number): void {
  checkCount('clipGradValue_', arguments, 2)
  if (typeof clipValue !== 'number' || !(clipValue >= 0))
    throw new ArgumentError(`nn.utils.clipGradValue_: clipValue must be at least 0, got ${valueText(clipValue)}.`)
  noGrad(() => {
    for (const grad of gradients('nn.utils.clipGradValue_', parameters)) clamp_(grad, -clipValue, clipValue)
  })
}

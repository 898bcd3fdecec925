// The gradient methods of Tensor.
import { isDetached } from '../dispatch/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { checkArgument, checkMethod, checkOptions, isPlainObject, valueText } from '../protocol/index.ts'
import { Tensor } from '../tensor/index.ts'
import { AutogradError } from './errors.ts'
import { backward, isDifferentiable } from './engine.ts'
import type { BackwardOptions } from './engine.ts'
import { registerHook, registerPostAccumulateGradHook, retainGrad } from './hooks.ts'
import type { AccumulatedHook, RemovableHandle } from './hooks.ts'
import type { GradHook } from './node.ts'

declare module '../tensor/tensor.ts' {
  interface Tensor {
    /** Computes gradients and adds them to `.grad` of the leaves; `gradient` may be left out for a tensor of one element. PyTorch's `Tensor.backward`. */
    backward(gradient?: Tensor | null, options?: BackwardOptions & { readonly inputs?: readonly Tensor[] | Tensor }): void
    backward(options: BackwardOptions & { readonly inputs?: readonly Tensor[] | Tensor; readonly gradient?: Tensor | null }): void
    /** Starts (or stops) recording operators on this leaf; returns it. PyTorch's `requires_grad_`. */
    requiresGrad_(requiresGrad?: boolean): this
    /** Cuts this tensor from its history, in place. Throws AutogradError for a view: what it is a view of would keep its history. PyTorch's `detach_`. */
    detach_(): this
    /** Keeps the gradient of a tensor that is not a leaf in its `.grad`. */
    retainGrad(): void
    /** Calls `hook` with the gradient in every backward pass; a tensor that it returns replaces the gradient. */
    registerHook(hook: GradHook): RemovableHandle
    /** Calls `hook` with this leaf whenever backward has added to its `grad`. PyTorch's `register_post_accumulate_grad_hook`. */
    registerPostAccumulateGradHook(hook: AccumulatedHook): RemovableHandle
  }
}

type TensorBackwardOptions = BackwardOptions & { readonly inputs?: readonly Tensor[] | Tensor; readonly gradient?: Tensor | null }

/** Methods that compute and control gradients. */
export const autogradMethods = {
  backward(this: Tensor, first?: Tensor | null | TensorBackwardOptions, second?: TensorBackwardOptions): void {
    checkMethod(this, 'Tensor.backward', arguments, 2)
    if (first === undefined && second === undefined) return backward(this)
    checkArgument(
      first === null || first === undefined || first instanceof Tensor || (second === undefined && isPlainObject(first)),
      'Tensor.backward',
      'gradient',
      'a Tensor, or null',
      first,
    )
    const options = second ?? (first === null || first === undefined || first instanceof Tensor ? {} : first)
    checkOptions<TensorBackwardOptions>('Tensor.backward', options, { gradient: true, retainGraph: 'boolean', createGraph: 'boolean', inputs: true })
    const { gradient, ...rest } = options
    const grad = first instanceof Tensor ? first : (gradient ?? null)
    backward([this], [grad], rest)
  },

  requiresGrad_<T extends Tensor>(this: T, requiresGrad = true): T {
    checkMethod(this, 'requiresGrad_', arguments, 1)
    if (typeof requiresGrad !== 'boolean')
      throw new ArgumentError(`requiresGrad_: argument 'requiresGrad' must be true or false, got ${valueText(requiresGrad)}.`)
    if (requiresGrad && !isDifferentiable(this)) {
      throw new AutogradError(
        `requiresGrad_: only floating-point and complex tensors can require gradients, this one is ${this.dtype}. Convert it first: x.float().`,
      )
    }
    if (!requiresGrad && this.gradFn !== null) {
      throw new AutogradError(
        'requiresGrad_(false): this tensor is not a leaf: whether it requires grad follows from its history. Use detach() to drop that.',
      )
    }
    this.requiresGrad = requiresGrad
    return this
  },

  detach_<T extends Tensor>(this: T): T {
    checkMethod(this, 'detach_', arguments, 0)
    if (this.viewBase !== null && !isDetached(this))
      throw new AutogradError(
        'detach_: this tensor is a view, which cannot be cut from its history in place: what it is a view of would keep that. Use detach().',
      )
    this.gradFn = null
    this.outputNr = 0
    this.requiresGrad = false
    return this
  },

  retainGrad(this: Tensor): void {
    checkMethod(this, 'retainGrad', arguments, 0)
    retainGrad(this)
  },

  registerHook(this: Tensor, hook: GradHook): RemovableHandle {
    checkMethod(this, 'registerHook', arguments, 1)
    return registerHook(this, hook)
  },

  registerPostAccumulateGradHook(this: Tensor, hook: AccumulatedHook): RemovableHandle {
    checkMethod(this, 'registerPostAccumulateGradHook', arguments, 1)
    return registerPostAccumulateGradHook(this, hook)
  },
}

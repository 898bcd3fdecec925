// The norms of gradients that the live page shows, as a part of the compiled step.
import { noGrad } from '../autograd/index.ts'
import type { Module } from '../module/index.ts'
import { full, norm, stack } from '../ops/index.ts'
import { Tensor } from '../tensor/index.ts'

/** The norm of the gradient of each parameter, float32 [parameters]; NaN where there is none. */
export const gradNorms = (model: Module): Tensor =>
  noGrad(() =>
    stack(
      [...model.parameters()].map((parameter) => {
        const grad = parameter instanceof Tensor ? parameter.grad : null
        return grad instanceof Tensor ? norm(grad).float() : full([], NaN, { dtype: 'float32' })
      }),
    ),
  )

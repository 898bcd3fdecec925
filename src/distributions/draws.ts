// Where the random numbers of distributions come from: numbers of standard distributions, of which the samples are made. Tests replace them by recorded ones.
import { clamp, dirichletSamples, gammaSamples, rand, randn } from '../ops/index.ts'
import type { DType } from '../kernels/index.ts'
import { finfo } from '../tensor/index.ts'
import type { Generator, Tensor } from '../tensor/index.ts'

/** What a draw needs beside parameters. */
export interface Draw {
  readonly shape: readonly number[]
  readonly dtype: DType
  readonly generator: Generator | null
}

/** The numbers, as an object so that tests can put others in their place. */
export const draws = {
  /** Normal numbers of mean 0 and standard deviation 1. */
  normal: ({ shape, dtype, generator }: Draw): Tensor => randn(shape, { dtype, generator }),

  /** Uniform numbers in [0, 1). */
  uniform: ({ shape, dtype, generator }: Draw): Tensor => rand(shape, { dtype, generator }),

  /** Uniform numbers in (-1, 1). */
  symmetric: (draw: Draw): Tensor =>
    draws
      .uniform(draw)
      .mul(2)
      .sub(1 - 2 ** -24),

  /** Exponential numbers of rate 1. */
  exponential: ({ shape, dtype, generator }: Draw): Tensor => rand(shape, { dtype, generator }).neg().log1p().neg(),

  /** Numbers of gamma distributions with these concentrations, of the shape of the draw, and the rate 1, with gradients. */
  gamma(concentration: Tensor, { shape, dtype, generator }: Draw): Tensor {
    const uniform = (): Tensor => rand(shape, { dtype, generator })
    return gammaSamples(concentration, randn(shape, { dtype, generator }), uniform(), uniform(), uniform())
  },

  /** Vectors of Dirichlet distributions with these concentrations, of the shape of the draw, with gradients. */
  dirichlet: (concentration: Tensor, draw: Draw): Tensor => dirichletSamples(concentration, draws.gamma(concentration.detach(), draw)),
}

/** Probabilities away from 0 and 1, so that their logarithms are finite. */
export const clampProbs = (probs: Tensor): Tensor => clamp(probs, finfo(probs.dtype).eps, 1 - finfo(probs.dtype).eps)

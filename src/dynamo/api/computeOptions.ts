// How a compiled function computes: compile's `options`.
import { ArgumentError } from '../../errors/index.ts'
import { currentAccuracy, isStrict } from '../../kernels/index.ts'
import type { Accuracy } from '../../kernels/index.ts'
import { checkArgument, checkOptions } from '../../protocol/index.ts'

/** How a compiled function computes. */
export interface ComputeOptions {
  /** Whether its results must not depend on what the machine offers, see `torch.useDeterministicAlgorithms`; default: what that says at the call. */
  readonly strict?: boolean
  /**
   * `'fast'`: convolutions may be less accurate than by default, with errors of up to 8 times those of strict code. Deterministic algorithms leave it out. Default: `'default'`, or what the
   * compiled function that calls this one says.
   */
  readonly convolution?: 'default' | 'fast'
}

/** The accuracy of a call under options. */
export function accuracyUnder({ strict = isStrict(), convolution = currentAccuracy() === 'fast' ? 'fast' : 'default' }: ComputeOptions): Accuracy {
  return strict ? 'strict' : convolution
}

/** Throws ArgumentError for an option that does not exist, or that another one excludes. */
export function checkComputeOptions(options: ComputeOptions): void {
  checkOptions('compile: options', options, { strict: 'boolean', convolution: true })
  const { strict, convolution } = options
  checkArgument(
    convolution === undefined || convolution === 'default' || convolution === 'fast',
    'compile',
    'options.convolution',
    "'default' or 'fast'",
    convolution,
  )
  if (strict === true && convolution === 'fast')
    throw new ArgumentError("compile: options.strict is true and options.convolution is 'fast', which strict code leaves out: leave one of them out.")
}

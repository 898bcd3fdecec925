// How a compiled function computes: compile's `options`.
import { ArgumentError } from '../../errors/index.ts'
import { currentAccuracy, isStrict, requireMachineCode } from '../../kernels/index.ts'
import type { Computing, Emitter } from '../../kernels/index.ts'
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
  /**
   * What its kernels are translated to. `'c'`: machine code from the first call on, which waits for the C compiler (`tensorfx/native`, after `init`). `'wasm'`: WebAssembly alone. Results are
   * the same bits. Default: what `TENSORFX_EMITTER` says, or after `native.init()` machine code where it has come and is faster.
   */
  readonly emitter?: Emitter
}

/** How calls compute under options. */
export function computingUnder({
  strict = isStrict(),
  convolution = currentAccuracy() === 'fast' ? 'fast' : 'default',
  emitter,
}: ComputeOptions): Partial<Computing> {
  const accuracy = strict ? 'strict' : convolution
  return emitter === undefined ? { accuracy } : { accuracy, emitter }
}

/** Throws ArgumentError for an option that does not exist, or that another one excludes, and UnsupportedError for machine code where there is no compiler. */
export function checkComputeOptions(options: ComputeOptions): void {
  checkOptions('compile: options', options, { strict: 'boolean', convolution: true, emitter: true })
  const { strict, convolution, emitter } = options
  checkArgument(
    convolution === undefined || convolution === 'default' || convolution === 'fast',
    'compile',
    'options.convolution',
    "'default' or 'fast'",
    convolution,
  )
  checkArgument(emitter === undefined || emitter === 'c' || emitter === 'wasm', 'compile', 'options.emitter', "'c' or 'wasm'", emitter)
  if (emitter === 'c') requireMachineCode("compile: options.emitter is 'c'")
  if (strict === true && convolution === 'fast')
    throw new ArgumentError("compile: options.strict is true and options.convolution is 'fast', which strict code leaves out: leave one of them out.")
}

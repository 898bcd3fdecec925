// What a minimizer is told, and the errors of its runs. PyTorch's torch.fx.passes.net_min_base.
import { ArgumentError, TensorfxError } from '../../../errors/index.ts'
import { checkCount, checkOptions, snakeCase } from '../../../protocol/index.ts'
import { pyRepr } from '../../text/format.ts'

/** How a minimizer goes through the nodes; see {@link MinimizerBase.minimize}. */
export type TraverseMethod = 'sequential' | 'binary' | 'accumulate' | 'skip' | 'defined' | 'block'

const METHODS: readonly string[] = ['sequential', 'binary', 'accumulate', 'skip', 'defined', 'block'] satisfies readonly TraverseMethod[]

/** Options of {@link MinimizerSettingBase}. */
export interface MinimizerSettingOptions {
  /** Give backend b its own earlier results as inputs, instead of those of a, so that errors add up. Default false. */
  readonly accumulateError?: boolean
  /** How to go through the nodes. Default `sequential`. */
  readonly traverseMethod?: TraverseMethod
  /** Look for all culprits instead of the first. Default false. */
  readonly findAll?: boolean
  /** Let `runNodes` compare every node of the range instead of the results of the range. Default false. */
  readonly returnIntermediate?: boolean
  /** Compare all results of a part instead of its last node only. Default false. */
  readonly allOutputs?: boolean
}

/** The settings of a minimizer. PyTorch's _MinimizerSettingBase. */
export class MinimizerSettingBase implements Required<MinimizerSettingOptions> {
  readonly accumulateError: boolean
  readonly traverseMethod: TraverseMethod
  readonly findAll: boolean
  readonly returnIntermediate: boolean
  readonly allOutputs: boolean

  /** @throws ArgumentError for an unknown traverse method. */
  constructor(options: MinimizerSettingOptions = {}) {
    checkCount('MinimizerSettingBase', arguments, 1)
    checkOptions('MinimizerSettingBase', options, {
      accumulateError: 'boolean',
      traverseMethod: true,
      findAll: 'boolean',
      returnIntermediate: 'boolean',
      allOutputs: 'boolean',
    })
    const { traverseMethod = 'sequential' } = options
    if (!METHODS.includes(traverseMethod))
      throw new ArgumentError(`Unknown traverse method ${String(traverseMethod)}! The option 'traverseMethod' must be one of ${METHODS.join(', ')}.`)
    this.accumulateError = options.accumulateError ?? false
    this.traverseMethod = traverseMethod
    this.findAll = options.findAll ?? false
    this.returnIntermediate = options.returnIntermediate ?? false
    this.allOutputs = options.allOutputs ?? false
  }

  toString(): string {
    const lines = Object.entries(this).map(([name, value]) => `\t${snakeCase(name)}: ${typeof value === 'string' ? value : pyRepr(value)}\n`)
    return `FX Minimizer Settings:\n${lines.join('')}`
  }
}

/**
 * The nodes to run do not form one part of the graph.
 *
 * Fix: give `runNodes` two nodes with one part of the graph between them.
 */
export class FxNetMinimizerBadModuleError extends TensorfxError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('TFX_MINIMIZER_BAD_MODULE', message, options)
  }
}

/**
 * A backend failed. `cause` is its error.
 *
 * Fix: run the part that the message names on that backend alone, and read `cause`.
 */
export class FxNetMinimizerRunFuncError extends TensorfxError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('TFX_MINIMIZER_RUN_FUNC', message, options)
  }
}

/**
 * The two backends gave different results.
 *
 * Fix: look at the operators that the message names; one of the backends computes them wrongly, or the comparison is too strict.
 */
export class FxNetMinimizerResultMismatchError extends TensorfxError {
  constructor(message: string) {
    super('TFX_MINIMIZER_RESULT_MISMATCH', message)
  }
}

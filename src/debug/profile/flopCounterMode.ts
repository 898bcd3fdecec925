// FlopCounterMode: counts floating-point operations by module and operator. PyTorch's torch.utils.flop_counter.FlopCounterMode.
import { decomposed, dispatchBelowAutograd, withMode } from '../../dispatch/index.ts'
import type { Arg, OpDef, Result } from '../../dispatch/index.ts'
import { checkCallable, checkCount } from '../../protocol/index.ts'
import { flopsOf, hasFormula } from './flops.ts'
import { ModuleCalls } from './moduleCalls.ts'

/** Operations by operator: `{ 'torch.mm': 128 }`. */
export type FlopsByOperator = ReadonlyMap<string, number>

/**
 * Counts the floating-point operations of a program: 2 for each multiplication with its addition in products and convolutions, forward and backward; everything else
 * counts as 0. Compiled functions run eagerly meanwhile, so that their operators are seen. PyTorch's `torch.utils.flop_counter.FlopCounterMode`; the gradient of a grouped
 * convolution's weight counts what it computes, where PyTorch counts it as if there were no groups.
 *
 * @example
 * const counter = new FlopCounterMode()
 * counter.during(() => model(x).sum().backward())
 * counter.getTotalFlops()
 * counter.getFlopCounts().get('Net.fc1') // Map { 'torch.nn.functional.linear' => 1280 }
 */
export class FlopCounterMode {
  readonly name = 'FlopCounterMode'
  readonly #calls = new ModuleCalls()
  readonly #counts = new Map<string, Map<string, number>>()

  /** Runs `fn`, counts what it computes in addition to what was counted before, and returns its result. Throws ArgumentError unless `fn` is a function. */
  during<T>(fn: () => T): T {
    checkCount('FlopCounterMode.during', arguments, 1)
    checkCallable('FlopCounterMode.during', 'fn', fn)
    return withMode(this, () => this.#calls.during(fn))
  }

  /** @internal */
  handle(op: OpDef, args: readonly Arg[]): Result {
    const { decompose } = op
    // What an operator is composed of is seen too.
    if (op.kernel === null && decompose !== null && !hasFormula(op)) return withMode(this, () => decomposed(op.qualname, decompose, args))
    const result = dispatchBelowAutograd(op, args)
    const flops = flopsOf(op, args, result)
    if (flops > 0) for (const path of new Set(['Global', ...this.#calls.stack.map((call) => call.path)])) this.#add(path, op.qualname, flops)
    return result
  }

  #add(path: string, operator: string, flops: number): void {
    let counts = this.#counts.get(path)
    if (counts === undefined) this.#counts.set(path, (counts = new Map()))
    counts.set(operator, (counts.get(operator) ?? 0) + flops)
  }

  /** All operations that were counted. PyTorch's get_total_flops. */
  getTotalFlops(): number {
    return totalOf(this.#counts.get('Global'))
  }

  /** The operations by the path of the module that they ran in (which includes those of the modules below it), and by operator; 'Global' has all, those of backward passes included. PyTorch's get_flop_counts. */
  getFlopCounts(): ReadonlyMap<string, FlopsByOperator> {
    return this.#counts
  }
}

/** The sum over all operators. */
export const totalOf = (counts: FlopsByOperator | undefined): number => [...(counts?.values() ?? [])].reduce((sum, flops) => sum + flops, 0)

// What is known of the results of a recorded step: layouts, as tensors without data.
import { withoutModes } from '../../dispatch/index.ts'
import type { Arg, ResultSpec } from '../../dispatch/index.ts'
import { Tensor, numbersOf, sameShape } from '../../tensor/index.ts'
import type { SizedResults } from './sizes.ts'
import type { ArgStep, Step } from './traceTree.ts'

export const fakesOf = (spec: ResultSpec): readonly Tensor[] => ('shape' in spec ? [spec] : spec).map((one) => Tensor.fake(numbersOf(one)))

/** The offset of the first argument. */
export const offsetOf = ([source]: readonly Arg[]): number => (source instanceof Tensor ? source.offset : 0)

/** Whether sizes are among arguments. */
export const hasSizes = (args: readonly ArgStep[]): boolean =>
  args.some((arg) => (arg.kind === 'list' ? hasSizes(arg.items) : arg.kind === 'scalar' && arg.number === 'size'))

/** Whether a tensor among arguments has another layout than when it was recorded: `differs` says so by slot. */
export function anyDiffers(args: readonly ArgStep[], differs: readonly (boolean | undefined)[]): boolean {
  for (const arg of args) {
    if (arg.kind === 'list') {
      if (anyDiffers(arg.items, differs)) return true
    } else if (arg.kind !== 'const' && differs[arg.slot] === true) return true
  }
  return false
}

/** What a step gives for the present arguments: the recorded tensors themselves, where nothing differs. Throws what the operator's checks throw. */
export function resultsFor(step: Step, args: readonly Arg[]): SizedResults {
  const results = fakesOf(withoutModes(() => step.operator.meta(...args)))
  const isAsRecorded = results.length === step.results.length && results.every((one, i) => haveOneLayout(one, step.results[i]))
  return { results: isAsRecorded ? step.results : results, offset: offsetOf(args), isAsRecorded, fits: null }
}

const haveOneLayout = (a: Tensor, b: Tensor | undefined): boolean =>
  b !== undefined && a.dtype === b.dtype && a.offset === b.offset && sameShape(a.sizes, b.sizes) && sameShape(a.steps, b.steps)

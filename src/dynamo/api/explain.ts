// explain: the graphs of a function, and why they end where they do.
import { withComputing } from '../../kernels/index.ts'
import type { Module } from '../../module/index.ts'
import { checkCount, checkOptions } from '../../protocol/index.ts'
import type { Callable } from '../call/compiledFunction.ts'
import { ExplainOutput } from '../reports/explainOutput.ts'
import { newCompiled } from './compile.ts'
import type { CompileOptions } from './compile.ts'
import { checkComputeOptions, computingUnder } from './computeOptions.ts'

/** Options of {@link explain}. */
export interface ExplainOptions extends Pick<CompileOptions, 'options'> {
  /** The backend; with `'inductor'` the report lists the kernels, too, and what computed each. Default 'eager'. */
  readonly backend?: NonNullable<CompileOptions['backend']>
}

/** explain(fn)(...args) captures the function once, from scratch, and reports its graphs and breaks. PyTorch's torch._dynamo.explain. */
export function explain(fn: Callable | Module, options: ExplainOptions = {}): (...args: readonly unknown[]) => ExplainOutput {
  checkCount('explain', arguments, 2)
  checkOptions('explain', options, { backend: true, options: true })
  const { backend = 'eager', options: computing = {} } = options
  checkComputeOptions(computing)
  return (...args) => {
    const compiled = newCompiled(fn, { backend })
    withComputing(computingUnder(computing), () => compiled.call(undefined, args))
    const { records } = compiled.reports
    return new ExplainOutput(
      compiled.reports.graphs(),
      compiled.reports.breaks,
      records.map((r) => r.milliseconds),
      records.flatMap((r) => r.kernels),
    )
  }
}

// explain: the graphs of a function, and why they end where they do.
import type { Module } from '../../module/index.ts'
import { checkCount } from '../../protocol/index.ts'
import type { Callable } from '../call/compiledFunction.ts'
import { ExplainOutput } from '../reports/explainOutput.ts'
import { newCompiled } from './compile.ts'

/** explain(fn)(...args) captures the function once, from scratch, and reports its graphs and breaks. PyTorch's torch._dynamo.explain. */
export function explain(fn: Callable | Module): (...args: readonly unknown[]) => ExplainOutput {
  checkCount('explain', arguments, 1)
  return (...args) => {
    const compiled = newCompiled(fn, { backend: 'eager' })
    compiled.call(undefined, args)
    return new ExplainOutput(
      compiled.reports.graphs(),
      compiled.reports.breaks,
      compiled.reports.records.map((r) => r.milliseconds),
    )
  }
}

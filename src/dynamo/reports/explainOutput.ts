// The report of explain: the graphs of a function, its graph breaks and their reasons.
import type { KernelSummary } from '../../aot/index.ts'
import type { GraphModule } from '../../fx/index.ts'
import type { BreakReason } from './breaks.ts'

/** The report of `explain(fn)(...args)`; PyTorch's ExplainOutput. */
export class ExplainOutput {
  readonly graphs: readonly GraphModule[]
  readonly breakReasons: readonly BreakReason[]
  /** Milliseconds of each backend call. */
  readonly compileTimes: readonly number[]
  /** The kernels of the graphs, and what computed them; none unless a backend that reports them was given. */
  readonly kernels: readonly KernelSummary[]

  constructor(
    graphs: readonly GraphModule[],
    breakReasons: readonly BreakReason[],
    compileTimes: readonly number[],
    kernels: readonly KernelSummary[] = [],
  ) {
    this.graphs = graphs
    this.breakReasons = breakReasons
    this.compileTimes = compileTimes
    this.kernels = kernels
  }

  get graphCount(): number {
    return this.graphs.length
  }

  get graphBreakCount(): number {
    return Math.max(0, this.graphs.length - 1)
  }

  /** Operator names, graph by graph. */
  get opsPerGraph(): readonly (readonly string[])[] {
    return this.graphs.map((gm) =>
      [...gm.graph.nodes].filter((n) => n.op === 'call_function').map((n) => /target=([^\]]*)/.exec(n.formatNode())?.[1] ?? n.name),
    )
  }

  get opCount(): number {
    return this.opsPerGraph.reduce((n, ops) => n + ops.length, 0)
  }

  toString(): string {
    const { opsPerGraph: ops, graphBreakCount: breakCount, compileTimes } = this
    const text = explainText({
      ops,
      breakCount,
      breaks: this.breakReasons.map(({ reason, userStack }) => ({ reason, stack: String(userStack) })),
      compileTimes,
    })
    return this.kernels.length === 0 ? text : [text, 'Kernels:', ...this.kernels.map(kernelText)].join('\n')
  }
}

/** A kernel, its operators, and what computed it. */
function kernelText({ name, ops, computedBy }: KernelSummary): string {
  const by = computedBy?.()
  const engine = by === undefined ? 'eager' : by.threads === 1 ? by.engine : `${by.engine}, ${by.threads} threads`
  return `  ${name} (${engine}): ${ops.join(' ')}`
}

/** What {@link explainText} prints. */
export interface ExplainFacts {
  /** The operators of each graph. */
  readonly ops: readonly (readonly string[])[]
  readonly breakCount: number
  /** Stacks are in PyTorch's form. */
  readonly breaks: readonly { readonly reason: string; readonly stack: string }[]
  readonly compileTimes: readonly number[]
}

/** The graphs of a function and its graph breaks, as torch._dynamo.explain prints them. */
export function explainText({ ops, breakCount, breaks, compileTimes }: ExplainFacts): string {
  const opCount = ops.reduce((n, own) => n + own.length, 0)
  return [
    `Graph Count: ${ops.length}`,
    `Graph Break Count: ${breakCount}`,
    `Op Count: ${opCount}`,
    'Break Reasons:',
    ...breaks.flatMap(({ reason, stack }, i) => [
      `  Break Reason ${i + 1}:`,
      `    Reason: ${reason}`,
      '    User Stack:',
      ...stack
        .trimEnd()
        .split('\n')
        .map((line) => `    ${line}`),
    ]),
    'Ops per Graph:',
    ...ops.flatMap((own, i) => [`  Ops ${i + 1}:`, ...own.map((op) => `    ${op}`)]),
    'Compile Times (ms):',
    ...compileTimes.map((t, i) => `  ${i + 1}: ${t.toFixed(2)}`),
  ].join('\n')
}

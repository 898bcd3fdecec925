// The report of explain: the graphs of a function, its graph breaks and their reasons.
import type { GraphModule } from '../fx/index.ts'
import type { CapturedStack } from '../provenance/index.ts'

/** Why a graph ended before the function did. */
export interface BreakReason {
  /** Which of the causes it was: `read`, `disabled`, `graphBreak`, … */
  readonly code: string
  readonly reason: string
  readonly userStack: CapturedStack
}

/** The report of `explain(fn)(...args)`; PyTorch's ExplainOutput. */
export class ExplainOutput {
  readonly graphs: readonly GraphModule[]
  readonly breakReasons: readonly BreakReason[]
  /** Milliseconds of each backend call. */
  readonly compileTimes: readonly number[]

  constructor(graphs: readonly GraphModule[], breakReasons: readonly BreakReason[], compileTimes: readonly number[]) {
    this.graphs = graphs
    this.breakReasons = breakReasons
    this.compileTimes = compileTimes
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
    const lines = [`Graph Count: ${this.graphCount}`, `Graph Break Count: ${this.graphBreakCount}`, `Op Count: ${this.opCount}`, 'Break Reasons:']
    this.breakReasons.forEach(({ reason, userStack }, i) => {
      lines.push(
        `  Break Reason ${i + 1}:`,
        `    Reason: ${reason}`,
        '    User Stack:',
        ...String(userStack)
          .trimEnd()
          .split('\n')
          .map((l) => `    ${l}`),
      )
    })
    lines.push('Ops per Graph:')
    this.opsPerGraph.forEach((ops, i) => lines.push(`  Ops ${i + 1}:`, ...ops.map((op) => `    ${op}`)))
    lines.push('Compile Times (ms):', ...this.compileTimes.map((t, i) => `  ${i + 1}: ${t.toFixed(2)}`))
    return lines.join('\n')
  }
}

// Compiled graphs as compile and aot pass them on: functions that may carry reports.
import type { GraphModule } from '../../fx/index.ts'
import type { ComputedBy } from '../../kernels/index.ts'

/** A kernel of a compiled graph, as inductor reports it. */
export interface KernelSummary {
  readonly name: string
  /** Operators in it, in order. */
  readonly ops: readonly string[]
  /** Its loops as text. */
  readonly text: string
  readonly kind: string
  /** What has computed its last call; absent for an eager kernel. */
  readonly computedBy?: () => ComputedBy
}

/** A compiled graph: from one value per placeholder to one per output. */
export interface CompiledCode {
  (...inputs: readonly unknown[]): readonly unknown[]
  readonly kernels?: readonly KernelSummary[]
  /** Positions of outputs that it has already written into the inputs that they overwrite. */
  readonly writtenInPlace?: ReadonlySet<number>
  /** Whether it does what the program would: it calls its operators one by one, with the same bits. */
  readonly isProgram?: () => boolean
}

/** The valid entries of `gm.meta.writeBacks`: from positions of outputs to those of the inputs that the caller overwrites with them. Whoever has taken them away wants inputs to stay as they are. */
export function writeBacksOf(gm: GraphModule): ReadonlyMap<number, number> {
  const given: unknown = gm.meta['writeBacks']
  const writeBacks = new Map<number, number>()
  if (given instanceof Map)
    for (const [output, input] of given) if (typeof output === 'number' && typeof input === 'number') writeBacks.set(output, input)
  return writeBacks
}

/** Compiles one graph; inputs may be fake. */
export type CompileGraph = (gm: GraphModule, exampleInputs: readonly unknown[]) => CompiledCode

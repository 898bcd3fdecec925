// What compareBackends found: errors by node and backend, culprits, a table, and the way to a smallest repro.
import type { GraphModule, Node } from '../../fx/index.ts'
import type { DType } from '../../kernels/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { valueText } from '../../protocol/index.ts'
import { formatShape } from '../../tensor/index.ts'
import { targetText } from '../numerics/values.ts'
import { table } from '../table.ts'
import type { Candidate } from './backends.ts'
import { minifyDifference } from './minifyDifference.ts'
import type { MinifiedDifference, MinifyDifferenceOptions } from './minifyDifference.ts'
import type { Measured } from './measure.ts'
import type { ReferenceKind } from './reference.ts'

/** One node of the graph. */
export interface NodeRow {
  readonly node: Node
  readonly dtype: DType
  readonly shape: readonly number[]
  /** By backend: the node alone, on the inputs of the reference. */
  readonly alone: Map<string, Measured>
  /** By backend: the node in the compiled graph, on the values that the backend computed before it. */
  readonly inGraph: Map<string, Measured>
}

/** Where a backend differs first. */
export interface Culprit {
  /** One node, or a block of nodes that differ only together. */
  readonly nodes: readonly Node[]
  readonly error: number
  /** Which run showed it. */
  readonly found: 'alone' | 'in the graph' | 'only where it is fused'
}

/** What a comparison is made of. */
export interface ComparisonParts {
  readonly gm: GraphModule
  readonly inputs: readonly unknown[]
  readonly rows: readonly NodeRow[]
  readonly culprits: ReadonlyMap<string, Culprit | null>
  readonly notes: readonly string[]
  readonly backends: readonly Candidate[]
  readonly tol: number
  readonly reference: ReferenceKind
  readonly functional: boolean
}

/** The result of `compareBackends`. `String(result)` is the table. */
export class BackendComparison {
  /** The graph that was compared: a copy, in functional form if the original writes to its values. */
  readonly gm: GraphModule
  /** One per placeholder. */
  readonly inputs: readonly unknown[]
  /** Whether `gm` is the functional form. */
  readonly functional: boolean
  /** In the order of the graph. */
  readonly rows: readonly NodeRow[]
  /** The first node that differs, by backend; null if none does. */
  readonly culprits: ReadonlyMap<string, Culprit | null>
  /** What could not be compared. */
  readonly notes: readonly string[]
  readonly #parts: ComparisonParts

  constructor(parts: ComparisonParts) {
    this.#parts = parts
    this.gm = parts.gm
    this.inputs = parts.inputs
    this.functional = parts.functional
    this.rows = parts.rows
    this.culprits = parts.culprits
    this.notes = parts.notes
  }

  /** The culprit of the first backend that has one. */
  get first(): (Culprit & { readonly backend: string }) | null {
    for (const [backend, culprit] of this.culprits) if (culprit !== null) return { ...culprit, backend }
    return null
  }

  /**
   * Shrinks the graph, and its inputs, while the results of the backend differ from the reference, and writes a folder with the smallest one if `directory` is given.
   * With `against`, another backend of the comparison has to stay right, and the repro names both.
   *
   *     const small = await result.minify('inductor', { against: 'eager', directory: 'repro' })
   *
   * Throws ArgumentError for a backend that was not compared, or that no script can import, MinifierError if the outputs of the graph do not differ.
   */
  async minify(backend: string, options: MinifyDifferenceOptions = {}): Promise<MinifiedDifference> {
    const { against, ...rest } = options
    const { gm, inputs, tol, reference } = this.#parts
    const other = against === undefined ? null : this.#compared(against)
    return minifyDifference(gm, inputs, this.#compared(backend), { tol, reference, ...rest, against: other })
  }

  /** That nothing differs says less where nodes could not be run. */
  #withoutCulprit(backend: string): string {
    const failed = this.rows.filter((row) => row.alone.get(backend)?.status === 'failed').length
    if (failed === 0) return 'no node differs'
    return failed === this.rows.length ? 'no node could be run' : `no node differs, and ${failed} of ${this.rows.length} could not be run`
  }

  #compared(backend: string): Candidate {
    const { backends } = this.#parts
    const one = backends.find(({ name }) => name === backend)
    if (one !== undefined) return one
    throw new ArgumentError(`minify: ${valueText(backend)} was not compared; it was ${backends.map(({ name }) => `'${name}'`).join(', ')}.`)
  }

  /** Errors by node, with a star where they exceed the tolerance, and the culprits. */
  toString(): string {
    const names = [...this.culprits.keys()]
    const header = ['node', 'target', 'value', ...names]
    const body = this.rows.map((row) => [
      row.node.name,
      targetText(row.node),
      `${row.dtype} ${formatShape(row.shape)}`,
      ...names.map((name) => cell(row, name)),
    ])
    const ends = [...this.culprits].map(([name, culprit]) => `${name}: ${culprit === null ? this.#withoutCulprit(name) : culpritText(culprit)}`)
    return [table(header, body), '', ...ends, ...this.notes].join('\n')
  }
}

function cell(row: NodeRow, backend: string): string {
  const [alone, inGraph] = [row.alone.get(backend), row.inGraph.get(backend)]
  const shown = inGraph !== undefined && (inGraph.status === 'differs' || inGraph.error > (alone?.error ?? 0)) ? inGraph : alone
  if (shown === undefined) return ''
  if (shown.status === 'failed' || shown.status === 'skipped') return shown.status
  return `${shown.error === 0 ? '0' : shown.error.toExponential(1)}${shown.status === 'differs' ? ' *' : ''}`
}

function culpritText({ nodes, error, found }: Culprit): string {
  const names = nodes.map((node) => `'${node.name}'`).join(', ')
  const size = Number.isFinite(error) ? `error ${error.toExponential(1)}` : 'another shape, dtype, NaN or infinity'
  return `${names} ${nodes.length === 1 ? 'differs' : 'differ'} (${size}; found ${found})`
}

// What compareBackends found: errors by node and backend, culprits, a table, and the way to a smallest repro.
import type { GraphModule } from '../../fx/index.ts'
import { ArgumentError, present } from '../../errors/index.ts'
import { valueText } from '../../protocol/index.ts'
import { formatShape } from '../../tensor/index.ts'
import { targetText } from '../numerics/visitValues.ts'
import { table } from '../common/table.ts'
import type { Candidate } from './backends.ts'
import { minifyDifference } from './minifyDifference.ts'
import type { MinifiedDifference, MinifyDifferenceOptions } from './minifyDifference.ts'
import type { Compared } from './comparing.ts'
import type { Culprit, NodeRow, Status } from './culprit.ts'
import type { GradientRow } from './gradients.ts'
import type { Failing } from './compareJoint.ts'
import type { Measured } from './measure.ts'
import type { WorstInput } from './worstInput.ts'

/** What a comparison is made of. */
export interface ComparisonParts {
  /** The graph and its inputs, for each set of inputs. */
  readonly sets: readonly Compared[]
  readonly culprits: ReadonlyMap<string, Culprit | null>
  readonly notes: readonly string[]
  readonly backends: readonly Candidate[]
  readonly gradients?: readonly GradientRow[]
  /** By backend, the graph that shows its culprit, where no comparison of `sets` has it. */
  readonly failing?: ReadonlyMap<string, Failing>
  readonly worst?: ReadonlyMap<string, WorstInput>
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
  /** Why a backend is not right, by backend; null if it is right. */
  readonly culprits: ReadonlyMap<string, Culprit | null>
  /** What could not be compared. */
  readonly notes: readonly string[]
  /** With the option `gradients`, each gradient by name; otherwise empty. */
  readonly gradients: readonly GradientRow[]
  /** With the option `worstInput`, the inputs with the largest error that were found, by backend; none for a backend that cannot be run or judged. */
  readonly worst: ReadonlyMap<string, WorstInput>
  readonly #parts: ComparisonParts

  constructor(parts: ComparisonParts) {
    this.#parts = parts
    const first = present(parts.sets[0], 'the inputs of a comparison')
    this.gm = first.gm
    this.inputs = first.inputs
    this.functional = first.functional
    this.rows = first.rows
    this.culprits = parts.culprits
    this.notes = parts.notes
    this.gradients = parts.gradients ?? []
    this.worst = parts.worst ?? new Map()
  }

  /** What is said of each backend. Only `'right'` says that its results are those of the reference, in every run. */
  get statuses(): ReadonlyMap<string, Status> {
    return new Map([...this.culprits].map(([name, culprit]) => [name, culprit?.kind ?? 'right']))
  }

  /** The culprit of the first backend that has one. */
  get first(): (Culprit & { readonly backend: string }) | null {
    for (const [backend, culprit] of this.culprits) if (culprit !== null) return { ...culprit, backend }
    return null
  }

  /**
   * Shrinks the graph, and its inputs, while the backend fails in the way that its culprit says (wrong numbers, an error, a rule), and writes a folder with the smallest one if `directory` is given.
   * With `against`, another backend of the comparison has to stay right, and the repro names both.
   *
   *     const small = await result.minify('inductor', { against: 'eager', directory: 'repro' })
   *
   * Throws ArgumentError for a backend that was not compared, or that no script can import, MinifierError if the outputs of the graph do not differ.
   */
  async minify(backend: string, options: MinifyDifferenceOptions = {}): Promise<MinifiedDifference> {
    const { against, ...rest } = options
    const { sets, failing } = this.#parts
    const culprit = this.culprits.get(backend) ?? null
    const compared = present(sets[culprit?.set ?? 0], 'the inputs of the culprit')
    const { tol, reference } = compared
    const { gm, inputs } = failing?.get(backend) ?? compared
    const other = against === undefined ? null : this.#compared(against)
    return minifyDifference(gm, inputs, this.#compared(backend), { tol, reference, ...rest, against: other, culprit })
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
    const ends = [...this.culprits].map(([name, culprit]) => `${name}: ${culprit === null ? 'no node differs' : culpritText(culprit)}`)
    const gradients = this.gradients.map(({ name, dtype, shape, measured }) => [
      name,
      `${dtype} ${formatShape(shape)}`,
      ...names.map((backend) => cellText(measured.get(backend))),
    ])
    const second = gradients.length === 0 ? [] : ['', table(['gradient', 'value', ...names], gradients)]
    const worst = [...this.worst].map(([name, input]) => worstText(name, input))
    return [table(header, body), ...second, '', ...ends, ...worst, ...this.notes].join('\n')
  }
}

function cell(row: NodeRow, backend: string): string {
  const [alone, inGraph] = [row.alone.get(backend), row.inGraph.get(backend)]
  const shown =
    inGraph !== undefined && (inGraph.status === 'differs' || inGraph.status === 'flaky' || inGraph.error > (alone?.error ?? 0)) ? inGraph : alone
  return cellText(shown)
}

function cellText(shown: Measured | undefined): string {
  if (shown === undefined) return ''
  if (shown.status === 'failed' || shown.status === 'skipped' || shown.status === 'flaky') return shown.status
  return `${shown.error === 0 ? '0' : shown.error.toExponential(1)}${shown.status === 'differs' ? ' *' : ''}`
}

/** The tensors of a search in a line. */
function worstText(backend: string, { names, error, status }: WorstInput): string {
  const which = names.length === 0 ? 'the inputs that were given' : `other values of ${names.map((name) => `'${name}'`).join(', ')}`
  return `${backend}: the worst inputs found are ${which} (${status}, error ${Number.isFinite(error) ? error.toExponential(1) : String(error)})`
}

/** How many percent. */
const percent = (rate: number): string => `${Math.round(rate * 100)}%`

function culpritText({ kind, nodes, error, found, rule, rate, reason, half, forward, set }: Culprit): string {
  const names = nodes.map((node) => `'${node.name}'`).join(', ')
  const where = `found ${found}${half === 'forward' ? '' : forward === null ? ', in the backward' : `, in the backward of '${forward}'`}${set === 0 ? '' : `, inputs ${set}`}`
  const size = Number.isFinite(error) ? `error ${error.toExponential(1)}` : (reason ?? 'another NaN or infinity')
  if (kind === 'failed') return `${names} could not be run (${reason ?? ''}; ${where})`
  if (kind === 'not judged') return `not judged: ${names} cannot be compared, since ${reason ?? ''}`
  if (kind === 'flaky') return `flaky at ${names}: wrong in ${percent(rate)} of the runs (${size}; ${where})`
  if (rule !== null) return `${names} ${rule} (${reason ?? ''}; ${where})`
  return `${names} ${nodes.length === 1 ? 'differs' : 'differ'} (${size}; ${where})`
}

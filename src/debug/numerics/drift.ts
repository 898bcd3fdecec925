// drift: how far the values of two runs are apart, node by node; and gradients of two models.
import type { GraphModule } from '../../fx/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { Module } from '../../module/index.ts'
import { checkArgument, checkArray, checkCallable, checkCount, checkOptions, checkPositive, isObject } from '../../protocol/index.ts'
import { formatShape, sameShape, Tensor } from '../../tensor/index.ts'
import { errorOf, toleranceOf } from '../closeness/closeness.ts'
import { table } from '../common/table.ts'
import { contained } from '../runs/isolated.ts'
import { lossOf } from '../runs/loss.ts'
import { moduleOf, observe, renamed } from '../runs/observe.ts'
import type { Like, Runnable, Seen, Setup } from '../runs/observe.ts'
import { judgedWithRuns } from '../closeness/rounding.ts'
import { visitValues } from './visitValues.ts'

/** A graph and what it runs on. */
export interface GraphRun {
  readonly gm: GraphModule
  readonly inputs: readonly unknown[]
}

/** Options of {@link drift} and {@link compareGradients}. */
export interface DriftOptions {
  /** The largest error that counts as equal, absolute for values up to 1 and relative above. Default 1e-4. */
  readonly tol?: number
}

/** Two values of one name. */
export interface DriftRow {
  readonly name: string
  /** Infinity if only one of them is NaN or infinite somewhere, or their shapes differ. */
  readonly error: number
  readonly differs: boolean
  /** What else is different, e.g. the shapes. */
  readonly reason: string | null
}

/** The values of two runs, compared. `String(drift)` is a table. */
export class Drift {
  /** In the order of the first run. */
  readonly rows: readonly DriftRow[]
  /** Names that only one run has. */
  readonly onlyBefore: readonly string[]
  readonly onlyAfter: readonly string[]

  constructor(rows: readonly DriftRow[], onlyBefore: readonly string[], onlyAfter: readonly string[]) {
    this.rows = rows
    this.onlyBefore = onlyBefore
    this.onlyAfter = onlyAfter
  }

  /** The first value that differs; null if none does. */
  get first(): DriftRow | null {
    return this.rows.find((row) => row.differs) ?? null
  }

  toString(): string {
    const error = (row: DriftRow): string => (row.error === 0 ? '0' : row.error.toExponential(1)) + (row.differs ? ' *' : '')
    const only = (names: readonly string[], run: string): string[] => (names.length === 0 ? [] : [`only in the ${run}: ${names.join(', ')}`])
    return [
      table(
        ['name', 'error', ''],
        this.rows.map((row) => [row.name, error(row), row.reason ?? '']),
      ),
      ...only(this.onlyBefore, 'first'),
      ...only(this.onlyAfter, 'second'),
    ].join('\n')
  }
}

function valuesOf({ gm, inputs }: GraphRun): Map<string, Tensor> {
  const values = new Map<string, Tensor>()
  visitValues('drift', gm, inputs, (node, tensors) => {
    for (const [i, tensor] of tensors.entries()) values.set(tensors.length === 1 ? node.name : `${node.name}[${i}]`, tensor.clone())
  })
  return values
}

type Values = ReadonlyMap<string, Tensor>

/** `runs`: the first run again, moved by rounding. */
function compared(before: Values, after: Values, tol: number, runs: readonly Values[] = []): Drift {
  const rows = [...before].flatMap(([name, value]): DriftRow[] => {
    const other = after.get(name)
    if (other === undefined) return []
    if (!sameShape(value.shape, other.shape))
      return [{ name, error: Infinity, differs: true, reason: `shape ${formatShape(value.shape)} and ${formatShape(other.shape)}` }]
    const error = errorOf(value, other, tol, { others: runs.flatMap((run) => run.get(name) ?? []) })
    const reason = value.dtype === other.dtype ? null : `${value.dtype} and ${other.dtype}`
    return [{ name, error, differs: !(error <= Math.max(toleranceOf(value.dtype, tol), toleranceOf(other.dtype, tol))), reason }]
  })
  const missing = (from: Values, names: Values): string[] => [...from.keys()].filter((name) => !names.has(name))
  return new Drift(rows, missing(before, after), missing(after, before))
}

function checkTolerance(where: string, options: DriftOptions): number {
  checkOptions(where, options, { tol: 'number' })
  const { tol = 1e-4 } = options
  checkPositive(where, 'options.tol', tol)
  return tol
}

/**
 * Compares the values of two runs by the names of their nodes: of a graph before and after a pass, or of one graph on two inputs. Nodes that only one graph has are
 * listed.
 *
 *     const changed = drift({ gm: before, inputs }, { gm: after, inputs })
 *     console.log(changed.first?.name)
 *
 * @throws ArgumentError if a run has no GraphModule, or for a bad option.
 */
export function drift(before: GraphRun, after: GraphRun, options: DriftOptions = {}): Drift {
  checkCount('drift', arguments, 3)
  const tol = checkTolerance('drift', options)
  for (const [name, run] of Object.entries({ before, after })) checkArgument(isObject(run), 'drift', name, 'an object { gm, inputs }', run)
  return compared(valuesOf(before), valuesOf(after), tol)
}

/**
 * Runs two models forward and backward, from a weighted mean of what they return, and compares the loss, gradients of parameters (by name) and gradients of inputs
 * (`input 0`). `before` and `after` are modules, compiled ones, or functions of the inputs: the parameters of a function are those that its outputs depend on, named
 * after the other model's where they are the same or hold the same values. Neither the models nor the inputs are changed, and both draw the same random numbers. What rounding does to a module
 * `before` is no difference.
 *
 *     const result = compareGradients(model, compile(model), [x])
 *
 * @throws ArgumentError for a bad option, or a model that cannot be called.
 */
export function compareGradients(before: Runnable, after: Runnable, inputs: readonly unknown[], options: DriftOptions = {}): Drift {
  checkCount('compareGradients', arguments, 4)
  const tol = checkTolerance('compareGradients', options)
  checkCallable('compareGradients', 'before', before)
  checkCallable('compareGradients', 'after', after)
  checkArray('compareGradients', 'inputs', inputs)
  const of = (model: Runnable, like: Like, more: Partial<Setup> = {}): Seen =>
    contained((trace) => observe(model, inputs, { onlyFwd: false, lossOf, like, ...more }, trace))
  const first = of(before, { module: moduleOf(after), buffers: new Map() })
  const second = of(after, { module: moduleOf(before), parameters: first.own, buffers: new Map() })
  const [wanted, got] = [gradientsOf(first), gradientsOf(renamed(second, first).seen)]
  const moved = (seed: number): Values | null => {
    try {
      return gradientsOf(of(before, { module: moduleOf(after), buffers: new Map() }, { moved: seed }))
    } catch {
      return null
    }
  }
  if (!(before instanceof Module)) return compared(wanted, got, tol)
  return judgedWithRuns(
    moved,
    (runs) => compared(wanted, got, tol, runs),
    (result) => result.first === null,
  )
}

function gradientsOf({ loss, gradients, inputGradients }: Seen): Map<string, Tensor> {
  if (loss === null)
    throw new ArgumentError('compareGradients: the output of the model requires no gradient; set requiresGrad of a parameter or an input.')
  const values = new Map<string, Tensor>([['loss', loss.detach()], ...gradients])
  for (const [name, grad] of inputGradients) if (grad !== null) values.set(name, grad)
  return values
}

// What a flight recorder found, as data and as text.
import { TensorfxError } from '../../errors/index.ts'
import type { CapturedStack } from '../../provenance/index.ts'
import { table } from '../table.ts'
import type { Given, Phase } from './places.ts'
import type { StateKind } from './state.ts'
import type { Trigger } from './trouble.ts'

/** A bad element, where it first was. */
interface FirstElement {
  /** The index of the element, and the element: NaN or an infinity. */
  readonly index: readonly number[]
  readonly element: number
}

/** An operator whose arguments were good and whose result is not. */
export interface OperatorOrigin extends FirstElement {
  readonly kind: 'operator'
  /** The part of the step that computed it. */
  readonly phase: Phase
  /** The operator that the program called. In the backward, the one whose derivative it is. */
  readonly operator: string
  /** The operator that computed the element, which in the backward is a part of the derivative. */
  readonly computedBy: string
  /** PyTorch's name of the derivative (`LogBackward0`); null in forward and optimizer. */
  readonly gradFn: string | null
  /** Which result of the operator it is. */
  readonly output: number
  /** What the arguments had at that place. */
  readonly given: readonly Given[]
  /** Where the program called the operator. */
  readonly stack: CapturedStack | undefined
  /** The parameter, buffer or state that it was first written to; null if it was written to none. */
  readonly reached: string | null
}

/** A tensor that was bad before the step: a weight, a batch. No operator of the recorded steps made it so. */
export interface TensorOrigin extends FirstElement {
  readonly kind: StateKind
  readonly name: string
  /** Whether it was still good when an earlier step started: then the program wrote to it outside of the recorded steps. */
  readonly wasGood: boolean
}

/** Compiled code that gives what the graph, run on eager kernels, does not. */
export interface CompilerOrigin extends FirstElement {
  readonly kind: 'compiled code'
  readonly backend: string
  /** The name of the graph. */
  readonly graph: string
  /** The first node whose result is bad when it is compiled; null if none is bad alone. */
  readonly node: string | null
  readonly operator: string | null
  readonly stack: CapturedStack | undefined
  readonly output: number
}

/** The loss jumped; no element is bad. */
export interface JumpOrigin {
  readonly kind: 'jump'
  /** The weights by how unusual the update before the step was. */
  readonly changes: readonly Change[]
  /** The inputs with their largest magnitudes, and the median of the earlier steps'. */
  readonly inputs: readonly { readonly name: string; readonly largest: number; readonly usual: number | null }[]
}

/** One weight around a jump. Norms are Euclidean. */
export interface Change {
  readonly name: string
  /** The norm of the last update before the step, relative to that of the weight, and the median of the earlier ones; null if they are not recorded. */
  readonly update: number | null
  readonly usualUpdate: number | null
  /** The norm of the gradient after the step; null if there is none. */
  readonly gradient: number | null
  /** The median of the norms of the gradients when the earlier steps started. */
  readonly usualGradient: number | null
}

/** The step gave something else when it was run again, so that nothing can be said. */
export interface UnknownOrigin {
  readonly kind: 'unknown'
  readonly why: string
}

export type FlightOrigin = OperatorOrigin | TensorOrigin | CompilerOrigin | JumpOrigin | UnknownOrigin

/** What a {@link FlightRecorder} found. `String(report)` is a text for people. */
export class FlightReport {
  /** The step that went wrong; the first call of the recorder is step 0. */
  readonly step: number
  /** The step after which it was noticed. */
  readonly noticed: number
  readonly trigger: Trigger
  readonly origin: FlightOrigin
  /** Whether the step ran compiled graphs, and eager kernels give the same; null if it ran none. */
  readonly compiled: 'eager has it too' | 'only the compiled code' | null
  /** The losses of the recorded steps, the last one included. */
  readonly losses: readonly (number | null)[]
  /** The script that replays the step: its path and its text. Null if it could not be written; `notes` then say why. */
  readonly file: string | null
  readonly script: string | null
  readonly notes: readonly string[]

  /** @internal */
  constructor(fields: Omit<FlightReport, 'toString'>) {
    this.step = fields.step
    this.noticed = fields.noticed
    this.trigger = fields.trigger
    this.origin = fields.origin
    this.compiled = fields.compiled
    this.losses = fields.losses
    this.file = fields.file
    this.script = fields.script
    this.notes = fields.notes
  }

  toString(): string {
    const { step, noticed, trigger, origin, compiled, file, notes } = this
    return [
      `Step ${step} went wrong: ${triggerText(trigger)}${noticed === step ? '' : `, noticed after step ${noticed}`}.`,
      ...originLines(origin, step),
      ...(compiled === null || origin.kind === 'compiled code' ? [] : ['The step runs compiled graphs; eager kernels give the same.']),
      ...notes,
      ...(file === null ? [] : [`To replay the step: node ${file}`]),
    ].join('\n')
  }
}

const at = (index: readonly number[]): string => (index.length === 0 ? '' : ` at [${index.join(', ')}]`)

function triggerText({ kind, name, value, index }: Trigger): string {
  if (kind === 'jump') return `the loss jumped to ${value}`
  if (kind === 'loss') return `the loss is ${value}`
  return `${subject(kind, name ?? '')} is ${value}${at(index)}`
}

const subject = (kind: StateKind, name: string): string =>
  kind === 'gradient'
    ? `the gradient of ${name}`
    : kind === 'input'
      ? name
      : kind === 'optimizer state'
        ? `the optimizer state ${name}`
        : `${kind} ${name}`

const number = (value: number): string => String(Number(value.toPrecision(6)))

function originLines(origin: FlightOrigin, step: number): string[] {
  switch (origin.kind) {
    case 'operator': {
      const { phase, operator, computedBy, gradFn, given, stack, index, element, reached } = origin
      const what =
        phase === 'backward'
          ? gradFn === null
            ? `the sum of gradients (${computedBy}), in the backward`
            : `${gradFn}, the derivative of ${operator}${computedBy === operator ? '' : ` (in its ${computedBy})`}`
          : `${operator}, in the ${phase}`
      const place = phase === 'backward' ? 'The forward call' : 'The call'
      return [
        `Origin: ${what}: its result is ${element}${at(index)}, and its arguments are good.`,
        ...given.map(({ argument, index: there, element: value }) =>
          there === null ? `  ${argument}: up to ${number(value)} in magnitude` : `  ${argument}${at(there)}: ${number(value)}`,
        ),
        ...(reached === null || phase !== 'optimizer' ? [] : [`  It was first written to ${reached}.`]),
        ...(stack === undefined || stack.frames.length === 0 ? [] : [`${place}:`, String(stack).trimEnd()]),
      ]
    }
    case 'compiled code': {
      const { backend, graph, node, operator, index, element, stack } = origin
      return [
        `Origin: code that the backend '${backend}' compiled for ${graph}: a result is ${element}${at(index)}, and eager kernels give a good one.`,
        ...(node === null ? [] : [`  The first node that is bad when it is compiled: ${node} (${operator}).`]),
        ...(stack === undefined || stack.frames.length === 0 ? [] : ['The call:', String(stack).trimEnd()]),
      ]
    }
    case 'jump': {
      const cell = (value: number | null): string => (value === null ? '-' : value.toExponential(1))
      const inputs = origin.inputs.map(
        ({ name, largest, usual }) => `  ${name}: up to ${number(largest)} in magnitude${usual === null ? '' : `, usually ${number(usual)}`}`,
      )
      return [
        'No element is NaN or infinite. The weights by how unusual the update before this step was, relative to their norms:',
        table(
          ['weight', 'update', 'usual', 'gradient', 'usual'],
          origin.changes
            .slice(0, 10)
            .map(({ name, update, usualUpdate, gradient, usualGradient }) => [name, ...[update, usualUpdate, gradient, usualGradient].map(cell)]),
        ),
        ...(inputs.length === 0 ? [] : ['The inputs:', ...inputs]),
      ]
    }
    case 'unknown':
      return [`The origin is not known: ${origin.why}`]
    default: {
      const { kind, name, index, element, wasGood } = origin
      const when =
        kind === 'input'
          ? 'when the step started'
          : wasGood
            ? `when step ${step} started, and no recorded step made it so`
            : 'before the first recorded step'
      return [`Origin: ${subject(kind, name)} was ${element}${at(index)} ${when}. No operator is at fault.`]
    }
  }
}

/**
 * Training went wrong; `report` says where. Thrown by a `flightRecorder`.
 *
 * Fix: the message names the step, and the operator or the tensor where the first bad element was. Its script replays the step.
 */
export class TrainingError extends TensorfxError {
  /** Null for a replayed step. */
  readonly report: FlightReport | null

  constructor(message: string, report: FlightReport | null = null) {
    super('TFX_TRAINING', message)
    this.report = report
  }
}

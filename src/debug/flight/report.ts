// What a flight recorder found, as data; reportText.ts has the sentences.
import { TensorfxError } from '../../errors/index.ts'
import type { FlightOrigin } from './flightOrigin.ts'
import { originLines, triggerText } from './reportText.ts'
import type { Trigger } from './trouble.ts'

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
    const lines = [`Step ${step} went wrong: ${triggerText(trigger)}${noticed === step ? '' : `, noticed after step ${noticed}`}.`]
    lines.push(...originLines(origin, step))
    if (compiled !== null && origin.kind !== 'compiled code') lines.push('The step runs compiled graphs; eager kernels give the same.')
    lines.push(...notes)
    if (file !== null) lines.push(`To replay the step: node ${file}`)
    return lines.join('\n')
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

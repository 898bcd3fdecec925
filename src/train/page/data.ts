// What the server of the live page sends, and the page reads: JSON, in which numbers that are not finite are texts.

/** What the page shows from the start. */
export interface RunFacts {
  /** The class of the model. */
  readonly model: string
  readonly parameters: number
  readonly epochs: number
}

/** A moment of the training. */
export interface StepPoint {
  readonly kind: 'step'
  readonly step: number
  readonly epoch: number
  /** How much of the epoch is done, from 0 to 1; null if its length is not known. */
  readonly done: number | null
  /** Seconds since the training began. */
  readonly seconds: number
  /** By name: loss, rate, samples per second, bytes in use, the norm of all gradients. */
  readonly values: Readonly<Record<string, number>>
}

/** The report of an epoch. */
export interface EpochPoint {
  readonly kind: 'epoch'
  readonly epoch: number
  readonly step: number
  readonly values: Readonly<Record<string, number>>
}

/** A parameter: its norms, and how often its values are in each of equal intervals. */
export interface WeightRow {
  readonly name: string
  readonly shape: readonly number[]
  readonly norm: number
  /** Null before the first gradient. */
  readonly gradNorm: number | null
  readonly from: number
  readonly to: number
  readonly counts: readonly number[]
}

/** The parameters at a step. */
export interface WeightsPoint {
  readonly kind: 'weights'
  readonly step: number
  readonly rows: readonly WeightRow[]
}

/** How the training ended. */
export interface EndPoint {
  readonly kind: 'end'
  readonly text: string
}

export type LivePoint = StepPoint | EpochPoint | WeightsPoint | EndPoint

const NOT_FINITE: readonly unknown[] = ['NaN', 'Infinity', '-Infinity']

export const textOf = (point: LivePoint): string =>
  JSON.stringify(point, (_, value: unknown) => (typeof value === 'number' && !Number.isFinite(value) ? String(value) : value))

export const pointOf = (text: string): LivePoint => JSON.parse(text, (_, value: unknown) => (NOT_FINITE.includes(value) ? Number(value) : value))

// How much of a model is whole on this rank: what sharding is to keep small.
import { checkCount } from '../../protocol/index.ts'

/** Full parameters on this rank: units, and bytes; now, and at most since the last reset. */
export interface FullParameterStats {
  readonly units: number
  readonly bytes: number
  readonly peakUnits: number
  readonly peakBytes: number
}

const now = { units: 0, bytes: 0 }
const peak = { units: 0, bytes: 0 }

/** A unit was gathered (1), or freed (-1). */
export function countFull(units: 1 | -1, bytes: number): void {
  now.units += units
  now.bytes += units * bytes
  peak.units = Math.max(peak.units, now.units)
  peak.bytes = Math.max(peak.bytes, now.bytes)
}

/** How many units' full parameters this rank holds, and held at most. Units that are never divided are not counted. */
export const fullParameterStats = (): FullParameterStats => ({ ...now, peakUnits: peak.units, peakBytes: peak.bytes })

/** Starts counting the peak anew. */
export function resetFullParameterStats(): void {
  checkCount('resetFullParameterStats', arguments, 0)
  peak.units = now.units
  peak.bytes = now.bytes
}

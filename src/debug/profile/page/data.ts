// What the pages of a profile read: JSON.

/** A frame of a flame graph: name, kind, milliseconds, calls, FLOPs, bytes, and the frames inside. */
export type PackedFrame = readonly [
  name: string,
  kind: string,
  time: number,
  calls: number,
  flops: number,
  bytes: number,
  children: readonly PackedFrame[],
]

/** The data of a flame graph. Times are in milliseconds. */
export interface FlameData {
  readonly page: 'flame'
  readonly totalTime: number
  readonly frames: readonly PackedFrame[]
}

/** Who has how much memory over time: for each point, the bytes of each owner. */
export interface MemorySeries {
  readonly owners: readonly string[]
  readonly bytes: readonly (readonly number[])[]
}

/** A row of the owners at a moment. */
export type PackedOwner = readonly [category: string, operator: string, module: string, tensors: string, bytes: number]

/** The data of a timeline of memory. */
export interface MemoryData {
  readonly page: 'memory'
  /** Milliseconds since the first point. */
  readonly times: readonly number[]
  readonly series: Readonly<Record<string, MemorySeries>>
  /** The point at which most bytes were in use, and who had them. */
  readonly peak: number
  readonly atPeak: readonly PackedOwner[]
}

export type ProfileData = FlameData | MemoryData

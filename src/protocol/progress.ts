// How far long work is, for programs that show it: what functions with an option `onProgress` tell.

/** How far a piece of work is. */
export interface Progress {
  /** What is done: `minify`, `export`, `autotune`. */
  readonly task: string
  /** Steps that are done, and how many there are; null if that is not known. */
  readonly done: number
  readonly total: number | null
  /** What is being done, or was found, for a reader; may be empty. */
  readonly text: string
}

/** Gets the progress. What it throws ends the work. */
export type OnProgress = (progress: Progress) => void

// Progress of long work on standard error: a bar on a terminal, where each state replaces the one before; elsewhere a line every few seconds.
import type { OnProgress, Progress } from './progress.ts'

/** Where progress is shown. */
export interface ProgressStream {
  readonly write: (text: string) => void
  /** The terminal: characters in a line, null if it does not say. Null for a file or a pipe. */
  readonly terminal: { readonly columns: number | null } | null
  /** Milliseconds between two lines where there is no terminal. Default 5,000. */
  readonly betweenLines?: number
  /** The clock, in milliseconds. Default `performance.now`. */
  readonly now?: () => number
}

/** On a terminal, a state is shown at most once in this many milliseconds; elsewhere the second number is the usual one between two lines. */
const REDRAWN = 80
const BETWEEN_LINES = 5_000
/** The width of a bar, in characters, and of a terminal that does not say its own. */
const BAR = 24
const USUAL_WIDTH = 80

/** Deletes the line that the cursor is on. */
const CLEARED = '\r\u001B[2K'

/** Shows the progress of one piece of work. */
export class ProgressDisplay {
  readonly #stream: ProgressStream
  readonly #now: () => number
  readonly #start: number
  #shown: number
  #isDrawn = false

  constructor(stream: ProgressStream) {
    this.#stream = stream
    this.#now = stream.now ?? ((): number => performance.now())
    this.#start = this.#now()
    // The first state is drawn at once; the first line comes when the work has taken a while.
    this.#shown = this.#start - (stream.terminal === null ? 0 : REDRAWN)
  }

  /** Shows a state, if it is time for one. */
  readonly report: OnProgress = (progress) => {
    const now = this.#now()
    const { terminal, betweenLines = BETWEEN_LINES } = this.#stream
    if (now - this.#shown < (terminal === null ? betweenLines : REDRAWN)) return
    this.#shown = now
    const seconds = (now - this.#start) / 1000
    if (terminal === null) return this.#stream.write(`${stateText(progress, seconds, null)}\n`)
    this.#isDrawn = true
    // A line of the terminal's whole width would wrap.
    this.#stream.write(`${CLEARED}${stateText(progress, seconds, BAR).slice(0, (terminal.columns ?? USUAL_WIDTH) - 1)}`)
  }

  /** Prints a line that stays, above the bar. */
  note(line: string): void {
    this.#clear()
    this.#stream.write(`${line}\n`)
  }

  /** The work is over: the bar goes. */
  end(): void {
    this.#clear()
  }

  #clear(): void {
    if (!this.#isDrawn) return
    this.#isDrawn = false
    this.#stream.write(CLEARED)
  }
}

/** `export [######------] 12/24 50% 3 s, conv1`; without a width there is no bar, and without a total no percentage. */
function stateText({ task, done, total, text }: Progress, seconds: number, width: number | null): string {
  const part = total === null || total === 0 ? null : Math.min(1, done / total)
  const filled = part === null || width === null ? null : Math.round(part * width)
  return [
    task,
    ...(filled === null || width === null ? [] : [`[${'#'.repeat(filled)}${'-'.repeat(width - filled)}]`]),
    total === null ? String(done) : `${done}/${total}`,
    ...(part === null ? [] : [`${Math.floor(100 * part)}%`]),
    `${seconds.toFixed(0)} s${text === '' ? '' : `, ${text}`}`,
  ].join(' ')
}

/** The display on a stream of the process, which is a terminal or not. */
export const progressOf = (
  stream: { readonly isTTY?: boolean; readonly columns?: number; write(text: string): unknown },
  env: Readonly<Record<string, string | undefined>>,
  betweenLines?: number,
): ProgressDisplay =>
  new ProgressDisplay({
    write: (text) => void stream.write(text),
    // Where the cursor cannot go back, there are lines.
    terminal: stream.isTTY === true && env['TERM'] !== 'dumb' ? { columns: stream.columns ?? null } : null,
    ...(betweenLines === undefined ? {} : { betweenLines }),
  })

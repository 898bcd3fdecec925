// The output of a rank, line by line. What V8 prints when a process dies is held back until its end, so that the cause is read first.
import type { ChildProcess } from 'node:child_process'
import type { Readable } from 'node:stream'

/** Where whole lines go. */
export type WriteLine = (line: string) => void

/** Cuts output into lines. */
export class LineSplitter {
  readonly #decoder = new TextDecoder()
  readonly #write: WriteLine
  #rest = ''

  constructor(write: WriteLine) {
    this.#write = write
  }

  add(chunk: Uint8Array): void {
    const lines = `${this.#rest}${this.#decoder.decode(chunk, { stream: true })}`.split('\n')
    this.#rest = lines.pop() ?? ''
    for (const line of lines) this.#write(line)
  }

  /** The end of the output: what is left is a line too. */
  end(): void {
    if (this.#rest !== '') this.#write(this.#rest)
    this.#rest = ''
  }
}

/** Calls `write` for each line of a stream. */
export function onLines(stream: Readable | null, write: WriteLine): LineSplitter {
  const lines = new LineSplitter(write)
  stream?.on('data', (chunk: Uint8Array) => lines.add(chunk))
  return lines
}

/** How V8's own reports begin. */
const CRASH = /^(?:<--- Last few GCs --->|FATAL ERROR: |#\s*$|# Fatal )/

/** Passes lines on, but for a report of V8 at the end. */
class CrashReport {
  readonly #write: WriteLine
  readonly #held: string[] = []
  #isCrash = false

  constructor(write: WriteLine) {
    this.#write = write
  }

  add(line: string): void {
    this.#isCrash ||= CRASH.test(line)
    // A report begins with an empty line.
    if (this.#isCrash || line === '') {
      this.#held.push(line)
      return
    }
    this.release()
    this.#write(line)
  }

  /** What V8 says that went wrong; null if it has not reported anything. */
  get cause(): string | null {
    const line = this.#held.find((held) => held.startsWith('FATAL ERROR: ')) ?? this.#held.find((held) => held.startsWith('# Fatal '))
    return line?.replace(/^(FATAL ERROR: |# )/, '') ?? null
  }

  /** Passes on what was held back. */
  release(): void {
    for (const held of this.#held.splice(0)) this.#write(held)
  }
}

/** What a process writes, line by line. What V8 says at its death is held back until {@link ProcessOutput.release}. */
export class ProcessOutput {
  readonly #crash: CrashReport
  readonly #streams: readonly LineSplitter[]

  constructor({ stdout, stderr }: Pick<ChildProcess, 'stdout' | 'stderr'>, print: WriteLine, note: WriteLine) {
    this.#crash = new CrashReport(note)
    this.#streams = [onLines(stdout, print), onLines(stderr, (line) => this.#crash.add(line))]
  }

  /** Takes the last lines, once the process has ended. Returns what V8 says that went wrong; null if it has not reported anything. */
  end(): string | null {
    for (const lines of this.#streams) lines.end()
    return this.#crash.cause
  }

  release(): void {
    this.#crash.release()
  }
}

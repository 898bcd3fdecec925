// The output of a rank, line by line. What V8 prints when a process dies is held back until its end, so that the cause is read first.

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

/** How V8's own reports begin. */
const CRASH = /^(?:<--- Last few GCs --->|FATAL ERROR: |#\s*$|# Fatal )/

/** Passes lines on, but for a report of V8 at the end. */
export class CrashReport {
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

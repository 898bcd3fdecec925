// Signals that `tensorfx run` gets, passed on to its ranks.

/** Those that usually end a program, which is then waited for. */
const ENDING = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
/** Those that a program may give a meaning of its own. */
const OTHERS = ['SIGUSR2'] as const
/** Milliseconds that ranks have to end after a signal that asks them to. */
const PATIENCE = 10_000

/** Listens to the signals of this process from its making until {@link SignalForwarder.end}. */
export class SignalForwarder {
  readonly #pass: (signal: NodeJS.Signals) => void
  readonly #listeners: readonly (readonly [NodeJS.Signals, () => void])[]
  #stoppedBy: NodeJS.Signals | null = null
  #patience: NodeJS.Timeout | null = null

  /** `pass` sends a signal to the ranks. */
  constructor(pass: (signal: NodeJS.Signals) => void) {
    this.#pass = pass
    this.#listeners = [
      ...ENDING.map((signal) => [signal, () => this.#stop(signal)] as const),
      ...OTHERS.map((signal) => [signal, () => pass(signal)] as const),
    ]
    for (const [signal, listener] of this.#listeners) process.on(signal, listener)
  }

  /** The signal with which the user has stopped the program; null if it was not stopped. */
  get stoppedBy(): NodeJS.Signals | null {
    return this.#stoppedBy
  }

  #stop(signal: NodeJS.Signals): void {
    // Whoever asks twice does not want to wait.
    if (this.#stoppedBy !== null) return this.#pass('SIGKILL')
    this.#stoppedBy = signal
    this.#patience = setTimeout(() => this.#pass('SIGKILL'), PATIENCE)
    this.#pass(signal)
  }

  end(): void {
    for (const [signal, listener] of this.#listeners) process.off(signal, listener)
    if (this.#patience !== null) clearTimeout(this.#patience)
  }
}

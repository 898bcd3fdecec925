// How kernels compute that are compiled now: how accurate results must be, and whether the program names what computes them. Each combination is one object, a part of the state on which
// compiled functions depend, and caches of kernels keep what belongs to each apart.

/** The name of an engine. */
export type EngineName = 'wasm' | 'wasm-relaxed'

/** What computes a kernel: machine code (`c`) or WebAssembly, and how many threads took part. */
export interface ComputedBy {
  readonly engine: EngineName | 'c' | 'webgpu'
  readonly threads: number
}

/** `strict`: results must not depend on what the machine offers, so no fused multiply-add and no other order of sums. `fast`: convolutions may be less accurate than by default. */
export type Accuracy = 'strict' | 'default' | 'fast'

/** What kernels are translated to: `c`, which a C compiler makes machine code of, or `wasm`. */
export type Emitter = 'c' | 'wasm'

/** How kernels compute. There is one object for each combination. */
export interface Computing {
  readonly accuracy: Accuracy
  /** What must compute, where it can; null: what is faster. */
  readonly emitter: Emitter | null
  /** The WebAssembly that must compute; null: that of the process. */
  readonly engine: EngineName | null
}

const known = new Map<string, Computing>()

function computingOf(wanted: Computing): Computing {
  const key = computingKey(wanted)
  const found = known.get(key)
  if (found !== undefined) return found
  known.set(key, wanted)
  return wanted
}

/** A computing as text. */
export const computingKey = ({ accuracy, emitter, engine }: Computing): string =>
  [accuracy, emitter, engine === null ? null : `on ${engine}`].filter((part) => part !== null).join(' ')

let computing: Computing = computingOf({ accuracy: 'default', emitter: null, engine: null })

/** How kernels compute that are compiled now. */
export const currentComputing = (): Computing => computing
/** How accurate results must be now. */
export const currentAccuracy = (): Accuracy => computing.accuracy
/** Whether results must not depend on what the machine offers: no fused multiply-add. */
export const isStrict = (): boolean => computing.accuracy === 'strict'

const switched: (() => void)[] = []

/** Changes how kernels compute, and returns how they did. */
function setComputing(change: Partial<Computing>): Computing {
  const before = computing
  computing = computingOf({ ...before, ...change })
  if (before !== computing) for (const notify of switched) notify()
  return before
}

/** Runs `fn` with kernels that compute in that way. */
export function withComputing<T>(change: Partial<Computing>, fn: () => T): T {
  const before = setComputing(change)
  try {
    return fn()
  } finally {
    setComputing(before)
  }
}

/** Sets whether results are strict, else as by default, and returns whether they were. */
export function setStrict(value: boolean): boolean {
  return setComputing({ accuracy: value ? 'strict' : 'default' }).accuracy === 'strict'
}

/** Runs `fn` strict, or as by default. */
export function withStrict<T>(value: boolean, fn: () => T): T {
  return withComputing({ accuracy: value ? 'strict' : 'default' }, fn)
}

/** What a cache of kernels keeps apart by how they compute: one value for each, made at the first use. */
export class PerEngine<T> {
  /** The value that belongs to the code that runs now. */
  current: T
  readonly #values: Map<Computing, T>

  constructor(make: () => T) {
    this.current = make()
    this.#values = new Map([[computing, this.current]])
    switched.push(() => {
      let value = this.#values.get(computing)
      if (value === undefined) {
        value = make()
        this.#values.set(computing, value)
      }
      this.current = value
    })
  }
}

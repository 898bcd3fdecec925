// Which engine computes: WebAssembly as every browser has it, or with relaxed SIMD, whose fused multiply-add rounds once where the other rounds twice. The two differ in last bits, so a
// process has one answer, found at the first use; only `strict` code leaves the fused instructions out. The name is part of the key of every compiled kernel. Beside it, how accurate
// results must be.
import { ArgumentError } from '../../errors/index.ts'
import { environmentVariable, hostProcess, valueText } from '../../protocol/index.ts'

/** The name of an engine. */
export type EngineName = 'wasm' | 'wasm-relaxed'

/** `strict`: results must not depend on what the machine offers, so no fused multiply-add and no other order of sums. `fast`: convolutions may be less accurate than by default. */
export type Accuracy = 'strict' | 'default' | 'fast'

/** Whether kernels may use relaxed SIMD: where there is any, or as the program says. */
export type RelaxedSetting = 'auto' | boolean

const RELAXED_VARIABLE = 'TENSORFX_RELAXED'

/** A module with one function: `f32x4.relaxed_madd` of three vectors of zeros. */
const PROBE: Uint8Array<ArrayBuffer> = Uint8Array.of(
  ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
  ...[0x01, 0x05, 0x01, 0x60, 0x00, 0x01, 0x7b],
  ...[0x03, 0x02, 0x01, 0x00],
  ...[0x0a, 0x0f, 0x01, 0x0d, 0x01, 0x01, 0x7b, 0x20, 0x00, 0x20, 0x00, 0x20, 0x00, 0xfd, 0x85, 0x02, 0x0b],
)

/** The first version of Node that has relaxed SIMD without a flag. */
const FIRST_NODE = 22

/** What is asked of a host. */
export interface RelaxedHost {
  /** `process.version`, where there is one. */
  readonly version: string | undefined
  readonly wasm: Pick<typeof WebAssembly, 'validate' | 'Module'>
  /** Sets a flag of V8. */
  setFlag(flag: string): void
}

/** Whether the module is not only valid but also compiles: an engine may accept the instruction and have no code for it. */
function compiles({ wasm }: RelaxedHost): boolean {
  try {
    return wasm.validate(PROBE) && new wasm.Module(PROBE) instanceof wasm.Module
  } catch {
    return false
  }
}

/** Whether a host has relaxed SIMD. Node below 22 has it once a flag is set, which applies to modules that are compiled from then on; later ones do not know the flag, and warn. */
export function findsRelaxedSimd(host: RelaxedHost): boolean {
  if (compiles(host)) return true
  const version = /^v(\d+)\./.exec(host.version ?? '')?.[1]
  if (version === undefined || Number(version) >= FIRST_NODE) return false
  try {
    host.setFlag('--experimental-wasm-relaxed-simd')
  } catch {
    // What calls itself Node may have no such flags.
    return false
  }
  return compiles(host)
}

let supported: boolean | null = null

/** Whether this host has relaxed SIMD. */
export const hasRelaxedSimd = (): boolean =>
  (supported ??= findsRelaxedSimd({
    version: hostProcess()?.version,
    wasm: WebAssembly,
    setFlag: (flag) => globalThis.process?.getBuiltinModule?.('node:v8').setFlagsFromString(flag),
  }))

function checkedSetting(where: string, value: unknown): RelaxedSetting {
  if (value === 'auto' || typeof value === 'boolean') return value
  throw new ArgumentError(`${where} must be 'auto', true or false, got ${valueText(value)}.`)
}

/** The setting in the environment: 1, 0 or auto. Throws ArgumentError for another text. */
export function relaxedSettingOf(text: string): RelaxedSetting {
  if (text === '1') return true
  if (text === '0') return false
  if (text === 'auto' || text === '') return 'auto'
  throw new ArgumentError(`${RELAXED_VARIABLE} must be auto, 1 or 0, got '${text}'.`)
}

/** What schedules choose tiles for: an engine, or machine code for a processor with vectors of 16, 8 or 4 floats. */
export type TileEngine = EngineName | 'native16' | 'native8' | 'native4'

let machine: TileEngine | null = null

/** What machine code is compiled for beside WebAssembly; null where none is. */
export const machineEngine = (): TileEngine | null => machine

/** Says that kernels are machine code too. For good: memory that was packed for its tiles stays so. */
export function setMachineEngine(engine: Exclude<TileEngine, EngineName>): void {
  machine = engine
}

let setting: RelaxedSetting | null = null
/** What this process uses; null before the first use. */
let answer: EngineName | null = null
let accuracy: Accuracy = 'default'

/** Whether kernels may use relaxed SIMD. */
export const relaxedSetting = (): RelaxedSetting => (setting ??= relaxedSettingOf(environmentVariable(RELAXED_VARIABLE) ?? 'auto'))

/** The engine that a setting leads to on this host. Throws ArgumentError for true where there is no relaxed SIMD. */
export function engineFor(wanted: RelaxedSetting): EngineName {
  if (wanted === false) return 'wasm'
  if (hasRelaxedSimd()) return 'wasm-relaxed'
  if (wanted === 'auto') return 'wasm'
  throw new ArgumentError("backends.wasm.relaxed is true, but this host has no relaxed SIMD: set it to 'auto', or use a newer browser or Node 22.")
}

/**
 * Says whether kernels may use relaxed SIMD. Throws ArgumentError for another value, for true where there is none, and where kernels that were compiled before compute by the other
 * engine: results would depend on when a kernel was compiled.
 */
export function setRelaxed(value: RelaxedSetting): void {
  const wanted = checkedSetting('backends.wasm.relaxed', value)
  const name = engineFor(wanted)
  if (answer !== null && name !== answer)
    throw new ArgumentError(
      `backends.wasm.relaxed cannot become ${String(wanted)} after the first kernel was compiled, which uses the engine ${answer}: set it at the start of the program, or set ${RELAXED_VARIABLE} in the environment.`,
    )
  setting = wanted
}

/** How accurate results must be now. */
export const currentAccuracy = (): Accuracy => accuracy
/** Whether results must not depend on what the machine offers: no fused multiply-add. */
export const isStrict = (): boolean => accuracy === 'strict'

/** The engine of this process, `strict` aside. */
export const processEngine = (): EngineName => (answer ??= engineFor(relaxedSetting()))

/** The engine that kernels are compiled for now. */
export const currentEngine = (): EngineName => (isStrict() ? 'wasm' : processEngine())

/** The engine that has the widest tiles now, for which memory is packed that both use. */
export const widestEngine = (): TileEngine => machine ?? currentEngine()

const switched: (() => void)[] = []

/** Sets how accurate results must be, and returns what that was. */
function setAccuracy(value: Accuracy): Accuracy {
  const before = accuracy
  accuracy = value
  if (before !== value) for (const notify of switched) notify()
  return before
}

/** Runs `fn` with results that are so accurate. */
export function withAccuracy<T>(value: Accuracy, fn: () => T): T {
  const before = setAccuracy(value)
  try {
    return fn()
  } finally {
    setAccuracy(before)
  }
}

/** Sets whether results are strict, else as by default, and returns whether they were. */
export function setStrict(value: boolean): boolean {
  return setAccuracy(value ? 'strict' : 'default') === 'strict'
}

/** Runs `fn` strict, or as by default. */
export function withStrict<T>(value: boolean, fn: () => T): T {
  return withAccuracy(value ? 'strict' : 'default', fn)
}

/** What a cache of kernels keeps apart by accuracy: one value for each, made at the first use. */
export class PerEngine<T> {
  /** The value that belongs to the code that runs now. */
  current: T
  readonly #values: Map<Accuracy, T>

  constructor(make: () => T) {
    this.current = make()
    this.#values = new Map([[accuracy, this.current]])
    switched.push(() => {
      let value = this.#values.get(accuracy)
      if (value === undefined) {
        value = make()
        this.#values.set(accuracy, value)
      }
      this.current = value
    })
  }
}

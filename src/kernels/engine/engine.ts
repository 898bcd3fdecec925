// Which engine computes: WebAssembly as every browser has it, or with relaxed SIMD, whose fused multiply-add rounds once where the other rounds twice. The two differ in last bits, so a
// process has one answer, found at the first use; only `strict` code, and what names an engine (computing.ts), leaves the fused instructions out. The name is part of the key of every compiled kernel.
import { ArgumentError } from '../../errors/index.ts'
import { environmentVariable, hostProcess, valueText } from '../../protocol/index.ts'
import { currentComputing, isStrict } from './computing.ts'
import type { EngineName } from './computing.ts'
import { machineEngine } from './machineCode.ts'
import type { MachineEngine } from './machineCode.ts'

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

/** What schedules choose tiles for: WebAssembly, or machine code. */
export type TileEngine = EngineName | MachineEngine

let setting: RelaxedSetting | null = null
/** What this process uses; null before the first use. */
let answer: EngineName | null = null

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

/** The engine of this process, `strict` aside. */
export const processEngine = (): EngineName => (answer ??= engineFor(relaxedSetting()))

/** The engine that kernels are compiled for now. */
export const currentEngine = (): EngineName => (isStrict() ? 'wasm' : (currentComputing().engine ?? processEngine()))

/** The engine that has the widest tiles now, for which memory is packed that both use. */
export const widestEngine = (): TileEngine => machineEngine() ?? currentEngine()

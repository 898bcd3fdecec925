// `torch.backends` and `torch.useDeterministicAlgorithms`: how kernels may compute.
import { checkArgument, checkCount } from '../../protocol/index.ts'
import { isStrict, setStrict } from './computing.ts'
import type { EngineName } from './computing.ts'
import { processEngine, relaxedSetting, setRelaxed } from './engine.ts'
import type { RelaxedSetting } from './engine.ts'
import { enableMachineCode, isMachineCodeEnabled } from './machineCode.ts'

/** `torch.backends.wasm`. */
export interface WasmBackend {
  /**
   * Whether kernels use relaxed SIMD, whose fused multiply-add rounds once: where the host has it (`'auto'`, the default), in any case (`true`), or never (`false`). Results differ in
   * last bits, so it is set before the first operator runs; the environment variable `TENSORFX_RELAXED` sets it too.
   *
   * @throws ArgumentError for another value, for `true` where the host has no relaxed SIMD, and for a change after kernels were compiled.
   */
  relaxed: RelaxedSetting
  /** The engine of this process. */
  readonly engine: EngineName
}

/** `torch.backends.native`: kernels as machine code, which `init` of tensorfx/native brings. */
export interface NativeBackend {
  /**
   * Whether machine code computes where there is some. With false, WebAssembly computes until this is true again, and kernels that are compiled meanwhile stay with it. Results are the same
   * bits, so that it can be set at any time. False before `native.init()`.
   *
   * @throws ArgumentError unless the value is a boolean.
   * @throws UnsupportedError if it is true and `tensorfx/native` has not been initialized.
   */
  enabled: boolean
}

/** PyTorch's `torch.backends`. */
export const backends: { readonly wasm: WasmBackend; readonly native: NativeBackend } = {
  native: {
    get enabled() {
      return isMachineCodeEnabled()
    },
    set enabled(value) {
      enableMachineCode(value)
    },
  },
  wasm: {
    get relaxed() {
      return relaxedSetting()
    },
    set relaxed(value) {
      setRelaxed(value)
    },
    get engine() {
      return processEngine()
    },
  },
}

/**
 * With `true`, results do not depend on what the machine offers: kernels leave fused multiply-add out, so that every machine computes the same bits, more slowly. All operators are
 * deterministic in any case. `compile(fn, { options: { strict: true } })` does the same for one function. PyTorch's `torch.use_deterministic_algorithms`.
 *
 * @throws ArgumentError unless `mode` is a boolean.
 * @example
 * torch.useDeterministicAlgorithms(true)
 * torch.areDeterministicAlgorithmsEnabled() // true
 * torch.useDeterministicAlgorithms(false)
 */
export function useDeterministicAlgorithms(mode: boolean): void {
  checkCount('torch.useDeterministicAlgorithms', arguments, 1)
  checkArgument(typeof mode === 'boolean', 'torch.useDeterministicAlgorithms', 'mode', 'true or false', mode)
  setStrict(mode)
}

/** Whether {@link useDeterministicAlgorithms} is on. PyTorch's `torch.are_deterministic_algorithms_enabled`. */
export function areDeterministicAlgorithmsEnabled(): boolean {
  checkCount('torch.areDeterministicAlgorithmsEnabled', arguments, 0)
  return isStrict()
}

// Who hears of the kernels that eager operators launch: compile, which launches the same kernels again for the same sizes without the operators.
import type { CompiledKernel } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'

/** Hears of every launch of an eager operator's kernel. */
export interface LaunchListener {
  /** A kernel runs on tensors, whose addresses are its first arguments, and numbers. */
  launched(run: CompiledKernel['run'], tensors: readonly Tensor[], numbers: readonly number[]): void
  /** Scratch memory was reserved: its address is the last number of the next launch. */
  reserved(address: number, bytes: number): void
  /** A kernel runs on what addresses of tensors do not show: copies of tensors off the heap, packed weights. */
  runsOnCopies(): void
}

/** `listener` hears of launches, if there is one. */
export const launches: { listener: LaunchListener | null } = { listener: null }

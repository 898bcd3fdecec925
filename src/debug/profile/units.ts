// Sizes of tensors, and numbers as text.
import { dtypeInfo } from '../../kernels/index.ts'
import type { Tensor } from '../../tensor/index.ts'

/** The bytes of the elements of some tensors. */
export const bytesOf = (tensors: readonly Tensor[]): number => tensors.reduce((sum, { numel, dtype }) => sum + numel * dtypeInfo[dtype].size, 0)

/** `1,234,567` */
export const countText = (count: number): string => count.toLocaleString('en-US')

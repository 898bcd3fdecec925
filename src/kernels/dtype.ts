// The element types, with what storage and kernels need to know of each.

/** Element type of a tensor, spelled as PyTorch prints it without the `torch.` prefix. `bool` takes one byte, 0 or 1. */
export type DType = 'float32' | 'float64' | 'int32' | 'bool'

export interface DTypeInfo {
  /** Bytes per element. */
  readonly size: number
  readonly floating: boolean
  /** PyTorch's abbreviation in readable graphs: f32, i32, … */
  readonly short: string
  /** Order in type promotion: the higher one wins. */
  readonly rank: number
}

export const dtypeInfo: Readonly<Record<DType, DTypeInfo>> = {
  bool: { size: 1, floating: false, short: 'b8', rank: 0 },
  int32: { size: 4, floating: false, short: 'i32', rank: 1 },
  float32: { size: 4, floating: true, short: 'f32', rank: 2 },
  float64: { size: 8, floating: true, short: 'f64', rank: 3 },
}

/** Whether `value` names a dtype. */
export function isDType(value: unknown): value is DType {
  return typeof value === 'string' && Object.hasOwn(dtypeInfo, value)
}

/** The dtype that a binary operator computes in: PyTorch's `torch.promote_types`. */
export function promoteTypes(a: DType, b: DType): DType {
  return dtypeInfo[a].rank >= dtypeInfo[b].rank ? a : b
}

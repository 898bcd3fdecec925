// Merges dimensions of operands that are walked together, where every operand can walk two neighbours as one.

/** Dimensions, and the strides of each operand over them. */
export interface Collapsed {
  readonly dims: number[]
  /** One list per operand. */
  readonly strides: number[][]
  /** Whether each dimension is reduced. */
  readonly reduced: boolean[]
}

/**
 * Drops dimensions of size 1, and merges neighbours that all operands walk as one and that are both reduced or both kept. `strides` has one list
 * per operand; dimensions beyond those of `reduced` are kept.
 */
export function collapseDims(dims: readonly number[], strides: readonly (readonly number[])[], reduced: readonly boolean[] = []): Collapsed {
  const out: Collapsed = { dims: [], strides: strides.map(() => []), reduced: [] }
  // The innermost dimension comes first here; the lists are reversed at the end.
  for (let d = dims.length - 1; d >= 0; d--) {
    const size = dims[d] ?? 1
    if (size === 1) continue
    const flag = reduced[d] === true
    const last = out.dims.length - 1
    const inner = out.dims[last]
    if (inner !== undefined && out.reduced[last] === flag) {
      let joins = true
      for (let k = 0; joins && k < strides.length; k++) joins = strides[k]?.[d] === (out.strides[k]?.[last] ?? 0) * inner
      if (joins) {
        out.dims[last] = inner * size
        continue
      }
    }
    out.dims.push(size)
    out.reduced.push(flag)
    for (let k = 0; k < strides.length; k++) out.strides[k]?.push(strides[k]?.[d] ?? 0)
  }
  if (out.dims.length > 1) {
    out.dims.reverse()
    out.reduced.reverse()
    for (const own of out.strides) own.reverse()
  }
  return out
}

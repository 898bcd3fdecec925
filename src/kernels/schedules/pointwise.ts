// The kernel of independent iterations: in tiles where it transposes, otherwise loops whose innermost runs in lanes.
import { bufferParam, forLoop, load, store } from '../ir/loopIr.ts'
import type { BufferParam, Expr, Kernel, Memory, Stmt } from '../ir/loopIr.ts'
import { COLLECTED, tileFor, transpose } from './transpose.ts'
import type { Nest } from './transpose.ts'

/**
 * The kernel of a nest of loops, at least one. Without `inTiles` it never transposes in tiles, which need more code. `'collected'` says what its sizes do not show: that lines
 * of its tensors compete for places in a cache, see `compete`. A kernel that transposes may have scratch memory.
 */
export function pointwiseKernel(given: Nest, inTiles: boolean | 'collected'): Kernel {
  const nest = copyOfBits(given)
  if (inTiles !== false && transpose.match(nest)) {
    const spec = transpose.spec(nest)
    return transpose.build(spec, inTiles === 'collected' ? COLLECTED : tileFor(spec))
  }
  const innermost = nest.loops.length - 1
  const body = nest.loops.reduceRight<readonly Stmt[]>((inner, loop, d) => [forLoop(loop, d === innermost ? 'simd' : 'serial', inner)], nest.body)
  return { name: nest.name, params: nest.params, body }
}

/** A copy of float16 or bfloat16 moves bits, which converts nothing; other nests are as they were. */
function copyOfBits(nest: Nest): Nest {
  const [stmt, ...others] = nest.body
  if (stmt?.kind !== 'store' || stmt.combine !== null || others.length > 0) return nest
  const { buffer: target, index, value } = stmt
  const copied = withoutRoundTrip(value)
  if (copied.kind !== 'load' || (copied.dtype !== 'float16' && copied.dtype !== 'bfloat16') || copied.dtype !== target.dtype) return nest
  const bits = new Map<Memory, BufferParam>()
  const params = nest.params.map((param) => {
    if (param.kind !== 'buffer') return param
    const words = bufferParam(param.name, 'int16', param.access)
    bits.set(param, words)
    return words
  })
  const [to, from] = [bits.get(target), bits.get(copied.buffer)]
  if (to === undefined || from === undefined) return nest
  return { ...nest, params, body: [store(to, index, load(from, copied.index, copied.mask))] }
}

/** What a value is converted from, if it is a float that was converted to a wider one and back. */
function withoutRoundTrip(value: Expr): Expr {
  if (value.kind !== 'cast' || value.value.kind !== 'cast') return value
  const { dtype, value: wide } = value
  const isWider = wide.dtype === 'float32' || wide.dtype === 'float64'
  return isWider && wide.value.dtype === dtype ? wide.value : value
}

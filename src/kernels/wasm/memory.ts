// Loads and stores of vectors: contiguous, broadcast, strided, gathered and masked, for every dtype.
import { dtypeInfo } from '../dtype.ts'
import type { DType } from '../dtype.ts'
import type { Address } from './addressing.ts'
import type { LaneMemoryOp, MemoryOp } from './assembler.ts'
import { decodeElements, encodeElements } from './narrowTypes.ts'
import type { Val, VectorCode } from './vectorCode.ts'

/** Where the elements of a value are: an address, and the byte offset of each lane where it is computed at run time. */
export interface Place {
  readonly dtype: DType
  readonly address: Address
  /** i32 lanes of byte offsets, or null. */
  readonly laneOffsets: Val | null
  /** Whether lanes hold different elements; false for one element at a time and for elements that all lanes share. */
  readonly lanes: boolean
}

type ElementSize = 1 | 2 | 4 | 8

/** The instructions for elements of a size: one into all lanes, and to and from one lane. */
const byElement: Readonly<Record<ElementSize, { readonly splat: MemoryOp; readonly load: LaneMemoryOp; readonly store: LaneMemoryOp }>> = {
  1: { splat: 'v128.load8_splat', load: 'v128.load8_lane', store: 'v128.store8_lane' },
  2: { splat: 'v128.load16_splat', load: 'v128.load16_lane', store: 'v128.store16_lane' },
  4: { splat: 'v128.load32_splat', load: 'v128.load32_lane', store: 'v128.store32_lane' },
  8: { splat: 'v128.load64_splat', load: 'v128.load64_lane', store: 'v128.store64_lane' },
}

/** The number that an instruction for elements of a size gives to the one in a 32-bit lane (a 64-bit one: its only lane). */
const laneNumber = (size: ElementSize, lane: number): number => (size === 8 ? 0 : (lane * 4) / size)

const isContiguous = ({ address, laneOffsets, dtype }: Place): boolean =>
  laneOffsets === null && 'known' in address.laneStride && address.laneStride.known === dtypeInfo[dtype].size

/** The elements at `place`. Where `mask` is false the element is 0 and its memory is not accessed. */
export function emitLoad(code: VectorCode, place: Place, mask: Val | null): Val {
  if (!place.lanes) return mask === null ? loadShared(code, place) : loadSharedMasked(code, place, mask)
  const result = code.perVector((v) => {
    if (mask === null) return isContiguous(place) ? loadVector(code, place, v) : loadLanes(code, place, v)
    return loadMasked(code, place, v, code.at(mask, v))
  })
  return decodeElements(code, place.dtype, result)
}

/** One element in all lanes. */
function loadShared(code: VectorCode, { dtype, address }: Place): Val {
  code.f.get(address.local)
  code.f.memory(byElement[dtypeInfo[dtype].size].splat, address.offset)
  return decodeElements(code, dtype, [code.pop()])
}

function loadSharedMasked(code: VectorCode, place: Place, mask: Val): Val {
  const { f } = code
  return code.each([mask], (v) => {
    const loaded = zero(code)
    f.get(code.at(mask, v))
    f.op('v128.any_true')
    f.if(() => {
      f.get(loadShared(code, place)[0])
      f.set(loaded)
    })
    f.get(loaded)
    f.get(code.at(mask, v))
    f.op('v128.and')
  })
}

function zero(code: VectorCode): number {
  code.f.i32x4Const(0)
  return code.pop()
}

/** Four neighbours, as {@link decodeElements} takes them. */
function loadVector(code: VectorCode, { dtype, address }: Place, v: number): number {
  const { f } = code
  const { size } = dtypeInfo[dtype]
  const offset = address.offset + v * 4 * size
  f.get(address.local)
  if (size === 1) {
    f.memory('v128.load32_zero', offset)
    f.ops('i16x8.extend_low_i8x16_u', 'i32x4.extend_low_i16x8_u')
  } else if (size === 2) {
    f.memory('v128.load64_zero', offset)
    f.op('i32x4.extend_low_i16x8_u')
  } else f.memory('v128.load', offset)
  return code.pop()
}

/** Pushes the address of a lane of vector `v` and returns the immediate offset that belongs to it. */
function pushLaneAddress(code: VectorCode, { address, laneOffsets }: Place, v: number, lane: number): number {
  const { f } = code
  f.get(address.local)
  let { offset } = address
  const index = v * 4 + lane
  if (index !== 0) {
    if ('local' in address.laneStride) {
      f.get(address.laneStride.local)
      f.i32Const(index)
      f.ops('i32.mul', 'i32.add')
    } else if (laneOffsets === null && address.laneStride.known >= 0) offset += index * address.laneStride.known
    else if (address.laneStride.known !== 0) {
      f.i32Const(index * address.laneStride.known)
      f.op('i32.add')
    }
  }
  if (laneOffsets !== null) {
    f.get(code.at(laneOffsets, v))
    f.lane('i32x4.extract_lane', lane)
    f.op('i32.add')
  }
  return offset
}

function loadLane(code: VectorCode, place: Place, v: number, lane: number, into: number): void {
  const offset = pushLaneAddress(code, place, v, lane)
  code.f.get(into)
  const { size } = dtypeInfo[place.dtype]
  code.f.laneMemory(byElement[size].load, laneNumber(size, lane), offset)
  code.f.set(into)
}

function loadLanes(code: VectorCode, place: Place, v: number): number {
  const result = zero(code)
  for (let lane = 0; lane < 4; lane++) loadLane(code, place, v, lane, result)
  return result
}

function loadMasked(code: VectorCode, place: Place, v: number, mask: number): number {
  const { f } = code
  const result = zero(code)
  const bits = code.tempI32()
  const eachLane = (): void => {
    for (let lane = 0; lane < 4; lane++) {
      f.get(bits)
      f.i32Const(1 << lane)
      f.op('i32.and')
      f.if(() => loadLane(code, place, v, lane, result))
    }
  }
  f.get(mask)
  f.op('i32x4.bitmask')
  f.set(bits)
  if (!isContiguous(place)) {
    eachLane()
    return result
  }
  f.get(bits)
  f.i32Const(15)
  f.op('i32.eq')
  f.if(() => {
    f.get(loadVector(code, place, v))
    f.set(result)
  }, eachLane)
  return result
}

/** Writes `value`. A place without lanes gets the first lane or, with `lastLane`, the last one, which is what a serial loop would leave there. */
export function emitStore(code: VectorCode, place: Place, value: Val, lastLane: boolean): void {
  const { f } = code
  const elements = encodeElements(code, place.dtype, value)
  const { size, floating, signed } = dtypeInfo[place.dtype]
  const store = byElement[size].store
  if (!place.lanes) {
    f.get(place.address.local)
    f.get(code.at(elements, lastLane ? code.vectors - 1 : 0))
    f.laneMemory(store, laneNumber(size, lastLane ? 3 : 0), place.address.offset)
    return
  }
  const contiguous = isContiguous(place)
  for (let v = 0; v < code.vectors; v++) {
    const vector = code.at(elements, v)
    if (!contiguous) {
      for (let lane = 0; lane < 4; lane++) {
        const offset = pushLaneAddress(code, place, v, lane)
        f.get(vector)
        f.laneMemory(store, laneNumber(size, lane), offset)
      }
      continue
    }
    const offset = place.address.offset + v * 4 * size
    f.get(place.address.local)
    f.get(vector)
    // Narrowing saturates, but elements are in range: those of float16 and bfloat16 are bits, so they count as unsigned.
    const unsigned = floating || !signed
    if (size === 1) {
      f.get(vector)
      f.op('i16x8.narrow_i32x4_s')
      f.get(vector)
      f.op(unsigned ? 'i8x16.narrow_i16x8_u' : 'i8x16.narrow_i16x8_s')
      f.laneMemory('v128.store32_lane', 0, offset)
    } else if (size === 2) {
      f.get(vector)
      f.op(unsigned ? 'i16x8.narrow_i32x4_u' : 'i16x8.narrow_i32x4_s')
      f.laneMemory('v128.store64_lane', 0, offset)
    } else f.memory('v128.store', offset)
  }
}

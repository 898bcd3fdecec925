// Loads and stores of vectors: contiguous, broadcast, strided, gathered and masked, for every dtype.
import { InternalError } from '../../errors/index.ts'
import { dtypeInfo } from '../numbers/dtype.ts'
import type { DType } from '../numbers/dtype.ts'
import type { Address } from './addressing.ts'
import type { LaneMemoryOp, MemoryOp } from '../wasm/assembler.ts'
import { decodeElements, encodeElements } from '../wasm/narrowTypes.ts'
import type { Val, VectorCode } from '../wasm/vectorCode.ts'

/** Where the elements of a value are: an address, and the byte offset of each lane where it is computed at run time. */
export interface Place {
  readonly dtype: DType
  readonly address: Address
  /** i32 lanes of byte offsets, or null. */
  readonly laneOffsets: Val | null
  /** What the code adds for each lane, in bytes, or null. There is one vector in flight. */
  readonly laneBytes: readonly number[] | null
  /** Whether lanes hold different elements; false for one element at a time and for elements that all lanes share. */
  readonly lanes: boolean
}

type ElementSize = 1 | 2 | 4 | 8

/** The bytes of an element. */
function sizeOf(dtype: DType): ElementSize {
  const { size } = dtypeInfo[dtype]
  if (size === 16) throw new InternalError(`kernels have no elements of dtype ${dtype}`)
  return size
}

/** The instructions for elements of a size: one into all lanes, and to and from one lane. */
const byElement: Readonly<Record<ElementSize, { readonly splat: MemoryOp; readonly load: LaneMemoryOp; readonly store: LaneMemoryOp }>> = {
  1: { splat: 'v128.load8_splat', load: 'v128.load8_lane', store: 'v128.store8_lane' },
  2: { splat: 'v128.load16_splat', load: 'v128.load16_lane', store: 'v128.store16_lane' },
  4: { splat: 'v128.load32_splat', load: 'v128.load32_lane', store: 'v128.store32_lane' },
  8: { splat: 'v128.load64_splat', load: 'v128.load64_lane', store: 'v128.store64_lane' },
}

/** The number that an instruction for elements of a size gives to the place of an element in a vector. */
const laneNumber = (code: VectorCode, size: ElementSize, element: number): number => (code.laneOf(element) * 4) / size

function isContiguous({ address, laneOffsets, laneBytes, dtype }: Place): boolean {
  if (laneOffsets !== null || !('known' in address.laneStride)) return false
  const { known } = address.laneStride
  const { size } = dtypeInfo[dtype]
  return laneBytes === null ? known === size : laneBytes.every((bytes, lane) => bytes + lane * known === lane * size)
}

/** Whether every second element is accessed, such as one side of pairs, and a vector is full of them. */
export function isEverySecond(code: VectorCode, { address, laneOffsets, laneBytes, dtype }: Place): boolean {
  const { size } = dtypeInfo[dtype]
  const isKnown = laneOffsets === null && laneBytes === null && 'known' in address.laneStride
  return isKnown && size * code.elements === 16 && address.laneStride.known === 2 * size
}

/** Whether the first two elements are neighbours, and the last two, and four fill a vector as they are. */
function isTwoPairs({ address, laneOffsets, laneBytes, dtype }: Place): boolean {
  const known = laneOffsets === null && 'known' in address.laneStride && address.laneStride.known === 0
  if (!known || laneBytes === null || dtypeInfo[dtype].size !== 4) return false
  const [a = 0, b = 0, c = 0, d = 0] = laneBytes
  return laneBytes.length === 4 && b === a + 4 && d === c + 4
}

/** The elements at `place`. Where `mask` is false the element is 0 and its memory is not accessed. */
export function emitLoad(code: VectorCode, place: Place, mask: Val | null): Val {
  if (!place.lanes) return mask === null ? loadShared(code, place) : loadSharedMasked(code, place, mask)
  const result = code.perVector((v) => {
    if (mask === null)
      return isContiguous(place)
        ? loadVector(code, place, v)
        : isEverySecond(code, place)
          ? loadEverySecond(code, place, v)
          : loadElements(code, place, v)
    return loadMasked(code, place, v, code.at(mask, v))
  })
  return decodeElements(code, place.dtype, result)
}

/** One element in all lanes. */
function loadShared(code: VectorCode, { dtype, address }: Place): Val {
  code.f.get(address.local)
  code.f.memory(byElement[sizeOf(dtype)].splat, address.offset)
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

/** The instruction that loads 2, 4, 8 or 16 bytes into the low end of a vector. */
const loadOfBytes = (bytes: number): MemoryOp =>
  bytes === 16 ? 'v128.load' : bytes === 8 ? 'v128.load64_zero' : bytes === 4 ? 'v128.load32_zero' : 'v128.load16_splat'

/** Neighbours, one for each element of a vector, as {@link decodeElements} takes them. */
function loadVector(code: VectorCode, { dtype, address }: Place, v: number): number {
  const { f } = code
  const { size } = dtypeInfo[dtype]
  const offset = address.offset + v * code.elements * size
  f.get(address.local)
  f.memory(loadOfBytes(code.elements * size), offset)
  if (size === 1) f.op('i16x8.extend_low_i8x16_u')
  if (size <= 2) f.op('i32x4.extend_low_i16x8_u')
  const loaded = code.pop()
  return code.elements === 2 && size < 8 ? code.shuffle32([loaded], [loaded], [0, 0, 1, 1])[0] : loaded
}

/** Every second element: of two vectors that begin with the first one and end with the last one, so that nothing outside is read. */
function loadEverySecond(code: VectorCode, { dtype, address }: Place, v: number): number {
  const { f, elements } = code
  const offset = address.offset + 2 * v * 16
  f.get(address.local)
  f.memory('v128.load', offset)
  f.get(address.local)
  f.memory('v128.load', offset + (elements - 1) * dtypeInfo[dtype].size)
  if (elements === 4) f.shuffle32(0, 2, 5, 7)
  else f.shuffle32(0, 1, 6, 7)
  return code.pop()
}

/** Pushes the address of an element of vector `v` and returns the immediate offset that belongs to it. */
function pushElementAddress(code: VectorCode, { address, laneOffsets, laneBytes }: Place, v: number, element: number): number {
  const { f } = code
  f.get(address.local)
  let offset = address.offset + (laneBytes?.[element] ?? 0)
  const index = v * code.elements + element
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
    f.lane('i32x4.extract_lane', code.laneOf(element))
    f.op('i32.add')
  }
  return offset
}

function loadElement(code: VectorCode, place: Place, v: number, element: number, into: number): void {
  const offset = pushElementAddress(code, place, v, element)
  code.f.get(into)
  const size = sizeOf(place.dtype)
  code.f.laneMemory(byElement[size].load, laneNumber(code, size, element), offset)
  code.f.set(into)
}

/** A vector whose elements have been loaded one by one: each into the first 32 bits of its lane, where lanes have 64. */
const inBothHalves = (code: VectorCode, { dtype }: Place, loaded: number): number =>
  code.elements === 2 && dtypeInfo[dtype].size < 8 ? code.shuffle32([loaded], [loaded], [0, 0, 2, 2])[0] : loaded

function loadElements(code: VectorCode, place: Place, v: number): number {
  if (isTwoPairs(place)) {
    const { f } = code
    const { address, laneBytes } = place
    f.get(address.local)
    f.get(address.local)
    f.memory('v128.load64_zero', address.offset + (laneBytes?.[0] ?? 0))
    f.laneMemory('v128.load64_lane', 1, address.offset + (laneBytes?.[2] ?? 0))
    return code.pop()
  }
  const result = zero(code)
  for (let element = 0; element < code.elements; element++) loadElement(code, place, v, element, result)
  return inBothHalves(code, place, result)
}

function loadMasked(code: VectorCode, place: Place, v: number, mask: number): number {
  const { f } = code
  const result = zero(code)
  const bits = code.tempI32()
  const eachElement = (): void => {
    for (let element = 0; element < code.elements; element++) {
      f.get(bits)
      f.i32Const(1 << code.laneOf(element))
      f.op('i32.and')
      f.if(() => loadElement(code, place, v, element, result))
    }
  }
  f.get(mask)
  f.op('i32x4.bitmask')
  f.set(bits)
  if (!isContiguous(place)) {
    eachElement()
    return inBothHalves(code, place, result)
  }
  f.get(bits)
  f.i32Const(15)
  f.op('i32.eq')
  f.if(
    () => {
      f.get(loadVector(code, place, v))
      f.set(result)
    },
    () => {
      eachElement()
      f.get(inBothHalves(code, place, result))
      f.set(result)
    },
  )
  return result
}

/** Writes the two sides of pairs, the first at `place` (see {@link isEverySecond}), as whole vectors. */
export function emitPairs(code: VectorCode, place: Place, first: Val, second: Val): void {
  const { f, elements } = code
  for (let v = 0; v < code.vectors; v++) {
    for (const half of [0, 1] as const) {
      f.get(place.address.local)
      f.get(code.at(first, v))
      f.get(code.at(second, v))
      if (elements === 4) f.shuffle32(2 * half, 2 * half + 4, 2 * half + 1, 2 * half + 5)
      else f.shuffle32(2 * half, 2 * half + 1, 2 * half + 4, 2 * half + 5)
      f.memory('v128.store', place.address.offset + (2 * v + half) * 16)
    }
  }
}

/** Writes `value`. A place without lanes gets the first lane or, with `lastLane`, the last one, which is what a serial loop would leave there. */
export function emitStore(code: VectorCode, place: Place, value: Val, lastLane: boolean): void {
  const { f } = code
  const elements = encodeElements(code, place.dtype, value)
  const { floating, signed } = dtypeInfo[place.dtype]
  const size = sizeOf(place.dtype)
  const store = byElement[size].store
  if (!place.lanes) {
    f.get(place.address.local)
    f.get(code.at(elements, lastLane ? code.vectors - 1 : 0))
    f.laneMemory(store, laneNumber(code, size, lastLane ? code.elements - 1 : 0), place.address.offset)
    return
  }
  // Small elements of 64-bit lanes are rare: they are stored one by one.
  const together = isContiguous(place) && (size >= 4 || code.elements === 4)
  for (let v = 0; v < code.vectors; v++) {
    const vector = code.at(elements, v)
    if (!together) {
      for (let element = 0; element < code.elements; element++) {
        const offset = pushElementAddress(code, place, v, element)
        f.get(vector)
        f.laneMemory(store, laneNumber(code, size, element), offset)
      }
      continue
    }
    const offset = place.address.offset + v * code.elements * size
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
    } else if (size === 4 && code.elements === 2) {
      f.get(vector)
      f.shuffle32(0, 2, 0, 2)
      f.laneMemory('v128.store64_lane', 0, offset)
    } else f.memory('v128.store', offset)
  }
}

// Loads and stores in C: of neighbours as a vector, of others one by one.
import { dtypeInfo } from '../numbers/dtype.ts'
import type { DType } from '../numbers/dtype.ts'
import { decodeElements, encodeElements } from '../wasm/narrowTypes.ts'
import type { CCode, CVal } from './cCode.ts'
import { kindOf } from './scalars.ts'

/** Where the elements of a value are. */
export interface CPlace {
  readonly dtype: DType
  /** The address of the first element, without what is added for each lane. */
  readonly address: string
  /** What is added for each lane, in elements: numbers, or texts of C. Null if all lanes have the same element. */
  readonly lanes: readonly (number | string)[] | null
}

/** The letter of the C type that an element is in memory. */
function letterOf(dtype: DType): string {
  if (dtype === 'bool' || dtype === 'uint8') return 'b'
  if (dtype === 'int8') return 'c'
  if (dtype === 'int16') return 's'
  return dtype === 'float16' || dtype === 'bfloat16' ? 'h' : kindOf(dtype)
}

const isWide = (dtype: DType): boolean => dtypeInfo[dtype].size >= 4

const areNeighbours = (lanes: readonly (number | string)[]): boolean => lanes.every((offset, lane) => offset === lane)

const addressOf = ({ dtype, address }: CPlace, offset: number | string): string =>
  offset === 0 ? address : `${address} + ${dtypeInfo[dtype].size} * (${offset})`

const elementAt = (place: CPlace, offset: number | string): string => `AT(${letterOf(place.dtype)}1u, ${addressOf(place, offset)})`

/** The elements at a place. Where `mask` is false the element is 0 and its memory is not accessed. */
export function emitLoadIn(code: CCode, place: CPlace, mask: CVal | null): CVal {
  const { dtype, lanes, address } = place
  const kind = kindOf(dtype)
  const isEach = mask !== null && mask.width > 1
  const width = lanes?.length ?? mask?.width ?? 1
  if (width === 1 || (lanes === null && !isEach)) {
    const offset = lanes?.[0] ?? 0
    const text = mask === null ? elementAt(place, offset) : `${mask.text} ? ${elementAt(place, offset)} : 0`
    return decodeElements(code, dtype, code.let(kind, 1, text))
  }
  if (lanes !== null && areNeighbours(lanes)) {
    const whole = `AT(${letterOf(dtype)}${width}u, ${address})`
    const text = isWide(dtype) ? whole : `CV_${width}(${whole}, ${kind}${width})`
    if (mask === null) return decodeElements(code, dtype, code.let(kind, width, text))
    if (!isEach) return decodeElements(code, dtype, code.let(kind, width, `${mask.text} ? ${text} : (${kind}${width}){0}`))
    if (dtypeInfo[dtype].size === 4) return code.let(kind, width, `masked_${width}(${address}, ${mask.text})`)
  }
  const elements = Array.from({ length: width }, (_, lane) => {
    const element = elementAt(place, lanes?.[lane] ?? 0)
    return mask === null ? element : `${code.element(mask, lane)} ? ${element} : 0`
  })
  return decodeElements(code, dtype, code.vector(kind, elements))
}

/** Writes elements; where all lanes have the same one, the last of them. */
export function emitStoreIn(code: CCode, place: CPlace, value: CVal): void {
  const { dtype, lanes, address } = place
  const encoded = encodeElements(code, dtype, value)
  if (lanes === null) return code.line(`${elementAt(place, 0)} = ${code.element(encoded, encoded.width - 1)};`)
  const width = lanes.length
  const full = code.widened(encoded, width)
  if (width > 1 && areNeighbours(lanes)) {
    const letter = letterOf(dtype)
    const text = isWide(dtype) ? full.text : `__builtin_convertvector(${full.text}, ${letter}${width})`
    return code.line(`AT(${letter}${width}u, ${address}) = ${text};`)
  }
  // The elements may be those of an expression that is written once for each of them.
  const kept = full.width === 1 ? full : code.let(full.kind, full.width, full.text)
  lanes.forEach((offset, lane) => code.line(`${elementAt(place, offset)} = ${code.element(kept, lane)};`))
}

// A WebAssembly assembler: writes the binary of a module (functions, imports, exports, SIMD) as instructions are appended.
// Nothing is checked here: the engine validates the module. The assembler knows nothing of the loop IR; emit.ts uses it.
import { InternalError } from '../../errors/index.ts'
import { ByteWriter } from './byteWriter.ts'
import { laneMemoryOps, laneOps, memoryOps, plainOps, saturatingOps, simdMemoryOps, simdOps } from './opcodes.ts'
import type { LaneMemoryOp, LaneOp, MemoryOp, PlainOp } from './opcodes.ts'

export type ValueType = 'i32' | 'i64' | 'f32' | 'f64' | 'v128'
export type { LaneMemoryOp, LaneOp, MemoryOp, PlainOp } from './opcodes.ts'

const typeBytes: Readonly<Record<ValueType, number>> = { i32: 0x7f, i64: 0x7e, f32: 0x7d, f64: 0x7c, v128: 0x7b }
const EMPTY_BLOCK = 0x40

/** The bytes of every instruction without immediates. */
const encodedOps: ReadonlyMap<string, readonly number[]> = new Map<string, readonly number[]>([
  ...Object.entries(plainOps).map(([name, code]) => [name, [code]] as const),
  ...Object.entries(saturatingOps).map(([name, code]) => [name, [0xfc, code]] as const),
  ...Object.entries(simdOps).map(([name, code]) => [name, code < 128 ? [0xfd, code] : [0xfd, (code & 127) | 128, code >> 7]] as const),
])

interface MemoryCode {
  readonly bytes: readonly number[]
  readonly align: number
}

/** The bytes of every load and store, and log2 of its alignment. */
const encodedMemoryOps: ReadonlyMap<string, MemoryCode> = new Map<string, MemoryCode>([
  ...Object.entries(memoryOps).map(([name, [code, align]]) => [name, { bytes: [code], align }] as const),
  ...Object.entries(simdMemoryOps).map(([name, [code, align]]) => [name, { bytes: [0xfd, code], align }] as const),
])

function encoded<T>(table: ReadonlyMap<string, T>, name: string): T {
  const entry = table.get(name)
  if (entry === undefined) throw new InternalError(`the assembler does not know the instruction ${name}; add it to opcodes.ts`)
  return entry
}

/** A point that `br` can jump to: made by `block` (its end) or `loop` (its start). */
export interface Label {
  readonly depth: number
}

/** Code that has been written and not yet put in its place: bytes, and what is written only then. */
export type Fragment = readonly (Uint8Array | (() => void))[]

/** Writes one function. Instructions are appended in order; the methods return nothing, so that code reads like the text format. */
export class FunctionBuilder {
  /** Index in the module's function space: the operand of `call`. */
  readonly index: number
  readonly params: readonly ValueType[]
  readonly results: readonly ValueType[]
  private code: ByteWriter = new ByteWriter()
  /** The parts of the fragment that is being written; null outside of fragments. */
  private parts: (Uint8Array | (() => void))[] | null = null
  private readonly entry: ByteWriter = new ByteWriter()
  private readonly locals: ValueType[] = []
  private depth = 0
  /** The last `set`, and where it was written. */
  private lastSet: { readonly code: ByteWriter; readonly start: number; readonly end: number; readonly local: number } | null = null

  constructor(index: number, params: readonly ValueType[], results: readonly ValueType[]) {
    this.index = index
    this.params = params
    this.results = results
  }

  /** A new local variable, initially zero. Parameters are the locals 0, 1, … */
  local(type: ValueType): number {
    this.locals.push(type)
    return this.params.length + this.locals.length - 1
  }

  /** Appends to the start of the function instead: for values computed once, such as constants kept in locals. */
  prologue(write: () => void): void {
    const { code } = this
    this.code = this.entry
    write()
    this.code = code
  }

  /** Writes code that {@link append} will put in its place: behind what must come first, but is known only afterwards. */
  fragment(write: () => void): Fragment {
    const { code, parts } = this
    const written: (Uint8Array | (() => void))[] = []
    this.code = new ByteWriter()
    this.parts = written
    write()
    written.push(this.code.finish())
    this.code = code
    this.parts = parts
    return written
  }

  /** Inside a fragment: code that is written when the fragment is put in its place. */
  later(write: () => void): void {
    if (this.parts === null) throw new InternalError('only code in a fragment can be written later')
    this.parts.push(this.code.finish(), write)
    this.code = new ByteWriter()
  }

  append(fragment: Fragment): void {
    for (const part of fragment) {
      if (typeof part === 'function') part()
      else this.code.append(part)
    }
  }

  /** An instruction without immediates. */
  op(name: PlainOp): void {
    this.code.append(encoded(encodedOps, name))
  }

  /** Several instructions without immediates. */
  ops(...names: readonly PlainOp[]): void {
    for (const name of names) this.op(name)
  }

  /** A load, or a store (address and value on the stack), at the address plus `offset` bytes. */
  memory(name: MemoryOp, offset = 0): void {
    const { bytes, align } = encoded(encodedMemoryOps, name)
    this.code.append(bytes)
    // Alignment is a hint; element alignment is all that views guarantee.
    this.code.unsigned(Math.min(align, 2))
    this.code.unsigned(offset)
  }

  /** A load into, or a store of, one lane: address and vector on the stack. */
  laneMemory(name: LaneMemoryOp, lane: number, offset = 0): void {
    const [opcode, align] = laneMemoryOps[name]
    this.code.append([0xfd, opcode])
    this.code.unsigned(Math.min(align, 2))
    this.code.unsigned(offset)
    this.code.byte(lane)
  }

  /** Extracts or replaces a lane. */
  lane(name: LaneOp, lane: number): void {
    this.code.append([0xfd, laneOps[name], lane])
  }

  /** `i8x16.shuffle` with 16 byte numbers (0-15 of the first operand, 16-31 of the second). */
  shuffle(bytes: readonly number[]): void {
    this.code.append([0xfd, 13])
    this.code.append(bytes)
  }

  /** A shuffle of 32-bit lanes (0-3 of the first operand, 4-7 of the second). */
  shuffle32(a: number, b: number, c: number, d: number): void {
    const { code } = this
    code.append([0xfd, 13])
    for (const lane of [a, b, c, d]) for (let byte = 0; byte < 4; byte++) code.byte(lane * 4 + byte)
  }

  /** `memory.copy`: of that many bytes, which may overlap. Takes the target, the source and the count. */
  memoryCopy(): void {
    this.code.append([0xfc, 10, 0, 0])
  }

  i32Const(value: number): void {
    this.code.byte(0x41)
    this.code.signed(value)
  }

  i64Const(value: bigint): void {
    this.code.byte(0x42)
    this.code.signed64(value)
  }

  f32Const(value: number): void {
    this.code.byte(0x43)
    this.code.float32(value)
  }

  f64Const(value: number): void {
    this.code.byte(0x44)
    this.code.float64(value)
  }

  /** A vector constant: four float32 lanes of the same value. */
  f32x4Const(value: number): void {
    if (Object.is(value, 0)) return this.zeros()
    this.code.append([0xfd, 12])
    for (let lane = 0; lane < 4; lane++) this.code.float32(value)
  }

  /** A vector constant: four int32 lanes of the same value. */
  i32x4Const(value: number): void {
    if (value === 0) this.zeros()
    else this.i32x4Lanes(value, value, value, value)
  }

  /** A vector of zeros, for which engines clear a register: registers of sums begin so, and a constant has 18 bytes. */
  private zeros(): void {
    this.i32Const(0)
    this.op('i32x4.splat')
  }

  /** A vector constant of four int32 lanes. */
  i32x4Lanes(...lanes: readonly [number, number, number, number]): void {
    this.code.append([0xfd, 12])
    for (const value of lanes) this.code.append([value & 255, (value >> 8) & 255, (value >> 16) & 255, (value >> 24) & 255])
  }

  /** A vector constant: two int64 lanes of the same value. */
  i64x2Const(value: bigint): void {
    this.code.append([0xfd, 12])
    for (let byte = 0n; byte < 16n; byte++) this.code.byte(Number((value >> ((byte % 8n) * 8n)) & 255n))
  }

  /** A vector constant: two float64 lanes of the same value. */
  f64x2Const(value: number): void {
    this.code.append([0xfd, 12])
    this.code.float64(value)
    this.code.float64(value)
  }

  /** Pushes a local. One that was set by the instruction before keeps its value on the stack instead, which takes less code. */
  get(local: number): void {
    const { code, lastSet } = this
    if (lastSet?.code === code && lastSet.end === code.length && lastSet.local === local) {
      code.replace(lastSet.start, 0x22)
      this.lastSet = null
      return
    }
    code.byte(0x20)
    code.unsigned(local)
  }

  set(local: number): void {
    const { code } = this
    const start = code.length
    code.byte(0x21)
    code.unsigned(local)
    this.lastSet = { code, start, end: code.length, local }
  }

  tee(local: number): void {
    this.code.byte(0x22)
    this.code.unsigned(local)
  }

  call(functionIndex: number): void {
    this.code.byte(0x10)
    this.code.unsigned(functionIndex)
  }

  /** A block: `br(label)` leaves it. */
  block(body: (end: Label) => void): void {
    this.structured(0x02, body)
  }

  /** A loop: `br(label)` starts it again. */
  loop(body: (start: Label) => void): void {
    this.structured(0x03, body)
  }

  /** Pops an i32 and runs `then` when it is not zero, else `otherwise`. */
  if(then: () => void, otherwise?: () => void): void {
    this.code.append([0x04, EMPTY_BLOCK])
    this.depth++
    then()
    if (otherwise !== undefined) {
      this.code.byte(0x05)
      otherwise()
    }
    this.depth--
    this.code.byte(0x0b)
  }

  br(label: Label): void {
    this.code.byte(0x0c)
    this.code.unsigned(this.depth - label.depth)
  }

  /** Pops an i32 and jumps when it is not zero. */
  brIf(label: Label): void {
    this.code.byte(0x0d)
    this.code.unsigned(this.depth - label.depth)
  }

  private structured(opcode: number, body: (label: Label) => void): void {
    this.code.append([opcode, EMPTY_BLOCK])
    this.depth++
    body({ depth: this.depth })
    this.depth--
    this.code.byte(0x0b)
  }

  /** The function's entry in the code section. */
  finish(): Uint8Array {
    const body = new ByteWriter()
    const groups: { type: ValueType; count: number }[] = []
    for (const type of this.locals) {
      const last = groups.at(-1)
      if (last?.type === type) last.count++
      else groups.push({ type, count: 1 })
    }
    body.unsigned(groups.length)
    for (const { type, count } of groups) {
      body.unsigned(count)
      body.byte(typeBytes[type])
    }
    body.append(this.entry.finish())
    body.append(this.code.finish())
    body.byte(0x0b)
    return body.finish()
  }
}

/**
 * Writes one module. Imports come before functions, because they share the index space.
 *
 *     const m = new ModuleBuilder()
 *     m.importMemory()
 *     const f = m.function(['i32'], ['i32'], 'double')
 *     f.get(0), f.i32Const(2), f.op('i32.mul')
 *     new WebAssembly.Module(m.finish())
 */
export class ModuleBuilder {
  private readonly types: string[] = []
  private readonly typeBytes: Uint8Array[] = []
  private readonly imports: ByteWriter[] = []
  private importedFunctions = 0
  private readonly functions: { readonly builder: FunctionBuilder; readonly type: number; readonly exportName: string | null }[] = []

  /** Imports the memory `env.memory`. With `sharedMaximum` (in pages of 64 KiB) the memory must be shared; otherwise it must not be. */
  importMemory(sharedMaximum?: number): void {
    const entry = this.importEntry('env', 'memory')
    entry.byte(0x02)
    entry.byte(sharedMaximum === undefined ? 0x00 : 0x03)
    entry.unsigned(0)
    if (sharedMaximum !== undefined) entry.unsigned(sharedMaximum)
  }

  /** Imports a function and returns its index. Throws InternalError when a function has already been defined. */
  importFunction(module: string, name: string, params: readonly ValueType[], results: readonly ValueType[]): number {
    if (this.functions.length > 0) throw new InternalError(`the import of ${module}.${name} must come before the module's own functions`)
    const entry = this.importEntry(module, name)
    entry.byte(0x00)
    entry.unsigned(this.typeIndex(params, results))
    return this.importedFunctions++
  }

  /** A new function, exported if a name is given. */
  function(params: readonly ValueType[], results: readonly ValueType[], exportName: string | null = null): FunctionBuilder {
    const builder = new FunctionBuilder(this.importedFunctions + this.functions.length, params, results)
    this.functions.push({ builder, type: this.typeIndex(params, results), exportName })
    return builder
  }

  /** The module's bytes. */
  finish(): Uint8Array<ArrayBuffer> {
    const module = new ByteWriter()
    module.append([0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00])
    section(module, 1, this.typeBytes)
    section(
      module,
      2,
      this.imports.map((entry) => entry.finish()),
    )
    section(
      module,
      3,
      this.functions.map(({ type }) => written((out) => out.unsigned(type))),
    )
    section(
      module,
      7,
      this.functions.flatMap(({ builder, exportName }) =>
        exportName === null
          ? []
          : [
              written((out) => {
                out.name(exportName)
                out.byte(0x00)
                out.unsigned(builder.index)
              }),
            ],
      ),
    )
    section(
      module,
      10,
      this.functions.map(({ builder }) =>
        written((out) => {
          const body = builder.finish()
          out.unsigned(body.length)
          out.append(body)
        }),
      ),
    )
    return module.finish().slice()
  }

  private importEntry(module: string, name: string): ByteWriter {
    const entry = new ByteWriter()
    entry.name(module)
    entry.name(name)
    this.imports.push(entry)
    return entry
  }

  private typeIndex(params: readonly ValueType[], results: readonly ValueType[]): number {
    const key = `${params.join()}->${results.join()}`
    const known = this.types.indexOf(key)
    if (known >= 0) return known
    const encode = (types: readonly ValueType[]): number[] => types.map((type) => typeBytes[type])
    this.typeBytes.push(
      written((out) => {
        out.byte(0x60)
        out.unsigned(params.length)
        out.append(encode(params))
        out.unsigned(results.length)
        out.append(encode(results))
      }),
    )
    return this.types.push(key) - 1
  }
}

function written(write: (out: ByteWriter) => void): Uint8Array {
  const out = new ByteWriter()
  write(out)
  return out.finish()
}

function section(module: ByteWriter, id: number, entries: readonly Uint8Array[]): void {
  if (entries.length === 0) return
  const content = new ByteWriter()
  content.unsigned(entries.length)
  for (const entry of entries) content.append(entry)
  module.byte(id)
  module.sized(content)
}
